"""``fgfm predict``: label sets for the rows of a file, by a model from a file."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from fgfm.cli._console import clipped, counted, plain_errors, progress_bar, say
from fgfm.cli._models import LoadedModel, load_model, match_columns, read_flag
from fgfm.cli._options import (
    Decimal,
    Delimiter,
    Drop,
    Encoding,
    Format,
    Trust,
    check_target,
    data_options,
    listed,
    load_data,
    rows_of_split,
)

__all__ = ["EPILOG", "predict", "read_for_model", "set_objective"]

EPILOG = """\b
Examples:
  fgfm predict films.fgfm new.csv -o sets.csv --ids title
  fgfm predict films.fgfm new.csv | head
  fgfm predict films.fgfm new.parquet -o sets.jsonl --beta 2
  fgfm predict films.fgfm new.csv --proba p.csv --ids title
  fgfm predict birds.fgfm birds.arff -o sets.csv \\
      --trust sklearn.tree._tree.Tree
"""
_MOST_ROWS = 8192  # decided at a time


def set_objective(
    loaded: LoadedModel, beta: float | None, zero_division: float | None, nonempty: str | None
) -> None:
    """Have a model decide for something else than it was fitted for."""
    if beta is not None:
        loaded.classifier.set_params(beta=beta)
    if zero_division is not None:
        loaded.classifier.set_params(zero_division=zero_division)
    if nonempty is not None:
        loaded.classifier.set_params(nonempty=read_flag(nonempty, "--nonempty"))


def read_for_model(
    loaded: LoadedModel, path: Path, options: dict[str, Any], ids: list[str], split: str | None
) -> tuple[Any, Any]:
    """Read rows as a model wants them, and the columns that are kept of them."""
    from fgfm.data._text import spooled

    if not ids:
        return _read_for_model(loaded, path, options, ids, split)
    with spooled(path) as source:  # it is read twice
        return _read_for_model(loaded, source, options, ids, split)


def _read_for_model(
    loaded: LoadedModel, path: Path, options: dict[str, Any], ids: list[str], split: str | None
) -> tuple[Any, Any]:
    from fgfm.data import DataError

    columns = None
    if ids:
        from fgfm.data._row_columns import read_columns

        how = {key: options[key] for key in ("format", "delimiter", "encoding")}
        columns = read_columns(path, ids, **how)
        known = {*getattr(loaded.encoder, "feature_names_in_", ()), *loaded.label_names}
        known.add(getattr(loaded.encoder, "tag_column_", None))
        options = options | {"drop": [*options["drop"], *(i for i in ids if i not in known)]}
    data = load_data(path, options | {"encoder": loaded.encoder})
    if loaded.encoder is None:
        data = match_columns(data, loaded.model)
    wanted = getattr(loaded.model, "n_features_in_", None)
    if wanted not in (None, data.X.shape[1]):
        raise DataError(f"{path}: there are {data.X.shape[1]} features: the model has {wanted}")
    rows = rows_of_split(data, split)
    if columns is not None and split is not None:
        columns = columns.take(data.train if split == "train" else data.test)
    return rows, columns


@plain_errors
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="File that fgfm fit wrote.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="File with features.")],
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Label sets: .csv, .tsv, .jsonl or .parquet; - is standard output, and the "
            "default without --proba.",
        ),
    ] = None,
    proba: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Probability of each label: .csv, .tsv or .parquet; with -o or without.",
        ),
    ] = None,
    output_format: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="Of what is written; by default its name tells."),
    ] = None,
    ids: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMNS", help="Columns of a table that are kept beside."),
    ] = None,
    wide: Annotated[
        bool, typer.Option("--wide", help="A column of 0 and 1 for each label.")
    ] = False,
    separator: Annotated[
        str, typer.Option(metavar="TEXT", help="What stands between labels in text.")
    ] = ";",
    beta: Annotated[
        float | None, typer.Option(metavar="B", help="Another beta than that of the fit.")
    ] = None,
    zero_division: Annotated[
        float | None, typer.Option(metavar="W", help="Another worth of the empty set.")
    ] = None,
    nonempty: Annotated[
        str | None, typer.Option(metavar="WHEN", help="auto, yes or no, other than in the fit.")
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(metavar="PART", help="test: only the test rows that DATA names."),
    ] = None,
    trust: Trust = None,
    format: Format = None,
    drop: Drop = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
) -> None:
    """Decide for the label sets of the rows of a file.

    Each row gets its labels, and the F-measure that is expected of them. Labels in DATA are not
    looked at.
    """
    from fgfm._utils.blocks import row_blocks
    from fgfm.data._label_sets import LabelSetWriter
    from fgfm.data._row_columns import ProbabilityWriter

    if out is None and proba is None:
        out = "-"
    if out == proba == "-":
        raise ValueError("-o and --proba are both -: they must be two files")
    taken = [model, data]
    for target, option in ((out, "-o"), (proba, "--proba")):
        if target is not None and target != "-":
            check_target(Path(target), option, taken)
            taken.append(Path(target))
    start = time.perf_counter()
    loaded = load_model(model, trust or [])
    set_objective(loaded, beta, zero_division, nonempty)
    names = loaded.label_names
    with ExitStack() as stack:
        sets, chances = None, None
        if out is not None:
            sets = LabelSetWriter(out, names, format=output_format, separator=separator, wide=wide)
        if proba is not None:
            named = output_format if out is None else None  # of -o, where both are written
            chances = ProbabilityWriter(proba, names, format=named)
        options = data_options(
            None, None, format, drop, None, delimiter, encoding, None, decimal=decimal
        )
        options["with_labels"] = False
        rows, columns = read_for_model(loaded, data, options, listed(ids), split)
        n = rows.X.shape[0]
        prepare = loaded.model[:-1] if loaded.model is not loaded.classifier else None
        show = stack.enter_context(progress_bar("rows"))
        for writer in (sets, chances):
            if writer is not None:
                stack.enter_context(writer)
        total = 0.0
        show(0, n)
        for block in row_blocks(n, max(8 * len(names), (1 << 22) // _MOST_ROWS)):
            X = rows.X[block]
            if prepare is not None and len(prepare):
                X = prepare.transform(X)
            kept = None if columns is None else columns.slice(block.start, X.shape[0])
            if sets is not None:
                labels, expected_f = loaded.classifier.decide(X)
                sets.write(labels, expected_f, kept)
                total += float(expected_f.sum())
            if chances is not None:
                chances.write_proba(loaded.classifier.predict_proba(X)[:, -len(names) :], kept)
            show(block.stop, n)
    seconds = time.perf_counter() - start
    about = f"{counted(n, 'row')} in {seconds:.1f} s"
    if sets is not None and n:
        about += f", mean expected F{loaded.classifier.beta:g} {total / n:.3f}"
    written = [clipped(name, 40) for name in (out, proba) if name not in (None, "-")]
    say(about + (f": {', '.join(written)}" if written else ""))
