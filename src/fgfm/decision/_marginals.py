"""`from_marginals`: decisions from marginal probabilities of independent labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt
from scipy import sparse

from fgfm._kernels import decide_dense_rows, decide_jaccard_dense_rows
from fgfm._utils.blocks import float_block, run_blocks
from fgfm._utils.validation import check_probabilities, real_array
from fgfm.decision._inputs import decide
from fgfm.decision._marginals_sparse import decide_sparse_marginals
from fgfm.decision._objective import Decision, Objective, empty_decision, run_kernel

__all__ = ["decide_dense_marginals", "decide_marginals", "from_marginals"]

Real = npt.NDArray[Any]
_KERNELS = {"f": decide_dense_rows, "jaccard": decide_jaccard_dense_rows}


def from_marginals(
    proba: Any,
    *,
    beta: float = 1.0,
    zero_division: float = 1.0,
    nonempty: bool = False,
    measure: str = "f",
    n_jobs: int | None = None,
) -> Decision:
    r"""Decide from marginal probabilities, assuming labels independent given the row.

    Maximises :math:`E[F_\beta(y, h)]` over all label sets h for
    :math:`p(y) = \prod_i p_i^{y_i} (1 - p_i)^{1 - y_i}`. The best set of each size holds the most
    probable labels; all sizes that can be optimal are compared, in time linear in the number of
    labels.

    Parameters
    ----------
    proba : array-like, sparse matrix or data frame of shape (n, m)
        The probability of each label. Entries that a sparse matrix does not store are 0. CSR is
        read in place, block by block, with the entries of a row in any order; other sparse formats
        are converted to CSR.
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
    n_jobs : int, default=None
        The number of threads, as in joblib. It does not change the result.

    Returns
    -------
    Decision
        ``labels`` and ``expected_f`` (the expected Jaccard index, if that is the measure): arrays;
        CSR labels if `proba` is sparse; a data frame and a series if it is a pandas data frame;
        Dask arrays if it is a Dask array.

    See Also
    --------
    from_factors : Decisions where groups of labels depend on each other.
    fgfm.cardinality.from_marginals : Marginals combined with a model of the number of labels.

    Notes
    -----
    The published algorithm (Ye, Chai, Lee and Chieu, ICML 2012) takes quadratic time.

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
    objective = Objective.checked(beta, zero_division, nonempty, n_jobs, measure=measure)
    return decide(
        {"proba": proba},
        objective,
        decide_marginals,
        _decide_array_api,
        columns=getattr(proba, "columns", None),
    )


def decide_marginals(proba: Any, objective: Objective) -> Decision:
    """Decide from marginals, (n, m), dense or sparse."""
    if sparse.issparse(proba):
        return decide_sparse_marginals(proba, objective)
    proba = real_array(proba, "proba", ("row", "label"))
    n, m = proba.shape
    return decide_dense_marginals(
        n,
        m,
        proba.itemsize,
        objective,
        lambda rows: proba[rows],
        lambda rows: check_probabilities(proba[rows], "proba", rows.start),
    )


def decide_dense_marginals(
    n: int,
    m: int,
    itemsize: int,
    objective: Objective,
    read: Callable[[slice], Real],
    check: Callable[[slice], None],
) -> Decision:
    """Decide from marginals that are read block by block.

    Parameters
    ----------
    n, m : int
        The numbers of rows and labels.
    itemsize : int
        The number of bytes of a probability.
    objective : Objective
        What is maximised.
    read : callable
        Returns the marginals of a slice of rows.
    check : callable
        Raises unless all values of a slice of rows are probabilities, up to rounding.

    Returns
    -------
    Decision
        As arrays.
    """
    decision = empty_decision(n, m)

    def decide_block(rows: slice) -> None:
        labels, expected_f = decision.at(rows)
        arguments = (*objective.kernel_arguments, objective.rules, labels, expected_f)
        kernel = _KERNELS[objective.measure]
        run_kernel(kernel, float_block(read(rows)), arguments, labels, lambda: check(rows))

    run_blocks(n, m * itemsize, objective.threads, decide_block)
    return decision


def _decide_array_api(proba: Any, objective: Objective) -> Decision:
    from fgfm.decision._marginals_array_api import decide_marginals

    return decide_marginals(proba, objective)
