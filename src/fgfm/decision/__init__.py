r"""From probabilities to the label sets that maximise the expected F-measure.

Each function solves, for every row on its own and exactly,

.. math::

    \max_{h \in \{0, 1\}^m} \; E[F_\beta(y, h)], \qquad
    F_\beta(y, h) = \frac{(1 + \beta^2) \, y \cdot h}{\beta^2 |y| + |h|}, \quad 0/0 = 1,

and they differ in what is known of the distribution of y:

==================== ==========================================================
what to call         what you have
==================== ==========================================================
`from_marginals`     p(y_i = 1), labels taken as independent given the row
`from_cardinalities` p(y_i = 1, \|y\| = s): GFM
`from_factors`       the same for groups of labels that are independent: F-GFM
`from_samples`       draws of y
`from_joint`         probabilities of label sets
==================== ==========================================================

Dask arrays give a decision of Dask arrays: nothing is computed until it is asked for, and then one
block of rows at a time. There a row that contradicts `nonempty` gets no warning, only its NaN. The
``labelsets`` of `from_joint`, which all rows share, are computed at once.

Ties: the smaller set wins, then the lower label index; the empty set wins its ties. Values that
differ by less than 1e-12, relatively, count as equal. (`from_marginals` compares labels by their
probabilities, exactly.)

Arrays of PyTorch, CuPy and JAX are decided where they are, and answered in kind: ``labels`` and
``expected_f`` are arrays of the same library on the same device, and ``n_jobs`` has no effect.
float32 is computed in float32; see :doc:`/gpu` for what that means, and what it needs.

References
----------
Dembczynski, K., Waegeman, W., Cheng, W. and Huellermeier, E. (2011). An Exact Algorithm for
F-Measure Maximization. NIPS 2011.

Gasse, M. and Aussem, A. (2016). F-measure Maximization in Multi-Label Classification with
Conditionally Independent Label Subsets. ECML PKDD 2016. doi:10.1007/978-3-319-46128-1_39
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from fgfm._utils.validation import (
    check_cardinality_matrix,
    check_distributions,
    check_factors,
    check_one_each,
    check_one_weight_each,
    check_parts,
    count_parts,
    distribution_array,
    label_sets,
    real_array,
)
from fgfm.decision._array_api.space import first_nan, is_foreign, library_of
from fgfm.decision._dask import any_lazy, decide_lazily, refuse_lazy_frame
from fgfm.decision._dispatch import (
    Decision,
    Objective,
    decide_factors,
    decide_label_sets,
    decide_marginals,
    decide_one_factor,
    decide_samples,
    decide_singletons,
    decide_sparse_factors,
)

__all__ = [
    "Decision",
    "from_cardinalities",
    "from_factors",
    "from_joint",
    "from_marginals",
    "from_samples",
]


def from_marginals(
    proba: Any,
    *,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    n_jobs: int | None = None,
) -> Decision:
    r"""Decide from marginal probabilities, labels taken as independent given the row.

    Maximises :math:`E[F_\beta(y, h)]` over all label sets h for
    :math:`p(y) = \prod_i p_i^{y_i} (1 - p_i)^{1 - y_i}`. The best set of each size holds the most
    probable labels; all sizes that matter are compared, in time linear in the number of labels.

    Parameters
    ----------
    proba : array-like, sparse matrix or data frame of shape (n, m)
        The probability of each label. What a sparse matrix does not store is 0; CSR is read in
        place, block by block, with entries in any order, and other forms are converted to it.
    beta : float, default=1.0
        How many times as important recall is as precision.
    zero_division : float, default=1.0
        What an empty decision is worth where the true set is empty, from 0 to 1: 1 by the
        definition above, 0 in scikit-learn's default.
    nonempty : bool, default=False
        Decide, and state the expectation, under the condition that the true set is not empty. A
        row without any probable label contradicts it: it gets the empty set, an expectation of
        NaN, and a warning.
    n_jobs : int, default=None
        How many threads share the rows, in joblib's meaning. It does not change the result.

    Returns
    -------
    Decision
        ``labels`` and ``expected_f``: arrays; CSR labels if `proba` is sparse; a data frame and a
        series if it is a pandas data frame; Dask arrays if it is one.

    See Also
    --------
    from_factors : Where groups of labels depend on each other.
    fgfm.cardinality.from_marginals : Marginals joined to a model of the number of labels.

    Notes
    -----
    The published algorithm (Ye, Chai, Lee and Chieu, ICML 2012) takes quadratic time.

    Examples
    --------
    >>> import fgfm
    >>> labels, expected_f = fgfm.decision.from_marginals([[0.8, 0.45, 0.4], [0.1, 0.2, 0.05]])
    >>> labels
    array([[1, 1, 1],
           [0, 0, 0]], dtype=int8)
    >>> expected_f.round(4)
    array([0.6674, 0.684 ])
    """
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs)
    if is_foreign(proba):
        from fgfm.decision._array_api import routes

        decision = routes.from_marginals(proba, objective)
        _warn_of_contradictions(decision.expected_f, objective)
        return decision
    refuse_lazy_frame(proba, "proba")
    _refuse_foreign("proba", proba=proba)
    if any_lazy(proba):
        return decide_lazily(decide_marginals, {"proba": proba}, objective=objective)
    decision = decide_marginals(proba, objective)
    _warn_of_contradictions(decision.expected_f, objective)
    return _like(decision, proba, getattr(proba, "columns", None))


def from_cardinalities(
    P: Any,
    *,
    distribution: Any = None,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    n_jobs: int | None = None,
) -> Decision:
    r"""Decide from the joint probabilities of each label and the number of labels: GFM.

    Maximises :math:`E[F_\beta(y, h)]` over all label sets h, for any dependence between labels:
    with :math:`p_{is} = p(y_i = 1, |y| = s)`, a set h of size k is worth

    .. math:: \sum_{i \in h} \Delta_{ik}, \qquad
        \Delta_{ik} = (1 + \beta^2) \sum_s \frac{p_{is}}{\beta^2 s + k},

    and the empty set :math:`d_0 = 1 - \sum_s \frac1s \sum_i p_{is}` (times `zero_division`).

    Parameters
    ----------
    P : array-like of shape (n, m, S)
        ``P[r, i, s - 1]`` is the probability that row r has label i and s labels in all. S may be
        smaller than m where no larger set is possible.
    distribution : array-like of shape (n, S + 1), default=None
        The probabilities of 0 to S labels where a model of its own tells them, and P need not
        agree with them (`fgfm.cardinality.is_coherent`). By default P tells them.
    beta : float, default=1.0
        How many times as important recall is as precision.
    zero_division : float, default=1.0
        What an empty decision is worth where the true set is empty, from 0 to 1.
    nonempty : bool, default=False
        Decide, and state the expectation, under the condition that the true set is not empty. A
        row of zeros contradicts it: it gets the empty set, an expectation of NaN, and a warning.
    n_jobs : int, default=None
        How many threads share the rows, in joblib's meaning. It does not change the result.

    Returns
    -------
    Decision
        ``labels`` of shape (n, m) and ``expected_f`` of shape (n,).

    See Also
    --------
    fgfm.cardinality : Ways to obtain P.

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
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs)
    if is_foreign(P):
        from fgfm.decision._array_api import routes

        decision = routes.from_cardinalities(P, distribution, objective)
        _warn_of_contradictions(decision.expected_f, objective)
        return decision
    _refuse_foreign("P", P=P, distribution=distribution)
    if any_lazy(P, distribution):
        given = {"P": P} if distribution is None else {"P": P, "distribution": distribution}
        return decide_lazily(_by_cardinalities, given, objective=objective)
    decision = _by_cardinalities(P, distribution, objective=objective)
    _warn_of_contradictions(decision.expected_f, objective)
    return decision


