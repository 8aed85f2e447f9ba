// exp, log and log(1 + x) of vectors of lanes, by polynomials: the same bits on all instruction sets.
#pragma once

#include <algorithm>
#include <bit>
#include <numbers>

#include "arrays.hpp"

namespace fgfm {

typedef std::int64_t Bits __attribute__((vector_size(sizeof(Lanes))));

// exp(x) for x <= 0, within 2 units in the last place; 3e-308 where x is below -708.
//
// x = n log 2 + r with |r| <= log(2) / 2; the Taylor series of exp(r) is cut after r^13 / 13!,
// where its rest is below 1e-17. n is added to the exponent: the sum of a number and 1.5 * 2^52 has
// it, rounded to an integer, in its last bits.
inline Lanes exp_negative(Lanes x) {
    constexpr double SHIFT = 6755399441055744.0;
    constexpr double LOG2_HIGH = 6.93147180369123816490e-01, LOG2_LOW = 1.90821492927058770002e-10;
    const Lanes lowest = Lanes{} - 708.0;
    x = x < lowest ? lowest : x;
    const Lanes shifted = x * 1.4426950408889634074 + SHIFT;
    const Lanes n = shifted - SHIFT;
    const Lanes r = (x - n * LOG2_HIGH) - n * LOG2_LOW;
    const Lanes r2 = r * r, r4 = r2 * r2;
    // pairs of terms, by Estrin's scheme: short chains of dependent operations
    const Lanes a = 1.0 + r, b = 1.0 / 2 + r * (1.0 / 6), c = 1.0 / 24 + r * (1.0 / 120);
    const Lanes d = 1.0 / 720 + r * (1.0 / 5040), e = 1.0 / 40320 + r * (1.0 / 362880);
    const Lanes f = 1.0 / 3628800 + r * (1.0 / 39916800);
    const Lanes g = 1.0 / 479001600 + r * (1.0 / 6227020800);
    const Lanes low = a + r2 * b, middle = c + r2 * d, high = (e + r2 * f) + r4 * g;
    const Lanes result = low + r4 * (middle + r4 * high);
    return std::bit_cast<Lanes>(std::bit_cast<Bits>(result) +
                                (std::bit_cast<Bits>(shifted) << 52));
}

// log(1 + x) for 0 <= x <= 1.
//
// With 1 + f = 1 + x, or half of it above sqrt(2), and s = f / (2 + f): log(1 + f) = 2 atanh(s),
// whose series in s^2 <= 0.03 is cut after ten terms.
inline Lanes log_one_plus(Lanes x) {
    const Lanes none = {};
    const auto large = x > std::numbers::sqrt2 - 1.0;
    const Lanes f = large ? 0.5 * (x - 1.0) : x;
    const Lanes s = f / (2.0 + f), s2 = s * s, s4 = s2 * s2, s8 = s4 * s4;
    const Lanes a = 1.0 + s2 * (1.0 / 3), b = 1.0 / 5 + s2 * (1.0 / 7), c = 1.0 / 9 + s2 * (1.0 / 11);
    const Lanes d = 1.0 / 13 + s2 * (1.0 / 15), e = 1.0 / 17 + s2 * (1.0 / 19);
    const Lanes series = (a + s4 * b) + s8 * ((c + s4 * d) + s8 * e);
    return 2.0 * s * series + (large ? none + std::numbers::ln2 : none);
}

// log(x) for normal x > 0, with an absolute error of some 1e-16.
//
// x = 2^n (1 + f) with 0 <= f < 1. The exponent n becomes a number as the last bits of 2^52.
inline Lanes logarithm(Lanes x) {
    constexpr std::int64_t ONE = 0x3ff0000000000000, TWO_52 = 0x4330000000000000;
    const Bits bits = std::bit_cast<Bits>(x);
    const Lanes n = std::bit_cast<Lanes>((bits >> 52) | TWO_52) - (4503599627370496.0 + 1023.0);
    const Lanes mantissa = std::bit_cast<Lanes>((bits & 0x000fffffffffffff) | ONE);
    return n * std::numbers::ln2 + log_one_plus(mantissa - 1.0);
}

// Replace each row x by exp(x) / sum exp(x).
inline void softmax(Matrix<double> rows) {
    for (Index r = 0; r < rows.rows; ++r) {
        double* x = rows[r];
        const double top = *std::max_element(x, x + rows.cols);
        Lanes sum = {};
        double tail = 0.0;
        Index i = 0;
        for (; i + LANES <= rows.cols; i += LANES) {
            const Lanes e = exp_negative(load(x + i) - top);
            store(x + i, e);
            sum += e;
        }
        const Lanes rest = exp_negative(load_some(x + i, rows.cols - i, top) - top);
        for (Index j = 0; i + j < rows.cols; ++j) tail += x[i + j] = rest[j];
        const double share = 1.0 / (add_lanes(sum) + tail);
        for (Index j = 0; j < rows.cols; ++j) x[j] *= share;
    }
}

}  // namespace fgfm
