"""`from_marginals`: decisions from marginal probabilities of independent labels."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from fgfm._utils.validation import check_flag, real_array, stacked_classes
from fgfm.decision._averages import Route
from fgfm.decision._constraints import Constraints
from fgfm.decision._inputs import decide, is_flat
from fgfm.decision._limits import Limits
from fgfm.decision._marginals_dense import (
    DenseMarginals,
    decide_dense_entries,
    decide_dense_marginals,
)
from fgfm.decision._marginals_sparse import (
    decide_csr_entries,
    decide_sparse_marginals,
    valid_csr,
)
from fgfm.decision._objective import Decision, Objective

__all__ = ["decide_marginals", "from_marginals"]


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
    average : {"samples", "macro", "micro"}, default="samples"
        The F-measure to maximise: of each row; of each label over all rows; or of all entries
        together. `zero_division` and `nonempty` apply to each problem: row, label, or batch.
    min_labels, max_labels : int, default=0 and None
        The least and the largest number of labels to decide for; None is no limit. With
        `min_labels` of 1 or more the empty set is not allowed, but expectations are not
        conditioned as with `nonempty`.
    constraints : Constraints, default=None
        Further constraints on the label sets: labels that are required, forbidden, exclude each
        other or imply each other, and costs of labels. ``expected_f`` does not include the costs.
    logits : bool, default=False
        Whether `proba` holds logits, of which the probabilities are the sigmoid.
    n_jobs : int, default=None
        The number of threads, as in joblib. It does not change the result.

    Returns
    -------
    Decision
        ``labels`` of the shape of `proba`, and ``expected_f`` (the expected Jaccard index, if that
        is the measure) of shape (n,), of shape (m,) for ``average="macro"``, a number for
        ``"micro"`` and for 1-D `proba`. Arrays; CSR labels if `proba` is sparse; a data frame and
        a series if it is a pandas or polars data frame; Dask arrays if it is a Dask array.

    See Also
    --------
    from_factors : Decisions where groups of labels depend on each other.
    fgfm.cardinality.of_marginals : Marginals combined with a model of the number of labels.

    Notes
    -----
    The published algorithm (Ye, Chai, Lee and Chieu, ICML 2012) takes quadratic time.

    ``np.array(predict_proba(X))[:, :, 1]`` of a forest is (label, row): transposed. If there are
    as many rows as labels this cannot be detected; pass the list itself.

    Columns are decided in strips, without a copy of the array, and the labels are in Fortran
    order; ``average="micro"`` with `logits` copies the array.

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
    """
    columns = getattr(proba, "columns", None)
    limits = Limits.checked(min_labels, max_labels, constraints, columns)
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs, measure, limits)
    logits = check_flag(logits, "logits")
    return decide(
        {"proba": stacked_classes(proba, logits=logits)},
        objective,
        average,
        _ROUTE,
        _array_api_route,
        columns=columns,
        logits=logits,
    )


def decide_marginals(proba: Any, objective: Objective, logits: bool = False) -> Decision:
    """Decide each row from marginals, (n, m), dense or sparse."""
    marginals = _read(proba, logits)
    if not isinstance(marginals, DenseMarginals):
        return decide_sparse_marginals(marginals, objective)
    n, m = marginals.shape
    return decide_dense_marginals(
        n,
        m,
        marginals.values.itemsize,
        objective,
        lambda rows: marginals.proba(marginals.values[rows]),
        marginals.check,
    )


def _marginals(proba: Any, logits: bool = False) -> Any:
    marginals = _read(proba, logits)
    return marginals if isinstance(marginals, DenseMarginals) else valid_csr(marginals, "proba")


def _decide_entries(proba: Any, objective: Objective, logits: bool = False) -> Decision:
    marginals = _marginals(proba, logits)
    if isinstance(marginals, DenseMarginals):
        return decide_dense_entries(marginals, objective)
    return decide_csr_entries(marginals, objective)


def _read(proba: Any, logits: bool) -> Any:
    """Return marginals as `DenseMarginals`, or as the given sparse matrix."""
    if not sparse.issparse(proba):
        axes = ("row",) if is_flat(proba) else ("row", "label")
        return DenseMarginals(real_array(proba, "proba", axes), logits)
    if logits:
        raise ValueError(
            "proba is a sparse matrix and logits is True: entries that are not stored would have "
            "the probability 1/2; pass a dense array, or a sparse matrix of probabilities"
        )
    return proba


def _array_api_route() -> Route:
    from fgfm.decision._marginals_array_api import ROUTE

    return ROUTE


_ROUTE = Route(decide_marginals, _marginals, _decide_entries)