def _by_cardinalities(P: Any, distribution: Any = None, *, objective: Objective) -> Decision:
    P = check_cardinality_matrix(P)
    n, m, S = P.shape
    given = (
        None if distribution is None else distribution_array(distribution, "distribution", n, S)
    )
    return decide_one_factor(P, given, np.arange(m), objective, "P", "distribution")


def from_factors(
    Ps: Sequence[Any],
    factors: Sequence[Sequence[int]],
    *,
    distributions: Sequence[Any] | None = None,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    n_jobs: int | None = None,
) -> Decision:
    r"""Decide from the P of label factors that are independent of each other: F-GFM.

    Maximises :math:`E[F_\beta(y, h)]` over all label sets h for :math:`p(y) = \prod_f p(y_f)`,
    where the factors :math:`f` partition the labels and
    :math:`p^f_{is} = p(y_i = 1, |y_f| = s)` is known for each. The whole P, which the published
    algorithm builds in cubic time, is never formed.

    Parameters
    ----------
    Ps : list of array-like of shape (n, m_f, S_f), or sparse matrix of shape (n, m_f)
        The P of each factor, as for `from_cardinalities`. Many factors of one label may be given
        together, as a sparse matrix of their marginals; what it does not store is 0.
    factors : list of list of int
        The labels of each factor, in the order of its P, or of the columns of a sparse matrix.
        Every label is in exactly one factor.
    distributions : list of array-like of shape (n, S_f + 1), default=None
        The probabilities of 0 to S_f labels of each factor, where models of their own tell them.
    beta : float, default=1.0
        How many times as important recall is as precision.
    zero_division : float, default=1.0
        What an empty decision is worth where the true set is empty, from 0 to 1.
    nonempty : bool, default=False
        Decide, and state the expectation, under the condition that the true set is not empty. A
        row of zeros contradicts it: it gets the empty set, an expectation of NaN, and a warning.
    n_jobs : int, default=None
        How many threads share the rows, in joblib's meaning. It does not change the result.

    Returns
    -------
    Decision
        ``labels`` of shape (n, m), in CSR if there is a sparse matrix among `Ps`, and
        ``expected_f`` of shape (n,).

    See Also
    --------
    fgfm.cardinality.merge_factors : The whole P, for other uses.

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

    Many labels alone, few of them possible, and a pair: the labels come in CSR.

    >>> from scipy import sparse
    >>> alone = sparse.csr_array(([0.5, 0.9], ([0, 0], [7, 99_997])), shape=(1, 99_998))
    >>> labels, _ = fgfm.decision.from_factors(
    ...     [alone, P_pair], [range(99_998), [99_998, 99_999]]
    ... )
    >>> labels.shape, labels.indices.tolist()
    ((1, 100000), [7, 99997, 99998])
    """
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs)
    if is_foreign(Ps) or (isinstance(Ps, (list, tuple)) and any(map(is_foreign, Ps))):
        from fgfm.decision._array_api import routes

        decision = routes.from_factors(Ps, factors, distributions, objective)
        _warn_of_contradictions(decision.expected_f, objective)
        return decision
    count_parts(Ps)
    Ps = list(Ps)
    named = {f"Ps[{f}]": P for f, P in enumerate(Ps)}
    if distributions is not None:
        check_one_each(distributions, len(Ps))
        named |= {f"distributions[{f}]": d for f, d in enumerate(distributions)}
    _refuse_foreign("Ps", **named)
    if any_lazy(*named.values()):
        return decide_lazily(
            _by_arrays_of_factors,
            named,
            n_factors=len(Ps),
            factors=factors,
            objective=objective,
        )
    decision = _by_factors(Ps, factors, distributions, objective)
    _warn_of_contradictions(decision.expected_f, objective)
    return decision


