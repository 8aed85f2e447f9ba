// Decisions over the columns of a matrix of marginals: one problem per label, over the rows.
//
// Long columns in which many rows are expected are decided without being transposed, in two passes
// over the rows, several columns side by side. A sample of rows gives a window of values that the
// last chosen one is probably in. The first pass adds power sums of each column, those of the values
// above its window, and extracts the window; the second marks what is chosen. The bounds are those
// of marginals_window.hpp: where they do not confirm that the optimum ends in the window, the column
// is left to marginals.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "marginals.hpp"

namespace fgfm {

constexpr Index COLUMN_SAMPLE = 4096;  // rows, at least
constexpr Index COLUMN_STEP = 32;      // between them, at most
constexpr Index COLUMN_BLOCK = 128;    // rows that stay in the cache while columns take turns
constexpr Index BLOCK_COLUMNS = 256;   // and columns, a multiple of LANES
constexpr Index WIDEST_WINDOW = 16;    // a window has at most one of this many values
constexpr double MANY_EXPECTED = 2e5;  // rows of a column
constexpr Index FEW_POWERS = 4;        // power sums: so few if many rows are expected: u is small

// What is known of one column.
struct Column {
    double low = 2.0, high = 2.0;  // the window; no value is in it if the column is not decided here
    PowerSums sums{};              // of all values
    PowerSums above{};             // of the values above the window
    double above_count = 0.0;
    bool few = false;  // whether FEW_POWERS power sums are enough
    bool valid = true;
    std::vector<double> value;  // in the window, by rows
    std::vector<Index> place;

