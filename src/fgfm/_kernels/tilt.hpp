// Inclusion probabilities given the number of labels: tilted to that sum, or of independent labels.
//
// Given logits u_i and a cardinality s, find the c for which q_i = sigmoid(u_i + c) sum to s. With
// the labels sorted downwards, that balances what the first s lack and what the others have,
//
//     A(c) = sum_{i <= s} (1 - q_i)   =   B(c) = sum_{i > s} q_i.
//
// We solve g(c) = log B(c) - log A(c) = 0 rather than sum_i q_i - s = 0: both sums have positive
// terms only, so q_i and 1 - q_i keep their relative accuracy however small they are, and g is
// almost a straight line. Its slope is a weighted mean of 1 - q_i over the last labels (at least
// 1 - q_s) plus one of q_i over the first (at least q_s), hence between 1 and 2 everywhere, and
// Newton's iteration takes a handful of steps from any start.
//
// For labels with odds w_i, p(y | |y| = s) is the product of the odds of the labels in y, divided by
// the sum of such products over all sets of s labels. A common factor of the odds cancels, and we
// take one for which the labels would have a mean of about s: s is then near the mode, and no number
// that matters underflows. With q the tilted probabilities, F_i(j) the probability of
// j labels among the first i, and B_i(j) that of s - j labels among the others,
//
//     p(y_i = 1 | s) = q_i sum_j F_{i-1}(j) B_i(j + 1) / F_m(s):
//
// positive terms only, O(m s) for all labels of one s.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "arrays.hpp"
#include "ordering.hpp"

namespace fgfm {

constexpr double LAST_STEP = 1e-8;  // quadratic convergence: after a step this short only rounding
                                    // is left
constexpr double NEAR_STEP = 0.3;   // the last step of the common logarithm: its error cancels
constexpr int TILT_STEPS = 200;     // bisection alone would end in fewer

// The smaller and the larger of sigmoid(x) and 1 - sigmoid(x), without cancellation.
struct Sigmoid {
    double small, large;
    bool positive;

    explicit Sigmoid(double x) : positive(x >= 0.0) {
        const double e = std::exp(-std::abs(x));
        small = e / (1.0 + e);
        large = 1.0 / (1.0 + e);
    }
    double value() const { return positive ? large : small; }
    double complement() const { return positive ? small : large; }
};

// What is added to logits: u becomes u - middle + c, which loses no digits to a large c.
struct Shift {
    double middle = 0.0, c = 0.0;

    double operator()(double u) const { return u - middle + c; }
};

// Find the shift for which sigmoid(u[start:stop]) sum to s, for u finite and sorted downwards.
//
// Needs 0 < s < stop - start. A step of c no longer than `last_step` is the last one.
inline Shift solve_tilt(const double* u, Index start, Index stop, Index s, double last_step) {
    const Index split = start + s;
    const double middle = 0.5 * u[split - 1] + 0.5 * u[split];
    // the logit that all labels would share
    const double even = std::log(static_cast<double>(s) / static_cast<double>(stop - start - s));
    double low = even - (u[start] - middle);  // no q exceeds s / m here: they sum to s at most
    double high = even - (u[stop - 1] - middle);
    double c = std::min(std::max(0.0, low), high);
    for (int iteration = 0; iteration < TILT_STEPS; ++iteration) {
        double lack = 0.0, lack_slope = 0.0, excess = 0.0, excess_slope = 0.0;
        for (Index i = start; i < split; ++i) {
            const Sigmoid sigmoid(u[i] - middle + c);
            lack += sigmoid.complement();
            lack_slope += sigmoid.small * sigmoid.large;
        }
        for (Index i = split; i < stop; ++i) {
            const Sigmoid sigmoid(u[i] - middle + c);
            excess += sigmoid.value();
            excess_slope += sigmoid.small * sigmoid.large;
        }
        if (lack == 0.0 && excess == 0.0) break;
        if (lack == 0.0 || excess == 0.0) {  // underflow: only the side of the solution is known
            (lack == 0.0 ? high : low) = c;
            c = 0.5 * (low + high);
            continue;
        }
        const double g = std::log(excess / lack);
        (g > 0.0 ? high : low) = c;
        const double step = -g / (excess_slope / excess + lack_slope / lack);
        c += step;
        if (std::abs(step) <= last_step) break;
        if (!(low < c && c < high)) c = 0.5 * (low + high);
    }
    return {middle, c};
}

// A row of logits sorted downwards, and how many of them are certain (+inf) or impossible (-inf).
struct SortedLogits {
    std::vector<double> u;
    std::vector<Index> label;  // equal logits keep their order
    Index certain = 0;         // labels before this one are certain
    Index possible = 0;        // labels from this one on are impossible

