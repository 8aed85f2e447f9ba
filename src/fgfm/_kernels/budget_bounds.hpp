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

namespace fgfm {

constexpr Index BOUND_POINTS = 24;        // sizes of a column, at most
constexpr Index MOST_THRESHOLDS = 40;     // tried for a size, at most
constexpr double BOUND_TOLERANCE = 3e-4;  // of a column, relative to its weight

// A size k with the coefficients of Delta, a threshold t and the sum of what exceeds it.
struct BoundPoint {
    double k, a, b;
    double t = 0.0, excess = 0.0;

    double at(double size) const { return size * t + excess; }
};

// Evaluates and bounds columns, one after the other.
template <class T>
class ColumnBounds {
public:
    explicit ColumnBounds(const BudgetTask& task)
        : task_(task), nodes_(task.rules), product_(padded(task.rules.longest)),
          total_(product_.size()), factor_(product_.size()) {}

    // Return the expected F of a column times its weight, and a bound of that less multipliers of any
    // choice.
    //
    // `p` and `mu`, whose sum is `price`, are its entries, `marks` those that are chosen. Thresholds
    // are at least `floor`, the gain of entries that are not stored.
    std::pair<double, double> evaluate(std::span<const T> p, const double* mu, double price,
                                       double floor, const std::int8_t* marks,
                                       const BudgetColumn& column) {
        const double beta2 = task_.objective.beta2, n = static_cast<double>(p.size());
        const double s_max = std::min(n, 1.0 + largest_cardinality(column.mean));
        const double s_min = std::max(1.0, column.mean - std::sqrt(2.0 * TAIL * column.mean));
        nodes_.load(task_.rules, beta2, beta2 * s_min + 1.0,
                    beta2 * std::max(1.0, s_max) + n + 1.0);
        chosen_.clear();
        chosen_.reserve(static_cast<std::size_t>(column.count));
        double cost = 0.0;
        for (std::size_t i = 0; i < p.size(); ++i) {
            if (!marks[i]) continue;
            chosen_.push_back(p[i]);
            cost += mu[i];
        }
        PowerSums sums{};
        fill_products(product_.data(), nodes_, sums, p, 0.0);
        fill_fractions(total_.data(), nodes_, std::span<const double>(chosen_), -1.0);
        double value = 0.0;
        for (Index r = 0; r < nodes_.count; ++r) {
            factor_[r] = column.weight * (1.0 + beta2) * nodes_.weight[r] * nodes_.zeta[r] * product_[r];
            value += factor_[r] * std::exp(column.count * nodes_.log_z[r]) * total_[r];
        }
        if (column.count == 0.0) value = column.empty;
        p_ = p;
        mu_ = mu;
        column_ = column;
        price_ = price;
        floor_ = floor;
        n_ = n;
        top_ = std::max(largest(p), std::numeric_limits<double>::min());
        shift_ = beta2 * (1.0 + column.mean);
        reach_ = beta2 * (2.0 + s_max);
        tolerance_ = (n > 256.0 ? 1.0 : 0.05) * BOUND_TOLERANCE * column.weight * column.present;
        // About what a further row costs
        const double loss = value / (1.0 + shift_ + column.count);
        return {value, largest_value(std::max(column.empty, value - cost), loss)};
    }

private:
    const BudgetTask& task_;
    Nodes nodes_;
    Scratch<double> product_, total_, factor_;
    std::vector<double> chosen_;
    std::vector<BoundPoint> points_;
    // of the column
    std::span<const T> p_;
    const double* mu_;
    BudgetColumn column_;
    double price_, floor_, n_, top_, shift_, reach_, tolerance_;

    // Return a bound of the largest f(k), which is at least `known`, that of the decision. `t` is its
    // threshold, as far as known.
    double largest_value(double known, double t) {
        if (n_ == 0.0) return known;
        const double size = std::clamp(column_.count, 1.0, n_);
        points_ = {point(size, t, known)};
        if (size > 1.0) points_.insert(points_.begin(), point(1.0, follow(points_.front(), 1.0), known));
        if (size < n_) points_.push_back(point(n_, 0.0, known));
        while (true) {
            double bound = known, highest = 0.0;
            for (const BoundPoint& point : points_) bound = std::max(bound, point.at(point.k));
            std::size_t best = 0;
            for (std::size_t j = 0; j + 1 < points_.size(); ++j) {
                if (const double x = between(points_[j], points_[j + 1]); x > highest) {
                    highest = x;
                    best = j;
                }
            }
            if (highest <= bound + tolerance_ || points_.size() >= BOUND_POINTS) {
                return std::max(bound, highest);
            }
            const BoundPoint &first = points_[best], &last = points_[best + 1];
            const double middle = std::sqrt((shift_ + first.k) * (shift_ + last.k)) - shift_;
            const double k = std::clamp(std::round(middle), first.k + 1.0, last.k - 1.0);
            const BoundPoint inside = point(k, 0.5 * (follow(first, k) + follow(last, k)), bound);
            points_.insert(points_.begin() + best + 1, inside);
        }
    }

