// Values and bounds of the columns of a macro decision with limits on rows.
//
// For any multipliers mu_i of the rows, by weak duality, no feasible decision exceeds
//
//     sum_i max(most mu_i, least mu_i) + sum_c max_k f_c(k),
//     f_c(k) = max_{|h| = k} sum_{i in h} (Delta_ik - mu_i).
//
// Delta_ik = p phi_k(p) with phi increasing and convex in p: at most p (a_k + p b_k), the chord of phi.
// For a set of k rows and any t, f(k) <= k t + sum_i max(p (a_k + p b_k) - mu_i - t, 0). Delta of a
// given row is an expectation of 1 / (s + k), which is convex in y = 1 / (k + reach) for all s up to
// `reach`: between two sizes the line in y between their bounds holds, and a few sizes bound all.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "budgets.hpp"
#include "power_sums.hpp"
#include "transpose.hpp"

namespace fgfm {

constexpr Index BOUND_POINTS = 24;        // sizes of a column, at most
constexpr Index MOST_THRESHOLDS = 40;     // tried for a size, at most
constexpr Index STRIP = 4;                // dense columns that are copied at once
constexpr double BOUND_TOLERANCE = 2e-4;  // of a column, relative to its weight

// A size k with the coefficients of Delta, a threshold t and the sum of what exceeds it.
struct BoundPoint {
    double k, a, b;
    double t = 0.0, excess = 0.0;

    double at(double size) const { return size * t + excess; }
};

struct ColumnWork {
    Nodes nodes;
    Scratch<double> product, total, factor;
    std::vector<double> chosen, mu;
    std::vector<BoundPoint> points;

    explicit ColumnWork(const Rules& rules)
        : nodes(rules), product(padded(rules.longest)), total(product.size()),
          factor(product.size()) {}
};

// The bound of one column, whose nodes and factors are those of `work`.
template <class T>
class ColumnBound {
public:
    // Thresholds are at least `floor`, the gain of entries that are not stored.
    ColumnBound(std::span<const T> p, const double* mu, double floor, double beta2,
                const BudgetColumn& column, ColumnWork& work)
        : p_(p), mu_(mu), floor_(floor), n_(static_cast<double>(p.size())),
          top_(std::max(largest(p), std::numeric_limits<double>::min())),
          shift_(beta2 * (1.0 + column.mean)),
          reach_(beta2 * (2.0 + std::min(n_, 1.0 + largest_cardinality(column.mean)))),
          tolerance_((n_ > 256.0 ? 1.0 : 0.05) * BOUND_TOLERANCE * column.weight * column.present),
          work_(work) {}

    // Return a bound of the largest f(k), which is at least `known`, that of the decision, of size
    // `count`. `t` is its threshold, as far as known.
    double largest_value(double known, double count, double t) {
        if (n_ == 0.0) return known;
        std::vector<BoundPoint>& points = work_.points;
        const double size = std::clamp(count, 1.0, n_);
        points = {point(size, t, known)};
        if (size > 1.0) points.insert(points.begin(), point(1.0, follow(points.front(), 1.0), known));
        if (size < n_) points.push_back(point(n_, 0.0, known));
        while (true) {
            double bound = known, highest = 0.0;
            for (const BoundPoint& point : points) bound = std::max(bound, point.at(point.k));
            std::size_t best = 0;
            for (std::size_t j = 0; j + 1 < points.size(); ++j) {
                if (const double x = between(points[j], points[j + 1]).first; x > highest) {
                    highest = x;
                    best = j;
                }
            }
            if (highest <= bound + tolerance_ || points.size() >= BOUND_POINTS) {
                return std::max(bound, highest);
            }
            const BoundPoint first = points[best], last = points[best + 1];
            const double low = std::log(shift_ + first.k), high = std::log(shift_ + last.k);
            const double place = std::clamp(std::log(shift_ + between(first, last).second),
                                            0.75 * low + 0.25 * high, 0.25 * low + 0.75 * high);
            const double k = std::clamp(std::round(std::exp(place) - shift_), first.k + 1.0,
                                        last.k - 1.0);
            const double share = (k - first.k) / (last.k - first.k);
            points.insert(points.begin() + best + 1,
                          point(k, (1.0 - share) * follow(first, k) + share * follow(last, k), bound));
        }
    }

private:
    std::span<const T> p_;
    const double* mu_;
    double floor_, n_, top_, shift_, reach_, tolerance_;
    ColumnWork& work_;

