// Decisions that maximise the expected Jaccard index of independent labels.
//
// Hits and true labels outside of h are independent. So with M_k the sum of the k largest marginals,
// S_k the number of true labels among the others, and 1 / a = sum_r w_r z_r^a,
//
//     V_k = E[|y & h| / |y | h|] = M_k E[1 / (k + S_k)]
//         = M_k sum_r w_r z_r^k prod_{i > k} (1 - p_i u_r),      u = 1 - z.
//
// The route is that of marginals.hpp; this file has the bounds and the values of the sets
// (docs/design.md, "Jaccard").
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "marginals.hpp"

namespace fgfm {

// Bounds from mean and variance of |y|. With X = k + S_k, E[X] = k + E - M_k is at least k and E, and
//
//     M_k / E[X] <= V_k <= M_k / E[X] (1 + Var(X) / (E[X] k)),      V_k <= M_k / k,
//
// from Jensen and from E[1/X] - 1/E[X] <= Var(X) / (E[X]^2 min X). Both bounds grow with M_k.
struct JaccardMoments {
    double beta2, mean, variance;  // beta^2 is 1

    // The upper bound equals the lower one where nothing is uncertain: room for rounding errors.
    static constexpr double ROOM = 1e-9;

    double lower_bound(double mass, Index k) const { return mass / (k + mean - mass); }
    double upper_bound(double mass, Index k) const { return upper_bound(mass, k, mass, k); }

    // Bound the values of the sizes from k to `last`, whose masses lie on or below a line of slope 1
    // at most.
    //
    // E[X] does not fall along the line, so that the upper bound is a linear fraction of the size,
    // monotone, times a factor that falls with it. M_k <= k gives M_k / E[X] <= k / E.
    double upper_bound(double mass, Index k, double last_mass, Index last) const {
        const double union_size = k + mean - mass, last_union = last + mean - last_mass;
        double bound = std::max(mass / k, last_mass / last);
        if (union_size > 0.0) {  // not if `mass` is a bound above the mean
            const double most = std::min(std::max(mass / union_size, last_mass / last_union),
                                         last / mean);
            const double spread = std::max(0.0, variance) / (union_size * k);
            bound = std::min(bound, most * (1.0 + spread));
        }
        return bound * (1.0 + ROOM);
    }

    // The last label of an optimal set of k >= 2 labels has p / (1 - p) >= M_{k-1} E[1 / (X - 1)]
    // >= V - p / k, hence p / (1 - p) (1 + 1/2) >= V.
    double least_label(double value) const { return value / (1.5 + value); }

    // V_k <= M_k / k <= E / k.
    double largest_size(double value) const { return mean / value * (1.0 + TIE); }

    // M / (k + E - M) is largest with the labels p > t, t = M / (k + E).
    double threshold(double mass, double count) const { return mass / (count + mean); }
    double value_at(double t) const { return t / (1.0 - t); }

    // Moving the threshold by x costs about density x^2 / 2 of M - t (k + E); the bounds differ by
    // t (Var(X) / k + ROOM E[X]).
    double reach(double t, double density, Index count) const {
        const double k = std::max<double>(1.0, count);
        const double gap = std::max(0.0, variance) / k + ROOM * (k + mean);
        return 2.0 * std::sqrt(2.0 * t * gap / density) + 1e-12 * t;
    }
};

// A compensated sum (Kahan): equal labels would otherwise be rounded the same way each time.
struct CompensatedSum {
    double total = 0.0, carry = 0.0;

    void add(double x) {
        const double y = x - carry, t = total + y;
        carry = (t - total) - y;
        total = t;
    }
};

// Return the sum of the labels above `least`, part by part.
template <class T>
CompensatedSum mass_above(std::span<const T> p, double least) {
    CompensatedSum mass;
    for (Index start = 0; start < length(p); start += CHUNK) {
        const Index size = std::min(CHUNK, length(p) - start);
        mass.add(add_moments(p.subspan(start, size), least).total);
    }
    return mass;
}

// Fill in the values of the sets that end in [low, high) of the window; return the largest.
//
// The arguments are those of `evaluate` in marginals.hpp.
template <class L, class T>
double evaluate(std::span<const L> large, double from, std::span<const T> p, PowerSums& sums,
                const JaccardMoments& moments, const Rules& rules, MarginalsWorkspace& work) {
    const Window& window = work.window;
    const double* label = window.value.data();
    CompensatedSum mass;  // of the set without its last label
    if (window.rank) mass = mass_above(large, label[0]);
    for (Index i = 0; i < window.low; ++i) mass.add(label[i]);
    double last_mass = mass.total;
    for (Index i = window.low; i < window.high; ++i) last_mass += label[i];

    // The range of a = k + S_k, which does not fall as k grows.
    const Index first = window.rank + window.low + 1, last = window.rank + window.high;
    const double outside = std::max(0.0, moments.mean - mass.total - label[window.low]);
    const double last_outside = std::max(0.0, moments.mean - last_mass);
    const double s_min = std::max(0.0, outside - std::sqrt(2.0 * TAIL * outside));
    const double s_max = std::min<double>(length(p) - last, largest_cardinality(last_outside));
    Nodes& nodes = work.nodes;
    nodes.load_sum(rules, 1.0, first + s_min, last + s_max);
    // z = 1 in the padding, of weight 0: no division by 1 - p u = 0
    for (Index r = nodes.count; r < nodes.padding; ++r) nodes.z[r] = 1.0;

    // The product over the labels outside of the first set: those below the window, and its own.
    double *product = work.product.data(), *factor = work.factor.data();
    const double *z = nodes.z.data(), *weight = nodes.weight.data();
    const double bottom = label[window.size - 1];
    const double below = std::nextafter(bottom, -1.0);
    if (bottom > SMALL) {
        fill_products(product, nodes, sums, large, from, below);
    } else {  // some labels of the power sums are inside
        sums = {};
        fill_products(product, nodes, sums, p, 0.0, below);
    }
    for (Index i = window.low + 1; i < window.size; ++i) {
        for (Index r = 0; r < nodes.padding; r += LANES) {
            const Lanes own = (1.0 - label[i]) + label[i] * load(z + r);  // 1 - p u
            store(product + r, load(product + r) * own);
        }
    }
    double peak = 0.0;
    for (Index i = window.low; i < window.high; ++i) {
        mass.add(label[i]);
        Lanes total = {};
        if (i > window.low) {  // label i joins the set
            for (Index r = 0; r < nodes.padding; r += LANES) {
                const Lanes own = (1.0 - label[i]) + label[i] * load(z + r);
                const Lanes share = 1.0 / own;
                store(product + r, load(product + r) * share);
                store(factor + r, load(factor + r) * (load(z + r) * share));
            }
        }
        if ((i - window.low) % RESTART == 0) {
            for (Index r = 0; r < nodes.padding; ++r) {
                factor[r] = weight[r] * product[r] *
                            std::exp((window.rank + i + 1) * nodes.log_z[r]);
            }
        }
        for (Index r = 0; r < nodes.padding; r += LANES) total += load(factor + r);
        work.set_value[i] = mass.total * add_lanes(total);
        peak = std::max(peak, work.set_value[i]);
    }
    return peak;
}

}  // namespace fgfm
