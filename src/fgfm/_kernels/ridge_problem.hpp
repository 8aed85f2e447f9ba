// The penalised log-likelihood of one target on some rows.
//
// Row g has the weight N[g, k] of each class k, and C logits eta = Z theta: of all classes but the
// first, whose logit is 0 (`reference`), or of all K. The objective is
//
//     - sum_gk N[g, k] log p_k(eta_g) + penalty * sum_j (|theta_j|^2 - share * (sum_k theta_jk)^2)
//
// where j runs over the penalised rows of theta. share = 1 / K is scikit-learn's symmetric softmax
// with its redundant class solved for: adding a constant to the weights of all K classes changes no
// probability, and this is what is left of their squares at the best constant. share = 0 penalises
// the distance to the reference class, or the weights of all K classes.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "exponentials.hpp"
#include "ridge_rows.hpp"

namespace fgfm {

constexpr double CLIP = 1e-15;  // of a probability whose logarithm is taken to judge it
constexpr double INF = std::numeric_limits<double>::infinity();

// Distinct rows of a subset of all, and where they are.
struct Subset {
    std::shared_ptr<const Rows> rows;
    std::vector<double> weight;   // (G,)
    std::vector<Index> position;  // of each group of all rows among these, or -1
    std::vector<Index> groups;    // (G,)

    Index count() const { return rows->count(); }
};

// The rows that problems are fitted to.
struct TrainingRows : Subset {
    std::vector<double> bound;   // (q,) the largest curvature that any probabilities could give
    std::vector<double> pairs;   // (G, q (q + 1) / 2) products of columns, where they are few
    double largest_bound = 0.0;  // of a feature
    double mass = 0.0;           // sum of the weights
};

struct LogitModel {
    Index K, C;      // classes and logits
    bool reference;  // the logit of the first class is 0
    double share;
    Index first;  // first penalised row of theta
};

// A problem, its current point, and what the solvers keep from one step to the next.
struct RidgeProblem {
    Index target = 0;                  // row of the results
    std::vector<Index> classes;        // (K,) of the target, in increasing order
    std::vector<double> counts;        // (G, K)
    std::vector<double> test_counts;   // (test rows, K)
    std::vector<double> extra;         // (G,): one more column of Z, of this problem alone; or empty
    std::vector<double> test_extra, test_eta;  // the same, and logits, of the test rows
    double extra_bound = 0.0;          // its entry of `bound`

    double penalty = 0.0;
    std::vector<double> theta;      // (q, C)
    std::vector<double> eta, prob;  // (G, C)
    double likelihood = 0.0, value = 0.0;

    std::vector<double> gradient, step;  // (q, C)
    std::vector<double> eta_step;        // (G, C)
    double damping = 0.0;  // multiple of the bound that is added to the curvature
    double expected = INF;  // change of the logits that is expected of the next step
    double before = INF;    // and that in the last step
    double moved = INF;     // since the Hessian was formed (Cholesky)
    Index steps = 0;        // negative if they did not suffice

    // conjugate gradients
    double accuracy = 0.1;
    bool unfinished = false, scaled = false;

    std::vector<double> older, newer, best;  // theta of the last two penalties, and of the best
    double older_penalty = 0.0, newer_penalty = 0.0;
};

// Set the probabilities of the C logits of each row; return the negative log-likelihood.
inline double evaluate(const LogitModel& model, std::span<const double> weight,
                       const std::vector<double>& counts, const std::vector<double>& eta,
                       std::vector<double>& prob) {
    const Index G = length(weight), C = model.C, K = model.K;
    if (C == 1) {
        Lanes loss = {};
        const Lanes none = {}, one = none + 1.0;
        for (Index g = 0; g < G; g += LANES) {
            const Index n = std::min(LANES, G - g);
            Lanes u = none, w = none, first = none, second = none;
            if (n == LANES) {
                u = load(&eta[g]);
                w = load(&weight[g]);
            } else {
                u = load_some(&eta[g], n, 0.0);
                w = load_some(&weight[g], n, 0.0);
            }
            for (Index i = 0; i < n; ++i) {
                first[i] = counts[2 * (g + i)];
                second[i] = counts[2 * (g + i) + 1];
            }
            const auto positive = u >= none;
            const Lanes e = exp_negative(positive ? -u : u);
            const Lanes p = (positive ? one : e) / (1.0 + e);
            // log(1 + exp(u)) = max(u, 0) + log(1 + e): no cancellation where the row is certain
            loss += (positive ? first * u : -second * u) + w * log_one_plus(e);
            for (Index i = 0; i < n; ++i) prob[g + i] = p[i];
        }
        return add_lanes(loss);
    }
    double loss = 0.0;
    for (Index g = 0; g < G; ++g) {
        const double *logit = &eta[g * C], *count = &counts[g * K];
        double top = model.reference ? 0.0 : logit[0];
        for (Index k = 0; k < C; ++k) top = std::max(top, logit[k]);
        double linear = 0.0;
        if (model.reference) linear = *count++ * top;
        for (Index k = 0; k < C; ++k) {
            prob[g * C + k] = logit[k] - top;
            linear += count[k] * (top - logit[k]);
        }
        loss += linear;
    }
    for (Index i = 0; i < G * C; i += LANES) {
        if (const Index n = G * C - i; n >= LANES) {
            store(&prob[i], exp_negative(load(&prob[i])));
        } else {
            const Lanes e = exp_negative(load_some(&prob[i], n, 0.0));
            for (Index k = 0; k < n; ++k) prob[i + k] = e[k];
        }
    }
    for (Index g = 0; g < G; ++g) {
        double* p = &prob[g * C];
        double mass = 0.0;
        for (Index k = 0; k < C; ++k) mass += p[k];
        if (model.reference) {
            double top = 0.0;
            for (Index k = 0; k < C; ++k) top = std::max(top, eta[g * C + k]);
            mass += std::exp(-top);
        }
        const double inverse = 1.0 / mass;
        for (Index k = 0; k < C; ++k) p[k] *= inverse;
        loss += weight[g] * std::log(mass);
    }
    return loss;
}

// Return what the penalty multiplies.
inline double squares(const LogitModel& model, const std::vector<double>& theta) {
    double result = 0.0;
    const Index C = model.C, size = static_cast<Index>(theta.size());
    for (Index at = model.first * C; at < size; at += C) {
        double row = 0.0;
        for (Index k = at; k < at + C; ++k) {
            result += theta[k] * theta[k];
            row += theta[k];
        }
        result -= model.share * row * row;
    }
    return result;
}

// Set the probabilities of all K classes from the logits of one row.
inline void class_probabilities(const LogitModel& model, const double* logit, double* p) {
    const Index offset = model.reference ? 1 : 0;
    double top = model.reference ? 0.0 : logit[0], mass = 0.0;
    for (Index k = 0; k < model.C; ++k) top = std::max(top, logit[k]);
    if (model.reference) p[0] = std::exp(-top);
    for (Index k = 0; k < model.C; ++k) p[k + offset] = std::exp(logit[k] - top);
    for (Index k = 0; k < model.K; ++k) mass += p[k];
    for (Index k = 0; k < model.K; ++k) p[k] /= mass;
}

}  // namespace fgfm
