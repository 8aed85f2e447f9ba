"""Label sets that maximise the expected F-measure, exactly, from any multi-label model.

A probabilistic multi-label model says how likely labels are; `fgfm.decision` turns that into the
set of labels ``h`` with the largest expectation of

    F_beta(y, h) = (1 + beta^2) (y . h) / (beta^2 |y| + |h|),      0/0 = 1.

- `fgfm.decision`: from probabilities to label sets;
- `fgfm.cardinality`: the matrices ``p(y_i = 1, |y| = s)`` that such decisions rest on;
- `fgfm.metrics`: the F-measure itself, and a scorer;
- `fgfm.factors`: which labels belong together given the features, `ILFCompo` first;
- `fgfm.ridge`: ridge logistic regression, the default base learner;
- `fgfm.estimation`: models of such matrices, with any scikit-learn classifier as base learner;
- `fgfm.FGFMClassifier`: all of it, from features and labels to label sets;
- `fgfm.data`: data sets in files, of many formats;
- `fgfm.evaluation`: the F-optimal rule against thresholds, on a user's own data;
- `fgfm.synthetic`: the random networks of the paper, and all that is true of them;
- `fgfm.experiments`: the paper's experiment;
- `fgfm.plotting`: pictures of decisions, of their calibration and of label factors;
- `fgfm.save` and `fgfm.load`: models in files that run no code when loaded.

Everything is imported on first use: ``import fgfm`` alone loads no other library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import fgfm.cardinality as cardinality
    import fgfm.data as data
    import fgfm.decision as decision
    import fgfm.estimation as estimation
    import fgfm.evaluation as evaluation
    import fgfm.experiments as experiments
    import fgfm.factors as factors
    import fgfm.metrics as metrics
    import fgfm.plotting as plotting
    import fgfm.ridge as ridge
    import fgfm.synthetic as synthetic
    from fgfm.classifier import FGFMClassifier
    from fgfm.decision import Decision
    from fgfm.factors import ILFCompo
    from fgfm.metrics import f_measure, f_scorer
    from fgfm.store import load, save

    __version__: str

__all__ = [
    "Decision",
    "FGFMClassifier",
    "ILFCompo",
    "__version__",
    "cardinality",
    "data",
    "decision",
    "estimation",
    "evaluation",
    "experiments",
    "f_measure",
    "f_scorer",
    "factors",
    "load",
    "metrics",
    "plotting",
    "ridge",
    "save",
    "synthetic",
]

_SUBMODULES = frozenset(
    {
        "cardinality",
        "data",
        "decision",
        "estimation",
        "evaluation",
        "experiments",
        "factors",
        "metrics",
        "plotting",
        "ridge",
        "synthetic",
    }
)
_HOME = {  # the module that defines each name
    "Decision": "fgfm.decision",
    "FGFMClassifier": "fgfm.classifier",
    "ILFCompo": "fgfm.factors",
    "f_measure": "fgfm.metrics",
    "f_scorer": "fgfm.metrics",
    "load": "fgfm.store",
    "save": "fgfm.store",
}


def __getattr__(name: str) -> Any:
    value: Any
    if name in _SUBMODULES:
        value = import_module(f"fgfm.{name}")
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name == "__version__":
        from importlib.metadata import version

        value = version("fgfm")
    else:
        raise AttributeError(
            f"fgfm has no attribute {name!r}: its public names are {', '.join(__all__)}"
        )
    globals()[name] = value  # asked once only
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
