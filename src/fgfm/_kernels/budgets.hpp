// Macro decisions with limits on the number of labels of a row; one class per row is the limits 1, 1.
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

constexpr Index FEW_ENTRIES = 1 << 17;   // problems that are improved by exact expectations
constexpr Index SAMPLED_ROWS = 1 << 14;  // of those that a long problem is started from
constexpr Index MOST_PASSES = 100;       // over the rows
constexpr double NEVER_EMPTY = 45.0;     // expected labels of a column: exp(-45) = 3e-20
constexpr double INFINITE = std::numeric_limits<double>::infinity();

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

    // Call body(position, column, p) for the entries of a row.
    template <class Body>
    void for_row(Index i, Body body) const {
        const Index first = start(i), count = size(i);
        for (Index j = 0; j < count; ++j) {
            body(first + j, column(first + j, j), static_cast<double>(data[first + j]));
        }
    }
};

struct RowLimits {
    Index least, most;
};

// What a column is, and what is chosen of it.
struct BudgetColumn {
    double mean = 0.0, squares = 0.0;             // sums of p and p^2
    double none = 1.0;                            // probability that no row has the label
    double present = 0.0;                         // 1 - none, without cancellation; 1 if not `nonempty`
    double weight = 0.0, empty = 0.0;             // weight of E[F], and the weighted value of no choice
    double count = 0.0, mass = 0.0, mass2 = 0.0;  // number, p and p^2 of the chosen rows

    void choose(double p, double number = 1.0) {
        count += number;
        const bool any = count > 0.0;
        mass = any ? std::max(0.0, mass + number * p) : 0.0;
        mass2 = any ? std::max(0.0, mass2 + number * p * p) : 0.0;
    }
};

using Columns = std::vector<BudgetColumn>;

// A gain p (a + p b) - loss of one column.
struct Gain {
    double a, b, loss;
};

// Gains by two terms of the expectation: of adding a row, and of a chosen row, compared to removing it.
inline std::pair<Gain, Gain> approximate_gains(double beta2, const BudgetColumn& column) {
    const double scale = column.weight * (1.0 + beta2);
    const double q = beta2 * beta2 * (column.mean - column.squares);
    const double k = column.count, x = beta2 * (1.0 + column.mean) + k;
    const double here = 1.0 / (k > 0.0 ? x : x + 1.0), next = 1.0 / (x + 1.0);
    const double last = k > 1.0 ? 1.0 / (x - 1.0) : here;
    // What the chosen rows lose from x = 1 / s to x + 1 = 1 / t
    const auto lost = [&](double s, double t) {
        const double first = 1.0 + q * (s * s + s * t + t * t);
        const double second = beta2 * (s + t) * (1.0 + q * (s * s + t * t));
        return scale * s * t * (column.mass * first + column.mass2 * second);
    };
    const auto gain = [&](double r, double loss) {
        const double a = scale * r * (1.0 + q * r * r);
        return Gain{a, beta2 * a * r, loss};
    };
    return {gain(next, k > 0.0 ? lost(here, next) : column.empty),
            gain(last, k > 1.0 ? lost(last, here) : column.empty)};
}

// Such gains of all columns.
struct GainTable {
    std::vector<double> a, b, loss;

    explicit GainTable(std::size_t m) : a(m), b(m), loss(m) {}
    double operator()(Index c, double p) const { return p * (a[c] + p * b[c]) - loss[c]; }
    void set(Index c, const Gain& gain) {
        a[c] = gain.a;
        b[c] = gain.b;
        loss[c] = gain.loss;
    }
};

struct ApproximateGains {
    double beta2;
    Columns& columns;
    GainTable add, stay;

    ApproximateGains(double beta2, Columns& columns)
        : beta2(beta2), columns(columns), add(columns.size()), stay(columns.size()) {
        for (std::size_t c = 0; c < columns.size(); ++c) refresh(c);
    }
    double gain(Index c, double p, bool chosen) const { return chosen ? stay(c, p) : add(c, p); }
    void change(Index c, double p, double number) {
        columns[c].choose(p, number);
        refresh(c);
    }
    void refresh(Index c) {
        const auto [added, stays] = approximate_gains(beta2, columns[c]);
        add.set(c, added);
        stay.set(c, stays);
    }
};

// Gains by the exact expectation: the nodes of one rule for all columns.
struct ExactGains {
    Columns& columns;
    Nodes nodes;
    // (m, nodes): what multiplies z^k A(u) in the value, A(u) of the chosen rows, and z^k
    std::vector<double> factor, total, power;
    std::vector<double> add_loss, stay_loss;

