// Ridge-penalised multinomial logistic regression along a path of penalties, by Newton's method.
//
// Rows that are equal are one group. With logits eta = Z theta, (G, J), over the logit 0 of the
// reference class, and N[g, k] the weight of class k in group g, minimise for one penalty after the
// other
//
//     - sum_gk N[g, k] log p_k(eta_g) + penalty * sum_j (|theta_j|^2 - share * (sum_k theta_jk)^2)
//
// where j runs over the penalised rows of theta. share = 1 / K is scikit-learn's symmetric softmax
// with its redundant class solved for: adding a constant to the weights of all K classes changes no
// probability, and this is what is left of their squares at the best constant. share = 0 penalises
// the distance to the reference class.
//
// The first column of Z is the constant. It stays the first pivot of the Cholesky factor: all later
// pivots are then at least the penalty, also where the data are separable and every probability is
// almost 0 or 1.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "arrays.hpp"

namespace fgfm {

constexpr double CLIP = 1e-15;     // of a probability whose logarithm is taken to judge it
constexpr double DESCENT = 1e-4;   // part of the promised descent that a step must keep
constexpr double SHORT_STEP = 0.1;    // a step cut to less than this is damped the next time
constexpr double SHORTEST_STEP = 1e-6;  // a direction is given up at this length
constexpr double FIRST_DAMPING = 1e-6;  // a hundred times more each time

// The matrix product of BLAS, as scipy.linalg.cython_blas exports it (Fortran order, pointers).
using Gemm = void (*)(char*, char*, int*, int*, int*, double*, double*, int*, double*, int*,
                      double*, double*, int*);

struct OwnedMatrix {
    std::vector<double> values;
    Index rows, cols;

    OwnedMatrix(Index rows, Index cols) : values(rows * cols), rows(rows), cols(cols) {}
    double* operator[](Index i) { return values.data() + i * cols; }
    const double* operator[](Index i) const { return values.data() + i * cols; }
    operator Matrix<const double>() const { return {values.data(), rows, cols}; }
};

class RidgePath {
public:
    RidgePath(Gemm gemm, Matrix<const double> Z, Matrix<const double> pairs,
              Matrix<const double> counts, double share, Index first)
        : gemm_(gemm), Z_(Z), pairs_(pairs), counts_(counts), share_(share), first_(first),
          p_(Z.cols), J_(counts.cols - 1), total_(Z.rows, 0.0), bound_(Z.cols, 1e-300),
          residual_(Z.rows, J_), curvature_(Z.rows, J_ * (J_ + 1) / 2),
          weighted_(pairs.rows == 0 ? Z.rows : 0, Z.cols),
          blocks_(pairs.rows == 0 ? Z.cols : curvature_.cols,
                  pairs.rows == 0 ? Z.cols : pairs.cols),
          gradient_(p_, J_), H_(p_ * J_, p_ * J_), L_(p_ * J_, p_ * J_) {
        for (Index g = 0; g < Z.rows; ++g) {
            for (Index k = 0; k <= J_; ++k) total_[g] += counts[g][k];
        }
        for (Index g = 0; g < Z.rows; ++g) {
            for (Index j = 0; j < p_; ++j) bound_[j] += 0.25 * total_[g] * Z[g][j] * Z[g][j];
        }
    }

    void fit(Matrix<const double> test_Z, Matrix<const double> test_counts,
             std::span<const double> penalties, double tol, Index max_iter, double reuse,
             double* theta, double* losses, Index* steps);

private:
    Gemm gemm_;
    Matrix<const double> Z_, pairs_, counts_;
    double share_;
    Index first_, p_, J_;
    std::vector<double> total_;  // (G,) weight of each group
    std::vector<double> bound_;  // (p,) the largest curvature that any probabilities could give
    OwnedMatrix residual_, curvature_, weighted_, blocks_, gradient_, H_, L_;

    // out = op(a) b in C order, op the transpose or nothing
    void multiply(Matrix<const double> a, bool transpose, Matrix<const double> b,
                  double* out) const {
        int m = static_cast<int>(b.cols), n = static_cast<int>(transpose ? a.cols : a.rows),
            k = static_cast<int>(b.rows), lda = std::max(1, m), ldb = static_cast<int>(a.cols);
        double one = 1.0, zero = 0.0;
        char plain = 'N', flag = transpose ? 'T' : 'N';
        if (m == 0 || n == 0) return;
        ldb = std::max(1, ldb);
        // in Fortran order: out^T = b^T op(a)^T
        gemm_(&plain, &flag, &m, &n, &k, &one, const_cast<double*>(b.data), &lda,
              const_cast<double*>(a.data), &ldb, &zero, out, &lda);
    }

