// Which labels can be the last one of an optimal set, where labels are independent.
//
// With M_k the sum of the k largest marginals, E and v mean and variance of |y|,
//
//     M_k / (beta^2 (1 + E) + k)
//         <= V_k / (1 + beta^2)
//         <= M_k (1 + beta^4 v / ((beta^2 E + k) (beta^2 + k))) / (beta^2 E + k),
//
// from Jensen and from E[1/X] - 1/E[X] <= Var(X) / (E[X]^2 min X). With many expected labels the
// two are close, and only a short window of ranks can hold the optimum: only that is sorted.
//
// The functions are templates over such bounds: `Moments` here, `JaccardMoments` in jaccard.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "constants.hpp"
#include "ordering.hpp"
#include "power_sums.hpp"

namespace fgfm {

constexpr Index CHUNK = 128;     // labels scanned together; chunks without large ones are skipped
constexpr Index BUCKETS = 1024;  // of probabilities, when candidates are counted
constexpr Index FEW = 64;        // so few candidates are sorted at once
constexpr Index LONG = 8192;     // longer lists are searched by threshold first
constexpr double EDGE_ROUNDING = 1e-15;  // relative rounding error of the edge of a bucket

// beta^2, and mean and variance of |y|.
struct Moments {
    double beta2, mean, variance;

    // Bound the value of the best set of size k, whose marginals sum to `mass`: Jensen.
    double lower_bound(double mass, Index k) const {
        return (1.0 + beta2) * mass / (beta2 * (1.0 + mean) + k);
    }
    double spread(Index k) const {
        return variance * (beta2 / (beta2 * mean + k)) * (beta2 / (beta2 + k));
    }
    double upper_bound(double mass, Index k) const {
        return (1.0 + beta2) * mass * (1.0 + spread(k)) / (beta2 * mean + k);
    }
    // Bound the values of the sizes from k to `last`, whose masses lie on or below a line.
    //
    // The upper bound is a linear fraction of the size, monotone, times 1 + (variance term), which
    // falls with it.
    double upper_bound(double mass, Index k, double last_mass, Index last) const {
        const double base = beta2 * mean;
        const double most = std::min(std::max(mass / (base + k), last_mass / (base + last)),
                                     last / (base + k));
        return (1.0 + beta2) * most * (1.0 + spread(k));
    }
    // Labels below this are in no optimal set of two or more labels that has this value or more.
    double least_label(double value) const {
        return value / ((1.0 + beta2) * (1.0 + 1.0 / (beta2 + 2.0)));
    }
    // T(k) is below the value for larger sets.
    double largest_size(double value) const {
        return mean * ((1.0 + beta2) / value * (1.0 + TIE) - beta2);
    }
    // The next threshold of Dinkelbach's iteration, from the labels above the last one.
    double threshold(double mass, double count) const {
        return mass / (beta2 * (1.0 + mean) + count);
    }
    // The lower bound of the set whose next threshold is t.
    double value_at(double t) const { return (1.0 + beta2) * t; }
    // How far from the threshold t optimal sets end, with that many labels per unit of probability:
    // moving the threshold by x costs about density x^2 / 2 of the numerator, and the two bounds
    // differ by about one threshold.
    double reach(double t, double density, Index) const {
        const double spread = variance * beta2 / (beta2 * (1.0 + mean) + density * t);
        return 2.0 * std::sqrt(2.0 * t * (1.0 + spread) * beta2 / density) + 1e-12 * t;
    }
};

// The labels that can be the last one of an optimal set, sorted downwards.
struct Window {
    Scratch<double> value;
    Scratch<Index> place;
    Scratch<double> spare;  // for sorting
    Scratch<Index> spare_place;
    Scratch<Index> bucket;  // number of labels in a bucket

    Index rank = 0;      // number of labels above the window
    Index size = 0;      // number of labels in it
    Index low = 0;       // optimal sets end in [low, high) of the window
    Index high = 0;
    double floor = 0.0;  // the best lower bound on the optimum

