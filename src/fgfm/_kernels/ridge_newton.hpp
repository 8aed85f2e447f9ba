// Newton's method for problems on the same rows (`ridge_problem.hpp`), side by side.
//
// Steps are solved for with a Cholesky factor of the Hessian where that is small, by conjugate
// gradients where it is not (`ridge_cg.hpp`), then only as closely as the next iteration needs
// (Dembo, Eisenstat and Steihaug, *Inexact Newton methods*, 1982). A step is halved until it descends
// (Armijo).
//
// Where an early step has driven all probabilities to 0 and 1, hardly any curvature is left and a
// Newton step leads astray. It is then damped by a multiple of the largest curvature that any
// probabilities could give.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ridge_cg.hpp"

namespace fgfm {

constexpr double DESCENT = 1e-4;        // part of the predicted descent that a step must reach
constexpr double SHORT_STEP = 0.1;      // a step cut to less than this is damped the next time
constexpr double SHORTEST_STEP = 1e-6;  // a direction is given up at this length
constexpr double FIRST_DAMPING = 1e-6;  // a hundred times more each time
constexpr double LEAST_ACCURACY = 0.1, MOST_ACCURACY = 1e-4;  // relative, of an inexact step
constexpr Index PRODUCT_COLUMNS = 16;   // of a product with all rows, at most
// Up to FEW_UNKNOWNS a new Hessian costs no more than the exponentials of a step. In larger models a
// Hessian is kept until the logits have moved by REUSE: up to there each step is still less than
// about a fifth of the step before.
constexpr Index FEW_UNKNOWNS = 20;
constexpr double REUSE = 0.2;
constexpr Index PAIRED_COLUMNS = 24;       // with more, a product per pair of classes is as fast
constexpr Index PAIRS_LIMIT = 1 << 20;     // entries of `TrainingRows::pairs`

struct StoppingRule {
    double tol;  // the error of the logits is at most its square
    double gap;  // or a step was expected to lower the mean loss by no more than this
    Index max_iter;
};

// Set what depends on the weights of the rows; the pairs of columns if `cholesky`.
inline void prepare(TrainingRows& training, bool cholesky) {
    constexpr double TINY = 1e-300;  // keeps the curvature of a column of zeros positive
    const Rows& rows = *training.rows;
    training.bound = rows.squares(training.weight);
    for (double& bound : training.bound) bound = 0.25 * bound + TINY;
    for (std::size_t j = 1; j < training.bound.size(); ++j) {
        training.largest_bound = std::max(training.largest_bound, training.bound[j]);
    }
    for (const double weight : training.weight) training.mass += weight;
    const Index q = rows.columns(), pairs = q * (q + 1) / 2;
    if (!cholesky || q > PAIRED_COLUMNS || rows.count() * pairs > PAIRS_LIMIT) return;
    training.pairs.reserve(rows.count() * pairs);
    for (Index g = 0; g < rows.count(); ++g) {
        const double* z = rows.dense()[g];
        for (Index j = 0; j < q; ++j) {
            for (Index i = 0; i <= j; ++i) training.pairs.push_back(z[j] * z[i]);
        }
    }
}

class Newton {
public:
    Newton(const TrainingRows& training, const LogitModel& model, bool cholesky)
        : training_(training), rows_(*training.rows), model_(model), cholesky_(cholesky),
          single_(training, model), double_(training, model) {}

    // Evaluate problems at their theta.
    void start(std::span<RidgeProblem* const> problems) {
        const Index G = rows_.count(), C = model_.C;
        for (RidgeProblem* problem : problems) {
            for (auto* values : {&problem->eta, &problem->prob, &problem->eta_step}) {
                values->resize(G * C);
            }
            for (auto* values : {&problem->gradient, &problem->step}) {
                values->resize(problem->theta.size());
            }
        }
        for_blocks(problems, [&](std::span<RidgeProblem* const> block) {
            multiply(rows_, block, &RidgeProblem::theta, &RidgeProblem::extra, &RidgeProblem::eta);
        });
        for (RidgeProblem* p : problems) {
            p->likelihood = evaluate(model_, training_.weight, p->counts, p->eta, p->prob);
        }
    }

