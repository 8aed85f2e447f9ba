// The best set size and its labels, from the labels that can be in an optimal set, and a dozen columns
// of Delta.
//
// Delta_ik, the value of label i in a set of size k, is a weighted sum of row i of a matrix C, with
// weights that depend on k: C is P itself (GFM), or generating functions at the nodes of a
// quadrature rule (F-GFM). V_k is the sum of the k largest Delta_ik.
//
// Columns are skipped exactly. For any set h, f(k) = sum_{i in h} Delta_ik = E[c / (beta^2 s + k)]
// is a mixture of reciprocals, so 1 / f is concave in k (Cauchy-Schwarz). Hence for k1 < k < k2 and
// k = l k1 + (1 - l) k2,
//
//     V_k <= 1 / (l / Q_1(k) + (1 - l) / Q_2(k)),
//
// where Q_1(k) and Q_2(k) are the sums of the k largest Delta at k1 and at k2. This harmonic mean
// is never above the geometric mean that log-convexity (Hoelder) gives, and exact when s is
// certain.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "ordering.hpp"
#include "constants.hpp"

namespace fgfm {

struct Candidates {
    Index size;    // number of labels that can be in an optimal set
    Index guess;   // a likely size of an optimal set
    double floor;  // the best lower bound on the optimum
};

// Arrays that `rank_candidates` sorts in.
struct RankWorkspace {
    Scratch<double> value, spare;
    Scratch<Index> spare_place, count;

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

constexpr Index MAX_DEPTH = 40;  // cutting a third off an interval so often leaves nothing

// The weights of the columns of C in Delta_ik: scale exp(k base) by quadrature, else
// scale / (base + k).
struct ColumnWeights {
    std::span<const double> base, scale;
    bool quadrature;

    void fill(Index k, double* weights) const {
        for (Index r = 0; r < length(base); ++r) {
            weights[r] = quadrature ? scale[r] * std::exp(k * base[r]) : scale[r] / (base[r] + k);
        }
    }
};

struct SearchResult {
    Index size;  // 0: the empty set; -1: no set has a value
    double value;
};

// Everything that a search needs beyond C, allocated once for a block of rows.
struct SearchWorkspace {
    Scratch<double> weights, delta, spare, prefix;
    Scratch<Index> place, spare_place;
    Scratch<Index> best_order;   // the candidates, sorted by their value in the best size
    Scratch<double> best_delta;  // these values

