// The distribution of the number of independent labels.
#pragma once

#include <algorithm>

#include "arrays.hpp"

namespace fgfm {

// Fill d[r, s], (n, S + 1), with the probability of s labels, independent with p, (n, m).
//
// Convolution with one label after the other: positive terms only, O(m S) per row. S may be less
// than m; the row of d then sums to less than 1.
inline void poisson_binomial(Matrix<const double> p, Matrix<double> d) {
    const Index S = d.cols - 1;
    for (Index r = 0; r < p.rows; ++r) {
        double* own = d[r];
        std::fill(own, own + S + 1, 0.0);
        own[0] = 1.0;
        for (Index i = 0; i < p.cols; ++i) {
            const double x = p[r][i];
            for (Index s = std::min(S, i + 1); s > 0; --s) {
                own[s] = own[s] * (1.0 - x) + own[s - 1] * x;
            }
            own[0] *= 1.0 - x;
        }
    }
}

}  // namespace fgfm
