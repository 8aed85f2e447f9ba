"""Fit of `FGFMClassifier("ridge")` on a GPU: ``python -m benchmarks.gpu_fit [NAME ...]``.

`RidgeLogistic` for each label and for the number of labels, on a device of PyTorch and on one core
of the CPU: time and processor time of the fit, penalties that differ, and F1 of both. With
``--repeats 0`` on the CPU alone, without PyTorch.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.datasets import Split, load
from benchmarks.report import Column, Table, duration
from fgfm import FGFMClassifier
from fgfm.ridge import RidgeLogistic

__all__ = ["fit_table", "main"]

NAMES = ("delicious", "bibtex", "corel5k", "tmc2007_500")


def fit(split: Split, device: str | None) -> tuple[FGFMClassifier, float, float]:
    """Return a fitted classifier, and the seconds and processor seconds that the fit took."""
    model = FGFMClassifier(RidgeLogistic(device=device), random_state=0)
    start, processor = time.perf_counter(), time.process_time()
    model.fit(split.X_train, split.Y_train)
    return model, time.perf_counter() - start, time.process_time() - processor


def fit_table(name: str, split: Split, device: str, repeats: int) -> Table:
    """Fit one data set on the device, several times, and on the CPU."""
    n, m = split.Y_train.shape
    table = Table(
        f"{name}: {n} rows, {split.X_train.shape[1]} features, {m} labels",
        [
            Column("device", left=True),
            Column("fit", duration),
            Column("processor", duration),
            Column("F1", lambda f1: f"{f1:.5f}"),
        ],
    )
    models = []
    for where in [device] * repeats + [None]:
        model, *seconds = fit(split, where)
        table.rows.append((where or "CPU", *seconds, model.score(split.X_test, split.Y_test)))
        models.append(model)
    if repeats:
        found, expected = (model._factor_models.models.penalties for model in models[-2:])
        different = np.count_nonzero(found != expected)
        table.notes.append(f"{different} of {len(expected)} penalties differ.")
    return table


def main(arguments: list[str] | None = None) -> None:
    """Measure and print one table for each data set."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_fit", description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES, metavar="NAME", help="data sets")
    parser.add_argument("--device", default="cuda", help="device of PyTorch")
    parser.add_argument("--repeats", type=int, default=3, help="fits on the device")
    options = parser.parse_args(arguments)
    for name in options.names:
        table = fit_table(name, load(name), options.device, options.repeats)
        print("\n".join(table.lines()), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
