// Independent labels reweighted to a distribution of their number (docs/design.md, "FDecider").
//
// With odds w_i = p_i^t / (1 - p_i)^u and a distribution d of |y|,
//
//     p(y) = d_s prod_{i in y} w_i / e_s(w),      s = |y|,
//
// where e_s sums these products over all sets of s labels. For every s, p(y_i = 1 | s) increases with
// w_i: the best set of k labels has the largest odds, and its value needs no P,
//
//     V_k = (1 + beta^2) sum_s d_s A_k(s) / (beta^2 s + k),      A_k(s) = sum_{i <= k} p(y_i = 1 | s).
//
// True items that no label stands for, M of them with p(M | s), make the quotient its expectation,
// E[1 / (beta^2 (s + M) + k) | s].
//
// A common factor of the odds cancels. With q the probabilities of such odds, F_i and G_i the
// distributions of the number of labels before and from label i on,
//
//     p(y_i = 1 | s) = q_i sum_a F_i(a) G_{i+1}(s - 1 - a) / G_0(s):
//
// positive terms only. The factor 1 serves all numbers s for which G_0(s) is not too small, which is
// rarely any; for the others it is chosen anew as in tilt.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "constants.hpp"
#include "exponentials.hpp"
#include "ordering.hpp"
#include "poisson_binomial.hpp"
#include "tilt.hpp"

namespace fgfm {

constexpr double CERTAIN_MARGIN = 1e-12;  // probabilities keep this distance from 0 and 1
constexpr double RELIABLE = 0x1p-500;     // what is lost as NEGLIGIBLE does not matter to these
constexpr double WEIGHTLESS = 1e-17;      // relative weight of numbers of labels that are left out
constexpr Index ODDS_BUCKETS = 64;        // that labels are dealt into, to find the first ones
constexpr double FINE_STEP = 1e-3;        // the last step of a shift, whose error cancels

struct Exponents {
    double present, absent;  // t and u
};

// The labels of a row under a common factor of their odds, for some numbers of labels.
struct TiltedRow {
    Scratch<double> q, c;         // (m,) probabilities of present and absent labels
    Scratch<double> share;        // (S + 1,) 1 / G_0(s) for the numbers that this factor serves
    Scratch<double> room, spare;  // of the distributions
    std::vector<Numbers> rest;    // G_i
    Numbers before;               // F_i

    // Fill in G_i for i <= `kept`.
    void fill(std::span<const double> logits, const Shift& shift, Index S, Index kept) {
        const Index m = length(logits), size = numbers_room(S);
        q.resize(padded(m));
        c.resize(padded(m));
        for (Index i = 0; i < m; i += LANES) {
            Lanes x = i + LANES <= m ? load(logits.data() + i)
                                     : load_some(logits.data() + i, m - i, 0.0);
            x = x - shift.middle + shift.c;
            const Lanes e = exp_negative(x < 0.0 ? x : -x), large = 1.0 / (1.0 + e);
            store(q.data() + i, x < 0.0 ? e * large : large);
            store(c.data() + i, x < 0.0 ? large : e * large);
        }
        const auto beyond = [&](const Scratch<double>& values) {
            return std::span<const double>(values.data() + kept, values.data() + m);
        };
        room.resize((kept + 1) * size);
        rest.resize(kept + 1);
        rest[kept] = Numbers::none(room.data() + kept * size, S);
        rest[kept].add(beyond(q), beyond(c));
        for (Index i = kept - 1; i >= 0; --i) {
            rest[i] = {room.data() + i * size + NUMBERS, rest[kept].width};
            rest[i].add(rest[i + 1], q[i], c[i]);
        }
        share.resize(rest[kept].width);
        std::fill(share.begin(), share.end(), 0.0);
    }

    double probability(Index s) const {
        return s < rest[0].low || s > rest[0].high ? 0.0 : rest[0].at[s];
    }

    // Begin with the first label.
    void start(Index S) {
        spare.resize(numbers_room(S));
        before = Numbers::none(spare.data(), S);
    }

