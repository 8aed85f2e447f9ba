"""Files as data frames: features and labels, probabilities, label sets.

`load` reads features and labels from CSV, TSV, Parquet, JSON lines, Excel, ARFF (MULAN and MEKA),
multi-label svmlight, the format of the extreme classification repository, NumPy archives and
OpenML. `FeatureEncoder` makes numbers of the columns of a table; `load_blocks` reads further
tables in blocks of rows. `decide` reads a table of probabilities and writes label sets;
`LabelSetWriter` and `ProbabilityWriter` write the same files from arrays. `load_validation` reads
probabilities and true labels, to fit an `fgfm.FDecider`. Invalid files raise `DataError`, which
names the place and the rule.
"""

from __future__ import annotations

from fgfm.io._dataset import Dataset
from fgfm.io._decide import DecideReport, decide
from fgfm.io._encoder import FeatureEncoder
from fgfm.io._errors import DataError
from fgfm.io._load import load, load_blocks
from fgfm.io._validation import Validation, load_validation
from fgfm.io._write import LabelSetWriter, ProbabilityWriter

__all__ = [
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


def __dir__() -> list[str]:
    return __all__
