"""Log-linear pooling of distributions, learned from out-of-fold predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import softmax

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# Smaller probabilities count as this: of classes, so that no single logarithm dominates; of
# numbers of labels, whose tails tell how much wider they spread than those of independent labels.
# Beyond the latter the compiled kernels drop terms.
_FLOOR, _TAIL = 1e-9, 1e-280
_RIDGE = 1.0  # penalty, in units of the log-likelihood of one row
_SINGLE, _RATIO = 8, 1.25  # numbers beyond the least one that count singly; ratio of knots
_SLOPE = 10.0  # standard deviation of the change of shifts over all numbers, in that of one shift
_ROWS_OF_SMALL = 3  # for each small number, with which one that does not occur is impossible


class LogLinearPool:
    r"""Weighted geometric mean of distributions over K classes or numbers, with shifts b.

    With :math:`f_{jk}` the probability of class k under distribution j,

    .. math:: p_k \propto \exp \Bigl( b_k + \sum_j a_j \log f_{jk} \Bigr), \qquad a_j \ge 0,

    fitted by maximum likelihood, with a ridge penalty on the distance from the first distribution,
    a = (1, 0, ..) and b = 0. Each class has a shift. Those of numbers of labels are linear between
    knots, which are all small numbers, and then 1.25 times the last one: few rows have any one of
    the large numbers. They have a slope of their own, with a wide prior.

    Parameters
    ----------
    numbers : ndarray of shape (K,), optional
        The classes as numbers of labels, those of `possible_numbers`.

    Attributes
    ----------
    weights_ : ndarray of shape (J,)
        The weights a.
    shifts_ : ndarray of shape (K,)
        The shifts b.
    """

    def __init__(self, numbers: Integers | None = None) -> None:
        self.numbers = numbers

    def fit(
        self, distributions: Sequence[Floats], code: Integers, weight: Floats | None = None
    ) -> LogLinearPool:
        """Fit weights and shifts.

        Parameters
        ----------
        distributions : sequence of J ndarrays of shape (n, K)
            Out-of-fold probabilities of the classes; rows with NaN are ignored.
        code : ndarray of shape (n,)
            Class of each row, 0 to K - 1.
        weight : ndarray of shape (n,), optional
            Sample weights.

        Returns
        -------
        LogLinearPool
            The fitted pool.
        """
        f = self._logarithms(np.stack(distributions))  # (J, n, K)
        w = np.ones(len(code)) if weight is None else weight
        kept = np.isfinite(f).all(axis=(0, 2)) & (w > 0.0)
        code, w = code[kept], w[kept]
        # Sums over the classes are faster if those of a row are not next to each other.
        f = np.ascontiguousarray(f[:, kept].swapaxes(1, 2))  # (J, K, n)
        J, K, n = f.shape
        rows = np.arange(n)
        basis = _shift_basis(self.numbers, K)  # (K, B)
        B = basis.shape[1]
        prior = np.zeros(J + B)  # theta = (a, shifts at the knots) of the first distribution alone
        prior[0] = 1.0
        mass = max(1.0, float(w.sum()))
        # The gradient has the sums of the expected classes minus those of the observed ones.
        counts = np.bincount(code, w, minlength=K)
        observed = np.append(f[:, code, rows] @ w, counts @ basis)

        def loss(theta: Floats) -> tuple[float, Floats]:
            p = np.tensordot(theta[:J], f, axes=1) + (basis @ theta[J:])[:, None]  # (K, n)
            p -= p.max(axis=0)
            own = p[code, rows]
            np.exp(p, out=p)
            total = p.sum(axis=0)
            off = theta - prior
            value = -float(w @ (own - np.log(total))) + _RIDGE * float(off @ off)
            p *= w / total
            slope = np.append(np.tensordot(f, p, axes=2), p.sum(axis=1) @ basis) - observed
            gradient = (slope + 2.0 * _RIDGE * off) / mass
            return value / mass, np.asarray(gradient, dtype=np.float64)

        bounds = [(0.0, None)] * J + [(None, None)] * B
        found = minimize(loss, prior, jac=True, method="L-BFGS-B", bounds=bounds)
        self.weights_ = np.asarray(found.x[:J])
        self.shifts_ = np.asarray(basis @ found.x[J:])
        return self

    def predict_proba(self, distributions: Sequence[Floats]) -> Floats:
        """Pool distributions.

        Parameters
        ----------
        distributions : sequence of J ndarrays of shape (n, K)
            Probabilities of the classes.

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities; rows sum to 1.
        """
        return np.asarray(softmax(self.log_weights(distributions), axis=1))

    def log_weights(self, distributions: Sequence[Floats]) -> Floats:
        """Return the logarithms (n, K) of the pooled probabilities, up to a number per row."""
        eta = np.empty(distributions[0].shape)
        eta[:] = self.shifts_
        for weight, p in zip(self.weights_, distributions, strict=True):
            eta += weight * self._logarithms(p)  # in this order for any block of rows
        return eta

    @property
    def floor(self) -> float:
        """The least probability; smaller ones count as this."""
        return _FLOOR if self.numbers is None else _TAIL

    def _logarithms(self, p: Floats) -> Floats:
        """Return the logarithms of probabilities, with the floor."""
        return np.asarray(np.log(np.maximum(p, self.floor)))


def possible_numbers(numbers: Integers, m: int) -> Integers:
    """Return the possible numbers of labels, given those of some rows with m labels.

    Small numbers must occur, unless few rows have any of them and others have large ones. Of large
    ones any is possible, up to a tenth more than the largest.
    """
    least, most = int(numbers.min()), int(numbers.max())
    large = least + _SINGLE + 1
    of_small = numbers[numbers < large]
    small = np.unique(of_small)
    if most < large:
        return small
    if len(of_small) < _ROWS_OF_SMALL * (_SINGLE + 1):
        small = np.arange(min(least, 1), large)
    return np.append(small, np.arange(large, min(m, most + most // 10) + 1))


def hats(numbers: Integers) -> Floats:
    """Return the values (K, B) of hat functions at possible numbers, one for each knot."""
    last = int(numbers[-1])
    knots = numbers[numbers <= numbers[0] + _SINGLE].tolist()
    while knots[-1] < last:
        knots.append(min(last, max(knots[-1] + 1, math.ceil(_RATIO * knots[-1]))))
    return np.stack([np.interp(numbers, knots, row) for row in np.eye(len(knots))], axis=1)


def _shift_basis(numbers: Integers | None, K: int) -> Floats:
    """Return the basis (K, B) of shifts of K classes, or of numbers of labels.

    A slope over large numbers is hardly shrunk: the mean of a wide distribution that is learned
    from few rows would be shrunk towards that of the tempered one, whose tails are uneven.
    """
    if numbers is None:
        return np.eye(K)
    basis = hats(numbers)
    if numbers[-1] <= numbers[0] + _SINGLE:
        return basis
    return np.column_stack([basis, _SLOPE * (numbers / numbers[-1] - 0.5)])
