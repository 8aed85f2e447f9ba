// P of draws of label sets: relative frequencies.
#pragma once

#include <algorithm>

#include "arrays.hpp"
#include "checks.hpp"

namespace fgfm {

// Return the number of labels of a draw of 0 and 1.
inline Index size_of_draw(const std::uint8_t* draw, Index m) {
    Index size = 0;
    for (Index i = 0; i < m; ++i) size += draw[i];
    return size;
}

// Return the largest number of labels in a block of draws, and at least 1.
inline Index largest_draw(const std::uint8_t* draws, Index count, Index m) {
    Index largest = 1;
    for (Index t = 0; t < count; ++t) largest = std::max(largest, size_of_draw(draws + t * m, m));
    return largest;
}

// Fill P, (n, m, S), which is 0, with the frequencies of draws, (n, T, m), of at most S labels.
inline void count_draws(const std::uint8_t* draws, Index n, Index T, Index m, Index S,
                        double* P) {
    for (Index row = 0; row < n; ++row, P += m * S) {
        for (Index t = 0; t < T; ++t, draws += m) {
            const Index size = size_of_draw(draws, m);
            require(size <= S, "draws must have at most S labels");
            if (size == 0) continue;
            double* column = P + size - 1;
            for (Index i = 0; i < m; ++i) column[i * S] += draws[i];
        }
        for (Index j = 0; j < m * S; ++j) P[j] /= static_cast<double>(T);
    }
}

}  // namespace fgfm
