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
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "constants.hpp"
#include "quadrature.hpp"

namespace fgfm {

constexpr Index FEW_ENTRIES = 1 << 17;  // problems that are improved by exact expectations
constexpr Index MANY_ROWS = 1 << 14;    // end where the gains of a pass are small
constexpr Index MOST_PASSES = 100;      // over the rows
constexpr double NEVER_EMPTY = 45.0;    // expected labels of a column: exp(-45) = 3e-20
constexpr double INFINITE = std::numeric_limits<double>::infinity();

// The entries of n rows and m columns, row by row: the labels of all entries, or none if every row
// has all columns.
template <class T>
struct BudgetRows {
    const T* data;
    const std::int32_t* label;
    const Index* indptr;
    Index n, m;

    Index size(Index i) const { return indptr[i + 1] - indptr[i]; }
    Index column(Index at, Index j) const { return label ? label[at] : j; }

    // Call body(position, column, p) for the entries of a row.
    template <class Body>
    void for_row(Index i, Body body) const {
        const Index first = indptr[i], count = size(i);
        for (Index j = 0; j < count; ++j) {
            body(first + j, column(first + j, j), static_cast<double>(data[first + j]));
        }
    }
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
        mass = count > 0.0 ? std::max(0.0, mass + number * p) : 0.0;
        mass2 = count > 0.0 ? std::max(0.0, mass2 + number * p * p) : 0.0;
    }
};

using Columns = std::vector<BudgetColumn>;

// What is maximised.
struct BudgetTask {
    Objective objective;
    const Rules& rules;
    Index least, most;  // labels of a row
    bool weighted;      // columns by their expected number of rows, instead of equally
};

// A gain p (a + p b) - loss of each column, and room for vectors behind the last one.
struct GainTable {
    std::vector<double> a, b, loss;

    explicit GainTable(std::size_t m) : a(m + LANES), b(m + LANES), loss(m + LANES, INFINITE) {}
    double operator()(Index c, double p) const { return p * (a[c] + p * b[c]) - loss[c]; }
};

// Fill in the gains of the entries of a row, of chosen ones by `stay`.
template <class T>
void fill_gains(const BudgetRows<T>& rows, Index i, const GainTable& add, const GainTable& stay,
                const std::int8_t* chosen, double* gain) {
    const Index start = rows.indptr[i];
    if (rows.label || start + padded(rows.m) > rows.indptr[rows.n]) {
        rows.for_row(i, [&](Index at, Index c, double p) { *gain++ = (chosen[at] ? stay : add)(c, p); });
        return;
    }
    typedef std::int8_t Marks __attribute__((vector_size(LANES)));
    for (Index j = 0; j < rows.m; j += LANES) {  // the last of them with entries of the next row
        Marks marks;
        std::memcpy(&marks, chosen + start + j, sizeof marks);
        const auto in = __builtin_convertvector(marks, Lanes) > Lanes{};
        const Lanes x = load(rows.data + start + j), a = in ? load(&stay.a[j]) : load(&add.a[j]);
        const Lanes b = in ? load(&stay.b[j]) : load(&add.b[j]);
        store(gain + j, x * (a + x * b) - (in ? load(&stay.loss[j]) : load(&add.loss[j])));
    }
}

// Gains by two terms of the expectation: of adding a row, and of a chosen row, compared to removing it.
struct ApproximateGains {
    double beta2;
    Columns& columns;
    GainTable add, stay;

