"""Pipelines of scikit-learn with the further methods of the classifiers of fgfm."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from scipy import sparse
from sklearn import pipeline as sklearn_pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fgfm._old_classifier import FGFMClassifier
from fgfm._utils.rows import as_frames, frame_library, frame_maker
from fgfm.decider import FDecider
from fgfm.decision import Decision

__all__ = ["Pipeline", "make_pipeline"]


def _last_step_has(name: str) -> Callable[[Any], bool]:
    """Return the check of a method that exists if the last step has it."""

    def check(pipeline: Any) -> bool:
        getattr(pipeline.steps[-1][1], name)  # raises AttributeError
        return True

    return check


def _after_transforms(method: Callable[..., Any]) -> Any:
    """Return the method of a pipeline that calls a method of the last step."""
    name = method.__name__

    @wraps(method)
    def call(self: Pipeline, X: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.steps[-1][1], name)(self._transformed(X), *args, **kwargs)

    return available_if(_last_step_has(name))(call)


class Pipeline(sklearn_pipeline.Pipeline):  # type: ignore[misc]
    """Pipeline of scikit-learn, with all methods of a classifier of fgfm as its last step.

    The `Pipeline` of scikit-learn has the methods that all classifiers have, such as ``predict``.
    This one also has those of `FGFMClassifier`, `FDecider` and `FClassifier`, as far as the last
    step has them: `decide`, `expected_f`, `predict_frame`, `predict_cardinality_proba`,
    `estimate`, `predict_mode`, `lower_bound`, `select` and `report`. X is what the first step
    takes.

    Parameters
    ----------
    steps : list of tuples
        Names and estimators, as in scikit-learn; those of a fitted pipeline need no new fit.
    transform_input : list of str, optional
        As in scikit-learn.
    memory : str or object with joblib.Memory interface, optional
        As in scikit-learn.
    verbose : bool, default=False
        As in scikit-learn.

    See Also
    --------
    make_pipeline : A pipeline whose steps are named after their classes.
    fgfm.load : Load a model; pipelines are of this class.

    Examples
    --------
    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> from sklearn.pipeline import make_pipeline
    >>> import fgfm
    >>> texts = ["a ship lost in space", "love in Paris", "love on a ship", "Paris"] * 5
    >>> Y = [[1, 0], [0, 1], [1, 1], [0, 1]] * 5
    >>> classifier = fgfm.FGFMClassifier("ridge", random_state=0)
    >>> fitted = make_pipeline(TfidfVectorizer(), classifier).fit(texts, Y)
    >>> model = fgfm.Pipeline(fitted.steps)
    >>> model.expected_f(["a ship", "love"]).round(2)
    array([0.92, 0.89])
    """

    def _transformed(self, X: Any) -> Any:
        """Return X as the last step gets it."""
        check_is_fitted(self.steps[-1][1])
        return self[:-1].transform(X) if len(self.steps) > 1 else X

    @available_if(_last_step_has("decide"))  # type: ignore[untyped-decorator]
    def decide(self, X: Any, **params: Any) -> Decision:
        """Compute F-optimal label sets and their expected F-measure.

        Parameters
        ----------
        X : object
            Rows, as the first step takes them.
        **params : dict
            Arguments of `decide` of the last step, such as ``average`` of `FGFMClassifier`.

        Returns
        -------
        Decision
            ``labels`` and ``expected_f``, as the last step returns them; data frames or series
            with the index of X if X is a data frame or series.
        """
        last = self.steps[-1][1]
        decision: Decision = last.decide(self._transformed(X), **params)
        labels, expected_f = decision
        if frame_library(labels) is not None or sparse.issparse(labels):
            return decision
        average = params.get("average", getattr(last, "average", "samples"))
        frames = as_frames(labels, expected_f, X, last._column_names(), average)
        return Decision(*frames, decision.gap)

    @available_if(_last_step_has("expected_f"))  # type: ignore[untyped-decorator]
    def expected_f(self, X: Any) -> Any:
        """Compute the F-measure to expect of the label sets that `decide` returns.

        Parameters
        ----------
        X : object
            Rows, as the first step takes them.

        Returns
        -------
        ndarray or series of shape (n,) or (m,), or float
            One value per row; per label or one for the batch if the last step maximises these.
        """
        return self.decide(X).expected_f

    @available_if(_last_step_has("predict_frame"))  # type: ignore[untyped-decorator]
    def predict_frame(self, X: Any) -> Any:
        """Predict F-optimal label sets as a data frame.

        Parameters
        ----------
        X : object
            Rows, as the first step takes them.

        Returns
        -------
        data frame of shape (n, m)
            One column per label, with the index of X; a polars data frame if X is one, otherwise a
            pandas data frame.
        """
        make_frame = frame_maker(X, "predict_frame")
        labels = self.steps[-1][1].predict(self._transformed(X))
        labels = labels.toarray() if sparse.issparse(labels) else labels
        names = self.steps[-1][1]._column_names() if labels.ndim == 2 else ["labels"]
        return make_frame(labels, names)

    estimate = _after_transforms(FGFMClassifier.estimate)
    predict_cardinality_proba = _after_transforms(FGFMClassifier.predict_cardinality_proba)
    predict_mode = _after_transforms(FGFMClassifier.predict_mode)
    lower_bound = _after_transforms(FDecider.lower_bound)
    select = _after_transforms(FDecider.select)
    report = _after_transforms(FDecider.report)


def make_pipeline(*steps: Any, **params: Any) -> Pipeline:
    """Return a `Pipeline` whose steps are named after their classes.

    Parameters
    ----------
    *steps : estimators
        The steps.
    **params : dict
        Further parameters of `Pipeline`.

    Returns
    -------
    Pipeline
        The pipeline.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> import fgfm
    >>> fgfm.make_pipeline(StandardScaler(), fgfm.FGFMClassifier())[-1]
    FGFMClassifier()
    """
    return Pipeline(sklearn_pipeline.make_pipeline(*steps).steps, **params)


def __dir__() -> list[str]:
    return __all__
