// Decisions from independent labels with floors on expected precision and recall, and with true
// items that no label stands for.
//
// Let N be the number of missed items, independent of the labels, and Q(zeta) = E[zeta^N]. The set
// of the k most probable labels is best for F, precision and recall at once (docs/design.md,
// "Floors"); with the notation of marginals.hpp, and u = 1 - zeta,
//
//     V_k = (1 + beta^2) sum_r w_r z_r^k zeta_r D(zeta_r) Q(zeta_r) A_k(u_r),
//     E[precision] = M_k / k,      E[recall] = sum_r w_r z_r D(z_r) Q(z_r) A_k(1 - z_r).
//
// Precision falls with k, and recall rises: floors leave an interval of sizes.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "marginals.hpp"

namespace fgfm {

constexpr double FLOOR_SLACK = 1e-11;  // relative rounding error of an expectation

// The numbers of missed items: Poisson, plus independent ones with the distributions `rows`, each
// of them `repeat` times.
struct Missed {
    double rate;
    Matrix<const double> rows;
    Index repeat;

    // Return log Q(zeta), with u = 1 - zeta.
    double log_value(double zeta, double u) const {
        double result = -rate * u;
        for (Index i = 0; i < rows.rows; ++i) {
            double value = 0.0;
            for (Index n = rows.cols; n-- > 0;) value = value * zeta + rows[i][n];
            result += repeat * std::log(value);
        }
        return result;
    }
    double mean() const {
        double total = 0.0;
        for (Index i = 0; i < rows.rows; ++i) {
            for (Index n = 1; n < rows.cols; ++n) total += n * rows[i][n];
        }
        return rate + repeat * total;
    }
    // Return a number that is exceeded with a probability of exp(-TAIL) at most.
    double most() const {
        return (rate > 0.0 ? largest_cardinality(rate) : 0.0) +
               static_cast<double>(repeat) * static_cast<double>(rows.rows) *
                   static_cast<double>(std::max<Index>(rows.cols - 1, 0));
    }
};

// Expected precision and recall that a set must have; 0: any.
struct Floors {
    double precision, recall;
};

// The labels of one row that can be chosen, sorted, and what is known of the true set.
struct FloorRow {
    MarginalsWorkspace& work;  // its window has the sorted labels
    const Rules& rules;
    const Missed& missed;
    double beta2;
    Index count = 0;   // labels with p > 0
    double mean = 0.0;
    double s_min = 1.0, s_max = 1.0;  // numbers of true items, but for a probability of exp(-TAIL)

    std::span<const double> labels() const {
        return {work.window.value.data(), static_cast<std::size_t>(count)};
    }

    // Load the rule for b s + k with k in [first, last]; fill in D(zeta) Q(zeta).
    void load_rule(double b, double first, double last) {
        const double a_min = b * s_min + first;
        work.nodes.load_sum(rules, b, a_min, std::min(b * s_max + last, 1e12 * a_min));
        PowerSums sums{};
        fill_products(work.product.data(), work.nodes, sums, labels(), 0.0);
        for (Index r = 0; r < work.nodes.padding; ++r) {
            work.total[r] = work.carry[r] = work.part[r] = work.factor[r] = 0.0;
            if (missed.rate > 0.0 || missed.rows.rows) {
                work.product[r] *= std::exp(missed.log_value(work.nodes.zeta[r], work.nodes.u[r]));
            }
        }
    }

    // Return the first size whose E[TP / s] is `least` or more, and that value; count + 1, and the
    // largest value, if there is none.
    std::pair<Index, double> first_size(double least) {
        load_rule(1.0, 0.0, 0.0);
        const Nodes& nodes = work.nodes;
        for (Index r = 0; r < nodes.count; ++r) {
            work.factor[r] = nodes.weight[r] * nodes.zeta[r] * work.product[r];
        }
        double value = 0.0;
        for (Index k = 1; k <= count; ++k) {
            const double x = work.window.value[k - 1];
            Lanes result = {};
            for (Index r = 0; r < nodes.padding; r += LANES) {
                const Lanes y = load(&work.part[r]) + x / (1.0 - x * load(&nodes.u[r]));
                store(&work.part[r], y);
                result += load(&work.factor[r]) * y;
            }
            value = add_lanes(result);
            if (value >= least) return {k, value};
        }
        return {count + 1, value};
    }

