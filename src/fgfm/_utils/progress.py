"""How far a fit is: for the user, and for the callbacks of scikit-learn 1.9."""

from __future__ import annotations

import time
from typing import Any

from fgfm._utils.watch import current_watcher

try:  # scikit-learn 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before it there are no callbacks to support

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for the mixin of scikit-learn 1.9."""

    def with_callbacks(method: Any) -> Any:
        """Stand for the decorator of scikit-learn 1.9."""
        return method


__all__ = ["CallbackSupportMixin", "Progress", "with_callbacks"]


class Progress:
    """Tells the user, and the callbacks of scikit-learn 1.9, how far the fit is."""

    def __init__(self, owner: Any, verbose: int) -> None:
        self.owner = owner
        self.verbose = verbose
        self.watcher = current_watcher()
        self.start = self.last = time.perf_counter()
        self.total = self.ended = 0
        self.root: Any = None
        self.stage: Any = None
        if hasattr(owner, "_init_callback_context"):
            self.root = owner._init_callback_context(max_subtasks=2)
            self.root.call_on_fit_task_begin(estimator=owner)
            self.stage = self.root.subcontext(task_name="label factors")
            self.stage.call_on_fit_task_begin(estimator=owner)

    def say(self, text: str) -> None:
        """Print a line with the time since the start."""
        if self.verbose:
            print(
                f"[{type(self.owner).__name__}] {text} ({time.perf_counter() - self.start:.1f} s)",
                flush=True,
            )

    def factors(self, n_factors: int, n_labels: int) -> None:
        """Note that the factors are known."""
        self.say(f"{n_labels} label(s) in {n_factors} factor(s)")
        if self.stage is not None:
            self.stage.call_on_fit_task_end(estimator=self.owner)

    def models(self, total: int) -> None:
        """Note how many models are to be fitted."""
        self.total = total
        if self.watcher is not None:
            self.watcher("models", 0, total)
        if self.root is not None:
            self.stage = self.root.subcontext(task_name="models", max_subtasks=total)
            self.stage.call_on_fit_task_begin(estimator=self.owner)

    def done(self, count: int) -> None:
        """Note how many models are fitted."""
        if self.watcher is not None:
            self.watcher("models", count, self.total)
        now = time.perf_counter()
        if count == self.total or self.verbose > 1 or now - self.last > 5.0:
            self.say(f"{count} of {self.total} models")
            self.last = now
        while self.stage is not None and self.ended < count:
            task = self.stage.subcontext(task_name="model")
            task.call_on_fit_task_begin(estimator=self.owner)
            task.call_on_fit_task_end(estimator=self.owner)
            self.ended += 1

    def end(self) -> None:
        """Note that all is done."""
        if self.root is not None:
            self.stage.call_on_fit_task_end(estimator=self.owner)
            self.root.call_on_fit_task_end(estimator=self.owner)
