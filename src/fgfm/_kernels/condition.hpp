// Independent labels, given their number.
//
// For labels with odds w_i, p(y | |y| = s) is the product of the odds of the labels in y, divided by
// the sum of such products over all sets of s labels. A common factor of the odds cancels, and we
// take one for which the labels would have a mean of about s (tilt.hpp): s is then near the mode,
// and no number that matters underflows. With q the tilted probabilities, F_i(j) the probability of
// j labels among the first i, and B_i(j) that of s - j labels among the others,
//
//     p(y_i = 1 | s) = q_i sum_j F_{i-1}(j) B_i(j + 1) / F_m(s):
//
// positive terms only, O(m s) for all labels of one s.
#pragma once

#include <algorithm>
#include <vector>

#include "arrays.hpp"
#include "tilt.hpp"

namespace fgfm {

constexpr double NEAR_STEP = 0.3;  // the last step of the common logarithm: its error cancels

// Replace tilted q[0:k], of a sum near s, by the probabilities given s labels.
inline void condition_on_sum(double* q, Index k, Index s, std::vector<double>& forward,
                             std::vector<double>& backward) {
    const Index width = s + 1;
    double* F = forward.data();  // (k + 1, s + 1)
    std::fill(F, F + width, 0.0);
    F[0] = 1.0;
    for (Index i = 0; i < k; ++i) {
        const double p = q[i];
        const double* before = F + i * width;
        double* after = F + (i + 1) * width;
        const Index reached = std::min(s, i + 1);
        after[0] = before[0] * (1.0 - p);
        for (Index j = 1; j <= reached; ++j) after[j] = before[j] * (1.0 - p) + before[j - 1] * p;
        std::fill(after + reached + 1, after + width, 0.0);
    }
    const double total = F[k * width + s];
    double* B = backward.data();
    std::fill(B, B + s, 0.0);
    B[s] = 1.0;
    for (Index i = k - 1; i >= 0; --i) {
        const double p = q[i];
        const double* before = F + i * width;
        double inside = 0.0;
        for (Index j = 0; j < std::min(s, i + 1); ++j) inside += before[j] * B[j + 1];
        q[i] = std::min(1.0, p * inside / total);
        for (Index j = 0; j < s; ++j) B[j] = B[j] * (1.0 - p) + B[j + 1] * p;
        B[s] *= 1.0 - p;
    }
}

// Fill P[r, i, s - 1] = d[r, s] p(y_i = 1 | s) for independent labels of these logits.
//
// `logits` is (n, m), `d` is (n, S + 1), and P is (n, m, S). Infinite logits are certain and
// impossible labels, which give way as in tilt.hpp. Nothing is computed where d[r, s] is 0.
inline void condition(Matrix<const double> logits, Matrix<const double> d, double* P, Index S) {
    const Index m = logits.cols;
    SortedLogits sorted(m);
    std::vector<double> q(m), forward((m + 1) * (S + 1)), backward(S + 1);
    for (Index r = 0; r < logits.rows; ++r) {
        sorted.sort(logits[r], 1);
        for (Index s = 1; s <= S; ++s) {
            double* column = P + r * m * S + s - 1;
            const double mass = d[r][s];
            if (mass == 0.0) {
                for (Index i = 0; i < m; ++i) column[i * S] = 0.0;
                continue;
            }
            sorted.include(s, NEAR_STEP, q.data());
            if (sorted.certain < s && s < sorted.possible) {
                condition_on_sum(q.data() + sorted.certain, sorted.possible - sorted.certain,
                                 s - sorted.certain, forward, backward);
            }
            for (Index i = 0; i < m; ++i) column[sorted.label[i] * S] = mass * q[i];
        }
    }
}

}  // namespace fgfm
