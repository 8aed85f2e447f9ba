"""The public functions: documentation, parameters, and the problem that each of them states."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from fgfm._utils.names import check_same_index
from fgfm._utils.rows import frame_library
from fgfm._utils.validation import (
    check_distribution_count,
    check_flag,
    check_numbered_columns,
    label_sets,
    part_list,
    stacked_classes,
    tolerance,
)
from fgfm.cardinality._build import check_set_names
from fgfm.decision._arrays import is_foreign, to_host
from fgfm.decision._constraints import Constraints
from fgfm.decision._factors import Cardinalities, Factors, LabelSets
from fgfm.decision._marginals import Marginals
from fgfm.decision._objective import Decision, Objective
from fgfm.decision._problem import check_array_types, decide_arrays

_ENOUGH_ROWS = 3  # fewer may sum to 1 by chance


def from_marginals(
    proba: Any,
    *,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    measure: str = "f",
    average: str = "samples",
    min_labels: int = 0,
    max_labels: int | None = None,
    constraints: Constraints | None = None,
    min_precision: float | None = None,
    min_recall: float | None = None,
    missed: Any = None,
    logits: bool = False,
    n_jobs: int | None = None,
) -> Decision:
    r"""Decide from marginal probabilities, assuming labels independent given the row.

    Maximises :math:`E[F_\beta(y, h)]` over all label sets h for
    :math:`p(y) = \prod_i p_i^{y_i} (1 - p_i)^{1 - y_i}`. The best set of each size holds the most
    probable labels; all sizes that can be optimal are compared, in time linear in the number of
    labels.

    Parameters
    ----------
    proba : array-like, sparse matrix or data frame of shape (n, m) or (n,)
        The probability of each label. Entries that a sparse matrix does not store are 0. CSR is
        read in place, block by block, with the entries of a row in any order; other sparse formats
        are converted to CSR. 1-D probabilities, or a series, are those of a binary classifier: one
        problem over all rows, whatever the `average`. A list of m arrays of shape (n, 2), as
        ``predict_proba`` of scikit-learn's forests returns, holds both classes of each label.
    beta : float, default=1.0
        Recall is considered `beta` times as important as precision.
    zero_division : float, default=1.0
        The value of 0/0, an empty decision where the true set is empty, from 0 to 1. It is 1 in
        the definition above, and 0 by default in scikit-learn.
    nonempty : bool, default=False
        Condition on the true set not being empty, for the decision and its expectation. A row in
        which no label is possible contradicts this condition: it gets the empty set, an
        expectation of NaN, and a warning.
    measure : {"f", "jaccard"}, default="f"
        The measure whose expectation is maximised: :math:`F_\beta`, or the Jaccard index
        :math:`|y \cap h| / |y \cup h|` (intersection over union), for which `beta` must be 1.
    average : {"samples", "macro", "weighted", "micro"}, default="samples"
        The F-measure to maximise: of each row; of each label over all rows, with equal weights or
        weighted by the number of positives; or of all entries together. `zero_division` and
        `nonempty` apply to each problem: row, label, or batch.
    min_labels, max_labels : int, default=0 and None
        The least and the largest number of labels to decide for; None is no limit. With
        `min_labels` of 1 or more the empty set is not allowed, but expectations are not
        conditioned as with `nonempty`. They are numbers per row for every `average`; with
        ``"macro"`` and ``"weighted"`` the decision's ``gap`` bounds the distance to the optimum.
    constraints : Constraints, default=None
        Further constraints on the label sets: labels that are required, forbidden, exclude each
        other or imply each other, and costs of labels. ``expected_f`` does not include the costs.
        Only for ``average="samples"``.
    min_precision, min_recall : float, default=None
        The least expected precision :math:`E[|y \cap h| / |h|]` and recall
        :math:`E[|y \cap h| / |y|]` of each decision, at the level of `average`; 0/0 has the value
        `zero_division`. The decision is the best one that has both. Where only the empty set is
        left, a warning says what was possible, unless it is the best set anyway.
    missed : float or array-like of shape (N + 1,) or (n, N + 1), default=None
        True items that no label stands for, such as those below the end of a top-k list: the rate
        of a Poisson distribution of their number in a row, the probabilities of 0 to N of them,
        or these for each row. 1-D `proba` is one problem, and so are the items it misses. Not for
        ``average="macro"`` and ``"weighted"``.
    logits : bool, default=False
        Whether `proba` holds logits, of which the probabilities are the sigmoid.
    n_jobs : int, default=None
        The number of threads, as in joblib. It does not change the result.

    Returns
    -------
    Decision
        ``labels`` of the shape of `proba`, and ``expected_f`` (the expected Jaccard index, if that
        is the measure) of shape (n,), of shape (m,) for ``"macro"`` and ``"weighted"``, a number
        for ``"micro"`` and for 1-D `proba`. Arrays; CSR labels if `proba` is sparse; a data frame
        and a series if it is a pandas or polars data frame; Dask arrays if it is a Dask array.

    See Also
    --------
    from_factors : Decisions where groups of labels depend on each other.
    from_classes : One class for each row.
    fgfm.cardinality.of_marginals : Marginals combined with a model of the number of labels.

    Notes
    -----
    The published algorithm (Ye, Chai, Lee and Chieu, ICML 2012) takes quadratic time.

    ``np.array(predict_proba(X))[:, :, 1]`` of a forest is (label, row): transposed. If there are
    as many rows as labels this cannot be detected; pass the list itself.

    Only this function has ``measure="jaccard"``. For independent labels hits and true labels
    outside h are independent, so that :math:`E[J(y, h)] = \sum_{i \in h} p_i \; E[1 / (|h| + S)]`
    with S the number of true labels outside h; the best set of each size again holds the most
    probable labels. For dependent labels the expectation is not determined by the probabilities
    :math:`p(y_i = 1, |y| = s)` from which the other functions decide.

    Examples
    --------
    >>> import fgfm
    >>> labels, expected_f = fgfm.decision.from_marginals([[0.8, 0.45, 0.4], [0.1, 0.2, 0.05]])
    >>> labels
    array([[1, 1, 1],
           [0, 0, 0]], dtype=int8)
    >>> expected_f.round(4)
    array([0.6674, 0.684 ])

    The largest macro F1, and the largest F1 of a binary classifier:

    >>> proba = [[0.8, 0.1], [0.4, 0.2], [0.3, 0.1]]
    >>> fgfm.decision.from_marginals(proba, average="macro").labels
    array([[1, 0],
           [1, 0],
           [0, 0]], dtype=int8)
    >>> labels, expected_f = fgfm.decision.from_marginals([0.8, 0.4, 0.1])
    >>> labels, round(float(expected_f), 4)
    (array([1, 1, 0], dtype=int8), 0.6776)

    The best set for F need not be the best one for the Jaccard index:

    >>> proba = [[0.7, 0.4], [0.7, 0.5]]
    >>> fgfm.decision.from_marginals(proba).labels
    array([[1, 1],
           [1, 1]], dtype=int8)
    >>> labels, expected_jaccard = fgfm.decision.from_marginals(proba, measure="jaccard")
    >>> labels
    array([[1, 0],
           [1, 1]], dtype=int8)
    >>> expected_jaccard.round(4)
    array([0.56, 0.6 ])

    The best set whose precision is expected to be 0.7 or more; a list of ten candidates of which
    three relevant ones are expected to be missing:

    >>> fgfm.decision.from_marginals([[0.8, 0.45, 0.4]], min_precision=0.7).labels
    array([[1, 0, 0]], dtype=int8)
    >>> candidates = [0.95, 0.9, 0.8, 0.7, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05]
    >>> labels, expected_f = fgfm.decision.from_marginals(candidates, missed=3.0)
    >>> int(labels.sum()), round(float(expected_f), 4)
    (6, 0.6249)
    """
    columns = getattr(proba, "columns", None)
    limits = (min_labels, max_labels, constraints, columns)
    floors = (min_precision, min_recall)
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs, *limits, measure, *floors)
    shared: dict[str, Any] = {"logits": check_flag(logits, "logits")}
    if getattr(proba, "ndim", 0) != 2:
        proba = stacked_classes(proba, logits=logits)
    short = type(proba) is np.ndarray and proba.shape[:1] < (_ENOUGH_ROWS,)
    if not logits and not short:
        _warn_of_classes(proba)
    arrays = {"proba": proba}
    if missed is not None:
        check_same_index(proba=proba, missed=missed)
        check_numbered_columns(missed, "missed")
        if np.ndim(missed) == 2:
            arrays["missed"] = missed
        else:
            shared["missed"] = to_host(missed) if is_foreign(missed) else missed
    return decide_arrays(Marginals, arrays, objective, average, columns, **shared)


def _warn_of_classes(proba: Any) -> None:
    """Warn the users of `from_marginals`, not the package itself, if all rows sum to 1."""
    few: Any = proba
    if not isinstance(proba, (np.ndarray, list, tuple)):
        if frame_library(proba) is None:
            return
        few = proba.head(_ENOUGH_ROWS).to_numpy()
    try:
        few = np.asarray(few[:_ENOUGH_ROWS])
    except ValueError:  # ragged
        return
    if few.ndim != 2 or len(few) < _ENOUGH_ROWS or few.dtype.kind != "f":
        return
    slack = max(tolerance(few), 1e-6)
    for values in (few, proba):  # in most cases the other rows are not read
        total = np.asarray(values).sum(axis=1, dtype=np.float64)
        if few.shape[1] < 2 or not (abs(total - 1.0) <= slack).all():
            return
    if not str(sys._getframe(2).f_globals.get("__name__")).startswith("fgfm."):
        warnings.warn(
            "all rows of proba sum to 1, like the probabilities of classes that exclude each "
            "other: from_marginals takes labels as independent; use from_classes",
            UserWarning,
            stacklevel=3,
        )


def from_cardinalities(
    P: Any,
    *,
    distribution: Any = None,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    average: str = "samples",
    min_labels: int = 0,
    max_labels: int | None = None,
    constraints: Constraints | None = None,
    n_jobs: int | None = None,
) -> Decision:
    r"""Decide from the joint probabilities of each label and the number of labels: GFM.

    Maximises :math:`E[F_\beta(y, h)]` over all label sets h, for arbitrary dependence between
    labels: with :math:`p_{is} = p(y_i = 1, |y| = s)`, the expectation for a set h of size k is

    .. math:: \sum_{i \in h} \Delta_{ik}, \qquad
        \Delta_{ik} = (1 + \beta^2) \sum_s \frac{p_{is}}{\beta^2 s + k},

    and for the empty set :math:`d_0 = 1 - \sum_s \frac1s \sum_i p_{is}` (times `zero_division`).

    Parameters
    ----------
    P : array-like of shape (n, m, S)
        ``P[r, i, s - 1]`` is the probability that row r has label i and s labels in all. S may be
        smaller than m where no larger set is possible.
    distribution : array-like of shape (n, S + 1), default=None
        The probabilities of 0 to S labels, if they come from a separate model; P need not agree
        with them (`fgfm.cardinality.is_coherent`). By default they are computed from P.
    beta, zero_division, nonempty, average, min_labels, max_labels, constraints, n_jobs : object
        As for `from_marginals`.

    Returns
    -------
    Decision
        ``labels`` of shape (n, m) and ``expected_f`` of shape (n,), of shape (m,) for
        ``"macro"`` and ``"weighted"``, a number for ``"micro"``.

    See Also
    --------
    fgfm.cardinality : Functions that compute P.

    Examples
    --------
    Exactly one of two labels, or all three:

    >>> import fgfm
    >>> P = [[[0.5, 0.0, 0.2], [0.3, 0.0, 0.2], [0.0, 0.0, 0.2]]]
    >>> labels, expected_f = fgfm.decision.from_cardinalities(P)
    >>> labels
    array([[1, 1, 0]], dtype=int8)
    >>> expected_f.round(4)
    array([0.6933])
    """
    limits = (min_labels, max_labels, constraints)
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs, *limits)
    arrays = {"P": P} if distribution is None else {"P": P, "distribution": distribution}
    return decide_arrays(Cardinalities, arrays, objective, average)


def from_factors(
    Ps: Sequence[Any],
    factors: Sequence[Sequence[int]],
    *,
    distributions: Sequence[Any] | None = None,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    average: str = "samples",
    min_labels: int = 0,
    max_labels: int | None = None,
    constraints: Constraints | None = None,
    n_jobs: int | None = None,
) -> Decision:
    r"""Decide from the P of label factors that are independent of each other: F-GFM.

    Maximises :math:`E[F_\beta(y, h)]` over all label sets h for :math:`p(y) = \prod_f p(y_f)`,
    where the factors :math:`f` partition the labels and
    :math:`p^f_{is} = p(y_i = 1, |y_f| = s)` is given for each. The P of all labels, which the
    published algorithm computes in cubic time, is not formed.

    Parameters
    ----------
    Ps : list of array-like of shape (n, m_f, S_f), or sparse matrix of shape (n, m_f)
        The P of each factor, as for `from_cardinalities`. Many factors of one label can be given
        together, as a sparse matrix of their marginals; entries that it does not store are 0.
    factors : list of list of int
        The labels of each factor, in the order of its P, or of the columns of a sparse matrix.
        Every label is in exactly one factor.
    distributions : list of array-like of shape (n, S_f + 1), default=None
        The probabilities of 0 to S_f labels of each factor, if they come from separate models. By
        default they are computed from `Ps`.
    beta, zero_division, nonempty, average, min_labels, max_labels, constraints, n_jobs : object
        As for `from_marginals`.

    Returns
    -------
    Decision
        ``labels`` of shape (n, m), in CSR if one of `Ps` is a sparse matrix, and ``expected_f`` of
        shape (n,), of shape (m,) for ``"macro"`` and ``"weighted"``, a number for ``"micro"``.

    See Also
    --------
    fgfm.cardinality.merge_factors : Compute the P of all labels.

    Examples
    --------
    Label 1 alone, and labels 0 and 2 of which exactly one is present:

    >>> import fgfm
    >>> P_alone = [[[0.5]]]
    >>> P_pair = [[[0.75], [0.25]]]
    >>> labels, expected_f = fgfm.decision.from_factors([P_alone, P_pair], [[1], [0, 2]])
    >>> labels
    array([[1, 1, 0]], dtype=int8)
    >>> expected_f.round(4)
    array([0.6875])

    Many factors of one label, few of them possible, and a pair: the labels are returned in CSR.

    >>> from scipy import sparse
    >>> alone = sparse.csr_array(([0.5, 0.9], ([0, 0], [7, 99_997])), shape=(1, 99_998))
    >>> labels, _ = fgfm.decision.from_factors(
    ...     [alone, P_pair], [range(99_998), [99_998, 99_999]]
    ... )
    >>> labels.shape, labels.indices.tolist()
    ((1, 100000), [7, 99997, 99998])
    """
    limits = (min_labels, max_labels, constraints)
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs, *limits)
    parts = part_list(Ps)
    arrays = {f"Ps[{f}]": P for f, P in enumerate(parts)}
    if distributions is not None:
        check_distribution_count(distributions, len(parts))
        arrays |= {f"distributions[{f}]": d for f, d in enumerate(distributions)}
    shared = {"n_factors": len(parts), "factors": factors}
    return decide_arrays(Factors, arrays, objective, average, **shared)


def from_samples(
    samples: Any,
    *,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    average: str = "samples",
    min_labels: int = 0,
    max_labels: int | None = None,
    constraints: Constraints | None = None,
    n_jobs: int | None = None,
) -> Decision:
    r"""Decide from draws of the label set, from any sampler.

    Maximises the mean of :math:`F_\beta(y^t, h)` over the draws :math:`y^1 .. y^T` of a row, over
    all label sets h, not only those drawn.

    Parameters
    ----------
    samples : array-like of shape (n, T, m)
        T draws of m labels for each row, 0 or 1.
    beta, zero_division, nonempty, average, min_labels, max_labels, constraints, n_jobs : object
        As for `from_marginals`. With `nonempty`, empty draws are ignored. Draws of different rows
        are taken to be independent.

    Returns
    -------
    Decision
        ``labels`` of shape (n, m) and ``expected_f`` of shape (n,), of shape (m,) for
        ``"macro"`` and ``"weighted"``, a number for ``"micro"``.

    See Also
    --------
    from_joint : Decisions from label sets with probabilities.

    Examples
    --------
    >>> import fgfm
    >>> draws = [[[1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 0, 1]]]
    >>> labels, expected_f = fgfm.decision.from_samples(draws)
    >>> labels
    array([[1, 0, 0]], dtype=int8)
    >>> expected_f.round(4)
    array([0.5833])
    """
    limits = (min_labels, max_labels, constraints)
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs, *limits)
    return decide_arrays(LabelSets, {"samples": samples}, objective, average)


def from_joint(
    labelsets: Any,
    proba: Any,
    *,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    average: str = "samples",
    min_labels: int = 0,
    max_labels: int | None = None,
    constraints: Constraints | None = None,
    n_jobs: int | None = None,
) -> Decision:
    r"""Decide from the probabilities of whole label sets.

    Maximises :math:`\sum_l w_l F_\beta(y^l, h)` over all label sets h, not only the given ones.

    Parameters
    ----------
    labelsets : array-like, sparse matrix or data frame of shape (L, m)
        The label sets that can occur, 0 or 1, including the empty set if it can occur.
    proba : array-like or data frame of shape (n, L)
        Their probabilities. Each row must sum to 1. Column names of a data frame must be the index
        of `labelsets`, if pandas has not numbered one of them.
    beta, zero_division, nonempty, average, min_labels, max_labels, constraints, n_jobs : object
        As for `from_marginals`.

    Returns
    -------
    Decision
        ``labels`` of shape (n, m) and ``expected_f`` of shape (n,), of shape (m,) for
        ``"macro"`` and ``"weighted"``, a number for ``"micro"``.

    See Also
    --------
    from_samples : Decisions from draws of the label set.

    Examples
    --------
    >>> import fgfm
    >>> labelsets = [[1, 0, 0], [0, 1, 0], [1, 1, 1]]
    >>> labels, expected_f = fgfm.decision.from_joint(labelsets, [[0.5, 0.3, 0.2]])
    >>> labels
    array([[1, 1, 0]], dtype=int8)
    >>> expected_f.round(4)
    array([0.6933])
    """
    columns = getattr(labelsets, "columns", None)
    check_set_names(labelsets, proba)
    limits = (min_labels, max_labels, constraints, columns)
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs, *limits)
    check_array_types({"labelsets": labelsets, "proba": proba})
    # All rows share the label sets: they are converted once, also from a Dask array.
    labelsets = to_host(labelsets) if is_foreign(labelsets) else labelsets
    sets = label_sets(labelsets, "labelsets", ("label set", "label"))  # (L, m)
    arrays = {"proba": proba}
    return decide_arrays(
        LabelSets, arrays, objective, average, columns, labelsets=sparse.csr_array(sets)
    )