    // Set the probabilities of all classes but the reference; return the negative log-likelihood.
    double evaluate(const OwnedMatrix& eta, OwnedMatrix& prob) const {
        double loss = 0.0;
        for (Index g = 0; g < eta.rows; ++g) {
            const double *logit = eta[g], *count = counts_[g];
            double* p = prob[g];
            if (J_ == 1) {
                const double u = logit[0], e = std::exp(-std::abs(u));
                p[0] = u >= 0.0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
                // log(1 + exp(u)) = max(u, 0) + log(1 + e): no cancellation where the row is certain
                loss += (u >= 0.0 ? count[0] * u : -count[1] * u) + total_[g] * std::log1p(e);
                continue;
            }
            double top = 0.0;
            for (Index k = 0; k < J_; ++k) top = std::max(top, logit[k]);
            double mass = std::exp(-top), linear = count[0] * top;
            for (Index k = 0; k < J_; ++k) {
                p[k] = std::exp(logit[k] - top);
                mass += p[k];
                linear += count[k + 1] * (top - logit[k]);
            }
            for (Index k = 0; k < J_; ++k) p[k] /= mass;
            loss += linear + total_[g] * std::log(mass);
        }
        return loss;
    }

    // Return the squares of the rows of theta from `first` on that the penalty multiplies.
    double squares(const OwnedMatrix& theta) const {
        double result = 0.0;
        for (Index j = first_; j < p_; ++j) {
            double row = 0.0;
            for (Index k = 0; k < J_; ++k) {
                result += theta[j][k] * theta[j][k];
                row += theta[j][k];
            }
            result -= share_ * row * row;
        }
        return result;
    }

    void fill_gradient(const OwnedMatrix& prob, const OwnedMatrix& theta, double penalty) {
        for (Index g = 0; g < Z_.rows; ++g) {
            for (Index k = 0; k < J_; ++k) {
                residual_[g][k] = total_[g] * prob[g][k] - counts_[g][k + 1];
            }
        }
        multiply(Z_, true, residual_, gradient_[0]);
        for (Index j = first_; j < p_; ++j) {
            double row = 0.0;
            for (Index k = 0; k < J_; ++k) row += theta[j][k];
            for (Index k = 0; k < J_; ++k) {
                gradient_[j][k] += 2.0 * penalty * (theta[j][k] - share_ * row);
            }
        }
    }

    // Fill the lower triangle of H, whose index is j * J + k.
    //
    // `pairs` holds the products of the columns of Z two by two, or nothing where that is too much.
    void fill_hessian(const OwnedMatrix& prob, double penalty) {
        const Index G = Z_.rows;
        Index c = 0;
        for (Index k = 0; k < J_; ++k) {
            for (Index a = 0; a <= k; ++a, ++c) {
                for (Index g = 0; g < G; ++g) {
                    const double same = k == a ? prob[g][k] : 0.0;
                    curvature_[g][c] = total_[g] * (same - prob[g][k] * prob[g][a]);
                }
            }
        }
        if (pairs_.rows > 0) multiply(curvature_, true, pairs_, blocks_[0]);
        c = 0;
        for (Index k = 0; k < J_; ++k) {
            for (Index a = 0; a <= k; ++a, ++c) {
                if (pairs_.rows == 0) {
                    for (Index g = 0; g < G; ++g) {
                        const double w = curvature_[g][c];
                        for (Index j = 0; j < p_; ++j) weighted_[g][j] = w * Z_[g][j];
                    }
                    multiply(Z_, true, weighted_, blocks_[0]);  // (p, p)
                }
                const double* pair = pairs_.rows > 0 ? blocks_[c] : nullptr;
                for (Index j = 0; j < p_; ++j) {
                    for (Index i = 0; i <= j; ++i) {
                        const double value = pair ? *pair++ : blocks_[j][i];
                        H_[j * J_ + k][i * J_ + a] = value;
                        H_[j * J_ + a][i * J_ + k] = value;
                    }
                }
            }
        }
        for (Index j = first_; j < p_; ++j) {
            for (Index k = 0; k < J_; ++k) {
                H_[j * J_ + k][j * J_ + k] += 2.0 * penalty;
                for (Index a = 0; a <= k; ++a) {
                    H_[j * J_ + k][j * J_ + a] -= 2.0 * penalty * share_;
                }
            }
        }
    }

    // Set L to the Cholesky factor of H + damping * bound; return false if there is none.
    bool factorize(double damping) {
        for (Index i = 0; i < H_.rows; ++i) {
            double* own = L_[i];
            for (Index j = 0; j < i; ++j) {
                const double* other = L_[j];
                own[j] = (H_[i][j] - dot(own, other, j)) / other[j];
            }
            const double pivot = H_[i][i] + damping * bound_[i / J_] - dot(own, own, i);
            if (!(pivot > 1e-15 * H_[i][i])) return false;
            own[i] = std::sqrt(pivot);
        }
        return true;
    }