    // Add p(y_i = 1 | s) to inside[s], for labels i = 0, 1, .. in turn.
    void add_next(Index i, double* inside) {
        const Numbers& after = rest[i + 1];
        const double *F = before.at, *G = after.at;
        for (Index s = 0; s < after.width; s += NUMBERS) {
            // s - 1 - a, and the NUMBERS - 1 numbers above it, meet those of G
            const Index first = std::max(before.low, s - 1 - after.high);
            const Index last = std::min(before.high, s + NUMBERS - 2 - after.low);
            Lanes sum[4] = {};  // four, which do not wait for each other
            Index a = first;
            for (; a < last; a += 2) {
                sum[0] += F[a] * load(G + s - 1 - a);
                sum[1] += F[a] * load(G + s + LANES - 1 - a);
                sum[2] += F[a + 1] * load(G + s - 2 - a);
                sum[3] += F[a + 1] * load(G + s + LANES - 2 - a);
            }
            if (a == last) {
                sum[0] += F[a] * load(G + s - 1 - a);
                sum[1] += F[a] * load(G + s + LANES - 1 - a);
            }
            for (Index j = 0; j < 2; ++j) {
                const Index at = s + j * LANES;
                store(inside + at, load(inside + at) +
                                       q[i] * (sum[j] + sum[j + 2]) * load(share.data() + at));
            }
        }
        before.add(before, q[i], c[i]);
    }
};

// Numbers of true items that no label stands for, and p(number | s) of each: `given` is (S + 1, J).
struct MissedGiven {
    std::span<const double> numbers;
    Matrix<const double> given;
};

// A row of labels with a distribution of their number.
class ReweightedRow {
public:
    ReweightedRow(Index m, Index S, const MissedGiven& missed = {})
        : logit_(m), spare_(m), label_(m), spare_label_(m), count_(m + 2),
          mass_(numbers_width(S)), s_(numbers_width(S)), tilts_(1) {
        std::iota(s_.begin(), s_.end(), 0.0);
        s_[0] = 1.0;  // of mass 0, so that no quotient is 0 / 0
        const Index width = numbers_width(S);
        for (std::size_t j = 0; j < missed.numbers.size(); ++j) {
            missed_.push_back({missed.numbers[j], std::vector<double>(width)});
            for (Index s = 0; s <= S; ++s) missed_[j].given[s] = missed.given[s][j];
        }
        if (missed_.empty()) missed_.push_back({0.0, std::vector<double>(width, 1.0)});
        none_missed_ = missed_[0].number == 0.0 ? missed_[0].given[0] : 0.0;
    }

    // Labels of probability 0 are absent. A row with fewer labels than d allows has all of them
    // where d would have more.
    void load_row(std::span<const double> p, std::span<const double> d, const Exponents& exponents) {
        const Index m = length(p);
        Index possible = 0;
        for (Index i = 0; i < m; i += LANES) {
            const Index n = std::min(LANES, m - i);
            Lanes x = n == LANES ? load(p.data() + i) : load_some(p.data() + i, n, 0.0);
            const Lanes present = x;
            const Lanes least = Lanes{} + CERTAIN_MARGIN, most = 1.0 - least;
            x = x < least ? least : x > most ? most : x;
            x = exponents.present * logarithm(x) - exponents.absent * logarithm(1.0 - x);
            for (Index j = 0; j < n; ++j) {
                logit_[possible] = x[j];
                label_[possible] = i + j;
                possible += present[j] > 0.0;
            }
        }
        labels_ = possible;
        load_numbers(d, m);
    }

    // Mark the best set of min_labels to max_labels labels; return its expected F.
    double decide(const Objective& objective, Index min_labels, Index max_labels,
                  std::int8_t* chosen) {
        Index best = objective.nonempty || min_labels > 0 ? -1 : 0;
        double peak = best < 0 ? 0.0 : objective.zero_division * none_missed_ * empty_;
        if (present_ == 0.0) {
            for (Index i = 0; i < std::min(min_labels, labels_); ++i) chosen[label_[i]] = 1;
            return peak;
        }
        // No set has a larger value than the probability that there is a label.
        const Index limit = peak >= present_ ? 0 : std::min(max_labels, labels_);
        // The search ends long before the last label: more than the first labels are rarely needed.
        Index first = static_cast<Index>(1.5 * expected_) + 6;
        for (; limit > 0; first *= 4) {
            sort_first(std::max(first, min_labels));
            fill_tilts(sorted_);
            if (search(objective.beta2, min_labels, limit, best, peak)) break;
        }
        for (Index i = 0; i < best; ++i) chosen[label_[i]] = 1;
        return objective.nonempty ? peak / (present_ + (1.0 - none_missed_) * empty_) : peak;
    }

