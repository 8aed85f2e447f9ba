// Macro decisions with limits on the number of labels of a row; one class per row is the limit 1.
//
// Maximise sum_c weight_c E[F_c(h_c)] over decisions h with least <= |h_i| <= most in each row i
// (docs/design.md, "Budgets"). Given the other rows, the change of every column is known, so that the
// best labels of one row are those of the largest gains: row after row is improved until none can be.
//
// Gains are computed with the first two terms of E[1 / X] around the mean of X = beta^2 |y_c| + k,
//
//     E[F_c] ~ a(x) sum_h p + b(x) sum_h p^2,      x = beta^2 (1 + E) + k,
//     a(x) = (1 + beta^2) (1 + beta^4 v / x^2) / x,      b(x) = beta^2 a(x) / x,
//
// where E and v are mean and variance of |y_c|: quadratic in p for each column. Small problems are
// then improved further by the exact expectations. budget_bounds.hpp evaluates and bounds the result.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "constants.hpp"
#include "quadrature.hpp"

namespace fgfm {

constexpr Index FEW_ENTRIES = 1 << 17;     // problems that are improved by exact expectations
constexpr Index SAMPLED_ROWS = 1 << 15;    // of those that a long problem is started from
constexpr Index MOST_PASSES = 100;         // over the rows
constexpr double NEVER_EMPTY = 45.0;       // expected labels of a column: exp(-45) = 3e-20
constexpr double LAST_GAIN = 1e-8;         // of a pass over a long problem; 1e-6 over a very long one

// The entries of n rows and m columns: dense in C order, or CSR, if there are labels.
template <class T>
struct BudgetRows {
    const T* data;
    const std::int32_t* label;
    const Index* indptr;
    Index n, m;

    Index start(Index i) const { return label ? indptr[i] : i * m; }
    Index size(Index i) const { return label ? indptr[i + 1] - indptr[i] : m; }
    Index column(Index at, Index j) const { return label ? label[at] : j; }
    Index stored() const { return label ? indptr[n] : n * m; }
};

struct RowLimits {
    Index least, most;
    bool is_one() const { return least == 1 && most == 1; }
};

// What a column is, and what is chosen of it.
struct BudgetColumn {
    double mean = 0.0, squares = 0.0;           // sums of p and p^2
    double none = 1.0;                          // probability that no row has the label
    double weight = 0.0, empty = 0.0;           // weight of E[F], and the weighted value of no choice
    double count = 0.0, mass = 0.0, mass2 = 0.0;  // number, p and p^2 of the chosen rows
};

// A gain p (a + p b) - loss.
struct Gain {
    double a = 0.0, b = 0.0, loss = 0.0;
    double operator()(double p) const { return p * (a + p * b) - loss; }
};

// Gains by two terms of the expectation.
struct ApproximateGains {
    double beta2;
    std::vector<BudgetColumn>& columns;
    std::vector<double> a, b, loss;  // of adding a row; padded to whole vectors
    std::vector<Gain> stay;          // of a chosen row, compared to removing it

    ApproximateGains(double beta2, std::vector<BudgetColumn>& columns)
        : beta2(beta2), columns(columns), a(columns.size() + LANES), b(a.size()), loss(a.size()),
          stay(columns.size()) {
        for (std::size_t c = 0; c < columns.size(); ++c) refresh(c);
    }

