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
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <tuple>
#include <vector>

#include "budgets.hpp"
#include "power_sums.hpp"

namespace fgfm {

constexpr Index POINTS_AT_ONCE = 4;       // sizes that share a pass over a column
constexpr Index SHORT_COLUMN = 4096;      // entries, all of which give a threshold
constexpr Index BOUND_SAMPLE = 1024;      // entries of a longer column that thresholds are estimated from
constexpr Index BOUND_ROWS = 4096;        // rows of a sample, for several columns
constexpr Index BOUND_POINTS = 24;        // sizes of a column that are chosen, at most
constexpr Index BOUND_ROUNDS = 3;         // of refinement, on all entries
constexpr double NO_FLOOR = -std::numeric_limits<double>::infinity();
constexpr double BOUND_TOLERANCE = 1e-4;  // of a column, relative to its weight

// A size k with the coefficients of Delta, a threshold t and the sum of what exceeds it.
struct BoundPoint {
    double k, a, b;
    double t = 0.0, excess = 0.0;
    double low = 0.0, high = 0.0;  // where the best threshold is, by the sample
    bool is_evaluated = false;     // whether the excess is that of all entries
    bool is_exact = false;         // and the threshold the best one

    double delta(double p) const { return p * (a + p * b); }
    double at(double size) const { return size * t + excess; }
};

struct ColumnWork {
    Nodes nodes;
    Scratch<double> product, total, factor;
    std::vector<double> chosen;
    std::vector<BoundPoint> points;
    // A sample of the entries, with the number of entries that each stands for
    std::vector<double> sample_p, sample_mu, sample_weight;
    std::vector<std::pair<double, double>> value;  // Delta - mu of the sample, and weight
    std::vector<double> near_p, near_mu, near_value;  // entries near the thresholds of some sizes

    explicit ColumnWork(const Rules& rules)
        : nodes(rules), product(padded(rules.longest)), total(product.size()),
          factor(product.size()) {}
};

// Bounds of one column.
template <class T>
class ColumnBound {
public:
    // `p` and `mu` are of all n entries, which are at most `top`, or of a sample of them, of which the
    // first `inside` are chosen: those over the threshold `t`.
    ColumnBound(std::span<const T> p, const double* mu, double n, double top, double floor,
                double beta2, const BudgetColumn& column, ColumnWork& work, Index inside = 0,
                double t = 0.0)
        : p_(p), mu_(mu), floor_(floor), shift_(beta2 * (1.0 + column.mean)),
          reach_(beta2 * (2.0 + std::min(n, 1.0 + largest_cardinality(column.mean)))),
          column_(column), work_(work), top_(std::max(top, std::numeric_limits<double>::min())),
          n_(n), inside_(inside), t_(t),
          tolerance_((n_ > 256.0 ? 1.0 : 0.1) * BOUND_TOLERANCE * column.value_of_one()) {}

    // Return the largest f(k), which is at least `known`, the value of the decision less its mu.
    //
    // Sizes and thresholds are chosen on the sample, then evaluated on all entries.
    double largest_value(double known) {
        std::vector<BoundPoint>& points = work_.points;
        points.clear();
        if (n_ == 0.0) return known;
        const bool is_sample = length(p_) > SHORT_COLUMN;
        if (is_sample) take_sample();
        choose_points(is_sample ? -std::numeric_limits<double>::infinity() : known);
        for (Index round = 0; is_sample && round <= BOUND_ROUNDS; ++round) {
            add_excess();
            select(known);
            if (round == BOUND_ROUNDS || !refine(known)) break;
        }
        return highest(known, points);
    }

    // Choose the sizes that bound f closely, where it is known to be at least `known`.
    void choose_points(double known) {
        for (const double k : first_sizes()) work_.points.push_back(point(k));
        while (static_cast<Index>(work_.points.size()) < BOUND_POINTS) {
            double best = known;
            for (const BoundPoint& point : work_.points) best = std::max(best, point.at(point.k));
            if (!refine(best)) break;
        }
    }

    // Return the bound of all sizes, which is at least `known`.
    double highest(double known, std::span<const BoundPoint> points) const {
        double bound = std::max(known, points[0].at(points[0].k));
        for (std::size_t j = 0; j + 1 < points.size(); ++j) {
            bound = std::max(bound, between(points[j], points[j + 1]));
        }
        return bound;
    }

private:
    std::span<const T> p_;
    const double* mu_;
    double floor_, shift_, reach_;
    const BudgetColumn& column_;
    ColumnWork& work_;
    double top_, n_;
    Index inside_;
    double t_, tolerance_;