    std::vector<double> spare;  // for sorting
    std::vector<Index> spare_label;

    explicit SortedLogits(Index m) : u(m), label(m), spare(m), spare_label(m) {}

    // Sort m logits, `stride` numbers apart.
    void sort(const double* logits, Index stride) {
        const Index m = static_cast<Index>(u.size());
        for (Index i = 0; i < m; ++i) u[i] = logits[i * stride];
        std::iota(label.begin(), label.end(), Index{0});
        repair_order(std::span<double>(u), std::span<Index>(label), spare.data(), spare_label.data());
        const double infinity = std::numeric_limits<double>::infinity();
        certain = 0;
        while (certain < m && u[certain] == infinity) ++certain;
        possible = m;
        while (possible > certain && u[possible - 1] == -infinity) --possible;
    }

    // Set q to the limit of sigmoid(u + c) with sum s, up to a last step of `last_step`.
    //
    // The limit of ever larger finite logits is lexicographic: certain labels come first,
    // impossible ones last, equal ones share.
    void include(Index s, double last_step, double* q) const {
        const Index m = static_cast<Index>(u.size());
        for (Index i = 0; i < certain; ++i) {
            q[i] = std::min(1.0, static_cast<double>(s) / static_cast<double>(certain));
        }
        for (Index i = possible; i < m; ++i) {
            q[i] = std::max(0.0, static_cast<double>(s - possible) / static_cast<double>(m - possible));
        }
        if (certain < s && s < possible) {
            const Shift shift = solve_tilt(u.data(), certain, possible, s - certain, last_step);
            for (Index i = certain; i < possible; ++i) q[i] = Sigmoid(shift(u[i])).value();
        } else {
            for (Index i = certain; i < possible; ++i) q[i] = s >= possible ? 1.0 : 0.0;
        }
    }
};

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

// Fill P[r, i, s - 1] = d[r, s] q_i with q_i = sigmoid(logits[r, i, s - 1] + c), of sum s; if
// `conditioned` q_i = p(y_i = 1 | s) for independent labels of these logits.
//
// `logits` is (n, m, depth), depth 1 where they do not depend on s; `d` is (n, S + 1) and P is
// (n, m, S). Infinite logits are certain and impossible labels. Nothing is solved where d[r, s] is 0.
inline void tilt(const double* logits, Index depth, Matrix<const double> d, double* P, Index n,
                 Index m, Index S, bool conditioned) {
    SortedLogits sorted(m);
    std::vector<double> q(m), forward(conditioned ? (m + 1) * (S + 1) : 0), backward(S + 1);
    for (Index r = 0; r < n; ++r) {
        bool is_sorted = false;
        for (Index s = 1; s <= S; ++s) {
            double* column = P + r * m * S + s - 1;
            const double mass = d[r][s];
            if (mass == 0.0) {
                for (Index i = 0; i < m; ++i) column[i * S] = 0.0;
                continue;
            }
            if (depth > 1 || !is_sorted) {
                sorted.sort(logits + r * m * depth + (depth > 1 ? s - 1 : 0), depth);
                is_sorted = true;
            }
            sorted.include(s, conditioned ? NEAR_STEP : LAST_STEP, q.data());
            if (conditioned && sorted.certain < s && s < sorted.possible) {
                condition_on_sum(q.data() + sorted.certain, sorted.possible - sorted.certain,
                                 s - sorted.certain, forward, backward);
            }
            for (Index i = 0; i < m; ++i) column[sorted.label[i] * S] = mass * q[i];
        }
    }
}

}  // namespace fgfm
