// Sums of columns, each by itself and from the first row to the last.
//
// NumPy adds one column in another order than several, and BLAS in yet others: here a column has
// the same sum, to the last bit, whatever columns are beside it.
#pragma once

#include <algorithm>

#include "arrays.hpp"

namespace fgfm {

// Set sums[j] to the sum of values[:, j].
inline void add_columns(Matrix<const double> values, double* sums) {
    std::fill(sums, sums + values.cols, 0.0);
    for (Index i = 0; i < values.rows; ++i) {
        const double* row = values[i];
        for (Index j = 0; j < values.cols; ++j) sums[j] += row[j];
    }
}

// Set sums[j] to the scalar product of left[:, j] and right[:, j].
inline void multiply_columns(Matrix<const double> left, Matrix<const double> right, double* sums) {
    std::fill(sums, sums + left.cols, 0.0);
    for (Index i = 0; i < left.rows; ++i) {
        const double *a = left[i], *b = right[i];
        for (Index j = 0; j < left.cols; ++j) sums[j] += a[j] * b[j];
    }
}

}  // namespace fgfm
