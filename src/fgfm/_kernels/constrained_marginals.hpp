// Constrained decisions from independent labels, where the optimum is not feasible.
//
// C_ir = E[y_i zeta_r^s] = p_i zeta_r prod_{j != i} (1 - p_j u_r) increases with p_i for every r.
// So without costs and parents the best feasible set of each size consists of the required labels
// and of the most probable others, one of each group, and C is needed for few labels only.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "constrained.hpp"
#include "factors.hpp"
#include "power_sums.hpp"

namespace fgfm {

struct ConstrainedMarginalsWorkspace {
    std::vector<double> p;            // of a row
    std::vector<Index> names, order;  // its labels, and their order by index
    std::vector<Index> candidates, leader_of, candidate_names;
    std::vector<std::int8_t> chosen;
    Nodes nodes;
    Scratch<double> product, scale, totals, C;
    ConstrainedWorkspace constrained;

    explicit ConstrainedMarginalsWorkspace(const Rules& rules)
        : nodes(rules), product(padded(rules.longest)), scale(product.size()),
          totals(product.size()) {}
};

// List the labels that can be in the best feasible set of up to `most` labels: first the required
// ones, then the others by falling probability, of each group the most probable one.
inline void rank_feasible(Index most, const Constraints& constraints,
                          ConstrainedMarginalsWorkspace& work) {
    const std::vector<double>& p = work.p;
    const std::vector<Index>& names = work.names;
    const auto before = [&](Index a, Index b) {
        return p[a] > p[b] || (p[a] == p[b] && names[a] < names[b]);
    };
    Marks& seen = work.constrained.groups;
    seen.clear(constraints.groups);
    work.leader_of.resize(constraints.groups);
    work.candidates.clear();
    std::vector<Index>& found = work.candidates;
    for (Index i = 0; i < static_cast<Index>(p.size()); ++i) {
        if (constraints.status[names[i]] == 1) found.push_back(i);
    }
    const std::size_t n_required = found.size();
    for (Index i = 0; i < static_cast<Index>(p.size()); ++i) {
        if (constraints.status[names[i]] != 0) continue;
        const Index group = constraints.has_groups() ? constraints.group[names[i]] : -1;
        if (group < 0) {
            found.push_back(i);
        } else if (seen.add(group)) {
            work.leader_of[group] = static_cast<Index>(found.size());
            found.push_back(i);
        } else if (Index& leader = found[work.leader_of[group]]; before(i, leader)) {
            leader = i;
        }
    }
    const std::size_t last = std::clamp<std::size_t>(most, n_required, found.size());
    std::partial_sort(found.begin() + n_required, found.begin() + last, found.end(), before);
    found.resize(last);
}

// Mark the best feasible set of a row in work.chosen; return its expected F.
//
// work.p and work.names are its probabilities and labels; the labels that are not listed have
// probability 0. `guess` is the size of the set without constraints, and `value` its expected F.
inline double constrain_marginals(const Objective& objective, const Rules& rules,
                                  const Constraints& constraints, Index guess, double value,
                                  ConstrainedMarginalsWorkspace& work) {
    const double beta2 = objective.beta2;
    const std::span<const double> p(work.p);
    const Index m = length(p);
    const double mean = std::accumulate(p.begin(), p.end(), 0.0);
    if (mean < TINY_ROW && mean > 0.0 && (objective.nonempty || !constraints.has_costs())) {
        for (double& x : work.p) x *= UPSCALE;
        return objective.downscaled(constrain_marginals(objective.upscaled(), rules, constraints,
                                                        guess, value, work));
    }
    PowerSums sums{};
    add_power_sums(p, 0.0, SMALL, sums);
    const double log_empty = log_probability_of_empty(sums, p);
    const double present = -std::expm1(log_empty);
    const double empty = objective.nonempty ? -1.0 : objective.zero_division * std::exp(log_empty);
    const Index n_required = constraints.n_required();
    const Index least = std::max({Index{1}, constraints.min_labels, n_required});
    Index limit = std::min(m, constraints.max_labels);
    if (constraints.has_costs() || constraints.has_parents()) {
        work.candidates.resize(m);
        std::iota(work.candidates.begin(), work.candidates.end(), Index{0});
    } else {
        rank_feasible(limit, constraints, work);
        limit = std::min(limit, static_cast<Index>(work.candidates.size()));
        // For any set of size k, V >= (1 + beta^2) M / (beta^2 (1 + E) + k) with M = sum p_i, and
        // T(k) <= (1 + beta^2) E / (beta^2 E + k): both by Jensen.
        double floor = constraints.admits_empty() ? std::max(empty, 0.0) : 0.0, mass = 0.0;
        double highest = 0.0;
        for (Index k = 1; k <= limit; ++k) {
            mass += p[work.candidates[k - 1]];
            const double bound = (1.0 + beta2) * mass / (beta2 * (1.0 + mean) + k);
            if (k >= least && bound > highest) {
                highest = bound;
                guess = k;
            }
        }
        floor = std::max(floor, highest);
        const double most =
            floor > 0.0 ? mean * ((1.0 + beta2) / floor * (1.0 + TIE) - beta2) + 1.0 : 0.0;
        if (most < limit) limit = std::max(least, static_cast<Index>(most));
        work.candidates.resize(std::min<std::size_t>(work.candidates.size(), limit));
    }

    Nodes& nodes = work.nodes;
    const double histogram[2] = {0.0, mean};
    const auto [s_min, s_max] = cardinality_range(histogram, 1, m, mean);
    nodes.load(rules, beta2, beta2 * s_min + least, beta2 * s_max + std::max(least, limit));
    const Index R = nodes.padding, size = static_cast<Index>(work.candidates.size());
    fill_products(work.product.data(), nodes, sums, p);
    double* totals = work.totals.data();
    for (Index r = 0; r < R; ++r) {
        work.scale[r] = (1.0 + beta2) * nodes.weight[r];
        work.product[r] *= nodes.zeta[r];
        totals[r] = 0.0;
    }
    work.C.resize(size * R);
    work.candidate_names.resize(size);
    const Lanes none = {};
    for (Index j = 0; j < size; ++j) {
        const double x = p[work.candidates[j]];
        double* C = work.C.data() + j * R;
        for (Index r = 0; r < R; r += LANES) {
            const Lanes own = 1.0 - x * load(nodes.u.data() + r);
            const Lanes y = own > 0.0 ? x * load(work.product.data() + r) / own : none;
            store(C + r, y);
            store(totals + r, load(totals + r) + y);
        }
        work.candidate_names[j] = work.names[work.candidates[j]];
    }
    const std::size_t columns = static_cast<std::size_t>(R);
    const ColumnWeights column{{nodes.log_z.data(), columns}, {work.scale.data(), columns}, true};
    return constrain_row(Matrix<const double>{work.C.data(), size, R}, work.candidates,
                         work.candidate_names, {totals, columns}, column, empty, present, guess,
                         value, constraints, work.chosen, work.constrained);
}

template <class T>
void read_row(std::span<const T> row, std::vector<double>& p) {
    p.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
        p[i] = std::clamp(static_cast<double>(row[i]), 0.0, 1.0);
    }
}