    ApproximateGains(double beta2, Columns& columns)
        : beta2(beta2), columns(columns), add(columns.size()), stay(columns.size()) {
        for (std::size_t c = 0; c < columns.size(); ++c) refresh(c);
    }
    template <class T>
    void fill(const BudgetRows<T>& rows, Index i, const std::int8_t* chosen, double* gain) const {
        fill_gains(rows, i, add, stay, chosen, gain);
    }
    void change(Index c, double p, double number) {
        columns[c].choose(p, number);
        refresh(c);
    }

private:
    void refresh(Index c) {
        const BudgetColumn& column = columns[c];
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
        const auto set = [&](GainTable& gains, double r, double loss) {
            gains.a[c] = scale * r * (1.0 + q * r * r);
            gains.b[c] = beta2 * r * gains.a[c];
            gains.loss[c] = loss;
        };
        set(add, next, k > 0.0 ? lost(here, next) : column.empty);
        set(stay, last, k > 1.0 ? lost(last, here) : column.empty);
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
    ExactGains(const BudgetRows<T>& rows, const BudgetTask& task, Columns& columns,
               const std::int8_t* chosen)
        : columns(columns), nodes(task.rules),
          factor(columns.size() * padded(task.rules.longest), 1.0), total(factor.size()),
          power(factor.size()), add_loss(columns.size()), stay_loss(columns.size()) {
        const double beta2 = task.objective.beta2;
        nodes.load(task.rules, beta2, beta2 + 1.0, beta2 * rows.n + rows.n + 1.0);
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
    template <class T>
    void fill(const BudgetRows<T>& rows, Index i, const std::int8_t* chosen, double* gain) const {
        const Index R = nodes.count;
        rows.for_row(i, [&](Index at, Index c, double p) {
            const bool last = chosen[at] && columns[c].count <= 1.0;
            double slope = 0.0;  // the coefficient of p for a set of one row more, or as many
            for (Index r = 0; r < R; ++r) {
                const double term = factor[c * R + r] * power[c * R + r] / (1.0 - p * nodes.u[r]);
                slope += last ? term : chosen[at] ? term / nodes.z[r] : term * nodes.z[r];
            }
            *gain++ = p * slope - (chosen[at] ? stay_loss[c] : add_loss[c]);
        });
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

// Sum and weigh the columns. Under `nonempty` a column that cannot have a row has no weight.
template <class T>
Columns add_columns(const BudgetRows<T>& rows, const BudgetTask& task) {
    bool some_empty = false;
    Columns columns(rows.m);
    std::vector<double> mean(columns.size()), squares(columns.size());
    for (Index i = 0; i < rows.n; ++i) {
        rows.for_row(i, [&](Index, Index c, double p) {
            mean[c] += p;
            squares[c] += p * p;
        });
    }
    double total = 0.0;
    for (std::size_t c = 0; c < columns.size(); ++c) {
        const bool may_be_empty = mean[c] < NEVER_EMPTY;
        columns[c] = {mean[c], squares[c], may_be_empty ? 1.0 : 0.0, may_be_empty ? 0.0 : 1.0};
        some_empty |= may_be_empty;
        total += task.weighted ? mean[c] : 1.0;
    }
    for (Index i = 0; some_empty && i < rows.n; ++i) {
        rows.for_row(i, [&](Index, Index c, double p) {
            columns[c].present += (1.0 - columns[c].present) * p;  // a sum: small p keep their digits
            columns[c].none *= 1.0 - p;
        });
    }
    for (BudgetColumn& column : columns) {
        column.weight = total > 0.0 ? (task.weighted ? column.mean : 1.0) / total : 0.0;
        if (task.objective.nonempty) {
            column.weight = column.present > 0.0 ? column.weight / column.present : 0.0;
        } else {
            column.empty = column.weight * task.objective.zero_division * column.none;
            column.present = 1.0;
        }
    }
    return columns;
}

// The gains of a row, and which entries they select.
struct Selection {
    std::vector<double> gain, sorted;
    std::vector<std::int8_t> mark;

    explicit Selection(Index m) : gain(m + LANES), sorted(m), mark(m) {}

    // The k-th largest gain.
    double largest(Index k, Index size) {
        if (k == 0 || k > size) return k == 0 ? INFINITE : -INFINITE;
        if (k > 2) {
            std::copy_n(gain.begin(), size, sorted.begin());
            std::nth_element(sorted.begin(), sorted.begin() + k - 1, sorted.begin() + size,
                             std::greater<>());
            return sorted[k - 1];
        }
        double first = -INFINITE, second = first;
        for (Index j = 0; j < size; ++j) {
            second = std::max(second, std::min(first, gain[j]));
            first = std::max(first, gain[j]);
        }
        return k == 1 ? first : second;
    }

    // Mark the entries that gain; if they are too few or too many, the largest gains, of equal ones
    // the first.
    void select(Index size, const BudgetTask& task) {
        const Index least = std::min(task.least, size), most = std::min(task.most, size);
        Index count = 0;
        if (least < most) {
            for (Index j = 0; j < size; ++j) count += mark[j] = gain[j] > 0.0;
            if (least <= count && count <= most) return;
        }
        const Index wanted = std::clamp(count, least, most);
        const double t = largest(wanted, size);
        count = 0;
        for (Index j = 0; j < size; ++j) count += mark[j] = gain[j] >= t;
        for (Index j = size; count > wanted;) {
            if (gain[--j] != t) continue;
            mark[j] = 0;
            --count;
        }
    }
};

// Improve all rows, pass after pass: choose the labels of each by their gains.
template <class Model, class T>
void ascend(const BudgetRows<T>& rows, const BudgetTask& task, Model&& model, double least_gain,
            std::int8_t* chosen) {
    Selection own(rows.m);
    double gained = INFINITE;
    for (Index pass = 0; pass < MOST_PASSES && std::abs(gained) > least_gain; ++pass) {
        gained = 0.0;
        for (Index i = 0; i < rows.n; ++i) {
            const Index start = rows.indptr[i], size = rows.size(i);
            model.fill(rows, i, chosen, own.gain.data());
            own.select(size, task);
            double improvement = 0.0, magnitude = 0.0;
            for (Index j = 0; j < size; ++j) {
                if (own.mark[j] == chosen[start + j]) continue;
                improvement += own.mark[j] ? own.gain[j] : -own.gain[j];
                magnitude += std::abs(own.gain[j]);
            }
            // Equal gains, up to rounding, keep what is chosen.
            if (!(improvement > 1e-15 * magnitude)) continue;
            gained += improvement;
            for (Index j = 0; j < size; ++j) {
                const Index at = start + j;
                if (own.mark[j] == chosen[at]) continue;
                model.change(rows.column(at, j), rows.data[at], own.mark[j] ? 1.0 : -1.0);
                chosen[at] = own.mark[j];
            }
        }
    }
}

// Set the multiplier of each row: between the gains of the last label chosen and of the next one, or
// 0. It is negative only where every choice loses, and then the gain of the last label chosen, though
// not below minus the smallest loss of a column: a column must not seem to gain from rows of
// probability 0.
template <class T>
void fill_multipliers(const BudgetRows<T>& rows, const BudgetTask& task, const GainTable& gains,
                      const std::int8_t* chosen, double* multiplier) {
    Selection own(rows.m);
    const double lowest = -*std::min_element(gains.loss.begin(), gains.loss.end());
    for (Index i = 0; i < rows.n; ++i) {
        const Index size = rows.size(i);
        fill_gains(rows, i, gains, gains, chosen, own.gain.data());
        const double above = own.largest(task.most + 1, size), last = own.largest(task.most, size);
        const double below = task.least == task.most ? last : own.largest(task.least, size);
        multiplier[i] = 0.0;
        if (above > 0.0) {
            multiplier[i] = 0.5 * (above + last);
        } else if (below < 0.0) {
            multiplier[i] = std::max(below, lowest);
        } else if (task.least == task.most) {
            multiplier[i] = 0.5 * below;
        }
    }
}

// Decide rows by ascent from given gains, which become those of the decision; fill in the multipliers
// of the rows.
template <class T>
Columns decide_budget(const BudgetRows<T>& rows, const BudgetTask& task, GainTable& gains,
                      std::int8_t* chosen, double* multiplier) {
    Columns columns = add_columns(rows, task);
    Selection own(rows.m);
    for (Index i = 0; i < rows.n; ++i) {
        fill_gains(rows, i, gains, gains, chosen, own.gain.data());
        own.select(rows.size(i), task);
        rows.for_row(i, [&](Index at, Index c, double p) {
            chosen[at] = own.mark[at - rows.indptr[i]];
            if (chosen[at]) columns[c].choose(p);
        });
    }
    const Index stored = rows.indptr[rows.n];
    // Very many dense rows have started from the gains of a sample.
    const bool sampled = !rows.label && rows.n >= 4 * MANY_ROWS;
    const double least_gain =
        sampled ? 5e-5 : rows.n >= MANY_ROWS ? 1e-6 : stored > FEW_ENTRIES ? 1e-8 : 0.0;
    ascend(rows, task, ApproximateGains(task.objective.beta2, columns), least_gain, chosen);
    if (stored <= FEW_ENTRIES && rows.m <= FEW_ENTRIES / 8) {
        ascend(rows, task, ExactGains(rows, task, columns, chosen), 0.0, chosen);
    }
    gains = ApproximateGains(task.objective.beta2, columns).add;
    fill_multipliers(rows, task, gains, chosen, multiplier);
    return columns;
}

}  // namespace fgfm
