"""The scikit-learn scorer of the F-measure."""

from __future__ import annotations

from typing import Any

from sklearn.metrics import make_scorer

from fgfm.metrics._f_measure import f_measure

__all__ = ["f_scorer"]

_scorer: Any = make_scorer(f_measure)


class _FScorer(type(_scorer)):  # type: ignore[misc]
    """A scorer that, called with parameters only, returns a scorer with these parameters."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if args or "estimator" in kwargs:
            return super().__call__(*args, **kwargs)
        # Validated here: cross-validation would turn the errors of a scorer into NaN.
        if not isinstance(f_measure([[1]], [[1]], **kwargs), float):
            raise ValueError(
                f"a scorer of f_measure with {kwargs!r} has several values: it must have one"
            )
        return make_scorer(f_measure, **kwargs)

    def __reduce__(self) -> str:
        return "f_scorer"  # there is one: pickles and copies refer to it


f_scorer: Any = object.__new__(_FScorer)
f_scorer.__dict__.update(_scorer.__dict__)
