// Bets against a hypothesis about the mean of values in [0, 1].
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "arrays.hpp"

namespace fgfm {

// Return the wealth after betting on one value after the other that their mean exceeds `mean`, which
// is in (0, 1); stop where it reaches `target`, which is less than 1 ("A guarantee").
//
// The stake on a value is a concave function of the wealth that is 0 at 0 and 1. `precision` is the
// reciprocal of the standard deviation of the sum of the values to come, relative to that of
// Bernoulli(mean) values.
inline double bet(std::span<const double> values, std::span<const double> precision, double mean,
                  double wealth, double target) {
    const double scale = 1.45 / std::sqrt(mean * (1.0 - mean));
    const double per_mean = 1.0 / mean, per_rest = 1.0 / (1.0 - mean);
    for (Index i = 0; i < length(values) && wealth < target; ++i) {
        // 1.45 (w (1 - w))^(7/8) is close to the Gaussian density at its quantile w, in roots that
        // every processor rounds alike.
        const double root = std::sqrt(wealth * (1.0 - wealth));
        const double fourth = std::sqrt(root);
        const double shape = root * fourth * std::sqrt(fourth);
        // The two limits: wealth stays at least 0 if the value is 0, and at most 1 if it is 1.
        const double limit = std::min(wealth * per_mean, (1.0 - wealth) * per_rest);
        const double stake = std::min(shape * (scale * precision[i]), limit);
        wealth = std::max(wealth + stake * (values[i] - mean), 0.0);
    }
    return wealth;
}

}  // namespace fgfm
