// Ridge logistic regressions of many targets, each with its penalty chosen by cross-validation.
//
// For one penalty after the other, from the largest to the smallest, the objective of
// `ridge_problem.hpp` is minimised on the training rows of every fold, each time from the minimum
// before. The penalty with the least log-loss on the test rows, averaged over the folds, is used for
// the fit to all rows. Targets are independent: a small model is fitted by itself with Cholesky
// factors, larger ones in batches by conjugate gradients, because one product with the rows then
// serves many of them (`ridge_newton.hpp`).
//
// Small penalties take most of the time. A large model stops when its mean loss has fallen below
// that of the largest penalty, and then exceeds the least so far. It may rise before it falls: where
// many columns are irrelevant, and a relevant one is small.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "ridge_newton.hpp"

namespace fgfm {

constexpr double CLEARLY_WORSE = 0.05;  // part of the least loss by which a target stops
constexpr double LOSS_NOISE = 1e-6;     // inaccuracy of a mean loss
// Fits of large models in folds serve to choose a penalty, and to predict the held-out rows. They end
// when the logits are accurate to 1e-5, or the mean loss to 1e-9. With 1e-8 the losses on held-out
// rows were off by 1e-7 for penalties above 0.1, by 3e-6 at 0.01, and by 1e-4 at 1e-4 (enron, bibtex).
constexpr double FOLD_TOLERANCE = 3e-3;
constexpr double FOLD_GAP = 1e-9;
// With more folds than this each trains on all rows, those of others with weight 0: up to a tenth
// more work, and no copies of the rows.
constexpr Index COPIED_FOLDS = 10;

struct RidgeFold {
    std::span<const Index> train, test;  // rows
};

struct RidgeInputs {
    std::shared_ptr<const Rows> groups;  // (G, q) distinct rows
    std::span<const Index> group;        // (n,) of each row
    std::span<const double> weight;      // (n,) of each row
    std::vector<RidgeFold> folds;
    Matrix<const std::int32_t> code;     // (T, n) class of each row
    Index K;                             // classes of each target
    Matrix<const double> extra;          // (T, n) one more column for each target; or (0, 0)
};

struct RidgeOptions {
    std::vector<double> penalties;  // (L,)
    bool penalize_intercept, reference_class;
    double tol;
    Index max_iter;
    bool cholesky;  // small models: one target at a time
    Index batch;    // targets at a time
};

// For each target; the logits of theta are all classes but the first, except of large symmetric
// models, where they are all classes.
struct RidgeResults {
    Matrix<double> theta;     // (T, q C)
    std::span<Index> best;    // (T,) index of the penalty
    Matrix<double> losses;    // (T, folds L), preset to inf
    std::span<Index> steps;   // (T,) largest number in a fit
    std::span<Index> failed;  // (T,) fits that did not converge
    Matrix<double> held_out;  // (T, n K), preset to NaN; or (0, 0)
};

class RidgeFitter {
public:
    RidgeFitter(const RidgeInputs& inputs, const RidgeOptions& options, const RidgeResults& results)
        : in_(inputs), options_(options), results_(results), order_(options.penalties.size()),
          last_fold_(inputs.weight.size(), -1) {
        std::iota(order_.begin(), order_.end(), 0);
        std::stable_sort(order_.begin(), order_.end(), [&](Index a, Index b) {
            return options.penalties[a] > options.penalties[b];
        });
        // If all rows are equal, the probabilities are the class frequencies: the intercept is then
        // not penalised, even under the paper's penalty.
        first_ = in_.groups->count() == 1 || !options.penalize_intercept ? 1 : 0;
        const Index n = length(in_.weight), n_folds = length(std::span(in_.folds));
        std::vector<Index> every(n);
        std::iota(every.begin(), every.end(), 0);
        all_ = training_rows(every, true);
        folds_.reserve(n_folds);
        for (Index f = 0; f < n_folds; ++f) {
            const auto& [train, test] = in_.folds[f];
            folds_.push_back({training_rows(train, n_folds > COPIED_FOLDS), some_rows(test, false)});
            for (const Index i : test) last_fold_[i] = f;
        }
    }

    void fit() {
        for (Index t = 0; t < in_.code.rows; t += options_.batch) {
            fit_batch(t, std::min(options_.batch, in_.code.rows - t));
        }
    }

private:
    struct FoldRows {
        TrainingRows train;
        Subset test;
    };
    // Problems with the same number of classes in the training rows of a fold.
    struct Paths {
        Index fold;
        LogitModel model;
        std::unique_ptr<Newton> newton;
        std::vector<std::unique_ptr<RidgeProblem>> problems;
        std::vector<RidgeProblem*> active;
    };

