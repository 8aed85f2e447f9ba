"""Tabulate the best approximations of 1/x by sums of exponentials.

The table is what ``fgfm.decision`` builds its quadrature rules from (docs/design.md, "Separating s
from k").

The mathematical problem.  For a number of terms R and an error level eps, find exponents
t_r > 0 and weights omega_r > 0, r = 1, ..., R, and the largest range [1, rho_R] such that

    e(x) = x * sum_r omega_r exp(-t_r x) - 1      satisfies      |e(x)| <= eps on [1, rho_R].

The solution is unique and is characterised by equioscillation: there are 2R + 1 points
1 = x_0 < x_1 < ... < x_2R = rho_R with e(x_j) = -(-1)^j eps.  (The error is negative at both
ends because e tends to -1 as x tends to 0 and as x tends to infinity.)  See

    D. Braess and W. Hackbusch, Approximation of 1/x by exponential sums in [1, infinity),
    IMA J. Numer. Anal. 25 (2005), 685-697.

The method.  The unknowns are the 2R parameters (log t_r, log omega_r) and log rho_R; the
points are handled as y_j = log x_j.  For R = 1, 2, 3, ... in turn:

1.  Predict parameters and points.  For the first few R the range is short, the points are
    nearly Chebyshev points and the parameters are nearly those of the Gauss-Laguerre rule,
    since 1/x = int_0^inf exp(-t x) dt.  Later predictions extrapolate the previous solutions
    in R.
2.  With the points held fixed, solve e(x_j) = -(-1)^j E for the parameters and the level E
    by a damped Newton iteration (the inner problem of the Remez exchange).
3.  Move the interior points to the extrema of e.  Stop if |e(x_j)| = eps at all points.
4.  Differentiate log E with respect to log rho, make one Newton step towards log E = log eps,
    stretch the points to the new range, and go back to 2.

The arithmetic is in extended precision, because the error of size eps is the small
difference of large quantities and the Jacobians are ill-conditioned accordingly.

The table.  A compressed NumPy archive of four arrays, one row for each R:

    ratio     rho_R, rounded down by a millionth of rho_R - 1; increasing
    count     R
    exponent  the t_r, ascending for each R, all rows concatenated
    weight    the omega_r in the same order

The script needs numpy and gmpy2.
"""

import argparse
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gmpy2
import numpy as np

# Arrays of extended-precision numbers are object arrays of gmpy2.mpfr.
Array = np.ndarray[Any, np.dtype[Any]]

DEFAULT_OUTPUT = (
    Path(__file__).resolve().parent.parent / "src" / "fgfm" / "decision" / "_quadrature_table.npz"
)
PRECISION_BITS = 256
LAGUERRE_START_COUNT = 4  # up to this many terms start from a Gauss-Laguerre rule
LEVEL_TOLERANCE = 1e-7  # relative error of the level at all alternation points
POINT_TOLERANCE = 1e-9  # last move of a point, relative to the gap to its neighbours
MAX_NEWTON_STEPS = 60
MIN_DAMPING = 1e-4
MAX_ROUNDS = 40  # of the exchange, and of the search for extrema
VERIFICATION_POINTS = 40_000  # of the grid on which the error of a row is printed

exponential = np.frompyfunc(gmpy2.exp, 1, 1)
logarithm = np.frompyfunc(gmpy2.log, 1, 1)
extended = np.frompyfunc(gmpy2.mpfr, 1, 1)


class Solution(NamedTuple):
    """Parameters and alternation points (as logarithms) of one exponential sum."""

    log_exponent: Array
    log_weight: Array
    log_point: Array


class ErrorCurve(NamedTuple):
    """The error e at some points, its derivatives in y = log x and in the parameters."""

    value: Array
    slope: Array
    curvature: Array
    parameter_jacobian: Array


