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

from typing import TYPE_CHECKING, Any

from fgfm.io._decide import DecideReport, decide
from fgfm.io._errors import DataError
from fgfm.io._formats import FORMATS
from fgfm.io._load import Dataset, load, load_blocks
from fgfm.io._validation import Validation, load_validation
from fgfm.io._write import LabelSetWriter, ProbabilityWriter

if TYPE_CHECKING:
    from fgfm.io._encoder import FeatureEncoder

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
    if name != "FeatureEncoder":  # imported on first use: deciding does not need scikit-learn
        raise AttributeError(f"fgfm.io has no attribute {name!r}")
    from fgfm.io._encoder import FeatureEncoder

    return FeatureEncoder


def __dir__() -> list[str]:
    return __all__
