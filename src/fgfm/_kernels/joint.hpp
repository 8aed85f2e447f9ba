// Decisions from the probabilities of label sets: their matrix P, then GFM.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "cardinalities.hpp"

namespace fgfm {

// Decide every row of a block of probabilities over label sets, (n, L).
//
// Set j holds the labels indices[indptr[j]:indptr[j + 1]], and its cardinality is s[column[j]];
// the empty set has column -1.
inline void decide_joint_rows(std::span<const Index> indptr, std::span<const Index> indices,
                              std::span<const Index> column, std::span<const double> s,
                              std::span<const Index> names, Matrix<const double> proba,
                              const Objective& objective, Matrix<std::int8_t> labels,
                              double* expected, const Constraints* constraints) {
    const Index m = labels.cols, S = length(s);
    CardinalitiesWorkspace work(m, S);
    std::vector<double> C(m * S);
    for (Index row = 0; row < proba.rows; ++row) {
        std::fill(C.begin(), C.end(), 0.0);
        double d_0 = 0.0, present = 0.0;
        for (Index set = 0; set < length(column); ++set) {
            const double mass = proba[row][set];
            if (column[set] < 0) {
                d_0 += mass;
            } else if (mass != 0.0) {
                present += mass;
                for (Index j = indptr[set]; j < indptr[set + 1]; ++j) {
                    C[indices[j] * S + column[set]] += mass;
                }
            }
        }
        expected[row] =
            decide_cardinality_row(Matrix<const double>{C.data(), m, S}, s, d_0, present, true,
                                   0.0, objective, constraints, names, labels.row(row), work);
    }
}

}  // namespace fgfm
