"""The learner "auto": a forest, two ridge regressions and perhaps further parts, stacked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import logit

from fgfm._utils.blocks import slices
from fgfm._utils.log_linear_pool import LogLinearPool
from fgfm.learner._boosting import LabelBoosting
from fgfm.learner._features import (
    CountFeatures,
    StandardFeatures,
    are_counts,
    known_means,
)
from fgfm.learner._forest import LabelForest
from fgfm.learner._kernel_ridge import KernelRidge
from fgfm.learner._logistic import LabelLogistic
from fgfm.learner._marginals import MarginalStack

__all__ = ["StackedLearner", "StackedPredictions"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]  # matrices of rows and targets are many
Integers = npt.NDArray[np.int64]

_PARTS = 3  # the forest and the ridge regressions
_GAIN = 0.005  # share of the log-loss that further parts must save
_FREQUENCY = 0.02  # share of the label's frequency in the probability of the forest
_EDGE = 1e-5
_RIDGE_SCALE = 4.0  # values of a regression of 0 and 1, as logits
_RIDGE_EDGE = 0.03  # distance from 0 and 1 that values on counts keep, before the logit is taken
_BLOCK = 4096  # rows whose stack is computed at the same time
_EXPONENT = 60  # of 2, from which on features get other units
_LEAST = 0.002  # probability of a class by a regression, before normalisation


class StackedPredictions(NamedTuple):
    """Probabilities of targets."""

    positive: Floats  # (n, m) of the second class of the binary targets
    distributions: list[Floats]  # (n, K) of the classes of each target with more than two


class StackedLearner:
    """A forest and two ridge regressions of all targets, stacked by held-out predictions.

    Many rows have further parts if these lower the log-loss of the held-out predictions: boosted
    trees for each label, or logistic regressions on counts. The forest and the first ridge
    regression also predict the classes of the targets with more than two, such as the number of
    labels; these predictions are pooled.

    Attributes
    ----------
    parts : list
        The forest, the ridge regressions, and the further parts if they are kept.
    classes : list of ndarray
        The classes of each target.
    stack : MarginalStack
        Combines the predictions of the binary targets.
    pools : list of LogLinearPool
        One for each target of more than two classes.
    names : list of str
        The names of the parts.
    columns : ndarray or None
        The features that vary, if not all.
    units : ndarray or None
        Powers of two that the features are multiplied by, if some are very large or small.
    counts : bool
        Whether the features are like counts of words.
    """

    def fit(
        self,
        X: Any,
        targets: Sequence[Integers],
        weight: Floats,
        seed: int,
        n_jobs: int | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> StackedPredictions:
        """Fit all targets; return their held-out probabilities.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, p)
            Features.
        targets : sequence of ndarray of shape (n,)
            The class of each row; -1 where it is not known.
        weight : ndarray of shape (n,)
            Sample weights, all positive.
        seed : int
            Seeds the parts.
        n_jobs : int or None
            Number of threads of the forest and of further parts, as in joblib.
        progress : callable, optional
            Called with the share of the work that is done after each part.

        Returns
        -------
        StackedPredictions
            Held-out probabilities of the classes of each target.
        """
        self._set_targets(targets)
        T = self._columns_of(targets)  # (n, T) with NaN
        labels = T[:, self.binary_columns]  # (n, m)
        self.means = known_means(labels, weight)  # (m,)
        held_out: list[Singles] = []
        self.parts: list[Any] = []
        X = _canonical(X)
        self._set_columns(X)
        X = self._used(X)
        self.counts = are_counts(X)
        X = self._stored(X)
        plan = self._plan(X, T, labels, weight, seed, n_jobs) if T.shape[1] else []
        self.names = [name for name, _ in plan]
        for _, fit in plan:
            part, predictions = fit()
            self.parts.append(part)
            held_out.append(predictions)
            if progress is not None:
                progress(len(self.parts) / (len(plan) + 1))
        if self.binary:
            self.stack, loss = self._fit_stack(held_out[:_PARTS], labels, weight)
            if len(held_out) > _PARTS:
                stack, with_further = self._fit_stack(held_out, labels, weight)
                if with_further < (1.0 - _GAIN) * loss:
                    self.stack = stack
                else:
                    for values in (held_out, self.parts, self.names):
                        del values[_PARTS:]
        self.pools = []
        for t in self.multiclass:
            known = targets[t] >= 0
            code = np.searchsorted(self.classes[t], targets[t][known])
            distributions = [d[known] for d in self._distributions(held_out, t)]
            self.pools.append(LogLinearPool().fit(distributions, code, weight[known]))
        return self._probabilities(held_out, len(weight))

    def _fit_stack(
        self, held_out: Sequence[Singles], labels: Singles, weight: Floats
    ) -> tuple[MarginalStack, float]:
        """Return the stack of some parts and the log-loss of its held-out predictions."""
        stack = MarginalStack().fit(
            lambda rows, at: self._logits(held_out, rows, at), labels, weight
        )
        loss = 0.0
        for rows in slices(len(weight), _BLOCK):
            p = np.clip(stack.predict(self._logits(held_out, rows)), _EDGE, 1.0 - _EDGE)
            y = labels[rows]
            loss -= float(np.nansum(weight[rows, None] * (y * np.log(p) + (1 - y) * np.log1p(-p))))
        return stack, loss

    def _plan(
        self, X: Any, T: Singles, labels: Singles, weight: Floats, seed: int, n_jobs: int | None
    ) -> list[tuple[str, Callable[[], tuple[Any, Singles]]]]:
        """Return names and fits of the parts."""

        def forest() -> tuple[Any, Singles]:
            known = ~np.isnan(T)
            part = LabelForest()
            observed = None if known.all() else sparse.csr_array(known.astype(np.float32))
            targets = sparse.csr_array(np.nan_to_num(T))
            grown = labels if self.binary else T
            return part, part.fit(X, grown, targets, observed, weight, seed, n_jobs)

        def ridge(features: Any, kernel: str) -> Callable[[], tuple[Any, Singles]]:
            def fit() -> tuple[Any, Singles]:
                part = KernelRidge(features, kernel)
                return part, part.fit(X, T, weight, seed)

            return fit

        def boosting() -> tuple[Any, Singles]:
            part = LabelBoosting()
            return part, part.fit(X, labels, weight, seed, n_jobs)

        def logistic(features: Any) -> Callable[[], tuple[Any, Singles]]:
            def fit() -> tuple[Any, Singles]:
                part = LabelLogistic(features)
                return part, part.fit(X, labels, weight, seed, n_jobs)

            return fit

        m = len(self.binary)
        if self.counts:
            log, idf = CountFeatures(False), CountFeatures(True)  # fitted by the ridge regressions
            ridges = [
                ("linear ridge on log counts", ridge(log, "linear")),
                ("linear ridge on tf-idf", ridge(idf, "linear")),
            ]
            further = [
                ("logistic regression on tf-idf", logistic(idf)),
                ("logistic regression on log counts", logistic(log)),
            ]
            most = LabelLogistic.most(X, m)
        else:
            ridges = [
                ("Laplacian kernel ridge", ridge(StandardFeatures(), "laplacian")),
                ("linear ridge", ridge(StandardFeatures(), "linear")),
            ]
            further = [("boosting", boosting)]
            most = LabelBoosting.most(X, m)
        return [("forest", forest), *ridges, *further[:most]]

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each part that all labels share; empty if no label varies."""
        if not self.binary:
            return {}
        return dict(zip(self.names, self.stack.shared.tolist(), strict=True))

    def predict(self, X: Any) -> StackedPredictions:
        """Return the probabilities of all targets for the rows of X."""
        X = self._stored(self._used(_canonical(X)))
        return self._probabilities([part.predict(X) for part in self.parts], X.shape[0])

    def _set_columns(self, X: Any) -> None:
        """Choose the features that vary, and units in which none overflows single precision."""
        if sparse.issparse(X):
            varies = np.bincount(X.indices[X.data != 0.0], minlength=X.shape[1]) > 0
        else:
            varies = ((X[0] != X) & ~(np.isnan(X) & np.isnan(X[0]))).any(axis=0)
        self.columns = None if varies.all() else np.flatnonzero(varies)
        if not varies.any():
            self.columns = np.zeros(1, dtype=np.intp)
        X = X if self.columns is None else X[:, self.columns]
        if sparse.issparse(X):
            largest = abs(X).max(axis=0).toarray().ravel()
        else:
            largest = np.fmax.reduce(np.abs(X), axis=0, initial=0.0)
        _, exponent = np.frexp(largest)
        extreme = (np.abs(exponent) > _EXPONENT) & (largest > 0.0)
        self.units = np.ldexp(1.0, np.where(extreme, -exponent, 0)) if extreme.any() else None

    def _used(self, X: Any) -> Any:
        """Return the features that are used, in the units of `fit`."""
        X = X if self.columns is None else X[:, self.columns]
        if self.units is None:
            return X
        X = X * self.units
        return X.tocsr() if sparse.issparse(X) else X

    def _stored(self, X: Any) -> Any:
        """Return the features in CSR if they are counts, else dense, however they were stored."""
        if self.counts:
            return _canonical(sparse.csr_array(X))
        return X.toarray() if sparse.issparse(X) else X

    def _set_targets(self, targets: Sequence[Integers]) -> None:
        """Lay out the columns: one for a binary target, K for one of K > 2 classes."""
        self.classes = [np.unique(values[values >= 0]) for values in targets]
        widths = [1 if len(c) == 2 else (0 if len(c) < 2 else len(c)) for c in self.classes]
        self.first_column = np.cumsum([0, *widths])
        self.binary = [t for t, c in enumerate(self.classes) if len(c) == 2]
        self.multiclass = [t for t, c in enumerate(self.classes) if len(c) > 2]
        self.binary_columns = self.first_column[self.binary]

    def _columns_of(self, targets: Sequence[Integers]) -> Singles:
        """Return the targets as columns of 0 and 1; NaN where a class is not known."""
        T = np.empty((len(targets[0]), self.first_column[-1]), dtype=np.float32)
        for t, (values, classes) in enumerate(zip(targets, self.classes, strict=True)):
            at = slice(self.first_column[t], self.first_column[t + 1])
            shown = classes[1:] if len(classes) == 2 else classes
            if at.stop > at.start:
                T[:, at] = values[:, None] == shown
                T[values < 0, at] = np.nan
        return T

    def _logits(
        self, predictions: Sequence[Singles], rows: slice = slice(None), at: slice = slice(None)
    ) -> Floats:
        """Return the predictions (J, n, m) of some binary targets as logits."""
        columns = self.binary_columns[at]
        parts = (values[rows][:, columns].astype(float) for values in predictions[:_PARTS])
        forest, *ridges = parts
        p = (1.0 - _FREQUENCY) * forest + _FREQUENCY * self.means[at]
        return np.stack(
            [
                logit(np.clip(p, _EDGE, 1.0 - _EDGE)),
                *(self._ridge_logits(f) for f in ridges),
                *(values[rows, at].astype(float) for values in predictions[_PARTS:]),
            ]
        )

    def _ridge_logits(self, values: Floats) -> Floats:
        """Return the values of a regression as logits.

        Most words say nothing about a rare label: its regressions on counts stay near 0 with few
        values near 1, which the logit spreads. Those on other features spread around the mean.
        """
        if not self.counts:
            return _RIDGE_SCALE * values
        p = _RIDGE_EDGE + (1.0 - 2.0 * _RIDGE_EDGE) * np.clip(values, 0.0, 1.0)
        return np.asarray(logit(p))

    def _distributions(self, predictions: Sequence[Singles], target: int) -> list[Floats]:
        """Return the probabilities (n, K) of a target by the forest and the first ridge."""
        at = slice(self.first_column[target], self.first_column[target + 1])
        parts = [np.maximum(values[:, at].astype(float), _LEAST) for values in predictions[:2]]
        return [part / part.sum(axis=1, keepdims=True) for part in parts]

    def _probabilities(self, predictions: Sequence[Singles], n: int) -> StackedPredictions:
        """Return the probabilities of all targets."""
        p = np.empty((n, len(self.binary)))
        if self.binary:
            for rows in slices(n, _BLOCK):
                p[rows] = self.stack.predict(self._logits(predictions, rows))
        pools = zip(self.pools, self.multiclass, strict=True)
        return StackedPredictions(
            p, [pool.predict_proba(self._distributions(predictions, t)) for pool, t in pools]
        )


def _canonical(X: Any) -> Any:
    """Return sparse features with columns in order and no value stored in parts."""
    if not sparse.issparse(X) or X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X