    // Take the entries of the largest values at the size of the decision, and every few of the others.
    void take_sample() {
        work_.sample_p.clear();
        work_.sample_mu.clear();
        work_.sample_weight.clear();
        const Index n = length(p_);
        const auto take = [&](Index i, double weight) {
            work_.sample_p.push_back(p_[i]);
            work_.sample_mu.push_back(mu_[i]);
            work_.sample_weight.push_back(weight);
        };
        const BoundPoint here = coefficients(std::clamp(column_.count, 1.0, n_));
        const Index step = n / BOUND_SAMPLE;
        std::vector<double> value;
        for (Index i = step / 2; i < n; i += step) value.push_back(here.delta(p_[i]) - mu_[i]);
        std::nth_element(value.begin(), value.begin() + 1, value.end(), std::greater<>());
        const double cut = value[1];
        for_large(here, cut, [&](Index i) { take(i, 1.0); });
        const double rest = n_ - static_cast<double>(work_.sample_p.size());
        std::vector<Index> others;
        for (Index i = step / 2; i < n; i += step) {
            if (!(here.delta(p_[i]) - mu_[i] > cut)) others.push_back(i);
        }
        for (const Index i : others) take(i, rest / static_cast<double>(others.size()));
    }

    // Call body(i) for the entries with Delta - mu > least at a size; others are passed over, many at
    // a time.
    template <class Body>
    void for_large(const BoundPoint& point, double least, Body body) const {
        constexpr Index STEP = 4 * LANES;
        const Lanes none = {}, a = none + point.a, b = none + point.b;
        const Index n = length(p_);
        for (Index i = 0; i < n; i += STEP) {
            if (i + STEP <= n) {
                auto found = none > none;
                for (Index j = i; j < i + STEP; j += LANES) {
                    const Lanes x = load(p_.data() + j);
                    found |= x * (a + x * b) - load(mu_ + j) > least;
                }
                if (!(found[0] | found[1] | found[2] | found[3])) continue;
            }
            for (Index j = i; j < std::min(n, i + STEP); ++j) {
                if (point.delta(p_[j]) - mu_[j] > least) body(j);
            }
        }
    }

