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
#include "power_sums.hpp"
#include "transpose.hpp"

namespace fgfm {

constexpr Index FEW_ENTRIES = 1 << 17;     // problems that are improved by exact expectations
constexpr Index SAMPLED_ROWS = 1 << 14;    // of those that a long problem is started from
constexpr Index MOST_PASSES = 100;         // over the rows
constexpr double NEVER_EMPTY = 45.0;       // expected labels of a column: exp(-45) = 3e-20
constexpr Index MOST_SCANS = 4;            // over very many rows
constexpr double LAST_GAIN = 1e-8;         // of a pass over a long problem
constexpr double LAST_GAIN_OF_MANY = 1e-6;  // over very many rows

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
};

// What a column is, and what is chosen of it.
struct BudgetColumn {
    double mean = 0.0, squares = 0.0;           // sums of p and p^2
    double none = 1.0;                          // probability that no row has the label
    double weight = 0.0, empty = 0.0;           // weight of E[F], and the weighted value of no choice
    double count = 0.0, mass = 0.0, mass2 = 0.0;  // number, p and p^2 of the chosen rows
    double cubes = 0.0, fourths = 0.0;          // sums of p^3 and p^4
    double mass3 = 0.0, mass4 = 0.0;            // of the chosen rows
    double cost = 0.0;                          // sum of the multipliers of the chosen rows
    double present = 0.0;                       // 1 - none, without cancellation; 1 if not `nonempty`

    // The weighted value of an F of 1; `weight` is divided by `present` under `nonempty`.
    double value_of_one() const { return weight * present; }