    // Solve L L^T x = x in place.
    void solve(double* x) const {
        const Index d = L_.rows;
        for (Index i = 0; i < d; ++i) {
            const double* row = L_[i];
            x[i] = (x[i] - dot(row, x, i)) / row[i];
        }
        for (Index i = d - 1; i >= 0; --i) {
            const double* row = L_[i];
            x[i] /= row[i];
            for (Index j = 0; j < i; ++j) x[j] -= row[j] * x[i];
        }
    }
};

// Return the negative log-likelihood of logits, with all probabilities clipped.
inline double clipped_loss(const OwnedMatrix& eta, Matrix<const double> counts) {
    double loss = 0.0;
    for (Index g = 0; g < eta.rows; ++g) {
        const double* logit = eta[g];
        double top = 0.0;
        for (Index k = 0; k < eta.cols; ++k) top = std::max(top, logit[k]);
        double mass = std::exp(-top);
        for (Index k = 0; k < eta.cols; ++k) mass += std::exp(logit[k] - top);
        for (Index k = 0; k <= eta.cols; ++k) {
            if (counts[g][k] > 0.0) {
                const double u = k > 0 ? logit[k - 1] : 0.0;
                const double p = std::exp(u - top) / mass;
                loss -= counts[g][k] * std::log(std::min(std::max(p, CLIP), 1.0 - CLIP));
            }
        }
    }
    return loss;
}

// Fill theta (L, p, J), the test losses (L,) and the numbers of steps (L,).
//
// theta[0] is the start for penalties[0]; every other penalty starts where the one before ended.
// `counts` is (G, K), the reference class first; `test_Z` and `test_counts` have rows of their own.
// `first` is the first penalised row of theta.
//
// A Hessian is reused until the logits have moved by `reuse` since it was formed. The error after a
// step is about its own length times what they have moved; an iteration ends where that is below
// the square of `tol`, or where rounding lets it shrink no more. `steps` is negative where
// `max_iter` steps were too few.
//
// Where an early step has driven all probabilities to 0 and 1, hardly any curvature is left and a
// Newton step leads astray. It is then damped by a multiple of the largest curvature that any
// probabilities could give.
inline void RidgePath::fit(Matrix<const double> test_Z, Matrix<const double> test_counts,
                           std::span<const double> penalties, double tol, Index max_iter,
                           double reuse, double* theta, double* losses, Index* steps) {
    const double infinity = std::numeric_limits<double>::infinity();
    const Index G = Z_.rows, d = p_ * J_;
    OwnedMatrix current(p_, J_), trial(p_, J_), step(p_, J_);
    OwnedMatrix eta(G, J_), trial_eta(G, J_), eta_step(G, J_), prob(G, J_), trial_prob(G, J_);
    OwnedMatrix test_eta(test_Z.rows, J_);
    std::copy(theta, theta + d, current[0]);
    multiply(Z_, false, current, eta[0]);
    double likelihood = evaluate(eta, prob);
    for (Index at = 0; at < length(penalties); ++at) {
        const double penalty = penalties[at];
        double value = likelihood + penalty * squares(current);
        steps[at] = -max_iter;
        double moved = infinity, before = infinity, damping = 0.0;
        for (Index iteration = 0; iteration < max_iter; ++iteration) {
            fill_gradient(prob, current, penalty);
            if (moved > reuse) {
                fill_hessian(prob, penalty);
                moved = 0.0;
                while (!factorize(damping) && damping < 1e100) {
                    damping = std::max(FIRST_DAMPING, 100.0 * damping);
                }
            }
            step.values = gradient_.values;
            solve(step[0]);
            multiply(Z_, false, step, eta_step[0]);
            double longest = 0.0, descent = 0.0;
            for (const double x : eta_step.values) longest = std::max(longest, std::abs(x));
            for (Index j = 0; j < d; ++j) descent += gradient_.values[j] * step.values[j];
            const double slack = 1e-13 * (std::abs(value) + 1.0);  // rounding of the two values
            double size = 1.0, trial_value = 0.0;
            bool accepted = false;
            while (true) {
                for (Index g = 0; g < G * J_; ++g) {
                    trial_eta.values[g] = eta.values[g] - size * eta_step.values[g];
                }
                for (Index j = 0; j < d; ++j) {
                    trial.values[j] = current.values[j] - size * step.values[j];
                }
                trial_value = evaluate(trial_eta, trial_prob);
                trial_value += penalty * squares(trial);
                accepted = trial_value <= value - DESCENT * size * descent + slack;
                if (accepted || size < SHORTEST_STEP) break;
                size *= 0.5;
            }
            if (accepted) {
                std::swap(current.values, trial.values);
                std::swap(eta.values, trial_eta.values);
                std::swap(prob.values, trial_prob.values);
                value = trial_value;
            }
            const bool exact = accepted && size == 1.0 && damping == 0.0;
            moved = exact ? moved + longest : infinity;
            if (size < SHORT_STEP) {
                damping = std::max(FIRST_DAMPING, 100.0 * damping);
            } else {
                damping = damping > FIRST_DAMPING ? 0.01 * damping : 0.0;
            }
            const bool stalled = descent <= 10.0 * slack && longest > 0.5 * before;
            if (longest * moved <= tol * tol || stalled) {
                steps[at] = iteration + 1;
                break;
            }
            before = longest;
        }
        std::copy(current.values.begin(), current.values.end(), theta + at * d);
        likelihood = value - penalty * squares(current);
        multiply(test_Z, false, current, test_eta[0]);
        losses[at] = clipped_loss(test_eta, test_counts);
    }
}

}  // namespace fgfm
