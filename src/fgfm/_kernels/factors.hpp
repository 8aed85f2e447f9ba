// F-GFM: decisions from the P of each independent label factor.
//
// E[y_i zeta^s] = G_i(zeta) prod_{g != f(i)} D_g(zeta), so that C_ir = E[y_i zeta_r^s] at the nodes
// of a quadrature rule takes one product of generating functions, and the whole P is never built.
// A factor with one label costs no generating function: small ones enter through power sums, as
// they do where all labels are independent.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "constants.hpp"
#include "constrained.hpp"
#include "power_sums.hpp"
#include "search.hpp"

namespace fgfm {

// Rates at which the tail of |y| is bounded: P(s >= x) <= exp(sum_s H_s (e^(rate s) - 1) - rate x).
constexpr double GROWTH[] = {2.0, 1.0, 0.5, 0.25, 0.125, 0.0625};

// The factors of a block, those of one label last.
struct Factors {
    std::span<const Index> sizes;   // (F,) number of labels m_f
    std::span<const Index> depths;  // (F,) largest cardinality S_f
    Index multiple;                 // number of factors of more than one label

    Index longest() const {  // the largest cardinality of one factor
        Index result = 1;
        for (Index f = 0; f < multiple; ++f) result = std::max(result, depths[f]);
        return result;
    }
    Index values() const {  // the number of values of the first `multiple` factors
        Index result = 0;
        for (Index f = 0; f < multiple; ++f) result += sizes[f] * depths[f];
        return result;
    }
    Index labels() const {
        return std::accumulate(sizes.begin(), sizes.begin() + multiple, Index{0});
    }
    Index cardinality() const {
        return std::accumulate(depths.begin(), depths.begin() + multiple, Index{0});
    }
};

// Arrays for one row.
struct FactorsWorkspace {
    std::vector<double> histogram;
    Scratch<double> p, weighted, D, powers, product, others, C, totals, scale;
    Scratch<Index> order, row_of, names;
    Nodes nodes;
    RankWorkspace rank;
    SearchWorkspace search;
    ConstrainedWorkspace constrained;

