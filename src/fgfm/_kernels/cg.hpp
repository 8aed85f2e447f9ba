// Newton steps of logistic regressions on sparse rows, by preconditioned conjugate gradients.
//
// Problem b has C logits per row, probabilities p and the Hessian
//
//     H = Z' (diag(w p) - w p p') Z + diag(diagonal)
//
// where Z may have one more column, of the problem's own. H is multiplied by the directions of as
// many problems at a time as fill BLOCK vectors. Vectors are of type T, their scalar products in
// double precision.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "sparse_rows.hpp"

namespace fgfm {

template <class T>
struct NewtonSystems {
    SparseRows<T> Z, transposed;    // (G, q) and (q, G), without the column of the problem's own
    const double* weight;           // (G,)
    Matrix<const double> prob;      // (G, B C)
    Matrix<const double> extra;     // (G, B), or (0, 0)
    Index C;                        // logits of a problem
    bool reference;                 // there is one more class, whose logit is 0
    Matrix<const double> diagonal;  // (q, B)
    Matrix<const double> scale;     // (q, B), by which the preconditioner divides
    std::vector<const T*> inverses;  // (B), each (C, q, q), that replace it; or empty
    const double* accuracy;         // (B,)
    const Index* limit;             // (B,), of products
};

// What has been reached; the vectors are (q, B C).
struct NewtonSteps {
    Matrix<double> step, residual;
    double* total;    // (B,), squared length of the step in the norm of H
    Index* products;  // (B,), negative where the limit ended it
};

template <class T>
class ConjugateGradients {
public:
    ConjugateGradients(const NewtonSystems<T>& systems, const NewtonSteps& steps)
        : systems_(systems), steps_(steps), C_(systems.C), q_(systems.scale.rows),
          single_(systems.reference && systems.C == 1) {}

    // Solve all problems. Those that end make room for the next.
    void solve() {
        const Index B = systems_.scale.cols;
        set_slots(std::min(B, std::max<Index>(1, BLOCK * Wide<T>::size / C_)));
        refill();
        for (;;) {
            precondition();
            turn();
            multiply();
            advance();
            std::vector<Index> active;
            for (Index s = 0; s < count(); ++s) {
                if (!ended(slots_[s])) {
                    active.push_back(s);
                } else if (slots_[s].problem >= 0) {
                    save(s);
                }
            }
            const Index n = static_cast<Index>(active.size());
            if (next_ < B) {
                if ((count() - n) * C_ >= Wide<T>::size || n == 0) refill();
            } else if (n == 0) {
                return;
            } else if (Wide<T>::padded(n * C_) < columns_) {
                keep(active);
            }
        }
    }

private:
    struct Slot {
        Index problem = -1;  // none
        Index products = 0;
        double total = 0.0;
        double size = 0.0;   // r' S r
        double ratio = 0.0;  // of it to its last value
        double gain = 0.0;   // last term of the total
    };

    const NewtonSystems<T>& systems_;
    const NewtonSteps& steps_;
    const Index C_, q_;
    const bool single_;
    std::vector<Slot> slots_;
    Index next_ = 0;               // problem
    Index columns_ = 0;            // C_ for each slot, padded by columns of 0
    std::vector<T> prob_, extra_;  // (G, columns); for a single logit the curvature
    std::vector<T> diagonal_, inverse_, step_, residual_, scaled_, direction_, product_;  // (q, ..)
    std::vector<T> logits_, factor_, column_;
    std::vector<double> sums_;

    Index count() const { return static_cast<Index>(slots_.size()); }

    // The arrays that follow the slots, with their numbers of rows.
    template <class Body>
    void for_arrays(Body body) {
        body(prob_, systems_.Z.rows());
        body(extra_, systems_.extra.rows);
        for (auto* values : {&diagonal_, &inverse_, &step_, &residual_, &scaled_, &direction_}) {
            body(*values, q_);
        }
    }

    void set_slots(Index n) {
        slots_.assign(n, Slot());
        columns_ = Wide<T>::padded(n * C_);
        for_arrays([&](std::vector<T>& values, Index rows) { values.assign(rows * columns_, T(0)); });
        logits_.assign(systems_.Z.rows() * columns_, T(0));
        product_.assign(q_ * columns_, T(0));
        factor_.assign(columns_, T(0));
        sums_.assign(columns_, 0.0);
        column_.resize(q_);
    }

