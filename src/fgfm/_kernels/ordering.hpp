// Stable descending sorts of values and their places, fast where the order is almost right.
#pragma once

#include <algorithm>
#include <span>

#include "arrays.hpp"

namespace fgfm {

constexpr double TINY = 1e-280;      // differences below this have no reciprocal to scale by
constexpr Index INSERTION_RUN = 16;  // lists up to this length are sorted by insertion alone

// Sort downwards by merging, from any order; equal values keep their order.
inline void merge_sort(std::span<double> value, std::span<Index> place, double* spare_value,
                       Index* spare_place) {
    const Index size = length(value);
    for (Index width = 1; width < size; width *= 2) {
        for (Index low = 0; low < size - width; low += 2 * width) {
            const Index middle = low + width;
            if (value[middle] <= value[middle - 1]) continue;
            const Index high = std::min(middle + width, size);
            std::copy(value.begin() + low, value.begin() + middle, spare_value + low);
            std::copy(place.begin() + low, place.begin() + middle, spare_place + low);
            Index left = low, right = middle, out = low;
            while (left < middle) {
                if (right < high && value[right] > spare_value[left]) {
                    value[out] = value[right];
                    place[out++] = place[right++];
                } else {
                    value[out] = spare_value[left];
                    place[out++] = spare_place[left++];
                }
            }
        }
    }
}

// Sort an almost sorted list downwards; equal values keep their order.
//
// Insertion costs the number of inversions. Beyond a budget a merge sort takes over.
inline void repair_order(std::span<double> value, std::span<Index> place, double* spare_value,
                         Index* spare_place) {
    const Index size = length(value);
    Index budget = 8 * size;
    for (Index i = 1; i < size; ++i) {
        const double v = value[i];
        const Index at = place[i];
        Index j = i;
        for (; j > 0 && v > value[j - 1]; --j) {
            value[j] = value[j - 1];
            place[j] = place[j - 1];
        }
        value[j] = v;
        place[j] = at;
        budget -= i - j;
        if (budget < 0) {
            merge_sort(value, place, spare_value, spare_place);
            return;
        }
    }
}

// Sort a list downwards; equal values keep their order.
//
// The values are first dealt into as many buckets of equal width as there are values, which leaves
// little to repair unless they are very unevenly spread. The spare arrays have room for as many
// elements, `count` for two more.
inline void sort_descending(std::span<double> value, std::span<Index> place, double* spare_value,
                            Index* spare_place, Index* count) {
    const Index size = length(value);
    if (size > INSERTION_RUN) {
        const auto [lowest, highest] = std::minmax_element(value.begin(), value.end());
        const double top = *highest, bottom = *lowest;
        if (top - bottom > size * TINY) {
            std::copy(value.begin(), value.end(), spare_value);
            std::copy(place.begin(), place.end(), spare_place);
            const double scale = (size - 1) / (top - bottom);
            std::fill(count, count + size + 1, Index{0});
            for (Index i = 0; i < size; ++i) {
                ++count[static_cast<Index>((top - value[i]) * scale) + 1];
            }
            for (Index b = 0; b < size; ++b) count[b + 1] += count[b];
            for (Index i = 0; i < size; ++i) {
                const Index to = count[static_cast<Index>((top - spare_value[i]) * scale)]++;
                value[to] = spare_value[i];
                place[to] = spare_place[i];
            }
        }
    }
    repair_order(value, place, spare_value, spare_place);
}

}  // namespace fgfm
