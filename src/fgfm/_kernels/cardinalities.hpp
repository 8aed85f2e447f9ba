// GFM: decisions from p(y_i = 1, |y| = s), from samples and from a joint distribution.
//
// A row is a matrix C with one row per label and one column per cardinality that can occur: P
// itself, or what samples or a joint distribution give.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "ordering.hpp"
#include "rule.hpp"
#include "search.hpp"

namespace fgfm {

struct Candidates {
    Index size;    // number of labels that can be in an optimal set
    Index guess;   // a likely size of an optimal set
    double floor;  // the best lower bound on the optimum
};

// Arrays that `rank_candidates` sorts in.
struct RankWorkspace {
    std::vector<double> value, spare;
    std::vector<Index> spare_place, count;

    void resize(Index m) {
        value.resize(m + 1);
        spare.resize(m + 1);
        spare_place.resize(m + 1);
        count.resize(m + 2);
    }
};

// Order the labels that can be in an optimal set by marginal, and guess its size.
//
// A set h of size k has the value (1 + beta^2) M / (beta^2 W / M + k) at least, with M and W the
// sums of p_i and of E[y_i s] over it (Jensen). The guess is the size where this is highest for the
// labels in order. Conversely, leaving label i out of an optimal set gains
// Delta_jk / (beta^2 s_max + k - 1) or more for each other label j, so that no label with
// p_i (beta^2 s_max + 1) < V is in it. `order` has room for m + 1 labels.
inline Candidates rank_candidates(std::span<const double> p, std::span<const double> weighted,
                                  double s_max, double beta2, double floor, Index* order,
                                  RankWorkspace& work) {
    const Index m = length(p);
    const Index top = std::max_element(p.begin(), p.end()) - p.begin();
    if (p[top] == 0.0) return {0, 0, floor};
    floor = std::max(floor, (1.0 + beta2) * p[top] / (beta2 * weighted[top] / p[top] + 1.0));
    double least = floor / (beta2 * s_max + 1.0) * (1.0 - 1e-9);
    work.resize(m);
    double* value = work.value.data();
    Index size = 0;
    for (Index i = 0; i < m; ++i) {
        value[size] = p[i];
        order[size] = i;
        size += p[i] >= least;
    }
    const std::span<double> sorted(value, size);
    sort_descending(sorted, {order, sorted.size()}, work.spare.data(), work.spare_place.data(),
                    work.count.data());
    double mass = 0.0, load = 0.0, highest = 0.0;
    Index guess = 1;
    for (Index j = 0; j < size; ++j) {
        mass += value[j];
        load += weighted[order[j]];
        const double bound = (1.0 + beta2) * mass * (mass / (beta2 * load + (j + 1) * mass));
        if (bound > highest) {
            highest = bound;
            guess = j + 1;
        }
    }
    floor = std::max(floor, highest);
    least = floor / (beta2 * s_max + 1.0) * (1.0 - 1e-9);
    while (size > guess && value[size - 1] < least) --size;
    return {size, guess, floor};
}

// Arrays for one row of m labels and up to S cardinalities.
struct CardinalitiesWorkspace {
    std::vector<double> p, weighted, totals, base, scale;
    std::vector<Index> order;
    RankWorkspace rank;
    SearchWorkspace search;

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

// Mark the F-optimal set of a row; return its expected F, or a code.
//
// `d_0` is the probability of the empty set and `present` that of all others; both are NaN where
// they follow from C, up to `slack`. A `trusted` C was computed here and is not refused. Returns
// NaN if the row leaves no mass for the non-empty sets that the objective is conditioned on.
template <class T>
double decide_cardinality_row(Matrix<const T> C, std::span<const double> s, double d_0,
                              double present, bool trusted, double slack,
                              const Objective& objective, std::span<const Index> names,
                              std::span<std::int8_t> chosen, CardinalitiesWorkspace& work) {
    const double beta2 = objective.beta2;
    const Index S = length(s);
    const double nan = std::numeric_limits<double>::quiet_NaN();
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
    const Candidates found = rank_candidates(p, weighted, s[S - 1], beta2, empty,
                                             work.order.data(), work.rank);
    if (found.size == 0) return objective.nonempty ? nan : empty;
    for (Index q = 0; q < S; ++q) {
        work.base[q] = beta2 * s[q];
        work.scale[q] = 1.0 + beta2;
    }
    const ColumnWeights column{{work.base.data(), s.size()}, {work.scale.data(), s.size()}, false};
    const std::span<const Index> order(work.order.data(), found.size);
    const SearchResult best = search(C, order, {work.totals.data(), s.size()}, column, found.size,
                                     found.guess, found.floor, empty, work.search);
    if (best.size > 0) choose(work.search, best.size, names, chosen);
    return objective.nonempty ? best.value / present : best.value;
}

// Decide every row of a block of P, (n, m, S).
//
// mass[0] and mass[1] are the probabilities of the empty set and of the others, or NaN. Row i of P
// belongs to label names[i].
template <class T>
Status decide_cardinality_rows(const T* P, Index n, Index m, Index S, Matrix<const double> mass,
                               std::span<const Index> names, double slack,
                               const Objective& objective, Matrix<std::int8_t> labels,
                               double* expected) {
    CardinalitiesWorkspace work(m, S);
    std::vector<double> s(S);
    for (Index q = 0; q < S; ++q) s[q] = q + 1.0;
    for (Index row = 0; row < n; ++row) {
        const Matrix<const T> C{P + row * m * S, m, S};
        expected[row] = decide_cardinality_row(C, std::span<const double>(s), mass[0][row],
                                               mass[1][row], false, slack, objective, names,
                                               labels.row(row), work);
        if (expected[row] < 0.0) return {row, expected[row], 0};
    }
    return {};
}

// Decide every row of a block of draws, (n, T, m) of 0 and 1.
inline void decide_sample_rows(const std::uint8_t* samples, Index n, Index T, Index m,
                               std::span<const Index> names, const Objective& objective,
                               Matrix<std::int8_t> labels, double* expected) {
    CardinalitiesWorkspace work(m, m);
    std::vector<Index> cardinality(T), column(m + 1);
    std::vector<double> s(m), C;
    for (Index row = 0; row < n; ++row) {
        std::fill(column.begin(), column.end(), Index{0});
        for (Index t = 0; t < T; ++t) {
            const std::uint8_t* draw = samples + (row * T + t) * m;
            Index count = 0;
            for (Index i = 0; i < m; ++i) count += draw[i];
            cardinality[t] = count;
            ++column[count];
        }
        const double d_0 = static_cast<double>(column[0]) / T;
        const double present = static_cast<double>(T - column[0]) / T;
        // The cardinalities that were drawn, and the column that each has in C.
        Index S = 0;
        for (Index c = 1; c <= m; ++c) {
            if (column[c]) {
                s[S] = static_cast<double>(c);
                column[c] = S++;
            }
        }
        if (S == 0) {
            expected[row] = objective.nonempty ? std::numeric_limits<double>::quiet_NaN()
                                               : objective.zero_division;
            continue;
        }
        C.assign(m * S, 0.0);
        for (Index t = 0; t < T; ++t) {
            if (cardinality[t] == 0) continue;
            const std::uint8_t* draw = samples + (row * T + t) * m;
            const Index q = column[cardinality[t]];
            for (Index i = 0; i < m; ++i) C[i * S + q] += draw[i];
        }
        for (double& x : C) x /= static_cast<double>(T);
        expected[row] = decide_cardinality_row(
            Matrix<const double>{C.data(), m, S}, std::span<const double>(s.data(), S), d_0,
            present, true, 0.0, objective, names, labels.row(row), work);
    }
}

// Decide every row of a block of probabilities over label sets, (n, L).
//
// Set j holds the labels indices[indptr[j]:indptr[j + 1]], and its cardinality is s[column[j]];
// the empty set has column -1.
inline void decide_joint_rows(std::span<const Index> indptr, std::span<const Index> indices,
                              std::span<const Index> column, std::span<const double> s,
                              std::span<const Index> names, Matrix<const double> proba,
                              const Objective& objective, Matrix<std::int8_t> labels,
                              double* expected) {
    const Index m = labels.cols, S = length(s);
    CardinalitiesWorkspace work(m, S);
    std::vector<double> C(m * S);
    for (Index row = 0; row < proba.rows; ++row) {
        std::fill(C.begin(), C.end(), 0.0);
        double d_0 = 0.0, present = 0.0;
        for (Index set = 0; set < length(column); ++set) {
            const double mass = proba[row][set];
            if (column[set] < 0) {
                d_0 += mass;
            } else if (mass != 0.0) {
                present += mass;
                for (Index j = indptr[set]; j < indptr[set + 1]; ++j) {
                    C[indices[j] * S + column[set]] += mass;
                }
            }
        }
        if (S == 0) {  // the empty set is the only one
            expected[row] = objective.nonempty ? std::numeric_limits<double>::quiet_NaN()
                                               : objective.zero_division * d_0;
            continue;
        }
        expected[row] =
            decide_cardinality_row(Matrix<const double>{C.data(), m, S}, s, d_0, present, true,
                                   0.0, objective, names, labels.row(row), work);
    }
}

}  // namespace fgfm
