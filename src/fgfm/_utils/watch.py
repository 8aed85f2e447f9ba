"""Who is told how far a long computation is, however deep inside a pipeline it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["Watcher", "current_watcher", "watched"]

Watcher = Callable[[str, int, int], object]  # what is done, how many of it, of how many

_watcher: ContextVar[Watcher | None] = ContextVar("fgfm_watcher", default=None)


def current_watcher() -> Watcher | None:
    """Give who is to be told, if anybody is."""
    return _watcher.get()


@contextmanager
def watched(watcher: Watcher | None) -> Iterator[None]:
    """Have a function told how far fits are, as long as the context lasts.

    Parameters
    ----------
    watcher : callable or None
        Called with what is done ("label factors", "models"), how many are done, and how many
        there are.

    Yields
    ------
    None
        Nothing.

    Examples
    --------
    >>> from fgfm import FGFMClassifier
    >>> seen = []
    >>> with watched(lambda *step: seen.append(step)):
    ...     _ = FGFMClassifier(factors="single").fit([[0], [0], [1]], [[1, 0], [1, 0], [0, 1]])
    >>> seen[0], seen[-1]
    (('models', 0, 3), ('models', 3, 3))
    """
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)