    explicit Window(Index m)
        : value(m + 1), place(m + 1), spare(m + 1), spare_place(m + 1),
          bucket(std::max(m, BUCKETS) + 2) {}
};

struct Sums {
    Index count = 0;       // labels with p > above
    double total = 0.0;    // of their p
    double squares = 0.0;  // of their p^2
    Index over_one = 0;    // labels with p > 1
};

template <class T>
Sums add_moments(std::span<const T> p, double above) {
    const Lanes none = {}, one = none + 1.0;
    Lanes count = {}, total = {}, squares = {}, over_one = {};
    for_lanes(p, -1.0, [&](Lanes x) {
        const auto inside = x > above;
        const Lanes y = inside ? x : none;
        count += inside ? one : none;
        over_one += x > 1.0 ? one : none;
        total += y;
        squares += y * y;
    });
    return {static_cast<Index>(add_lanes(count)), add_lanes(total), add_lanes(squares),
            static_cast<Index>(add_lanes(over_one))};
}

// Move the labels of `source` that can be the last one of an optimal set into the window.
//
// The labels in [bottom, top] are counted into buckets of equal width, and the bounds at the edges
// of the buckets show which ones matter, without sorting. `window.rank` labels of total mass
// `before` lie above `top`. Without `source_place` the places are the indices. The order is kept,
// and `source` may be the window itself. Updates rank, mass above and lower bound; returns the size.
template <class T, class Bounds>
Index narrow(std::span<const T> source, const Index* source_place, double bottom, double top,
             double& before, const Bounds& moments, Window& window) {
    Index* count = window.bucket.data();
    const Index n = length(source);
    Index buckets = std::max<Index>(2, std::min(BUCKETS, n / 4));
    double width = (top - bottom) / (buckets - 1);
    if (!(width > TINY)) {  // one bucket: equal labels cannot be separated
        buckets = 1;
        width = top - bottom;
    }
    const double scale = buckets > 1 ? 1.0 / width : 0.0;
    const double slack = EDGE_ROUNDING * top;
    std::fill(count, count + buckets + 1, Index{0});
    for (const double x : source) {
        ++count[x >= bottom ? static_cast<Index>((top - x) * scale) : buckets];
    }
    // The mass of a bucket lies between its number of labels times its lower and its upper edge.
    Index k = window.rank;
    double mass = before;
    for (Index b = 0; b < buckets; ++b) {
        k += count[b];
        mass += count[b] * std::max(bottom, top - (b + 1) * width - slack);
        window.floor = std::max(window.floor, moments.lower_bound(mass, k));
    }
    Index first = buckets, last = -1;
    k = window.rank;
    mass = before;
    for (Index b = 0; b < buckets; ++b) {
        if (count[b]) {
            const double edge = top - b * width + slack, next = mass + count[b] * edge;
            if (moments.upper_bound(mass + edge, k + 1, next, k + count[b]) >=
                window.floor * (1.0 - TIE)) {
                first = std::min(first, b);
                last = b;
            }
            mass = next;
            k += count[b];
        }
    }
    if (last < 0) return 0;
    // Widened against rounding: labels cut off for good must lie outside the found buckets.
    const double high = top - first * width + slack;
    const double low = std::max(bottom, top - (last + 1) * width - slack);
    const Sums above = add_moments(source, high);
    Index size = 0;
    for (Index i = 0; i < n; ++i) {
        const double x = source[i];
        window.place[size] = source_place ? source_place[i] : i;
        window.value[size] = x;
        size += (x >= low) & (x <= high);
    }
    window.rank += above.count;
    before += above.total;
    return size;
}

// Move the labels in [low, high] into the window, in order; return their number, and the number and
// the mass of the labels above. Labels outside are passed over LANES * 4 at a time.
template <class T>
Index extract(std::span<const T> source, const Index* source_place, double low, double high,
              Window& window, Sums& above) {
    constexpr Index STEP = 4 * LANES;
    const Lanes none = {}, one = none + 1.0;
    Lanes count = {}, total = {};
    Index size = 0;
    const auto keep = [&](Index i) {
        const double x = source[i];
        window.place[size] = source_place ? source_place[i] : i;
        window.value[size] = x;
        size += (x >= low) & (x <= high);
    };
    const Index n = length(source);
    Index i = 0;
    for (; i + STEP <= n; i += STEP) {
        auto found = none > one;
        for (Index j = 0; j < STEP; j += LANES) {
            const Lanes x = load(source.data() + i + j);
            const auto larger = x > high;
            count += larger ? one : none;
            total += larger ? x : none;
            found |= (x >= low) & (x <= high);
        }
        if (found[0] | found[1] | found[2] | found[3]) {
            for (Index j = 0; j < STEP; ++j) keep(i + j);
        }
    }
    above = add_moments(source.subspan(i), high);
    above.count += static_cast<Index>(add_lanes(count));
    above.total += add_lanes(total);
    for (; i < n; ++i) keep(i);
    return size;
}

// Return true if no size in [first, last] can be optimal, given that the sum of the k largest labels
// is at most mass + (k - rank) * slope there, and at most k; interval by interval, [k, 2k].
template <class Bounds>
bool rules_out(Index first, Index last, double mass, Index rank, double slope, double floor,
               const Bounds& moments) {
    for (Index k = first; k <= last;) {
        const Index end = std::min(last, 2 * k);
        const double bound = moments.upper_bound(mass + (k - rank) * slope, k,
                                                 mass + (end - rank) * slope, end);
        if (!(bound < floor * (1.0 - 1e-9))) return false;
        k = end + 1;
    }
    return true;
}

// Find the window of a long list around the threshold that the optimum tends to; return its size,
// or -1 if the bounds do not confirm that optimal sets end there.
//
// The lower bound is a fraction, largest where its own value determines the threshold of the labels
// included. Dinkelbach's iteration finds that threshold, first on a sample, then in two passes. The
// window reaches twice as far from it as an estimate of the ends of optimal sets.
template <class T, class Bounds>
Index find_near_threshold(std::span<const T> source, const Index* source_place, double& before,
                          const Bounds& moments, Window& window) {
    const Index n = length(source);
    std::vector<double> sample;
    const Index stride = n / 2048;
    for (Index i = stride / 2; i < n; i += stride) sample.push_back(source[i]);
    double t = 0.0;
    for (int step = 0; step < 8; ++step) {
        const Sums sums = add_moments(std::span<const double>(sample), t);
        t = moments.threshold(stride * sums.total, static_cast<double>(stride * sums.count));
    }
    Index count = 0;  // labels above the threshold
    for (int step = 0; step < 2; ++step) {
        const Sums sums = add_moments(source, t);
        t = moments.threshold(sums.total, static_cast<double>(sums.count));
        count = sums.count;
    }
    double near = 0.0;  // sampled labels near the threshold
    for (const double x : sample) near += std::abs(x - t) <= 0.125 * t;
    if (near < 8.0) return -1;
    const double density = near * stride / (0.25 * t);
    const double reach = moments.reach(t, density, count);
    const double low = t - reach, high = t + reach;
    Sums above;
    const Index size = extract(source, source_place, low, high, window, above);
    double inside = 0.0;
    for (Index i = 0; i < size; ++i) inside += window.value[i];
    const double mass = above.total + inside;
    const Index rank = above.count + size;
    const double floor = std::max(window.floor, moments.value_at(t));
    if (size == 0 || !rules_out(1, above.count, above.total, above.count, high, floor, moments) ||
        !rules_out(rank + 1, n, mass, rank, low, floor, moments)) {
        return -1;
    }
    window.rank = above.count;
    window.floor = floor;
    before = above.total;
    return size;
}

// Narrow and sort the first `size` values of the window, above which `window.rank` labels have the
// sum `before`; find which of them can be the last one of an optimal set.
template <class Bounds>
void finish_window(Index size, double before, const Bounds& moments, Window& window) {
    // Narrow the window itself, as long as that removes a quarter of it.
    Index width = 2 * size;
    while (size > FEW && 4 * size <= 3 * width) {
        width = size;
        const auto [least, most] =
            std::minmax_element(window.value.begin(), window.value.begin() + size);
        const double bottom = *least, highest = *most;
        if (highest == bottom) break;
        const std::span<const double> inside(window.value.data(), size);
        size = narrow(inside, window.place.data(), bottom, highest, before, moments, window);
    }
    window.size = size;
    const std::span<double> value(window.value.data(), size);
    sort_descending(value, {window.place.data(), value.size()}, window.spare.data(),
                    window.spare_place.data(), window.bucket.data());
    double total = before;
    for (Index i = 0; i < size; ++i) {
        total += value[i];
        window.floor = std::max(window.floor, moments.lower_bound(total, window.rank + i + 1));
    }
    window.low = size;
    window.high = 0;
    total = before;
    for (Index i = 0; i < size; ++i) {
        total += value[i];
        if (moments.upper_bound(total, window.rank + i + 1) >= window.floor * (1.0 - TIE)) {
            window.low = std::min(window.low, i);
            window.high = i + 1;
        }
    }
}

// Find and sort the labels of `source` in [threshold, top] that can be the last one of an optimal
// set; no label is above `top`, and no label above the window equals one in it.
template <class T, class Bounds>
void find_window(std::span<const T> source, const Index* source_place, double threshold,
                 double top, const Bounds& moments, Window& window) {
    Index size = 0;
    double before = 0.0;
    window.rank = 0;
    if (length(source) <= FEW) {
        for (Index i = 0; i < length(source); ++i) {
            window.value[size] = source[i];
            window.place[size] = source_place ? source_place[i] : i;
            size += source[i] >= threshold;
        }
    } else {
        size = length(source) > LONG
                   ? find_near_threshold(source, source_place, before, moments, window)
                   : -1;
        if (size < 0) size = narrow(source, source_place, threshold, top, before, moments, window);
    }
    finish_window(size, before, moments, window);
}

}  // namespace fgfm
