// Newton steps of many problems on the same rows, by preconditioned conjugate gradients.
//
// A problem has the Hessian
//
//     H = Z' (diag(w p) - w p p') Z + diag(ridge + damping)
//
// which is never formed. H is multiplied by the directions of as many problems at a time as fill
// BLOCK vectors; those that end make room for the next. Vectors are of type T, their scalar products
// in double precision. A step need only be accurate to four digits, and the gradient that it is
// solved for is in double precision, so that steps on sparse rows are computed in single precision
// where the penalty is large enough.
//
// Where few rows have weight (rare classes, small penalties) most of the curvature is the penalty's,
// the same in all directions, and plain conjugate gradients need few products. Scaling every column
// by its own curvature would spread these directions: sparse columns are scaled only where the plain
// method fails. Dense ones are principal axes if they are few (ridge/_design.py): Z' Z is diagonal, and
// H too where the curvatures of the rows are equal. Each is scaled by what it would then be.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "ridge_problem.hpp"
#include "signals.hpp"

namespace fgfm {

constexpr Index MAX_PRODUCTS = 500;  // of a step: then it is taken, and columns are scaled
constexpr double LEAST_SHARE = 1e-13;  // of the curvature in its bound
// Steps have single precision where the ridge is at least this part of the largest curvature: errors
// of products, 1e-7 of that, are small beside the least curvature.
constexpr double SINGLE_RIDGE = 1e-5;
constexpr double SINGLE_RANGE = 1e12;  // of values and curvatures

template <class T>
class ConjugateGradients {
public:
    ConjugateGradients(const TrainingRows& training, const LogitModel& model)
        : training_(training), rows_(*training.rows), model_(model), C_(model.C) {}

    // Solve H step = gradient of each problem, until ten times the last term of the squared length of
    // the step in the norm of H, a sum of one term for each iteration (Hestenes and Stiefel, 1952), is
    // no more than accuracy^2 times the sum, and for dense rows, whose scales may be far off, the residual
    // has fallen as much; or for MAX_PRODUCTS.
    void solve(std::span<RidgeProblem* const> problems) {
        if (problems.empty()) return;
        problems_ = problems;
        next_ = 0;
        q_ = static_cast<Index>(problems[0]->theta.size()) / C_;
        extra_rows_ = problems[0]->extra.empty() ? 0 : rows_.count();
        const Index most = std::max<Index>(1, BLOCK * Wide<T>::size / C_);
        set_slots(std::min(length(problems), most));
        refill();
        while (true) {
            check_signals();
            precondition();
            turn();
            multiply();
            advance();
            std::vector<Index> active;
            for (Index s = 0; s < count(); ++s) {
                if (!ended(slots_[s])) {
                    active.push_back(s);
                } else if (slots_[s].problem) {
                    save(s);
                }
            }
            const Index n = static_cast<Index>(active.size());
            if (next_ < length(problems_)) {
                if ((count() - n) * C_ >= Wide<T>::size || n == 0) refill();
            } else if (n == 0) {
                return;
            } else if (rows_.padded<T>(n * C_) < columns_) {
                keep(active);
            }
        }
    }

private:
    struct Slot {
        RidgeProblem* problem = nullptr;
        Index products = 0;
        double total = 0.0;
        double size = 0.0, first_size = 0.0;  // r' S r
        double ratio = 0.0;  // of it to its last value
        double gain = 0.0;   // last term of the total
    };

    const TrainingRows& training_;
    const Rows& rows_;
    const LogitModel model_;
    const Index C_;
    std::span<RidgeProblem* const> problems_;
    Index next_ = 0, q_ = 0, extra_rows_ = 0;
    std::vector<Slot> slots_;
    Index columns_ = 0;            // C_ for each slot, padded by columns of 0
    LineVector<T> prob_, extra_;  // (G, columns); for a single logit the curvature
    LineVector<T> diagonal_, inverse_, step_, residual_, scaled_, direction_, product_;  // (q, ..)
    LineVector<T> logits_, factor_;
    std::vector<double> sums_, share_;  // the latter of the curvature in its bound

    Index count() const { return static_cast<Index>(slots_.size()); }
    bool lone() const { return model_.reference && C_ == 1; }  // one logit: no other classes

    // The arrays that follow the slots, with their numbers of rows.
    template <class Body>
    void for_arrays(Body body) {
        body(prob_, rows_.count());
        body(extra_, extra_rows_);
        for (auto* values : {&diagonal_, &inverse_, &step_, &residual_, &scaled_, &direction_}) {
            body(*values, q_);
        }
    }

    void set_slots(Index n) {
        slots_.assign(n, Slot());
        columns_ = rows_.padded<T>(n * C_);
        for_arrays([&](LineVector<T>& values, Index rows) { values.assign(rows * columns_, T(0)); });
        logits_.assign(rows_.count() * columns_, T(0));
        product_.assign(q_ * columns_, T(0));
        factor_.assign(columns_, T(0));
        sums_.assign(columns_, 0.0);
        share_.assign(columns_, 0.0);
    }