    // Set p to the probability of each label.
    void fill_marginals(std::span<double> p) {
        std::fill(p.begin(), p.end(), 0.0);
        sorted_ = 0;
        fill_tilts(labels_);
        total_.resize(width_ + LANES);
        for (TiltedRow& tilt : tilts()) {
            // H_i(j) = sum_a F_i(a) d_{a + j} / G_0(a + j), and p_i = q_i sum_j H_i(j + 1) G_{i+1}(j)
            double* H = total_.data();
            std::fill(total_.begin(), total_.end(), 0.0);
            for (Index s = 1; s <= S_; ++s) H[s] = mass_[s] * tilt.share[s];
            for (Index i = 0; i < labels_; ++i) {
                const Numbers& after = tilt.rest[i + 1];
                const Index stop = std::min(after.high + 1, S_);
                p[label_[i]] += tilt.q[i] * dot(H + after.low + 1, after.at + after.low,
                                                std::max<Index>(0, stop - after.low));
                for (Index j = 0; j < width_; j += LANES) {
                    store(H + j, tilt.c[i] * load(H + j) + tilt.q[i] * load(H + j + 1));
                }
            }
        }
        for (double& x : p) x = std::min(x, 1.0);
    }

private:
    Scratch<double> logit_, spare_;  // of the possible labels
    Scratch<Index> label_, spare_label_, count_;
    Scratch<double> mass_, s_;       // of the numbers of labels
    Scratch<double> inside_, total_;
    std::vector<TiltedRow> tilts_;
    Index used_ = 0;   // tilts of this row
    Index labels_ = 0; // that are possible
    Index sorted_ = 0; // of these, the first, which have the largest odds
    Index S_ = 0;      // the largest number that matters
    Index width_ = 0;  // of numbers up to S_
    struct Missed {
        double number;
        std::vector<double> given;  // (S + 1,) its probability for each number of labels
    };
    std::vector<Missed> missed_;
    double none_missed_;  // P(M = 0) if no label is true
    double empty_ = 0.0, present_ = 0.0, expected_ = 0.0;  // P(|y| = 0), P(|y| > 0), E[|y|]

    std::span<TiltedRow> tilts() { return {tilts_.data(), static_cast<std::size_t>(used_)}; }

    // Keep the distribution d of the number of labels, without a tail that does not matter.
    //
    // A set of the most probable label has a value of at least (1 - d_0) / m, and the numbers in the
    // tail add at most their own probability to any value.
    void load_numbers(std::span<const double> d, Index m) {
        S_ = std::min(length(d) - 1, labels_);
        std::copy(d.begin(), d.begin() + S_, mass_.begin());
        mass_[S_] = std::accumulate(d.begin() + S_, d.end(), 0.0);
        empty_ = mass_[0];
        mass_[0] = 0.0;
        present_ = std::accumulate(mass_.begin() + 1, mass_.begin() + S_ + 1, 0.0);
        expected_ = dot(mass_.data(), s_.data(), S_ + 1);
        double tail = 0.0;
        while (S_ > 1 && (tail += mass_[S_]) <= WEIGHTLESS * present_ / m) --S_;
        width_ = numbers_width(S_);
        std::fill(mass_.begin() + S_ + 1, mass_.begin() + width_, 0.0);
    }

    // Move `count` labels of the largest odds, or somewhat more, to the front, and sort them.
    //
    // Labels are dealt into buckets of equal width. Where odds are equal, the lower label comes first.
    void sort_first(Index count) {
        const auto [lowest, highest] = std::minmax_element(logit_.begin(), logit_.begin() + labels_);
        const double top = *highest, range = top - *lowest;
        sorted_ = labels_;
        if (count < labels_ && range > 0.0) {
            const double scale = (ODDS_BUCKETS - 1) / range;
            Index size[ODDS_BUCKETS] = {}, last = 0;
            for (Index i = 0; i < labels_; ++i) ++size[static_cast<Index>((top - logit_[i]) * scale)];
            for (sorted_ = size[0]; sorted_ < count; sorted_ += size[++last]) {}
            Index front = 0, back = 0;
            for (Index i = 0; i < labels_; ++i) {
                const bool in_front = static_cast<Index>((top - logit_[i]) * scale) <= last;
                const Index at = in_front ? front++ : back++;
                (in_front ? logit_ : spare_)[at] = logit_[i];
                (in_front ? label_ : spare_label_)[at] = label_[i];
            }
            std::copy(spare_.begin(), spare_.begin() + back, logit_.begin() + front);
            std::copy(spare_label_.begin(), spare_label_.begin() + back, label_.begin() + front);
        }
        sort_descending({logit_.data(), static_cast<std::size_t>(sorted_)},
                        {label_.data(), static_cast<std::size_t>(sorted_)}, spare_.data(),
                        spare_label_.data(), count_.data());
    }

