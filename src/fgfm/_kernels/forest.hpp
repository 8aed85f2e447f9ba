// Decision trees: grown on features in bins, with several outputs; and the leaves of rows.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "checks.hpp"
#include "signals.hpp"

namespace fgfm {

constexpr Index BINS = 64;
constexpr Index MISSING = BINS - 1;  // the bin of missing values
constexpr Index WIDTH = 8;           // outputs are padded to a multiple of this
typedef float Outputs __attribute__((vector_size(WIDTH * sizeof(float))));

// Features in bins: dense, or rows in CSR with the bin of each stored value, columns in order.
struct BinnedFeatures {
    Matrix<const std::uint8_t> columns;  // (p, n) if dense, else (0, n)
    std::span<const std::uint8_t> bins;
    std::span<const std::int32_t> indices;
    std::span<const Index> indptr;
    std::span<const std::uint8_t> zero_bin;  // (p,) the bin of 0 if sparse

    bool dense() const { return columns.rows > 0; }
    Index features() const { return dense() ? columns.rows : length(zero_bin); }
    Index bin(Index row, Index feature) const {
        if (dense()) return columns[feature][row];
        const auto first = indices.begin() + indptr[row], last = indices.begin() + indptr[row + 1];
        const auto at = std::lower_bound(first, last, static_cast<std::int32_t>(feature));
        return at != last && *at == feature ? bins[at - indices.begin()] : zero_bin[feature];
    }
};

// Require n rows of valid features. A stored feature occurs once in a row, so that every row is in
// one bin of it.
inline void check_features(const BinnedFeatures& X, Index n) {
    const auto check_bins = [](std::span<const std::uint8_t> bins) {
        std::uint8_t bits = 0;
        for (const std::uint8_t bin : bins) bits |= bin;
        require(bits < BINS, "bins must be less than 64");
    };
    if (X.dense()) {
        require(X.columns.cols == n, "columns must have one bin for each row");
        check_bins({X.columns.data, static_cast<std::size_t>(X.columns.rows * n)});
        return;
    }
    check_bins(X.bins);
    check_bins(X.zero_bin);
    require(X.bins.size() == X.indices.size(), "bins and indices must have the same length");
    require_rows(X.indptr, n, length(X.indices));
    require_indices(X.indices, 0, X.features(), "indices must be features");
    for (Index row = 0; row < n; ++row) {
        for (Index at = X.indptr[row] + 1; at < X.indptr[row + 1]; ++at) {
            require(X.indices[at - 1] < X.indices[at], "indices of a row must increase");
        }
    }
}

// SplitMix64: a small generator whose stream is the same on all platforms.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    // A number below `bound`; its bias is below bound / 2^32.
    Index below(Index bound) {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return static_cast<Index>(((z ^ (z >> 31)) >> 32) * static_cast<std::uint64_t>(bound) >> 32);
    }

private:
    std::uint64_t state_;
};

// NodeSums of the rows of a node, or of those in one bin.
struct NodeSums {
    Outputs* outputs;  // (K / WIDTH), weighted
    double weight;
    Index count;
};

struct Split {
    double score = -1.0;  // sum of S^2 / W over both sides and all outputs
    Index feature = -1;
    Index bin = 0;  // rows with bin <= this go left
    bool missing = false, missing_left = false;  // whether there are missing values; where they go
};

// TreeNodes of one tree, in arrays with room for 2 rows / leaf.
struct TreeNodes {
    std::int32_t *left, *right, *feature;
    std::uint8_t *bin, *missing_left;
};

class TreeGrower {
public:
    // `values` (n, K) are outputs times weights, K a multiple of WIDTH.
    TreeGrower(const BinnedFeatures& X, Matrix<const float> values, std::span<const float> weight,
               Index most_features, Index leaf, std::uint64_t seed)
        : X_(X), values_(values), weight_(weight), most_(most_features), leaf_(leaf),
          random_(seed), parts_(values.cols / WIDTH), order_(X.features()), seen_(X.features()),
          sums_(BINS * parts_), node_(parts_), left_(parts_), right_(parts_) {
        for (Index f = 0; f < X.features(); ++f) order_[f] = static_cast<std::int32_t>(f);
        std::fill(seen_.begin(), seen_.end(), Seen{});
    }

