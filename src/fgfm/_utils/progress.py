"""Progress reporting of long computations: callbacks, verbose output and scikit-learn 1.9."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

try:  # scikit-learn 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # older versions have no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Replace the mixin of scikit-learn 1.9."""

    def with_callbacks(method: Any) -> Any:
        """Replace the decorator of scikit-learn 1.9."""
        return method


__all__ = [
    "CallbackSupportMixin",
    "FitProgress",
    "ProgressCallback",
    "current_callback",
    "report_progress",
    "with_callbacks",
]

ProgressCallback = Callable[[str, int, int], object]  # stage, steps done, steps in all

# A context variable reaches fits inside pipelines and cross-validation without an argument.
_callback: ContextVar[ProgressCallback | None] = ContextVar("fgfm_progress", default=None)


def current_callback() -> ProgressCallback | None:
    """Return the callback set by `report_progress`, or None."""
    return _callback.get()


@contextmanager
def report_progress(callback: ProgressCallback | None) -> Iterator[None]:
    """Call a function with the progress of all fits inside the context.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from fgfm import FClassifier
    >>> X, y, seen = [[x / 50] for x in range(50)], [0, 0, 1, 0, 1] * 10, []
    >>> with report_progress(lambda *step: seen.append(step)):
    ...     _ = FClassifier(GaussianNB(), cv=3).fit(X, y)
    >>> seen[0], seen[-1]
    (('models', 0, 4), ('models', 4, 4))
    """
    token = _callback.set(callback)
    try:
        yield
    finally:
        _callback.reset(token)


class FitProgress:
    """Report the progress of one fit: to the callback, to the terminal, to scikit-learn 1.9."""

    def __init__(self, estimator: Any, verbose: int) -> None:
        self.estimator, self.verbose = estimator, verbose
        self.callback = current_callback()
        self.start = self.last = time.perf_counter()
        self.total = self.ended = 0
        self.tasks: list[Any] = []  # of scikit-learn: the fit, and its models
        if hasattr(estimator, "_init_callback_context"):
            self._begin(estimator._init_callback_context(max_subtasks=1))

    def _begin(self, task: Any) -> None:
        task.call_on_fit_task_begin(estimator=self.estimator)
        self.tasks.append(task)

    def _end(self) -> None:
        self.tasks.pop().call_on_fit_task_end(estimator=self.estimator)

    def _print(self, text: str) -> None:
        if self.verbose:
            elapsed = time.perf_counter() - self.start
            print(f"[{type(self.estimator).__name__}] {text} ({elapsed:.1f} s)", flush=True)

    def begin_models(self, total: int, unit: str = "models") -> None:
        """Report the number of models to fit, or of other units of work."""
        self.total, self.unit = total, unit
        if self.callback is not None:
            self.callback("models", 0, total)
        if self.tasks:
            self._begin(self.tasks[0].subcontext(task_name="models", max_subtasks=total))

    def models_done(self, count: int) -> None:
        """Report the number of models fitted so far."""
        if self.callback is not None:
            self.callback("models", count, self.total)
        now = time.perf_counter()
        if count == self.total or self.verbose > 1 or now - self.last > 5.0:
            self._print(f"{count} of {self.total} {self.unit}")
            self.last = now
        for _ in range(self.ended, count if self.tasks else 0):
            self._begin(self.tasks[-1].subcontext(task_name="model"))
            self._end()
        self.ended = count

    def parts_fitted(self, weights: dict[str, float]) -> None:
        """Print the weight of each part of a `StackClassifier`."""
        if weights:
            self._print(", ".join(f"{name} {weight:.2f}" for name, weight in weights.items()))

    def end(self) -> None:
        """End the fit."""
        while self.tasks:
            self._end()