    template <class T>
    ExactGains(const BudgetRows<T>& rows, double beta2, const Rules& rules, Columns& columns,
               const std::int8_t* chosen)
        : columns(columns), nodes(rules), factor(columns.size() * padded(rules.longest), 1.0),
          total(factor.size()), power(factor.size()), add_loss(columns.size()),
          stay_loss(columns.size()) {
        nodes.load(rules, beta2, beta2 + 1.0, beta2 * rows.n + rows.n + 1.0);
        const Index R = nodes.count;
        for (Index i = 0; i < rows.n; ++i) {
            rows.for_row(i, [&](Index at, Index c, double p) {
                for (Index r = 0; r < R; ++r) {
                    factor[c * R + r] *= 1.0 - p * nodes.u[r];
                    if (chosen[at]) total[c * R + r] += p / (1.0 - p * nodes.u[r]);
                }
            });
        }
        for (Index c = 0; c < rows.m; ++c) {
            for (Index r = 0; r < R; ++r) {
                factor[c * R + r] *=
                    columns[c].weight * (1.0 + beta2) * nodes.weight[r] * nodes.zeta[r];
            }
            refresh(c);
        }
    }
    double gain(Index c, double p, bool chosen) const {
        const Index R = nodes.count;
        const bool last = chosen && columns[c].count <= 1.0;
        double slope = 0.0;  // the coefficient of p for a set of one row more, or as many
        for (Index r = 0; r < R; ++r) {
            const double term = factor[c * R + r] * power[c * R + r] / (1.0 - p * nodes.u[r]);
            slope += last ? term : chosen ? term / nodes.z[r] : term * nodes.z[r];
        }
        return p * slope - (chosen ? stay_loss[c] : add_loss[c]);
    }
    void change(Index c, double p, double number) {
        columns[c].choose(p, number);
        for (Index r = 0; r < nodes.count; ++r) {
            double& sum = total[c * nodes.count + r];
            sum = columns[c].count > 0.0 ? sum + number * p / (1.0 - p * nodes.u[r]) : 0.0;
        }
        refresh(c);
    }

private:
    void refresh(Index c) {
        const Index R = nodes.count;
        double value = 0.0, next = 0.0, last = 0.0;
        for (Index r = 0; r < R; ++r) {
            power[c * R + r] = std::exp(columns[c].count * nodes.log_z[r]);
            const double term = factor[c * R + r] * power[c * R + r] * total[c * R + r];
            value += term;
            next += term * nodes.z[r];
            last += term / nodes.z[r];
        }
        add_loss[c] = columns[c].count > 0.0 ? value - next : columns[c].empty;
        stay_loss[c] = columns[c].count > 1.0 ? last - value : columns[c].empty;
    }
};

// Sum the columns; return false if a value is outside [0, 1], or if the sum of a row is farther from 1
// than a tolerance.
template <class T>
bool add_columns(const BudgetRows<T>& rows, double tolerance, Columns& columns) {
    bool some_empty = false, valid = true;
    std::vector<double> mean(columns.size()), squares(columns.size());
    for (Index i = 0; i < rows.n; ++i) {
        double total = 0.0, least = 0.0, most = 0.0;
        rows.for_row(i, [&](Index, Index c, double p) {
            mean[c] += p;
            squares[c] += p * p;
            total += p;
            least = p >= least ? least : -1.0;  // NaN too
            most = p > most ? p : most;
        });
        valid &= least == 0.0 && most <= 1.0 &&
                 (tolerance == INFINITE || std::abs(total - 1.0) <= tolerance);
    }
    for (std::size_t c = 0; c < columns.size(); ++c) {
        columns[c].mean = mean[c];
        columns[c].squares = squares[c];
    }
    for (BudgetColumn& column : columns) {
        const bool may_be_empty = column.mean < NEVER_EMPTY;
        column.none = may_be_empty ? 1.0 : 0.0;
        column.present = may_be_empty ? 0.0 : 1.0;
        some_empty |= may_be_empty;
    }
    for (Index i = 0; valid && some_empty && i < rows.n; ++i) {
        rows.for_row(i, [&](Index, Index c, double p) {
            columns[c].present += (1.0 - columns[c].present) * p;  // a sum: small p keep their digits
            columns[c].none *= 1.0 - p;
        });
    }
    return valid;
}

