// Checks of the sizes and indices that enter a kernel: wrong ones raise ValueError.
//
// Arrays may come from a damaged model. A kernel addresses memory by what was checked here only.
#pragma once

#include <algorithm>
#include <span>
#include <stdexcept>

#include "arrays.hpp"

namespace fgfm {

inline void require(bool holds, const char* rule) {
    if (!holds) throw std::invalid_argument(rule);
}

// Require least <= index < limit of all indices.
template <class T>
void require_indices(std::span<const T> indices, Index least, Index limit, const char* rule) {
    if (indices.empty()) return;
    T low = indices[0], high = indices[0];
    for (const T i : indices) {  // without branches: one pass in vector registers
        low = i < low ? i : low;
        high = i > high ? i : high;
    }
    require(static_cast<Index>(low) >= least && static_cast<Index>(high) < limit, rule);
}

// Require that `indptr` divides `stored` entries among `rows` rows.
inline void require_rows(std::span<const Index> indptr, Index rows, Index stored) {
    require(length(indptr) == rows + 1 && indptr.front() == 0 && indptr.back() == stored &&
                std::is_sorted(indptr.begin(), indptr.end()),
            "indptr must rise from 0 to the number of entries, with one number more than rows");
}

}  // namespace fgfm