    // The threshold of another size, if Delta and t change alike.
    double follow(const BoundPoint& point, double k) const {
        return point.t * (shift_ + point.k) / (shift_ + k);
    }

    // A size with a threshold close to the best one, tried from `t` on.
    //
    // k t + excess is convex in t, and its slope k minus the number N of entries above t: the tangents
    // on both sides of the minimum give the next t, and a bound of the minimum. As long as one side
    // is missing, N is taken to fall like 1 / t.
    BoundPoint point(double k, double t, double known) const {
        struct Tangent {
            double t, value, slope;
        } low{-INFINITE, 0.0, 0.0}, high{INFINITE, 0.0, 0.0};
        BoundPoint result = coefficients(k);
        double best = INFINITE, width = 0.1 * std::abs(t) + 1e-3 * std::abs(known) / n_;
        for (Index trial = 0; trial < MOST_THRESHOLDS; ++trial) {
            t = std::max(t, floor_);
            const auto [excess, number] = over(result, t);
            const double value = k * t + excess, slope = k - number;
            if (value < best) {
                best = value;
                result.t = t;
                result.excess = excess;
            }
            (slope < 0.0 ? low : high) = {t, value, slope};
            if (best <= 0.9 * known || slope == 0.0 || (slope > 0.0 && t == floor_)) break;
            if (low.t != -INFINITE && high.t != INFINITE) {
                t = (high.value - low.value + low.slope * low.t - high.slope * high.t) /
                    (low.slope - high.slope);
                const double least = low.value + low.slope * (t - low.t);
                if (best - least <= 0.3 * tolerance_ || !(low.t < t && t < high.t)) break;
            } else if (t > 0.0 && number > 0.0) {
                if (slope * slope * t <= 0.6 * tolerance_ * number) break;
                t *= std::clamp(1.0 - slope / number, 0.5, 2.0);
            } else {
                t += slope < 0.0 ? width : -width;
                width *= 4.0;
            }
        }
        return result;
    }

    BoundPoint coefficients(double k) const {
        double a = 0.0, end = 0.0;
        for (Index r = 0; r < work_.nodes.count; ++r) {
            const double c = work_.factor[r] * std::exp(k * work_.nodes.log_z[r]);
            a += c;
            end += c / (1.0 - top_ * work_.nodes.u[r]);
        }
        return {k, a, (end - a) / top_};
    }

    // The sum of what exceeds a threshold, and the number of entries that do.
    std::pair<double, double> over(const BoundPoint& point, double t) const {
        const Lanes none = {}, one = none + 1.0;
        const Lanes a = none + point.a, b = none + point.b, least = none + t;
        Lanes excess = none, number = none;
        const auto add = [&](Lanes x, Lanes y) {
            const Lanes value = x * (a + x * b) - (y + least);
            excess += value > none ? value : none;
            number += value > none ? one : none;
        };
        const Index n = length(p_);
        Index i = 0;
        for (; i + LANES <= n; i += LANES) add(load(p_.data() + i), load(mu_ + i));
        if (i < n) add(load_some(p_.data() + i, n - i, 0.0), load_some(mu_ + i, n - i, INFINITE));
        return {add_lanes(excess), add_lanes(number)};
    }