    // Minimise with the next penalty of a path, from the current point or one that is extrapolated.
    void follow(std::span<RidgeProblem* const> problems, double penalty, const StoppingRule& rule) {
        for (RidgeProblem* p : problems) p->penalty = penalty;
        extrapolate(problems);
        minimise(problems, rule);
        for (RidgeProblem* p : problems) {
            std::swap(p->older, p->newer);
            std::swap(p->older_penalty, p->newer_penalty);
            p->newer = p->theta;
            p->newer_penalty = penalty;
        }
    }

    // Minimise from the current points, each with its own penalty.
    void minimise(std::span<RidgeProblem* const> problems, const StoppingRule& rule) {
        std::vector<RidgeProblem*> active(problems.begin(), problems.end());
        const double goal = rule.tol * rule.tol;
        for (RidgeProblem* p : active) {
            p->value = p->likelihood + p->penalty * squares(model_, p->theta);
            p->steps = -rule.max_iter;
            p->expected = p->before = INF;
            p->damping = 0.0;
        }
        for (Index iteration = 0; iteration < rule.max_iter && !active.empty(); ++iteration) {
            check_signals();
            for_blocks(active, [&](std::span<RidgeProblem* const> block) { set_gradients(block); });
            if (cholesky_) {
                for (RidgeProblem* p : active) solve_exactly(*p);
            } else {
                std::vector<RidgeProblem*> some[2];
                for (RidgeProblem* p : active) {
                    // A relative error of the size of the step keeps the convergence quadratic; one
                    // that already reaches the goal may be larger.
                    const double error = std::max(0.3 * goal / p->expected, p->expected);
                    p->accuracy = std::clamp(error, MOST_ACCURACY, LEAST_ACCURACY);
                    some[suits_single_precision(*p)].push_back(p);
                }
                double_.solve(some[0]);
                single_.solve(some[1]);
            }
            for_blocks(active, [&](std::span<RidgeProblem* const> block) {
                multiply(rows_, block, &RidgeProblem::step, &RidgeProblem::extra,
                         &RidgeProblem::eta_step);
                for (RidgeProblem* p : block) {
                    if (take_step(*p, goal, rule.gap * training_.mass)) p->steps = iteration + 1;
                }
            });
            std::erase_if(active, [](const RidgeProblem* p) { return p->steps > 0; });
        }
    }

    // Set eta of each problem to the products of rows with a vector, `extra` their own column.
    void multiply(const Rows& rows, std::span<RidgeProblem* const> block,
                  std::vector<double> RidgeProblem::*vector,
                  std::vector<double> RidgeProblem::*extra,
                  std::vector<double> RidgeProblem::*product) {
        const Index G = rows.count(), C = model_.C, z = rows.columns();
        const Index columns = rows.padded<double>(length(block) * C);
        for (RidgeProblem* p : block) (p->*product).resize(G * C);
        const double* V = (block[0]->*vector).data();
        double* U = (block[0]->*product).data();
        if (columns > C) {  // the vectors side by side
            gathered_.assign(z * columns, 0.0);
            for (Index j = 0; j < z; ++j) {
                for (Index b = 0; b < length(block); ++b) {
                    const double* from = (block[b]->*vector).data() + j * C;
                    double* to = &gathered_[j * columns + b * C];
                    for (Index k = 0; k < C; ++k) to[k] = from[k];
                }
            }
            product_.resize(G * columns);
            V = gathered_.data();
            U = product_.data();
        }
        rows.multiply<double>(V, columns, U);
        if (columns > C) {
            for (Index g = 0; g < G; ++g) {
                for (Index b = 0; b < length(block); ++b) {
                    const double* from = U + g * columns + b * C;
                    double* to = (block[b]->*product).data() + g * C;
                    for (Index k = 0; k < C; ++k) to[k] = from[k];
                }
            }
        }
        for (RidgeProblem* p : block) {
            if ((p->*extra).empty()) continue;
            const double *own = (p->*extra).data(), *last = (p->*vector).data() + z * C;
            for (Index g = 0; g < G; ++g) {
                for (Index k = 0; k < C; ++k) (p->*product)[g * C + k] += own[g] * last[k];
            }
        }
    }

