"""One kernel ridge regression of all labels, with leave-one-out predictions.

Labels share one eigendecomposition, from which the predictions, and the residuals that leaving
each row out would give, follow in closed form for every penalty.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from scipy.special import logit

from fgfm._utils.blocks import slices
from fgfm._utils.left_out import left_out_residuals
from fgfm._utils.parallel import interruptible, one_blas_thread
from fgfm.learner._features import CountFeatures, known_means

__all__ = ["KernelRidge"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

_PENALTIES = np.logspace(-3.0, 3.0, 13)  # times the mean of the kernel of a row with itself
_WIDTHS = (0.25, 1.0)  # of the Laplacian kernel, relative to the median distance
_EXACT = 4000  # rows or features; beyond, landmarks
_LANDMARKS = 2000  # fewer for many rows:
_ENTRIES = 1e8  # of a matrix of rows and features or landmarks, at most
_LEAST_LANDMARKS = 500
_MOST_LEVERAGE = 0.9999
_SAMPLE = 500  # rows whose distances the median is taken of
_BLOCK = 2048  # rows whose predictions are computed at the same time
# Blocks bound the memory, and the time until Ctrl-C is noticed. Their numbers of values,
# differences in distances, and products in a Gram matrix:
_VALUES, _DIFFERENCES, _PRODUCTS = 1 << 20, 3e8, 4e9
_FOLDS = 5  # of rows whose held-out predictions have penalties chosen by the others
_TARGETS = 128  # that are fitted at the same time
_SCALE = 4.0  # of values of 0 and 1, as logits
_EDGE = 0.03  # distance from 0 and 1 that values on counts keep, before the logit is taken
_NULL = 1e-10  # eigenvalues below this part of the largest are 0
_ROUNDING = 1e-13  # and those below this part of the trace before centring


class KernelRidge:
    r"""Ridge regression in the space of a kernel, with a penalty for each target.

    With eigenvectors U and eigenvalues :math:`\lambda` of the centred kernel matrix, the fitted
    values of target y are :math:`\hat y = \bar y + U \operatorname{diag}(\lambda / (\lambda + c))
    U^T y`, and the residual of a row if it is left out is :math:`(y_r - \hat y_r) / (1 - h_r)`,
    with :math:`h_r` its leverage, that in the mean included. The penalty c of each target, and the
    width of the kernel for all, minimise the sum of squares of these residuals. Held-out
    predictions have the penalty that other rows choose: with its own choice a row would look too
    predictable.

    Parameters
    ----------
    features : StandardFeatures or CountFeatures
        Transforms the features.
    kernel : {"laplacian", "linear"}
        The kernel: :math:`\exp(-2 g \|x - z\|_1 / \text{median})`, or the scalar product.
    landmarks : int
        Number of rows that kernel values are computed with, at most, where rows are many.

    Attributes
    ----------
    intercept : ndarray of shape (T,)
        What the regression is added to.
    coef : ndarray of shape (q, T)
        Coefficients of the features or of the kernel values.
    points : array or CSR array of shape (q, p), or None
        The rows that kernel values are computed with; None if `coef` is of the features.
    width, median : float
        Width g of the Laplacian kernel, and the median distance.
    """

    def __init__(self, features: Any, kernel: str, landmarks: int = _LANDMARKS) -> None:
        self.features = features
        self.kernel = kernel
        self.landmarks = landmarks

    def fit(self, X: Any, targets: Singles, weight: Floats, seed: int) -> Singles:
        """Fit all targets; return their leave-one-out predictions (n, T), as logits.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, p)
            Features.
        targets : ndarray of shape (n, T)
            The targets; NaN where one is not known, which then counts as its mean.
        weight : ndarray of shape (n,)
            Sample weights, all positive.
        seed : int
            Seeds the landmarks.

        Returns
        -------
        ndarray of shape (n, T)
            Predictions for each row from all others, as logits.
        """
        n, T = targets.shape
        with one_blas_thread:
            Z = self.features.fit(X, weight).transform(X)
            root = np.sqrt(weight)[:, None]  # (n, 1): a row of weight w is scaled by its root
            means = known_means(targets, weight)
            total, best = float(weight.sum()), np.inf
            predictions = np.empty((n, T), dtype=np.float32)
            for width, design in self._designs(Z, seed):
                eigen = design.decompose(root)
                picks, losses = zip(
                    *(
                        _choose_penalties(eigen, _centred(targets, means, at, root), total)
                        for at in slices(T, _TARGETS)
                    ),
                    strict=True,
                )
                if sum(losses) < best:
                    best, self.width = sum(losses), width
                    coef, self.intercept = [], np.empty(T)
                    for at, pick in zip(slices(T, _TARGETS), picks, strict=True):
                        y = _centred(targets, means, at, root)
                        left_out, spectral = _solve(eigen, y, pick)
                        predictions[:, at] = left_out / root + means[at]
                        of_block, at_centre = design.coefficients(eigen, spectral, root)
                        coef.append(of_block)
                        self.intercept[at] = means[at] - at_centre
                    self.coef = np.concatenate(coef, axis=1)
                del design, eigen  # before the next design is computed
        return self._logits(predictions)

    def predict(self, X: Any) -> Singles:
        """Return the predictions (n, T), as logits.

        A product of matrices may differ in its last bits with the number of rows: rounding to
        single precision makes the predictions of a row the same in any block of rows.
        """
        n = X.shape[0]
        predictions = np.empty((n, self.coef.shape[1]), dtype=np.float32)
        with one_blas_thread:
            for rows in slices(n, _BLOCK):
                Z = self.features.transform(X[rows])
                K = Z if self.points is None else self._kernel(Z, self.points, self.width)
                predictions[rows] = K @ self.coef + self.intercept
        return self._logits(predictions)

    def _logits(self, values: Singles) -> Singles:
        """Return the values of a regression as logits.

        Most words say nothing about a rare label: its regressions on counts stay near 0 with few
        values near 1, which the logit spreads. Those on other features spread around the mean.
        """
        if not isinstance(self.features, CountFeatures):
            return np.float32(_SCALE) * values
        p = _EDGE + (1.0 - 2.0 * _EDGE) * np.clip(values.astype(np.float64), 0.0, 1.0)
        return np.asarray(logit(p), dtype=np.float32)

    def _designs(self, Z: Any, seed: int) -> Any:
        """Yield widths and designs: a kernel matrix, or features with that Gram matrix."""
        n, p = Z.shape
        self.points, self.median = None, 1.0
        widths: tuple[float, ...] = (1.0,)
        if (
            self.kernel == "linear"
            and p < n
            and (p <= _LANDMARKS or (p <= _EXACT and n * p <= _ENTRIES))
        ):
            yield 1.0, _Features(Z, None)
            return
        if n <= _EXACT:
            self.points = Z
        else:
            count = min(self.landmarks, max(_LEAST_LANDMARKS, int(_ENTRIES / n)))
            rows = np.random.default_rng(seed).choice(n, count, replace=False)
            self.points = Z[np.sort(rows)]
        if self.kernel == "laplacian":
            few = self.points[:_SAMPLE]
            self.median = float(np.median(cdist(few, few, "cityblock"))) or 1.0
            widths = _WIDTHS
        for width in widths:
            if n <= _EXACT:
                yield width, _KernelMatrix(self._kernel(Z, self.points, width))
            else:
                yield width, self._nystroem(Z, self.points, width)

    def _nystroem(self, Z: Any, points: Any, width: float) -> _Features:
        """Return features whose Gram matrix approximates the kernel matrix."""
        mapping = _inverse_root(self._kernel(points, points, width))
        return _Features(self._kernel(Z, points, width, mapping), mapping)

    def _kernel(
        self, A: Any, B: Any, width: float, mapping: Floats | None = None
    ) -> npt.NDArray[Any]:
        """Return the kernel values of all pairs of rows; or, in single precision, their features.

        These are the kernel values times `mapping`.
        """
        n, q = A.shape[0], B.shape[0]
        if mapping is None:
            K = np.empty((n, q))
        else:
            K = np.empty((n, mapping.shape[1]), dtype=np.float32)
        for rows in slices(n, min(_VALUES // q, int(_DIFFERENCES * n / max(A.size * q, 1)))):
            if self.kernel == "linear":
                values = _to_dense(A[rows] @ B.T)
            else:
                values = cdist(A[rows], B, "cityblock")
                values *= -2.0 * width / self.median
                np.exp(values, out=values)
            K[rows] = values if mapping is None else values @ mapping
        return K


class _Eigen(NamedTuple):
    """Orthonormal vectors (n, q) and eigenvalues (q,) of the scaled and centred kernel matrix."""

    vectors: npt.NDArray[Any]  # in single precision if there are many rows
    values: Floats
    of_mean: Floats  # (n,) the leverage of each row in a mean
    right: Floats | None = None  # (p, q) eigenvectors in the space of features


class _KernelMatrix:
    """A design given by its kernel matrix (n, n), which is overwritten."""

    def __init__(self, K: Floats) -> None:
        self.K = K

    def decompose(self, root: Floats) -> _Eigen:
        of_mean = (root / np.linalg.norm(root))[:, 0] ** 2
        rounding = _ROUNDING * float(np.abs(self.K.diagonal()) @ root[:, 0] ** 2)
        self.centre = of_mean @ self.K  # (n,)
        self.K -= self.centre
        self.K -= (self.centre - self.centre @ of_mean)[:, None]
        self.K *= root
        self.K *= root.T
        values, vectors = interruptible(eigh, self.K, overwrite_a=True)
        del self.K
        return _Eigen(vectors, np.where(values > rounding, values, 0.0), of_mean)

    def coefficients(self, eigen: _Eigen, spectral: Floats, root: Floats) -> tuple[Floats, Floats]:
        coef = root * (eigen.vectors @ spectral)
        return coef, self.centre @ coef


class _Features:
    """A design given by features (n, q), perhaps functions of kernel values.

    They are overwritten if they are dense.
    """

    def __init__(self, values: Any, mapping: Floats | None) -> None:
        self.values = values
        self.mapping = mapping

    def decompose(self, root: Floats) -> _Eigen:
        n, q = self.values.shape
        if sparse.issparse(self.values):
            scaled = self.values.multiply(root).tocsr()
            vectors = np.empty((n, q), dtype=np.float64 if n <= _EXACT else np.float32)
        else:
            scaled = vectors = np.multiply(self.values, root, out=self.values)
        del self.values
        total = float((root**2).sum())
        gram, self.centre = np.zeros((q, q)), np.zeros(q)
        for rows in slices(n, int(_PRODUCTS / q**2)):
            block = scaled[rows].astype(np.float64, copy=False)
            gram += _to_dense(block.T @ block)
            self.centre += root[rows, 0] @ block / total
        rounding = _ROUNDING * float(np.trace(gram))
        gram -= total * np.outer(self.centre, self.centre)
        values, right = interruptible(eigh, gram.T, overwrite_a=True)  # LAPACK stores columns
        del gram
        kept = values > max(values[-1] * _NULL, rounding)
        values, right = values[kept], right[:, kept]
        rotation = right / np.sqrt(values)
        at_centre = self.centre @ rotation
        for rows in slices(n, _VALUES // q):
            block = scaled[rows].astype(np.float64, copy=False) @ rotation
            block -= root[rows] * at_centre
            vectors[rows, : len(values)] = block
        return _Eigen(vectors[:, : len(values)], values, root[:, 0] ** 2 / total, right)

    def coefficients(self, eigen: _Eigen, spectral: Floats, root: Floats) -> tuple[Floats, Floats]:
        assert eigen.right is not None
        coef = eigen.right @ (np.sqrt(eigen.values)[:, None] * spectral)
        return coef if self.mapping is None else self.mapping @ coef, self.centre @ coef


def _inverse_root(K: Floats) -> Floats:
    """Return M with M M' the pseudoinverse of a kernel matrix."""
    values, vectors = interruptible(eigh, K, overwrite_a=True)
    kept = values > values[-1] * 1e-8
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def _rotate(vectors: npt.NDArray[Any], y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the products (q, T) of the vectors with the targets, in the precision of these."""
    rotated = np.zeros((vectors.shape[1], y.shape[1]), dtype=y.dtype)
    for rows in slices(len(y), _EXACT if len(y) <= _EXACT else _BLOCK):
        rotated += vectors[rows].astype(y.dtype, copy=False).T @ y[rows]
    return rotated


class _LeftOut:
    """Residuals of some rows if each is left out, for any penalty, in a precision.

    `y` (rows, T) are the targets, `rotated` (q, T) the products of all rows with the eigenvectors.
    """

    def __init__(self, eigen: _Eigen, rows: slice, dtype: Any) -> None:
        self.vectors = eigen.vectors[rows].astype(dtype, copy=False)
        self.values, self.of_mean = eigen.values.astype(dtype), eigen.of_mean[rows].astype(dtype)
        self.squares = self.vectors**2

    def residuals(
        self, y: npt.NDArray[Any], rotated: npt.NDArray[Any], penalty: float
    ) -> npt.NDArray[Any]:
        """Return the residuals (rows, T)."""
        own = self.vectors, self.squares, self.values, self.of_mean
        return left_out_residuals(*own, y, rotated, float(penalty), _MOST_LEVERAGE)


def _choose_penalties(eigen: _Eigen, y: Floats, total: float) -> tuple[Floats, float]:
    """Return the penalties (_FOLDS + 1, T) of the least squared errors, and the sum of these.

    The last row is chosen by all rows of y, row k by those that are not in fold k. Single
    precision halves the time of these comparisons.
    """
    y = y.astype(np.float32)
    rotated = _rotate(eigen.vectors, y)
    penalties = _PENALTIES * (float(eigen.values.sum()) / total or 1.0)  # 1 if no feature varies
    losses = np.zeros((_FOLDS, len(penalties), y.shape[1]))
    for rows in slices(len(y), _BLOCK):
        left_out = _LeftOut(eigen, rows, y.dtype)
        for k, penalty in enumerate(penalties):
            squares = left_out.residuals(y[rows], rotated, penalty) ** 2
            for first, fold in enumerate(_folds(rows)[:_FOLDS]):
                losses[fold, k] += squares[first::_FOLDS].sum(axis=0)
    all_rows = losses.sum(axis=0)
    by_others = np.concatenate([all_rows - losses, all_rows[None]])  # (_FOLDS + 1, P, T)
    return penalties[by_others.argmin(axis=1)], float(all_rows.min(axis=0).sum())


def _solve(eigen: _Eigen, y: Floats, penalties: Floats) -> tuple[Floats, Floats]:
    """Return leave-one-out predictions (n, T) and spectral coefficients (q, T)."""
    rotated = _rotate(eigen.vectors, y)
    predictions = y.copy()
    for rows in slices(len(y), _VALUES // max(len(rotated), 1)):
        left_out = _LeftOut(eigen, rows, y.dtype)
        chosen = penalties[_folds(rows)]  # (rows, T), by rows of other folds
        for penalty in np.unique(penalties[:-1]):
            at = np.flatnonzero((penalties[:-1] == penalty).any(axis=0))
            residuals = left_out.residuals(y[rows, at], rotated[:, at], penalty)
            predictions[rows, at] -= np.where(chosen[:, at] == penalty, residuals, 0.0)
        del left_out  # before that of the next rows is computed
    return predictions, rotated / (eigen.values[:, None] + penalties[-1])


def _folds(rows: slice) -> npt.NDArray[np.int64]:
    """Return the folds of some rows."""
    return np.arange(rows.start, rows.stop) % _FOLDS


def _centred(targets: npt.NDArray[Any], means: Floats, at: slice, root: Floats) -> Floats:
    """Return some targets less their means, 0 where not known, times the roots of weights."""
    y = targets[:, at] - means[at]
    return np.asarray(root * np.where(np.isnan(y), 0.0, y))


def _to_dense(values: Any) -> Floats:
    return np.asarray(values.toarray() if sparse.issparse(values) else values)
