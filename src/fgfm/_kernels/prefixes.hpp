// The best number of labels where their order is given: micro decisions with limits on rows.
#pragma once

#include <span>
#include <tuple>

#include "marginals.hpp"

namespace fgfm {

// Choose how many of `sequence` to decide for, `least` or more; return the number and the value.
//
// `p` are all labels, of which `sequence` has some. The bounds of marginals_window.hpp hold for any
// set, so that they show which numbers have to be evaluated. The value is NaN if the objective is
// conditioned on sets that cannot occur.
inline std::tuple<Index, double> decide_prefix(std::span<const double> p,
                                              std::span<const double> sequence, Index least,
                                              const Objective& objective, const Rules& rules) {
    PowerSums sums{};
    add_power_sums_by_parts(p, 0.0, SMALL, sums);
    const Sums all = add_moments(p, 0.0);
    const Moments moments{objective.beta2, all.total, all.total - all.squares};
    const double log_empty = log_probability_of_empty(sums, p);
    const double present = -std::expm1(log_empty);
    if (objective.nonempty && present == 0.0) {
        return {least, std::numeric_limits<double>::quiet_NaN()};
    }
    const double empty =
        objective.nonempty || least > 0 ? 0.0 : objective.zero_division * std::exp(log_empty);
    const Index size = length(sequence), first = std::max<Index>(least, 1);
    if (size < first) return {0, empty};
    double floor = empty, mass = 0.0;
    for (Index k = 1; k <= size; ++k) {
        mass += sequence[k - 1];
        if (k >= first) floor = std::max(floor, moments.lower_bound(mass, k));
    }
    Index low = size + 1, high = 0;  // numbers that can be optimal
    mass = 0.0;
    for (Index k = 1; k <= size; ++k) {
        mass += sequence[k - 1];
        if (k >= first && moments.upper_bound(mass, k) >= floor * (1.0 - TIE)) {
            low = std::min(low, k);
            high = k;
        }
    }
    if (high == 0) return {0, empty};
    MarginalsWorkspace work(high - low + 1, rules);
    work.window.rank = low - 1;
    work.window.low = 0;
    work.window.high = high - low + 1;
    std::copy(sequence.begin() + low - 1, sequence.begin() + high, work.window.value.begin());
    work.load_nodes(length(p), moments, rules);
    fill_products(work.product.data(), work.nodes, sums, p);
    fill_fractions(work.total.data(), work.nodes, sequence.first(low - 1), -1.0);
    for (Index r = 0; r < work.nodes.padding; ++r) {
        work.carry[r] = work.part[r] = work.factor[r] = 0.0;
    }
    const double peak = work.evaluate_window(moments);
    if (least == 0 && !objective.nonempty && peak <= empty * (1.0 + TIE)) return {0, empty};
    Index end = 0;
    while (work.set_value[end] < peak * (1.0 - TIE)) ++end;
    return {low + end, objective.nonempty ? work.set_value[end] / present : work.set_value[end]};
}

}  // namespace fgfm
