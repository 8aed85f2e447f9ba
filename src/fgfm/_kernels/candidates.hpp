// Labels that can be in an optimal set, and a first guess of its size, from marginals alone.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "ordering.hpp"

namespace fgfm {

struct Candidates {
    Index size;    // number of labels that can be in an optimal set
    Index guess;   // a likely size of an optimal set
    double floor;  // the best lower bound on the optimum
};

// Arrays that `rank_candidates` sorts in.
struct RankWorkspace {
    Scratch<double> value, spare;
    Scratch<Index> spare_place, count;

    void resize(Index m) {
        value.resize(m + 1);
        spare.resize(m + 1);
        spare_place.resize(m + 1);
        count.resize(m + 2);
    }
};

// Order the labels that can be in an optimal set by marginal, and guess its size.
//
// A set h of size k has the value (1 + beta^2) M / (beta^2 W / M + k) at least, with M and W the
// sums of p_i and of E[y_i s] over it (Jensen). The guess is the size where this is highest for the
// labels in order. Conversely, leaving label i out of an optimal set gains
// Delta_jk / (beta^2 s_max + k - 1) or more for each other label j, so that no label with
// p_i (beta^2 s_max + 1) < V is in it. `order` has room for m + 1 labels.
inline Candidates rank_candidates(std::span<const double> p, std::span<const double> weighted,
                                  double s_max, double beta2, double floor, Index* order,
                                  RankWorkspace& work) {
    const Index m = length(p);
    const Index top = std::max_element(p.begin(), p.end()) - p.begin();
    if (p[top] == 0.0) return {0, 0, floor};
    floor = std::max(floor, (1.0 + beta2) * p[top] / (beta2 * weighted[top] / p[top] + 1.0));
    double least = floor / (beta2 * s_max + 1.0) * (1.0 - 1e-9);
    work.resize(m);
    double* value = work.value.data();
    Index size = 0;
    for (Index i = 0; i < m; ++i) {
        value[size] = p[i];
        order[size] = i;
        size += p[i] >= least;
    }
    const std::span<double> sorted(value, size);
    sort_descending(sorted, {order, sorted.size()}, work.spare.data(), work.spare_place.data(),
                    work.count.data());
    double mass = 0.0, load = 0.0, highest = 0.0;
    Index guess = 1;
    for (Index j = 0; j < size; ++j) {
        mass += value[j];
        load += weighted[order[j]];
        const double bound = (1.0 + beta2) * mass * (mass / (beta2 * load + (j + 1) * mass));
        if (bound > highest) {
            highest = bound;
            guess = j + 1;
        }
    }
    floor = std::max(floor, highest);
    least = floor / (beta2 * s_max + 1.0) * (1.0 - 1e-9);
    while (size > guess && value[size - 1] < least) --size;
    return {size, guess, floor};
}

}  // namespace fgfm
