"""Each kind of probabilities to its columns, in blocks of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fgfm._utils.validation import (
    CARDINALITY_AXES,
    DISTRIBUTION_AXES,
    check_cardinality_shape,
    check_distribution_shape,
    check_factors,
    check_one_each,
    check_one_weight_each,
    check_same_rows,
    count_parts,
)
from fgfm.decision._array_api.checks import read_labels, read_mass, read_units
from fgfm.decision._array_api.columns import Columns, decide_columns, gather, rank_candidates
from fgfm.decision._array_api.selection import decide_blocks
from fgfm.decision._array_api.space import Space, common_space, full_precision, read_array, to_host
from fgfm.decision._dispatch import Decision, Objective
from fgfm.decision._factors_array_api import decide_factors
from fgfm.decision._marginals_array_api import decide_marginals

__all__ = [
    "from_cardinalities",
    "from_factors",
    "from_joint",
    "from_marginals",
    "from_samples",
]

Array = Any


def from_marginals(proba: Any, objective: Objective) -> Decision:
    """Decide from marginals, (n, m)."""
    array, xp = read_array(proba, "proba", ("row", "label"))
    space = common_space([array], ["proba"], xp)
    return decide_marginals(space, array, _representable(space, objective))


def _representable(space: Space, objective: Objective) -> Objective:
    """Give the objective with a beta whose square single precision holds.

    Beyond these limits F_beta is recall, or precision, to far more digits than are computed.
    """
    if space.itemsize == 8:
        return objective
    beta = min(max(objective.beta, 1e-9), 1e9)
    return objective._replace(beta=beta, beta2=beta * beta)


def from_cardinalities(P: Any, distribution: Any, objective: Objective) -> Decision:
    """Decide from one P, (n, m, S), and perhaps its distribution, (n, S + 1)."""
    array, xp = read_array(P, "P", CARDINALITY_AXES)
    check_cardinality_shape(tuple(array.shape), "P")
    arrays, names = [array], ["P"]
    if distribution is not None:
        given, _ = read_array(distribution, "distribution", DISTRIBUTION_AXES)
        check_distribution_shape(
            tuple(given.shape), "distribution", array.shape[0], array.shape[2]
        )
        arrays.append(given)
        names.append("distribution")
    space = common_space(arrays, names, xp)
    return _decide_one_factor(space, arrays, names, _representable(space, objective))


def _decide_one_factor(
    space: Space, arrays: Sequence[Array], names: Sequence[str], objective: Objective
) -> Decision:
    """Decide from P and perhaps its distribution, with their names."""
    n, m, S = arrays[0].shape
    s = space.upto(S)[None, :]  # (1, S)

    def decide(rows: slice) -> tuple[Array, Array]:
        P, d = read_mass(space, arrays[0][rows, ...], names[0], rows.start, given=len(arrays) == 2)
        present = space.xp.clip(space.xp.sum(d, axis=1), 0.0, 1.0)
        absent = 1.0 - present
        if len(arrays) == 2:
            d = read_units(space, arrays[1][rows, ...], names[1], rows.start)
            absent, present = d[:, 0], space.xp.sum(d[:, 1:], axis=1)
        return _decide_mass(space, P, s, absent, present, objective)

    return decide_blocks(space, n, m, m * (3 * S + 40) * space.itemsize, decide)


def _decide_mass(
    space: Space, P: Array, s: Array, absent: Array, present: Array, objective: Objective
) -> tuple[Array, Array]:
    """Decide from P, (n, m, Q), where column q belongs to cardinality ``s[0, q]``."""
    xp, beta2 = space.xp, objective.beta2
    empty = absent * (0.0 if objective.nonempty else objective.zero_division)
    p, weighted = xp.sum(P, axis=2), xp.sum(P * s[None, :, :], axis=2)  # (n, m)
    found = rank_candidates(space, p, weighted, xp.max(s, axis=1), empty, objective)
    scale = (1.0 + beta2) * xp.ones_like(s)
    columns = Columns(gather(space, P, found.order), beta2 * s, scale, False)
    return decide_columns(space, columns, found, empty, present, objective)


def from_factors(Ps: Any, factors: Any, distributions: Any, objective: Objective) -> Decision:
    """Decide from the P of independent factors."""
    names = [f"Ps[{f}]" for f in range(count_parts(Ps))]
    parts, xp = [], None
    for f, name in enumerate(names):
        own = Ps[f, ...] if hasattr(Ps, "ndim") else Ps[f]
        P, library = read_array(own, name, CARDINALITY_AXES)
        check_cardinality_shape(tuple(P.shape), name)
        parts.append(P)
        xp = xp or library
    check_same_rows([P.shape[0] for P in parts], names)
    members = check_factors(factors, [P.shape[1] for P in parts])
    given = []
    if distributions is not None:
        check_one_each(distributions, len(parts))
        for f, P in enumerate(parts):
            name = f"distributions[{f}]"
            d, _ = read_array(distributions[f], name, DISTRIBUTION_AXES)
            check_distribution_shape(tuple(d.shape), name, P.shape[0], P.shape[2])
            given.append(d)
            names.append(name)
    space = common_space([*parts, *given], names, xp)
    return decide_factors(space, parts, members, given, _representable(space, objective))


def from_samples(samples: Any, objective: Objective) -> Decision:
    """Decide from draws of the label set, (n, T, m)."""
    array, xp = read_array(samples, "samples", ("row", "draw", "label"))
    space = common_space([array], ["samples"], xp)
    objective = _representable(space, objective)
    n, T, m = array.shape
    beta2 = objective.beta2

    def decide(rows: slice) -> tuple[Array, Array]:
        draws = read_labels(space, array[rows, ...], "samples", rows.start)
        s = xp.sum(draws, axis=2)  # (rows, T)
        drawn = s > 0.0
        present = space.counted(drawn, 1) / T
        empty = (1.0 - present) * (0.0 if objective.nonempty else objective.zero_division)
        p = xp.sum(draws, axis=1) / T
        weighted = xp.sum(draws * s[:, :, None], axis=1) / T
        found = rank_candidates(space, p, weighted, xp.max(s, axis=1), empty, objective)
        where = xp.broadcast_to(found.order[:, None, :], (*s.shape, found.order.shape[1]))
        columns = Columns(
            xp.take_along_axis(draws, where, axis=2),
            beta2 * s,
            space.floats(drawn) * ((1.0 + beta2) / T),
            False,
        )
        return decide_columns(space, columns, found, empty, present, objective)

    return decide_blocks(space, n, m, m * (4 * T + 40) * space.itemsize, decide)


def from_joint(labelsets: Any, proba: Any, objective: Objective) -> Decision:
    """Decide from the probabilities, (n, L), of label sets, (L, m)."""
    weights, xp = read_array(proba, "proba", ("row", "label set"))
    raw, _ = read_array(labelsets, "labelsets", ("label set", "label"))
    space = common_space([weights], ["proba"], xp)
    common_space([weights, raw], ["proba", "labelsets"], xp)  # one library, one device
    objective = _representable(space, objective)
    sets = read_labels(space, raw, "labelsets", 0)  # (L, m)
    check_one_weight_each(weights.shape[1], sets.shape[0])
    size = to_host(xp.sum(sets, axis=1))  # (L,)
    cardinalities = np.unique(np.append(size[size > 0.0], 1.0))
    s = space.array(cardinalities)[None, :]  # (1, Q)
    where = [xp.asarray(np.flatnonzero(size == c), device=space.device) for c in cardinalities]
    kinds = [(at, xp.take(sets, at, axis=0)) for at in where]
    nothing = space.array(size == 0.0)  # (L,)
    n, m = weights.shape[0], sets.shape[1]

    def decide(rows: slice) -> tuple[Array, Array]:
        mass = read_units(space, weights[rows, ...], "proba", rows.start)
        with full_precision(space):
            P = xp.stack([xp.take(mass, at, axis=1) @ sets_at for at, sets_at in kinds], axis=2)
        absent = xp.sum(mass * nothing[None, :], axis=1)
        present = xp.sum(mass * (1.0 - nothing)[None, :], axis=1)
        return _decide_mass(space, P, s, absent, present, objective)

    row_bytes = (4 * weights.shape[1] + m * (4 * len(kinds) + 40)) * space.itemsize
    return decide_blocks(space, n, m, row_bytes, decide)