    void refresh(Index c) {
        const BudgetColumn& column = columns[c];
        const double scale = column.weight * (1.0 + beta2);
        const double q = beta2 * beta2 * (column.mean - column.squares);
        const double k = column.count, x = beta2 * (1.0 + column.mean) + k;
        const double r = 1.0 / (k > 0.0 ? x : x + 1.0), next = 1.0 / (x + 1.0);
        a[c] = scale * next * (1.0 + q * next * next);
        b[c] = beta2 * a[c] * next;
        if (k == 0.0) {
            loss[c] = column.empty;
            stay[c] = {};
            return;
        }
        loss[c] = scale * lost(r, next, q, column);
        if (k == 1.0) {
            const double slope = scale * r * (1.0 + q * r * r);
            stay[c] = {slope, beta2 * slope * r, column.empty};
        } else {
            const double last = 1.0 / (x - 1.0), slope = scale * last * (1.0 + q * last * last);
            stay[c] = {slope, beta2 * slope * last, scale * lost(last, r, q, column)};
        }
    }
    double add_gain(Index c, double p) const { return p * (a[c] + p * b[c]) - loss[c]; }
    double stay_gain(Index c, double p) const { return stay[c](p); }
    void change(Index c, double p, double sign) {
        BudgetColumn& column = columns[c];
        column.count += sign;
        column.mass = column.count > 0.0 ? std::max(0.0, column.mass + sign * p) : 0.0;
        column.mass2 = column.count > 0.0 ? std::max(0.0, column.mass2 + sign * p * p) : 0.0;
        refresh(c);
    }

private:
    // What the chosen rows lose from x = 1 / r to x + 1 = 1 / next, divided by the scale.
    double lost(double r, double next, double q, const BudgetColumn& column) const {
        const double first = 1.0 + q * (r * r + r * next + next * next);
        const double second = beta2 * (r + next) * (1.0 + q * (r * r + next * next));
        return r * next * (column.mass * first + column.mass2 * second);
    }
};

// Gains by the exact expectation: the nodes of one rule for all columns.
struct ExactGains {
    std::vector<BudgetColumn>& columns;
    Nodes nodes;
    // (m, nodes): what multiplies z^k A(u) in the value, A(u) of the chosen rows, and z^k
    std::vector<double> factor, total, power;
    std::vector<double> add_loss, stay_loss;

    template <class T>
    ExactGains(const BudgetRows<T>& rows, double beta2, const Rules& rules,
               std::vector<BudgetColumn>& columns, const std::int8_t* chosen)
        : columns(columns), nodes(rules) {
        nodes.load(rules, beta2, beta2 + 1.0, beta2 * rows.n + rows.n + 1.0);
        const Index R = nodes.count, m = rows.m;
        factor.assign(m * R, 1.0);
        total.assign(m * R, 0.0);
        power.assign(m * R, 1.0);
        add_loss.assign(m, 0.0);
        stay_loss.assign(m, 0.0);
        for (Index i = 0; i < rows.n; ++i) {
            const Index start = rows.start(i);
            for (Index j = 0; j < rows.size(i); ++j) {
                const Index c = rows.column(start + j, j);
                const double p = rows.data[start + j];
                for (Index r = 0; r < R; ++r) {
                    factor[c * R + r] *= 1.0 - p * nodes.u[r];
                    if (chosen[start + j]) total[c * R + r] += p / (1.0 - p * nodes.u[r]);
                }
            }
        }
        for (Index c = 0; c < m; ++c) {
            for (Index r = 0; r < R; ++r) {
                factor[c * R + r] *=
                    columns[c].weight * (1.0 + beta2) * nodes.weight[r] * nodes.zeta[r];
                power[c * R + r] = std::exp(columns[c].count * nodes.log_z[r]);
            }
            refresh(c);
        }
    }