    // Call body(block) for problems that fill the columns of a product.
    template <class Body>
    void for_blocks(std::span<RidgeProblem* const> problems, Body body) const {
        const Index size = std::max<Index>(1, PRODUCT_COLUMNS / model_.C);
        for (Index at = 0; at < length(problems); at += size) {
            body(problems.subspan(at, std::min(size, length(problems) - at)));
        }
    }

private:
    const TrainingRows& training_;
    const Rows& rows_;
    const LogitModel model_;
    const bool cholesky_;
    ConjugateGradients<float> single_;
    ConjugateGradients<double> double_;
    std::vector<double> trial_, trial_eta_, trial_prob_;
    std::vector<double> H_, L_, diagonal_, curvature_, blocks_;
    double factor_penalty_ = 0.0;  // of L
    LineVector<double> gathered_, product_;
    Scratch<double> weighted_;

    // Move problems along their paths: theta is about linear in the logarithm of the penalty.
    void extrapolate(std::span<RidgeProblem* const> problems) {
        for_blocks(problems, [&](std::span<RidgeProblem* const> block) {
            for (RidgeProblem* p : block) {
                if (p->older.empty()) return;
                const double last = std::log(p->newer_penalty / p->older_penalty);
                const double next = std::log(p->penalty / p->newer_penalty);
                const double ratio = last == 0.0 ? 0.0 : next / last;
                for (std::size_t j = 0; j < p->step.size(); ++j) {
                    p->step[j] = p->newer[j] + ratio * (p->newer[j] - p->older[j]);
                }
            }
            multiply(rows_, block, &RidgeProblem::step, &RidgeProblem::extra,
                     &RidgeProblem::eta_step);
            for (RidgeProblem* p : block) {
                trial_prob_.resize(p->prob.size());
                const double likelihood =
                    evaluate(model_, training_.weight, p->counts, p->eta_step, trial_prob_);
                const double before = p->likelihood + p->penalty * squares(model_, p->theta);
                if (!(likelihood + p->penalty * squares(model_, p->step) < before)) continue;
                double longest = 0.0;
                for (std::size_t i = 0; i < p->eta.size(); ++i) {
                    longest = std::max(longest, std::abs(p->eta[i] - p->eta_step[i]));
                }
                p->moved += longest;
                p->likelihood = likelihood;
                std::swap(p->theta, p->step);
                std::swap(p->eta, p->eta_step);
                std::swap(p->prob, trial_prob_);
            }
        });
    }

    bool suits_single_precision(const RidgeProblem& p) const {
        const double largest =
            std::max({p.extra_bound, training_.bound[0], training_.largest_bound});
        return rows_.sparse() && 2.0 * p.penalty >= SINGLE_RIDGE * largest &&
               std::max(largest, 1.0 / largest) < SINGLE_RANGE &&
               rows_.largest_value() < SINGLE_RANGE;
    }