// Replace the infeasible label sets of a block of marginals, (n, m), decided without constraints.
template <class T>
void constrain_dense_rows(Matrix<const T> proba, const Objective& objective, const Rules& rules,
                          Matrix<std::int8_t> labels, double* expected,
                          const Constraints& constraints) {
    ConstrainedMarginalsWorkspace work(rules);
    work.names.resize(proba.cols);
    std::iota(work.names.begin(), work.names.end(), Index{0});
    for (Index row = 0; row < proba.rows; ++row) {
        const std::span<std::int8_t> chosen = labels.row(row);
        if (is_final(chosen, work.names, work.names, expected[row], constraints,
                     work.constrained)) {
            continue;
        }
        read_row(proba.row(row), work.p);
        work.chosen.assign(chosen.size(), 0);
        const Index guess = std::count(chosen.begin(), chosen.end(), 1);
        expected[row] =
            constrain_marginals(objective, rules, constraints, guess, expected[row], work);
        std::copy(work.chosen.begin(), work.chosen.end(), chosen.begin());
    }
}

// The same for marginals in CSR; `chosen` marks the stored labels that were decided for.
//
// Fills in the labels of the feasible sets, row after row and in order, and where each row ends.
template <class T>
void constrain_csr_rows(const T* data, const Index* indices, std::span<const Index> indptr,
                        const Objective& objective, const Rules& rules, const std::int8_t* chosen,
                        Index* found, Index* ends, double* expected,
                        const Constraints& constraints) {
    ConstrainedMarginalsWorkspace work(rules);
    std::vector<Index>& order = work.order;
    Index count = 0;
    for (Index row = 0; row + 1 < length(indptr); ++row) {
        const Index start = indptr[row], stop = indptr[row + 1];
        work.names.assign(indices + start, indices + stop);
        work.chosen.assign(chosen + start, chosen + stop);
        const Index first = count;
        order.resize(work.names.size());
        std::iota(order.begin(), order.end(), Index{0});
        if (!is_final(work.chosen, order, work.names, expected[row], constraints,
                      work.constrained)) {
            const Index guess = std::count(work.chosen.begin(), work.chosen.end(), 1);
            read_row(std::span<const T>(data + start, stop - start), work.p);
            add_implied_labels(work.names, objective.nonempty, constraints, work.constrained);
            work.p.resize(work.names.size(), 0.0);
            work.chosen.assign(work.names.size(), 0);
            expected[row] =
                constrain_marginals(objective, rules, constraints, guess, expected[row], work);
        }
        for (std::size_t i = 0; i < work.names.size(); ++i) {
            if (work.chosen[i]) found[count++] = work.names[i];
        }
        std::sort(found + first, found + count);
        ends[row] = count;
    }
}

}  // namespace fgfm