    const RidgeInputs& in_;
    const RidgeOptions& options_;
    const RidgeResults& results_;
    std::vector<Index> order_;      // of the penalties, from the largest to the smallest
    std::vector<Index> last_fold_;  // (n,) that holds a row out
    Index first_;
    TrainingRows all_;
    std::vector<FoldRows> folds_;

    Subset some_rows(std::span<const Index> rows, bool keep_all) const {
        const Index G = in_.groups->count();
        std::vector<double> weight(G, 0.0);
        Subset subset;
        for (const Index i : rows) weight[in_.group[i]] += in_.weight[i];
        subset.position.assign(G, -1);
        for (Index g = 0; g < G; ++g) {
            if (!keep_all && weight[g] == 0.0) continue;
            subset.position[g] = static_cast<Index>(subset.groups.size());
            subset.groups.push_back(g);
            subset.weight.push_back(weight[g]);
        }
        const bool all = static_cast<Index>(subset.groups.size()) == G;
        subset.rows = all ? in_.groups : std::make_shared<const Rows>(*in_.groups, subset.groups);
        return subset;
    }

    TrainingRows training_rows(std::span<const Index> rows, bool keep_all) const {
        TrainingRows training{some_rows(rows, keep_all), {}, {}};
        prepare(training, options_.cholesky);
        return training;
    }

    LogitModel model(Index K) const {
        const bool symmetric = K > 2 && !options_.reference_class;
        if (symmetric && !options_.cholesky) return {K, K, false, 0.0, first_};
        return {K, K - 1, true, symmetric ? 1.0 / static_cast<double>(K) : 0.0, first_};
    }

    // Return the weight of each class in each row of a subset, (rows, K).
    std::vector<double> class_counts(const Subset& subset, std::span<const Index> rows, Index target,
                                     const std::vector<Index>& classes) const {
        const Index K = static_cast<Index>(classes.size());
        std::vector<Index> column(in_.K, -1);
        for (Index k = 0; k < K; ++k) column[classes[k]] = k;
        std::vector<double> counts(subset.groups.size() * K, 0.0);
        const std::int32_t* code = in_.code[target];
        for (const Index i : rows) {
            const Index k = column[code[i]];
            if (k >= 0) counts[subset.position[in_.group[i]] * K + k] += in_.weight[i];
        }
        return counts;
    }

    std::vector<double> extra_column(const Subset& subset, Index target) const {
        std::vector<double> extra;
        if (in_.extra.rows == 0) return extra;
        for (const Index g : subset.groups) extra.push_back(in_.extra[target][g]);
        return extra;
    }

    // Return a problem whose theta is 0, with intercepts that give the class frequencies if they are
    // not penalised.
    std::unique_ptr<RidgeProblem> problem(Index target, const LogitModel& model,
                                          std::vector<Index> classes, const TrainingRows& train,
                                          std::span<const Index> rows) const {
        auto p = std::make_unique<RidgeProblem>();
        p->target = target;
        p->counts = class_counts(train, rows, target, classes);
        p->extra = extra_column(train, target);
        const Index K = model.K, C = model.C, G = static_cast<Index>(train.groups.size());
        for (Index g = 0; g < static_cast<Index>(p->extra.size()); ++g) {
            p->extra_bound += 0.25 * train.weight[g] * p->extra[g] * p->extra[g];
        }
        if (!p->extra.empty()) p->extra_bound += 1e-300;
        p->theta.assign((train.rows->columns() + !p->extra.empty()) * C, 0.0);
        if (first_ == 1) {
            std::vector<double> level(K, 0.0);
            for (Index g = 0; g < G; ++g) {
                for (Index k = 0; k < K; ++k) level[k] += p->counts[g * K + k];
            }
            double mean = 0.0;
            for (double& x : level) mean += (x = std::log(x)) / static_cast<double>(K);
            const double zero = model.reference ? level[0] : mean;
            for (Index k = 0; k < C; ++k) p->theta[k] = level[K - C + k] - zero;
        }
        p->classes = std::move(classes);
        return p;
    }

