"""Label factors: which labels depend on each other given the features.

- `ILFCompo`: find the irreducible label factors of data;
- `group_labels`, `published_grouping`: factors from p-values;
- `g_test`: the G test of two discrete variables;
- `markov_boundary`: the features that matter to a label;
- `factors_from_dag`: the factors of a known graph.

References
----------
Gasse, M., Aussem, A. and Elghazel, H. (2015). On the Optimality of Multi-Label Classification
under Subset Zero-One Loss for Distributions Satisfying the Composition Property. ICML 2015.
"""

from __future__ import annotations

from fgfm.factors._dag import factors_from_dag
from fgfm.factors._g_test import g_test
from fgfm.factors._ilf import ILFCompo
from fgfm.factors._label_graph import group_labels, published_grouping
from fgfm.factors._markov_boundary import markov_boundary

__all__ = [
    "ILFCompo",
    "factors_from_dag",
    "g_test",
    "group_labels",
    "markov_boundary",
    "published_grouping",
]


def __dir__() -> list[str]:
    return __all__
