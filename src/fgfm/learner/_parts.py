"""The parts of the stack: which are fitted, and which are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm.learner._boosting import LabelBoosting
from fgfm.learner._features import CountFeatures, StandardFeatures
from fgfm.learner._forest import LabelForest
from fgfm.learner._kernel_ridge import KernelRidge
from fgfm.learner._logistic import LabelLogistic
from fgfm.learner._stack import MarginalStack

__all__ = ["PERCENT", "StackFit"]

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]  # matrices of rows and labels are many

PERCENT = 100
_GAIN = 0.005  # share of the log-loss that an optional part must save
_GAIN_OF_TREES = 0.002  # share that twice as many trees must save, where rows are many
_LABELS_OF_TREES = 100  # labels, at most, that this is judged by
_MANY = 5000  # rows from which on time counts
_FEW_LANDMARKS = 500  # which tell whether the kernel regression pays


class StackFit:
    """The fit of all parts and of their stack.

    A part has ``fit(X, labels, weight, seed)``, which returns logits (n, m) of the training rows
    that are held out, and ``predict(X)``. Cheap parts come first, and the forest last: it needs
    fewer trees beside parts that are better.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n, p)
        Features; CSR if they are counts.
    labels : ndarray of shape (n, m)
        Labels, 0 or 1, or NaN where one is not known.
    numbers : ndarray of shape (n, K)
        Indicators of the number of labels, of which the forest and the ridge regressions learn
        too; NaN where it is not known. K is 0 if none is to be learned.
    weight : ndarray of shape (n,)
        Sample weights, all positive.
    seed : int
        Seeds the parts.
    n_jobs : int or None
        Number of threads, as in joblib.
    done : callable
        Called with the percentage of the work that is done.

    Attributes
    ----------
    parts, held_out : dict
        The parts that are kept, and their held-out logits (n, m).
    stack : MarginalStack
        Combines them.
    held_out_numbers : list of ndarray of shape (n, K)
        The held-out logits of the numbers by the parts that learn of them.
    number_stack : MarginalStack
        Combines these.
    """

    def __init__(
        self,
        X: Any,
        labels: Singles,
        numbers: Singles,
        weight: Floats,
        seed: int,
        n_jobs: int | None,
        done: Callable[[int], None],
    ) -> None:
        self.X, self.labels, self.weight, self.seed = X, labels, weight, seed
        self.targets = np.hstack([labels, numbers])
        self.n_jobs, self.done = n_jobs, done
        self.parts: dict[str, Any] = {}
        self.held_out: dict[str, Singles] = {}
        self._numbers: dict[str, Singles] = {}
        self._fit_dense() if isinstance(X, np.ndarray) else self._fit_counts()
        self.held_out_numbers = [
            self._numbers[name] for name in self.parts if name in self._numbers
        ]
        if numbers.shape[1]:
            self.number_stack = MarginalStack().fit(self.held_out_numbers, numbers, weight)

    def _fit_counts(self) -> None:
        """Fit linear regressions, or logistic ones if there are enough rows."""
        tf_idf, log = CountFeatures(True), CountFeatures(False)
        logistic = {
            "logistic regression on tf-idf": tf_idf,
            "logistic regression on log counts": log,
        }
        most = LabelLogistic.most(self.X, self.labels.shape[1])
        names = list(logistic)[:most]
        linear = ("linear ridge on log counts", KernelRidge(log, "linear"))
        self._add("linear ridge on tf-idf", KernelRidge(tf_idf, "linear"), 10)
        both = not names or len(self.labels) < _MANY
        if both:
            self._add(*linear, 20)
        for name in names:
            self._add(name, LabelLogistic(logistic[name], self.n_jobs), 30)
        self._add_forest()
        if names and self._drop_if_useless(*names) and not both:
            self._add(*linear, PERCENT - 1)
            self._combine()

    def _fit_dense(self) -> None:
        """Fit a linear and a kernel regression, and boosting if there are enough rows."""
        boosting = LabelBoosting.most(self.X, self.labels.shape[1]) > 0
        self._add("linear ridge", KernelRidge(StandardFeatures(), "linear"), 5)
        if boosting:
            self._add("boosting", LabelBoosting(self.n_jobs, self._ticks(5, 50)), 50)
        name = "Laplacian kernel ridge"
        few = (_FEW_LANDMARKS,) if boosting else ()
        self._add(name, KernelRidge(StandardFeatures(), "laplacian", *few), 60)
        self._add_forest()
        if boosting:
            if not self._drop_if_useless(name):
                self._add(name, KernelRidge(StandardFeatures(), "laplacian"), PERCENT - 1)
                self._combine()
            self._drop_if_useless("boosting")

    def _add(self, name: str, part: Any, percentage: int) -> None:
        learns_numbers = isinstance(part, (KernelRidge, LabelForest))
        targets = self.targets if learns_numbers else self.labels
        logits = part.fit(self.X, targets, self.weight, self.seed)
        self.held_out[name], numbers = np.split(logits, [self.labels.shape[1]], axis=1)
        if learns_numbers:
            self._numbers[name] = numbers
        self.parts[name] = part
        self.done(percentage)

    def _add_forest(self) -> None:
        """Fit the forest; where rows are many, with few trees if more hardly improve the stack."""
        some = slice(None, None, -(-self.labels.shape[1] // _LABELS_OF_TREES))
        others = [logits[:, some] for logits in self.held_out.values()]
        labels = self.labels[:, some]

        def enough(half: Singles, whole: Singles) -> bool:
            before, after = (
                self._stacked([*others, forest[:, some]], labels)[1] for forest in (half, whole)
            )
            return after > (1.0 - _GAIN_OF_TREES) * before

        many = len(self.labels) >= _MANY
        forest = LabelForest(
            self.n_jobs,
            enough if many else None,
            self._ticks(60, PERCENT - 1),
            self.labels.shape[1],
        )
        self._add("forest", forest, PERCENT - 1)
        self._combine()

    def _ticks(self, first: int, last: int) -> Callable[[float], None]:
        """Return a function of the share of the work between two percentages."""
        return lambda share: self.done(first + int((last - first) * share))

    def _combine(self) -> None:
        self.stack, self._loss = self._stacked(list(self.held_out.values()), self.labels)

    def _stacked(
        self, held_out: Sequence[Singles], labels: Singles
    ) -> tuple[MarginalStack, float]:
        """Return the stack of some parts for some labels, and its log-loss."""
        stack = MarginalStack().fit(held_out, labels, self.weight)
        return stack, stack.log_loss(held_out, labels, self.weight)

    def _drop_if_useless(self, *names: str) -> bool:
        """Drop parts that do not save enough of the log-loss; return whether they are dropped."""
        rest = [values for name, values in self.held_out.items() if name not in names]
        stack, loss = self._stacked(rest, self.labels)
        if self._loss < (1.0 - _GAIN) * loss:
            return False
        for name in names:
            del self.parts[name], self.held_out[name]
        self.stack, self._loss = stack, loss
        return True