    // Grow a tree on `rows`, which are reordered; return the number of nodes. Children come after
    // their parent.
    Index grow(std::span<Index> rows, TreeNodes nodes) {
        struct Open {
            Index first, last, parent;
            bool is_left;
        };
        std::vector<Open> open{{0, length(rows), -1, false}};
        Scratch<Index> moved(length(rows));
        Index count = 0;
        while (!open.empty()) {
            check_signals();
            const auto [first, last, parent, is_left] = open.back();
            open.pop_back();
            const Index node = count++;
            if (parent >= 0) {
                (is_left ? nodes.left : nodes.right)[parent] = static_cast<std::int32_t>(node);
            }
            const std::span<Index> own = rows.subspan(first, last - first);
            const Split split = find(own);
            nodes.left[node] = nodes.right[node] = nodes.feature[node] = -1;
            nodes.bin[node] = nodes.missing_left[node] = 0;
            if (split.feature < 0) continue;
            nodes.feature[node] = static_cast<std::int32_t>(split.feature);
            nodes.bin[node] = static_cast<std::uint8_t>(split.bin);
            const Index middle = partition(own, split, moved);
            nodes.missing_left[node] = split.missing ? split.missing_left : 2 * middle >= last - first;
            open.push_back({first + middle, last, node, false});
            open.push_back({first, first + middle, node, true});
        }
        return count;
    }

private:
    struct Seen {  // of a feature in the rows of a node; sparse features only
        std::int32_t count = 0, slot = -1;
        std::uint8_t bin = 0;
        bool varies = false;
    };
    struct Entry {
        Index row;
        std::uint8_t bin;
    };

    const BinnedFeatures& X_;
    Matrix<const float> values_;
    std::span<const float> weight_;
    const Index most_, leaf_;
    Random random_;
    const Index parts_;
    Scratch<std::int32_t> order_;
    Scratch<Seen> seen_;
    Scratch<Outputs> sums_;
    Scratch<Outputs> node_, left_, right_;
    double weights_[BINS];
    Index counts_[BINS];
    std::vector<Entry> entries_;
    std::vector<std::int32_t> touched_;
    std::vector<Index> starts_;

    Outputs output(Index row, Index part) const {
        Outputs result;
        std::memcpy(&result, values_[row] + part * WIDTH, sizeof result);
        return result;
    }

    // The sum of S^2 over the outputs; the order of additions is fixed.
    static double square(const Outputs* sums, Index parts) {
        Outputs total{};
        for (Index k = 0; k < parts; ++k) total += sums[k] * sums[k];
        double result = 0.0;
        for (Index k = 0; k < WIDTH; ++k) result += total[k];
        return result;
    }

    // Find the best split of some rows; none if they are too few or all alike.
    Split find(std::span<const Index> rows) {
        Split best;
        const Index n = length(rows);
        if (n / 2 < leaf_) return best;
        std::fill(node_.begin(), node_.end(), Outputs{});
        NodeSums all{node_.data(), 0.0, n};
        bool alike = true;
        for (const Index row : rows) {
            all.weight += weight_[row];
            for (Index k = 0; k < parts_; ++k) all.outputs[k] += output(row, k);
            alike = alike && same(rows[0], row);
        }
        if (alike) return best;
        if (X_.dense()) {
            find_dense(rows, all, best);
        } else {
            find_sparse(rows, all, best);
        }
        return best;
    }

    // Whether two rows have the same outputs, up to rounding of the products with their weights.
    bool same(Index a, Index b) const {
        for (Index k = 0; k < values_.cols; ++k) {
            const float u = values_[a][k] * weight_[b], v = values_[b][k] * weight_[a];
            if (std::abs(u - v) > 1e-6f * (std::abs(u) + std::abs(v))) return false;
        }
        return true;
    }

