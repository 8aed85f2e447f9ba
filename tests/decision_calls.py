"""One call for each kind of input of a decision, for the tests of what all have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import logit

from fgfm import cardinality, decision
from fgfm.decision import Constraints

_rng = np.random.default_rng(17)
N = 60  # rows
PROBA = _rng.random((N, 12)) ** 3
LONG = _rng.random((N, 400)) ** 3
STORED = sparse.csr_array(PROBA * (PROBA > 0.05) * (np.arange(N) != 3)[:, None])
PARTS = [cardinality.of_marginals(PROBA[:, :5]), cardinality.of_marginals(PROBA[:, 5:11])]
PARTS.append(PROBA[:, 11:, None])
DISTRIBUTIONS = [cardinality.distribution(P) for P in PARTS]
FACTORS = [[4, 1, 11, 3, 0], [5, 6, 7, 8, 9, 10], [2]]
DRAWS = (_rng.random((N, 15, 12)) < PROBA[:, None]).astype(np.uint8)
DRAWS[:, 0] = 1  # P ends with the largest draw, and so do sums: here with the same in every block
SETS = _rng.permutation(np.unique(DRAWS.reshape(-1, 12), axis=0))[:25]
WEIGHTS = _rng.dirichlet(np.full(25, 0.3), size=N)
AVERAGES = ("samples", "macro", "weighted", "micro")


class Call(NamedTuple):
    """A function, its arguments with one entry per row (arrays, or lists of them), and others."""

    function: Callable[..., decision.Decision]
    arrays: dict[str, Any]
    others: Mapping[str, Any] = MappingProxyType({})
    averages: tuple[str, ...] = AVERAGES

    def __call__(self, to: Any = None, rows: Any = slice(None), **options: Any) -> Any:
        """Decide some of the rows, of arrays converted by `to`."""

        def converted(value: Any) -> Any:
            if isinstance(value, list):
                return [converted(part) for part in value]
            return value[rows] if to is None else to(value[rows])

        arrays = {name: converted(value) for name, value in self.arrays.items()}
        return self.function(**arrays, **self.others, **options)


_P, _d = PARTS[0], DISTRIBUTIONS[0]
_marginals, _factors = decision.from_marginals, decision.from_factors
_tree = Constraints(required=[2], parents={1: 4, 4: 0}, costs=0.01)
_groups = Constraints(groups=[[0, 1, 2], [5, 8]], costs=0.01)
CALLS = {
    "marginals": Call(_marginals, {"proba": PROBA}),
    "logits": Call(_marginals, {"proba": logit(PROBA)}, {"logits": True}),
    "pairs": Call(_marginals, {"proba": [np.stack([1.0 - p, p], axis=1) for p in PROBA.T]}),
    "jaccard": Call(_marginals, {"proba": PROBA}, {"measure": "jaccard"}),
    "long rows": Call(_marginals, {"proba": LONG}),
    "jaccard of long rows": Call(_marginals, {"proba": LONG}, {"measure": "jaccard"}),
    "limits": Call(_marginals, {"proba": PROBA}, {"min_labels": 1, "max_labels": 3}),
    "constraints": Call(_marginals, {"proba": PROBA}, {"constraints": _tree}, ("samples",)),
    "floors": Call(_marginals, {"proba": PROBA}, {"min_recall": 0.3}),
    "missed": Call(
        _marginals,
        {"proba": PROBA, "missed": WEIGHTS[:, :3] / WEIGHTS[:, :3].sum(axis=1, keepdims=True)},
        averages=("samples", "micro"),
    ),
    "flat": Call(_marginals, {"proba": PROBA[:, 0]}, averages=("macro",)),
    "flat floors": Call(_marginals, {"proba": PROBA[:, 0]}, {"min_recall": 0.3}, ("macro",)),
    "sparse marginals": Call(_marginals, {"proba": STORED}),
    "sparse limits": Call(_marginals, {"proba": STORED}, {"min_labels": 1, "max_labels": 2}),
    "sparse floors": Call(_marginals, {"proba": STORED}, {"min_recall": 0.3}),
    "sparse constraints": Call(
        _marginals, {"proba": STORED}, {"constraints": _groups}, ("samples",)
    ),
    "cardinalities": Call(decision.from_cardinalities, {"P": _P}),
    "distribution": Call(decision.from_cardinalities, {"P": _P, "distribution": _d}),
    "limited cardinalities": Call(
        decision.from_cardinalities, {"P": _P}, {"max_labels": 2}, AVERAGES[:3]
    ),
    "factors": Call(_factors, {"Ps": PARTS}, {"factors": FACTORS}),
    "distributions": Call(
        _factors, {"Ps": PARTS, "distributions": DISTRIBUTIONS}, {"factors": FACTORS}
    ),
    "single labels": Call(
        _factors,
        {"Ps": [PROBA[:, [i], None] for i in range(12)]},
        {"factors": [[11 - i] for i in range(12)]},
    ),
    "sparse factors": Call(
        _factors,
        {"Ps": [PARTS[0], STORED[:, 5:11], PARTS[2]]},
        {"factors": FACTORS},
    ),
    "samples": Call(decision.from_samples, {"samples": DRAWS}),
    "joint": Call(decision.from_joint, {"proba": WEIGHTS}, {"labelsets": SETS}),
    "classes": Call(decision.from_classes, {"proba": WEIGHTS}, averages=("macro", "weighted")),
}