    // Search the sets of up to `limit` labels for one that is better than `best`, of value `peak`.
    //
    // Returns false if labels have to be sorted that are not.
    bool search(double beta2, Index min_labels, Index limit, Index& best, double& peak) {
        for (TiltedRow& tilt : tilts()) tilt.start(S_);
        inside_.resize(width_);
        total_.resize(width_);
        std::fill(total_.begin(), total_.end(), 0.0);
        for (Index k = 1; k <= std::min(sorted_, limit); ++k) {
            std::fill(inside_.begin(), inside_.end(), 0.0);
            for (TiltedRow& tilt : tilts()) tilt.add_next(k - 1, inside_.data());
            const double size = static_cast<double>(k);
            Lanes sum = {};
            for (Index s = 0; s < width_; s += LANES) {
                const Lanes A = load(total_.data() + s) + load(inside_.data() + s);
                store(total_.data() + s, A);
                for (const Missed& missed : missed_) {
                    const Lanes number = load(s_.data() + s) + missed.number;
                    sum += load(mass_.data() + s) * load(missed.given.data() + s) * A /
                           (beta2 * number + size);
                }
            }
            const double value = (1.0 + beta2) * add_lanes(sum);
            if (k < min_labels) continue;
            // The smaller size wins where values are equal.
            if (best < 0 || value > peak * (1.0 + TIE)) best = k;
            peak = std::max(peak, value);
            if (value < peak && bound_beyond(beta2, size) <= peak) return true;
        }
        return sorted_ >= limit;
    }

    // Choose common factors of the odds, until each number of labels has one that serves it.
    void fill_tilts(Index kept) {
        const std::span<const double> logits(logit_.data(), static_cast<std::size_t>(labels_));
        used_ = 0;
        if (present_ == 0.0) return;
        waiting_.assign(mass_.begin(), mass_.begin() + S_ + 1);
        Index served = 0;  // the number that the next factor is chosen for: none for the first
        do {
            if (used_ == static_cast<Index>(tilts_.size())) tilts_.emplace_back();
            TiltedRow& tilt = tilts_[used_++];
            tilt.fill(logits, shift_for(logits, served), S_, kept);
            for (Index s = 1; s <= S_; ++s) {
                const double probability = tilt.probability(s);
                if (waiting_[s] == 0.0 || (probability < RELIABLE && s != served)) continue;
                tilt.share[s] = 1.0 / probability;
                waiting_[s] = 0.0;
            }
            served = std::max_element(waiting_.begin(), waiting_.end()) - waiting_.begin();
            if (waiting_[served] > 0.0 && sorted_ < labels_) {  // which the choice needs
                sort_first(labels_);
                return fill_tilts(labels_);
            }
        } while (waiting_[served] > 0.0);
    }

    static Shift shift_for(std::span<const double> logits, Index s) {
        const Index m = length(logits);
        if (s == 0) return {};
        if (s == m) return {logits[m - 1], std::log(static_cast<double>(m))};
        return solve_tilt(logits.data(), 0, m, s, FINE_STEP);
    }

    std::vector<double> waiting_;  // probabilities of the numbers that no factor serves yet

    // Bound the values of all sets of more than k labels.
    //
    // Further labels have at most the probability x = p(y_k = 1 | s) of the last one. Each term
    // (A + j x) / (beta^2 s + k + j) is monotone in j, and A + j x is at most s.
    double bound_beyond(double beta2, double k) const {
        Lanes sum = {};
        for (Index s = 0; s < width_; s += LANES) {
            const Lanes x = load(inside_.data() + s), A = load(total_.data() + s);
            const Lanes number = load(s_.data() + s);
            for (const Missed& missed : missed_) {
                const Lanes size = beta2 * (number + missed.number) + k;
                const Lanes falling = (A + x) / (size + 1.0);
                const Lanes rising = number * x / (size * x + (number - A));
                sum += load(mass_.data() + s) * load(missed.given.data() + s) *
                       (A > size * x ? falling : rising);
            }
        }
        return (1.0 + beta2) * add_lanes(sum) * (1.0 + TIE);
    }
};

// Decide rows of p, (n, m), with distributions d, (n, S + 1), of the number of labels.
inline void decide_reweighted_rows(Matrix<const double> p, Matrix<const double> d,
                                   const Exponents& exponents, const MissedGiven& missed,
                                   const Objective& objective, Index min_labels, Index max_labels,
                                   Matrix<std::int8_t> labels, double* expected) {
    ReweightedRow row(p.cols, d.cols - 1, missed);
    for (Index r = 0; r < p.rows; ++r) {
        row.load_row(p.row(r), d.row(r), exponents);
        expected[r] = row.decide(objective, min_labels, max_labels, labels[r]);
    }
}

// Fill `to`, (n, m), with the probability of each label.
inline void reweight_marginals(Matrix<const double> p, Matrix<const double> d,
                               const Exponents& exponents, Matrix<double> to) {
    ReweightedRow row(p.cols, d.cols - 1);
    for (Index r = 0; r < p.rows; ++r) {
        row.load_row(p.row(r), d.row(r), exponents);
        row.fill_marginals(to.row(r));
    }
}

}  // namespace fgfm
