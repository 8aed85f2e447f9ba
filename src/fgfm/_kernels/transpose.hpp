// Transposition of strided matrices, tile by tile.
#pragma once

#include <algorithm>
#include <cstring>

#include "arrays.hpp"

namespace fgfm {

// A matrix with any distance between its rows and between its columns.
template <class T>
struct Strided {
    T* data;
    Index rows, cols;
    Index row_step, col_step;

    T& operator()(Index i, Index j) const { return data[i * row_step + j * col_step]; }
};

// Transpose 4 x 4 elements, `from_step` and `to_step` between their rows, in vector registers.
template <class T>
inline void transpose_tile(const T* from, Index from_step, T* to, Index to_step) {
    typedef T Four __attribute__((vector_size(4 * sizeof(T))));
    Four a, b, c, d;
    std::memcpy(&a, from, sizeof a);
    std::memcpy(&b, from + from_step, sizeof a);
    std::memcpy(&c, from + 2 * from_step, sizeof a);
    std::memcpy(&d, from + 3 * from_step, sizeof a);
    const Four ab_even = __builtin_shufflevector(a, b, 0, 4, 2, 6);
    const Four ab_odd = __builtin_shufflevector(a, b, 1, 5, 3, 7);
    const Four cd_even = __builtin_shufflevector(c, d, 0, 4, 2, 6);
    const Four cd_odd = __builtin_shufflevector(c, d, 1, 5, 3, 7);
    a = __builtin_shufflevector(ab_even, cd_even, 0, 1, 4, 5);
    b = __builtin_shufflevector(ab_odd, cd_odd, 0, 1, 4, 5);
    c = __builtin_shufflevector(ab_even, cd_even, 2, 3, 6, 7);
    d = __builtin_shufflevector(ab_odd, cd_odd, 2, 3, 6, 7);
    std::memcpy(to, &a, sizeof a);
    std::memcpy(to + to_step, &b, sizeof a);
    std::memcpy(to + 2 * to_step, &c, sizeof a);
    std::memcpy(to + 3 * to_step, &d, sizeof a);
}

// to[j, i] = from[i, j]
template <class T>
void transpose(const Strided<const T>& from, const Strided<T>& to) {
    const bool unit = from.col_step == 1 && to.col_step == 1;
    const Index rows = unit ? from.rows / 4 * 4 : 0, cols = from.cols / 4 * 4;  // in whole tiles
    for (Index i = 0; i < rows; i += 4) {
        for (Index j = 0; j < cols; j += 4) {
            transpose_tile(&from(i, j), from.row_step, &to(j, i), to.row_step);
        }
        if (cols == from.cols) continue;
        if (cols > 0) {  // the last columns, with some of those before
            const Index j = from.cols - 4;
            transpose_tile(&from(i, j), from.row_step, &to(j, i), to.row_step);
            continue;
        }
        for (Index j = 0; j < from.cols; ++j) {
            for (Index k = i; k < i + 4; ++k) to(j, k) = from(k, j);
        }
    }
    for (Index i = rows; i < from.rows; ++i) {
        for (Index j = 0; j < from.cols; ++j) to(j, i) = from(i, j);
    }
}

}  // namespace fgfm
