"""`RidgeLogistic`: the learner of the paper as a scikit-learn classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from fgfm._utils.names import check_same_index
from fgfm._utils.parameters import check_parameters, record_parameters
from fgfm.ridge._fit import PENALTIES, fit_ridge_logistic
from fgfm.ridge._solver import softmax_probabilities

__all__ = ["RidgeLogistic"]

Floats = npt.NDArray[np.float64]


class RidgeLogistic(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Ridge logistic regression with the penalty chosen by cross-validated log-loss.

    For K classes and weights W, minimise

    .. math::

        - \sum_i w_i \log p(y_i \mid x_i) + \lambda \sum_{kj} W_{kj}^2

    on the training rows of each fold, for each penalty :math:`\lambda`; take the penalty with the
    least log-loss on test rows, averaged over folds; and minimise the objective on all rows.
    Penalties are tried from the largest to the smallest; a model of more than 300 unknowns stops
    once that loss has fallen and then exceeds its least by 5 %. Scale your features: the penalty
    is the same for all of them.

    Parameters
    ----------
    penalties : array-like of shape (L,), optional
        The grid, positive; 1e-4, 1e-3, ..., 1e3 by default. Of penalties with the same loss the
        first in the grid is taken.
    cv : int, scikit-learn splitter or iterable of (train, test), default=3
        An integer makes shuffled folds, not stratified, and at most as many as there are rows. A
        splitter is passed the rows of positive weight.
    penalize_intercept : bool, default=False
        Count the intercepts among the weights W.
    reference_class : bool, default=False
        If K > 2, fix the weights of the first class at 0 instead of giving weights to all classes.
    max_iter : int, default=100
        Largest number of Newton steps of a fit.
    tol : float, default=1e-5
        A fit ends with a Newton step after which the expected error of the logits is at most the
        square of `tol`.
    random_state : int, RandomState instance or None, default=None
        Shuffles the folds if `cv` is an integer.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The classes.
    coef_ : ndarray of shape (1, p) or (K, p)
        Weights: of the second class against the first if K = 2, of every class if K > 2.
    intercept_ : ndarray of shape (1,) or (K,)
        Intercepts.
    penalty_ : float
        The chosen penalty.
    penalties_ : ndarray of shape (L,)
        The grid.
    cv_losses_ : ndarray of shape (folds, L)
        Mean log-loss on the test rows of each fold for each penalty; inf for penalties that were
        not tried.
    n_iter_ : int
        Largest number of iterations of a fit.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (p,)
        Their names, if X has them.

    Notes
    -----
    Equal rows are grouped, and the folds are weights on the groups. Penalties are fitted from the
    largest to the smallest, each with a warm start. A model with at most 300 unknowns,
    (columns + 1) (K - 1), is fitted by Newton steps with a Cholesky factor and a line search.
    Columns beyond the number of rows do not count, because the weights are rotated into the span
    of the rows.

    Steps of larger models are solved for by conjugate gradients, on the principal axes of up to
    1024 dense columns. With sparse features a step is in single precision where twice the penalty
    is at least 1e-5 of the largest curvature; gradients, losses and the stopping rule are in
    double precision. When the mean loss has been less than that of the largest penalty, and
    exceeds the least so far by 5 % (and by 1e-6), smaller penalties are not tried, and their
    losses are inf. A loss that would fall once more, below its least, is missed.

    A class without training rows in a fold gets the probability 0 there, and the only class of a
    fold the probability 1; probabilities are clipped to [1e-15, 1 - 1e-15]. A target with one
    class in all needs no model.

    Conventions elsewhere, for the same minimum:

    ============================================ =================================================
    here                                         there
    ============================================ =================================================
    ``penalties=[c]``                            ``sklearn.linear_model.LogisticRegression(
                                                 C=1 / (2 * c))``
    ``penalize_intercept=True``,                 ``nnet::multinom(decay = c)`` in R, which the
    ``reference_class=True``                     paper's experiments use
    ============================================ =================================================

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fgfm.ridge import RidgeLogistic
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RidgeLogistic(random_state=0).fit(X, y)
    >>> model.penalty_
    0.01
    >>> round(model.score(X, y), 2)
    0.98
    >>> RidgeLogistic(penalties=[1.0, -1.0]).fit(X, y)
    Traceback (most recent call last):
        ...
    ValueError: penalties[1] is -1.0: penalties must be finite and greater than 0
    """

    def __init__(
        self,
        penalties: Any = None,
        *,
        cv: Any = 3,
        penalize_intercept: bool = False,
        reference_class: bool = False,
        max_iter: int = 100,
        tol: float = 1e-5,
        random_state: Any = None,
    ) -> None:
        self.penalties = penalties
        self.cv = cv
        self.penalize_intercept = penalize_intercept
        self.reference_class = reference_class
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeLogistic:
        """Choose the penalty and fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.
        y : array-like of shape (n,)
            Classes.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, in the fit and in the log-loss. Weight 0 removes a row.

        Returns
        -------
        RidgeLogistic
            The fitted estimator.
        """
        check_same_index(X=X, y=y, sample_weight=sample_weight)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        y = column_or_1d(y, warn=True)
        check_classification_targets(y)
        params = self.get_params(deep=False)
        (fit,) = fit_ridge_logistic(X, [y], sample_weight=sample_weight, **params)
        grid = PENALTIES if self.penalties is None else self.penalties
        self.penalties_ = np.array(grid, dtype=np.float64)
        self.classes_ = fit.classes
        self.coef_ = fit.coef
        self.intercept_ = fit.intercept
        self.penalty_ = fit.penalty
        self.cv_losses_ = fit.cv_losses
        self.n_iter_ = fit.n_iter
        record_parameters(self)
        return self

    def _logits(self, X: Any) -> Floats:
        check_is_fitted(self)
        check_parameters(self, ())
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_.T + self.intercept_)

    def decision_function(self, X: Any) -> Floats:
        """Compute the logits.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            The logit of the second class if there are two, else one logit per class.
        """
        logits = self._logits(X)
        return logits[:, 0] if logits.shape[1] == 1 else logits

    def predict_proba(self, X: Any) -> Floats:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities; rows sum to 1.
        """
        return softmax_probabilities(self._logits(X), len(self.classes_))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the most probable class.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n,)
            Classes; the first of equally probable ones.
        """
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])
