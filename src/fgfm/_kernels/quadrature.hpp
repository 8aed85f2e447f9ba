// The quadrature rule of a row: docs/design.md, "Separating s from k".
//
// A rule has positive weights w_r and nodes 0 < z_r < 1 with
//
//     sum_r w_r z_r^a = 1 / a     for all a = beta^2 s + k in [a_min, a_max].
//
// The shorter the range, the fewer nodes it takes. The range of a row covers the set sizes k that
// can be optimal and the cardinalities s that are not too improbable.
#pragma once

#include <cmath>
#include <vector>

#include "arrays.hpp"

namespace fgfm {

constexpr double TAIL = 34.0;  // cardinalities of total probability exp(-TAIL) = 2e-15 may lie
                               // outside the range

// All rules for one beta (fgfm.decision._quadrature builds them).
//
// The fixed_* arrays hold, one after the other, the rules that start at the smallest possible
// a = beta^2 + 1; the others hold exponential sums on [1, ratio], which are stretched to a range
// that starts elsewhere.
struct Rules {
    std::vector<double> fixed_reach;  // (T,) the largest a that a rule serves, increasing
    std::vector<Index> fixed_start;   // (T + 1,) where its nodes begin
    std::vector<double> fixed_log_z, fixed_weight, fixed_z;
    std::vector<double> fixed_zeta;  // z^(beta^2)
    std::vector<double> fixed_u;     // 1 - zeta, without cancellation
    std::vector<double> ratio;       // (T',) the largest a_max / a_min that a sum serves
    std::vector<Index> start;        // (T' + 1,)
    std::vector<double> exponent, weight;
    Index longest = 0;  // the largest number of nodes
};

// The rule in use, node by node, padded with nodes of weight 0, z = 0 and u = 0.
struct Nodes {
    std::vector<double> log_z, z, zeta, u, weight;
    Index count = 0;   // nodes
    Index padding = 0; // nodes, with padding

    explicit Nodes(const Rules& rules)
        : log_z(padded(rules.longest)), z(log_z.size()), zeta(log_z.size()), u(log_z.size()),
          weight(log_z.size()) {}

    // Load the shortest rule with sum_r w_r z_r^a = 1 / a for a in [a_min, a_max].
    void load(const Rules& rules, double beta2, double a_min, double a_max) {
        if (a_min <= beta2 + 1.0) {
            Index t = 0;
            while (rules.fixed_reach.at(t) < a_max) ++t;
            const Index first = rules.fixed_start[t];
            count = rules.fixed_start[t + 1] - first;
            for (Index r = 0; r < count; ++r) {
                log_z[r] = rules.fixed_log_z[first + r];
                z[r] = rules.fixed_z[first + r];
                zeta[r] = rules.fixed_zeta[first + r];
                u[r] = rules.fixed_u[first + r];
                weight[r] = rules.fixed_weight[first + r];
            }
            pad();
        } else {
            load_sum(rules, beta2, a_min, a_max);
        }
    }

    // Load the shortest exponential sum for the range, whatever its start.
    void load_sum(const Rules& rules, double beta2, double a_min, double a_max) {
        Index t = 0;
        while (rules.ratio.at(t) * a_min < a_max) ++t;
        const Index first = rules.start[t];
        count = rules.start[t + 1] - first;
        for (Index r = 0; r < count; ++r) {
            log_z[r] = -rules.exponent[first + r] / a_min;
            z[r] = std::exp(log_z[r]);
            u[r] = -std::expm1(beta2 * log_z[r]);
            zeta[r] = 1.0 - u[r];
            weight[r] = rules.weight[first + r] / a_min;
        }
        pad();
    }

private:
    void pad() {
        padding = padded(count);
        for (Index r = count; r < padding; ++r) {
            log_z[r] = z[r] = zeta[r] = u[r] = weight[r] = 0.0;
        }
    }
};

// Return x with P(s >= x) <= exp(-TAIL) for a sum s of independent 0/1 variables of this mean.
//
// Chernoff: x log(x / mean) - x + mean = TAIL, by Newton's method from Bernstein's bound. The left
// side is convex, so every iterate is still a bound.
inline double largest_cardinality(double mean) {
    if (mean < 1e-15) return 1.0;  // P(s >= 1) <= mean
    double x = mean + TAIL / 3.0 + std::sqrt(TAIL * TAIL / 9.0 + 2.0 * TAIL * mean);
    for (int step = 0; step < 3; ++step) {
        const double slope = std::log(x / mean);
        x -= (x * slope - x + mean - TAIL) / slope;
    }
    return x;
}

}  // namespace fgfm
