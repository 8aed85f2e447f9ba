// Decisions from independent labels, in a pass or two over the probabilities of a row.
//
// With u = 1 - zeta, the best set of size k holds the k largest marginals and has the value
//
//     V_k = (1 + beta^2) sum_r w_r z_r^k zeta_r D(zeta_r) A_k(u_r),
//     D(zeta) = prod_i (1 - p_i u),      A_k(u) = sum_{i <= k} p_i / (1 - p_i u).
//
// Bounds show which of these have to be computed (docs/design.md, "Independent labels"):
//
// - an optimal set of two or more labels holds no label with
//   p (1 + beta^2) (1 + 1 / (beta^2 + 2)) < V (leaving the label out would gain): labels below
//   are not even listed;
// - V_k <= (1 + beta^2) E / (beta^2 E + k), which is T(k) by Jensen: larger sets are skipped;
// - the bounds of marginals_window.hpp for single ranks.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "marginals_short.hpp"
#include "marginals_window.hpp"
#include "power_sums.hpp"

namespace fgfm {

constexpr double SURELY_NONEMPTY = 100.0;  // expected labels: exp(-100) does not change a sum
constexpr Index RESTART = 64;  // powers of z are advanced by multiplication for this many steps

// Arrays for one row of up to m labels.
struct MarginalsWorkspace {
    Scratch<double> value;  // the listed labels
    Scratch<Index> place;   // where they are
    Scratch<Index> below;   // number of labels below a threshold, chunk by chunk
    Window window;
    Scratch<double> set_value;  // the values of the sets that end in the window
    Nodes nodes;
    Scratch<double> product;  // D(zeta)
    Scratch<double> total;    // A_k(u), up to the last restart
    Scratch<double> carry;    // what rounding kept out of it
    Scratch<double> part;     // what was added to A_k(u) since
    Scratch<double> factor;   // what multiplies A_k in V_k

    MarginalsWorkspace(Index m, const Rules& rules)
        : value(m + 1), place(m + 1), below(m / CHUNK + 1), window(m), set_value(m + 1),
          nodes(rules), product(padded(rules.longest)), total(product.size()),
          carry(product.size()), part(product.size()), factor(product.size()) {}

    // Add a label to A_k, return V_k and advance the powers of z.
    double next_value(double x) {
        const double *u = nodes.u.data(), *z = nodes.z.data();
        Lanes result = {};
        for (Index r = 0; r < nodes.padding; r += LANES) {
            const Lanes y = load(&part[r]) + x / (1.0 - x * load(u + r));
            const Lanes w = load(&factor[r]);
            store(&part[r], y);
            store(&factor[r], w * load(z + r));
            result += w * (load(&total[r]) + y);
        }
        return add_lanes(result);
    }

    // Add to A_k what was collected since the last restart (Kahan summation).
    void restart() {
        for (Index r = 0; r < nodes.padding; ++r) {
            const double y = part[r] - carry[r];
            const double t = total[r] + y;
            carry[r] = (t - total[r]) - y;
            total[r] = t;
            part[r] = 0.0;
        }
    }

    // Load the rule for the sets that end in [low, high) of the window, of m labels.
    void load_nodes(Index m, const Moments& moments, const Rules& rules) {
        const double beta2 = moments.beta2;
        const double s_max = std::min<double>(m, 1.0 + largest_cardinality(moments.mean));
        const double s_min = std::max(1.0, moments.mean - std::sqrt(2.0 * TAIL * moments.mean));
        nodes.load(rules, beta2, beta2 * s_min + window.rank + window.low + 1,
                   beta2 * s_max + window.rank + window.high);
    }