def error_curve(parameters: Array, log_point: Array) -> ErrorCurve:
    """Evaluate e and its derivatives; parameters are (log t, log omega) in one array."""
    count = len(parameters) // 2
    point = exponential(log_point)
    scaled = np.multiply.outer(point, exponential(parameters[:count]))
    term = np.multiply.outer(point, exponential(parameters[count:])) * exponential(-scaled)
    scaled_term = scaled * term
    total = term.sum(axis=1)
    slope = total - scaled_term.sum(axis=1)
    curvature = slope + (scaled_term * (scaled - 2)).sum(axis=1)
    return ErrorCurve(total - 1, slope, curvature, np.hstack([-scaled_term, term]))


def alternating_signs(size: int) -> Array:
    """Return the signs of e at the alternation points: -, +, -, ..., -."""
    return np.array([-1 if j % 2 == 0 else 1 for j in range(size)], dtype=object)


def factorise(matrix: Array) -> tuple[Array, list[int]]:
    """Return LU factors (in one array) and row order, by elimination with row pivoting."""
    factors = matrix.copy()
    size = len(factors)
    order = list(range(size))
    for k in range(size):
        pivot = k + int(np.argmax(np.abs(factors[k:, k])))
        if pivot != k:
            factors[[k, pivot]] = factors[[pivot, k]]
            order[k], order[pivot] = order[pivot], order[k]
        factors[k + 1 :, k] /= factors[k, k]
        factors[k + 1 :, k + 1 :] -= np.multiply.outer(factors[k + 1 :, k], factors[k, k + 1 :])
    return factors, order


def solve_factorised(factors: Array, order: list[int], right_side: Array) -> Array:
    """Solve a linear system, given the results of `factorise` for its matrix."""
    result = right_side[order]
    for k in range(1, len(result)):
        result[k] -= factors[k, :k] @ result[:k]
    for k in range(len(result) - 1, -1, -1):
        if k + 1 < len(result):
            result[k] -= factors[k, k + 1 :] @ result[k + 1 :]
        result[k] /= factors[k, k]
    return result


def damped_newton(
    system: Callable[[Array], tuple[Array, Array]],
    start: Array,
    converged: Callable[[Array, Array], bool],
) -> tuple[Array, int]:
    """Solve system(unknowns) = 0; return the unknowns and the number of steps.

    `system` returns residual and Jacobian.  A damped step is accepted when the simplified
    Newton correction that follows it is shorter than the correction before (the affine
    invariant monotonicity test), which does not depend on the conditioning of the system.
    """
    unknowns = start
    residual, jacobian = system(unknowns)
    damping = 1.0
    for step in range(MAX_NEWTON_STEPS):
        if converged(unknowns, residual):
            return unknowns, step
        factors, order = factorise(jacobian)
        correction = solve_factorised(factors, order, -residual)
        length = np.abs(correction).max()
        damping = min(1.0, 4 * damping, float(1 / length))
        while True:
            if damping < MIN_DAMPING:
                raise ArithmeticError("the damped Newton iteration stalled")
            trial = unknowns + gmpy2.mpfr(damping) * correction
            residual, jacobian = system(trial)
            following = np.abs(solve_factorised(factors, order, -residual)).max()
            if following <= (1 - damping / 4) * length:
                break
            damping /= 2
        unknowns = trial
    raise ArithmeticError("the damped Newton iteration did not converge")


def solve_at_fixed_points(parameters: Array, log_point: Array) -> tuple[Array, int]:
    """Return parameters for which e alternates with one size at the 2R + 1 given points."""
    signs = alternating_signs(len(log_point))

    def system(unknowns: Array) -> tuple[Array, Array]:
        curve = error_curve(unknowns[:-1], log_point)
        jacobian = np.hstack([curve.parameter_jacobian, -signs[:, None]])
        return curve.value - signs * unknowns[-1], jacobian

    def converged(unknowns: Array, residual: Array) -> bool:
        return bool(np.abs(residual).max() < LEVEL_TOLERANCE / 10 * unknowns[-1])

    start = np.append(parameters, gmpy2.mpfr(0))
    unknowns, steps = damped_newton(system, start, converged)
    return unknowns[:-1], steps