// Weigh the columns, whose sums are known.
//
// `weighted`: by the expected number of rows, instead of equally. Under `nonempty` a column that
// cannot have a row has no weight.
inline void weigh_columns(const Objective& objective, bool weighted, Columns& columns) {
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

// Positions of a row in descending order of gain, then of position.
struct Ranking {
    std::vector<double> gain;
    std::vector<Index> order;

    explicit Ranking(Index m) : gain(m), order(m + 2) {}

    // Order the first `count` of `size` positions.
    void rank(Index size, Index count) {
        if (count <= 2) {  // without branches
            double first = -INFINITE, second = -INFINITE;
            Index best = 0, next = 0;
            for (Index j = 0; j < size; ++j) {
                const double x = gain[j];
                const bool leads = x > first, follows = x > second;
                next = leads ? best : follows ? j : next;
                second = leads ? first : follows ? x : second;
                best = leads ? j : best;
                first = leads ? x : first;
            }
            order[0] = best;
            order[1] = next;
            return;
        }
        std::iota(order.begin(), order.begin() + size, Index{0});
        std::partial_sort(order.begin(), order.begin() + count, order.begin() + size,
                          [this](Index i, Index j) {
                              return gain[i] > gain[j] || (gain[i] == gain[j] && i < j);
                          });
    }
    // Order the best positions; return how many are to be chosen.
    Index select(Index size, const RowLimits& limits) {
        Index count = std::min(limits.most, size);
        rank(size, count);
        while (count > limits.least && !(gain[order[count - 1]] > 0.0)) --count;
        return count;
    }
    // The k-th largest gain.
    double at(Index k, Index size) const {
        return k == 0 ? INFINITE : k <= size ? gain[order[k - 1]] : -INFINITE;
    }
};

// Of a row: the least gain of a chosen entry, the largest of another one, and how many are chosen.
struct RowGains {
    double low = INFINITE, high = -INFINITE;
    Index count = 0;

    void add(double gain, bool chosen) {
        if (chosen) {
            low = std::min(low, gain);
            ++count;
        } else {
            high = std::max(high, gain);
        }
    }
};

template <class Model, class T>
RowGains fill_gains(const BudgetRows<T>& rows, Index i, const Model& model,
                    const std::int8_t* chosen, double* gain) {
    RowGains result;
    rows.for_row(i, [&](Index at, Index c, double p) {
        *gain = model.gain(c, p, chosen[at]);
        result.add(*gain++, chosen[at]);
    });
    return result;
}

// The gains of adding each entry of a row.
template <class T>
void fill_gains(const BudgetRows<T>& rows, Index i, const GainTable& add, double* gain) {
    if (rows.label || rows.m < LANES) {
        rows.for_row(i, [&](Index, Index c, double p) { *gain++ = add(c, p); });
        return;
    }
    const T* p = rows.data + i * rows.m;
    for (Index next = 0; next < rows.m; next += LANES) {
        const Index j = std::min(next, rows.m - LANES);  // the last ones, with some of those before
        const Lanes x = load(p + j);
        store(gain + j, x * (load(&add.a[j]) + x * load(&add.b[j])) - load(&add.loss[j]));
    }
}

template <class T>
RowGains fill_gains(const BudgetRows<T>& rows, Index i, const ApproximateGains& model,
                    const std::int8_t* chosen, double* gain) {
    if (rows.label || rows.m < LANES) {
        return fill_gains<ApproximateGains, T>(rows, i, model, chosen, gain);
    }
    const T* p = rows.data + i * rows.m;
    const std::int8_t* mark = chosen + i * rows.m;
    const GainTable &add = model.add, &stay = model.stay;
    Lanes low = Lanes{} + INFINITE, high = -low;
    for (Index next = 0; next < rows.m; next += LANES) {
        const Index j = std::min(next, rows.m - LANES);
        typedef std::int8_t Marks __attribute__((vector_size(LANES)));
        Marks marks;
        std::memcpy(&marks, mark + j, sizeof marks);
        const auto in = __builtin_convertvector(marks, Lanes) > Lanes{};
        const auto of = [&](const std::vector<double>& stays, const std::vector<double>& added) {
            return in ? load(&stays[j]) : load(&added[j]);
        };
        const Lanes x = load(p + j);
        const Lanes g = x * (of(stay.a, add.a) + x * of(stay.b, add.b)) - of(stay.loss, add.loss);
        store(gain + j, g);
        low = in & (g < low) ? g : low;
        high = ~in & (g > high) ? g : high;
    }
    RowGains result;
    for (Index l = 0; l < LANES; ++l) {
        result.low = std::min(result.low, low[l]);
        result.high = std::max(result.high, high[l]);
    }
    for (Index j = 0; j < rows.m; ++j) result.count += mark[j];
    return result;
}

// Choose the labels of a row by their gains, which the model computes; return the improvement.
template <class Model, class T>
double improve_row(const BudgetRows<T>& rows, Index i, const RowLimits& limits, Model& model,
                   Ranking& ranking, std::int8_t* chosen) {
    const Index start = rows.start(i), size = rows.size(i), least = std::min(limits.least, size);
    const auto [low, high, count] = fill_gains(rows, i, model, chosen, ranking.gain.data());
    const bool none_enters = high <= low && (high <= 0.0 || count >= limits.most);
    const bool none_leaves = low > 0.0 || count <= least;
    const bool feasible = count >= least && count <= limits.most;
    if (none_enters && none_leaves && feasible) return 0.0;
    const Index wanted = ranking.select(size, {least, limits.most});
    double before = 0.0, after = 0.0;
    for (Index j = 0; j < size; ++j) before += chosen[start + j] ? ranking.gain[j] : 0.0;
    for (Index k = 0; k < wanted; ++k) after += ranking.gain[ranking.order[k]];
    // Equal gains, up to rounding, keep what is chosen.
    const double improvement = after - before;
    if (feasible && !(improvement > 1e-15 * (std::abs(after) + std::abs(before)))) return 0.0;
    for (Index k = 0; k < wanted; ++k) chosen[start + ranking.order[k]] += 2;
    rows.for_row(i, [&](Index at, Index c, double p) {  // 1: leaves, 2: enters, 3: stays
        if (chosen[at] == 1) model.change(c, p, -1.0);
        if (chosen[at] == 2) model.change(c, p, 1.0);
        chosen[at] = chosen[at] > 1;
    });
    return improvement;
}

// Improve all rows, pass after pass.
template <class Model, class T>
void ascend(const BudgetRows<T>& rows, const RowLimits& limits, Model&& model, double least_gain,
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

// Decide from given gains of the columns, then ascend; `columns` have their sums and weights.
//
// Very many rows are decided by the gains that result from a sample of them.
template <class T>
void decide_rows(const BudgetRows<T>& rows, const RowLimits& limits, double beta2, GainTable gains,
                 Columns& columns, std::int8_t* chosen) {
    if (!rows.label && rows.n >= 4 * SAMPLED_ROWS) {
        const Index step = rows.n / SAMPLED_ROWS;
        std::vector<T> values;
        for (Index i = 0; i < SAMPLED_ROWS; ++i) {
            const T* row = rows.data + (step / 2 + i * step) * rows.m;
            values.insert(values.end(), row, row + rows.m);
        }
        const BudgetRows<T> sample{values.data(), nullptr, nullptr, SAMPLED_ROWS, rows.m};
        const double number = static_cast<double>(rows.n) / SAMPLED_ROWS;
        Columns sums = columns;
        for (BudgetColumn& column : sums) column.mean /= number, column.squares /= number;
        decide_rows(sample, limits, beta2, std::move(gains), sums, chosen);
        for (std::size_t c = 0; c < columns.size(); ++c) {
            sums[c].mean = columns[c].mean;
            sums[c].squares = columns[c].squares;
            sums[c].count *= number;
            sums[c].mass *= number;
            sums[c].mass2 *= number;
        }
        gains = ApproximateGains(beta2, sums).add;
    }
    Ranking ranking(rows.m);
    for (Index i = 0; i < rows.n; ++i) {
        const Index start = rows.start(i), size = rows.size(i);
        fill_gains(rows, i, gains, ranking.gain.data());
        std::fill_n(chosen + start, size, std::int8_t{0});
        const Index count = ranking.select(size, {std::min(limits.least, size), limits.most});
        for (Index k = 0; k < count; ++k) {
            const Index at = start + ranking.order[k];
            columns[rows.column(at, ranking.order[k])].choose(rows.data[at]);
            chosen[at] = 1;
        }
    }
    const double least_gain = rows.n >= 4 * SAMPLED_ROWS ? 5e-5 : rows.n >= SAMPLED_ROWS ? 1e-6 : rows.stored() > FEW_ENTRIES ? 1e-8 : 0.0;
    ascend(rows, limits, ApproximateGains(beta2, columns), least_gain, chosen);
}

// Give rows with fewer entries than they need labels of probability 0: those that cost least.
//
// `found` is filled with these labels, row by row.
template <class T>
void fill_rows(const BudgetRows<T>& rows, Index least, ApproximateGains& model,
               std::int32_t* found) {
    const std::vector<double>& loss = model.add.loss;
    std::set<std::pair<double, Index>> cheapest;
    for (Index c = 0; c < rows.m; ++c) cheapest.insert({loss[c], c});
    std::vector<Index> in_row(rows.m, -1), picked;
    for (Index i = 0; i < rows.n; ++i) {
        if (rows.size(i) >= least) continue;
        rows.for_row(i, [&](Index, Index c, double) { in_row[c] = i; });
        picked.clear();
        for (auto next = cheapest.begin();
             static_cast<Index>(picked.size()) + rows.size(i) < least; ++next) {
            if (in_row[next->second] != i) picked.push_back(next->second);
        }
        for (const Index c : picked) {
            cheapest.erase({loss[c], c});
            model.change(c, 0.0, 1.0);
            cheapest.insert({loss[c], c});
            *found++ = static_cast<std::int32_t>(c);
        }
    }
}

// Set the multiplier of each row: between the gains of the last label chosen and of the next one, or
// 0. It is negative only where every choice loses, and then the gain of the last label chosen, though
// not below minus the smallest loss of a column: a column must not seem to gain from rows of
// probability 0.
template <class T>
void fill_multipliers(const BudgetRows<T>& rows, const RowLimits& limits, const GainTable& gains,
                      double* multiplier) {
    Ranking ranking(rows.m);
    const double lowest = rows.m ? -*std::min_element(gains.loss.begin(), gains.loss.end()) : 0.0;
    for (Index i = 0; i < rows.n; ++i) {
        const Index size = rows.size(i);
        fill_gains(rows, i, gains, ranking.gain.data());
        ranking.rank(size, std::min(limits.most + 1, size));
        const double above = ranking.at(limits.most + 1, size), below = ranking.at(limits.least, size);
        double mu = 0.0;
        if (above > 0.0) {
            mu = 0.5 * (above + ranking.at(limits.most, size));
        } else if (below < 0.0) {
            mu = std::max(below, lowest);
        } else if (limits.least == limits.most) {
            mu = 0.5 * below;
        }
        multiplier[i] = mu;
    }
}

// Decide rows by ascent from given gains; fill in the multipliers of the rows, and in `filled` the
// labels of rows with fewer entries than `least`. Returns false if the rows are not valid.
template <class T>
bool decide_budget(const BudgetRows<T>& rows, double tolerance, const Objective& objective,
                   const Rules& rules, bool weighted, const RowLimits& limits, GainTable gains,
                   std::int8_t* chosen, double* multiplier, Columns& columns,
                   std::span<std::int32_t> filled) {
    const double beta2 = objective.beta2;
    if (!add_columns(rows, tolerance, columns)) return false;
    weigh_columns(objective, weighted, columns);
    decide_rows(rows, limits, beta2, std::move(gains), columns, chosen);
    if (!filled.empty()) {
        ApproximateGains model(beta2, columns);
        fill_rows(rows, limits.least, model, filled.data());
        ascend(rows, limits, model, 1e-8, chosen);
    }
    if (rows.stored() <= FEW_ENTRIES && rows.m <= FEW_ENTRIES / 8) {
        ascend(rows, limits, ExactGains(rows, beta2, rules, columns, chosen), 0.0, chosen);
    }
    fill_multipliers(rows, limits, ApproximateGains(beta2, columns).add, multiplier);
    return true;
}

// Mark the most probable entries of each row: 2 for the first `least`, 1 for the others up to `most`.
inline void mark_top(const double* data, std::span<const Index> indptr, const RowLimits& limits,
                     std::int8_t* marks) {
    Ranking ranking(0);
    for (Index i = 0; i + 1 < length(indptr); ++i) {
        const Index size = indptr[i + 1] - indptr[i], count = std::min(limits.most, size);
        ranking.gain.assign(data + indptr[i], data + indptr[i + 1]);
        ranking.order.resize(size + 2);
        ranking.rank(size, count);
        for (Index k = 0; k < count; ++k) {
            marks[indptr[i] + ranking.order[k]] = k < limits.least ? 2 : 1;
        }
    }
}

}  // namespace fgfm