def _by_factors(Ps: Any, factors: Any, distributions: Any, objective: Objective) -> Decision:
    parts = check_parts(Ps, allow_sparse=True)
    members = check_factors(factors, [P.shape[1] for P in parts])
    given = check_distributions(distributions, parts)
    if any(sparse.issparse(P) for P in parts):
        return decide_sparse_factors(parts, members, objective)
    if len(parts) == 1:
        return decide_one_factor(
            parts[0],
            given[0] if given else None,
            members[0],
            objective,
            "Ps[0]",
            "distributions[0]",
        )
    if given is None and all(P.shape[1] == 1 for P in parts):
        return decide_singletons(parts, members, objective)
    return decide_factors(parts, members, given, objective)


def _by_arrays_of_factors(
    *arrays: Any, n_factors: int, factors: Any, objective: Objective
) -> Decision:
    """Decide where the P of all factors come first, and their distributions, if any, next."""
    Ps, distributions = list(arrays[:n_factors]), list(arrays[n_factors:])
    return _by_factors(Ps, factors, distributions or None, objective)


def from_samples(
    samples: Any,
    *,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    n_jobs: int | None = None,
) -> Decision:
    r"""Decide from draws of the label set, by whatever sampler.

    Maximises the mean of :math:`F_\beta(y^t, h)` over the draws :math:`y^1 .. y^T` of a row, over
    all label sets h, not only those drawn.

    Parameters
    ----------
    samples : array-like of shape (n, T, m)
        T draws of m labels for each row, 0 or 1.
    beta : float, default=1.0
        How many times as important recall is as precision.
    zero_division : float, default=1.0
        What an empty decision is worth where the true set is empty, from 0 to 1.
    nonempty : bool, default=False
        Leave empty draws out. A row with no other draws contradicts it: it gets the empty set, an
        expectation of NaN, and a warning.
    n_jobs : int, default=None
        How many threads share the rows, in joblib's meaning. It does not change the result.

    Returns
    -------
    Decision
        ``labels`` of shape (n, m) and ``expected_f`` of shape (n,).

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
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs)
    if is_foreign(samples):
        from fgfm.decision._array_api import routes

        decision = routes.from_samples(samples, objective)
        _warn_of_contradictions(decision.expected_f, objective)
        return decision
    _refuse_foreign("samples", samples=samples)
    if any_lazy(samples):
        return decide_lazily(_by_samples, {"samples": samples}, objective=objective)
    decision = _by_samples(samples, objective)
    _warn_of_contradictions(decision.expected_f, objective)
    return decision


def _by_samples(samples: Any, objective: Objective) -> Decision:
    return decide_samples(real_array(samples, "samples", ("row", "draw", "label")), objective)


def from_joint(
    labelsets: Any,
    proba: Any,
    *,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    n_jobs: int | None = None,
) -> Decision:
    r"""Decide from the probabilities of whole label sets.

    Maximises :math:`\sum_l w_l F_\beta(y^l, h)` over all label sets h, not only the given ones.

    Parameters
    ----------
    labelsets : array-like, sparse matrix or data frame of shape (L, m)
        The label sets that can occur, 0 or 1, the empty set among them if it can.
    proba : array-like or data frame of shape (n, L)
        Their probabilities. Each row must sum to 1.
    beta : float, default=1.0
        How many times as important recall is as precision.
    zero_division : float, default=1.0
        What an empty decision is worth where the true set is empty, from 0 to 1.
    nonempty : bool, default=False
        Decide, and state the expectation, under the condition that the true set is not empty. A
        row that is certainly empty contradicts it: it gets the empty set, an expectation of NaN,
        and a warning.
    n_jobs : int, default=None
        How many threads share the rows, in joblib's meaning. It does not change the result.

    Returns
    -------
    Decision
        ``labels`` of shape (n, m) and ``expected_f`` of shape (n,).

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
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs)
    if is_foreign(proba):
        from fgfm.decision._array_api import routes

        decision = routes.from_joint(labelsets, proba, objective)
        _warn_of_contradictions(decision.expected_f, objective)
        return decision
    refuse_lazy_frame(proba, "proba")
    _refuse_foreign("proba", proba=proba, labelsets=labelsets)
    sets = sparse.csr_array(label_sets(labelsets, "labelsets", ("label set", "label")))  # (L, m)
    if any_lazy(proba):
        return decide_lazily(_by_joint, {"proba": proba}, sets=sets, objective=objective)
    decision = _by_joint(proba, sets, objective)
    _warn_of_contradictions(decision.expected_f, objective)
    return _like(decision, proba, getattr(labelsets, "columns", None))