def locate_extrema(parameters: Array, log_point: Array) -> tuple[Array, ErrorCurve]:
    """Move the interior points to the extrema of e; return points and error curve."""
    signs = alternating_signs(len(log_point))
    for _ in range(MAX_ROUNDS):
        curve = error_curve(parameters, log_point)
        if (curve.value * signs <= 0).any():
            raise ArithmeticError("the error does not alternate at the given points")
        gap = np.diff(log_point)
        limit = np.minimum(gap[:-1], gap[1:]) / 4
        rise = (signs * curve.slope)[1:-1]
        bend = (signs * curve.curvature)[1:-1]
        move = np.where(bend < 0, -rise / np.where(bend < 0, bend, -1), np.sign(rise) * limit)
        move = np.minimum(np.maximum(move, -limit), limit)
        if (np.abs(move) < POINT_TOLERANCE * limit).all():
            return log_point, curve
        log_point = log_point.copy()
        log_point[1:-1] += move
    raise ArithmeticError("the extrema of the error were not found")


def range_sensitivity(curve: ErrorCurve) -> tuple[Array, Any]:
    """Return the derivatives of the parameters and of log E in log rho, at a levelled curve.

    Only the last point moves to first order, because e is stationary at the others.
    """
    size = len(curve.value)
    signs = alternating_signs(size)
    jacobian = np.hstack([curve.parameter_jacobian, -signs[:, None]])
    right_side = np.full(size, gmpy2.mpfr(0), dtype=object)
    right_side[-1] = -curve.slope[-1]
    derivative = solve_factorised(*factorise(jacobian), right_side)
    return derivative[:-1], derivative[-1] / np.abs(curve.value).mean()


def predict_from_laguerre(count: int, level: float) -> Solution:
    """Return Gauss-Laguerre parameters and Chebyshev points, for a short range.

    On a range of length l in y = log x the error of the rule is about
    2 (l / 4)^(2R) (R!)^2 / (2R)!, which is set equal to the level.
    """
    length = 4 * (level * math.comb(2 * count, count) / 2) ** (1 / (2 * count))
    centre = math.exp(length / 2)
    node, weight = np.polynomial.laguerre.laggauss(count)
    angle = np.pi * np.arange(2 * count + 1) / (2 * count)
    return Solution(
        extended(np.log(node / centre)),
        extended(np.log(weight / centre) + node),
        extended(length * np.sin(angle / 2) ** 2),
    )


def extrapolate_sequence(history: list[Array]) -> Array:
    """Predict the array that follows arrays whose lengths grow by a constant.

    Entries are extrapolated twice, with indices counted from the left and from the right
    end; the two predictions are blended across the middle.
    """
    order = len(history)
    shortest = len(history[0])
    size = 2 * len(history[-1]) - len(history[-2])
    coefficient = [(-1) ** (order - 1 - k) * math.comb(order, k) for k in range(order)]
    from_left = sum(c * a[:shortest] for c, a in zip(coefficient, history, strict=True))
    from_right = sum(c * a[-shortest:] for c, a in zip(coefficient, history, strict=True))
    left = np.append(from_left, [gmpy2.mpfr(0)] * (size - shortest))
    right = np.append([gmpy2.mpfr(0)] * (size - shortest), from_right)
    ramp = (np.arange(size) - (size - shortest) + 1) / (2 * shortest - size + 1)
    blend = extended(np.clip(ramp, 0.0, 1.0))
    return (1 - blend) * left + blend * right


