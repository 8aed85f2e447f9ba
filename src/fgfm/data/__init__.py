"""Data sets in files: read with their names, encoded, checked, and written.

`load` reads CSV, TSV, Parquet, ARFF (MULAN and MEKA), multi-label svmlight, the format of the
extreme classification repository, NumPy archives, and OpenML by name; `save` writes them. A file
that is not as it should be raises `DataError`, with one sentence that says where and why.
`decide` turns a file of probabilities into one of label sets, in blocks.
`FeatureEncoder` remembers the columns of training for the files that come later.
"""

from __future__ import annotations

from fgfm.data._dataset import Dataset
from fgfm.data._decide import DecideReport, decide
from fgfm.data._encoder import FeatureEncoder
from fgfm.data._errors import DataError
from fgfm.data._files import load, save

__all__ = ["DataError", "Dataset", "DecideReport", "FeatureEncoder", "decide", "load", "save"]
