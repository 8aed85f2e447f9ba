// Z' diag(weight) Z for sparse rows Z.
//
// A product of two sparse matrices would form the pattern of the result as well, which takes five
// times as long where the result is dense.
#pragma once

#include <algorithm>
#include <span>

#include "arrays.hpp"

namespace fgfm {

// Set the lower triangle of Z' diag(weight) Z, Z in CSR with columns in order; the rest is 0.
inline void weighted_gram(const double* data, const std::uint32_t* indices,
                          std::span<const Index> indptr, const double* weight,
                          Matrix<double> gram) {
    std::fill(gram.data, gram.data + gram.rows * gram.cols, 0.0);
    for (Index g = 0; g + 1 < length(indptr); ++g) {
        const Index start = indptr[g], end = indptr[g + 1];
        for (Index i = start; i < end; ++i) {
            const double entry = weight[g] * data[i];
            double* row = gram[indices[i]];
            for (Index k = start; k <= i; ++k) row[indices[k]] += entry * data[k];
        }
    }
}

}  // namespace fgfm