    bool limited(const Slot& slot) const { return slot.products >= systems_.limit[slot.problem]; }

    bool open(const Slot& slot) const {
        const double accuracy = systems_.accuracy[slot.problem];
        return 10.0 * slot.gain > accuracy * accuracy * slot.total;
    }

    bool ended(const Slot& slot) const {
        return slot.problem < 0 || !open(slot) || limited(slot);
    }

    // Load the next problems into the slots that have none.
    void refill() {
        std::vector<std::pair<Index, Index>> columns;  // from and to
        for (Index s = 0; s < count() && next_ < systems_.scale.cols; ++s) {
            if (slots_[s].problem >= 0) continue;
            slots_[s] = {next_, 0, steps_.total[next_]};
            for (Index k = 0; k < C_; ++k) columns.emplace_back(next_ * C_ + k, s * C_ + k);
            ++next_;
        }
        for (Index g = 0; g < systems_.Z.rows(); ++g) {
            const double *p = systems_.prob[g], w = systems_.weight[g];
            for (const auto& [from, to] : columns) {
                const double value = single_ ? w * p[from] * (1.0 - p[from]) : p[from];
                prob_[g * columns_ + to] = value > LEAST ? static_cast<T>(value) : T(0);
            }
        }
        for (Index g = 0; g < systems_.extra.rows; ++g) {
            for (const auto& [from, to] : columns) {
                extra_[g * columns_ + to] = static_cast<T>(systems_.extra[g][from / C_]);
            }
        }
        for (Index j = 0; j < q_; ++j) {
            for (const auto& [from, to] : columns) {
                const Index at = j * columns_ + to;
                diagonal_[at] = static_cast<T>(systems_.diagonal[j][from / C_]);
                inverse_[at] = static_cast<T>(1.0 / systems_.scale[j][from / C_]);
                step_[at] = static_cast<T>(steps_.step[j][from]);
                residual_[at] = static_cast<T>(steps_.residual[j][from]);
            }
        }
    }

    static constexpr double LEAST = 1e-30;  // curvature: smaller ones would only be slow in float

    // product = H direction
    void multiply() {
        const SparseRows<T> Z = systems_.Z, transposed = systems_.transposed;
        const Index G = Z.rows(), columns = columns_;
        const bool extra = systems_.extra.rows > 0;
        const T* const direction = direction_.data();
        for (Index g = 0; g < G; ++g) {
            T* const u = &logits_[g * columns];
            const T* const p = &prob_[g * columns];
            multiply_row(Z, g, direction, columns, u,
                         single_ && !extra ? p : nullptr);
            if (extra) {
                const T *x = &extra_[g * columns], *d = &direction_[(q_ - 1) * columns];
                for (Index c = 0; c < columns; ++c) u[c] += x[c] * d[c];
            }
            if (single_) {
                if (extra) {
                    for (Index c = 0; c < columns; ++c) u[c] *= p[c];
                }
                continue;
            }
            const T w = static_cast<T>(systems_.weight[g]);
            for (Index c = 0; c < count() * C_; c += C_) {
                T mean = 0;
                for (Index k = c; k < c + C_; ++k) mean += p[k] * u[k];
                for (Index k = c; k < c + C_; ++k) u[k] = w * p[k] * (u[k] - mean);
            }
        }
        for (Index j = 0; j < transposed.rows(); ++j) {
            multiply_row(transposed, j, logits_.data(), columns, &product_[j * columns]);
        }
        if (extra) {
            T* const last = &product_[(q_ - 1) * columns];
            std::fill(last, last + columns, T(0));
            for (Index i = 0; i < G * columns; i += columns) {
                for (Index c = 0; c < columns; ++c) last[c] += extra_[i + c] * logits_[i + c];
            }
        }
        for (Index i = 0; i < q_ * columns; ++i) product_[i] += diagonal_[i] * direction_[i];
    }

