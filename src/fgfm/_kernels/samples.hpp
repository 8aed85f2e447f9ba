// Decisions from draws of label sets: the matrix P of their frequencies, then GFM.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "cardinalities.hpp"

namespace fgfm {

// Decide every row of a block of draws, (n, T, m) of 0 and 1.
inline void decide_sample_rows(const std::uint8_t* samples, Index n, Index T, Index m,
                               std::span<const Index> names, const Objective& objective,
                               Matrix<std::int8_t> labels, double* expected,
                               const Constraints* constraints) {
    CardinalitiesWorkspace work(m, m);
    std::vector<Index> cardinality(T), column(m + 1);
    std::vector<double> s(m), C;
    for (Index row = 0; row < n; ++row) {
        std::fill(column.begin(), column.end(), Index{0});
        for (Index t = 0; t < T; ++t) {
            const std::uint8_t* draw = samples + (row * T + t) * m;
            Index count = 0;
            for (Index i = 0; i < m; ++i) count += draw[i];
            require(count <= m, "samples must be 0 or 1");
            cardinality[t] = count;
            ++column[count];
        }
        const double d_0 = static_cast<double>(column[0]) / T;
        const double present = static_cast<double>(T - column[0]) / T;
        // The cardinalities that were drawn, and the column that each has in C.
        Index S = 0;
        for (Index c = 1; c <= m; ++c) {
            if (column[c]) {
                s[S] = static_cast<double>(c);
                column[c] = S++;
            }
        }
        C.assign(m * S, 0.0);
        for (Index t = 0; t < T; ++t) {
            if (cardinality[t] == 0) continue;
            const std::uint8_t* draw = samples + (row * T + t) * m;
            const Index q = column[cardinality[t]];
            for (Index i = 0; i < m; ++i) C[i * S + q] += draw[i];
        }
        for (double& x : C) x /= static_cast<double>(T);
        expected[row] = decide_cardinality_row(
            Matrix<const double>{C.data(), m, S}, std::span<const double>(s.data(), S), d_0,
            present, true, 0.0, objective, constraints, names, labels.row(row), work);
    }
}

}  // namespace fgfm
