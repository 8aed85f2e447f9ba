"""What is known of each rule on each fold: one row of the results."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.real.isolation import peak_mib
from benchmarks.real.rules import Outcome
from fgfm.evaluation import scores_of
from fgfm.metrics import calibration_bins, f_measure

__all__ = ["ANY", "OK", "Key", "Record", "measured"]

Floats = npt.NDArray[np.float64]
Key = tuple[str, int, str, str]  # data set, fold, learner, rule

OK = "ok"
ANY = "all"  # stands for the rules of a peer that failed before they were known
_BINS = 10
_NAN = float("nan")


class Record(NamedTuple):
    """What one rule reached on one fold of a data set.

    Attributes
    ----------
    dataset : str
        The data set.
    fold : int
        Which rows were those of test; 0 is the standard split, where there is one.
    learner : str
        The base learner, or the other package.
    rule : str
        What made label sets.
    status : str
        "ok", "limit" if the time was over, or the error; unless it is "ok" there are no numbers.
    f1, f2, f05 : float
        Mean F-measure of test rows for beta 1, 2 and 0.5, of decisions for beta 1.
    f2_own, f05_own : float
        The same, of decisions for that beta.
    micro_f1, macro_f1, jaccard, subset_accuracy, hamming_loss, labels_per_row : float
        Other measures of decisions for beta 1.
    expected_f : float
        The mean F1 that the rule expected; NaN if it expects none.
    calibration_gap : float
        Mean absolute difference of expected and obtained F1 over ten bins of rows.
    fit_s, predict_s : float
        Seconds to fit, and to decide.
    peak_mib : float
        The most memory of the process, in MiB.
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


def measured(key: Key, outcome: Outcome, truth: npt.NDArray[Any]) -> tuple[Record, Floats]:
    """Score decisions.

    Parameters
    ----------
    key : tuple
        Data set, fold, learner and rule.
    outcome : Outcome
        What the rule decided.
    truth : ndarray of shape (n, m)
        True labels of the test rows.

    Returns
    -------
    record : Record
        The scores.
    f : ndarray of shape (n,)
        The F-measure of each row.
    """
    labels = outcome.labels[1.0]
    f = f_measure(truth, labels, per_row=True)
    scores = {
        name: value
        for name, (value, _) in scores_of(truth.astype(bool), labels.astype(bool), f, 1.0).items()
    }
    expected, gap = _NAN, _NAN
    if outcome.expected_f is not None:
        known = np.isfinite(outcome.expected_f)
        expected = float(outcome.expected_f[known].mean()) if known.any() else _NAN
        if known.any():
            bins = calibration_bins(outcome.expected_f[known], f[known], _BINS)
            gap = float(np.average(np.abs(bins.expected - bins.obtained), weights=bins.n_rows))
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
        peak_mib=peak_mib() if outcome.peak_mib is None else outcome.peak_mib,
        n_test=len(truth),
    )
    return record, f