    void choose(double p) {
        count += 1.0;
        mass += p;
        mass2 += p * p;
        mass3 += p * p * p;
        mass4 += (p * p) * (p * p);
    }
    void clear() { count = mass = mass2 = mass3 = mass4 = cost = 0.0; }
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
        refresh();
    }

    void refresh() {
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

// Call body(start, count, block, step) for all dense rows, some at a time: `block` holds the columns
// [first, last) of the rows [start, start + count), column after column, `step` values apart. It is
// filled up with rows of zeros to whole lanes. The body returns false to stop.
template <class T, class Body>
void for_blocks(const BudgetRows<T>& rows, Index first, Index last, Body body) {
    // It does not depend on the columns that a thread reads: sums have the same bits.
    const Index step = std::clamp<Index>(2048 / (rows.m + 1), LANES, 128) / LANES * LANES;
    std::vector<T> block(step * (last - first));
    for (Index start = 0; start < rows.n; start += step) {
        const Index count = std::min(step, rows.n - start);
        if (count < step) std::fill(block.begin(), block.end(), T{0});
        transpose(Strided<const T>{rows.data + start * rows.m + first, count, last - first, rows.m, 1},
                  Strided<T>{block.data(), last - first, count, step, 1});
        if (!body(start, count, block.data(), step)) return;
    }
}

// Sums of the columns of dense rows, and whether the rows are valid.
struct ColumnSums {
    std::vector<LanePowers<4>> powers;
    double tolerance;  // of the sum of a row, which is 1

    ColumnSums(Index m, double tolerance) : powers(m), tolerance(tolerance) {}

    // Add a block; return false if a value is outside [0, 1], or the sum of a row is not 1.
    template <class T>
    bool add(Index count, const T* block, Index step) {
        const Lanes none = {}, one = none + 1.0;
        Lanes least = none, most = none;
        Lanes total[128 / LANES] = {};
        for (std::size_t c = 0; c < powers.size(); ++c) {
            LanePowers<4> sums = powers[c];
            for (Index r = 0; r < count; r += LANES) {
                const Lanes x = load(block + c * step + r);
                sums.add(x);
                total[r / LANES] += x;
                least = x >= least ? least : none - 1.0;  // NaN too
                most = x > most ? x : most;
            }
            powers[c] = sums;
        }
        for (Index r = 0; r < count; ++r) {
            const double error = std::abs(total[r / LANES][r % LANES] - 1.0);
            if (!(error <= tolerance)) return false;
        }
        const auto wrong = (least < none) | (most > one);
        return !(wrong[0] | wrong[1] | wrong[2] | wrong[3]);
    }
    void write(std::vector<BudgetColumn>& columns) const {
        for (std::size_t c = 0; c < columns.size(); ++c) {
            const Lanes* sum = powers[c].sum;
            columns[c].mean = add_lanes(sum[0]);
            columns[c].squares = add_lanes(sum[1]);
            columns[c].cubes = add_lanes(sum[2]);
            columns[c].fourths = add_lanes(sum[3]);
        }
    }
};

// Compute the probability that no row has the label, for the columns whose sums are known.
template <class T>
void add_none(const BudgetRows<T>& rows, std::vector<BudgetColumn>& columns) {
    bool some_empty = false;
    for (BudgetColumn& column : columns) {
        column.none = column.mean < NEVER_EMPTY ? 1.0 : 0.0;
        column.present = 0.0;
        some_empty |= column.mean < NEVER_EMPTY;
    }
    for (Index i = 0; some_empty && i < rows.n; ++i) {
        const Index start = rows.start(i);
        for (Index j = 0; j < rows.size(i); ++j) {
            BudgetColumn& column = columns[rows.column(start + j, j)];
            const double p = rows.data[start + j];
            column.present += (1.0 - column.present) * p;  // a sum: small p keep their digits
            column.none *= 1.0 - p;
        }
    }
    for (BudgetColumn& column : columns) {
        if (column.mean >= NEVER_EMPTY) column.present = 1.0;
    }
}

// Sum the columns; return false if a value is outside [0, 1], or the sum of a row is not 1.
template <class T>
bool add_columns(const BudgetRows<T>& rows, double tolerance, std::vector<BudgetColumn>& columns) {
    bool valid = true;
    if (rows.label) {
        for (Index at = 0; at < rows.stored(); ++at) {
            const double x = rows.data[at];
            columns[rows.label[at]].mean += x;
            columns[rows.label[at]].squares += x * x;
            valid &= x >= 0.0 && x <= 1.0;
        }
    } else {
        ColumnSums sums(rows.m, tolerance);
        for_blocks(rows, 0, rows.m, [&](Index, Index count, const T* block, Index step) {
            return valid = sums.add(count, block, step);
        });
        sums.write(columns);
    }
    if (valid) add_none(rows, columns);
    return valid;
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

// Choose the class of the largest gain for each dense row of a block, and the multiplier of the row:
// between its two largest gains, or the largest one if it is negative.
template <class T>
void choose_classes(Index count, const T* block, Index step, const ApproximateGains& model,
                    std::int32_t* own, double* multiplier) {
    const Lanes none = {}, lowest = none - std::numeric_limits<double>::infinity();
    for (Index r = 0; r < count; r += LANES) {
        Lanes first = lowest, second = lowest, place = none;
        for (std::size_t c = 0; c < model.stay.size(); ++c) {
            const Lanes x = load(block + c * step + r);
            const Lanes gain = x * (model.a[c] + x * model.b[c]) - model.loss[c];
            const auto better = gain > first;
            const Lanes other = better ? first : gain;
            second = other > second ? other : second;
            first = better ? gain : first;
            place = better ? none + static_cast<double>(c) : place;
        }
        second = second > none ? second : none;
        const Lanes mu = first > none ? 0.5 * (first + second) : first;
        for (Index l = 0; l < std::min(LANES, count - r); ++l) {
            if (own) own[r + l] = static_cast<std::int32_t>(place[l]);
            if (multiplier) multiplier[r + l] = mu[l];
        }
    }
}

template <class T>
void choose_classes(const BudgetRows<T>& rows, const ApproximateGains& model, std::int32_t* own,
                    double* multiplier) {
    for_blocks(rows, 0, rows.m, [&](Index start, Index count, const T* block, Index step) {
        choose_classes(count, block, step, model, own ? own + start : nullptr,
                       multiplier ? multiplier + start : nullptr);
        return true;
    });
}

// The same as improve_row for a dense row of one class, which is at `own`; it stands for `number` rows.
template <class T>
double improve_class(const T* p, Index m, double number, ApproximateGains& model, double* gain,
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
    model.change(own, p[own], -number);
    model.change(best, p[best], number);
    own = static_cast<std::int32_t>(best);
    return number * improvement;
}

// Sum what is chosen of each column.
template <class T>
void add_chosen(const BudgetRows<T>& rows, const std::int8_t* chosen,
                std::vector<BudgetColumn>& columns) {
    for (BudgetColumn& column : columns) column.clear();
    for (Index i = 0; i < rows.n; ++i) {
        const Index start = rows.start(i);
        for (Index j = 0; j < rows.size(i); ++j) {
            if (chosen[start + j]) columns[rows.column(start + j, j)].choose(rows.data[start + j]);
        }
    }
}

template <class T>
void add_classes(const BudgetRows<T>& rows, const std::int32_t* own,
                 std::vector<BudgetColumn>& columns) {
    for (BudgetColumn& column : columns) column.clear();
    for (Index i = 0; i < rows.n; ++i) columns[own[i]].choose(rows.data[i * rows.m + own[i]]);
}

// Sum what is chosen, and set the multipliers of the rows.
template <class T>
void finish_classes(const BudgetRows<T>& rows, double beta2, const std::int32_t* own,
                    std::vector<BudgetColumn>& columns, double* multiplier) {
    add_classes(rows, own, columns);
    choose_classes(rows, ApproximateGains(beta2, columns), nullptr, multiplier);
    for (Index i = 0; i < rows.n; ++i) columns[own[i]].cost += multiplier[i];
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

// Improve rows that stand for `number` rows each; return what the first pass gained.
template <class T>
double ascend_classes(const BudgetRows<T>& rows, double number, ApproximateGains& model,
                      double least_gain, std::int32_t* own) {
    std::vector<double> gain(rows.m + LANES);
    double first = 0.0;
    for (Index pass = 0; pass < MOST_PASSES; ++pass) {
        double gained = 0.0;
        for (Index i = 0; i < rows.n; ++i) {
            gained += improve_class(rows.data + i * rows.m, rows.m, number, model, gain.data(),
                                    own[i]);
        }
        if (pass == 0) first = gained;
        if (!(gained > least_gain)) break;
    }
    return first;
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
        column.weight = total > 0.0 ? (weighted ? column.mean : 1.0) / total : 0.0;
        column.empty = column.weight * objective.zero_division * column.none;
        if (objective.nonempty) {
            column.weight = column.present > 0.0 ? column.weight / column.present : 0.0;
            column.empty = 0.0;
        } else {
            column.present = 1.0;
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

// Decide one class for each dense row, from gains slope p - loss. Returns false if a value is outside
// [0, 1], or the sum of a row is not 1.
template <class T>
bool decide_classes(const BudgetRows<T>& rows, const Objective& objective, double tolerance,
                    std::span<const double> slope, std::span<const double> loss,
                    std::vector<BudgetColumn>& columns, std::int32_t* own, double* multiplier) {
    const double beta2 = objective.beta2;
    if (rows.n >= 4 * SAMPLED_ROWS) {
        return decide_many(rows, objective, tolerance, slope, loss, columns, own, multiplier);
    }
    if (!add_columns(rows, tolerance, columns)) return false;
    weigh_columns(objective, false, columns);
    ApproximateGains start(beta2, columns);
    std::copy(slope.begin(), slope.end(), start.a.begin());
    std::copy(loss.begin(), loss.end(), start.loss.begin());
    std::fill(start.b.begin(), start.b.end(), 0.0);
    choose_classes(rows, start, own, multiplier);
    add_classes(rows, own, columns);
    ApproximateGains model(beta2, columns);
    ascend_classes(rows, 1.0, model, rows.n > 4096 ? LAST_GAIN : 0.0, own);
    finish_classes(rows, beta2, own, columns, multiplier);
    return true;
}

// The same for very many rows. Those of a sample are decided first, and all rows by the gains that
// result. The sample then stands for changes of that decision, which all rows follow, until it gains
// no more.
template <class T>
bool decide_many(const BudgetRows<T>& rows, const Objective& objective, double tolerance,
                 std::span<const double> slope, std::span<const double> loss,
                 std::vector<BudgetColumn>& columns, std::int32_t* own, double* multiplier) {
    const double beta2 = objective.beta2, number = static_cast<double>(rows.n) / SAMPLED_ROWS;
    const std::vector<T> values = sample_rows(rows, SAMPLED_ROWS);
    const BudgetRows<T> sample{values.data(), nullptr, nullptr, SAMPLED_ROWS, rows.m};
    std::vector<std::int32_t> sampled(SAMPLED_ROWS);
    std::vector<BudgetColumn> sums(rows.m);
    if (!decide_classes(sample, objective, tolerance, slope, loss, sums, sampled.data(), multiplier)) {
        return false;
    }
    ApproximateGains model(beta2, sums);
    ColumnSums all(rows.m, tolerance);
    for (Index pass = 0; pass < MOST_SCANS; ++pass) {
        bool valid = true;
        for (BudgetColumn& column : columns) column.clear();
        for_blocks(rows, 0, rows.m, [&](Index start, Index count, const T* block, Index step) {
            if (pass == 0 && !all.add(count, block, step)) return valid = false;
            choose_classes(count, block, step, model, own + start, multiplier + start);
            for (Index r = 0; r < count; ++r) {
                BudgetColumn& column = columns[own[start + r]];
                column.choose(block[own[start + r] * step + r]);
                column.cost += multiplier[start + r];
            }
            return true;
        });
        if (!valid) return false;
        if (pass == 0) {
            all.write(columns);
            add_none(rows, columns);
            weigh_columns(objective, false, columns);
        }
        choose_classes(sample, model, sampled.data(), nullptr);
        sums = columns;
        model.refresh();
        const double gained =
            ascend_classes(sample, number, model, LAST_GAIN_OF_MANY, sampled.data());
        if (pass > 0 && gained <= LAST_GAIN_OF_MANY) return true;
    }
    // Gains do not tell equal rows apart: they are decided one after the other.
    sums = columns;
    model.refresh();
    ascend_classes(rows, 1.0, model, LAST_GAIN_OF_MANY, own);
    finish_classes(rows, beta2, own, columns, multiplier);
    return true;
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
        } else if (limits.least == limits.most) {
            mu = 0.5 * below;
        }
        multiplier[i] = mu;
    }
}

}  // namespace fgfm