    // The scalar product of two vectors of each slot, passed to body(slot, value).
    template <class Body>
    void dots(const std::vector<T>& a, const std::vector<T>& b, Body body) {
        std::fill(sums_.begin(), sums_.end(), 0.0);
        for (Index j = 0; j < q_; ++j) {
            const T *x = &a[j * columns_], *y = &b[j * columns_];
            for (Index c = 0; c < columns_; ++c) {
                sums_[c] += static_cast<double>(x[c]) * static_cast<double>(y[c]);
            }
        }
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

    // Go along the direction to the minimum.
    void advance() {
        dots(direction_, product_, [](Slot& slot, double curvature) {
            slot.gain = curvature > 0.0 && slot.size > 0.0 ? slot.size / curvature : 0.0;
        });
        set_factors([](const Slot& slot) { return slot.gain; });
        for (Slot& slot : slots_) {
            slot.gain *= slot.size;
            slot.total += slot.gain;
            ++slot.products;
        }
        for (Index j = 0; j < q_; ++j) {
            const T *d = &direction_[j * columns_], *h = &product_[j * columns_];
            T *x = &step_[j * columns_], *r = &residual_[j * columns_];
            for (Index c = 0; c < columns_; ++c) {
                x[c] += factor_[c] * d[c];
                r[c] -= factor_[c] * h[c];
            }
        }
    }

    void precondition() {
        for (Index i = 0; i < q_ * columns_; ++i) scaled_[i] = residual_[i] * inverse_[i];
        if (!systems_.inverses.empty()) {
            for (Index c = 0; c < count() * C_; ++c) {
                const Index b = slots_[c / C_].problem;
                if (b >= 0) multiply_column(systems_.inverses[b] + c % C_ * q_ * q_, c);
            }
        }
        if (!systems_.reference) {
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
        dots(residual_, scaled_, [](Slot& slot, double size) {
            slot.ratio = slot.size > 0.0 ? size / slot.size : 0.0;
            slot.size = size;
        });
    }

    // scaled = inverse residual, for one column
    void multiply_column(const T* inverse, Index c) {
        using W = Wide<T>;
        typename W::Type sum[4];
        T* const r = column_.data();
        for (Index j = 0; j < q_; ++j) r[j] = residual_[j * columns_ + c];
        for (Index j = 0; j < q_; ++j) {
            const T* m = inverse + j * q_;
            for (auto& part : sum) part = typename W::Type{};
            Index i = 0;
            for (; i + 4 * W::size <= q_; i += 4 * W::size) {
                for (Index k = 0; k < 4; ++k) {
                    sum[k] += W::load(m + i + k * W::size) * W::load(r + i + k * W::size);
                }
            }
            T tail = 0;
            for (; i < q_; ++i) tail += m[i] * r[i];
            const auto total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
            for (Index k = 0; k < W::size; ++k) tail += total[k];
            scaled_[j * columns_ + c] = tail;
        }
    }

    // The next direction.
    void turn() {
        set_factors([](const Slot& slot) { return slot.ratio; });
        for (Index j = 0; j < q_; ++j) {
            const T* s = &scaled_[j * columns_];
            T* d = &direction_[j * columns_];
            for (Index c = 0; c < columns_; ++c) d[c] = s[c] + factor_[c] * d[c];
        }
    }

    // Store what a slot has reached, and free it.
    void save(Index s) {
        Slot& slot = slots_[s];
        const Index b = slot.problem;
        for (Index j = 0; j < q_; ++j) {
            for (Index k = 0; k < C_; ++k) {
                const Index at = j * columns_ + s * C_ + k;
                steps_.step[j][b * C_ + k] = step_[at];
                steps_.residual[j][b * C_ + k] = residual_[at];
                residual_[at] = direction_[at] = T(0);
            }
        }
        steps_.total[b] = slot.total;
        steps_.products[b] = open(slot) ? -slot.products : slot.products;
        slot = Slot();
    }

    // Continue with some of the slots, in arrays of as few vectors.
    void keep(const std::vector<Index>& kept) {
        const Index n = static_cast<Index>(kept.size()), before = columns_;
        columns_ = Wide<T>::padded(n * C_);
        for_arrays([&](std::vector<T>& values, Index rows) {
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