    // The largest bound between two sizes, and the size: the line between k t_1 + e_1 and
    // k t_2 + e_2, in y; or, since Delta falls with k, the first of them alone.
    std::pair<double, double> between(const BoundPoint& first, const BoundPoint& last) const {
        const double start = 1.0 / (reach_ + first.k), end = 1.0 / (reach_ + last.k);
        const double alone = std::max(first.at(first.k), first.at(last.k));
        double result = std::max(first.at(first.k), last.at(last.k)), place = 0.5 * (first.k + last.k);
        if (last.k - first.k < 2.0) return {std::min(alone, result), place};
        // t = A + B y and e = C + D y: the bound is (1 / y - reach) t + e, with derivative
        // D - reach B - A / y^2.
        const double width = start - end, B = (first.t - last.t) / width, A = last.t - B * end;
        const double rest = (first.excess - last.excess) / width - reach_ * B;
        const double y = std::sqrt(A / rest);
        if (A < 0.0 && rest < 0.0 && y > end && y < start) {
            const double share = (y - end) / width;
            place = 1.0 / y - reach_;
            result = std::max(result, share * first.at(place) + (1.0 - share) * last.at(place));
        }
        return {std::min(alone, result), place};
    }
};

// Evaluate a column: return its expected F, and a bound of the weighted value less multipliers of any
// choice.
//
// `p` and `mu` are its entries, `marks` those that are chosen, and `column.count` is
// the number of these entries and of chosen ones of probability 0.
template <class T>
std::pair<double, double> evaluate_column(std::span<const T> p, const double* mu, double floor,
                                          const std::int8_t* marks, const BudgetColumn& column,
                                          const Objective& objective, const Rules& rules,
                                          ColumnWork& work) {
    const double beta2 = objective.beta2, n = static_cast<double>(p.size());
    const double s_max = std::min(n, 1.0 + largest_cardinality(column.mean));
    const double s_min = std::max(1.0, column.mean - std::sqrt(2.0 * TAIL * column.mean));
    Nodes& nodes = work.nodes;
    nodes.load(rules, beta2, beta2 * s_min + 1.0,
               beta2 * std::max(1.0, s_max) + std::max(n, column.count) + 1.0);
    work.chosen.clear();
    double cost = 0.0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        if (!marks[i]) continue;
        work.chosen.push_back(p[i]);
        cost += mu[i];
    }
    PowerSums sums{};
    fill_products(work.product.data(), nodes, sums, p, 0.0);
    fill_fractions(work.total.data(), nodes, std::span<const double>(work.chosen), -1.0);
    double value = 0.0;
    for (Index r = 0; r < nodes.count; ++r) {
        work.factor[r] = column.weight * (1.0 + beta2) * nodes.weight[r] * nodes.zeta[r] *
                         work.product[r];
        value += work.factor[r] * std::exp(column.count * nodes.log_z[r]) * work.total[r];
    }
    double expected = objective.zero_division * column.none;
    if (objective.nonempty) {
        expected = column.present > 0.0 ? 0.0 : std::numeric_limits<double>::quiet_NaN();
    }
    if (column.count == 0.0) {
        value = column.empty;
    } else if (column.weight > 0.0) {
        expected = value / column.weight / column.present;
    } else if (!objective.nonempty) {
        expected = 0.0;  // no weight: no row can have the label
    }
    return {expected, ColumnBound<T>(p, mu, floor, beta2, column, work)
                          .largest_value(std::max(column.empty, value - cost), column.count,
                                         approximate_gains(beta2, column).first.loss)};
}

// Evaluate the columns of a dense matrix from `first` on, and of CSC, whose entries are in the rows
// `places`; the arrays of results have a number for each column.
template <class T>
void evaluate_dense(Matrix<const T> p, const std::int8_t* chosen, const double* mu, Index first,
                    const Columns& columns, const Objective& objective, const Rules& rules,
                    std::span<double> expected, double* bound) {
    ColumnWork work(rules);
    Scratch<T> strip(STRIP * p.rows);
    Scratch<std::int8_t> marks(STRIP * p.rows);
    for (Index c = 0; c < length(expected); ++c) {
        if (c % STRIP == 0) {
            const Index count = std::min(STRIP, length(expected) - c), step = p.rows;
            transpose(Strided<const T>{p.data + first + c, p.rows, count, p.cols, 1},
                      Strided<T>{strip.data(), count, p.rows, step, 1});
            transpose(Strided<const std::int8_t>{chosen + first + c, p.rows, count, p.cols, 1},
                      Strided<std::int8_t>{marks.data(), count, p.rows, step, 1});
        }
        const Index at = c % STRIP * p.rows;
        std::tie(expected[c], bound[c]) = evaluate_column(
            std::span<const T>(strip.data() + at, static_cast<std::size_t>(p.rows)), mu, -INFINITE,
            marks.data() + at, columns[first + c], objective, rules, work);
    }
}

template <class T>
void evaluate_csc(const T* p, const std::int32_t* places, std::span<const Index> indptr,
                  const std::int8_t* chosen, std::span<const double> mu, Index first,
                  const Columns& columns, const Objective& objective, const Rules& rules,
                  std::span<double> expected, double* bound) {
    ColumnWork work(rules);
    double floor = 0.0;
    for (const double x : mu) floor = std::max(floor, -x);
    for (Index c = 0; c < length(expected); ++c) {
        const Index start = indptr[c], size = indptr[c + 1] - start;
        work.mu.resize(size);
        for (Index j = 0; j < size; ++j) work.mu[j] = mu[places[start + j]];
        std::tie(expected[c], bound[c]) = evaluate_column(
            std::span<const T>(p + start, static_cast<std::size_t>(size)), work.mu.data(), floor,
            chosen + start, columns[first + c], objective, rules, work);
    }
}

}  // namespace fgfm
