"""Exact F-measure maximisation for multi-label classification, with any probabilistic model.

Given the probabilities of labels, `fgfm.decision` returns the label set ``h`` that maximises the
expectation of

    F_beta(y, h) = (1 + beta^2) (y . h) / (beta^2 |y| + |h|),      0/0 = 1.

Submodules:

- `fgfm.decision`: label sets from probabilities;
- `fgfm.cardinality`: the matrices ``p(y_i = 1, |y| = s)`` that decisions are computed from;
- `fgfm.metrics`: the F-measure, a scikit-learn scorer, and bounds that hold for new rows;
- `fgfm.factors`: groups of labels that are independent of each other given the features;
- `fgfm.ridge`: ridge logistic regression, the base learner of the paper;
- `fgfm.io`: data sets and probabilities in files of many formats;
- `fgfm.evaluation`: the F-optimal rule compared with thresholds on your own data;
- `fgfm.plotting`: figures of decisions, calibration and label factors;
- `fgfm.paper`: the experiment of the paper, its random networks and their exact probabilities;
- `fgfm.onnx`: decisions as ONNX models;
- `fgfm.torch`: a PyTorch layer; import it explicitly.

Classes and functions of the package itself:

- `fgfm.FClassifier`: a classifier with F-optimal decisions, around any model;
- `fgfm.FDecider`: the decisions of a model that is fitted elsewhere, from its probabilities;
- `fgfm.StackClassifier`: the default model, a forest and two ridge regressions whose predictions
  are stacked;
- `fgfm.FGFMClassifier`: the classifier of Gasse and Aussem (2016);
- `fgfm.ILFCompo`: label factors from data;
- `fgfm.Decision`: the result of a decision;
- `fgfm.f_measure` and `fgfm.f_scorer`: the F-measure and its scorer;
- `fgfm.save` and `fgfm.load`: model files that run no code when loaded.

Submodules are imported on first use: ``import fgfm`` alone loads no other library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import fgfm.cardinality as cardinality
    import fgfm.decision as decision
    import fgfm.evaluation as evaluation
    import fgfm.factors as factors
    import fgfm.io as io
    import fgfm.metrics as metrics
    import fgfm.onnx as onnx
    import fgfm.paper as paper
    import fgfm.plotting as plotting
    import fgfm.ridge as ridge
    from fgfm.classifier import FClassifier
    from fgfm.decider import FDecider
    from fgfm.decision import Decision
    from fgfm.factors import ILFCompo
    from fgfm.gfm import FGFMClassifier
    from fgfm.learner import StackClassifier
    from fgfm.metrics import f_measure, f_scorer
    from fgfm.store import load, save

    __version__: str

__all__ = [
    "Decision",
    "FClassifier",
    "FDecider",
    "FGFMClassifier",
    "ILFCompo",
    "StackClassifier",
    "__version__",
    "cardinality",
    "decision",
    "evaluation",
    "f_measure",
    "f_scorer",
    "factors",
    "io",
    "load",
    "metrics",
    "onnx",
    "paper",
    "plotting",
    "ridge",
    "save",
]

_SUBMODULES = frozenset(
    {
        "cardinality",
        "decision",
        "evaluation",
        "factors",
        "io",
        "metrics",
        "onnx",
        "paper",
        "plotting",
        "ridge",
    }
)
_MODULE_OF = {  # the module to import each name from
    "Decision": "fgfm.decision",
    "FDecider": "fgfm.decider",
    "FClassifier": "fgfm.classifier",
    "FGFMClassifier": "fgfm.gfm",
    "ILFCompo": "fgfm.factors",
    "StackClassifier": "fgfm.learner",
    "f_measure": "fgfm.metrics",
    "f_scorer": "fgfm.metrics",
    "load": "fgfm.store",
    "save": "fgfm.store",
}


def __getattr__(name: str) -> Any:
    value: Any
    if name in _SUBMODULES:
        value = import_module(f"fgfm.{name}")
    elif name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
    elif name == "__version__":
        from importlib.metadata import version

        value = version("fgfm")
    else:
        raise AttributeError(
            f"fgfm has no attribute {name!r}: its public names are {', '.join(__all__)}"
        )
    globals()[name] = value  # found there the next time
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