    explicit FactorsWorkspace(const Rules& rules)
        : product(padded(rules.longest)), others(product.size()), totals(product.size()),
          scale(product.size()), nodes(rules) {}
};

struct FactorsRead {
    double code = 0.0;
    Index factor = 0;
    double mean = 0.0;       // of |y| over these factors
    double mass = 1.0;       // the product of their probabilities: more than 1 by rounding
    double log_empty = 0.0;  // log p(no label of these factors)
};

// Read the factors of more than one label.
//
// Fills in the distributions d (unless given), the marginals p_i, E[y_i (s_f - E s_f)], and the sum
// of the distributions.
inline FactorsRead read_factors(const double* values, double* d, bool given,
                                const Factors& factors, double slack, FactorsWorkspace& work) {
    FactorsRead read;
    Index label = 0;
    for (Index f = 0; f < factors.multiple; ++f) {
        const Index m = factors.sizes[f], S = factors.depths[f];
        if (!given) std::fill(d + 1, d + S + 1, 0.0);
        for (Index i = 0; i < m; ++i) {
            double total = 0.0, load = 0.0;
            bool valid = true;
            for (Index s = 1; s <= S; ++s) {
                const double x = values[s - 1];
                valid &= (x >= 0.0) & (x <= 1.0);
                total += x;
                load += x * s;
                if (!given) d[s] += x;
            }
            if (!valid) return {NOT_PROBABILITY, f};
            if (total > 1.0 + slack) return {TOO_MUCH_MASS, f};
            work.p[label + i] = total;
            work.weighted[label + i] = load;
            values += S;
        }
        double present = 0.0, mean = 0.0;
        for (Index s = 1; s <= S; ++s) {
            if (!given) d[s] /= s;  // d_s = sum_i p_is / s
            present += d[s];
            mean += s * d[s];
            work.histogram[s] += d[s];
        }
        if (!given) {
            if (present > 1.0 + slack) return {TOO_MUCH_MASS, f};
            d[0] = std::max(0.0, 1.0 - present);
        }
        for (Index i = 0; i < m; ++i) work.weighted[label + i] -= mean * work.p[label + i];
        read.mean += mean;
        read.mass *= std::max(1.0, present);
        if (present < 0.5) {
            read.log_empty += std::log1p(-present);
        } else {  // a given d_0 may be far smaller than the rounding of the others' sum
            read.log_empty += d[0] > 0.0 ? std::log(d[0]) : -std::numeric_limits<double>::infinity();
        }
        label += m;
        d += S + 1;
    }
    return read;
}

// Return bounds on |y| that hold up to a probability of exp(-TAIL), given any y_i = 1 as well.
//
// `histogram` sums d_s over the factors; `longest` is the largest cardinality of one factor. Above:
// Chernoff with log(1 + x) <= x. Below: for independent non-negative s_f,
// P(s <= mean - x) <= exp(-x^2 / (2 sum_f E[s_f^2])) (Maurer 2003).
inline std::pair<double, double> cardinality_range(const double* histogram, Index longest,
                                                   Index total, double mean) {
    double upper = static_cast<double>(total);
    for (const double rate : GROWTH) {
        if (rate * longest < 50.0) {
            double load = TAIL;
            for (Index s = 1; s <= longest; ++s) load += histogram[s] * std::expm1(rate * s);
            upper = std::min(upper, load / rate + longest);
        }
    }
    double squares = 0.0;
    for (Index s = 1; s <= longest; ++s) squares += histogram[s] * s * s;
    const double lower = mean - longest - std::sqrt(2.0 * TAIL * squares);
    return {std::max(1.0, lower), std::max(1.0, upper)};
}

// Fill in the rows of C, one for each candidate, and its column sums.
//
// Row row_of[i] of C belongs to label i; labels with row -1 are left out.
inline void fill_matrix(const double* values, const double* d, const Factors& factors,
                        std::span<const double> singles, PowerSums& sums, Index longest,
                        FactorsWorkspace& work) {
    const Nodes& nodes = work.nodes;
    const Index R = nodes.padding;
    const double *zeta = nodes.zeta.data(), *u = nodes.u.data();
    double *product = work.product.data(), *totals = work.totals.data();
    double* others = work.others.data();
    // powers[s, r] = zeta_r^s
    work.powers.resize((longest + 1) * R);
    double* powers = work.powers.data();
    for (Index r = 0; r < R; ++r) powers[r] = 1.0;
    for (Index s = 1; s <= longest; ++s) {
        for (Index r = 0; r < R; ++r) powers[s * R + r] = powers[(s - 1) * R + r] * zeta[r];
    }
    // D_f(zeta_r) = sum_s d_s zeta_r^s, and the product over all factors
    fill_products(product, nodes, sums, singles);
    work.D.resize(std::max<Index>(1, factors.multiple) * R);
    for (Index f = 0; f < factors.multiple; ++f) {
        double* D = work.D.data() + f * R;
        const Index S = factors.depths[f];
        for (Index r = 0; r < R; ++r) D[r] = d[0];
        for (Index s = 1; s <= S; ++s) {
            const double x = d[s];
            for (Index r = 0; r < R; ++r) D[r] += x * powers[s * R + r];
        }
        for (Index r = 0; r < R; ++r) product[r] *= D[r];
        d += S + 1;
    }
    std::fill(totals, totals + R, 0.0);
    const Index first_single = factors.labels();
    for (Index j = 0; j < length(singles); ++j) {
        const Index row = work.row_of[first_single + j];
        if (row < 0) continue;
        const double x = singles[j];
        double* C = work.C.data() + row * R;
        for (Index r = 0; r < R; ++r) {
            const double own = 1.0 - x * u[r];
            C[r] = own > 0.0 ? x * zeta[r] * product[r] / own : 0.0;
            totals[r] += C[r];
        }
    }
    // C_ir = G_i(zeta_r) * (the product over the other factors). Where D_f is 0, so is every G_i of
    // the factor, and the quotient is not needed.
    Index label = 0;
    for (Index f = 0; f < factors.multiple; ++f) {
        const double* D = work.D.data() + f * R;
        const Index S = factors.depths[f];
        for (Index r = 0; r < R; ++r) others[r] = D[r] > 0.0 ? product[r] / D[r] : 0.0;
        for (Index i = 0; i < factors.sizes[f]; ++i, ++label, values += S) {
            const Index row = work.row_of[label];
            if (row < 0) continue;
            double* C = work.C.data() + row * R;
            std::fill(C, C + R, 0.0);
            Index s = 0;
            for (; s + 4 <= S; s += 4) {
                const double p1 = values[s], p2 = values[s + 1], p3 = values[s + 2],
                             p4 = values[s + 3];
                const double* power = powers + (s + 1) * R;
                for (Index r = 0; r < R; ++r) {
                    C[r] += ((p1 * power[r] + p2 * power[R + r]) + p3 * power[2 * R + r]) +
                            p4 * power[3 * R + r];
                }
            }
            for (; s < S; ++s) {
                const double x = values[s];
                for (Index r = 0; r < R; ++r) C[r] += x * powers[(s + 1) * R + r];
            }
            for (Index r = 0; r < R; ++r) {
                C[r] *= others[r];
                totals[r] += C[r];
            }
        }
    }
}

// Mark the F-optimal set of a row; return its expected F (or a code) and the factor at fault.
//
// `values` holds the P of all factors, flat, factors with one label last, and `d` the distributions
// of the others. Element i of this order is label names[i], and chosen[labels[i]] marks it.
inline std::pair<double, Index> decide_factor_row(std::span<const double> values, double* d,
                                                  bool given, const Factors& factors,
                                                  std::span<const Index> labels, double slack,
                                                  const Objective& objective, const Rules& rules,
                                                  std::span<std::int8_t> chosen,
                                                  const Constraints* constraints,
                                                  std::span<const Index> names,
                                                  FactorsWorkspace& work) {
    const double beta2 = objective.beta2;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const Index m = length(labels), longest = factors.longest(), first = factors.labels();
    work.p.resize(m);
    work.weighted.resize(m);
    work.order.resize(m + 1);
    work.row_of.resize(m);
    work.histogram.assign(longest + 1, 0.0);
    const FactorsRead read = read_factors(values.data(), d, given, factors, slack, work);
    if (read.code < 0.0) return {read.code, read.factor};
    double mean = read.mean;
    const std::span<const double> singles = values.subspan(factors.values());
    for (Index j = 0; j < length(singles); ++j) {
        const double x = singles[j];
        if (!(x >= 0.0 && x <= 1.0)) return {NOT_PROBABILITY, factors.multiple + j};
        work.p[first + j] = x;
        work.weighted[first + j] = x * (1.0 - x);
        work.histogram[1] += x;
        mean += x;
    }
    const auto is_tiny = [](double x) { return x < TINY_ROW; };
    if (is_tiny(mean) && mean > 0.0 && std::all_of(work.p.begin(), work.p.end(), is_tiny) &&
        (objective.nonempty || !constraints || !constraints->has_costs())) {
        std::vector<double> scaled(values.begin(), values.end());
        for (double& x : scaled) x *= UPSCALE;
        std::vector<double> scaled_d(d, d + factors.cardinality() + factors.multiple);
        for (Index f = 0, at = 0; f < factors.multiple; at += factors.depths[f++] + 1) {
            for (Index s = 1; s <= factors.depths[f]; ++s) scaled_d[at + s] *= UPSCALE;
        }
        const auto [value, factor] =
            decide_factor_row(scaled, scaled_d.data(), given, factors, labels, slack,
                              objective.upscaled(), rules, chosen, constraints, names, work);
        return {objective.downscaled(value), factor};
    }
    PowerSums sums{};
    add_power_sums(singles, 0.0, SMALL, sums);
    const double log_empty = read.log_empty + log_probability_of_empty(sums, singles);
    const double present = -std::expm1(log_empty);
    const bool impossible = objective.nonempty && present == 0.0;
    if (impossible && !constraints) return {nan, 0};
    const double empty = objective.nonempty ? -1.0 : objective.zero_division * std::exp(log_empty);

    for (Index i = 0; i < m; ++i) work.weighted[i] += mean * work.p[i];  // now E[y_i s]
    const Index total = factors.cardinality() + length(singles);
    const auto [s_min, s_max] = cardinality_range(work.histogram.data(), longest, total, mean);
    Nodes& nodes = work.nodes;
    // Fill in C for the first `size` labels in work.order, by a rule for set sizes up to `limit`.
    const auto fill_candidates = [&, s_min = s_min, s_max = s_max](Index size, Index limit) {
        nodes.load(rules, beta2, beta2 * s_min + 1.0, beta2 * s_max + limit);
        for (Index r = 0; r < nodes.padding; ++r) {
            work.scale[r] = (1.0 + beta2) * nodes.weight[r];
        }
        std::fill(work.row_of.begin(), work.row_of.end(), Index{-1});
        for (Index j = 0; j < size; ++j) work.row_of[work.order[j]] = j;
        work.C.resize(size * nodes.padding);
        PowerSums changed = sums;  // fill_matrix adds labels to them
        fill_matrix(values.data(), d, factors, singles, changed, longest, work);
        const std::size_t columns = static_cast<std::size_t>(nodes.padding);
        return ColumnWeights{{nodes.log_z.data(), columns}, {work.scale.data(), columns}, true};
    };
    const auto totals = [&] { return std::span<const double>(work.totals.data(), nodes.padding); };
    const Candidates found =
        rank_candidates(work.p, work.weighted, s_max, beta2, empty, work.order.data(), work.rank);
    const Index size = found.size;
    double value = objective.nonempty ? nan : empty;
    if (size > 0 && !impossible) {
        Index limit = size;
        if (!given) {  // T(k) <= (1 + beta^2) mass E / (beta^2 E + k), by Jensen
            const double ratio = (1.0 + beta2) * read.mass / found.floor;
            const double most = mean * (ratio * (1.0 + TIE) - beta2) + 1.0;
            if (most < size) limit = std::max<Index>(1, static_cast<Index>(most));
        }
        const ColumnWeights column = fill_candidates(size, limit);
        work.names.resize(size);
        for (Index j = 0; j < size; ++j) {
            work.names[j] = labels[work.order[j]];
            work.order[j] = j;
        }
        const SearchResult best =
            search(Matrix<const double>{work.C.data(), size, nodes.padding},
                   std::span<const Index>(work.order.data(), size), totals(), column, limit,
                   found.guess, found.floor, empty, work.search);
        if (best.size > 0) choose(work.search, best.size, work.names, chosen);
        value = objective.nonempty ? best.value / present : best.value;
    }
    if (!constraints) return {value, 0};
    if (is_final(chosen, labels, names, value, *constraints, work.constrained)) return {value, 0};
    const Index guess = std::count(chosen.begin(), chosen.end(), 1);
    std::iota(work.order.begin(), work.order.begin() + m, Index{0});
    const ColumnWeights column = fill_candidates(m, std::min(m, constraints->max_labels));
    value = constrain_row(Matrix<const double>{work.C.data(), m, nodes.padding}, labels, names,
                          totals(), column, empty, present, guess, value, *constraints, chosen,
                          work.constrained);
    return {value, 0};
}

// Decide every row of a block. `labels` names the labels in the order of the values.
inline Status decide_factor_rows(Matrix<const double> values, Matrix<double> d, bool given,
                                 const Factors& factors, std::span<const Index> names,
                                 double slack, const Objective& objective, const Rules& rules,
                                 Matrix<std::int8_t> labels, double* expected,
                                 const Constraints* constraints) {
    FactorsWorkspace work(rules);
    for (Index row = 0; row < values.rows; ++row) {
        const auto [value, factor] =
            decide_factor_row(values.row(row), d[row], given, factors, names, slack, objective,
                              rules, labels.row(row), constraints, names, work);
        expected[row] = value;
        if (value < 0.0) return {row, value, factor};
    }
    return {};
}

// Decide rows that store further factors of one label each, as in CSR.
//
// `stored` names their labels. `values` holds for each row the `width` values of the factors that
// all rows have, then the marginals that it stores. Fills in the chosen labels, row after row and
// in order, and where each row ends.
inline Status decide_sparse_factor_rows(const double* values, const Index* stored,
                                        std::span<const Index> indptr, double* d, Index width,
                                        const Factors& factors, std::span<const Index> fixed,
                                        double slack, const Objective& objective,
                                        const Rules& rules, Index* found, Index* ends,
                                        double* expected, const Constraints* constraints) {
    FactorsWorkspace work(rules);
    std::vector<Index> names, order, rank;
    std::vector<double> extended;
    std::vector<std::int8_t> chosen;
    Index count = 0;
    for (Index row = 0; row + 1 < length(indptr); ++row) {
        const Index start = indptr[row], stop = indptr[row + 1];
        names.assign(fixed.begin(), fixed.end());
        names.insert(names.end(), stored + start, stored + stop);
        std::span<const double> own(values + row * width + start, width + stop - start);
        if (constraints) {  // with labels of probability 0 that a feasible set may need
            const std::size_t count = names.size();
            add_implied_labels(names, objective.nonempty, *constraints, work.constrained);
            extended.assign(own.begin(), own.end());
            extended.resize(own.size() + names.size() - count, 0.0);
            own = extended;
        }
        const Index m = static_cast<Index>(names.size());
        order.resize(m);
        rank.resize(m);
        std::iota(order.begin(), order.end(), Index{0});
        std::sort(order.begin(), order.end(), [&](Index a, Index b) { return names[a] < names[b]; });
        for (Index j = 0; j < m; ++j) rank[order[j]] = j;
        chosen.assign(m, 0);
        const auto [value, factor] =
            decide_factor_row(own, d, false, factors, rank, slack, objective, rules, chosen,
                              constraints, names, work);
        expected[row] = value;
        if (value < 0.0) return {row, value, factor};
        for (Index j = 0; j < m; ++j) {
            if (chosen[j]) found[count++] = names[order[j]];
        }
        ends[row] = count;
    }
    return {};
}

}  // namespace fgfm