    // Sizes around that of the decision, and further and further away.
    std::vector<double> first_sizes() const {
        std::vector<double> sizes{1.0, n_, std::clamp(column_.count, 1.0, n_)};
        const double x = shift_ + column_.count;
        for (const double step : {0.1, 0.4}) {
            sizes.push_back(std::round(x * (1.0 - step) - shift_));
            sizes.push_back(std::round(x * (1.0 + step) - shift_));
        }
        for (double far = 3.0 * x; far - shift_ < n_; far *= 4.0) {
            sizes.push_back(std::round(far - shift_));
        }
        std::erase_if(sizes, [this](double k) { return k < 1.0 || k > n_; });
        std::sort(sizes.begin(), sizes.end());
        sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
        return sizes;
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

    // A size with its best threshold on the sample, the k-th largest Delta - mu.
    BoundPoint point(double k) const {
        BoundPoint result = coefficients(k);
        if (inside_) return sampled(result);
        if (length(p_) <= SHORT_COLUMN) {  // all entries
            fill_values(result);
            const auto last = work_.near_value.begin() + (static_cast<Index>(k) - 1);
            std::nth_element(work_.near_value.begin(), last, work_.near_value.end(),
                             std::greater<>());
            result.t = std::max(*last, floor_);
            for (const double x : work_.near_value) result.excess += std::max(0.0, x - result.t);
            result.is_exact = result.is_evaluated = true;
            return result;
        }
        std::vector<std::pair<double, double>>& value = work_.value;
        value.clear();
        for (std::size_t i = 0; i < work_.sample_p.size(); ++i) {
            value.push_back({result.delta(work_.sample_p[i]) - work_.sample_mu[i],
                             work_.sample_weight[i]});
        }
        const double step = work_.sample_weight.back();
        std::sort(value.begin(), value.end(), std::greater<>());
        const double slack = 3.0 * (step + std::sqrt(step * std::min(k, n_ - k)));
        double weight = 0.0;
        std::size_t end = 0;
        result.high = std::numeric_limits<double>::infinity();
        for (; end + 1 < value.size() && (weight += value[end].second) < k; ++end) {
            if (weight < k - slack) result.high = value[end].first;
        }
        result.t = std::max(value[end].first, floor_);
        for (std::size_t i = 0; i < end; ++i) {
            result.excess += value[i].second * std::max(0.0, value[i].first - result.t);
        }
        while (end < value.size() && weight < k + slack) weight += value[end++].second;
        result.low = end < value.size() ? value[end].first
                                        : -std::numeric_limits<double>::infinity();
        return result;
    }

    // Delta - mu of all entries, in `near_value`
    void fill_values(const BoundPoint& point) const {
        work_.near_value.resize(p_.size());
        for (std::size_t i = 0; i < p_.size(); ++i) {
            work_.near_value[i] = point.delta(p_[i]) - mu_[i];
        }
    }

    // A size with a threshold of two samples, of chosen entries and of others.
    BoundPoint sampled(BoundPoint result) const {
        const Index size = length(p_), others = size - inside_;
        const double k = result.k, number = column_.count / inside_,
                     other = (n_ - column_.count) / others;
        fill_values(result);
        const std::vector<double>& value = work_.near_value;
        std::vector<double>& order = work_.near_mu;
        order = value;
        const Index rank = static_cast<Index>(k <= column_.count
                                                  ? k / number
                                                  : inside_ + (k - column_.count) / other);
        const auto last = order.begin() + std::min(size - 1, rank);
        std::nth_element(order.begin(), last, order.end(), std::greater<>());
        result.t = k == column_.count ? t_ : *last;
        for (Index i = 0; i < size; ++i) {
            result.excess += (i < inside_ ? number : other) * std::max(0.0, value[i] - result.t);
        }
        return result;
    }

    void sort_points() {
        std::sort(work_.points.begin(), work_.points.end(),
                  [](const BoundPoint& x, const BoundPoint& y) { return x.k < y.k; });
    }

    // Add a point of the sample in each interval whose bound is not close to `value`; return false if
    // there is none.
    bool refine(double value) {
        std::vector<BoundPoint> added;
        for (std::size_t j = 0; j + 1 < work_.points.size(); ++j) {
            const BoundPoint &first = work_.points[j], &last = work_.points[j + 1];
            if (last.k - first.k < 2.0 || between(first, last) <= value + tolerance_) continue;
            const double middle =
                std::round(std::sqrt((shift_ + first.k) * (shift_ + last.k)) - shift_);
            added.push_back(point(std::clamp(middle, first.k + 1.0, last.k - 1.0)));
        }
        work_.points.insert(work_.points.end(), added.begin(), added.end());
        sort_points();
        return !added.empty();
    }

    // Evaluate the points of the sample on all entries, with the thresholds of the sample.
    void add_excess() {
        std::vector<BoundPoint*> group;
        for (BoundPoint& point : work_.points) {
            if (!point.is_evaluated) group.push_back(&point);
            if (group.size() == POINTS_AT_ONCE) {
                add_excess(group);
                group.clear();
            }
        }
        if (!group.empty()) add_excess(group);
    }

    void add_excess(std::span<BoundPoint* const> group) const {
        const Lanes none = {};
        Lanes a[POINTS_AT_ONCE], b[POINTS_AT_ONCE], t[POINTS_AT_ONCE], excess[POINTS_AT_ONCE] = {};
        for (Index g = 0; g < POINTS_AT_ONCE; ++g) {
            const BoundPoint& point = *group[std::min<std::size_t>(g, group.size() - 1)];
            a[g] = none + point.a;
            b[g] = none + point.b;
            t[g] = none + point.t;
        }
        const auto add = [&](Lanes x, Lanes y) {
            for (Index g = 0; g < POINTS_AT_ONCE; ++g) {
                const Lanes over = x * (a[g] + x * b[g]) - (y + t[g]);
                excess[g] += over > none ? over : none;
            }
        };
        const Index n = length(p_);
        Index i = 0;
        for (; i + LANES <= n; i += LANES) add(load(p_.data() + i), load(mu_ + i));
        if (i < n) {
            add(load_some(p_.data() + i, n - i, 0.0),
                load_some(mu_ + i, n - i, std::numeric_limits<double>::infinity()));
        }
        for (std::size_t g = 0; g < group.size(); ++g) {
            group[g]->excess = add_lanes(excess[g]);
            group[g]->is_evaluated = true;
        }
    }

    // Find the best thresholds of sizes at which the bound is not close to `value`, some neighbours
    // at a time.
    void select(double value) {
        std::vector<BoundPoint*> group;
        for (std::size_t j = 0; j < work_.points.size(); ++j) {
            BoundPoint& point = work_.points[j];
            bool is_open = point.at(point.k) > value + tolerance_;
            if (j > 0) is_open |= between(work_.points[j - 1], point) > value + tolerance_;
            if (j + 1 < work_.points.size()) {
                is_open |= between(point, work_.points[j + 1]) > value + tolerance_;
            }
            const bool is_far = !group.empty() && point.k > 1.2 * group.front()->k;
            if (group.size() == POINTS_AT_ONCE || is_far) {
                evaluate(group);
                group.clear();
            }
            if (is_open && !point.is_exact) group.push_back(&point);
        }
        if (!group.empty()) evaluate(group);
    }

    // Delta falls with k: entries over the highest threshold at the last size are over all, and
    // entries below the lowest one at the first size are over none. Only the others are ordered.
    void evaluate(std::span<BoundPoint* const> group) {
        const BoundPoint first = *group.front(), last = *group.back();
        double least = first.low, most = first.high;
        for (const BoundPoint* point : group) {
            least = std::min(least, point->low);
            most = std::max(most, point->high);
        }
        work_.near_p.clear();
        work_.near_mu.clear();
        double inside = 0.0, mass = 0.0, mass2 = 0.0, multipliers = 0.0;
        for_large(first, least, [&](Index i) {
            const double x = p_[i], y = mu_[i];
            if (last.delta(x) - y > most) {
                inside += 1.0;
                mass += x;
                mass2 += x * x;
                multipliers += y;
            } else {
                work_.near_p.push_back(x);
                work_.near_mu.push_back(y);
            }
        });
        const Index size = static_cast<Index>(work_.near_p.size());
        std::vector<double>& value = work_.near_value;
        value.resize(size);
        for (BoundPoint* point : group) {
            for (Index i = 0; i < size; ++i) {
                value[i] = point->delta(work_.near_p[i]) - work_.near_mu[i];
            }
            point->t = std::clamp(point->t, least, most);
            const Index rank = static_cast<Index>(point->k - inside);
            if (0 < rank && rank <= size) {
                std::nth_element(value.begin(), value.begin() + rank - 1, value.end(),
                                 std::greater<>());
                point->t = std::clamp(value[rank - 1], least, most);
            }
            point->t = std::max(point->t, floor_);
            point->excess = mass * point->a + mass2 * point->b - multipliers - inside * point->t;
            if (inside > 0.0 && point->t > most) {  // the floor is above: some are not over it
                point->t = most;
                point->excess = mass * point->a + mass2 * point->b - multipliers - inside * most;
            }
            for (const double x : value) point->excess += std::max(0.0, x - point->t);
            point->is_exact = point->is_evaluated = true;
        }
    }

    // The largest bound between two sizes: the line between k t_1 + e_1 and k t_2 + e_2, in y; or,
    // since Delta falls with k, the first of them alone.
    double between(const BoundPoint& first, const BoundPoint& last) const {
        return std::min(on_line(first, last), std::max(first.at(first.k), first.at(last.k)));
    }
    double on_line(const BoundPoint& first, const BoundPoint& last) const {
        const double start = 1.0 / (reach_ + first.k), end = 1.0 / (reach_ + last.k);
        double result = std::max(first.at(first.k), last.at(last.k));
        if (last.k - first.k < 2.0) return result;
        // t = A + B y and e = C + D y: the bound is (1 / y - reach) t + e, with derivative
        // D - reach B - A / y^2.
        const double width = start - end, B = (first.t - last.t) / width, A = last.t - B * end;
        const double rest = (first.excess - last.excess) / width - reach_ * B;
        const double y = std::sqrt(A / rest);
        if (A < 0.0 && rest < 0.0 && y > end && y < start) {
            const double share = (y - end) / width, k = 1.0 / y - reach_;
            result = std::max(result, share * first.at(k) + (1.0 - share) * last.at(k));
        }
        return result;
    }
};

// A long column: its sizes, and for each the sum of max(Delta - mu, t).
struct LongColumn {
    Index c;
    double known = 0.0, rate = 0.0;
    std::vector<BoundPoint> points{};
    std::vector<double> alpha{};  // Delta <= alpha p (1 + rate p), for p up to 1
    std::vector<Lanes> sum{};

