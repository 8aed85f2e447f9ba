r"""ILF-Compo: the irreducible label factors, found by tests of conditional independence.

Label factors :math:`F_1 .. F_n` partition the labels such that they are independent of each other
given the features. There is a finest such partition. Under the Composition property (if Y is
independent of A and of B, then of both together) labels i and j are in the same factor if and only
if a path of pairwise dependent labels joins them (Gasse, Aussem and Elghazel, 2015).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from fgfm._utils.blocks import n_threads
from fgfm._utils.names import check_same_index
from fgfm._utils.validation import check_choice, check_count, check_fraction
from fgfm.factors._contingency import count_levels
from fgfm.factors._feature_types import (
    as_numbers,
    has_missing,
    is_discrete,
    rows_in_populated_strata,
)
from fgfm.factors._g_test import KINDS
from fgfm.factors._gcm import pairs_by_gcm
from fgfm.factors._label_graph import CORRECTIONS, group_labels
from fgfm.factors._mutual_information import pairs_given_boundaries
from fgfm.factors._pairwise import PairwiseResult, check_labels

_TESTS = ("auto", *KINDS, "gcm")
_AUTO_DISCRETE = "moments"  # "auto" for discrete features: keeps its level where "mi" does not
_ROWS_PER_FEATURE = 5  # with fewer rows "auto" takes "gcm"
_POPULATED_SHARE = 0.5  # with a smaller share of rows in populated strata as well


class ILFCompo(BaseEstimator):  # type: ignore[misc]
    r"""Find the irreducible label factors: which labels must be modelled together.

    The irreducible label factors are the finest partition of the labels with

    .. math:: p(y \mid x) = \prod_k p(y_{F_k} \mid x).

    Every pair of labels is tested for independence given the features, dependent labels are joined
    by an edge, and the factors are the connected components.

    Parameters
    ----------
    test : {"auto", "mi", "moments", "gcm"}, default="auto"
        Test of pairs of labels.

        - "mi": G tests given the Markov boundary of one of the two labels (`markov_boundary`), for
          discrete features, with the exact mean of G as degrees of freedom (`g_test`): the paper's
          test without the noise of its random tables;
        - "moments": the same with the exact mean and variance of G. With small strata "mi" rejects
          far more rarely than alpha, and finds less; this test keeps its level;
        - "gcm": the generalised covariance measure (Shah and Peters, 2020), for any features;
          categories are one-hot encoded, and missing numbers replaced by the mean, with an
          indicator. It finds linear effects at any sample size, curves and steps from about 200
          rows, but pure interactions of continuous features only from some thousand rows;
        - "auto": "moments" if the features are integers or categories with at most `max_levels`
          levels, there are five rows or more for each feature, and half of the rows or more are in
          strata of five rows or more; otherwise "gcm".

        For p-values of another test: `group_labels`.
    alpha : float, default=0.01
        Two labels are dependent if their p-value, corrected, is at most alpha. It is also the
        level of the tests that select features, which are not corrected.
    correction : {None, "bonferroni", "bh"}, default="bonferroni"
        Correction of the p-values for the number of pairs: Bonferroni; Benjamini-Hochberg; or
        none, as in the paper. A single false edge merges two factors, so
        that the probability of any false edge matters: with m unrelated labels it is at most alpha
        by Bonferroni, and without a correction close to 1 - (1 - alpha)^(m (m - 1) / 2), 0.36 for
        10 labels and 1.00 for 40. A pair that is tested twice, given the Markov boundary of either
        label, counts as two: m (m - 1) tests in all.
    max_factor_size : int, optional
        Largest number of labels in a factor. The weakest edges of a larger factor are cut: those
        with the largest p-value first, then with the smallest effect, then by index.
    max_levels : int, default=10
        Largest number of levels of a discrete feature.
    n_jobs : int, optional
        Number of jobs, as in joblib. The result does not depend on it.
        ``joblib.parallel_config(verbose=10)`` reports progress.
    random_state : int, RandomState instance or None, default=0
        Seed of tests that draw random numbers ("gcm": its forest and its groups of rows). By
        default the same data give the same factors each time; None draws a new seed.

    Attributes
    ----------
    factors_ : list of ndarray
        The labels of each factor, ordered by their first label.
    p_values_ : ndarray of shape (m, m)
        ``p_values_[i, j]`` is the p-value of label i against label j, as tested for label i, not
        corrected; NaN on the diagonal. Symmetric if the test is.
    edge_p_values_ : ndarray of shape (m, m)
        The p-value of each possible edge, symmetric and corrected; edges have at most `alpha`.
    effects_ : ndarray of shape (m, m)
        Strength of the dependence in the unit of the test: for G tests the empirical conditional
        mutual information in nats, for "gcm" the correlation of the residuals.
    graph_ : sparse array of shape (m, m)
        The edges, symmetric; its connected components are the factors.
    cuts_ : list of Cut
        The edges (i, j, p_value) that `max_factor_size` removed, weakest first.
    markov_boundaries_ : list of ndarray, or None
        The features conditioned on for each label, if the test selects features.
    test_ : str
        The test that was used.
    label_names_in_ : ndarray of shape (m,)
        Names of the labels, if Y has names.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features, if X has names.

    See Also
    --------
    group_labels : Factors from p-values that are given.
    factors_from_dag : Factors of a known graph.

    Notes
    -----
    Without the Composition property the graph can only miss edges, so that factors come out too
    small, never too large; the standard example is y1 = y2 xor y3. A constant label is a factor by
    itself.

    Examples
    --------
    >>> import numpy as np
    >>> from fgfm.factors import ILFCompo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (1000, 4))
    >>> Y = X[:, [0, 0, 1, 2]] ^ (rng.random((1000, 4)) < 0.2)  # 0 and 1: the same feature
    >>> Y[:, 3] |= Y[:, 1]
    >>> ilf = ILFCompo().fit(X, Y)
    >>> ilf.factors_
    [array([0]), array([1, 3]), array([2])]
    >>> ilf.markov_boundaries_
    [array([0]), array([0]), array([1]), array([0, 2])]
    """

    def __init__(
        self,
        test: Any = "auto",
        alpha: float = 0.01,
        *,
        correction: str | None = "bonferroni",
        max_factor_size: int | None = None,
        max_levels: int = 10,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.test = test
        self.alpha = alpha
        self.correction = correction
        self.max_factor_size = max_factor_size
        self.max_levels = max_levels
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, Y: Any) -> ILFCompo:
        """Find the label factors.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Features.
        Y : array-like, sparse matrix or data frame of shape (n, m)
            Labels, 0 or 1. A single label may be a flat array.

        Returns
        -------
        ILFCompo
            The fitted estimator.
        """
        alpha = self._check_parameters()
        if Y is None:
            raise ValueError("Y is None: ILFCompo requires y to be passed, the labels, 0 or 1")
        names = getattr(Y, "columns", None)
        check_same_index(X=X, Y=Y)
        X = self._validate_features(X)
        labels = check_labels(Y, X.shape[0])  # (n, m)
        self.__dict__.pop("label_names_in_", None)  # of an earlier fit
        if names is not None:
            self.label_names_in_ = np.asarray([str(name) for name in names], dtype=object)
        varies = np.asarray(labels.any(axis=0) & ~labels.all(axis=0))  # (m,)
        result = self._test_pairs(X, labels, alpha)
        grouping = group_labels(
            result.p_values,
            alpha,
            correction=self.correction,
            effects=result.effects,
            tested=varies[:, None] & varies,
            max_factor_size=self.max_factor_size,
        )
        self.p_values_ = result.p_values
        self.effects_ = result.effects
        self.markov_boundaries_ = result.markov_boundaries
        self.factors_, self.graph_, self.cuts_, self.edge_p_values_ = grouping
        return self

    def _validate_features(self, X: Any) -> Any:
        """Validate features; data frames with other columns than numbers become object arrays."""
        if hasattr(X, "columns"):
            validate_data(self, X, skip_check_array=True)
            numeric = all(
                getattr(t, "kind", "O") in "biuf" and isinstance(t, np.dtype)
                for t in getattr(X, "dtypes", [None])
            )
            if not numeric:  # nullable numbers, categories or dates
                values = [list(X[name]) for name in X.columns]
                X = np.empty((len(values[0]), len(values)), dtype=object)
                for j, column in enumerate(values):
                    X[:, j] = column
                return X
        return validate_data(
            self,
            X,
            accept_sparse=("csr", "csc"),
            dtype=None,
            ensure_all_finite="allow-nan",
        )

    def _test_pairs(self, X: Any, Y: npt.NDArray[np.bool_], alpha: float) -> PairwiseResult:
        """Test all pairs, by the test that was requested or that suits the features."""
        if self.test in KINDS:
            if has_missing(X):
                raise ValueError(
                    f"X has missing values: with test={self.test!r} it must not have any; encode "
                    "them as one more level"
                )
            levels = count_levels(X)  # before encoding, which allocates an indicator per level
            wide = np.flatnonzero(levels > self.max_levels)
            if len(wide):
                raise ValueError(
                    f"X[:, {wide[0]}] has {levels[wide[0]]} levels: discrete features "
                    f"must not have more than max_levels={self.max_levels}; discretise it, or "
                    "use a test for continuous features (test='gcm')"
                )
            self.test_ = self.test
            return pairs_given_boundaries(X, Y, alpha, self.test_, self.n_jobs)
        if self.test == "auto" and self._suits_g_tests(X):
            self.test_ = _AUTO_DISCRETE
            result = pairs_given_boundaries(X, Y, alpha, self.test_, self.n_jobs)
            boundaries = result.markov_boundaries or []
            if rows_in_populated_strata(X, boundaries) >= _POPULATED_SHARE:
                return result
        self.test_ = "gcm"
        return pairs_by_gcm(as_numbers(X), Y, self.random_state, self.n_jobs)

    def _suits_g_tests(self, X: Any) -> bool:
        """Return True if the features are discrete, without missing values, and not too many."""
        if X.shape[0] < _ROWS_PER_FEATURE * X.shape[1] or has_missing(X):
            return False
        return is_discrete(X, self.max_levels)

    def _check_parameters(self) -> float:
        """Validate the parameters, and return alpha as a float."""
        check_choice(self.correction, "correction", CORRECTIONS)
        check_choice(self.test, "test", _TESTS)
        if self.max_factor_size is not None:
            check_count(self.max_factor_size, "max_factor_size", 1)
        check_count(self.max_levels, "max_levels", 1)
        n_threads(self.n_jobs)
        return check_fraction(self.alpha, "alpha")
