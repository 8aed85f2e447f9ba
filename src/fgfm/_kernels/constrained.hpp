// Decisions among the label sets that constraints allow: docs/design.md, "Constraints".
//
// The value of a set h of size k is sum_{i in h} (Delta_ik - cost_i). For one column k the best
// feasible sets of all sizes t are sums of sorted values (sizes, required and forbidden labels,
// exclusive groups), or a dynamic programme over a forest (parents). Columns are skipped as in
// search.hpp: the bound holds for any family of sets.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "checks.hpp"
#include "search.hpp"

namespace fgfm {

// Which sets of m labels are feasible, and what each label costs.
//
// The caller has resolved implications: ancestors of required labels are required, and descendants
// of forbidden labels are forbidden, as are the other labels of a group with a required one.
struct Constraints {
    Index min_labels, max_labels;
    std::vector<std::int8_t> status;  // (m,) 1: required, -1: forbidden, 0: free
    std::vector<double> cost;         // (m,), or empty: no costs
    std::vector<Index> group;         // (m,) at most one label of a group, -1: none; or empty
    std::vector<Index> parent;        // (m,) -1: none; or empty
    Index groups = 0;                 // number of groups
    std::vector<Index> required;      // labels
    std::vector<Index> rank, end;     // (m,) subtree i has the depth-first ranks rank[i] .. end[i]-1
    Index depth = 0;                  // the largest number of ancestors of a label
    std::vector<Index> fillers;       // free labels, cheapest first or in depth-first order

    Constraints(Index min_labels, Index max_labels, std::span<const std::int8_t> status,
                std::span<const double> cost, std::span<const Index> group,
                std::span<const Index> parent)
        : min_labels(min_labels), max_labels(max_labels), status(status.begin(), status.end()),
          cost(cost.begin(), cost.end()), group(group.begin(), group.end()),
          parent(parent.begin(), parent.end()) {
        const auto is_optional = [&](auto values) {
            return values.empty() || length(values) == labels();
        };
        require(0 <= min_labels && min_labels <= labels() && 0 <= max_labels,
                "min_labels must be from 0 to the number of labels, and max_labels 0 or more");
        require(is_optional(cost) && is_optional(group) && is_optional(parent),
                "cost, group and parent must be empty, or have one number for each label");
        require_indices(status, -1, 2, "status must be -1, 0 or 1");
        require_indices(group, -1, labels(), "group must be -1 or less than the number of labels");
        require_indices(parent, -1, labels(), "parent must be -1 or a label");
        for (const Index g : group) groups = std::max(groups, g + 1);
        for (Index i = 0; i < labels(); ++i) {
            if (status[i] > 0) required.push_back(i);
            if (status[i] == 0) fillers.push_back(i);
        }
        if (has_parents()) rank_labels();
        std::stable_sort(fillers.begin(), fillers.end(), [&](Index a, Index b) {
            return has_parents() ? rank[a] < rank[b] : price(a) < price(b);
        });
    }