    void refresh(Index c) {
        const Index R = nodes.count;
        double value = 0.0, next = 0.0, last = 0.0;
        for (Index r = 0; r < R; ++r) {
            const double term = factor[c * R + r] * power[c * R + r] * total[c * R + r];
            value += term;
            next += term * nodes.z[r];
            last += term / nodes.z[r];
        }
        add_loss[c] = columns[c].count > 0.0 ? value - next : columns[c].empty;
        stay_loss[c] = columns[c].count > 1.0 ? last - value : columns[c].empty;
    }
    double add_gain(Index c, double p) const { return p * slope(c, p, 1.0) - add_loss[c]; }
    double stay_gain(Index c, double p) const {
        return p * slope(c, p, columns[c].count > 1.0 ? -1.0 : 0.0) - stay_loss[c];
    }
    void change(Index c, double p, double sign) {
        const Index R = nodes.count;
        columns[c].count += sign;
        for (Index r = 0; r < R; ++r) {
            double& sum = total[c * R + r];
            sum = columns[c].count > 0.0 ? sum + sign * p / (1.0 - p * nodes.u[r]) : 0.0;
            power[c * R + r] = std::exp(columns[c].count * nodes.log_z[r]);
        }
        refresh(c);
    }

private:
    // The coefficient of p for a set of `more` rows more.
    double slope(Index c, double p, double more) const {
        const Index R = nodes.count;
        double result = 0.0;
        for (Index r = 0; r < R; ++r) {
            double term = factor[c * R + r] * power[c * R + r] / (1.0 - p * nodes.u[r]);
            if (more > 0.0) term *= nodes.z[r];
            if (more < 0.0) term /= nodes.z[r];
            result += term;
        }
        return result;
    }
};

// Sum the columns; return the first row with a value outside [0, 1], or -1.
template <class T>
Index add_columns(const BudgetRows<T>& rows, std::vector<BudgetColumn>& columns) {
    std::vector<double> sum(rows.m + LANES), squares(rows.m + LANES);
    for (Index i = 0; i < rows.n; ++i) {
        const Index start = rows.start(i), size = rows.size(i);
        const T* p = rows.data + start;
        double least = 0.0, most = 0.0;
        Index j = 0;
        if (!rows.label) {
            const Lanes none = {};
            Lanes low = none, high = none;
            for (; j + LANES <= size; j += LANES) {
                const Lanes x = load(p + j);
                store(&sum[j], load(&sum[j]) + x);
                store(&squares[j], load(&squares[j]) + x * x);
                low = x >= none ? low : none - 1.0;  // NaN too
                high = x > high ? x : high;
            }
            for (Index l = 0; l < LANES; ++l) {
                least = std::min(least, low[l]);
                most = std::max(most, high[l]);
            }
        }
        for (; j < size; ++j) {
            const Index c = rows.column(start + j, j);
            const double x = p[j];
            sum[c] += x;
            squares[c] += x * x;
            if (!(x >= 0.0)) least = -1.0;
            most = std::max(most, x);
        }
        if (least < 0.0 || most > 1.0) return i;
    }
    bool some_empty = false;
    for (Index c = 0; c < rows.m; ++c) {
        columns[c].mean = sum[c];
        columns[c].squares = squares[c];
        columns[c].none = sum[c] < NEVER_EMPTY ? 1.0 : 0.0;
        some_empty |= sum[c] < NEVER_EMPTY;
    }
    if (!some_empty) return -1;
    for (Index i = 0; i < rows.n; ++i) {
        const Index start = rows.start(i);
        for (Index j = 0; j < rows.size(i); ++j) {
            columns[rows.column(start + j, j)].none *= 1.0 - rows.data[start + j];
        }
    }
    return -1;
}

// Positions of a row in descending order of gain, then of position.
struct Ranking {
    std::vector<double> gain;
    std::vector<Index> order;

    explicit Ranking(Index m) : gain(m + LANES), order(m) {}

