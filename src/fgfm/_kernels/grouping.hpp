// Groups of equal rows.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "arrays.hpp"

namespace fgfm {

// Set the group of each row, numbered in the order of their first rows; return these first rows, or
// nothing as soon as there are more than `most` groups.
inline std::vector<Index> group_rows(Matrix<const double> X, Index most, Index* group) {
    const std::uint64_t slots = std::bit_ceil(static_cast<std::uint64_t>(2 * most + 2));
    std::vector<Index> table(slots, -1);  // groups by the hash of their rows
    std::vector<Index> first;
    for (Index i = 0; i < X.rows; ++i) {
        const double* row = X[i];
        std::uint64_t hash = 0;
        for (Index j = 0; j < X.cols; ++j) {
            hash = (hash ^ std::bit_cast<std::uint64_t>(row[j] + 0.0)) * 0x9E3779B97F4A7C15;  // -0 is 0
            hash ^= hash >> 32;
        }
        std::uint64_t slot = hash & (slots - 1);
        while (table[slot] >= 0 && !std::equal(row, row + X.cols, X[first[table[slot]]])) {
            slot = (slot + 1) & (slots - 1);
        }
        if (table[slot] < 0) {
            if (static_cast<Index>(first.size()) == most) return {};
            table[slot] = static_cast<Index>(first.size());
            first.push_back(i);
        }
        group[i] = table[slot];
    }
    return first;
}

}  // namespace fgfm
