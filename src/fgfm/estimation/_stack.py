"""One distribution made of several, by what each of them got right on rows held out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

__all__ = ["LogStack"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_FLOOR = 1e-9  # what less counts as: a logarithm must not decide by itself
_RIDGE = 1.0  # rows' worth of belief in the first distribution as it is


class LogStack:
    r"""Join distributions over the same K classes by a weighted product with one factor per class.

    With :math:`f_{jk}` the probabilities that distribution j gives to class k,

    .. math:: p_k \propto \exp \Bigl( b_k + \sum_j a_j \log f_{jk} \Bigr), \qquad a_j \ge 0,

    fitted by maximum likelihood to rows that no model saw, with a ridge penalty that pulls it to
    the first distribution, a = (1, 0, ..), b = 0.

    Attributes
    ----------
    weights_ : ndarray of shape (J,)
        The weights a.
    shifts_ : ndarray of shape (K,)
        The shifts b.
    """

    def fit(
        self, proba: Sequence[Floats], code: Integers, weight: Floats | None = None
    ) -> LogStack:
        """Fit weights and shifts.

        Parameters
        ----------
        proba : sequence of J ndarrays of shape (n, K)
            Probabilities of the classes; rows with NaN are left out.
        code : ndarray of shape (n,)
            Class of each row, 0 to K - 1.
        weight : ndarray of shape (n,), optional
            Weights of the rows.

        Returns
        -------
        LogStack
            Itself.
        """
        f = _logarithms(proba)  # (J, n, K)
        w = np.ones(len(code)) if weight is None else weight
        kept = np.isfinite(f).all(axis=(0, 2)) & (w > 0.0)
        f, code, w = f[:, kept], code[kept], w[kept]
        J, n, K = f.shape
        rows = np.arange(n)
        prior = np.zeros(J + K)
        prior[0] = 1.0
        mass = max(1.0, float(w.sum()))

        def loss(theta: Floats) -> tuple[float, Floats]:  # numpydoc ignore=GL08
            log_p = log_softmax(np.tensordot(theta[:J], f, axes=1) + theta[J:], axis=1)
            off = theta - prior
            residual = np.exp(log_p)
            residual[rows, code] -= 1.0
            residual *= w[:, None]
            value = -float(w @ log_p[rows, code]) + _RIDGE * float(off @ off)
            slope = np.append(np.tensordot(f, residual, axes=2), residual.sum(axis=0))
            return value / mass, (slope + 2.0 * _RIDGE * off) / mass

        bounds = [(0.0, None)] * J + [(None, None)] * K
        found = minimize(loss, prior, jac=True, method="L-BFGS-B", bounds=bounds)
        self.weights_ = np.asarray(found.x[:J])
        self.shifts_ = np.asarray(found.x[J:])
        return self

    def proba(self, proba: Sequence[Floats]) -> Floats:
        """Join distributions.

        Parameters
        ----------
        proba : sequence of J ndarrays of shape (n, K)
            Probabilities of the classes.

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities; rows sum to 1.
        """
        eta = np.tensordot(self.weights_, _logarithms(proba), axes=1) + self.shifts_
        return np.asarray(softmax(eta, axis=1))


def _logarithms(proba: Sequence[Floats]) -> Floats:
    """Give logarithms (J, n, K) of probabilities that are not too small."""
    return np.asarray(np.log(np.maximum(np.stack(proba), _FLOOR)))
