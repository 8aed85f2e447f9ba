"""The scikit-learn scorer of the F-measure."""

from __future__ import annotations

from inspect import signature
from typing import Any

from sklearn.metrics import make_scorer

from fgfm.metrics._f_measure import f_measure

_scorer: Any = make_scorer(f_measure)


class _FScorer(type(_scorer)):  # type: ignore[misc]
    """A scorer that, called with parameters only, returns a scorer with these parameters."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if "estimator" in kwargs or len(args) > 2 or hasattr(next(iter(args), None), "predict"):
            return super().__call__(*args, **kwargs)
        names = list(signature(f_measure).parameters)[2:]
        wrong = [name for name in kwargs if name not in names]
        if args or wrong:
            found = f"{wrong[0]}={kwargs[wrong[0]]!r}" if wrong else repr(args[0])
            raise TypeError(
                f"f_scorer got {found}: it takes a fitted estimator, X and y, or parameters by "
                f"name ({', '.join(names)}), as in f_scorer(beta=2)"
            )
        # Validated here: cross-validation would turn the errors of a scorer into NaN.
        if not isinstance(f_measure([1], [1], **kwargs), float):
            raise ValueError(
                f"a scorer of f_measure with {kwargs!r} has several values: it must have one"
            )
        return make_scorer(f_measure, **kwargs)

    def __reduce__(self) -> str:
        return "f_scorer"  # there is one: pickles and copies refer to it


f_scorer: Any = object.__new__(_FScorer)
f_scorer.__dict__.update(_scorer.__dict__)