    // The threshold of another size, if Delta and t change alike.
    double follow(const BoundPoint& point, double k) const {
        return point.t * (shift_ + point.k) / (shift_ + k);
    }

    // A size with a threshold close to the best one, tried from `t` on.
    //
    // k t + excess is convex in t, with slope k minus the number N of entries above t. In the first
    // trials N is taken to fall like 1 / t. Then the tangents on both sides of the minimum, at first
    // those of all entries and of none, meet at the next t, and below the minimum.
    BoundPoint point(double k, double t, double known) const {
        BoundPoint result = coefficients(k);
        struct Line {
            double start, slope;  // at t = 0
        } low{result.a * column_.mean + result.b * column_.squares - price_, k - n_}, high{0.0, k};
        double best = INFINITE;
        for (Index trial = 0; trial < MOST_THRESHOLDS; ++trial) {
            t = std::max(t, floor_);
            const auto [excess, number] = over(result, t);
            const double slope = k - number;
            if (k * t + excess < best) {
                best = k * t + excess;
                result.t = t;
                result.excess = excess;
            }
            (slope < 0.0 ? low : high) = {excess + number * t, slope};
            if (best <= 0.9 * known || slope == 0.0 || (slope > 0.0 && t == floor_)) break;
            const double meet = (low.start - high.start) / (high.slope - low.slope);
            if (best - (low.start + low.slope * meet) <= 0.3 * tolerance_) break;
            const bool guess = trial < 3 && t > 0.0 && number > 0.0;
            if (guess && slope * slope * t <= 0.6 * tolerance_ * number) break;
            t = guess ? t * std::clamp(number / k, 0.5, 2.0) : meet;
        }
        return result;
    }

    BoundPoint coefficients(double k) const {
        double a = 0.0, end = 0.0;
        for (Index r = 0; r < nodes_.count; ++r) {
            const double c = factor_[r] * std::exp(k * nodes_.log_z[r]);
            a += c;
            end += c / (1.0 - top_ * nodes_.u[r]);
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

    // The largest bound between two sizes: the line between k t_1 + e_1 and k t_2 + e_2, in y; or,
    // since Delta falls with k, the first of them alone.
    double between(const BoundPoint& first, const BoundPoint& last) const {
        const double start = 1.0 / (reach_ + first.k), end = 1.0 / (reach_ + last.k);
        const double alone = std::max(first.at(first.k), first.at(last.k));
        double result = std::max(first.at(first.k), last.at(last.k));
        if (last.k - first.k < 2.0) return std::min(alone, result);
        // t = A + B y and e = C + D y: the bound is (1 / y - reach) t + e, with derivative
        // D - reach B - A / y^2.
        const double width = start - end, B = (first.t - last.t) / width, A = last.t - B * end;
        const double rest = (first.excess - last.excess) / width - reach_ * B;
        const double y = std::sqrt(A / rest);
        if (A < 0.0 && rest < 0.0 && y > end && y < start) {
            const double share = (y - end) / width, k = 1.0 / y - reach_;
            result = std::max(result, share * first.at(k) + (1.0 - share) * last.at(k));
        }
        return std::min(alone, result);
    }
};

// Evaluate columns, which are the rows of `entries`.
template <class T>
void evaluate_columns(const BudgetRows<T>& entries, const std::int8_t* chosen,
                      std::span<const double> mu, const Columns& columns, const BudgetTask& task,
                      double* value, double* bound) {
    ColumnBounds<T> bounds(task);
    std::vector<double> own;
    Lanes sum = {}, lowest = {};
    for_lanes(mu, 0.0, [&](Lanes x) {
        sum += x;
        lowest = x < lowest ? x : lowest;
    });
    double price = add_lanes(sum), floor = -INFINITE;
    if (entries.label) {
        floor = -std::min(std::min(lowest[0], lowest[1]), std::min(lowest[2], lowest[3]));
    }
    for (Index c = 0; c < entries.n; ++c) {
        const Index start = entries.indptr[c], size = entries.size(c);
        if (entries.label) {
            own.resize(size);
            price = 0.0;
            for (Index j = 0; j < size; ++j) price += own[j] = mu[entries.label[start + j]];
        }
        std::tie(value[c], bound[c]) = bounds.evaluate(
            {entries.data + start, static_cast<std::size_t>(size)},
            entries.label ? own.data() : mu.data(), price, floor, chosen + start, columns[c]);
    }
}

}  // namespace fgfm