    void resize(Index size, Index columns) {
        weights.resize(3 * columns);
        delta.resize(3 * size);
        place.resize(3 * size);
        spare.resize(size);
        spare_place.resize(size);
        best_order.resize(size);
        best_delta.resize(size);
    }
};

// Return T(k) = sum_i Delta_ik, which no set of size k exceeds.
inline double bound_all(std::span<const double> totals, Index k, const ColumnWeights& column,
                        double* weights) {
    column.fill(k, weights);
    return dot(totals.data(), weights, length(totals));
}

// Return a size up to `limit` beyond which T(k) < floor; 0 if that is so from the start.
//
// 1 / T is concave as well, so that its chord crosses 1 / floor beyond the point where T does: two
// steps come near enough from above.
inline Index last_size(std::span<const double> totals, const ColumnWeights& column,
                       double* weights, double floor, Index limit) {
    Index low = 1, high = limit;
    double at_low = bound_all(totals, low, column, weights);
    if (at_low < floor) return 0;
    double at_high = bound_all(totals, high, column, weights);
    if (at_high >= floor) return high;
    for (int step = 0; step < 2; ++step) {
        const double share = (1.0 / floor - 1.0 / at_low) / (1.0 / at_high - 1.0 / at_low);
        const Index k = std::min(low + static_cast<Index>(share * (high - low)) + 1, high - 1);
        if (k <= low) break;
        const double value = bound_all(totals, k, column, weights);
        if (value < floor) {
            high = k;
            at_high = value;
        } else {
            low = k;
            at_low = value;
        }
    }
    return high - 1;
}

// Return the highest bound on V_k for k1 < k < k2, and its k, from prefix sums at k1 and k2.
inline std::pair<double, Index> bound_between(const double* left, const double* right, Index k1,
                                              Index k2) {
    double best = 0.0;
    Index at = k1 + 1;
    for (Index k = k1 + 1; k < k2; ++k) {
        const double share = static_cast<double>(k2 - k) / static_cast<double>(k2 - k1);
        // Written so that nothing underflows; right[k] is 0 only where it is below any use.
        double bound = left[k];
        if (right[k] > 0.0) bound /= share + (1.0 - share) * (left[k] / right[k]);
        if (bound > best) {
            best = bound;
            at = k;
        }
    }
    return {best, at};
}

// Split intervals of set sizes, from [guess, most] and [least, guess] on, as long as they may hold a
// better size.
//
// sums(row)[k] bounds sets of k labels at the size of a row: `least` has the row 1, `guess` 0 and
// `most` 2; an interval at depth d is split at a size that gets the row d + 3. `bound` returns the
// highest bound between two sizes and its size, is_hopeless(k1, bound) whether nothing above k1 with
// this bound is wanted, and evaluate(k, row, last) fills a row up to the size `last`.
template <class Sums, class Bound, class Hopeless, class Evaluate>
void split_intervals(Index least, Index guess, Index most, Sums sums, Bound bound,
                     Hopeless is_hopeless, Evaluate evaluate) {
    struct Interval {
        Index k1, row1, k2, row2, depth;
    };
    Interval stack[2 * MAX_DEPTH];
    Index waiting = 0;
    stack[waiting++] = {guess, 0, most, 2, 0};
    stack[waiting++] = {least, 1, guess, 0, 0};
    while (waiting) {
        const auto [k1, row1, k2, row2, depth] = stack[--waiting];
        if (k2 - k1 < 2) continue;
        auto [highest, k] = bound(sums(row1), sums(row2), k1, k2);
        if (is_hopeless(k1, highest)) continue;
        // At the highest bound, but not so near an end that the depth could grow.
        const Index third = (k2 - k1 + 2) / 3;
        k = std::min(std::max(k, k1 + third), k2 - third);
        const Index row = depth + 3;
        evaluate(k, row, k2);
        const Interval left{k1, row1, k, row, depth + 1}, right{k, row, k2, row2, depth + 1};
        const bool left_first = sums(row1)[k1] > sums(row2)[k2];  // the better side on top
        stack[waiting++] = left_first ? right : left;
        stack[waiting++] = left_first ? left : right;
    }
}

// Find the best set size, and the candidates ordered by their value in sets of that size.
//
// `order` lists the rows of C that are candidates, best first as far as known. `totals` bounds the
// column sums of C over them, `limit` the size, `guess` is a likely size, `floor` a lower bound on
// the optimum, and `empty` the value of the empty set (less than 0 if it is not allowed). Fills in
// `work.best_order` and `work.best_delta`.
template <class T>
SearchResult search(Matrix<const T> C, std::span<const Index> order,
                    std::span<const double> totals, const ColumnWeights& column, Index limit,
                    Index guess, double floor, double empty, SearchWorkspace& work) {
    const Index size = length(order), columns = length(totals);
    work.resize(size, columns);
    double* weights[3] = {work.weights.data(), work.weights.data() + columns,
                          work.weights.data() + 2 * columns};
    double* delta[3] = {work.delta.data(), work.delta.data() + size,
                        work.delta.data() + 2 * size};
    Index* place[3] = {work.place.data(), work.place.data() + size, work.place.data() + 2 * size};
    double peak = std::max(empty, 0.0);
    Index best = empty >= 0.0 ? 0 : -1;
    Index most = last_size(totals, column, weights[0], floor * (1.0 - TIE), limit);
    if (most == 0) {
        if (best == 0) return {best, peak};
        most = 1;
    }
    guess = std::min(guess, most);

    const Index stride = most + 1;
    work.prefix.resize((MAX_DEPTH + 3) * stride);  // sums of the largest Delta, one row per size
    const auto prefix = [&](Index row) { return work.prefix.data() + row * stride; };
    // Sort a column, fill in its prefix sums up to size `last`, and keep it if it is the best.
    const auto consider = [&](int slot, Index k, Index row, Index last) {
        const std::span<double> values(delta[slot], size);
        repair_order(values, {place[slot], values.size()}, work.spare.data(),
                     work.spare_place.data());
        double* sums = prefix(row);
        sums[0] = 0.0;
        for (Index i = 0; i < last; ++i) sums[i + 1] = sums[i] + values[i];
        const double value = sums[k];
        // The smaller size wins where values are equal.
        if (value > peak * (1.0 + TIE) || best < 0 || (k < best && value >= peak * (1.0 - TIE))) {
            best = k;
            std::copy(place[slot], place[slot] + size, work.best_order.begin());
            std::copy(delta[slot], delta[slot] + size, work.best_delta.begin());
        }
        peak = std::max(value, peak);
    };

    // Three columns to begin with, in one pass over C: the guess, 1, and the last size that T(k)
    // admits.
    const Index sizes[3] = {guess, 1, most};
    for (int slot = 0; slot < 3; ++slot) {
        column.fill(sizes[slot], weights[slot]);
        std::copy(order.begin(), order.end(), place[slot]);
    }
    for (Index j = 0; j < size; ++j) {
        const T* row = C[order[j]];
        Lanes value[3] = {};
        double tail[3] = {};
        Index r = 0;
        for (; r + LANES <= columns; r += LANES) {
            const Lanes x = load(row + r);
            for (int slot = 0; slot < 3; ++slot) value[slot] += x * load(weights[slot] + r);
        }
        for (; r < columns; ++r) {
            for (int slot = 0; slot < 3; ++slot) tail[slot] += row[r] * weights[slot][r];
        }
        for (int slot = 0; slot < 3; ++slot) delta[slot][j] = add_lanes(value[slot]) + tail[slot];
    }
    for (int slot = 0; slot < 3; ++slot) {
        if (slot == 0 || sizes[slot] != guess) consider(slot, sizes[slot], slot, most);
    }

    split_intervals(
        1, guess, most, prefix, bound_between,
        [&](Index k1, double bound) {
            return bound < peak * (1.0 - TIE) || (k1 >= best && bound <= peak * (1.0 + TIE));
        },
        [&](Index k, Index row, Index last) {
            column.fill(k, weights[0]);
            for (Index j = 0; j < size; ++j) delta[0][j] = dot(C[place[0][j]], weights[0], columns);
            consider(0, k, row, last);
        });
    return {best, peak};
}

// Mark the k labels with the largest Delta_ik; among equal ones those of lowest index.
//
// `order` and `delta` are sorted; row i of C belongs to label labels[i].
inline void choose(const SearchWorkspace& work, Index k, std::span<const Index> labels,
                   std::span<std::int8_t> chosen) {
    const Scratch<Index>& order = work.best_order;
    const Scratch<double>& delta = work.best_delta;
    const double least = delta[k - 1];
    Index first = k - 1;
    while (first > 0 && delta[first - 1] <= least * (1.0 + TIE)) --first;
    Index last = k;
    while (last < order.size() && delta[last] >= least * (1.0 - TIE)) ++last;
    for (Index j = 0; j < k; ++j) chosen[labels[order[j]]] = 1;
    if (last > k) {
        for (Index j = first; j < last; ++j) chosen[labels[order[j]]] = 2;
        Index left = k - first;
        for (std::int8_t& mark : chosen) {
            if (mark == 2) mark = left-- > 0;
        }
    }
}

}  // namespace fgfm