    // Take sizes of a sample, and the rate of that of the decision.
    void set_points(std::span<const BoundPoint> found, double k) {
        points.assign(found.begin(), found.end());
        for (const BoundPoint& point : points) {
            if (point.k == k) rate = point.b / point.a;
        }
        for (const BoundPoint& point : points) {
            alpha.push_back(std::max(point.a, (point.a + point.b) / (1.0 + rate)));
        }
        sum.resize(points.size());
    }

    template <class T>
    void add(Index count, const T* p, const double* mu) {
        for (std::size_t first = 0; first < points.size(); first += POINTS_AT_ONCE) {
            Lanes a[POINTS_AT_ONCE], t[POINTS_AT_ONCE], total[POINTS_AT_ONCE] = {};
            for (Index g = 0; g < POINTS_AT_ONCE; ++g) {
                const std::size_t j = std::min(first + g, points.size() - 1);
                a[g] = Lanes{} + alpha[j];
                t[g] = Lanes{} + points[j].t;
            }
            for (Index r = 0; r < count; r += LANES) {
                const Lanes x = load(p + r), q = x * (1.0 + rate * x);
                const Lanes y = r + LANES <= count
                                    ? load(mu + r)
                                    : load_some(mu + r, count - r,
                                                std::numeric_limits<double>::infinity());
                for (Index g = 0; g < POINTS_AT_ONCE; ++g) {
                    const Lanes value = a[g] * q - y;
                    total[g] += value > t[g] ? value : t[g];
                }
            }
            for (Index g = 0; g < POINTS_AT_ONCE && first + g < points.size(); ++g) {
                sum[first + g] += total[g];
            }
        }
    }

