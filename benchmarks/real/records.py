"""The scores of one rule on one fold: one row of the results."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.memory import peak_bytes
from benchmarks.real.problem import Outcome
from benchmarks.real.subprocesses import OK
from fgfm.evaluation._scores import score_measures
from fgfm.metrics import calibration_bins, f_measure

__all__ = ["ALL_RULES", "Key", "Record", "make_record"]

Floats = npt.NDArray[np.float64]
Key = tuple[str, int, str, str]  # data set, fold, learner, rule

ALL_RULES = "all"  # the rule of a package that failed before its rules were known
_BINS = 10  # of rows, by their expected F1
_NAN = float("nan")


class Record(NamedTuple):
    """The scores of one rule on one fold of a data set.

    Attributes
    ----------
    dataset : str
        The data set.
    fold : int
        The fold of the test rows; 0 is the standard split, if there is one.
    learner : str
        The base learner, or the other package.
    rule : str
        The decision rule.
    status : str
        "ok", "limit" if the time limit was exceeded, or the error. Without "ok" all numbers are
        NaN.
    f1, f2, f05 : float
        Mean F-measure of test rows for beta 1, 2 and 0.5, of decisions for beta 1.
    f2_own, f05_own : float
        The same, of decisions for that beta.
    micro_f1, macro_f1, jaccard, subset_accuracy, hamming_loss, labels_per_row : float
        Other measures of decisions for beta 1.
    expected_f : float
        Mean F1 that the rule expected; NaN if it does not compute it.
    calibration_gap : float
        Mean absolute difference of expected and obtained F1 over ten bins of rows.
    fit_s, predict_s : float
        Seconds to fit, and to decide.
    peak_mib : float
        Peak memory of the process, in MiB.
    n_test : int
        Number of test rows.
    """

    dataset: str
    fold: int
    learner: str
    rule: str
    status: str
    f1: float
    f2: float
    f05: float
    f2_own: float
    f05_own: float
    micro_f1: float
    macro_f1: float
    jaccard: float
    subset_accuracy: float
    hamming_loss: float
    labels_per_row: float
    expected_f: float
    calibration_gap: float
    fit_s: float
    predict_s: float
    peak_mib: float
    n_test: int


def make_record(key: Key, outcome: Outcome, truth: npt.NDArray[Any]) -> tuple[Record, Floats]:
    """Score the decisions of a rule."""
    labels = outcome.labels[1.0]
    f = f_measure(truth, labels, per_row=True)
    measures = score_measures(truth.astype(bool), labels.astype(bool), f, 1.0)
    scores = {name: value for name, (value, _) in measures.items()}
    expected, gap = _calibration(outcome.expected_f, f)
    record = Record(
        *key,
        status=OK,
        f1=scores["instance_f"],
        f2=f_measure(truth, labels, 2.0),
        f05=f_measure(truth, labels, 0.5),
        f2_own=f_measure(truth, outcome.labels.get(2.0, labels), 2.0),
        f05_own=f_measure(truth, outcome.labels.get(0.5, labels), 0.5),
        micro_f1=scores["micro_f"],
        macro_f1=scores["macro_f"],
        jaccard=scores["jaccard"],
        subset_accuracy=scores["subset_accuracy"],
        hamming_loss=scores["hamming_loss"],
        labels_per_row=scores["labels_per_row"],
        expected_f=expected,
        calibration_gap=gap,
        fit_s=outcome.fit_s,
        predict_s=outcome.predict_s,
        peak_mib=peak_bytes() / 2**20 if outcome.peak_mib is None else outcome.peak_mib,
        n_test=len(truth),
    )
    return record, f


def _calibration(expected_f: Floats | None, f: Floats) -> tuple[float, float]:
    """Return the mean expected F1, and its mean absolute difference from F1 over bins."""
    if expected_f is None:
        return _NAN, _NAN
    finite = np.isfinite(expected_f)
    if not finite.any():
        return _NAN, _NAN
    bins = calibration_bins(expected_f[finite], f[finite], _BINS)
    gap = float(np.average(np.abs(bins.expected - bins.obtained), weights=bins.n_rows))
    return float(expected_f[finite].mean()), gap
