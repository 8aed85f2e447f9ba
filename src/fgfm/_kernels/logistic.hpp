// Sums of logistic regressions, one for each label, for Newton's method.
//
// The logit of an entry is slope x + shift + bend v, with the slope and the shift of its label.
#pragma once

#include <vector>

#include "exponentials.hpp"

namespace fgfm {

constexpr Index LOGISTIC_SUMS = 6;

// Entries (n, K): features x and v, truth y and weight w, and their labels; without, column j is j.
struct LogisticEntries {
    Matrix<const double> x, v, y, w;
    const Index* labels;
};

// Fill in the sums over the entries of each label, (LOGISTIC_SUMS, m): of the log-likelihood, and of
// r, r x, c, c x and c x^2, where r = w (y - q) and c = w q (1 - q); and the sums of r v and c v^2
// over all entries. Entries of the label m count nowhere.
inline void add_logistic(const LogisticEntries& entries, std::span<const double> slope,
                         std::span<const double> shift, double bend, Matrix<double> sums,
                         double* of_bend) {
    const Index K = entries.x.cols, m = sums.cols, room = std::max(m, K) + LANES;
    std::vector<double> total(LOGISTIC_SUMS * room), a(room), b(room);
    std::copy(slope.begin(), slope.end(), a.begin());
    std::copy(shift.begin(), shift.end(), b.begin());
    const Lanes none = {};
    Lanes first = none, second = none;
    for (Index i = 0; i < entries.x.rows; ++i) {
        for (Index j = 0; j < K; j += LANES) {
            const Index size = std::min(LANES, K - j);
            const auto read = [&](const Matrix<const double>& from) {
                return size == LANES ? load(from[i] + j) : load_some(from[i] + j, size, 0.0);
            };
            const Index* label = entries.labels ? entries.labels + i * K + j : nullptr;
            Lanes s = none, t = none;
            if (label) {
                for (Index l = 0; l < size; ++l) {
                    s[l] = a[label[l]];
                    t[l] = b[label[l]];
                }
            } else {
                s = load(&a[j]);
                t = load(&b[j]);
            }
            const Lanes x = read(entries.x), v = read(entries.v), y = read(entries.y),
                        w = read(entries.w);
            const Lanes eta = s * x + t + bend * v, size_of = eta > none ? eta : -eta;
            const Lanes e = exp_negative(-size_of), share = 1.0 / (1.0 + e);
            const Lanes q = eta > none ? share : e * share;
            const Lanes softplus = (eta > none ? eta : none) + log_one_plus(e);
            const Lanes r = w * (y - q), c = w * q * (1.0 - q), cx = c * x;
            first += r * v;
            second += c * v * v;
            const Lanes terms[LOGISTIC_SUMS] = {w * (y * eta - softplus), r, r * x, c, cx, cx * x};
            for (Index k = 0; k < LOGISTIC_SUMS; ++k) {
                double* to = total.data() + k * room;
                if (!label) {
                    store(to + j, load(to + j) + terms[k]);
                    continue;
                }
                for (Index l = 0; l < size; ++l) to[label[l]] += terms[k][l];
            }
        }
    }
    for (Index k = 0; k < LOGISTIC_SUMS; ++k) {
        std::copy(total.begin() + k * room, total.begin() + k * room + m, sums[k]);
    }
    of_bend[0] = add_lanes(first);
    of_bend[1] = add_lanes(second);
}

}  // namespace fgfm
