r"""Lower confidence bounds, on a mean and on the F-measure of a flat y, and rows to answer.

References
----------
Angelopoulos, A. N., Bates, S., Candes, E. J., Jordan, M. I. and Lei, L. (2025). Learn then test:
Calibrating predictive algorithms to achieve risk control. Annals of Applied Statistics 19(2).

Bates, S., Angelopoulos, A., Lei, L., Malik, J. and Jordan, M. (2021). Distribution-free,
risk-controlling prediction sets. Journal of the ACM 68(6).

Voracek, V. and Orabona, F. (2025). STaR-Bets: Sequential target-recalculating bets for tighter
confidence intervals. NeurIPS 2025.

Waudby-Smith, I. and Ramdas, A. (2024). Estimating means of bounded random variables by betting.
Journal of the Royal Statistical Society B 86(1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from fgfm._kernels import bet
from fgfm._utils.names import check_same_index
from fgfm._utils.validation import (
    check_beta,
    check_fraction,
    check_same_rows,
    first_index,
    place,
    real_array,
    tolerance,
)
from fgfm.metrics._read import read_labels

Floats = npt.NDArray[np.float64]

# Bets aim at 1, and an average of 1 / (1 + 2 / sqrt(n)) over the orders suffices: the higher this
# is, the more orders have to win, and the lower, the less there is to bet with.
OVERSHOOT = 2.0
ROUNDING = 1e-9  # taken from the wealth at the start: more than n bets lose or gain by rounding
EXACTNESS = 1e-9  # of the bound
# Orders of n values: BLOCK / n, within these limits. The order matters less the more values there
# are.
MOST_ORDERS, FEWEST_ORDERS, BLOCK = 128, 16, 2**17


def mean_lower_bound(values: Any, confidence: float = 0.95) -> float:
    r"""Compute a lower confidence bound on the mean of values in [0, 1].

    Given independent draws of a variable X in [0, 1], such as the F-measures of validation rows,
    find L with

    .. math:: P(E[X] \ge L) \ge \text{confidence}.

    This holds for any distribution of X and any number of draws; nothing is asymptotic.

    Parameters
    ----------
    values : array-like of shape (n,)
        The draws; for the mean of F, ``f_measure(Y, H, per_row=True)``.
    confidence : float in (0, 1), default=0.95
        Least probability, over draws of `values`, that the bound holds.

    Returns
    -------
    float
        The bound, not greater than the mean of `values`.

    See Also
    --------
    abstention_threshold : Rows to answer so that their mean F-measure reaches a target.

    Notes
    -----
    What the bound rests on:

    - The rows are drawn independently from the distribution of the new rows: no shift between
      validation and use, and no selection of rows by their labels.
    - Neither the model nor anything after it (calibration, thresholds, the choice of a model)
      was fitted to these rows.
    - It bounds the expectation, which is the mean over many new rows. The F-measure of a single
      row can be anything, and the mean of few rows varies around the expectation.

    The bound is made of bets (Waudby-Smith and Ramdas, 2024). Against the hypothesis that the
    mean is at most `m`, a bet on each value in turn stakes a part of a wealth; if the hypothesis
    is true, the wealth does not grow in expectation. The stakes depend on the wealth and the
    number of values to come (Voracek and Orabona, 2025), such that the width of the bound tends to
    that of the normal approximation. This is done in many orders, which depend on n alone, and `m`
    is rejected if the average wealth has grown by a factor of 1 / (1 - `confidence`): by Markov's
    inequality, this has a probability of at most 1 - `confidence` if `m` is the mean. L is the
    least `m` that is not rejected. In simulations it is sharper on average than the bound of
    Hoeffding and Bentkus (Bates et al., 2021) for all distributions that were tried and all n, and
    it never relies on a choice between bounds after seeing the data.

    The result is reproducible. Another order of the rows gives a slightly different bound; it is
    exact for rows in the order in which they were drawn, or any order that does not depend on
    their values, and holds up to an approximation for sorted rows ("A guarantee" in the design
    notes).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> f = rng.choice([0.0, 0.5, 0.8, 1.0], size=300, p=[0.1, 0.2, 0.3, 0.4])
    >>> round(float(f.mean()), 3), round(mean_lower_bound(f), 3)
    (0.761, 0.725)
    >>> round(mean_lower_bound(f, confidence=0.999), 3)
    0.696
    >>> mean_lower_bound([0.5, 1.2])
    Traceback (most recent call last):
        ...
    ValueError: values[1] is 1.2: values must lie in [0, 1]
    """
    x = _unit_values(values, "values")
    alpha = 1.0 - check_fraction(confidence, "confidence")
    if len(x) == 0:
        raise ValueError("values is empty: a bound needs at least one value")
    columns = _columns(x)

    def exceeds(mean: float) -> bool:
        return _exceeds(columns, columns, mean, alpha)

    return _last(exceeds, float(x.mean()))


def _last(exceeds: Callable[[float], bool], high: float) -> float:
    """Return the least value below `high` that is not exceeded; those below it are."""
    # Wealth decreases in what is bet against ("A guarantee" in docs/design_guarantee.md), so that
    # bisection finds the bound.
    low = 0.0
    while high - low > EXACTNESS:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return low


def f_lower_bound(y: Any, labels: Any, confidence: float = 0.95, *, beta: float = 1.0) -> float:
    r"""Compute a lower confidence bound on the F-measure of a flat y, for any number of rows.

    Given independent draws of a true and a decided label, 0 or 1, find L with

    .. math:: P(F \ge L) \ge \text{confidence}, \qquad
              F = \frac{(1 + \beta^2) E[y h]}{\beta^2 E[y] + E[h]},

    the F-measure of very many rows. Nothing is asymptotic.

    Parameters
    ----------
    y, labels : array-like of shape (n,)
        True and decided labels, 0 or 1.
    confidence : float in (0, 1), default=0.95
        Least probability, over draws of the rows, that the bound holds.
    beta : float, default=1.0
        Weight of recall relative to precision.

    Returns
    -------
    float
        The bound; 0 if no row is positive and decided so.

    See Also
    --------
    mean_lower_bound : The bound of the mean F-measure of rows.
    f_interval : Intervals for all averages, which hold for many rows.

    Notes
    -----
    It rests on what `mean_lower_bound` rests on: rows that are drawn independently like the new
    ones, and to which nothing was fitted.

    "F is at most t" is :math:`E[(1 + \beta^2) y h - t (\beta^2 y + h)] \le 0`. Rows with y = h = 0
    are 0 there and say nothing. For beta 1, :math:`q = F / (2 - F)` is the share of true positives
    among the others, and the bound is that of Clopper and Pearson. Otherwise the others are three
    values that are bet on, as in `mean_lower_bound`.

    Examples
    --------
    >>> from fgfm.metrics import f_measure
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(500) < 0.2
    >>> labels = y ^ (rng.random(500) < 0.05)
    >>> round(f_measure(y, labels, average="binary"), 3), round(f_lower_bound(y, labels), 3)
    (0.878, 0.83)
    """
    alpha = 1.0 - check_fraction(confidence, "confidence")
    beta = check_beta(beta)
    rows = _Outcomes.read(y, labels)
    if not rows.hits:
        return 0.0
    if beta == 1.0:
        q = float(betaincinv(rows.hits, len(rows.code) - rows.hits + 1.0, alpha))
        return 2.0 * q / (1.0 + q)
    columns = _columns(rows.code).astype(np.int64)
    reference = _unit_outcomes(beta, 0.5)[0][columns]

    def exceeds(t: float) -> bool:
        values, mean = _unit_outcomes(beta, t)
        return _exceeds(values[columns], reference, mean, alpha)

    return _last(exceeds, rows.f(beta))


class _Outcomes(NamedTuple):
    """The rows of a flat y that are positive or decided so."""

    code: Floats  # 1 for a false positive, 2 for a false negative, 3 for a hit
    used: npt.NDArray[np.bool_]  # (n,) which rows they are

    @classmethod
    def read(cls, y: Any, labels: Any) -> _Outcomes:
        (true, decided), _ = read_labels({"y": y, "labels": labels}, "binary")
        code = 2.0 * true[:, 0] + decided[:, 0]
        return cls(code[code > 0.0], code > 0.0)

    @property
    def hits(self) -> int:
        return int((self.code == 3.0).sum())

    def f(self, beta: float) -> float:
        sizes = np.array([0.0, 1.0, beta**2, 1.0 + beta**2])  # of D
        return float((1.0 + beta**2) * self.hits / sizes[self.code.astype(np.int64)].sum())


def _unit_outcomes(beta: float, t: float) -> tuple[Floats, float]:
    """Return N - t D of each outcome, as values in [0, 1], and the value that 0 becomes."""
    beta2 = beta**2
    least = t * max(beta2, 1.0)
    width = (1.0 + beta2) * (1.0 - t) + least
    values = np.array([0.0, -t, -t * beta2, (1.0 + beta2) * (1.0 - t)]) + least
    return np.clip(values / width, 0.0, 1.0), least / width


class AbstentionThreshold(NamedTuple):
    """Which rows to answer so that their mean F-measure reaches a target.

    Attributes
    ----------
    threshold : float
        Answer a row if its expected F-measure is at least this; infinity if no rows qualify.
    answered : float
        Fraction of the given rows that are answered.
    mean_f : float
        Mean F-measure of the answered rows among the given ones; NaN if there are none.
    """

    threshold: float
    answered: float
    mean_f: float


class AbstentionRange(NamedTuple):
    """Which rows of a flat y to answer so that their F-measure reaches a target.

    Attributes
    ----------
    low, high : float
        Abstain from a row if the probability of the positive class is between them; from all rows
        if they are infinite.
    answered : float
        Fraction of the given rows that are answered.
    f : float
        F-measure of the answered rows among the given ones; NaN if none of them is positive or
        decided so.
    """

    low: float
    high: float
    answered: float
    f: float


def abstention_threshold(
    expected_f: Any, f: Any, target: float, confidence: float = 0.95
) -> AbstentionThreshold:
    r"""Find which rows to answer so that their mean F-measure reaches a target.

    From rows with their expected F-measure S and the F-measure F that they obtained, find a
    threshold s, as low as the rows support, with

    .. math:: P(E[F \mid S \ge s] \ge \text{target}) \ge \text{confidence}.

    New rows with an expected F-measure of at least s are answered; the model abstains from the
    others.

    Parameters
    ----------
    expected_f : array-like of shape (n,)
        A score of each row, such as ``expected_f`` of a `Decision`; finite. It orders the rows,
        and needs neither be calibrated nor lie in [0, 1].
    f : array-like of shape (n,)
        The F-measure that each row obtained, ``f_measure(Y, H, per_row=True)``.
    target : float in (0, 1)
        Mean F-measure that answered rows must reach.
    confidence : float in (0, 1), default=0.95
        Least probability, over draws of the rows, that they do.

    Returns
    -------
    AbstentionThreshold
        The threshold, and the fraction and the mean F-measure of the given rows above it.

    See Also
    --------
    mean_lower_bound : A bound on the mean of all rows.

    Notes
    -----
    What the guarantee rests on:

    - The rows are drawn independently from the distribution of the new rows, and nothing was
      fitted to them, as in `mean_lower_bound`.
    - It is about the mean over new answered rows, not about each of them.
    - Scores have a continuous distribution. Rows with equal scores are answered together.

    The k rows with the largest scores are tested, for a fixed sequence of numbers k that
    depends on n, `target` and `confidence` only. Each test is that of `mean_lower_bound` at
    `target`; the first that fails ends the sequence, and the threshold is the least score of the
    rows of the test before it. So no correction for the number of tests is needed (fixed sequence
    testing; Angelopoulos et al., 2025). That k is fixed instead of the threshold makes no
    difference: "A guarantee" in the design notes has the proof.

    Perfect answers need :math:`k \ge \log(1 - \text{confidence}) / \log(\text{target})` rows to
    show that the target is reached; the first test has up to eight times as many rows.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> expected_f = rng.uniform(0.4, 1.0, size=500)
    >>> f = (rng.random(500) < expected_f).astype(float)
    >>> threshold, answered, mean_f = abstention_threshold(expected_f, f, target=0.75)
    >>> round(threshold, 3), round(answered, 3), round(mean_f, 3)
    (0.52, 0.81, 0.788)
    >>> abstention_threshold(expected_f, f, target=0.97)
    AbstentionThreshold(threshold=inf, answered=0.0, mean_f=nan)
    """
    score = _finite(expected_f, "expected_f")
    x = _unit_values(f, "f")
    n = check_same_rows([len(score), len(x)], ["expected_f", "f"])
    check_same_index(expected_f=expected_f, f=f)
    target = check_fraction(target, "target")
    alpha = 1.0 - check_fraction(confidence, "confidence")
    if n == 0:
        raise ValueError("expected_f has no rows: a test needs at least one")
    ranked = np.sort(score)[::-1]
    threshold = math.inf
    for k in _test_sizes(n, target, alpha):
        least = float(ranked[k - 1])
        if least == threshold:
            continue
        columns = _columns(x[score >= least])
        if not _exceeds(columns, columns, target, alpha):
            break
        threshold = least
    answered = x[score >= threshold]
    mean = float(answered.mean()) if len(answered) else math.nan
    return AbstentionThreshold(threshold, len(answered) / n, mean)


def f_abstention_threshold(
    score: Any,
    y: Any,
    labels: Any,
    target: float,
    confidence: float = 0.95,
    *,
    beta: float = 1.0,
) -> AbstentionThreshold:
    r"""Find a score above which the F-measure of a flat y reaches a target.

    As `abstention_threshold`, for the F-measure of all answered rows together instead of the mean
    of those of rows. Rows that are not answered count neither as true nor as decided.

    Parameters
    ----------
    score : array-like of shape (n,)
        How sure a decision is: rows with larger ones are answered first.
    y, labels : array-like of shape (n,)
        True and decided labels, 0 or 1.
    target : float in (0, 1)
        F-measure that answered rows must reach.
    confidence : float in (0, 1), default=0.95
        Least probability that they do.
    beta : float, default=1.0
        Weight of recall relative to precision.

    Returns
    -------
    AbstentionThreshold
        The threshold, and the fraction and the F-measure of the given rows above it.

    See Also
    --------
    abstention_threshold : The same for the mean F-measure of rows.

    Notes
    -----
    The tests are those of `abstention_threshold` for the values of `f_lower_bound`, whose mean is
    at most a number if the F-measure is at most `target`. Only rows count that are positive or
    decided so.

    Examples
    --------
    >>> from fgfm.metrics import f_measure
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(2000) ** 2
    >>> y, labels = rng.random(2000) < p, p > 0.4
    >>> round(f_measure(y, labels, average="binary"), 3)
    0.712
    >>> threshold, answered, f = f_abstention_threshold(abs(p - 0.4), y, labels, target=0.85)
    >>> round(threshold, 3), round(answered, 3), round(f, 3)
    (0.29, 0.506, 0.881)
    """
    score, beta = _finite(score, "score"), check_beta(beta)
    rows = _Outcomes.read(y, labels)
    check_same_rows([len(score), len(rows.used)], ["score", "y"])
    values, mean = _unit_outcomes(beta, check_fraction(target, "target"))
    check_fraction(confidence, "confidence")
    if not len(rows.code):
        return AbstentionThreshold(math.inf, 0.0, math.nan)
    x = values[rows.code.astype(np.int64)]
    threshold = abstention_threshold(score[rows.used], x, mean, confidence).threshold
    answered = rows._replace(code=rows.code[score[rows.used] >= threshold])
    f = answered.f(beta) if len(answered.code) else math.nan
    return AbstentionThreshold(threshold, float((score >= threshold).mean()), f)


def _test_sizes(n: int, target: float, alpha: float) -> list[int]:
    """Return the numbers of rows to test, from few to all n, in steps of about 3 %."""
    fewest = math.ceil(math.log(alpha) / math.log(target))
    k = max(fewest, min(8 * fewest, n // 4))
    sizes = []
    while k < n:
        sizes.append(k)
        k += max(1, k // 32)
    return [*sizes, n]


def _unit_values(values: Any, name: str) -> Floats:
    """Validate values in [0, 1]; clip rounding errors."""
    x = real_array(values, name, ("row",))
    slack = tolerance(x)
    wrong = ~((x >= -slack) & (x <= 1.0 + slack))  # True for NaN
    if wrong.any():
        index = first_index(wrong)
        raise ValueError(f"{place(name, index)} is {x[index]!s}: values must lie in [0, 1]")
    return np.clip(x.astype(np.float64), 0.0, 1.0)


def _finite(values: Any, name: str) -> Floats:
    """Validate finite values."""
    x = real_array(values, name, ("row",)).astype(np.float64)
    if not np.isfinite(x).all():
        index = first_index(~np.isfinite(x))
        raise ValueError(f"{place(name, index)} is {x[index]!s}: it must be finite")
    return x


def _columns(x: Floats) -> Floats:
    """Return the values in K pseudo-random orders, one per column, that depend on n alone."""
    n = len(x)
    half = max(FEWEST_ORDERS, min(MOST_ORDERS, BLOCK // n)) // 2
    rows = np.random.default_rng(n).permuted(np.tile(x, (half, 1)), axis=1)  # (K / 2, n)
    return np.concatenate([rows, rows[:, ::-1]]).T.copy()  # and their reverses


def _exceeds(columns: Floats, reference: Floats, mean: float, alpha: float) -> bool:
    """Test, at level alpha, whether the expectation of values is greater than `mean`.

    The stakes depend on the variance of `reference`, which are the values, or, if these depend on
    the hypothesis, others that do not.
    """
    n, K = columns.shape
    part = 1.0 / (1.0 + OVERSHOOT / math.sqrt(n))
    wealth = np.full(K, alpha * part * (1.0 - ROUNDING))
    bet(columns, reference, mean, wealth)
    return bool(wealth.mean() >= part)
