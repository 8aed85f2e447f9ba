"""Data sets, probabilities and label sets in files.

`load` reads CSV, TSV, Parquet, ARFF (MULAN and MEKA), multi-label svmlight, the format of the
extreme classification repository, NumPy archives and data sets of OpenML; `save` writes them.
`FeatureEncoder` encodes the features of further files as in training; `load_blocks` reads them in
blocks of rows. `decide` reads a table of
probabilities and writes label sets, in blocks of rows; `LabelSetWriter` and `ProbabilityWriter`
write the same files from arrays. `load_validation` reads probabilities and true labels, to fit an
`fgfm.FDecider`. Invalid files raise `DataError`, which names the place, the
fault and the rule.
"""

from __future__ import annotations

from fgfm.data._dataset import Dataset
from fgfm.data._decide import DecideReport, decide
from fgfm.data._encoder import FeatureEncoder
from fgfm.data._errors import DataError
from fgfm.data._load import load
from fgfm.data._load_blocks import load_blocks
from fgfm.data._save import save
from fgfm.data._validation import Validation, load_validation
from fgfm.data._writers import LabelSetWriter, ProbabilityWriter

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
    "save",
]


def __dir__() -> list[str]:
    return __all__