    Index labels() const { return static_cast<Index>(status.size()); }
    Index n_required() const { return static_cast<Index>(required.size()); }
    bool has_costs() const { return !cost.empty(); }
    bool has_groups() const { return groups > 0; }
    bool has_parents() const { return !parent.empty(); }
    bool admits_empty() const { return min_labels == 0 && required.empty(); }
    // Return a bound on the number of labels in the sets of rows with that many possible labels each.
    Index most_chosen(std::span<const Index> possible) const {
        Index result = 0;
        for (const Index count : possible) {
            const Index most = count * (1 + depth) + n_required() + std::max<Index>(1, min_labels);
            result += std::min(most, max_labels);
        }
        return result;
    }
    double price(Index label) const { return has_costs() ? cost[label] : 0.0; }

private:
    // Rank labels depth first, children and roots in order of their index.
    void rank_labels() {
        const Index m = labels();
        std::vector<Index> child(m, -1), sibling(m, -1), stack;  // lists of children, in order
        Index root = -1;
        for (Index i = m - 1; i >= 0; --i) {
            Index& head = parent[i] < 0 ? root : child[parent[i]];
            sibling[i] = head;
            head = i;
        }
        rank.assign(m, 0);
        end.assign(m, 0);
        Index count = 0;
        if (root >= 0) stack.push_back(root);
        while (!stack.empty()) {  // the stack holds the path from a root
            const Index i = stack.back();
            rank[i] = count++;
            depth = std::max(depth, static_cast<Index>(stack.size()) - 1);
            if (child[i] >= 0) {
                stack.push_back(child[i]);
                continue;
            }
            while (!stack.empty()) {  // leave finished subtrees
                const Index done = stack.back();
                stack.pop_back();
                end[done] = count;
                if (sibling[done] >= 0) {
                    stack.push_back(sibling[done]);
                    break;
                }
            }
        }
        require(count == m, "parent must have no cycle");
    }
};

// A set of integers below a limit that is emptied at once.
class Marks {
public:
    void clear(Index limit) {
        if (static_cast<Index>(mark_.size()) < limit) mark_.assign(limit, 0), now_ = 0;
        ++now_;
    }
    bool has(Index i) const { return mark_[i] == now_; }
    bool add(Index i) {  // return true if i is new
        const bool is_new = !has(i);
        mark_[i] = now_;
        return is_new;
    }

private:
    std::vector<Index> mark_;
    Index now_ = 0;
};

struct ConstrainedWorkspace {
    Marks labels, groups;
    std::vector<Index> items;  // rows of C that may be chosen, in order of their labels
    std::vector<Index> next;   // the first item after the subtree of an item
    std::vector<Index> leaders, leader_of;  // items that compete: best of a group, or alone
    Scratch<double> weights, delta, value, ranked, sums, table;
    std::vector<std::int8_t> marks;
};

// Return true if a set is feasible; chosen[slots[i]] marks label names[i].
inline bool is_feasible(std::span<const std::int8_t> chosen, std::span<const Index> slots,
                        std::span<const Index> names, const Constraints& constraints,
                        ConstrainedWorkspace& work) {
    Index size = 0, n_required = 0;
    work.labels.clear(constraints.labels());
    work.groups.clear(constraints.groups);
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (!chosen[slots[i]]) continue;
        const Index label = names[i];
        if (constraints.status[label] < 0) return false;
        n_required += constraints.status[label];
        ++size;
        work.labels.add(label);
        if (constraints.has_groups()) {
            const Index group = constraints.group[label];
            if (group >= 0 && !work.groups.add(group)) return false;
        }
    }
    if (size < constraints.min_labels || size > constraints.max_labels) return false;
    if (n_required < constraints.n_required()) return false;
    if (constraints.has_parents()) {
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (!chosen[slots[i]]) continue;
            const Index parent = constraints.parent[names[i]];
            if (parent >= 0 && !work.labels.has(parent)) return false;
        }
    }
    return true;
}

// Return true if the optimum without constraints is the decision.
inline bool is_final(std::span<const std::int8_t> chosen, std::span<const Index> slots,
                     std::span<const Index> names, double value, const Constraints& constraints,
                     ConstrainedWorkspace& work) {
    return (std::isnan(value) || !constraints.has_costs()) &&
           is_feasible(chosen, slots, names, constraints, work);
}

// Append the labels beyond `names` that the best feasible set of a row may hold, where all other
// labels have probability 0.
//
// These are the ancestors of `names`, the required labels, and, where a set must be larger than
// that, the first free labels in the order of `fillers`, of different groups: any other label of
// probability 0 can be exchanged for one of them (docs/design.md).
inline void add_implied_labels(std::vector<Index>& names, bool nonempty,
                               const Constraints& constraints, ConstrainedWorkspace& work) {
    work.labels.clear(constraints.labels());
    for (const Index label : names) work.labels.add(label);
    if (constraints.has_parents()) {
        for (std::size_t i = 0; i < names.size(); ++i) {  // grows: parents of parents
            const Index parent = constraints.parent[names[i]];
            if (parent >= 0 && work.labels.add(parent)) names.push_back(parent);
        }
    }
    for (const Index label : constraints.required) {
        if (work.labels.add(label)) names.push_back(label);
    }
    Index missing = std::max<Index>(constraints.min_labels, nonempty);
    if (missing <= constraints.n_required()) return;
    work.groups.clear(constraints.groups);
    for (const Index label : constraints.fillers) {
        if (missing == 0) break;
        if (work.labels.has(label)) continue;
        if (constraints.has_groups()) {
            const Index group = constraints.group[label];
            if (group >= 0 && !work.groups.add(group)) continue;
        }
        names.push_back(label);
        --missing;
    }
}