    void set_gradients(std::span<RidgeProblem* const> block) {
        const Index G = rows_.count(), C = model_.C, K = model_.K, z = rows_.columns();
        const Index offset = K - C, columns = rows_.padded<double>(length(block) * C);
        gathered_.assign(G * columns, 0.0);  // residuals of the rows
        for (Index g = 0; g < G; ++g) {
            for (Index b = 0; b < length(block); ++b) {
                const double* prob = &block[b]->prob[g * C];
                const double* count = &block[b]->counts[g * K + offset];
                double* out = &gathered_[g * columns + b * C];
                for (Index k = 0; k < C; ++k) out[k] = training_.weight[g] * prob[k] - count[k];
            }
        }
        product_.resize(z * columns);
        rows_.multiply_transposed(gathered_.data(), columns, product_.data());
        for (Index b = 0; b < length(block); ++b) {
            RidgeProblem* const p = block[b];
            for (Index j = 0; j < z; ++j) {
                const double* from = &product_[j * columns + b * C];
                for (Index k = 0; k < C; ++k) p->gradient[j * C + k] = from[k];
            }
            if (!p->extra.empty()) {
                double* const last = p->gradient.data() + z * C;
                std::fill(last, last + C, 0.0);
                for (Index g = 0; g < G; ++g) {
                    const double* residual = &gathered_[g * columns + b * C];
                    for (Index k = 0; k < C; ++k) last[k] += p->extra[g] * residual[k];
                }
            }
            const Index size = static_cast<Index>(p->theta.size());
            for (Index at = model_.first * C; at < size; at += C) {
                double row = 0.0;
                for (Index k = at; k < at + C; ++k) row += p->theta[k];
                for (Index k = at; k < at + C; ++k) {
                    p->gradient[k] += 2.0 * p->penalty * (p->theta[k] - model_.share * row);
                }
            }
        }
    }

    // Go along the step as far as it descends; return whether the problem is solved.
    bool take_step(RidgeProblem& p, double goal, double gap) {
        double longest = 0.0, descent = 0.0;
        for (const double x : p.eta_step) longest = std::max(longest, std::abs(x));
        for (std::size_t j = 0; j < p.step.size(); ++j) descent += p.gradient[j] * p.step[j];
        const double slack = 1e-13 * (std::abs(p.value) + 1.0);  // rounding of the two values
        trial_.resize(p.theta.size());
        trial_eta_.resize(p.eta.size());
        trial_prob_.resize(p.prob.size());
        double size = 1.0;
        bool accepted = false;
        while (true) {
            for (std::size_t i = 0; i < p.eta.size(); ++i) {
                trial_eta_[i] = p.eta[i] - size * p.eta_step[i];
            }
            for (std::size_t j = 0; j < p.theta.size(); ++j) {
                trial_[j] = p.theta[j] - size * p.step[j];
            }
            const double likelihood =
                evaluate(model_, training_.weight, p.counts, trial_eta_, trial_prob_);
            const double value = likelihood + p.penalty * squares(model_, trial_);
            accepted = value <= p.value - DESCENT * size * descent + slack;
            if (accepted) {
                std::swap(p.theta, trial_);
                std::swap(p.eta, trial_eta_);
                std::swap(p.prob, trial_prob_);
                p.likelihood = likelihood;
                p.value = value;
            }
            if (accepted || size < SHORTEST_STEP) break;
            size *= 0.5;
        }
        const bool exact = accepted && size == 1.0 && p.damping == 0.0 &&
                           (cholesky_ || !p.unfinished);
        p.moved = exact ? p.moved + longest : INF;
        // The error after a step is about its length times the relative error of its Hessian.
        const double remains = longest * (cholesky_ ? p.moved : longest + p.accuracy);
        p.expected = exact ? remains : INF;
        if (size < SHORT_STEP) {
            p.damping = std::max(FIRST_DAMPING, 100.0 * p.damping);
        } else {
            p.damping = p.damping > FIRST_DAMPING ? 0.01 * p.damping : 0.0;
        }
        const bool stalled = descent <= 10.0 * slack && longest > 0.5 * p.before;
        p.before = longest;
        return (exact && (descent <= gap || remains <= goal)) || stalled;
    }

