"""Files as data frames: features and labels, probabilities, label sets.

`load` reads features and labels from CSV, TSV, Parquet, JSON lines, Excel, ARFF (MULAN and MEKA),
multi-label svmlight and the format of the extreme classification repository. `FeatureEncoder`
makes numbers of the columns of a table; `load_blocks` reads further tables in blocks of rows.
`decide` reads a table of probabilities and writes label sets; `LabelSetWriter` and
`ProbabilityWriter` write the same files from arrays. `load_validation` reads probabilities and
true labels, to fit an `fgfm.FDecider`. Invalid files raise `DataError`, which names the place and
the rule.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fgfm.io._decide import DecideReport, decide
    from fgfm.io._encoder import FeatureEncoder
    from fgfm.io._errors import DataError
    from fgfm.io._formats import FORMATS
    from fgfm.io._load import Dataset, load, load_blocks
    from fgfm.io._validation import Validation, load_validation
    from fgfm.io._write import LabelSetWriter, ProbabilityWriter

_MODULE_OF = {  # imported on first use: deciding needs neither scikit-learn nor pandas
    "FORMATS": "_formats",
    "DataError": "_errors",
    "Dataset": "_load",
    "DecideReport": "_decide",
    "FeatureEncoder": "_encoder",
    "LabelSetWriter": "_write",
    "ProbabilityWriter": "_write",
    "Validation": "_validation",
    "decide": "_decide",
    "load": "_load",
    "load_blocks": "_load",
    "load_validation": "_validation",
}
__all__ = [
    "FORMATS",
    "DataError",
    "Dataset",
    "DecideReport",
    "FeatureEncoder",
    "LabelSetWriter",
    "ProbabilityWriter",
    "Validation",
    "decide",
    "load",
    "load_blocks",
    "load_validation",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"fgfm.io has no attribute {name!r}")
    value = getattr(import_module(f"fgfm.io.{_MODULE_OF[name]}"), name)
    globals()[name] = value  # found there the next time
    return value


def __dir__() -> list[str]:
    return __all__