    bool is_open() const { return high <= 1.0; }
};

// The columns [first, first + LANES), without those before `first + own`, which belong to the group
// before: the last group overlaps it, so that every load is whole.
struct ColumnGroup {
    Index first;
    Index own;
};

inline std::vector<ColumnGroup> column_groups(Index m) {
    std::vector<ColumnGroup> groups;
    for (Index j = 0; j + LANES <= m; j += LANES) groups.push_back({j, 0});
    if (m % LANES) groups.push_back({m - LANES, LANES - m % LANES});
    return groups;
}

// Choose the window of a column from a sample, or none.
//
// The threshold t of Dinkelbach's iteration has an error: t is the root of the sum of
// g = max(x - t, 0) - beta^2 t x, which grows with n / (beta^2 (1 + E) + k).
inline void choose_window(std::span<const double> sample, Index n, double beta2, Column& column) {
    const double scale = static_cast<double>(n) / length(sample);
    const Moments moments{beta2, scale * add_moments(sample, 0.0).total, 0.0};
    if (!(moments.mean > 4.0 * SURELY_NONEMPTY)) return;
    double t = 0.0, count = 0.0;
    for (int step = 0; step < 8; ++step) {  // the last steps on the whole sample
        const auto part = sample.first(step < 6 ? std::min<std::size_t>(COLUMN_SAMPLE, sample.size())
                                                : sample.size());
        const Sums sums = add_moments(part, t);
        const double factor = static_cast<double>(n) / length(part);
        count = factor * sums.count;
        t = moments.threshold(factor * sums.total, count);
    }
    double near = 0.0, sum = 0.0, squares = 0.0;
    for (const double x : sample) {
        const double g = std::max(x - t, 0.0) - beta2 * t * x;
        near += std::abs(x - t) <= 0.125 * t;
        sum += g;
        squares += g * g;
    }
    if (near < 8.0) return;
    const double size = static_cast<double>(length(sample));
    const double deviation = std::sqrt(std::max(0.0, squares / size - (sum / size) * (sum / size)));
    const double error = n / (beta2 * (1.0 + moments.mean) + count) * deviation / std::sqrt(size);
    const double reach = moments.reach(t, near * scale / (0.25 * t), static_cast<Index>(count)) +
                         4.0 * error;
    if (!(t > reach && t + reach <= 1.0)) return;
    const Index inside =
        add_moments(sample, t - reach).count - add_moments(sample, t + reach).count;
    if (WIDEST_WINDOW * inside > length(sample)) return;
    column.few = moments.mean > MANY_EXPECTED;
    column.low = t - reach;
    column.high = t + reach;
}

// Decide a column from its sums and its window; return the expected F, or a negative number if the
// bounds do not confirm the window.
//
// `top` is set to the value above which all rows are chosen, and `chosen` to the number of values of
// the window that are chosen too.
template <Index N>
double decide_column(Column& column, Index n, const Objective& objective, const Rules& rules,
                     MarginalsWorkspace& work, double& top, Index& chosen) {
    constexpr double REFUSED = -1.0;
    Window& window = work.window;
    const double beta2 = objective.beta2;
    const Moments moments{beta2, column.sums[0], column.sums[0] - column.sums[1]};
    const Index size = static_cast<Index>(column.value.size());
    const Index above = static_cast<Index>(column.above_count);
    work.value.resize(size + 1);
    std::copy(column.value.begin(), column.value.end(), work.value.begin());
    std::sort(work.value.begin(), work.value.begin() + size, std::greater<>());
    double mass = column.above[0], floor = 0.0;
    for (Index i = 0; i < size; ++i) {
        mass += work.value[i];
        floor = std::max(floor, moments.lower_bound(mass, above + i + 1));
    }
    if (size == 0 ||
        !rules_out(1, above, column.above[0], above, column.high, floor, moments) ||
        !rules_out(above + size + 1, n, mass, above + size, column.low, floor, moments)) {
        return REFUSED;
    }
    std::copy(column.value.begin(), column.value.end(), window.value.begin());
    std::copy(column.place.begin(), column.place.end(), window.place.begin());
    window.rank = above;
    window.floor = floor;
    finish_window(size, column.above[0], moments, window);
    const double most = moments.largest_size(window.floor) + 1.0;
    if (most < window.rank + window.high) window.high = static_cast<Index>(most) - window.rank;
    if (window.high <= window.low) return REFUSED;

    work.load_nodes(n, moments, rules);
    const Nodes& nodes = work.nodes;
    const double widest = largest(std::span<const double>(nodes.u.data(), nodes.count));
    // The rest of the series of log(1 - p u) and p / (1 - p u), relative to what is computed
    if (widest > SMALL || moments.mean * std::pow(widest, N + 1) > 1e-14) return REFUSED;
    PowerSums sums_above = column.above;
    for (const double x : column.value) {
        if (x > window.value[0]) {
            double power = 1.0;
            for (Index j = 0; j < N; ++j) sums_above[j] += (power *= x);
        }
    }
    for (Index r = 0; r < nodes.padding; ++r) {
        double exponent = 0.0, value = 0.0;
        for (Index j = N; j > 0; --j) {
            exponent = (exponent + column.sums[j - 1] / j) * nodes.u[r];
            value = value * nodes.u[r] + sums_above[j - 1];
        }
        work.product[r] = std::exp(-exponent);
        work.total[r] = window.rank ? value : 0.0;
        work.carry[r] = work.part[r] = work.factor[r] = 0.0;
    }
    const double peak = work.evaluate_window(moments);
    Index end = window.low;
    while (work.set_value[end] < peak * (1.0 - TIE)) ++end;
    top = window.value[0];
    chosen = end + 1;
    return work.set_value[end];
}

// Add the sums of a group of columns over a block of rows, and extract their windows.
//
// `block` starts at the first column of the group, in the row `start`.
template <Index N, class T>
void scan_group(const T* block, Index rows, Index stride, Index start, const ColumnGroup& group,
                std::span<Column> columns) {
    constexpr Index STEP = 8;
    const Lanes none = {}, one = none + 1.0;
    Lanes low, high;
    for (Index l = 0; l < LANES; ++l) {
        low[l] = columns[group.first + l].low;
        high[l] = columns[group.first + l].high;
    }
    LanePowers<N> all, above;
    Lanes count = {}, least = one, most = none;
    for (Index first = 0; first < rows; first += STEP) {
        const Index last = std::min(rows, first + STEP);
        auto found = none > one;
        for (Index i = first; i < last; ++i) {
            const Lanes x = load(block + i * stride);
            const auto larger = x > high;
            all.add(x);
            above.add(larger ? x : none);
            count += larger ? one : none;
            least = x < least ? x : least;
            most = x > most ? x : most;
            found |= (x >= low) & (x <= high);
        }
        if (!(found[0] | found[1] | found[2] | found[3])) continue;
        for (Index l = group.own; l < LANES; ++l) {
            if (!found[l]) continue;
            Column& column = columns[group.first + l];
            for (Index i = first; i < last; ++i) {
                const double x = block[i * stride + l];
                if (x >= column.low && x <= column.high) {
                    column.value.push_back(x);
                    column.place.push_back(start + i);
                }
            }
        }
    }
    for (Index l = group.own; l < LANES; ++l) {
        Column& column = columns[group.first + l];
        all.add_to(column.sums, l);
        above.add_to(column.above, l);
        column.above_count += count[l];
        column.valid &= least[l] >= 0.0 && most[l] <= 1.0;
    }
}

// Add the sums of all columns, and extract their windows.
template <class T>
void scan_columns(const T* data, Index n, Index m, Index stride,
                  std::span<const ColumnGroup> groups, std::span<Column> columns) {
    std::vector<char> few;  // whether a group needs few power sums
    for (const ColumnGroup& group : groups) {
        bool all = true;
        for (Index l = 0; l < LANES; ++l) all &= columns[group.first + l].few;
        few.push_back(all);
    }
    // Blocks are copied: memory reads rows much faster than a few columns of many rows.
    std::vector<T> block(COLUMN_BLOCK * std::min(m, BLOCK_COLUMNS));
    for (Index start = 0; start < n; start += COLUMN_BLOCK) {
        const Index rows = std::min(COLUMN_BLOCK, n - start);
        std::size_t g = 0;
        for (Index left = 0; g < groups.size(); left = groups[g - 1].first + LANES) {
            // The last group may begin before the others end.
            if (left + BLOCK_COLUMNS >= m) left = std::min(left, groups.back().first);
            const Index right = std::min(m, left + BLOCK_COLUMNS), width = right - left;
            for (Index i = 0; i < rows; ++i) {
                const T* row = data + (start + i) * stride + left;
                std::copy(row, row + width, block.begin() + i * width);
            }
            for (; g < groups.size() && groups[g].first + LANES <= right; ++g) {
                const T* corner = block.data() + groups[g].first - left;
                if (few[g]) {
                    scan_group<FEW_POWERS>(corner, rows, width, start, groups[g], columns);
                } else {
                    scan_group<POWERS>(corner, rows, width, start, groups[g], columns);
                }
            }
        }
    }
}

// Decide the columns of a matrix whose rows are `stride` values apart.
//
// Sets `done[j]` for the columns that are decided; the labels of the others stay 0.
template <class T>
Status decide_dense_columns(const T* data, Index n, Index m, Index stride,
                            const Objective& objective, const Rules& rules,
                            Matrix<std::int8_t> labels, double* expected, std::uint8_t* done) {
    std::fill(done, done + m, std::uint8_t{0});
    if (n < LONG || m < LANES) return {};
    std::vector<Column> columns(m);
    const Index step = std::max<Index>(1, std::min(n / COLUMN_SAMPLE, COLUMN_STEP));
    const Index sampled = (n - step / 2 + step - 1) / step;  // rows
    std::vector<double> sample(sampled * LANES);             // of LANES columns
    const std::vector<ColumnGroup> groups = column_groups(m);
    for (const ColumnGroup& group : groups) {
        for (Index i = 0; i < sampled; ++i) {
            const T* row = data + (step / 2 + i * step) * stride + group.first;
            for (Index l = 0; l < LANES; ++l) sample[l * sampled + i] = row[l];
        }
        for (Index l = group.own; l < LANES; ++l) {
            choose_window({sample.data() + l * sampled, static_cast<std::size_t>(sampled)}, n,
                          objective.beta2, columns[group.first + l]);
        }
    }
    if (std::none_of(columns.begin(), columns.end(), [](const Column& c) { return c.is_open(); })) {
        return {};
    }
    scan_columns<T>(data, n, m, stride, groups, columns);
    for (const Column& column : columns) {
        if (!column.valid || std::isnan(column.sums[0])) return {0, NOT_PROBABILITY, 0};
    }
    Index widest = 0;
    for (const Column& column : columns) {
        widest = std::max(widest, static_cast<Index>(column.value.size()));
    }
    MarginalsWorkspace work(widest, rules);
    std::vector<double> top(m, 2.0);
    std::vector<std::vector<Index>> last(m);  // chosen rows of the window
    for (Index j = 0; j < m; ++j) {
        if (!columns[j].is_open() || columns[j].sums[0] < SURELY_NONEMPTY) continue;
        Index count = 0;
        const double value =
            columns[j].few
                ? decide_column<FEW_POWERS>(columns[j], n, objective, rules, work, top[j], count)
                : decide_column<POWERS>(columns[j], n, objective, rules, work, top[j], count);
        if (value < 0.0) continue;
        done[j] = 1;
        expected[j] = value;
        last[j].assign(work.window.place.begin(), work.window.place.begin() + count);
    }
    for (Index j = 0; j < m; ++j) {
        if (!done[j]) top[j] = 2.0;
    }
    for (Index i = 0; i < n; ++i) {
        const T* row = data + i * stride;
        std::int8_t* to = labels[i];
        for (Index j = 0; j < m; ++j) to[j] = row[j] > top[j];
    }
    for (Index j = 0; j < m; ++j) {
        for (const Index i : last[j]) labels[i][j] = 1;
    }
    return {};
}

}  // namespace fgfm