    // Return the best size from first to last, and its value; {0, 0} if there is none.
    std::pair<Index, double> best_size(Index first, Index last) {
        double mass = 0.0, floor = 0.0;
        const double base = beta2 * (1.0 + mean + missed.mean());
        for (Index k = 1; k <= last; ++k) {
            mass += work.window.value[k - 1];
            if (k >= first) floor = std::max(floor, (1.0 + beta2) * mass / (base + k));
        }
        // V_k <= (1 + beta^2) E / (beta^2 E + k), with or without missed items
        const double most =
            floor > 0.0 ? mean * ((1.0 + beta2) / floor * (1.0 + TIE) - beta2) + 1.0 : 0.0;
        if (most < last) last = std::max(first, static_cast<Index>(most));
        if (first > last) return {0, 0.0};
        load_rule(beta2, first, last);
        work.window.rank = 0;
        work.window.low = first - 1;
        work.window.high = last;
        const double peak = work.evaluate_window({beta2, mean, 0.0});
        Index k = first;
        while (work.set_value[k - 1] < peak * (1.0 - TIE)) ++k;
        return {k, work.set_value[k - 1]};
    }
};

// Mark the F-optimal set of one row that satisfies the floors; return its expected F, or a code.
//
// Where no set but the empty one does, and that one violates them or is not optimal without them,
// possible[0] is the largest expected precision of the sets that have the recall, or possible[1]
// the largest expected recall.
inline double decide_floor_row(std::span<const double> p, std::int8_t* chosen,
                               const Objective& objective, const Rules& rules,
                               const Floors& floors, const Missed& missed, double* possible,
                               MarginalsWorkspace& work) {
    FloorRow row{work, rules, missed, objective.beta2};
    Window& window = work.window;
    double log_empty = missed.log_value(0.0, 1.0);
    for (Index i = 0; i < length(p); ++i) {
        if (!(p[i] >= 0.0 && p[i] <= 1.0)) return NOT_PROBABILITY;
        window.value[row.count] = p[i];
        window.place[row.count] = i;
        row.count += p[i] > 0.0;
        row.mean += p[i];
    }
    const std::size_t size = static_cast<std::size_t>(row.count);
    sort_descending({window.value.data(), size}, {window.place.data(), size}, window.spare.data(),
                    window.spare_place.data(), window.bucket.data());
    if (objective.nonempty && log_empty == 0.0 && row.mean < TINY_ROW) {
        for (Index i = 0; i < row.count; ++i) window.value[i] *= UPSCALE;
        row.mean *= UPSCALE;
    }
    for (const double x : row.labels()) log_empty += std::log1p(-x);
    for (Index i = 0; i < row.count; ++i) {  // 1 - x u must not be 0
        window.value[i] = std::min(window.value[i], 1.0 - 0x1p-53);
    }
    row.s_min = std::max(1.0, row.mean - std::sqrt(2.0 * TAIL * row.mean));
    row.s_max = std::min<double>(row.count, 1.0 + largest_cardinality(row.mean)) + missed.most();
    const double present = objective.nonempty ? -std::expm1(log_empty) : 1.0;
    if (present == 0.0) return std::numeric_limits<double>::quiet_NaN();
    const double empty = objective.nonempty ? 0.0 : objective.zero_division * std::exp(log_empty);

    const double least_precision = floors.precision * (1.0 - FLOOR_SLACK) * present;
    const double least_recall = floors.recall * (1.0 - FLOOR_SLACK) * present - empty;
    const bool admits_empty =
        !objective.nonempty && least_recall <= 0.0 &&
        (floors.precision == 0.0 || objective.zero_division >= least_precision);
    Index first = 1;
    double recall = 0.0;
    if (least_recall > 0.0) std::tie(first, recall) = row.first_size(least_recall);
    Index last = 0;
    double mass = 0.0;
    while (last < row.count) {
        mass += window.value[last];
        if (mass < least_precision * (last + 1)) break;
        ++last;
    }
    const bool none = first > last;
    const auto [best, value] = none ? row.best_size(1, row.count) : row.best_size(first, last);
    const bool empty_wins = admits_empty && value <= empty * (1.0 + TIE);
    if (empty_wins || none) {
        if (empty_wins) return empty;
        const auto sorted = row.labels();
        if (least_recall > 0.0 && first > row.count) {
            possible[1] = (recall + empty) / present;
        } else {
            const Index k = std::min(first, row.count);
            possible[0] = std::accumulate(sorted.begin(), sorted.begin() + k, 0.0) /
                          (first * present);
        }
        return empty;
    }
    for (Index i = 0; i < best; ++i) chosen[window.place[i]] = 1;
    return value / present;
}

// Decide rows stored as in CSR: `chosen` marks stored elements. The missed items of a row are those
// of its row of `missed.rows`, or of all of them if their number is another one.
inline Status decide_floor_rows(const double* data, std::span<const Index> indptr,
                                const Objective& objective, const Rules& rules,
                                const Floors& floors, const Missed& missed, std::int8_t* chosen,
                                double* expected, Matrix<double> possible) {
    const Index n = length(indptr) - 1;
    Index most = 0;
    for (Index row = 0; row < n; ++row) most = std::max(most, indptr[row + 1] - indptr[row]);
    MarginalsWorkspace work(most, rules);
    for (Index row = 0; row < n; ++row) {
        const Index start = indptr[row], size = indptr[row + 1] - start;
        Missed own = missed;
        if (missed.rows.rows == n && n > 0) own.rows = {missed.rows[row], 1, missed.rows.cols};
        expected[row] = decide_floor_row({data + start, static_cast<std::size_t>(size)},
                                         chosen + start, objective, rules, floors, own,
                                         possible[row], work);
        if (expected[row] < 0.0) return {row, expected[row], 0};
    }
    return {};
}

}  // namespace fgfm
