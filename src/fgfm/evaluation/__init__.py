"""Compare the F-optimal rule with probability thresholds on one's own data.

`evaluate` fits a classifier and decides for rows that were not used for fitting;
`evaluate_fitted` scores a fitted one. `evaluate_decider` cross-validates an `fgfm.FDecider` on
the probabilities of another model. The command ``fgfm evaluate`` prints what they return.
"""

from __future__ import annotations

from fgfm.evaluation._comparison import Comparison
from fgfm.evaluation._evaluate import Evaluation, evaluate, evaluate_decider, evaluate_fitted

__all__ = [
    "Comparison",
    "Evaluation",
    "evaluate",
    "evaluate_decider",
    "evaluate_fitted",
]


def __dir__() -> list[str]:
    return __all__