    // Return the problems of a fold, and set the test losses (B,) that no fit can change: test rows
    // of a class without training rows have probability 0; those of the only class probability 1.
    std::vector<Paths> fold_paths(Index f, Index first, std::span<double> fixed) {
        const auto& [train, test] = in_.folds[f];
        std::map<Index, Paths> by_size;
        for (Index b = 0; b < length(fixed); ++b) {
            const std::int32_t* code = in_.code[first + b];
            std::vector<bool> trained(in_.K, false);
            for (const Index i : train) trained[code[i]] = true;
            std::vector<Index> classes;
            for (Index k = 0; k < in_.K; ++k) {
                if (trained[k]) classes.push_back(k);
            }
            const Index K = static_cast<Index>(classes.size());
            fixed[b] = 0.0;
            for (const Index i : test) {
                if (!trained[code[i]]) {
                    fixed[b] -= in_.weight[i] * std::log(CLIP);
                } else if (K == 1) {
                    fixed[b] -= in_.weight[i] * std::log(1.0 - CLIP);
                }
            }
            hold_out(f, first + b, classes);
            if (K == 1) continue;
            Paths& paths = by_size[K];
            if (!paths.newton) {
                paths.fold = f;
                paths.model = model(K);
                paths.newton = std::make_unique<Newton>(folds_[f].train, paths.model,
                                                        options_.cholesky);
            }
            auto p = problem(first + b, paths.model, classes, folds_[f].train, train);
            p->test_counts = class_counts(folds_[f].test, test, first + b, classes);
            p->test_extra = extra_column(folds_[f].test, first + b);
            paths.active.push_back(p.get());
            paths.problems.push_back(std::move(p));
        }
        std::vector<Paths> result;
        for (auto& [size, paths] : by_size) {
            paths.newton->start(paths.active);
            result.push_back(std::move(paths));
        }
        return result;
    }

    void record(const RidgeProblem& p) {
        results_.steps[p.target] = std::max(results_.steps[p.target], std::abs(p.steps));
        results_.failed[p.target] += p.steps < 0;
    }

    void fit_batch(Index first, Index size) {
        const Index n_folds = length(std::span(folds_)), L = length(std::span(options_.penalties));
        std::vector<Paths> all_paths;
        std::vector<std::vector<double>> fixed(n_folds, std::vector<double>(size));
        for (Index f = 0; f < n_folds; ++f) {
            for (Paths& paths : fold_paths(f, first, fixed[f])) all_paths.push_back(std::move(paths));
        }
        std::vector<double> mass(n_folds, 0.0), least(size, INF);
        for (Index f = 0; f < n_folds; ++f) {
            for (const Index i : in_.folds[f].test) mass[f] += in_.weight[i];
        }
        std::vector<bool> stopped(size, false);
        StoppingRule rule{options_.tol, 0.0, options_.max_iter};
        if (!options_.cholesky) rule = {std::max(rule.tol, FOLD_TOLERANCE), FOLD_GAP, rule.max_iter};
        for (const Index at : order_) {
            std::vector<std::vector<double>> sums = fixed;
            for (Paths& paths : all_paths) {
                std::erase_if(paths.active,
                              [&](RidgeProblem* p) { return stopped[p->target - first]; });
                if (paths.active.empty()) continue;
                paths.newton->follow(paths.active, options_.penalties[at], rule);
                set_test_logits(paths, paths.active, &RidgeProblem::theta);
                for (RidgeProblem* p : paths.active) {
                    record(*p);
                    sums[paths.fold][p->target - first] += test_loss(paths.model, *p);
                }
            }
            std::vector<bool> better(size, false);
            for (Index b = 0; b < size; ++b) {
                if (stopped[b]) continue;
                double mean = 0.0;
                for (Index f = 0; f < n_folds; ++f) {
                    const double loss = sums[f][b] / mass[f];
                    results_.losses[first + b][f * L + at] = loss;
                    mean += loss;
                }
                mean /= static_cast<double>(n_folds);
                Index& best = results_.best[first + b];
                // of equal ones the first in the grid
                better[b] = mean < least[b] || (mean == least[b] && at < best);
                if (better[b]) {
                    best = at;
                    least[b] = mean;
                }
                stopped[b] = !options_.cholesky && best != order_[0] &&
                             mean > (1.0 + CLEARLY_WORSE) * least[b] + LOSS_NOISE;
            }
            for (Paths& paths : all_paths) {
                for (RidgeProblem* p : paths.active) {
                    if (better[p->target - first]) p->best = p->theta;
                }
            }
        }
        for (Paths& paths : all_paths) hold_out(paths);
        refit(first, size, all_paths);
    }

    // Set the logits of the test rows.
    void set_test_logits(Paths& paths, std::span<RidgeProblem* const> problems,
                         std::vector<double> RidgeProblem::*theta) {
        const Rows& rows = *folds_[paths.fold].test.rows;
        paths.newton->for_blocks(problems, [&](std::span<RidgeProblem* const> block) {
            paths.newton->multiply(rows, block, theta, &RidgeProblem::test_extra,
                                   &RidgeProblem::test_eta);
        });
    }

