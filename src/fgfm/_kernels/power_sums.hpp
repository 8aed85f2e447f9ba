// Products and sums over independent labels, at the cost of eight power sums.
//
// At every node of a quadrature rule (u = 1 - zeta) the decision needs
//
//     D(zeta) = prod_i (1 - p_i u)      and      A(u) = sum_i p_i / (1 - p_i u).
//
// Labels with p u <= 1/64 enter both through their power sums, for any number of nodes:
// log(1 - p u) = - sum_j (p u)^j / j, and p / (1 - p u) = sum_j p^(j+1) u^j.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "quadrature.hpp"

namespace fgfm {

constexpr double SMALL = 1.0 / 64.0;  // (1/64)^8 = 4e-15: eight power sums suffice up to here
constexpr Index POWERS = 8;
constexpr Index POWER_SUM_PART = 4096;    // rounding errors grow with the length of a part
constexpr double UNDERFLOW_LIMIT = 1e-280;  // smaller products move into the sum of logarithms

using PowerSums = std::array<double, POWERS>;

inline double next_above(double x) { return std::nextafter(x, 2.0); }

template <class T>
double largest(std::span<const T> p) {
    Lanes top = {};
    for_lanes(p, 0.0, [&](Lanes x) { top = x > top ? x : top; });
    return std::max(std::max(top[0], top[1]), std::max(top[2], top[3]));
}

// Power sums in each lane, term by term.
template <Index N>
struct LanePowers {
    Lanes sum[N] = {};

    void add(Lanes y) {
        const Lanes y2 = y * y;
        sum[0] += y;
        sum[1] += y2;
        sum[2] += y2 * y;
        const Lanes y4 = y2 * y2;
        sum[3] += y4;
        if constexpr (N > 4) {
            const Lanes y6 = y4 * y2;
            sum[4] += y4 * y;
            sum[5] += y6;
            sum[6] += y6 * y;
            sum[7] += y4 * y4;
        }
    }
    void add_to(PowerSums& sums, Index lane) const {
        for (Index j = 0; j < N; ++j) sums[j] += sum[j][lane];
    }
};

// Add the power sums of the labels with above <= p <= upto; return their number.
template <class T>
Index add_power_sums(std::span<const T> p, double above, double upto, PowerSums& sums) {
    const Lanes none = {}, one = none + 1.0;
    Lanes count = {};
    LanePowers<POWERS> powers;
    for_lanes(p, -1.0, [&](Lanes x) {
        const auto inside = (x >= above) & (x <= upto);
        count += inside ? one : none;
        powers.add(inside ? x : none);
    });
    for (Index j = 0; j < POWERS; ++j) sums[j] += add_lanes(powers.sum[j]);
    return static_cast<Index>(add_lanes(count));
}

template <class T>
void add_power_sums_by_parts(std::span<const T> p, double above, double upto, PowerSums& sums) {
    for (Index start = 0; start < length(p); start += POWER_SUM_PART) {
        const Index size = std::min(POWER_SUM_PART, length(p) - start);
        add_power_sums(p.subspan(start, size), above, upto, sums);
    }
}

// Return log prod_i (1 - p_i), from the power sums of the small labels and the large ones.
template <class T>
double log_probability_of_empty(const PowerSums& sums, std::span<const T> large) {
    double result = 0.0;
    for (Index j = 0; j < POWERS; ++j) result -= sums[j] / (j + 1);
    double product = 1.0;
    for (const double x : large) {
        if (x > SMALL) {
            product *= 1.0 - x;
            if (product < UNDERFLOW_LIMIT) {
                if (product == 0.0) return -std::numeric_limits<double>::infinity();
                result += std::log(product);
                product = 1.0;
            }
        }
    }
    return result + std::log(product);
}

// Fill in D(zeta_r) of the labels up to `upto`, from the power sums of the labels below `from` and an
// array with the others.
//
// Where every u is small, large labels too are served by power sums.
template <class T>
void fill_products(double* product, const Nodes& nodes, PowerSums& sums, std::span<const T> large,
                   double from = next_above(SMALL), double upto = 1.0) {
    const double* u = nodes.u.data();
    const double widest = largest(std::span<const double>(u, nodes.count));
    const double limit = std::min(upto, std::max(SMALL, SMALL / widest));
    if (limit >= from) add_power_sums_by_parts(large, from, limit, sums);
    for (Index r = 0; r < nodes.padding; ++r) {
        double exponent = 0.0;
        for (Index j = POWERS; j > 0; --j) exponent = (exponent + sums[j - 1] / j) * u[r];
        product[r] = std::exp(-exponent);
    }
    if (limit < upto) {
        for (const double x : large) {
            if (x > limit && x <= upto) {
                for (Index r = 0; r < nodes.padding; r += LANES) {
                    store(product + r, load(product + r) * (1.0 - x * load(u + r)));
                }
            }
        }
    }
}

// Fill in A(u_r) for the labels with p > above.
template <class T>
void fill_fractions(double* total, const Nodes& nodes, std::span<const T> large, double above) {
    const double* u = nodes.u.data();
    const double limit =
        std::max(above, SMALL / largest(std::span<const double>(u, nodes.count)));
    PowerSums sums{};
    add_power_sums_by_parts(large, next_above(above), limit, sums);
    for (Index r = 0; r < nodes.padding; ++r) {
        double value = 0.0;
        for (Index j = POWERS; j > 0; --j) value = value * u[r] + sums[j - 1];
        total[r] = value;
    }
    if (limit < 1.0) {
        for (const double x : large) {
            if (x > limit) {
                for (Index r = 0; r < nodes.padding; r += LANES) {
                    store(total + r, load(total + r) + x / (1.0 - x * load(u + r)));
                }
            }
        }
    }
}

}  // namespace fgfm