    // Try features in random order until enough of them vary.
    void find_dense(std::span<const Index> rows, const NodeSums& all, Split& best) {
        Index tried = 0;
        for (Index k = 0; k < X_.features() && tried < most_; ++k) {
            std::swap(order_[k], order_[k + random_.below(X_.features() - k)]);
            const Index feature = order_[k];
            const std::uint8_t* column = X_.columns[feature];
            std::uint64_t used = 0;
            for (const Index row : rows) add(row, column[row], used);
            if ((used & (used - 1)) == 0) continue;  // one bin
            ++tried;
            scan(feature, used, all, best);
        }
    }

    // Look at the stored values of the rows once to see which features vary, draw some of these, and
    // look again for their bins. Rows without a stored value are in the bin of 0.
    void find_sparse(std::span<const Index> rows, const NodeSums& all, Split& best) {
        // Pointers in local variables: the compiler cannot know that the stores leave them alone.
        const std::int32_t* indices = X_.indices.data();
        const std::uint8_t* bins = X_.bins.data();
        const Index* indptr = X_.indptr.data();
        Seen* const seen_of = seen_.data();
        touched_.clear();
        for (const Index row : rows) {
            for (Index at = indptr[row], end = indptr[row + 1]; at < end; ++at) {
                Seen& seen = seen_of[indices[at]];
                if (seen.count++ == 0) {
                    touched_.push_back(indices[at]);
                    seen.bin = bins[at];
                }
                seen.varies |= seen.bin != bins[at];
            }
        }
        const Index n = length(rows);
        Index candidates = 0;
        for (const std::int32_t feature : touched_) {
            const Seen& seen = seen_[feature];
            if (seen.varies || (seen.count < n && seen.bin != X_.zero_bin[feature])) {
                order_[candidates++] = feature;
            }
        }
        const Index drawn = std::min(candidates, most_);
        starts_.assign(1, 0);
        for (Index k = 0; k < drawn; ++k) {
            std::swap(order_[k], order_[k + random_.below(candidates - k)]);
            seen_[order_[k]].slot = static_cast<std::int32_t>(k);
            starts_.push_back(starts_.back() + seen_[order_[k]].count);
        }
        entries_.resize(starts_.back());
        Index* const next = starts_.data();  // starts_[k] becomes the end of feature k
        Entry* const entries = entries_.data();
        for (const Index row : rows) {
            for (Index at = indptr[row], end = indptr[row + 1]; at < end; ++at) {
                const std::int32_t slot = seen_of[indices[at]].slot;
                if (slot >= 0) entries[next[slot]++] = {row, bins[at]};
            }
        }
        Index start = 0;
        for (Index k = 0; k < drawn; ++k) {
            std::uint64_t used = 0;
            for (Index at = start; at < next[k]; ++at) add(entries_[at].row, entries_[at].bin, used);
            add_rest(X_.zero_bin[order_[k]], all, used);
            scan(order_[k], used, all, best);
            start = next[k];
        }
        for (const std::int32_t feature : touched_) seen_[feature] = Seen{};
    }

    void open_bin(Index bin, std::uint64_t& used) {
        if (used >> bin & 1) return;
        used |= std::uint64_t{1} << bin;
        std::fill_n(sums_.data() + bin * parts_, parts_, Outputs{});
        weights_[bin] = 0.0;
        counts_[bin] = 0;
    }

    void add(Index row, Index bin, std::uint64_t& used) {
        open_bin(bin, used);
        Outputs* sums = sums_.data() + bin * parts_;
        for (Index k = 0; k < parts_; ++k) sums[k] += output(row, k);
        weights_[bin] += weight_[row];
        ++counts_[bin];
    }