    bool open(const Slot& slot) const {
        const double accuracy = slot.problem->accuracy;
        return 10.0 * slot.gain > accuracy * accuracy * slot.total ||
               (!rows_.sparse() && slot.size > accuracy * accuracy * slot.first_size);
    }

    bool ended(const Slot& slot) const {
        return !slot.problem || !open(slot) || slot.products >= MAX_PRODUCTS;
    }

    static constexpr double LEAST = 1e-30;  // curvature: smaller ones would only be slow in float

    // Load the next problems into the slots that have none.
    void refill() {
        std::vector<Index> fresh;
        for (Index s = 0; s < count() && next_ < length(problems_); ++s) {
            if (slots_[s].problem) continue;
            slots_[s].problem = problems_[next_];
            std::fill_n(share_.begin() + s * C_, C_, 0.0);
            fresh.push_back(s);
            ++next_;
        }
        // a few rows of all problems at a time: their cache lines are written once
        constexpr Index TILE = 32;
        for (Index g = 0; g < rows_.count(); g += TILE) {
            for (const Index s : fresh) load_rows(s, g, std::min(g + TILE, rows_.count()));
        }
        for (Index j = 0; j < q_; j += TILE) {
            for (const Index s : fresh) load_columns(s, j, std::min(j + TILE, q_));
        }
    }

    // Load the probabilities, or curvatures, of the rows from `first` to `last`.
    void load_rows(Index s, Index first, Index last) {
        const RidgeProblem& problem = *slots_[s].problem;
        for (Index g = first; g < last; ++g) {
            const double *p = &problem.prob[g * C_], w = training_.weight[g];
            T* const out = &prob_[g * columns_ + s * C_];
            for (Index k = 0; k < C_; ++k) {
                const double curvature = w * p[k] * (1.0 - p[k]), value = lone() ? curvature : p[k];
                share_[s * C_ + k] += 4.0 * curvature / training_.mass;
                out[k] = value > LEAST ? static_cast<T>(value) : T(0);
                if (extra_rows_ > 0) {
                    extra_[g * columns_ + s * C_ + k] = static_cast<T>(problem.extra[g]);
                }
            }
        }
    }

    // Load the residual, and the diagonals, of the columns of Z from `first` to `last`.
    void load_columns(Index s, Index first, Index last) {
        const RidgeProblem& problem = *slots_[s].problem;
        const double ridge = 2.0 * problem.penalty;
        for (Index j = first; j < last; ++j) {
            const bool feature = j > 0 && j < rows_.columns();
            const double bound = j < rows_.columns() ? training_.bound[j] : problem.extra_bound;
            const double penalty = j >= model_.first ? ridge : 0.0;
            // the same scale for all features
            const double flat =
                feature ? training_.largest_bound : std::max(training_.largest_bound, bound);
            for (Index k = 0; k < C_; ++k) {
                const Index at = j * columns_ + s * C_ + k;
                const double own = bound * (share_[s * C_ + k] + problem.damping + LEAST_SHARE);
                const double scale =
                    !rows_.sparse() ? own + penalty : problem.scaled ? bound + ridge : flat;
                diagonal_[at] = static_cast<T>(penalty + problem.damping * bound);
                inverse_[at] = static_cast<T>(1.0 / scale);
                step_[at] = T(0);
                residual_[at] = static_cast<T>(problem.gradient[j * C_ + k]);
            }
        }
    }

    // product = H direction, without its diagonal
    void multiply() {
        const Index G = rows_.count(), columns = columns_;
        T* const u = logits_.data();
        const bool extra = extra_rows_ > 0;
        rows_.multiply(direction_.data(), columns, u);
        if (extra) {
            const T* d = &direction_[(q_ - 1) * columns];
            for (Index g = 0; g < G; ++g) {
                T* const row = u + g * columns;
                const T* x = &extra_[g * columns];
                for (Index c = 0; c < columns; ++c) row[c] += x[c] * d[c];
            }
        }
        if (lone()) {
            for (Index i = 0; i < G * columns; ++i) u[i] *= prob_[i];
        } else {
            for (Index g = 0; g < G; ++g) {
                const T w = static_cast<T>(training_.weight[g]);
                for (Index c = g * columns; c < g * columns + count() * C_; c += C_) {
                    T mean = 0;
                    for (Index k = c; k < c + C_; ++k) mean += prob_[k] * u[k];
                    for (Index k = c; k < c + C_; ++k) u[k] = w * prob_[k] * (u[k] - mean);
                }
            }
        }
        rows_.multiply_transposed(u, columns, product_.data());
        if (extra) {
            T* const last = &product_[(q_ - 1) * columns];
            std::fill(last, last + columns, T(0));
            for (Index i = 0; i < G * columns; i += columns) {
                for (Index c = 0; c < columns; ++c) last[c] += extra_[i + c] * u[i + c];
            }
        }
    }

