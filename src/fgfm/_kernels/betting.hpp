// Bets against a hypothesis about the mean of values in [0, 1].
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "arrays.hpp"

namespace fgfm {

// Bet that the mean of values exceeds `mean`, which is in (0, 1): on each column of `values` by
// itself, from its first value to its last, with wealth[k] for column k. Wealth stays in [0, 1]
// ("A guarantee").
//
// The stake on a value is a concave function of the wealth that is 0 at 0 and 1, divided by the
// standard deviation of the sum of the values to come, which the past rows of `reference` show: the
// values themselves, or, if the values depend on the hypothesis, others that do not.
inline void bet(Matrix<const double> values, Matrix<const double> reference, double mean,
                double* wealth) {
    // The variance of a value is v mean (1 - mean) with v in [0, 1]. The estimate of v starts with
    // the variance of one Bernoulli(1/2) value.
    constexpr double PRIOR = 0.25;
    const double scale = 1.45 / std::sqrt(mean * (1.0 - mean));
    const double per_mean = 1.0 / mean, per_rest = 1.0 / (1.0 - mean);
    std::vector<double> total(values.cols), squares(values.cols);  // of the past of the reference
    for (Index i = 0; i < values.rows; ++i) {
        const double *row = values[i], *seen = reference[i];
        const double per_seen = 1.0 / static_cast<double>(std::max<Index>(i, 1));
        // All that is allowed is staked on the last value.
        const double left = static_cast<double>(values.rows - i);
        const double precision = left > 1.0 ? scale / std::sqrt(left) : 1e100;
        for (Index k = 0; k < values.cols; ++k) {
            const double x = row[k], w = wealth[k];
            // v is the sum of squared deviations relative to that of 0/1 values of the same mean.
            const double square_of_mean = total[k] * total[k] * per_seen;
            const double deviations = std::max(squares[k] - square_of_mean, 0.0);
            const double largest = std::max(total[k] - square_of_mean, 0.0);
            const double per_v = std::max((PRIOR + largest) / (PRIOR + deviations), 1.0);
            // 1.45 (w (1 - w))^(7/8) is close to the Gaussian density at its quantile w, in roots
            // that every processor rounds alike.
            const double root = std::sqrt(w * (1.0 - w));
            const double fourth = std::sqrt(root);
            const double shape = root * fourth * std::sqrt(fourth);
            // The two limits: wealth stays at least 0 if the value is 0, and at most 1 if it is 1.
            const double limit = std::min(w * per_mean, (1.0 - w) * per_rest);
            const double stake = std::min(shape * (precision * std::sqrt(per_v)), limit);
            wealth[k] = std::min(std::max(w + stake * (x - mean), 0.0), 1.0);
            total[k] += seen[k];
            squares[k] += seen[k] * seen[k];
        }
    }
}

}  // namespace fgfm
