r"""ILF-Compo: the irreducible label factors, found by tests of conditional independence.

Label factors :math:`F_1 .. F_n` partition the labels such that, given the features, they are
independent of each other. There is a finest such partition. Under the Composition property (if Y
is independent of A and of B, then of both together) labels i and j belong to the same factor if
and only if a path of pairwise dependent labels joins them (Gasse, Aussem and Elghazel, 2015).

References
----------
Gasse, M., Aussem, A. and Elghazel, H. (2015). On the Optimality of Multi-Label Classification
under Subset Zero-One Loss for Distributions Satisfying the Composition Property. ICML 2015.

Gasse, M. and Aussem, A. (2016). Identifying the Irreducible Disjoint Factors of a Multivariate
Probability Distribution. PGM 2016.
"""

from __future__ import annotations

import numbers
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import validate_data

from fgfm._utils.blocks import n_threads
from fgfm._utils.progress import current_callback
from fgfm._utils.validation import check_choice, check_same_rows, label_sets
from fgfm.factors._graph import CORRECTIONS, group_labels
from fgfm.factors._iamb import check_alpha
from fgfm.factors._suitability import (
    as_numbers,
    has_missing,
    is_discrete,
    rows_in_populated_strata,
)
from fgfm.factors.independence import PairwiseResult
from fgfm.factors.mutual_information import MutualInformation

__all__ = ["ILFCompo"]

_TESTS = ("auto", "mi", "moments", "g", "gcm")
_DISCRETE = "moments"  # what "auto" takes for discrete features: calibrated where "mi" is not
_ROWS_PER_INDICATOR = 5  # "auto" calls features with fewer rows wide
_POPULATED_SHARE = 0.5