// The best feasible sets of a row. Row i of C belongs to label names[i].
template <class T>
class ConstrainedRow {
public:
    // Expectations are divided by `present`, the probability that they are conditioned on.
    // `totals` bounds the column sums of C.
    ConstrainedRow(Matrix<const T> C, std::span<const Index> names, std::span<const double> totals,
                   const ColumnWeights& column, double present, const Constraints& constraints,
                   ConstrainedWorkspace& work)
        : C_(C), names_(names), totals_(totals), column_(column), present_(present),
          constraints_(constraints), work_(work) {
        work.items.clear();
        for (Index i = 0; i < C.rows; ++i) {
            if (constraints.status[names[i]] >= 0) work.items.push_back(i);
        }
        const auto position = [&](Index i) {
            return constraints.has_parents() ? constraints.rank[names[i]] : names[i];
        };
        const auto before = [&](Index a, Index b) { return position(a) < position(b); };
        if (!std::is_sorted(work.items.begin(), work.items.end(), before)) {
            std::sort(work.items.begin(), work.items.end(), before);
        }
        work.groups.clear(constraints.groups);
        for (const Index i : work.items) {
            const Index group = constraints.has_groups() ? constraints.group[names[i]] : -1;
            capacity_ += group < 0 || work.groups.add(group);
        }
        if (constraints.has_parents()) {
            work.next.resize(work.items.size());
            for (std::size_t j = 0; j < work.items.size(); ++j) {
                const Index end = constraints.end[names[work.items[j]]];
                work.next[j] = std::partition_point(work.items.begin() + j, work.items.end(),
                                                    [&](Index i) { return position(i) < end; }) -
                               work.items.begin();
            }
        }
        work.weights.resize(length(totals));
        work.delta.resize(size());
        work.value.resize(size());
        work.ranked.resize(size());
    }

    // Mark the best feasible set in work.marks, by rows of C; return its expected F.
    //
    // `empty` is the value of the empty set, less than 0 if it is not allowed, and `guess` a likely
    // size.
    double decide(double empty, Index guess) {
        work_.marks.assign(C_.rows, 0);
        const Index n_required = constraints_.n_required();
        const Index least = std::max({Index{1}, constraints_.min_labels, n_required});
        const Index limit = std::min(constraints_.max_labels, capacity_);
        const bool allow_empty = empty >= 0.0 && constraints_.admits_empty();
        if (limit < least) return empty;  // no label can be chosen
        peak_ = allow_empty ? empty : -std::numeric_limits<double>::infinity();
        best_ = allow_empty ? 0 : -1;
        guess = std::clamp(guess, least, limit);

        work_.sums.resize(guess + 1);
        fill_column(guess);
        fill_sums(guess, work_.sums.data());
        consider(guess, work_.sums[guess]);
        const Index most = std::max(guess, last_size(least, limit));
        const Index stride = most + 1;
        work_.sums.resize((MAX_DEPTH + 3) * stride);
        const auto sums = [&](Index row) { return work_.sums.data() + row * stride; };
        fill_sums(most, sums(0));
        for (const Index row : {1, 2}) {
            const Index k = row == 1 ? least : most;
            if (k == guess) {
                std::copy(sums(0), sums(0) + stride, sums(row));
                continue;
            }
            fill_column(k);
            fill_sums(most, sums(row));
            consider(k, sums(row)[k]);
        }
        split_intervals(
            least, guess, most, sums,
            [&](const double* left, const double* right, Index k1, Index k2) {
                return bound_inside(left, right, k1, k2);
            },
            [&](Index k1, double bound) {
                return bound < peak_ - slack(peak_) || (k1 >= best_ && bound <= peak_ + slack(peak_));
            },
            [&](Index k, Index row, Index last) {
                fill_column(k);
                fill_sums(last, sums(row));
                consider(k, sums(row)[k]);
            });
        if (best_ == 0) return empty;
        fill_column(best_);
        if (constraints_.has_parents()) {
            choose_closed(best_);
        } else {
            choose_largest(best_);
        }
        double expected = 0.0;
        for (Index j = 0; j < size(); ++j) {
            if (work_.marks[work_.items[j]]) expected += work_.delta[j];
        }
        return expected;
    }

private:
    static constexpr double NEVER = -std::numeric_limits<double>::infinity();

    Index size() const { return static_cast<Index>(work_.items.size()); }
    Index label(Index j) const { return names_[work_.items[j]]; }
    bool is_required(Index j) const { return constraints_.status[label(j)] > 0; }