    // Compute the excess, after n entries have been added.
    void finish(Index n) {
        for (std::size_t j = 0; j < points.size(); ++j) {
            points[j].excess = std::max(0.0, add_lanes(sum[j]) - n * points[j].t);
        }
    }
};

// Load the nodes of a column of n entries.
inline void load_column(const BudgetColumn& column, double n, double beta2, const Rules& rules,
                        ColumnWork& work) {
    const double most = std::max(n, column.count);
    const double s_max = std::min(n, 1.0 + largest_cardinality(column.mean));
    const double s_min = std::max(1.0, column.mean - std::sqrt(2.0 * TAIL * column.mean));
    work.nodes.load(rules, beta2, beta2 * s_min + 1.0, beta2 * std::max(1.0, s_max) + most + 1.0);
}

// Return the expected F of a column, and the weighted value less `cost`, the multipliers of what is
// chosen, from the products and fractions at the nodes.
inline std::pair<double, double> value_of_column(const BudgetColumn& column, double cost,
                                                 const Objective& objective, ColumnWork& work) {
    double value = 0.0;
    for (Index r = 0; r < work.nodes.count; ++r) {
        work.factor[r] = column.weight * (1.0 + objective.beta2) * work.nodes.weight[r] *
                         work.nodes.zeta[r] * work.product[r];
        value += work.factor[r] * std::exp(column.count * work.nodes.log_z[r]) * work.total[r];
    }
    double expected = objective.zero_division * column.none;
    if (objective.nonempty) {
        expected = column.present > 0.0 ? 0.0 : std::numeric_limits<double>::quiet_NaN();
    }
    if (column.count == 0.0) {
        value = column.empty;
    } else if (column.weight > 0.0) {
        expected = value / column.weight / (objective.nonempty ? column.present : 1.0);
    } else if (!objective.nonempty) {
        expected = 0.0;  // no weight: no row can have the label
    }
    return {expected, std::max(column.empty, value - cost)};
}

// Evaluate a column: its expected F, and the largest weighted value less multipliers of any choice.
//
// `p` and `mu` are its entries, in `work.chosen` are the p of the chosen ones, `column.count` is their
// number with those of probability 0, and `cost` the sum of their multipliers.
template <class T>
std::pair<double, double> evaluate_column(std::span<const T> p, const double* mu, double floor,
                                          const BudgetColumn& column, double cost,
                                          const Objective& objective, const Rules& rules,
                                          ColumnWork& work) {
    const double n = static_cast<double>(p.size());
    load_column(column, n, objective.beta2, rules, work);
    PowerSums sums{};
    add_power_sums_by_parts(p, 0.0, SMALL, sums);
    fill_products(work.product.data(), work.nodes, sums, p);
    fill_fractions(work.total.data(), work.nodes, std::span<const double>(work.chosen), -1.0);
    const auto [expected, known] = value_of_column(column, cost, objective, work);
    ColumnBound<T> bound(p, mu, n, largest(p), floor, objective.beta2, column, work);
    return {expected, bound.largest_value(known)};
}

// Long columns of dense rows, of which many are expected, are evaluated side by side: values by the
// power sums that are known, and sizes with thresholds from a sample, in one pass over the rows.
// Returns which of the columns [first, last) are: the bound of the others would not be close.
template <class T>
std::vector<char> evaluate_long(const BudgetRows<T>& rows, Index first, Index last,
                                const Objective& objective, const Rules& rules, const double* mu,
                                std::span<const BudgetColumn> columns, double* expected,
                                double* bound) {
    const Index step = rows.n / BOUND_ROWS;
    const double n = static_cast<double>(rows.n), beta2 = objective.beta2;
    std::vector<char> done(last - first, false);
    if (step < 2) return done;
    std::vector<BudgetColumn> sums(columns.begin(), columns.end());
    const ApproximateGains gains(beta2, sums);
    ColumnWork work(rules);
    std::vector<double> sample_p, sample_mu;
    std::vector<LongColumn> open;
    for (Index c = first; c < last; ++c) {
        const BudgetColumn& column = columns[c];
        load_column(column, n, beta2, rules, work);
        double rest = 0.0, least = 0.0;
        for (Index r = 0; r < work.nodes.padding; ++r) {
            const double u = work.nodes.u[r];
            work.product[r] = std::exp(
                -u * (column.mean +
                      u * (column.squares / 2 + u * (column.cubes / 3 + u * column.fourths / 4))));
            work.total[r] =
                column.mass + u * (column.mass2 + u * (column.mass3 + u * column.mass4));
            const double term = work.nodes.weight[r] * work.product[r];
            least += term;
            rest += term * column.fourths * std::pow(u, 5) / 5.0;
        }
        // The rest of both series, relative to what is computed
        if (!(rest <= 1e-13 * least)) continue;
        LongColumn found{c};
        std::tie(expected[c - first], found.known) =
            value_of_column(column, column.cost, objective, work);
        // The sample, chosen entries first
        sample_p.clear();
        sample_mu.clear();
        Index inside = 0;
        for (const bool wanted : {true, false}) {
            for (Index i = step / 2; i < rows.n; i += step) {
                const double p = rows.data[i * rows.m + c];
                if ((gains.add_gain(c, p) > mu[i]) != wanted) continue;
                sample_p.push_back(p);
                sample_mu.push_back(mu[i]);
            }
            if (wanted) inside = static_cast<Index>(sample_p.size());
        }
        if (inside < 8 || inside == static_cast<Index>(sample_p.size())) continue;
        work.points.clear();
        ColumnBound<double> sizes(sample_p, sample_mu.data(), n, 1.0, NO_FLOOR, beta2, column, work, inside,
                                     gains.loss[c]);
        sizes.choose_points(-std::numeric_limits<double>::infinity());
        found.set_points(work.points, column.count);
        open.push_back(std::move(found));
    }
    if (open.empty()) return done;
    for_blocks(rows, first, last, [&](Index start, Index count, const T* block, Index width) {
        for (LongColumn& column : open) {
            column.add(count, block + (column.c - first) * width, mu + start);
        }
        return true;
    });
    for (LongColumn& found : open) {
        const Index j = found.c - first;
        const BudgetColumn& column = columns[found.c];
        found.finish(padded(rows.n));
        bound[j] = ColumnBound<double>(sample_p, nullptr, n, 1.0, NO_FLOOR, beta2, column, work)
                       .highest(found.known, found.points);
        done[j] = bound[j] <= found.known + 1e-3 * column.value_of_one();
    }
    return done;
}

// The best feasible decision of a small problem, by dynamic programming over columns.
//
// The state is the number of labels of each row, up to `most`; a column chooses a subset of the rows.
// Returns false, without a decision, if there are too many states.
inline bool search_all(Matrix<const double> proba, const Objective& objective,
                       const RowLimits& limits, std::span<const double> weight, const Rules& rules,
                       std::int8_t* chosen) {
    constexpr double MOST_STEPS = 3e7;
    const Index n = proba.rows, m = proba.cols, most = std::min(limits.most, m);
    if (n > 14 || std::pow(2.0 * most + 1.0, n) * m > MOST_STEPS ||
        std::pow(most + 1.0, n) * m > 0.1 * MOST_STEPS) {
        return false;
    }
    const Index subsets = Index{1} << n;
    std::vector<Index> offset(subsets, 0), place(n);
    Index states = 1;
    for (Index i = 0; i < n; ++i) {
        place[i] = states;
        states *= most + 1;
    }
    for (Index h = 1; h < subsets; ++h) {
        const Index i = std::countr_zero(static_cast<std::uint64_t>(h));
        offset[h] = offset[h & (h - 1)] + place[i];
    }
    std::vector<Index> full(states, 0);  // rows that have `most` labels
    for (Index s = 0; s < states; ++s) {
        for (Index i = 0; i < n; ++i) {
            if (s / place[i] % (most + 1) == most) full[s] |= Index{1} << i;
        }
    }
    const double beta2 = objective.beta2, infinity = std::numeric_limits<double>::infinity();
    Nodes nodes(rules);
    nodes.load(rules, beta2, beta2 + 1.0, beta2 * n + n);
    std::vector<double> value(subsets), best(states, -infinity), next(states);
    std::vector<std::uint16_t> choice(states * m);
    best[0] = 0.0;
    for (Index c = 0; c < m; ++c) {
        std::fill(value.begin(), value.end(), 0.0);
        double none = 1.0, present = 0.0;
        for (Index i = 0; i < n; ++i) {
            none *= 1.0 - proba[i][c];
            present += (1.0 - present) * proba[i][c];
        }
        if (!objective.nonempty) present = 1.0;
        const double scale = present > 0.0 ? weight[c] / present : 0.0;
        std::vector<double> total(subsets);
        std::vector<double> power(n + 1, 1.0);
        for (Index r = 0; r < nodes.count; ++r) {
            for (Index k = 1; k <= n; ++k) power[k] = std::exp(k * nodes.log_z[r]);
            double product = scale * (1.0 + beta2) * nodes.weight[r] * nodes.zeta[r];
            for (Index i = 0; i < n; ++i) product *= 1.0 - proba[i][c] * nodes.u[r];
            total[0] = 0.0;
            for (Index h = 1; h < subsets; ++h) {
                const Index i = std::countr_zero(static_cast<std::uint64_t>(h));
                const double p = proba[i][c];
                total[h] = total[h & (h - 1)] + p / (1.0 - p * nodes.u[r]);
                value[h] += product * power[std::popcount(static_cast<std::uint64_t>(h))] * total[h];
            }
        }
        value[0] = objective.nonempty ? 0.0 : weight[c] * objective.zero_division * none;
        std::fill(next.begin(), next.end(), -infinity);
        for (Index s = 0; s < states; ++s) {
            if (best[s] == -infinity) continue;
            const Index free = (subsets - 1) & ~full[s];
            for (Index h = free;; h = (h - 1) & free) {
                const Index to = s + offset[h];
                if (best[s] + value[h] > next[to] + 1e-14) {
                    next[to] = best[s] + value[h];
                    choice[c * states + to] = static_cast<std::uint16_t>(h);
                }
                if (h == 0) break;
            }
        }
        best.swap(next);
    }
    Index end = -1;
    for (Index s = 0; s < states; ++s) {
        bool feasible = best[s] > -infinity;
        for (Index i = 0; i < n; ++i) feasible &= s / place[i] % (most + 1) >= limits.least;
        if (feasible && (end < 0 || best[s] > best[end] + 1e-14)) end = s;
    }
    if (end < 0) return false;
    for (Index c = m - 1; c >= 0; --c) {
        const Index h = choice[c * states + end];
        for (Index i = 0; i < n; ++i) chosen[i * m + c] = (h >> i) & 1;
        end -= offset[h];
    }
    return true;
}

}  // namespace fgfm
