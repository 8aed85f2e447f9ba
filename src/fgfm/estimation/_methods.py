"""The methods that estimate P, by the names that ``FGFMClassifier(method=...)`` accepts."""

from __future__ import annotations

from fgfm.estimation._direct import DirectStrategy
from fgfm.estimation._powerset import PowersetStrategy
from fgfm.estimation._reweighted import ReweightedStrategy
from fgfm.estimation._strategy import Strategy
from fgfm.estimation._tilted import TiltedStrategy
from fgfm.estimation._two_step import TwoStepStrategy

__all__ = ["METHODS"]

METHODS: dict[str, type[Strategy]] = {
    strategy.name: strategy
    for strategy in (
        ReweightedStrategy,
        TwoStepStrategy,
        TiltedStrategy,
        DirectStrategy,
        PowersetStrategy,
    )
}