    // Values that differ by less than this are equal: relatively, or absolutely with costs, where
    // values can cancel.
    double slack(double value) const {
        return constraints_.has_costs() ? TIE : TIE * std::abs(value);
    }

    // Compute Delta_ik and Delta_ik - cost_i of all items.
    void fill_column(Index k) {
        column_.fill(k, work_.weights.data());
        for (Index j = 0; j < size(); ++j) {
            const double sum = dot(C_[work_.items[j]], work_.weights.data(), length(totals_));
            work_.delta[j] = sum / present_;
            work_.value[j] = work_.delta[j] - constraints_.price(label(j));
        }
    }

    // Compute the sums of the best feasible sets of all sizes up to `last`, for this column.
    void fill_sums(Index last, double* sums) {
        if (constraints_.has_parents()) {
            fill_table(last);
            std::copy(work_.table.data(), work_.table.data() + last + 1, sums);
            return;
        }
        const Index n_required = constraints_.n_required();
        std::fill(sums, sums + n_required, NEVER);
        sums[n_required] = 0.0;
        for (Index j = 0; j < size(); ++j) {
            if (is_required(j)) sums[n_required] += work_.value[j];
        }
        find_leaders();
        const Index count = last - n_required;
        double* ranked = work_.ranked.data();
        double* end = ranked;
        for (const Index j : work_.leaders) *end++ = work_.value[j];
        std::nth_element(ranked, ranked + count, end, std::greater<double>());
        std::sort(ranked, ranked + count, std::greater<double>());
        for (Index i = 0; i < count; ++i) sums[n_required + i + 1] = sums[n_required + i] + ranked[i];
    }

    // List the items that are not required, of each group the best; of equal ones the first.
    void find_leaders() {
        work_.leaders.clear();
        if (!constraints_.has_groups()) {
            for (Index j = 0; j < size(); ++j) {
                if (!is_required(j)) work_.leaders.push_back(j);
            }
            return;
        }
        work_.groups.clear(constraints_.groups);
        work_.leader_of.resize(constraints_.groups);
        const auto group_of = [&](Index j) { return constraints_.group[label(j)]; };
        for (Index j = 0; j < size(); ++j) {
            const Index group = group_of(j);
            if (group < 0 || is_required(j)) continue;
            Index& best = work_.leader_of[group];
            if (work_.groups.add(group) || work_.value[j] > work_.value[best]) best = j;
        }
        work_.groups.clear(constraints_.groups);
        for (Index j = 0; j < size(); ++j) {
            if (is_required(j)) continue;
            const Index group = group_of(j);
            if (group >= 0) {
                const double highest = work_.value[work_.leader_of[group]];
                if (work_.groups.has(group) || work_.value[j] < highest - slack(highest)) continue;
                work_.groups.add(group);
            }
            work_.leaders.push_back(j);
        }
    }

    // table[j, t]: the best closed set of t of the items from j on, whose parents are chosen.
    //
    // Items are in depth-first order. Item j is in the set, and what follows it may be; or it is
    // not, and the items of its subtree are skipped.
    void fill_table(Index last) {
        const Index n = size(), stride = last + 1;
        work_.table.resize((n + 1) * stride);
        double* row = work_.table.data() + n * stride;
        row[0] = 0.0;
        std::fill(row + 1, row + stride, NEVER);
        for (Index j = n - 1; j >= 0; --j) {
            const double *with = row, *without = work_.table.data() + work_.next[j] * stride;
            const double value = work_.value[j];
            row -= stride;
            if (is_required(j)) {
                row[0] = NEVER;
                for (Index t = 1; t <= last; ++t) row[t] = value + with[t - 1];
            } else {
                row[0] = without[0];
                for (Index t = 1; t <= last; ++t) row[t] = std::max(value + with[t - 1], without[t]);
            }
        }
    }

    // Return the last size whose bound T(k) = sum_i Delta_ik, less the costs of the required
    // labels, reaches the best value so far. T decreases with k.
    Index last_size(Index least, Index limit) {
        double fixed = 0.0;
        for (const Index label : constraints_.required) fixed += constraints_.price(label);
        const double floor = peak_ - 2.0 * slack(peak_);
        const auto reaches = [&](Index k) {
            return bound_all(totals_, k, column_, work_.weights.data()) / present_ - fixed >= floor;
        };
        Index low = least - 1, high = limit + 1;  // reaches(low), not reaches(high)
        while (high - low > 1) {
            const Index middle = low + (high - low) / 2;
            (reaches(middle) ? low : high) = middle;
        }
        return low;
    }