def _by_joint(proba: Any, sets: Any, objective: Objective) -> Decision:
    weights = real_array(proba, "proba", ("row", "label set"))  # (n, L)
    check_one_weight_each(weights.shape[1], sets.shape[0])
    return decide_label_sets(sets, weights, objective)


def _refuse_foreign(main: str, **values: Any) -> None:
    """Raise for an array of another library beside one that is not, or in a list."""
    for name, value in values.items():
        if is_foreign(value):
            raise TypeError(
                f"{name} is an array of {library_of(value)}, and {main} is not: "
                "they must be of one library"
            )
        inner = value
        while isinstance(inner, (list, tuple)) and inner:
            for item in {type(item): item for item in inner}.values():  # one of each type
                if is_foreign(item):
                    raise TypeError(
                        f"{name} is a list with arrays of {library_of(item)}: "
                        "it must be one array; stack them"
                    )
            inner = inner[0]


def _warn_of_contradictions(expected_f: Any, objective: Objective) -> None:
    if not objective.nonempty:
        return
    if is_foreign(expected_f):
        count, first = first_nan(expected_f)
    else:
        contradicted = np.flatnonzero(np.isnan(expected_f))
        count, first = len(contradicted), contradicted[0] if len(contradicted) else 0
    if count:
        warnings.warn(
            "rows without probability for a non-empty label set, which nonempty=True supposes: "
            f"{count}, the first is row {first}; "
            "they get the empty set and expected_f NaN",
            UserWarning,
            stacklevel=3,
        )


def _like(decision: Decision, proba: Any, columns: Any) -> Decision:
    """Give the decision as a data frame and a series if `proba` is a pandas data frame."""
    if library_of(proba) != "pandas":
        return decision
    import pandas as pd

    return Decision(
        pd.DataFrame(decision.labels, index=proba.index, columns=columns),
        pd.Series(decision.expected_f, index=proba.index, name="expected_f"),
    )
