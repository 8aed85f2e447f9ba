// Ties, status codes, and the types that all decision kernels share.
#pragma once

#include "arrays.hpp"

namespace fgfm {

constexpr double TIE = 1e-12;  // values that differ by less than this, relatively, are equal

// Probabilities near the smallest numbers lose digits in every product. Where all of a row are below
// TINY_ROW they are multiplied by UPSCALE: at most one label is true, up to a probability of TINY_ROW,
// so that all values of label sets grow by this factor, and those given y != 0 stay.
constexpr double TINY_ROW = 0x1p-900, UPSCALE = 0x1p600;

// Status codes, returned in place of an expected F-measure, which is never negative.
constexpr double NOT_PROBABILITY = -1.0;  // a value is NaN or outside [0, 1]
constexpr double TOO_MUCH_MASS = -2.0;    // the probabilities of a row sum to more than 1

// What is maximised: E[F_beta(y, h)], with the value of an empty decision for an empty set.
struct Objective {
    double beta2;
    double zero_division;
    bool nonempty;

    Objective upscaled() const { return {beta2, zero_division * UPSCALE, nonempty}; }
    double downscaled(double value) const { return nonempty ? value : value / UPSCALE; }
};

// Result of a block: the first refused row (-1: none), its code, and the factor at fault.
struct Status {
    Index row = -1;
    double code = 0.0;
    Index factor = 0;
};

}  // namespace fgfm