def predict(count: int, solutions: list[Solution], level: float) -> Solution:
    """Return starting values for `count` terms from the solutions for fewer terms."""
    if count <= LAGUERRE_START_COUNT:
        return predict_from_laguerre(count, level)
    recent = solutions[-max(2, min(4, count // 4)) :]
    return Solution(
        *(extrapolate_sequence([getattr(s, name) for s in recent]) for name in Solution._fields)
    )


def best_approximation(
    count: int, solutions: list[Solution], level: float
) -> tuple[Solution, int, int]:
    """Return the best approximation with `count` terms, and the rounds and Newton steps taken."""
    start = predict(count, solutions, level)
    parameters = np.append(start.log_exponent, start.log_weight)
    log_point = start.log_point
    newton_steps = 0
    for rounds in range(1, MAX_ROUNDS + 1):
        parameters, steps = solve_at_fixed_points(parameters, log_point)
        newton_steps += steps
        log_point, curve = locate_extrema(parameters, log_point)
        mismatch = logarithm(np.abs(curve.value) / gmpy2.mpfr(level))
        if np.abs(mismatch).max() < LEVEL_TOLERANCE:
            solution = Solution(parameters[:count], parameters[count:], log_point)
            return solution, rounds, newton_steps
        parameter_rate, log_size_rate = range_sensitivity(curve)
        elasticity = log_size_rate * log_point[-1]
        factor = gmpy2.exp(-mismatch.mean() / elasticity)
        parameters = parameters + parameter_rate * log_point[-1] * (factor - 1)
        log_point = log_point * factor
    raise ArithmeticError("the exchange iteration did not converge")


def double_precision_row(solution: Solution) -> tuple[float, Array, Array]:
    """Return ratio (rounded down), exponents (ascending) and weights of one table row."""
    exponent = exponential(solution.log_exponent).astype(np.float64)
    weight = exponential(solution.log_weight).astype(np.float64)
    order = np.argsort(exponent)
    excess = float(gmpy2.expm1(solution.log_point[-1]))
    return 1.0 + excess * (1.0 - 1e-6), exponent[order], weight[order]


def double_precision_error(ratio: float, exponent: Array, weight: Array) -> float:
    """Return the largest |e| on a dense logarithmic grid of [1, ratio], in double precision."""
    x = np.minimum(np.exp(np.linspace(0.0, math.log(ratio), VERIFICATION_POINTS)), ratio)
    total = np.exp(-np.multiply.outer(x, exponent)) @ weight
    return float(np.abs(x * total - 1.0).max())


def write_table(path: Path, rows: list[tuple[float, Array, Array]]) -> None:
    """Write the archive to a temporary file, then rename it into place."""
    temporary = path.with_name(path.name + ".partial")
    with temporary.open("wb") as stream:
        np.savez_compressed(
            stream,
            ratio=np.array([row[0] for row in rows], dtype=np.float64),
            count=np.array([len(row[1]) for row in rows], dtype=np.int64),
            exponent=np.concatenate([row[1] for row in rows]),
            weight=np.concatenate([row[2] for row in rows]),
        )
    os.replace(temporary, path)


def main() -> None:
    """Compute rows until the range is long enough; rewrite the table after each row."""
    parser = argparse.ArgumentParser(description="Tabulate exponential sums for 1/x.")
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="archive to write")
    parser.add_argument("--max-ratio", type=float, default=2.1e6, help="range to be reached")
    parser.add_argument("--error", type=float, default=5e-14, help="relative error level")
    arguments = parser.parse_args()

    gmpy2.get_context().precision = PRECISION_BITS
    begin = time.perf_counter()
    solutions: list[Solution] = []
    rows: list[tuple[float, Array, Array]] = []
    while not rows or rows[-1][0] < arguments.max_ratio:
        count = len(rows) + 1
        solution, rounds, newton_steps = best_approximation(count, solutions, arguments.error)
        solutions.append(solution)
        rows.append(double_precision_row(solution))
        write_table(arguments.output, rows)
        print(
            f"R = {count:3d}  rho = {rows[-1][0]:.10g}  "
            f"error in double precision = {double_precision_error(*rows[-1]):.3e}  "
            f"rounds = {rounds}  Newton steps = {newton_steps}  "
            f"elapsed = {time.perf_counter() - begin:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