    // Solve for a step with a Cholesky factor of a Hessian that may be older than the point, and have
    // been formed with another penalty.
    void solve_exactly(RidgeProblem& p) {
        const Index d = static_cast<Index>(p.theta.size());
        const bool form = p.moved > (d > FEW_UNKNOWNS ? REUSE : 0.0);
        if (form) {
            fill_hessian(p);
            p.moved = 0.0;
        }
        if (form || factor_penalty_ != p.penalty) {
            while (!factorize(p) && p.damping < 1e100) {
                p.damping = std::max(FIRST_DAMPING, 100.0 * p.damping);
            }
            factor_penalty_ = p.penalty;
        }
        p.step = p.gradient;
        for (Index i = 0; i < d; ++i) {  // L L' step = gradient
            const double* row = &L_[i * d];
            p.step[i] = (p.step[i] - dot(row, p.step.data(), i)) / row[i];
        }
        for (Index i = d - 1; i >= 0; --i) {
            const double* row = &L_[i * d];
            const double x = p.step[i] /= row[i];
            for (Index j = 0; j < i; ++j) p.step[j] -= row[j] * x;
        }
    }

    // Fill the lower triangle of the Hessian of the likelihood, whose index is j * C + k.
    void fill_hessian(const RidgeProblem& p) {
        const Index G = rows_.count(), C = model_.C, q = rows_.columns(), d = q * C;
        const Index n_pairs = q * (q + 1) / 2, n_blocks = C * (C + 1) / 2;
        const bool paired = !training_.pairs.empty();
        H_.resize(d * d);
        curvature_.resize(paired ? G * n_blocks : G);
        blocks_.resize(paired ? n_blocks * n_pairs : q * q);
        if (paired) {
            for (Index g = 0; g < G; ++g) {
                const double *prob = &p.prob[g * C], weight = training_.weight[g];
                double* out = &curvature_[g * n_blocks];
                for (Index k = 0; k < C; ++k) {
                    for (Index a = 0; a <= k; ++a) {
                        *out++ = weight * prob[k] * ((k == a ? 1.0 : 0.0) - prob[a]);
                    }
                }
            }
            rows_.lapack().multiply({curvature_.data(), G, n_blocks}, true, training_.pairs.data(),
                                    n_pairs, blocks_.data());
        }
        const double* pair = blocks_.data();
        for (Index k = 0; k < C; ++k) {
            for (Index a = 0; a <= k; ++a) {
                double sign = 1.0;
                if (!paired) {  // curvatures of one sign: their roots weight the rows
                    for (Index g = 0; g < G; ++g) {
                        const double *prob = &p.prob[g * C];
                        curvature_[g] = training_.weight[g] * prob[k] * (k == a ? 1.0 - prob[k] : prob[a]);
                    }
                    sign = k == a ? 1.0 : -1.0;
                    rows_.gram(curvature_.data(), blocks_.data(), weighted_);
                }
                for (Index j = 0; j < q; ++j) {
                    const double* block = paired ? pair : &blocks_[j * q];
                    pair += paired ? j + 1 : 0;
                    double *first = &H_[(j * C + k) * d + a], *second = &H_[(j * C + a) * d + k];
                    for (Index i = 0; i <= j; ++i) first[i * C] = second[i * C] = sign * block[i];
                }
            }
        }
    }

    // Set L to the Cholesky factor of H + penalty + damping * bound; return false if there is none.
    //
    // The constant stays the first pivot: all later pivots are then at least the penalty, also where
    // the data are separable and every probability is almost 0 or 1.
    bool factorize(const RidgeProblem& p) {
        const Index q = rows_.columns(), C = model_.C, d = q * C;
        L_ = H_;
        for (Index j = model_.first; j < q; ++j) {
            for (Index k = 0; k < C; ++k) {
                double* row = &L_[(j * C + k) * d + j * C];
                row[k] += 2.0 * p.penalty;
                for (Index a = 0; a <= k; ++a) row[a] -= 2.0 * p.penalty * model_.share;
            }
        }
        diagonal_.resize(d);
        for (Index i = 0; i < d; ++i) {
            diagonal_[i] = L_[i * d + i];
            L_[i * d + i] += p.damping * training_.bound[i / C];
        }
        if (!rows_.lapack().factorize(L_.data(), d)) return false;
        for (Index i = 0; i < d; ++i) {
            const double pivot = L_[i * d + i] * L_[i * d + i];
            if (!(pivot > 1e-15 * diagonal_[i])) return false;
        }
        return true;
    }
};

}  // namespace fgfm
