// GFM: decisions from p(y_i = 1, |y| = s), and these frequencies of draws.
//
// A row is a matrix C with one row per label and one column per cardinality that can occur: P
// itself, or what samples or a joint distribution give.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "checks.hpp"
#include "constants.hpp"
#include "constrained.hpp"
#include "search.hpp"

namespace fgfm {

// Arrays for one row of m labels and up to S cardinalities.
struct CardinalitiesWorkspace {
    Scratch<double> p, weighted, totals, base, scale;
    Scratch<Index> order;
    RankWorkspace rank;
    SearchWorkspace search;
    ConstrainedWorkspace constrained;

    CardinalitiesWorkspace(Index m, Index S)
        : p(m), weighted(m), totals(S), base(S), scale(S), order(m + 1) {}
};

// Sum the rows of C, the rows weighted by s, and the columns; return false unless all values are
// in [0, 1].
template <class T>
bool scan(Matrix<const T> C, std::span<const double> s, CardinalitiesWorkspace& work) {
    const Index S = C.cols;
    const Lanes none = {}, one = none + 1.0;
    Lanes bad = {};
    bool valid = true;
    double* totals = work.totals.data();
    std::fill(totals, totals + S, 0.0);
    for (Index i = 0; i < C.rows; ++i) {
        const T* row = C[i];
        Lanes total = {}, load_sum = {};
        Index q = 0;
        for (; q + LANES <= S; q += LANES) {
            const Lanes x = load(row + q);
            bad += x - x * x >= 0.0 ? none : one;  // one comparison: outside [0, 1], or NaN
            total += x;
            load_sum += x * load(s.data() + q);
            store(totals + q, load(totals + q) + x);
        }
        double tail = 0.0, load_tail = 0.0;
        for (; q < S; ++q) {
            const double x = row[q];
            valid &= x - x * x >= 0.0;
            tail += x;
            load_tail += x * s[q];
            totals[q] += x;
        }
        work.p[i] = add_lanes(total) + tail;
        work.weighted[i] = add_lanes(load_sum) + load_tail;
    }
    return valid && add_lanes(bad) == 0.0;
}

// Mark the F-optimal set of a row among all sets; return its expected F, or a code.
//
// `d_0` is the probability of the empty set and `present` that of all others; both are NaN where
// they follow from C, up to `slack`, and are filled in. A `trusted` C was computed here and is not
// refused. Returns NaN if the row leaves no mass for the non-empty sets that the objective is
// conditioned on.
template <class T>
double decide_free_cardinality_row(Matrix<const T> C, std::span<const double> s, double& d_0,
                                   double& present, bool trusted, double slack,
                                   const Objective& objective, std::span<const Index> names,
                                   std::span<std::int8_t> chosen, CardinalitiesWorkspace& work) {
    const double beta2 = objective.beta2;
    const Index S = length(s);
    const double nan = std::numeric_limits<double>::quiet_NaN();
    for (Index q = 0; q < S; ++q) {
        work.base[q] = beta2 * s[q];
        work.scale[q] = 1.0 + beta2;
    }
    if (!scan(C, s, work) && !trusted) return NOT_PROBABILITY;
    if (!trusted) {
        for (Index i = 0; i < C.rows; ++i) {
            if (work.p[i] > 1.0 + slack) return TOO_MUCH_MASS;
        }
    }
    if (std::isnan(d_0)) {
        present = 0.0;
        for (Index q = 0; q < S; ++q) present += work.totals[q] / s[q];  // d_s = sum_i p_is / s
        if (present > 1.0 + slack) return TOO_MUCH_MASS;
        present = std::min(present, 1.0);
        d_0 = 1.0 - present;
    }
    const double empty = objective.nonempty ? -1.0 : objective.zero_division * d_0;
    if (objective.nonempty && present == 0.0) return nan;
    const std::span<const double> p(work.p.data(), C.rows), weighted(work.weighted.data(), C.rows);
    const double s_max = S > 0 ? s[S - 1] : 0.0;  // 0: the empty set is certain
    const Candidates found = rank_candidates(p, weighted, s_max, beta2, empty,
                                             work.order.data(), work.rank);
    if (found.size == 0) return objective.nonempty ? nan : empty;
    const ColumnWeights column{{work.base.data(), s.size()}, {work.scale.data(), s.size()}, false};
    const std::span<const Index> order(work.order.data(), found.size);
    const SearchResult best = search(C, order, {work.totals.data(), s.size()}, column, found.size,
                                     found.guess, found.floor, empty, work.search);
    if (best.size > 0) choose(work.search, best.size, names, chosen);
    return objective.nonempty ? best.value / present : best.value;
}

// Mark the F-optimal set of a row among the feasible ones; arguments as above.
template <class T>
double decide_cardinality_row(Matrix<const T> C, std::span<const double> s, double d_0,
                              double present, bool trusted, double slack,
                              const Objective& objective, const Constraints* constraints,
                              std::span<const Index> names, std::span<std::int8_t> chosen,
                              CardinalitiesWorkspace& work) {
    const double value = decide_free_cardinality_row(C, s, d_0, present, trusted, slack, objective,
                                                     names, chosen, work);
    if (value < 0.0) return value;
    const double mass =
        std::accumulate(work.totals.begin(), work.totals.begin() + s.size(), 0.0);
    if (mass < TINY_ROW && mass > 0.0 && present < TINY_ROW &&
        (objective.nonempty || !constraints || !constraints->has_costs())) {
        std::vector<double> scaled(C.data, C.data + C.rows * C.cols);
        for (double& x : scaled) x *= UPSCALE;
        std::fill(chosen.begin(), chosen.end(), std::int8_t{0});
        return objective.downscaled(decide_cardinality_row(
            Matrix<const double>{scaled.data(), C.rows, C.cols}, s, d_0, present * UPSCALE, true,
            slack, objective.upscaled(), constraints, names, chosen, work));
    }
    if (!constraints) return value;
    if (is_final(chosen, names, names, value, *constraints, work.constrained)) return value;
    const double empty = objective.nonempty ? -1.0 : objective.zero_division * d_0;
    const Index guess = std::count(chosen.begin(), chosen.end(), 1);
    const ColumnWeights column{{work.base.data(), s.size()}, {work.scale.data(), s.size()}, false};
    return constrain_row(C, names, names, {work.totals.data(), s.size()}, column, empty, present,
                         guess, value, *constraints, chosen, work.constrained);
}

// Decide every row of a block of P, (n, m, S).
//
// mass[0] and mass[1] are the probabilities of the empty set and of the others, or NaN. Row i of P
// belongs to label names[i].
template <class T>
Status decide_cardinality_rows(const T* P, Index n, Index m, Index S, Matrix<const double> mass,
                               std::span<const Index> names, double slack,
                               const Objective& objective, Matrix<std::int8_t> labels,
                               double* expected, const Constraints* constraints) {
    CardinalitiesWorkspace work(m, S);
    std::vector<double> s(S);
    for (Index q = 0; q < S; ++q) s[q] = q + 1.0;
    for (Index row = 0; row < n; ++row) {
        const Matrix<const T> C{P + row * m * S, m, S};
        expected[row] = decide_cardinality_row(C, std::span<const double>(s), mass[0][row],
                                               mass[1][row], false, slack, objective,
                                               constraints, names, labels.row(row), work);
        if (expected[row] < 0.0) return {row, expected[row], 0};
    }
    return {};
}

// Return the number of labels of a draw of 0 and 1.
inline Index size_of_draw(const std::uint8_t* draw, Index m) {
    Index size = 0;
    for (Index i = 0; i < m; ++i) size += draw[i];
    return size;
}

// Return the largest number of labels in a block of draws, and at least 1.
inline Index largest_draw(const std::uint8_t* draws, Index count, Index m) {
    Index largest = 1;
    for (Index t = 0; t < count; ++t) largest = std::max(largest, size_of_draw(draws + t * m, m));
    return largest;
}

// Fill P, (n, m, S), which is 0, with the frequencies of draws, (n, T, m), of at most S labels.
inline void count_draws(const std::uint8_t* draws, Index n, Index T, Index m, Index S,
                        double* P) {
    for (Index row = 0; row < n; ++row, P += m * S) {
        for (Index t = 0; t < T; ++t, draws += m) {
            const Index size = size_of_draw(draws, m);
            require(size <= S, "draws must have at most S labels");
            if (size == 0) continue;
            double* column = P + size - 1;
            for (Index i = 0; i < m; ++i) column[i * S] += draws[i];
        }
        for (Index j = 0; j < m * S; ++j) P[j] /= static_cast<double>(T);
    }
}

}  // namespace fgfm