    void consider(Index k, double value) {
        if (best_ < 0 || value > peak_ + slack(peak_) ||
            (k < best_ && value >= peak_ - slack(peak_))) {
            best_ = k;  // the smaller size wins where values are equal
        }
        peak_ = std::max(value, peak_);
    }

    // Return the highest bound on the value of sizes k1 < k < k2, and its size.
    //
    // Without costs the harmonic mean of search.hpp. With costs the arithmetic mean, which exceeds
    // it, because it can be applied to differences: a constant can be subtracted on both sides.
    std::pair<double, Index> bound_inside(const double* left, const double* right, Index k1,
                                          Index k2) const {
        if (!constraints_.has_costs()) return bound_between(left, right, k1, k2);
        double best = NEVER;
        Index at = k1 + 1;
        for (Index k = k1 + 1; k < k2; ++k) {
            const double share = static_cast<double>(k2 - k) / static_cast<double>(k2 - k1);
            const double bound = share * left[k] + (1.0 - share) * right[k];
            if (bound > best) {
                best = bound;
                at = k;
            }
        }
        return {best, at};
    }

    // Mark the best set of size k; among equal labels those of lowest index.
    void choose_largest(Index k) {
        const Index count = k - constraints_.n_required();
        for (Index j = 0; j < size(); ++j) work_.marks[work_.items[j]] = is_required(j);
        if (count == 0) return;
        find_leaders();
        double* ranked = work_.ranked.data();
        double* end = ranked;
        for (const Index j : work_.leaders) *end++ = work_.value[j];
        std::nth_element(ranked, ranked + count - 1, end, std::greater<double>());
        const double threshold = ranked[count - 1], width = slack(threshold);
        // Fewer than `count` labels are above the threshold, and `count` or more not below it: the
        // two conditions have one boundary, so that exactly `count` labels are marked.
        const double high = threshold + width, low = threshold - width;
        const auto is_above = [&](Index j) { return work_.value[j] > high; };
        Index left = count;  // what is left for the labels that equal the threshold
        for (const Index j : work_.leaders) left -= is_above(j);
        for (const Index j : work_.leaders) {
            if (!is_above(j) && (work_.value[j] < low || left-- <= 0)) continue;
            work_.marks[work_.items[j]] = 1;
        }
    }

    // Mark the best set of size k that is closed under parents; of equal ones the first in
    // depth-first order.
    void choose_closed(Index k) {
        fill_table(k);
        const Index stride = k + 1;
        for (Index j = 0, t = k; t > 0;) {
            const double* row = work_.table.data() + j * stride;
            const double with = work_.value[j] + row[stride + t - 1];
            if (with >= row[t] - slack(row[t])) {
                work_.marks[work_.items[j++]] = 1;
                --t;
            } else {
                j = work_.next[j];
            }
        }
    }

    Matrix<const T> C_;
    std::span<const Index> names_;
    std::span<const double> totals_;
    ColumnWeights column_;
    double present_;
    const Constraints& constraints_;
    ConstrainedWorkspace& work_;
    Index capacity_ = 0;  // the largest number of labels that can be chosen
    double peak_ = 0.0;
    Index best_ = -1;
};

// Replace an infeasible set by the best feasible one; return its expected F.
//
// `value` is what the decision without constraints returned: NaN if the row contradicts `nonempty`.
// chosen[slots[i]] marks label names[i], row i of C.
template <class T>
double constrain_row(Matrix<const T> C, std::span<const Index> slots, std::span<const Index> names,
                     std::span<const double> totals, const ColumnWeights& column, double empty,
                     double present, Index guess, double value, const Constraints& constraints,
                     std::span<std::int8_t> chosen, ConstrainedWorkspace& work) {
    std::fill(chosen.begin(), chosen.end(), std::int8_t{0});
    const bool impossible = std::isnan(value);
    ConstrainedRow<T> row(C, names, totals, column, empty < 0.0 && !impossible ? present : 1.0,
                          constraints, work);
    const double expected = row.decide(empty, guess);
    for (Index i = 0; i < C.rows; ++i) {
        if (work.marks[i]) chosen[slots[i]] = 1;
    }
    return impossible ? value : expected;
}

}  // namespace fgfm