    // Return the negative log-likelihood of the test rows, with all probabilities clipped.
    static double test_loss(const LogitModel& model, const RidgeProblem& p) {
        const double log_zero = std::log(CLIP), log_one = std::log(1.0 - CLIP);
        const auto clipped = [=](double x) { return std::clamp(x, log_zero, log_one); };
        const Index n = static_cast<Index>(p.test_counts.size()) / model.K;
        double loss = 0.0;
        if (model.C == 1) {
            for (Index g = 0; g < n; g += LANES) {
                const Index some = std::min(LANES, n - g);
                const Lanes u = some == LANES ? load(&p.test_eta[g]) : load_some(&p.test_eta[g], some, 0.0);
                const Lanes size = u < Lanes{} ? -u : u, log_mass = log_one_plus(exp_negative(-size));
                for (Index i = 0; i < some; ++i) {
                    const double* count = &p.test_counts[2 * (g + i)];
                    loss -= count[0] * clipped(-std::max(u[i], 0.0) - log_mass[i]);
                    loss -= count[1] * clipped(std::min(u[i], 0.0) - log_mass[i]);
                }
            }
            return loss;
        }
        std::vector<double> proba(model.K);
        for (Index g = 0; g < n; ++g) {
            class_probabilities(model, &p.test_eta[g * model.C], proba.data());
            for (Index k = 0; k < model.K; ++k) {
                const double count = p.test_counts[g * model.K + k];
                if (count > 0.0) loss -= count * clipped(std::log(proba[k]));
            }
        }
        return loss;
    }

    // Set the probabilities of held-out rows that no fit can change: 0, or 1 of the only class.
    void hold_out(Index f, Index target, const std::vector<Index>& classes) {
        if (results_.held_out.rows == 0) return;
        for (const Index i : in_.folds[f].test) {
            double* out = results_.held_out[target] + i * in_.K;
            if (last_fold_[i] != f) continue;
            std::fill(out, out + in_.K, 0.0);
            if (classes.size() == 1) out[classes[0]] = 1.0;
        }
    }

    // Set the probabilities of held-out rows with the chosen penalties.
    void hold_out(Paths& paths) {
        if (results_.held_out.rows == 0) return;
        const Subset& test = folds_[paths.fold].test;
        const Index K = paths.model.K, n = static_cast<Index>(test.groups.size());
        std::vector<double> proba(n * K);
        for (const auto& problem : paths.problems) {
            RidgeProblem* const p = problem.get();
            set_test_logits(paths, std::span(&p, 1), &RidgeProblem::best);
            for (Index g = 0; g < n; ++g) {
                class_probabilities(paths.model, &p->test_eta[g * paths.model.C], &proba[g * K]);
            }
            for (const Index i : in_.folds[paths.fold].test) {
                if (last_fold_[i] != paths.fold) continue;
                double* out = results_.held_out[p->target] + i * in_.K;
                const double* from = &proba[test.position[in_.group[i]] * K];
                for (Index k = 0; k < K; ++k) out[p->classes[k]] = from[k];
            }
        }
    }

    // Fit all rows with the chosen penalties, from the mean of the folds that have all classes.
    void refit(Index first, Index size, const std::vector<Paths>& all_paths) {
        std::vector<Index> classes(in_.K), every(in_.weight.size());
        std::iota(classes.begin(), classes.end(), 0);
        std::iota(every.begin(), every.end(), 0);
        const LogitModel own = model(in_.K);
        Newton newton(all_, own, options_.cholesky);
        std::vector<std::unique_ptr<RidgeProblem>> problems;
        for (Index b = 0; b < size; ++b) {
            problems.push_back(problem(first + b, own, classes, all_, every));
        }
        std::vector<double> complete(size, 0.0);  // number of these folds
        for (const Paths& paths : all_paths) {
            if (paths.model.K != in_.K) continue;
            for (const auto& p : paths.problems) {
                std::vector<double>& theta = problems[p->target - first]->theta;
                if (complete[p->target - first]++ == 0.0) std::fill(theta.begin(), theta.end(), 0.0);
                for (std::size_t j = 0; j < theta.size(); ++j) theta[j] += p->best[j];
            }
        }
        std::vector<RidgeProblem*> every_problem;
        for (Index b = 0; b < size; ++b) {
            RidgeProblem* p = problems[b].get();
            if (complete[b] > 0.0) {
                for (double& x : p->theta) x /= complete[b];
            }
            every_problem.push_back(p);
        }
        newton.start(every_problem);
        for (RidgeProblem* p : every_problem) p->penalty = options_.penalties[results_.best[p->target]];
        newton.minimise(every_problem, {options_.tol, 0.0, options_.max_iter});
        for (RidgeProblem* p : every_problem) {
            record(*p);
            std::copy(p->theta.begin(), p->theta.end(), results_.theta[p->target]);
        }
    }
};

}  // namespace fgfm
