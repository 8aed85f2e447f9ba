// The leaves of rows in decision trees.
#pragma once

#include <cmath>
#include <span>

#include "arrays.hpp"

namespace fgfm {

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
