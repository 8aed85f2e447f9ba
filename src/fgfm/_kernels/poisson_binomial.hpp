// The distribution of the number of independent labels.
#pragma once

#include <algorithm>
#include <span>

#include "arrays.hpp"

namespace fgfm {

constexpr Index NUMBERS = 2 * LANES;     // numbers of labels that are computed side by side
constexpr double NEGLIGIBLE = 0x1p-960;  // probabilities below this become 0: no subnormal numbers

// Return the room for the probabilities of 0 .. S labels: whole vectors, with zeros around them.
constexpr Index numbers_width(Index S) { return (S + NUMBERS) / NUMBERS * NUMBERS; }
constexpr Index numbers_room(Index S) { return numbers_width(S) + 2 * NUMBERS; }

// The distribution of the number of some labels, up to a largest number.
//
// Labels are added one after the other: positive terms only. A probability never grows by more than
// what its neighbour loses, so that NEGLIGIBLE ones stay so.
struct Numbers {
    double* at = nullptr;     // `width` probabilities
    Index width = 0;          // a multiple of NUMBERS
    Index low = 0, high = 0;  // the others are 0; NUMBERS of them are, on either side

    // The number of no labels. `room` has numbers_room(S) elements.
    static Numbers none(double* room, Index S) {
        std::fill(room, room + numbers_room(S), 0.0);
        Numbers result{room + NUMBERS, numbers_width(S)};
        result.at[0] = 1.0;
        return result;
    }

    // Become the number of the labels of `from` and of one more, which is present with probability q
    // and absent with probability c.
    void add(const Numbers& from, double q, double c) {
        low = from.low;
        high = std::min(from.high + 1, width - 1);
        const Index first = low / LANES * LANES, last = high / LANES * LANES;
        for (Index s = last; s >= first; s -= LANES) {
            store(at + s, load(from.at + s) * c + load(from.at + s - 1) * q);
        }
        if (at != from.at) {
            std::fill(at + first - NUMBERS, at + first, 0.0);
            std::fill(at + last + LANES, at + last + LANES + NUMBERS, 0.0);
        }
        drop_negligible();
    }

    // Add many labels, two at a time.
    void add(std::span<const double> q, std::span<const double> c) {
        const std::size_t even = q.size() / 2 * 2;
        for (std::size_t i = 0; i < even; i += 2) {
            const double none = c[i] * c[i + 1], both = q[i] * q[i + 1];
            const double one = c[i] * q[i + 1] + q[i] * c[i + 1];
            high = std::min(high + 2, width - 1);
            for (Index s = high / LANES * LANES; s >= low / LANES * LANES; s -= LANES) {
                store(at + s, load(at + s) * none + load(at + s - 1) * one + load(at + s - 2) * both);
            }
            drop_negligible();
        }
        if (even < q.size()) add(*this, q[even], c[even]);
    }

private:
    void drop_negligible() {
        while (low < high && at[low] < NEGLIGIBLE) at[low++] = 0.0;
        while (low < high && at[high] < NEGLIGIBLE) at[high--] = 0.0;
    }
};

// Fill d[r, s], (n, S + 1), with the probability of s labels, independent with p, (n, m).
//
// O(m S) per row. S may be less than m; the row of d then sums to less than 1.
inline void poisson_binomial(Matrix<const double> p, Matrix<double> d) {
    const Index S = d.cols - 1;
    Scratch<double> room(numbers_room(S)), absent(p.cols);
    for (Index r = 0; r < p.rows; ++r) {
        Numbers number = Numbers::none(room.data(), S);
        for (Index i = 0; i < p.cols; ++i) absent[i] = 1.0 - p[r][i];
        number.add(p.row(r), absent);
        std::copy(number.at, number.at + d.cols, d[r]);
    }
}

}  // namespace fgfm