    // Pass the sums of the columns of each slot to body(slot, sum).
    template <class Body>
    void for_sums(Body body) {
        for (Index s = 0; s < count(); ++s) {
            double sum = 0.0;
            for (Index c = s * C_; c < (s + 1) * C_; ++c) sum += sums_[c];
            body(slots_[s], sum);
        }
    }

    // Set the factor of each column to that of its slot.
    template <class Value>
    void set_factors(Value value) {
        for (Index s = 0; s < count(); ++s) {
            const T factor = static_cast<T>(value(slots_[s]));
            for (Index c = s * C_; c < (s + 1) * C_; ++c) factor_[c] = factor;
        }
    }

    // Add the diagonal to the product, and go along the direction to the minimum.
    void advance() {
        std::fill(sums_.begin(), sums_.end(), 0.0);
        for (Index at = 0; at < q_ * columns_; at += columns_) {
            for (Index c = 0; c < columns_; ++c) {
                const T d = direction_[at + c], h = product_[at + c] + diagonal_[at + c] * d;
                product_[at + c] = h;
                sums_[c] += static_cast<double>(d) * static_cast<double>(h);
            }
        }
        for_sums([](Slot& slot, double curvature) {
            slot.gain = curvature > 0.0 && slot.size > 0.0 ? slot.size / curvature : 0.0;
        });
        set_factors([](const Slot& slot) { return slot.gain; });
        for (Slot& slot : slots_) {
            slot.gain *= slot.size;
            slot.total += slot.gain;
            ++slot.products;
        }
        for (Index at = 0; at < q_ * columns_; at += columns_) {
            for (Index c = 0; c < columns_; ++c) {
                step_[at + c] += factor_[c] * direction_[at + c];
                residual_[at + c] -= factor_[c] * product_[at + c];
            }
        }
    }

    void precondition() {
        for (Index i = 0; i < q_ * columns_; ++i) scaled_[i] = residual_[i] * inverse_[i];
        if (!model_.reference) {
            // Weights that are the same for all classes change no probability: no step goes there.
            for (Index j = 0; j < q_; ++j) {
                T* const end = &scaled_[j * columns_] + count() * C_;
                for (T* s = &scaled_[j * columns_]; s < end; s += C_) {
                    T mean = 0;
                    for (Index k = 0; k < C_; ++k) mean += s[k];
                    mean /= static_cast<T>(C_);
                    for (Index k = 0; k < C_; ++k) s[k] -= mean;
                }
            }
        }
        std::fill(sums_.begin(), sums_.end(), 0.0);
        for (Index at = 0; at < q_ * columns_; at += columns_) {
            for (Index c = 0; c < columns_; ++c) {
                sums_[c] += static_cast<double>(residual_[at + c]) *
                            static_cast<double>(scaled_[at + c]);
            }
        }
        for_sums([](Slot& slot, double size) {
            slot.ratio = slot.size > 0.0 ? size / slot.size : 0.0;
            slot.size = size;
            if (slot.products == 0) slot.first_size = size;
        });
    }

    // The next direction.
    void turn() {
        set_factors([](const Slot& slot) { return slot.ratio; });
        for (Index at = 0; at < q_ * columns_; at += columns_) {
            for (Index c = 0; c < columns_; ++c) {
                direction_[at + c] = scaled_[at + c] + factor_[c] * direction_[at + c];
            }
        }
    }

    // Store what a slot has reached, and free it.
    void save(Index s) {
        Slot& slot = slots_[s];
        RidgeProblem& problem = *slot.problem;
        for (Index j = 0; j < q_; ++j) {
            for (Index k = 0; k < C_; ++k) {
                const Index at = j * columns_ + s * C_ + k;
                problem.step[j * C_ + k] = step_[at];
                residual_[at] = direction_[at] = T(0);
            }
        }
        problem.unfinished = open(slot);
        problem.scaled |= problem.unfinished;
        slot = Slot();
    }

    // Continue with some of the slots, in arrays of as few vectors.
    void keep(const std::vector<Index>& kept) {
        const Index n = static_cast<Index>(kept.size()), before = columns_;
        columns_ = rows_.padded<T>(n * C_);
        for_arrays([&](LineVector<T>& values, Index rows) {
            for (Index g = 0; g < rows; ++g) {  // no element is overwritten before it is moved
                T* to = values.data() + g * columns_;
                const T* from = values.data() + g * before;
                for (Index s = 0; s < n; ++s) {
                    for (Index k = 0; k < C_; ++k) to[s * C_ + k] = from[kept[s] * C_ + k];
                }
                std::fill(to + n * C_, to + columns_, T(0));
            }
            values.resize(rows * columns_);
        });
        product_.resize(q_ * columns_);
        factor_.assign(columns_, T(0));
        sums_.resize(columns_);
        for (Index s = 0; s < n; ++s) slots_[s] = slots_[kept[s]];
        slots_.resize(n);
    }
};

}  // namespace fgfm
