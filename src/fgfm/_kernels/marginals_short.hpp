// Decisions from up to SHORT independent labels: all set sizes, with one quadrature rule.
//
// The values are those of marginals.hpp. With few labels its bounds cost more than they save: here
// one rule serves every row, no exponential is computed, and only labels that can be in an optimal
// set are sorted.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "constants.hpp"
#include "quadrature.hpp"

namespace fgfm {

constexpr Index SHORT = 128;     // labels, at most
constexpr double LIKELY = 0.25;  // labels from here on make the first guess

// The rule for one number of labels, and arrays for a row.
struct ShortRule {
    std::vector<double> scale;  // what multiplies A_k in V_k before any label is counted
    std::vector<double> z, u;
    std::vector<double> part, factor;
    Index nodes = 0;   // with padding
    Index labels = -1; // the number that the rule is for

    explicit ShortRule(const Rules& rules)
        : scale(padded(rules.longest)), z(scale.size()), u(scale.size()), part(scale.size()),
          factor(scale.size()) {}

    void load(const Rules& rules, double beta2, Index m) {
        if (m == labels) return;
        labels = m;
        Index t = 0;
        while (rules.fixed_reach.at(t) < (1.0 + beta2) * m) ++t;
        const Index first = rules.fixed_start[t], count = rules.fixed_start[t + 1] - first;
        nodes = padded(count);
        for (Index r = 0; r < nodes; ++r) {
            const bool real = r < count;
            z[r] = real ? rules.fixed_z[first + r] : 0.0;
            u[r] = real ? rules.fixed_u[first + r] : 0.0;
            scale[r] = real ? (1.0 + beta2) * rules.fixed_weight[first + r] *
                                  rules.fixed_zeta[first + r] * rules.fixed_z[first + r]
                            : 0.0;
        }
    }
};

// Mark the F-optimal set of one row in `chosen`; return its expected F, or a code.
template <class T>
double decide_short_row(std::span<const T> p, std::int8_t* chosen, const Objective& objective,
                        ShortRule& rule) {
    const double beta2 = objective.beta2;
    const Index m = length(p);
    double label[SHORT + LANES];  // the row in double precision, padded with 0
    double mean = 0.0, mass = 0.0, empty = 1.0, top = 0.0;
    Index likely = 0;
    bool valid = true;
    for (Index i = 0; i < m; ++i) {
        const double x = p[i];
        label[i] = x;
        valid &= (x >= 0.0) & (x <= 1.0);
        mean += x;
        empty *= 1.0 - x;
        const bool counts = x >= LIKELY;
        likely += counts;
        mass += counts ? x : 0.0;
        top = x > top ? x : top;
    }
    if (!valid) return NOT_PROBABILITY;
    for (Index i = m; i < m + LANES; ++i) label[i] = 0.0;
    double present = 1.0;  // what values are divided by: P(y != 0), where that is a condition
    if (top < TINY_ROW && top > 0.0) {
        for (Index i = 0; i < m; ++i) label[i] *= UPSCALE;
        mean *= UPSCALE;
        top *= UPSCALE;
        empty = present = UPSCALE;
    }
    if (objective.nonempty) {
        if (top < 1.0) {
            double log_empty = 0.0;
            for (Index i = 0; i < m; ++i) log_empty += std::log1p(-label[i]);
            present = -std::expm1(log_empty);
        }
        if (present == 0.0) return std::numeric_limits<double>::quiet_NaN();
        empty = 0.0;
    } else {
        empty *= objective.zero_division;
        // T(1) does not exceed the value of the empty set
        if ((1.0 + beta2) * mean <= empty * (1.0 + TIE) * (beta2 * mean + 1.0)) {
            return empty / present;
        }
    }
    // By Jensen the set of the likely labels, and that of the first one, have this value at least;
    // an optimal set of two or more labels has none below its value times `share`.
    const double floor = std::max(mass / (beta2 * (1.0 + mean) + likely),
                                  top / (beta2 * (1.0 + mean) + 1.0));
    const double share = (1.0 - 1e-9) / ((1.0 + beta2) * (1.0 + 1.0 / (beta2 + 2.0)));
    const double least = std::min(top, std::max((1.0 + beta2) * floor, empty) * share);
    double value[SHORT + 1];
    Index place[SHORT + 1];
    Index count = 0;
    for (Index i = 0; i < m; ++i) {
        const double x = label[i];
        if (x >= least) {
            Index j = count++;
            for (; j > 0 && x > value[j - 1]; --j) {
                value[j] = value[j - 1];
                place[j] = place[j - 1];
            }
            value[j] = x;
            place[j] = i;
        }
    }
    const Index nodes = rule.nodes;
    const double *u = rule.u.data(), *z = rule.z.data(), *scale = rule.scale.data();
    double *part = rule.part.data(), *factor = rule.factor.data();
    for (Index r = 0; r < nodes; ++r) {
        part[r] = 0.0;
        factor[r] = scale[r];
    }
    // factor_r = (1 + beta^2) w_r z_r zeta_r D(zeta_r), four labels at a time
    for (Index i = 0; i < m; i += 4) {
        const double a = label[i], b = label[i + 1], c = label[i + 2], d = label[i + 3];
        for (Index r = 0; r < nodes; r += LANES) {
            const Lanes v = load(u + r);
            const Lanes four = ((1.0 - a * v) * (1.0 - b * v)) * ((1.0 - c * v) * (1.0 - d * v));
            store(factor + r, load(factor + r) * four);
        }
    }
    double set_value[SHORT + 1];
    double peak = empty;
    Index size = 0;
    // until T(k) falls below the best value
    while (size < count && (1.0 + beta2) * mean >= peak * (beta2 * mean + size + 1.0)) {
        const double x = value[size];
        Lanes total = {};
        for (Index r = 0; r < nodes; r += LANES) {
            const Lanes y = load(part + r) + x / (1.0 - x * load(u + r));  // A_k(u_r)
            const Lanes w = load(factor + r);
            store(part + r, y);
            store(factor + r, w * load(z + r));
            total += w * y;
        }
        set_value[size] = add_lanes(total);
        peak = std::max(peak, set_value[size]);
        ++size;
    }
    if (!objective.nonempty && peak <= empty * (1.0 + TIE)) return empty / present;
    Index end = 0;
    while (set_value[end] < peak * (1.0 - TIE)) ++end;
    for (Index i = 0; i <= end; ++i) chosen[place[i]] = 1;
    return set_value[end] / present;
}

}  // namespace fgfm