class ILFCompo(BaseEstimator):  # type: ignore[misc]
    r"""Find out which labels must be modelled together given the features.

    The irreducible label factors are the finest partition of the labels with

    .. math:: p(y \mid x) = \prod_k p(y_{F_k} \mid x).

    Every pair of labels is tested for independence given the features, dependent labels are joined
    by an edge, and the factors are the connected components.

    Parameters
    ----------
    test : {"auto", "mi", "moments", "g", "gcm"} or object, default="auto"
        How pairs are tested.

        - "mi": G tests given the Markov boundary of one of the two labels, for discrete features,
          with the exact mean of G as degrees of freedom (`MutualInformation`): the paper's test,
          but for the noise of its random tables;
        - "moments": the same with the exact mean and variance of G. Where strata are small, "mi"
          rejects far more rarely than alpha says, and finds less; this test keeps its level;
        - "g": the same with asymptotic degrees of freedom;
        - "gcm": the generalised covariance measure, for any features (`GCM`); names are one-hot,
          and missing numbers the mean beside an indicator;
        - "auto": "moments" where the features hold whole numbers or names with at most
          `max_levels` levels, there are five rows or more for each feature, and half of the rows
          or more are in strata of five rows or more; else "gcm";
        - an object with a method ``pairs``, as `PairwiseTest` says.
    alpha : float, default=0.01
        Two labels are dependent if their p-value, corrected, is at most alpha. It is also the
        level of the tests that select features, which are not corrected.
    rule : {"or", "and"}, default="or"
        Each pair is tested twice, given what matters to the one label and to the other. Draw an
        edge if either test rejects, or only if both do.
    correction : {None, "bonferroni", "bh", "by"}, default="bonferroni"
        Correct the p-values for the number of pairs: by Bonferroni; by Benjamini-Hochberg or
        Benjamini-Yekutieli; or not at all, as the paper does. One false edge merges two factors,
        so that what counts is the chance of any false edge: with m unrelated labels it is alpha
        at most by Bonferroni, and without a correction close to 1 - (1 - alpha)^(m (m - 1) / 2),
        0.36 for 10 labels and 1.00 for 40. A pair that is tested twice counts as two by rule
        "or", m (m - 1) tests in all, and as one by rule "and".
    max_factor_size : int, optional
        Most labels in a factor. The weakest edges of a larger factor are cut: those with the
        largest p-value first, then with the smallest effect, then by index.
    method : {"composition", "general"}, default="composition"
        "general" assumes no Composition property: labels are tested in order, given all earlier
        ones and those found independent so far. Its conditioning sets grow with the number of
        labels, so that it needs many rows. For discrete features only.
    max_levels : int, default=10
        Most levels of a discrete feature.
    n_jobs : int, optional
        Number of jobs, in joblib's meaning. The result does not depend on it.
    random_state : int, RandomState instance or None, default=0
        For tests that draw random numbers ("gcm": its forest and its groups of rows). By default
        the same data give the same factors each time; None draws anew.
    verbose : int, default=0
        Report progress on standard error.

    Attributes
    ----------
    factors_ : list of ndarray
        The labels of each factor, ordered by their first label.
    p_values_ : ndarray of shape (m, m)
        ``p_values_[i, j]`` is the p-value of label i against label j, as tested for label i, not
        corrected; NaN on the diagonal. A test that has no direction gives a symmetric matrix.
    effects_ : ndarray of shape (m, m)
        Strength of the dependence in the unit of the test: for G tests the empirical
        conditional mutual information in nats.
    graph_ : sparse array of shape (m, m)
        The edges, symmetric; its connected components are the factors.
    cuts_ : list of (int, int, float)
        The edges (i, j) that `max_factor_size` removed, with their p-values, weakest first.
    markov_boundaries_ : list of ndarray, or None
        The features that were conditioned on for each label, where the test selects any.
    test_ : object
        The test that was used.
    label_names_in_ : ndarray of shape (m,)
        Names of the labels, where Y has them.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (d,)
        Their names, where X has them.

    See Also
    --------
    factors_from_dag : The factors of a known graph.

    Notes
    -----
    Without the Composition property the graph can only miss edges, so that factors come out too
    small, never too large; the standard example is y1 = y2 xor y3. A label that is constant is a
    factor by itself.

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
        rule: str = "or",
        *,
        correction: str | None = "bonferroni",
        max_factor_size: int | None = None,
        method: str = "composition",
        max_levels: int = 10,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.test = test
        self.alpha = alpha
        self.rule = rule
        self.correction = correction
        self.max_factor_size = max_factor_size
        self.method = method
        self.max_levels = max_levels
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

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
            Labels, 0 or 1. One label may be a flat array.

        Returns
        -------
        ILFCompo
            The estimator itself.
        """
        alpha = self._check_parameters()
        if Y is None:
            raise ValueError("Y is None: ILFCompo requires y to be passed, the labels, 0 or 1")
        names = getattr(Y, "columns", None)
        labels = label_sets(Y, "Y", allow_flat=True)  # (n, m)
        X = self._read_features(X)
        n = check_same_rows([X.shape[0], labels.shape[0]], ["X", "Y"])
        if sparse.issparse(labels):
            labels = labels.toarray()
        labels = labels.astype(bool)
        self.__dict__.pop("label_names_in_", None)  # of an earlier fit
        if names is not None:
            self.label_names_in_ = np.asarray([str(name) for name in names], dtype=object)
        ones = labels.sum(axis=0)
        varies = (ones > 0) & (ones < n)
        tested = varies[:, None] & varies
        result = self._pairs(X, labels, alpha, int(varies.sum()))
        grouping = group_labels(
            result.p_values,
            result.effects,
            alpha,
            self.rule,
            correction=self.correction,
            tested=tested,
            max_factor_size=self.max_factor_size,
        )
        self.p_values_ = result.p_values
        self.effects_ = result.effects
        self.markov_boundaries_ = result.markov_boundaries
        self.factors_, self.graph_, self.cuts_ = grouping
        return self

    def _read_features(self, X: Any) -> Any:
        """Give features as an array of numbers, or of any values, or as a sparse matrix."""
        if hasattr(X, "columns"):  # a frame: nullable numbers, names and moments side by side
            validate_data(self, X, skip_check_array=True)
            plain = all(
                getattr(t, "kind", "O") in "biuf" and isinstance(t, np.dtype)
                for t in getattr(X, "dtypes", [None])
            )
            if not plain:
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

    def _pairs(
        self, X: Any, Y: npt.NDArray[np.bool_], alpha: float, n_varied: int
    ) -> PairwiseResult:
        """Test all pairs, by the test that was asked for or that suits the features."""
        options = {"n_jobs": self.n_jobs, "progress": _progress(self.verbose)}
        if (self.test in ("mi", "moments", "g") or self.method == "general") and has_missing(X):
            raise ValueError(
                f"X has missing values: with test={self.test!r} and method={self.method!r} it "
                "must have none; give them a level of their own"
            )
        if self.method == "general":
            df = _DISCRETE if self.test == "auto" else self.test
            pairs = max(1, n_varied * (n_varied - 1) // 2)
            level = alpha / pairs if self.correction == "bonferroni" else alpha
            self.test_ = MutualInformation(alpha, df, max_levels=self.max_levels)
            return self.test_.ordered_pairs(X, Y, level=level, **options)
        if self.test in ("mi", "moments", "g"):
            self.test_ = MutualInformation(alpha, self.test, max_levels=self.max_levels)
            return self.test_.pairs(X, Y, **options)
        if self.test == "auto" and self._is_discrete(X):
            self.test_ = MutualInformation(alpha, _DISCRETE)
            result = self.test_.pairs(X, Y, **options)
            boundaries = result.markov_boundaries or []
            if rows_in_populated_strata(X, boundaries) >= _POPULATED_SHARE:
                return result
            self.test_ = self._gcm()
        elif isinstance(self.test, str):
            self.test_ = self._gcm()
        else:
            self.test_ = _seeded(self.test, self.random_state)
            return self._checked(self.test_.pairs(X, Y, **options), Y.shape[1])
        return self._checked(self.test_.pairs(as_numbers(X), Y, **options), Y.shape[1])

    def _is_discrete(self, X: Any) -> bool:
        """Tell whether the G tests suit the features."""
        if X.shape[0] < _ROWS_PER_INDICATOR * X.shape[1] or has_missing(X):
            return False
        return is_discrete(X, self.max_levels)

    def _gcm(self) -> Any:
        from fgfm.factors.gcm import GCM

        return GCM(random_state=self.random_state, n_jobs=self.n_jobs)

    @staticmethod
    def _checked(result: Any, m: int) -> PairwiseResult:
        """Give the result of a test that may be the user's."""
        p_values, effects, boundaries = result
        for name, matrix in (("p_values", p_values), ("effects", effects)):
            if np.shape(matrix) != (m, m):
                raise ValueError(
                    f"test.pairs gave {name} of shape {np.shape(matrix)}: "
                    f"with {m} labels it must be {(m, m)}"
                )
        return PairwiseResult(np.asarray(p_values), np.asarray(effects), boundaries)

    def _check_parameters(self) -> float:
        check_choice(self.rule, "rule", ("or", "and"))
        check_choice(self.correction, "correction", CORRECTIONS)
        check_choice(self.method, "method", ("composition", "general"))
        if isinstance(self.test, str):
            check_choice(self.test, "test", _TESTS)
        elif isinstance(self.test, type) or not callable(getattr(self.test, "pairs", None)):
            raise TypeError(
                f"test is {self.test!r}: it must be one of {', '.join(map(repr, _TESTS))}, "
                "or an object (an instance) with a method pairs(X, Y, *, n_jobs, progress)"
            )
        if self.method == "general":
            if self.test not in ("auto", "mi", "moments", "g"):
                raise ValueError(
                    f"test is {self.test!r}: with method='general' it must be 'auto', 'mi', "
                    "'moments' or 'g'"
                )
            if self.correction in ("bh", "by"):
                raise ValueError(
                    f"correction is {self.correction!r}: with method='general', where one test "
                    "decides about the next, it must be None or 'bonferroni'"
                )
        if self.max_factor_size is not None:
            _check_count(self.max_factor_size, "max_factor_size", "None or ")
        _check_count(self.max_levels, "max_levels")
        n_threads(self.n_jobs)
        return check_alpha(self.alpha)


def _seeded(test: Any, seed: Any) -> Any:
    """Give the user's test our seed where it has none; the user's own object stays as it is."""
    if getattr(test, "random_state", seed) is not None:
        return test
    return clone(test).set_params(random_state=seed) if hasattr(test, "get_params") else test


def _check_count(value: Any, name: str, beside: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{name} is {value!r}: it must be {beside}an integer greater than 0")


def _progress(verbose: int) -> Any:
    """Give what reports progress, in print ten times at most; None where nobody wants it."""
    watcher = current_callback()
    if not verbose and watcher is None:
        return None
    shown = -1

    def report(done: int, total: int) -> None:
        nonlocal shown
        if watcher is not None:
            watcher("label factors", done, total)
        if not verbose:
            return
        tenth = 10 * done // max(1, total)
        if tenth != shown:
            shown = tenth
            print(f"[ILFCompo] {done} of {total} steps", file=sys.stderr, flush=True)

    return report