    // Fill in the values of the sets that end in [low, high) of the window; return the largest.
    //
    // `product` has D(zeta) and `total` A(u) of the labels above the window.
    double evaluate_window(const Moments& moments) {
        const double beta2 = moments.beta2;
        for (Index i = 0; i < window.low; ++i) {
            next_value(window.value[i]);
            if (i % RESTART == 0) restart();
        }
        double peak = 0.0;
        for (Index i = window.low; i < window.high; ++i) {
            if ((i - window.low) % RESTART == 0) {
                restart();
                for (Index r = 0; r < nodes.count; ++r) {
                    factor[r] = (1.0 + beta2) * nodes.weight[r] * nodes.zeta[r] * product[r] *
                                std::exp((window.rank + i + 1) * nodes.log_z[r]);
                }
            }
            set_value[i] = next_value(window.value[i]);
            peak = std::max(peak, set_value[i]);
        }
        return peak;
    }
};

// Return true if most labels of a long row are not small, by a sample: then a pass for the power
// sums of small labels would not pay.
template <class T>
bool looks_dense(std::span<const T> p) {
    constexpr Index SAMPLE = 64;
    const Index m = length(p), stride = m / SAMPLE;
    if (m < LONG) return false;
    Index large = 0;
    double mean = 0.0;
    for (Index i = 0; i < SAMPLE; ++i) {
        large += p[i * stride] > SMALL;
        mean += p[i * stride] * stride;
    }
    return 2 * large > SAMPLE && mean > 4.0 * SURELY_NONEMPTY;
}

template <class T>
Index count_below(std::span<const T> p, double threshold) {
    Index count = 0;
    for (const T x : p) count += x < threshold;
    return count;
}

// List the labels that are not below `threshold`, in order; return their number.
//
// `work.below` has the number of labels below the threshold in each chunk.
template <class T>
Index gather(std::span<const T> p, double threshold, MarginalsWorkspace& work) {
    Index count = 0;
    const Index m = length(p);
    for (Index start = 0; start < m; start += CHUNK) {
        const Index stop = std::min(m, start + CHUNK);
        if (work.below[start / CHUNK] < stop - start) {
            for (Index i = start; i < stop; ++i) {
                const double x = p[i];
                work.value[count] = x;
                work.place[count] = i;
                count += !(x < threshold);
            }
        }
    }
    return count;
}

// Fill in the values of the sets that end in [low, high) of the window; return the largest.
//
// `large` holds every label from `from` on, and every label above the window; `sums` has the power
// sums of the labels below `from`; `p` are all labels.
template <class L, class T>
double evaluate(std::span<const L> large, double from, std::span<const T> p, PowerSums& sums,
                const Moments& moments, const Rules& rules, MarginalsWorkspace& work) {
    const Window& window = work.window;
    work.load_nodes(length(p), moments, rules);
    const Nodes& nodes = work.nodes;
    fill_products(work.product.data(), nodes, sums, large, from);
    for (Index r = 0; r < nodes.padding; ++r) {
        work.total[r] = work.carry[r] = work.part[r] = work.factor[r] = 0.0;
    }
    if (window.rank) fill_fractions(work.total.data(), nodes, large, window.value[0]);
    return work.evaluate_window(moments);
}

// Mark the optimal set of one row in `chosen`; return its expected value.
//
// `Bounds` is the measure: `Moments` for F, or another type with the same members and an overload of
// `evaluate`.
// Returns NOT_PROBABILITY if a value of p is not in [0, 1], and NaN if the row leaves no mass for
// the non-empty sets that the objective is conditioned on.
template <class Bounds = Moments, class T>
double decide_marginals_row(std::span<const T> p, std::int8_t* chosen, const Objective& objective,
                            const Rules& rules, MarginalsWorkspace& work) {
    const double beta2 = objective.beta2;
    const Index m = length(p);
    Window& window = work.window;
    PowerSums sums{};
    double from = next_above(SMALL);  // labels below are in the power sums
    Index count = m;                  // of the others
    bool listed = false;              // these are listed; if false, p itself serves as the list
    const auto is_listed = [&] { return 4 * count < m || m <= 4 * FEW; };
    const auto list = [&] { return std::span<const double>(work.value.data(), count); };
    Bounds moments{beta2, 0.0, 0.0};
    if (looks_dense(p)) {
        const Sums all = add_moments(p, -std::numeric_limits<double>::denorm_min());
        if (all.count < m || all.over_one) return NOT_PROBABILITY;
        moments = {beta2, all.total, all.total - all.squares};
        from = 0.0;
    }
    if (moments.mean < SURELY_NONEMPTY) {
        from = next_above(SMALL);
        for (Index start = 0; start < m; start += CHUNK) {
            const Index size = std::min(CHUNK, m - start);
            work.below[start / CHUNK] = add_power_sums(p.subspan(start, size), 0.0, SMALL, sums);
            count -= work.below[start / CHUNK];
        }
        listed = is_listed();
        if (listed && gather(p, from, work) < count) return NOT_PROBABILITY;
        const Sums large = listed ? add_moments(list(), SMALL) : add_moments(p, SMALL);
        if (large.count < count || large.over_one) return NOT_PROBABILITY;
        moments.mean = sums[0] + large.total;
        moments.variance = moments.mean - large.squares;
    }
    const double mean = moments.mean;
    if (mean < TINY_ROW && mean > 0.0) {
        std::vector<double> scaled(p.begin(), p.end());
        for (double& x : scaled) x *= UPSCALE;
        return objective.downscaled(decide_marginals_row<Bounds>(
            std::span<const double>(scaled), chosen, objective.upscaled(), rules, work));
    }

    double log_empty = -std::numeric_limits<double>::infinity();
    if (mean < SURELY_NONEMPTY) {
        log_empty = listed ? log_probability_of_empty(sums, list())
                           : log_probability_of_empty(sums, p);
    }
    const double present = -std::expm1(log_empty);  // P(y != 0)
    double empty = 0.0;
    if (objective.nonempty) {
        if (present == 0.0) return std::numeric_limits<double>::quiet_NaN();
    } else {
        empty = objective.zero_division * std::exp(log_empty);
        // T(1) does not exceed the value of the empty set
        if ((1.0 + beta2) * mean <= empty * (1.0 + TIE) * (beta2 * mean + 1.0)) return empty;
    }

    // A first bound from the large labels shows how small a label can still matter.
    window.floor = empty;
    double top = 1.0;
    if (count == 0) {
        top = largest(p);
        window.floor = std::max(window.floor, moments.lower_bound(top, 1));
        window.rank = window.low = window.high = 0;
    } else if (listed) {
        find_window(list(), work.place.data(), SMALL, top, moments, window);
    } else {
        find_window(p, nullptr, SMALL, top, moments, window);
    }
    const double least = moments.least_label(window.floor) * (1.0 - 1e-9);
    if (least < SMALL) {
        count = m;
        for (Index start = 0; start < m; start += CHUNK) {
            const Index size = std::min(CHUNK, m - start);
            work.below[start / CHUNK] = count_below(p.subspan(start, size), least);
            count -= work.below[start / CHUNK];
        }
        listed = is_listed();
        if (listed) {
            gather(p, least, work);
            find_window(list(), work.place.data(), least, top, moments, window);
        } else {
            find_window(p, nullptr, least, top, moments, window);
        }
    }
    const double most = moments.largest_size(window.floor) + 1.0;
    if (most < window.rank + window.high) window.high = static_cast<Index>(most) - window.rank;
    if (window.high <= window.low) return empty;

    const double peak = listed ? evaluate(list(), from, p, sums, moments, rules, work)
                               : evaluate(p, from, p, sums, moments, rules, work);
    if (!objective.nonempty && peak <= empty * (1.0 + TIE)) return empty;
    Index end = window.low;
    while (work.set_value[end] < peak * (1.0 - TIE)) ++end;
    if (window.rank) {  // all labels above the window
        if (listed) {
            for (Index i = 0; i < count; ++i) {
                if (work.value[i] > window.value[0]) chosen[work.place[i]] = 1;
            }
        } else {
            for (Index i = 0; i < m; ++i) chosen[i] = p[i] > window.value[0];
        }
    }
    for (Index i = 0; i <= end; ++i) chosen[window.place[i]] = 1;
    return objective.nonempty ? work.set_value[end] / present : work.set_value[end];
}

template <class Bounds = Moments, class T>
Status decide_dense_rows(Matrix<const T> proba, const Objective& objective, const Rules& rules,
                         Matrix<std::int8_t> labels, double* expected) {
    if constexpr (std::is_same_v<Bounds, Moments>) {
        if (proba.cols <= SHORT) {
            ShortRule rule(rules);
            rule.load(rules, objective.beta2, proba.cols);
            for (Index row = 0; row < proba.rows; ++row) {
                expected[row] = decide_short_row(proba.row(row), labels[row], objective, rule);
                if (expected[row] < 0.0) return {row, expected[row], 0};
            }
            return {};
        }
    }
    MarginalsWorkspace work(proba.cols, rules);
    for (Index row = 0; row < proba.rows; ++row) {
        expected[row] =
            decide_marginals_row<Bounds>(proba.row(row), labels[row], objective, rules, work);
        if (expected[row] < 0.0) return {row, expected[row], 0};
    }
    return {};
}

// Decide rows stored as in CSR: `chosen` marks stored elements.
template <class Bounds = Moments, class T>
Status decide_csr_rows(const T* data, std::span<const Index> indptr, const Objective& objective,
                       const Rules& rules, std::int8_t* chosen, double* expected) {
    const Index n = length(indptr) - 1;
    Index most = 0;
    for (Index row = 0; row < n; ++row) most = std::max(most, indptr[row + 1] - indptr[row]);
    MarginalsWorkspace work(most, rules);
    ShortRule rule(rules);
    for (Index row = 0; row < n; ++row) {
        const Index start = indptr[row], size = indptr[row + 1] - start;
        const std::span<const T> p(data + start, size);
        if (!std::is_same_v<Bounds, Moments> || size > SHORT) {
            expected[row] =
                decide_marginals_row<Bounds>(p, chosen + start, objective, rules, work);
        } else {
            rule.load(rules, objective.beta2, size);
            expected[row] = decide_short_row(p, chosen + start, objective, rule);
        }
        if (expected[row] < 0.0) return {row, expected[row], 0};
    }
    return {};
}

}  // namespace fgfm
