r"""Confidence intervals for F-measures and for differences of F-measures.

Every average is a mean of ratios :math:`F_j = N_j / D_j` with weights :math:`\omega_j`, where
:math:`N_j = (1 + \beta^2) \sum_i y_{ij} h_{ij}` and :math:`D_j = \sum_i (\beta^2 y_{ij} + h_{ij})`
are sums over units i, which are rows or groups of them. Without one unit only those ratios change
that it takes part in, so that all n leave-one-out values are found from the nonzero entries.

References
----------
Agresti, A. and Min, Y. (2005). Simple improved confidence intervals for comparing matched
proportions. Statistics in Medicine 24(5).

Efron, B. and Stein, C. (1981). The jackknife estimate of variance. Annals of Statistics 9(3).

Korn, E. L. and Graubard, B. I. (1998). Confidence intervals for proportions with small expected
number of positive counts estimated from survey data. Survey Methodology 24(2).
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import betaincinv, ndtri, stdtrit

from fgfm._utils.validation import (
    check_beta,
    check_fraction,
    check_same_rows,
    check_zero_division,
    row_weights,
)
from fgfm.metrics._f_measure import f_of
from fgfm.metrics._read import read_labels

__all__ = ["FDifference", "FInterval", "f_difference", "f_interval"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_ROUNDING = 1e-12  # of differences of sums
_FEW = 5  # units: with fewer, an interval is not reliable
_RARE_SHARE = 0.1  # of an average over labels that have fewer units


class FInterval(NamedTuple):
    """An F-measure and its confidence interval.

    Attributes
    ----------
    f : float or ndarray of shape (m,)
        The F-measure of the given rows, that of `f_measure`.
    low, high : float or ndarray of shape (m,)
        Ends of the interval.
    """

    f: Any
    low: Any
    high: Any


class FDifference(NamedTuple):
    """A difference of two F-measures on the same rows, and its confidence interval.

    Attributes
    ----------
    difference : float or ndarray of shape (m,)
        The F-measure of the first decisions minus that of the others.
    low, high : float or ndarray of shape (m,)
        Ends of the interval.
    """

    difference: Any
    low: Any
    high: Any

    @property
    def verdict(self) -> Any:
        """Return "better" or "worse" where the interval excludes 0, otherwise "level"."""
        words = np.where(self.low > 0.0, "better", np.where(self.high < 0.0, "worse", "level"))
        return words if words.ndim else str(words)


def f_interval(
    y: Any,
    labels: Any,
    *,
    average: str | None = "samples",
    beta: float = 1.0,
    zero_division: float = 1.0,
    confidence: float = 0.95,
    groups: Any = None,
    sample_weight: Any = None,
) -> FInterval:
    r"""Compute a confidence interval for an F-measure.

    The rows are a sample; the interval is about the F-measure of many more rows like them, with
    the same decisions. It covers the chance in these rows, not that of training another model.

    Parameters
    ----------
    y : array-like, sparse matrix or data frame of shape (n, m) or (n,), or list of lists
        True labels, in any form that `f_measure` takes.
    labels : array-like, sparse matrix or data frame of the same shape, or list of lists
        Decided labels.
    average : {"samples", "macro", "weighted", "micro", "binary"} or None, default="samples"
        The average, as in `f_measure`. None has an interval for each label.
    beta : float, default=1.0
        Weight of recall relative to precision.
    zero_division : float in [0, 1] or NaN, default=1.0
        Value of deciding for no label where there is none; NaN leaves it out of means.
    confidence : float in (0, 1), default=0.95
        Probability that the interval covers, in the limit of many rows.
    groups : array-like of shape (n,), optional
        The group of each row, such as its document or patient: rows of a group depend on each
        other. Then groups are drawn, instead of rows.
    sample_weight : array-like of shape (n,), optional
        How much each row counts. A row with weight 2 is still one row that was observed.

    Returns
    -------
    FInterval
        ``f``, ``low`` and ``high``, numbers, or arrays (m,) if `average` is None.

    Warns
    -----
    UserWarning
        If fewer than five rows (or groups) decide the result, or if labels of fewer than five make
        up a tenth of an average over labels: the interval may then be too short.

    See Also
    --------
    f_difference : Whether one rule is better than another, on the same rows.
    mean_lower_bound : A bound that holds for any number of rows.

    Notes
    -----
    The standard error is that of the jackknife: each row, or group, is left out in turn, by a
    formula that costs no more than the F-measure itself. The interval is that of Jeffreys for the
    proportion of rows that hit among those that hit or err (for a flat y and beta 1,
    :math:`q = F / (2 - F)`), with the number of rows at which a proportion has this standard
    error, corrected by Student's t. If F is 0 or 1 the standard error is 0; the number of rows
    that count then takes its place, so that the interval is not a point.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random((200, 5)) < 0.3
    >>> labels = y ^ (rng.random((200, 5)) < 0.1)
    >>> f, low, high = f_interval(y, labels, average="micro")
    >>> round(f, 3), round(low, 3), round(high, 3)
    (0.803, 0.766, 0.836)
    >>> f_interval([0, 1, 1], [0, 1, 0.4])
    Traceback (most recent call last):
        ...
    ValueError: labels[2] is 0.4: labels must be 0 or 1
    """
    alpha = 1.0 - check_fraction(confidence, "confidence")
    measure = _measure(beta, zero_division)
    (true, decided), averaged = read_labels(
        {"y": y, "labels": labels}, average, groups=groups, sample_weight=sample_weight
    )
    units = _units(true.shape[0], groups, sample_weight)
    found = _leave_out(true, decided, averaged, units, *measure)
    found.warn(units)
    low, high = _jeffreys(found, units.n, alpha)
    return FInterval(*_numbers(average, found.f, low, high))


def f_difference(
    y: Any,
    labels: Any,
    others: Any,
    *,
    average: str | None = "samples",
    beta: float = 1.0,
    zero_division: float = 1.0,
    confidence: float = 0.95,
    groups: Any = None,
    sample_weight: Any = None,
) -> FDifference:
    """Compute a confidence interval for the difference of two F-measures on the same rows.

    Two rules err on the same difficult rows, so that their difference is known better than either
    F-measure: intervals of `f_interval` may overlap where this one excludes 0.

    Parameters
    ----------
    y : array-like, sparse matrix or data frame of shape (n, m) or (n,), or list of lists
        True labels, in any form that `f_measure` takes.
    labels, others : array-like, sparse matrix or data frame of the same shape, or list of lists
        Labels decided by two rules.
    average : {"samples", "macro", "weighted", "micro", "binary"} or None, default="samples"
        The average, as in `f_measure`. None has an interval for each label.
    beta : float, default=1.0
        Weight of recall relative to precision.
    zero_division : float in [0, 1] or NaN, default=1.0
        Value of deciding for no label where there is none; NaN leaves it out of means.
    confidence : float in (0, 1), default=0.95
        Probability that the interval covers, in the limit of many rows.
    groups : array-like of shape (n,), optional
        The group of each row, as in `f_interval`.
    sample_weight : array-like of shape (n,), optional
        How much each row counts.

    Returns
    -------
    FDifference
        ``difference``, the F-measure of `labels` minus that of `others`, ``low`` and ``high``;
        its ``verdict`` is "better", "level" or "worse".

    See Also
    --------
    f_interval : The interval of one F-measure.

    Notes
    -----
    The standard error of the difference is that of the jackknife, as in `f_interval`; the interval
    is symmetric. Where few rows differ, what one more of them would change is added, so that rules
    that agree on all rows are "level", with an interval that is the shorter the more rows there
    are.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random((300, 4)) < 0.4
    >>> labels = y ^ (rng.random((300, 4)) < 0.15)
    >>> others = labels ^ (rng.random((300, 4)) < 0.05)
    >>> found = f_difference(y, labels, others)
    >>> round(found.difference, 3), round(found.low, 3), round(found.high, 3), found.verdict
    (0.041, 0.021, 0.062, 'better')
    """
    alpha = 1.0 - check_fraction(confidence, "confidence")
    measure = _measure(beta, zero_division)
    (true, *decided), averaged = read_labels(
        {"y": y, "labels": labels, "others": others},
        average,
        groups=groups,
        sample_weight=sample_weight,
    )
    units = _units(true.shape[0], groups, sample_weight)
    one, other = (_leave_out(true, h, averaged, units, *measure) for h in decided)
    one.warn(units)
    low, high = _symmetric(one, other, units.n, alpha)
    return FDifference(*_numbers(average, one.f - other.f, low, high))


def _measure(beta: Any, zero_division: Any) -> tuple[float, float]:
    """Return the checked parameters of the F-measure."""
    return check_beta(beta), check_zero_division(zero_division, allow_nan=True)


def _numbers(average: Any, *values: Floats) -> Any:
    """Return arrays (m,), or the only value of each."""
    return values if average is None else [float(value[0]) for value in values]


class _Units(NamedTuple):
    """What is drawn: rows, or groups of rows."""

    n: int  # units of positive weight
    of_row: Integers  # (rows,) the unit of each row; -1 for those of weight 0
    weight: Floats | None  # (rows,)
    name: str


def _units(n: int, groups: Any, sample_weight: Any) -> _Units:
    """Validate the weights and groups of n rows."""
    if n == 0:
        raise ValueError("y has no rows: the mean needs at least one")
    weight = None if sample_weight is None else row_weights(sample_weight, n, "y")
    used = np.ones(n, dtype=np.bool_) if weight is None else weight > 0.0
    of_row = np.full(n, -1, dtype=np.int64)
    if groups is None:
        of_row[used] = np.arange(int(used.sum()))
    else:
        of_row[used] = _group_numbers(groups, n, used)
    return _Units(int(of_row.max()) + 1, of_row, weight, "rows" if groups is None else "groups")


def _group_numbers(groups: Any, n: int, used: Any) -> Any:
    """Return the number of the group of each row in use."""
    values = np.asarray(groups)
    if values.ndim != 1:
        raise ValueError(f"groups has shape {values.shape}: it must have one group for each row")
    check_same_rows([n, len(values)], ["y", "groups"])
    for i, value in enumerate(values.tolist()):
        if value is None or value != value:
            raise ValueError(f"groups[{i}] is {value!r}: every row must have a group")
    number: dict[Any, int] = {}
    return [number.setdefault(value, len(number)) for value in values[used].tolist()]


class _LeftOut(NamedTuple):
    """F-measures, and how each unit that is left out changes them."""

    f: Floats  # (k,) one, or that of each label
    change: Any  # CSR (units, k)
    effective: Floats  # (k,) the number of units that count
    odds: Floats  # (k,) how much a unit that hits counts, relative to one that errs
    rare: float  # share of an average over labels that have few units

    def warn(self, units: _Units) -> None:
        """Warn if an average rests on few units."""
        if len(self.f) > 1:
            return  # one by one, labels that are rare have wide intervals
        problem = ""
        if self.effective[0] < _FEW:
            problem = f"only {self.effective[0]:.1f} {units.name} count for the F-measure"
        elif self.rare > _RARE_SHARE:
            problem = (
                f"labels that fewer than {_FEW} {units.name} have or get make up "
                f"{self.rare:.0%} of the average"
            )
        if problem:
            warnings.warn(f"{problem}: the interval may be too short", UserWarning, stacklevel=3)


def _leave_out(
    true: Any, decided: Any, average: Any, units: _Units, beta: float, zero_division: float
) -> _LeftOut:
    r"""Return an F-measure, and those without each unit.

    Of each (unit, label) that has :math:`y_{ij}` or :math:`h_{ij}` there are three sums: of
    :math:`y_{ij} h_{ij}`, of :math:`y_{ij}` and of :math:`h_{ij}`.
    """
    row, label, y, h = _entries(true, decided)
    unit, m = units.of_row[row], true.shape[1]
    used = unit >= 0
    if not used.all():
        row, label, y, h, unit = (a[used] for a in (row, label, y, h, unit))
    sums = np.array([y * h, y, h], dtype=np.float64)  # (3, e)
    if average == "samples":
        # The mean of the F-measures of rows is one ratio: their sum by the number of rows.
        sums = _by(row, sums, true.shape[0])
        f = f_of(sums, beta, zero_division)
        row = np.flatnonzero((units.of_row >= 0) & ~np.isnan(f))
        unit, f = units.of_row[row], f[row]
        sums, beta = np.array([f, np.zeros(len(f)), np.ones(len(f))]), 0.0
    if units.weight is not None:
        sums = sums * units.weight[row]
    if average in ("samples", "micro"):
        label, m = np.zeros(len(unit), dtype=np.int64), 1
    if m == 1:
        sums = _by(unit, sums, units.n)
        unit = np.flatnonzero(sums.any(axis=0))
        sums, label = sums[:, unit], np.zeros(len(unit), dtype=np.int64)
    elif units.name == "groups":
        key, at = np.unique(unit * m + label, return_inverse=True)
        unit, label = np.divmod(key, m)
        sums = _by(at, sums, len(key))
    return _jackknife(unit, label, sums, m, average, units.n, beta, zero_division)


def _jackknife(
    unit: Integers,
    label: Integers,
    sums: Floats,
    m: int,
    average: Any,
    n: int,
    beta: float,
    zero_division: float,
) -> _LeftOut:
    """Leave each of n units out of the ratios of m labels, and of their average."""
    total = _by(label, sums, m)  # (3, m)
    f = f_of(total, beta, zero_division)  # (m,)
    rest = total[:, label] - sums  # (3, e)
    rest[rest < _ROUNDING * total[:, label]] = 0.0
    without = f_of(rest, beta, zero_division)  # (e,)
    # The hits and errors of a unit as parts of the sums D of its labels: (e,)
    size = np.maximum(beta**2 * total[1] + total[2], np.finfo(float).tiny)[label]
    hit = (1.0 + beta**2) * sums[0] / size
    part = (beta**2 * sums[1] + sums[2]) / size
    if average is None:
        change = sparse.csr_array((np.nan_to_num(without - f[label]), (unit, label)), (n, m))
        return _LeftOut(f, change, *_sizes(hit, part - hit, label, m, 2.0), 0.0)
    weighted = average == "weighted" and total[1].any()
    weight = np.where(np.isnan(f), 0.0, total[1] if weighted else 1.0)  # (m,)
    weight_without = np.where(np.isnan(without), 0.0, rest[1] if weighted else 1.0)  # (e,)
    f, without = np.nan_to_num(f), np.nan_to_num(without)
    mass, sum_f = float(weight.sum()), float(weight @ f)
    if mass == 0.0:
        nothing = np.zeros(1)
        return _LeftOut(nothing * np.nan, sparse.csr_array((n, 1)), nothing, nothing, 0.0)
    mean = sum_f / mass
    # Without each unit: (n,)
    sum_without = sum_f + np.bincount(unit, weight_without * without - (weight * f)[label], n)
    mass_without = mass + np.bincount(unit, weight_without - weight[label], n)
    change = np.zeros(n)
    some = mass_without > _ROUNDING * mass
    change[some] = sum_without[some] / mass_without[some] - mean
    hits, parts = _by(unit, weight[label] * np.array([hit, part]), n)  # (n,)
    few = np.bincount(label, minlength=m) < _FEW
    rare = float(weight[few].sum()) / mass if m > 1 else 0.0
    sizes = _sizes(hits, parts - hits, np.zeros(n, np.int64), 1, 2.0 if beta else 1.0)
    return _LeftOut(np.array([mean]), sparse.csr_array(change[:, None]), *sizes, rare)


def _sizes(
    hits: Floats, errors: Floats, which: Integers, k: int, most: float
) -> tuple[Floats, Floats]:
    r"""Return the number of units that count, and how much a hit counts relative to an error.

    The first is :math:`(\sum_i a_i)^2 / \sum_i a_i^2`, a the sum of hits and errors. The second is
    the ratio of the means of hits and of errors, weighted by themselves: for binary F1 a true
    positive counts 2 in D, any error 1. Where there are no hits it is `most`, where there are no
    errors 1, which make the interval longer.
    """
    errors = np.where(errors > _ROUNDING * hits, errors, 0.0)
    sums = [np.bincount(which, a, k) for a in (hits + errors, hits, errors)]
    squares = [np.bincount(which, a**2, k) for a in (hits + errors, hits, errors)]
    ones = np.ones(k)
    effective = np.divide(sums[0] ** 2, squares[0], out=np.zeros(k), where=squares[0] > 0.0)
    both = (sums[1] > 0.0) & (sums[2] > 0.0)
    odds = np.divide(squares[1] * sums[2], sums[1] * squares[2], out=ones, where=both)
    return effective, np.where(sums[1] > 0.0, odds, most)


def _entries(true: Any, decided: Any) -> tuple[Integers, Integers, Any, Any]:
    """Return row and label of the entries that are true or decided, and which they are."""
    if sparse.issparse(true) or sparse.issparse(decided):
        true, decided = (sparse.csr_array(a).astype(np.int8) for a in (true, decided))
        code = sparse.csr_array(2 * true + decided)
        row = np.repeat(np.arange(code.shape[0]), np.diff(code.indptr))
        return row, code.indices.astype(np.int64), code.data >= 2, code.data % 2 == 1
    row, label = np.nonzero(true | decided)
    return row, label, true[row, label], decided[row, label]


def _by(which: Integers, sums: Floats, count: int) -> Floats:
    """Return values (k, e) added up by a number from 0 to `count` - 1."""
    return np.array([np.bincount(which, values, count) for values in sums])


def _variance(change: Any, n: int) -> Floats:
    """Return the variances of the jackknife from changes (n, k)."""
    total = np.asarray(change.sum(axis=0)).ravel()
    squares = np.asarray(change.multiply(change).sum(axis=0)).ravel()
    return np.asarray((n - 1) / n * np.maximum(squares - total**2 / n, 0.0))


def _jeffreys(found: _LeftOut, n: int, alpha: float) -> tuple[Floats, Floats]:
    r"""Return the interval of the proportion of hits, turned into one of F-measures.

    F of a proportion q of units that hit is :math:`r q / (r q + 1 - q)`, r the odds.
    """
    f, r, effective = found.f, found.odds, found.effective
    if n < 2:
        return np.zeros(len(f)), np.ones(len(f))
    spread = f + r * (1.0 - f)
    q = f / spread
    variance = _variance(found.change, n) * (r / spread**2) ** 2
    same = (variance <= _ROUNDING**2) | (f <= 0.0) | (f >= 1.0)
    size = np.divide(q * (1.0 - q), variance, out=np.zeros(len(f)), where=~same)
    size *= (ndtri(alpha / 2.0) / stdtrit(n - 1, alpha / 2.0)) ** 2
    size = np.where(same, effective, size)
    hits, misses = size * q + 0.5, size * (1.0 - q) + 0.5
    ends = (betaincinv(hits, misses, p) for p in (alpha / 2.0, 1.0 - alpha / 2.0))
    low, high = (r * x / (r * x + 1.0 - x) for x in ends)
    low = np.where((f <= 0.0) | (effective == 0.0), 0.0, np.minimum(low, f))
    high = np.where((f >= 1.0) | (effective == 0.0), 1.0, np.maximum(high, f))
    missing = np.isnan(f)
    return np.where(missing, np.nan, low), np.where(missing, np.nan, high)


def _symmetric(one: _LeftOut, other: _LeftOut, n: int, alpha: float) -> tuple[Floats, Floats]:
    """Return the interval of a difference.

    As in the interval of Agresti and Min (2005) for matched pairs, one more unit counts as
    different, by the root mean square of those that are; of 1 by the number of units if none is.
    """
    difference = one.f - other.f
    if n < 2:
        return -np.ones(len(difference)), np.ones(len(difference))
    change = sparse.csr_array(one.change - other.change)
    change.eliminate_zeros()
    squares = np.asarray(change.multiply(change).sum(axis=0)).ravel()
    differ = np.bincount(change.indices, minlength=len(difference))
    units = np.maximum(np.minimum(one.effective, other.effective), 1.0)
    one_more = np.where(differ > 0, squares / np.maximum(differ, 1), units**-2.0)
    width = -stdtrit(n - 1, alpha / 2.0) * np.sqrt(_variance(change, n) + one_more)
    low, high = difference - width, difference + width
    return np.maximum(low, -1.0), np.minimum(high, 1.0)