    // Add the rows that are in no bin yet.
    void add_rest(Index zero, const NodeSums& all, std::uint64_t& used) {
        open_bin(zero, used);
        Outputs* sums = sums_.data() + zero * parts_;
        Index count = all.count;
        double weight = all.weight;
        std::copy_n(all.outputs, parts_, left_.data());
        for (std::uint64_t rest = used; rest != 0; rest &= rest - 1) {
            const Index bin = std::countr_zero(rest);
            count -= counts_[bin];
            weight -= weights_[bin];
            for (Index k = 0; k < parts_; ++k) left_[k] -= sums_[bin * parts_ + k];
        }
        for (Index k = 0; k < parts_; ++k) sums[k] += left_[k];
        weights_[zero] += weight;
        counts_[zero] += count;
    }

    // Compare the splits between the used bins; missing values go to either side.
    void scan(Index feature, std::uint64_t used, const NodeSums& all, Split& best) {
        const bool missing = used >> MISSING & 1;
        for (int side = 0; side <= (missing ? 1 : 0); ++side) {
            NodeSums left{left_.data(), 0.0, 0};
            std::fill_n(left.outputs, parts_, Outputs{});
            if (side == 1) move(left, MISSING);
            std::uint64_t rest = used & ~(std::uint64_t{1} << MISSING);
            // After the last bin only missing values remain, on the right.
            while (rest != 0 && ((rest & (rest - 1)) != 0 || (missing && side == 0))) {
                const Index bin = std::countr_zero(rest);
                rest &= rest - 1;
                move(left, bin);
                if (left.count < leaf_ || all.count - left.count < leaf_) continue;
                for (Index k = 0; k < parts_; ++k) right_[k] = all.outputs[k] - left.outputs[k];
                const double score = square(left.outputs, parts_) / left.weight +
                                     square(right_.data(), parts_) / (all.weight - left.weight);
                if (score > best.score) best = {score, feature, bin, missing, side == 1};
            }
        }
    }

    void move(NodeSums& to, Index bin) const {
        for (Index k = 0; k < parts_; ++k) to.outputs[k] += sums_[bin * parts_ + k];
        to.weight += weights_[bin];
        to.count += counts_[bin];
    }

    // Move the rows that go left to the front, both sides in their order; return their number.
    Index partition(std::span<Index> rows, const Split& split, Scratch<Index>& moved) const {
        Index left = 0, right = 0;
        for (const Index row : rows) {
            const Index bin = X_.bin(row, split.feature);
            const bool goes_left = bin == MISSING ? split.missing_left : bin <= split.bin;
            (goes_left ? rows[left++] : moved[right++]) = row;
        }
        std::copy_n(moved.data(), right, rows.data() + left);
        return left;
    }
};

// Trees in arrays of nodes, one tree after the other; a leaf has left = -1.
struct Trees {
    std::span<const Index> root;
    std::span<const std::int32_t> left, right, feature;
    std::span<const double> threshold;
    std::span<const std::uint8_t> missing_left;  // where missing values go
};

// Set leaves[row, tree]; return false if a node does not exist.
//
// Children come after their parent, which is checked, so that damaged trees do not loop.
inline bool apply_trees(Matrix<const float> X, const Trees& trees, Matrix<std::int32_t> leaves) {
    const Index count = length(trees.left);
    for (Index t = 0; t < length(trees.root); ++t) {
        for (Index row = 0; row < X.rows; ++row) {
            Index node = trees.root[t];
            if (node < 0 || node >= count) return false;
            while (trees.left[node] >= 0) {
                const Index feature = trees.feature[node];
                if (feature < 0 || feature >= X.cols) return false;
                const float x = X[row][feature];
                const bool left =
                    std::isnan(x) ? trees.missing_left[node] != 0 : x <= trees.threshold[node];
                const Index next = left ? trees.left[node] : trees.right[node];
                if (next <= node || next >= count) return false;
                node = next;
            }
            leaves[row][t] = static_cast<std::int32_t>(node);
        }
    }
    return true;
}

}  // namespace fgfm