    bool before(Index i, Index j) const {
        return gain[i] > gain[j] || (gain[i] == gain[j] && i < j);
    }
    // Order the first `most` of `size` positions; return how many are to be chosen.
    Index select(Index size, const RowLimits& limits) {
        std::iota(order.begin(), order.begin() + size, Index{0});
        Index count = std::min(limits.most, size);
        const auto compare = [this](Index i, Index j) { return before(i, j); };
        std::partial_sort(order.begin(), order.begin() + count, order.begin() + size, compare);
        while (count > limits.least && !(gain[order[count - 1]] > 0.0)) --count;
        return count;
    }
};

// Choose the labels of a row by their gains, which the model computes; return the improvement.
template <class Model, class T>
double improve_row(const BudgetRows<T>& rows, Index i, const RowLimits& limits, Model& model,
                   Ranking& ranking, std::int8_t* chosen) {
    const Index start = rows.start(i), size = rows.size(i);
    const double infinity = std::numeric_limits<double>::infinity();
    double low = infinity, high = -infinity, before = 0.0;
    Index count = 0;
    for (Index j = 0; j < size; ++j) {
        const Index c = rows.column(start + j, j);
        const double p = rows.data[start + j];
        if (chosen[start + j]) {
            ranking.gain[j] = model.stay_gain(c, p);
            low = std::min(low, ranking.gain[j]);
            before += ranking.gain[j];
            ++count;
        } else {
            ranking.gain[j] = model.add_gain(c, p);
            high = std::max(high, ranking.gain[j]);
        }
    }
    const Index least = std::min(limits.least, size);
    const bool none_enters = high <= low && (high <= 0.0 || count >= limits.most);
    const bool none_leaves = low > 0.0 || count <= least;
    if (none_enters && none_leaves && count >= least && count <= limits.most) return 0.0;
    const Index wanted = ranking.select(size, {least, limits.most});
    double after = 0.0;
    bool changes = count != wanted;
    for (Index k = 0; k < wanted; ++k) {
        after += ranking.gain[ranking.order[k]];
        changes |= !chosen[start + ranking.order[k]];
    }
    if (!changes) return 0.0;
    // Equal gains, up to rounding, keep what is chosen.
    const double improvement = after - before;
    if (count >= least && count <= limits.most &&
        !(improvement > 1e-15 * (std::abs(after) + std::abs(before)))) {
        return 0.0;
    }
    std::sort(ranking.order.begin(), ranking.order.begin() + wanted);
    Index k = 0;
    for (Index j = 0; j < size; ++j) {
        const bool want = k < wanted && ranking.order[k] == j;
        k += want;
        if (want == (chosen[start + j] != 0)) continue;
        chosen[start + j] = want;
        model.change(rows.column(start + j, j), rows.data[start + j], want ? 1.0 : -1.0);
    }
    return improvement;
}

// The gains of adding a dense row to each column, and the largest of them.
template <class T>
double fill_gains(const T* p, Index m, const ApproximateGains& model, double* gain) {
    Lanes top = Lanes{} - std::numeric_limits<double>::infinity();
    Index j = 0;
    for (; j + LANES <= m; j += LANES) {
        const Lanes x = load(p + j);
        const Lanes g = x * (load(&model.a[j]) + x * load(&model.b[j])) - load(&model.loss[j]);
        store(gain + j, g);
        top = g > top ? g : top;
    }
    double most = std::max(std::max(top[0], top[1]), std::max(top[2], top[3]));
    for (; j < m; ++j) {
        gain[j] = model.add_gain(j, p[j]);
        most = std::max(most, gain[j]);
    }
    return most;
}

// The position of the largest gain of adding a dense row, and all gains in `gain`.
template <class T>
Index best_class(const T* p, Index m, const ApproximateGains& model, double* gain) {
    const double most = fill_gains(p, m, model, gain);
    Index j = 0;
    while (j < m - 1 && gain[j] != most) ++j;
    return j;
}

// The same as improve_row for a dense row of one class, which is at `own`.
template <class T>
double improve_class(const T* p, Index m, ApproximateGains& model, double* gain,
                     std::int32_t& own) {
    const double stay = model.stay_gain(own, p[own]);
    const double most = fill_gains(p, m, model, gain);
    if (most <= stay) return 0.0;
    gain[own] = stay;
    Index best = own;
    for (Index j = 0; j < m; ++j) {
        if (gain[j] > gain[best]) best = j;
    }
    const double improvement = gain[best] - stay;
    if (!(improvement > 1e-15 * (std::abs(stay) + std::abs(gain[best])))) return 0.0;
    model.change(own, p[own], -1.0);
    model.change(best, p[best], 1.0);
    own = static_cast<std::int32_t>(best);
    return improvement;
}

// Sum what is chosen of each column.
template <class T>
void add_chosen(const BudgetRows<T>& rows, const std::int8_t* chosen,
                std::vector<BudgetColumn>& columns) {
    for (BudgetColumn& column : columns) column.count = column.mass = column.mass2 = 0.0;
    for (Index i = 0; i < rows.n; ++i) {
        const Index start = rows.start(i);
        for (Index j = 0; j < rows.size(i); ++j) {
            if (!chosen[start + j]) continue;
            BudgetColumn& column = columns[rows.column(start + j, j)];
            const double p = rows.data[start + j];
            column.count += 1.0;
            column.mass += p;
            column.mass2 += p * p;
        }
    }
}

template <class T>
void add_classes(const BudgetRows<T>& rows, const std::int32_t* own,
                 std::vector<BudgetColumn>& columns) {
    for (BudgetColumn& column : columns) column.count = column.mass = column.mass2 = 0.0;
    for (Index i = 0; i < rows.n; ++i) {
        BudgetColumn& column = columns[own[i]];
        const double p = rows.data[i * rows.m + own[i]];
        column.count += 1.0;
        column.mass += p;
        column.mass2 += p * p;
    }
}

// Improve all rows, pass after pass.
template <class Model, class T>
void ascend(const BudgetRows<T>& rows, const RowLimits& limits, Model& model, double least_gain,
            std::int8_t* chosen) {
    Ranking ranking(rows.m);
    for (Index pass = 0; pass < MOST_PASSES; ++pass) {
        double gained = 0.0;
        for (Index i = 0; i < rows.n; ++i) {
            gained += improve_row(rows, i, limits, model, ranking, chosen);
        }
        if (!(std::abs(gained) > least_gain)) break;
    }
}

template <class T>
void ascend_classes(const BudgetRows<T>& rows, double beta2, std::vector<BudgetColumn>& columns,
                    double least_gain, std::int32_t* own) {
    std::vector<double> gain(rows.m + LANES);
    for (Index pass = 0; pass < MOST_PASSES; ++pass) {
        add_classes(rows, own, columns);  // sums without the rounding errors of the last pass
        ApproximateGains model(beta2, columns);
        double gained = 0.0;
        for (Index i = 0; i < rows.n; ++i) {
            gained += improve_class(rows.data + i * rows.m, rows.m, model, gain.data(), own[i]);
        }
        if (!(gained > least_gain)) break;
    }
}

// Weigh the columns, whose sums are known.
//
// `weighted`: by the expected number of rows, instead of equally. Under `nonempty` a column that
// cannot have a row has no weight.
inline void weigh_columns(const Objective& objective, bool weighted,
                          std::vector<BudgetColumn>& columns) {
    double total = 0.0;
    for (const BudgetColumn& column : columns) total += weighted ? column.mean : 1.0;
    for (BudgetColumn& column : columns) {
        const double present = 1.0 - column.none;
        column.weight = total > 0.0 ? (weighted ? column.mean : 1.0) / total : 0.0;
        column.empty = column.weight * objective.zero_division * column.none;
        if (objective.nonempty) {
            column.weight = present > 0.0 ? column.weight / present : 0.0;
            column.empty = 0.0;
        }
    }
}

// The rows of a sample, at equal distances.
template <class T>
std::vector<T> sample_rows(const BudgetRows<T>& rows, Index count) {
    std::vector<T> sample(count * rows.m);
    const Index step = rows.n / count;
    for (Index i = 0; i < count; ++i) {
        const T* row = rows.data + (step / 2 + i * step) * rows.m;
        std::copy(row, row + rows.m, sample.begin() + i * rows.m);
    }
    return sample;
}

// Decide one class for each dense row, from gains slope p - loss.
template <class T>
void decide_classes(const BudgetRows<T>& rows, const Objective& objective, bool weighted,
                    std::span<const double> slope, std::span<const double> loss,
                    std::vector<BudgetColumn>& columns, std::int32_t* own) {
    ApproximateGains start(objective.beta2, columns);
    std::copy(slope.begin(), slope.end(), start.a.begin());
    std::copy(loss.begin(), loss.end(), start.loss.begin());
    std::fill(start.b.begin(), start.b.end(), 0.0);
    std::vector<double> gain(rows.m + LANES);
    const bool is_long = rows.n >= 4 * SAMPLED_ROWS;
    if (is_long) {
        const std::vector<T> values = sample_rows(rows, SAMPLED_ROWS);
        const BudgetRows<T> sample{values.data(), nullptr, nullptr, SAMPLED_ROWS, rows.m};
        std::vector<BudgetColumn> sums(rows.m);
        add_columns(sample, sums);
        weigh_columns(objective, weighted, sums);
        std::vector<std::int32_t> sampled(SAMPLED_ROWS);
        decide_classes(sample, objective, weighted, slope, loss, sums, sampled.data());
        add_classes(sample, sampled.data(), sums);
        const ApproximateGains found(objective.beta2, sums);
        start.a = found.a;
        start.b = found.b;
        start.loss = found.loss;
    }
    for (Index i = 0; i < rows.n; ++i) {
        own[i] = static_cast<std::int32_t>(
            best_class(rows.data + i * rows.m, rows.m, start, gain.data()));
    }
    const double last = is_long ? 100.0 * LAST_GAIN : rows.n > 4096 ? LAST_GAIN : 0.0;
    ascend_classes(rows, objective.beta2, columns, last, own);
}

// Choose the labels of each row, from gains slope p - loss; `fixed` rows of each column are chosen
// beside the entries, with probability 0.
template <class T>
void decide_limited(const BudgetRows<T>& rows, const RowLimits& limits, double beta2,
                    std::span<const double> slope, std::span<const double> loss,
                    std::span<const Index> fixed, std::vector<BudgetColumn>& columns,
                    std::int8_t* chosen) {
    Ranking ranking(rows.m);
    for (Index i = 0; i < rows.n; ++i) {
        const Index start = rows.start(i), size = rows.size(i);
        for (Index j = 0; j < size; ++j) {
            const Index c = rows.column(start + j, j);
            ranking.gain[j] = rows.data[start + j] * slope[c] - loss[c];
            chosen[start + j] = 0;
        }
        const Index count = ranking.select(size, {std::min(limits.least, size), limits.most});
        for (Index k = 0; k < count; ++k) chosen[start + ranking.order[k]] = 1;
    }
    add_chosen(rows, chosen, columns);
    for (std::size_t c = 0; c < columns.size(); ++c) columns[c].count += fixed[c];
    ApproximateGains model(beta2, columns);
    ascend(rows, limits, model, rows.stored() > FEW_ENTRIES ? LAST_GAIN : 0.0, chosen);
}

// Give rows with fewer entries than they need labels of probability 0: those that cost least.
//
// `found` is filled with these labels, row by row.
template <class T>
void fill_rows(const BudgetRows<T>& rows, Index least, ApproximateGains& model,
               std::int32_t* found) {
    std::set<std::pair<double, Index>> cheapest;
    for (Index c = 0; c < rows.m; ++c) cheapest.insert({model.loss[c], c});
    std::vector<Index> in_row(rows.m, -1), picked;
    for (Index i = 0; i < rows.n; ++i) {
        if (rows.size(i) >= least) continue;
        for (Index at = rows.start(i); at < rows.start(i) + rows.size(i); ++at) {
            in_row[rows.label[at]] = i;
        }
        picked.clear();
        for (auto next = cheapest.begin();
             static_cast<Index>(picked.size()) + rows.size(i) < least; ++next) {
            if (in_row[next->second] != i) picked.push_back(next->second);
        }
        for (const Index c : picked) {
            cheapest.erase({model.loss[c], c});
            model.change(c, 0.0, 1.0);
            cheapest.insert({model.loss[c], c});
            *found++ = static_cast<std::int32_t>(c);
        }
    }
}

// Mark the most probable entries of each row: 2 for the first `least`, 1 for the others up to `most`.
template <class T>
void mark_top(const BudgetRows<T>& rows, const RowLimits& limits, std::int8_t* marks) {
    Ranking ranking(rows.m);
    for (Index i = 0; i < rows.n; ++i) {
        const Index start = rows.start(i), size = rows.size(i);
        for (Index j = 0; j < size; ++j) ranking.gain[j] = rows.data[start + j];
        const Index count = std::min(limits.most, size);
        ranking.select(size, {count, count});
        for (Index k = 0; k < count; ++k) {
            marks[start + ranking.order[k]] = k < limits.least ? 2 : 1;
        }
    }
}

// Set the multiplier of each row: between the gains of the last label chosen and of the next one, or
// 0. It is negative only where every choice loses, and then the gain of the last label chosen, though
// not below -`floor`, the smallest loss of a column: a column must not seem to gain from rows of
// probability 0.
template <class T>
void fill_multipliers(const BudgetRows<T>& rows, const RowLimits& limits,
                      const ApproximateGains& model, double floor, double* multiplier) {
    Ranking ranking(rows.m);
    const double infinity = std::numeric_limits<double>::infinity();
    for (Index i = 0; i < rows.n; ++i) {
        const Index start = rows.start(i), size = rows.size(i);
        if (limits.is_one() && !rows.label) {
            const T* p = rows.data + start;
            const Index best = best_class(p, size, model, ranking.gain.data());
            const double first = ranking.gain[best];
            ranking.gain[best] = -infinity;
            double second = -infinity;
            for (Index j = 0; j < size; ++j) second = std::max(second, ranking.gain[j]);
            multiplier[i] = first > 0.0 ? 0.5 * (first + std::max(second, 0.0)) : first;
            continue;
        }
        for (Index j = 0; j < size; ++j) {
            ranking.gain[j] =
                model.add_gain(rows.column(start + j, j), rows.data[start + j]);
        }
        // gain[order[k - 1]] is the k-th largest one
        const Index most = std::min(limits.most + 1, size);
        std::iota(ranking.order.begin(), ranking.order.begin() + size, Index{0});
        std::partial_sort(ranking.order.begin(), ranking.order.begin() + most,
                          ranking.order.begin() + size,
                          [&](Index x, Index y) { return ranking.before(x, y); });
        const auto gain = [&](Index k) {
            return k == 0 ? infinity : k <= size ? ranking.gain[ranking.order[k - 1]] : -infinity;
        };
        const double above = gain(limits.most + 1), below = gain(limits.least);
        double mu = 0.0;
        if (above > 0.0) {
            mu = 0.5 * (above + gain(limits.most));
        } else if (below < 0.0) {
            mu = std::max(below, -floor);
        }
        multiplier[i] = mu;
    }
}

}  // namespace fgfm
