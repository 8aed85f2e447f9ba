"""Label sets for files of probabilities."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fgfm._utils.optional import import_optional
from fgfm._utils.text import counted
from fgfm.decision import Constraints, from_marginals
from fgfm.io._errors import DataError
from fgfm.io._files import TextFormat
from fgfm.io._probabilities import Probabilities, open_probabilities
from fgfm.io._write import LabelSetWriter

if TYPE_CHECKING:
    from fgfm.decider import FDecider

_STAMP = "fgfm.decide"  # the key of the metadata that say how a file was made
_TOTALS = "fgfm.totals"


class DecideReport(NamedTuple):
    """Row count and mean expected F-measure of `decide`.

    Attributes
    ----------
    rows : int
        Number of rows.
    mean_expected_f : float
        Mean of the expected F-measures of rows; of labels if the average is "macro"; that of all
        entries if it is "micro". NaN if none is defined, as with a decider of "macro" or "micro".
    average : str
        The average that was decided for; "macro" for a table of one label.
    seconds : float
        Time.
    kept : int
        Number of files of a folder that were up to date.
    """

    rows: int
    mean_expected_f: float
    average: str
    seconds: float
    kept: int = 0


class _Settings(NamedTuple):
    """The arguments of `decide` that apply to each file."""

    decision: dict[str, Any]
    decider: Any
    reading: dict[str, Any]  # arguments of `open_probabilities`
    writing: dict[str, Any]  # arguments of `LabelSetWriter`


class _Totals(NamedTuple):
    """Totals over the rows of a file."""

    rows: int
    sum_f: float  # of expected F-measures
    defined: int  # problems (rows, labels, or all entries) that have one
    average: str


def decide(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    decider: FDecider | None = None,
    ids: Sequence[str] = (),
    strict: bool = False,
    format: str | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    header: bool | None = None,
    output_format: str | None = None,
    separator: str = ";",
    wide: bool = False,
    n_jobs: int | None = None,
    progress: Callable[[int], object] | None = None,
    **decision: Any,
) -> DecideReport:
    """Write the F-optimal label sets of a table of marginal probabilities.

    Rows are read, decided and written in blocks, so that memory does not grow with their number.
    Only "macro", "micro" and "weighted", and a table of one label, are decided as a whole: the
    table is read into one array, and the output has no expected F-measure of a row.

    A folder of Parquet files becomes a folder of Parquet files. A file of the target folder is
    kept if it was made by the same version from the same file with the same arguments, so that an
    interrupted run can be resumed.

    Parameters
    ----------
    source : str or path-like
        The table, with a column per label; "-" is standard input. Or a folder of such tables in
        Parquet, at any depth; names that begin with "." or "_" are skipped.
    target : str or path-like
        The file of label sets, which is replaced when the new one is complete; "-" is standard
        output, which has the rows before an error. Or a folder, created if needed, for a file of
        the same name for each of `source`.
    decider : FDecider, optional
        A fitted decider, in the place of all arguments of `decision`. It decides each row by
        itself, also with "macro" and "micro": then by its thresholds. Its labels are found by
        name, in any order.
    ids : sequence of str, default=()
        Columns that are not labels, to be kept in the output. Without any, columns that are
        called like an identifier (``id``, ``doc_id``) and do not hold probabilities are.
    strict : bool, default=False
        Whether a cell that is not a number is an error; otherwise it is a probability of 0, with
        a warning that counts them. More than 5 % of a column, in the first block or in all rows,
        are an error.
    format : str, optional
        The format of the table, as in `load`.
    delimiter, decimal, encoding, header : optional
        How CSV and TSV are written, as in `load`. Without a header, labels are numbered from 0.
    output_format : {"csv", "tsv", "jsonl", "parquet"}, optional
        The format of the label sets; by default it follows from the file name.
    separator : str, default=";"
        The separator of the labels of a row in CSV and TSV.
    wide : bool, default=False
        Whether to write one 0/1 column per label instead of one column of label lists.
    n_jobs : int, optional
        The number of threads, as in joblib; of a folder, the number of files at a time, which may
        be on the workers of a cluster (``joblib.parallel_config``) that see the same files. It
        does not change the result.
    progress : callable, optional
        Called with the number of rows done, after every block, or every file of a folder.
    **decision
        Arguments of `fgfm.decision.from_marginals`: ``beta``, ``average``, ``logits`` and so on.

    Returns
    -------
    DecideReport
        Row count, mean expected F-measure and time.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fgfm.io import decide
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     probabilities, label_sets = Path(folder) / "p.csv", Path(folder) / "sets.csv"
    ...     _ = probabilities.write_text("name,cat,dog\\nrex,0.1,0.9\\nfelix,0.6,0.4\\n")
    ...     report = decide(probabilities, label_sets, ids=["name"])
    ...     print(label_sets.read_text())
    name,labels,expected_f
    rex,dog,0.87
    felix,cat;dog,0.586667
    <BLANKLINE>
    """
    if decider is not None:
        _check_decider(decider, decision)
    # Wrong arguments raise before a file is opened, but those that depend on its labels.
    dependent = ("constraints", "min_labels", "max_labels")
    from_marginals(np.zeros((0, 2)), **{k: v for k, v in decision.items() if k not in dependent})
    text = TextFormat(delimiter, decimal, encoding, header).check()
    settings = _Settings(
        decision,
        decider,
        {"format": format, "text": text, "ids": tuple(ids), "strict": strict},
        {"format": output_format, "separator": separator, "wide": wide},
    )
    start = time.perf_counter()
    names = (os.fspath(source), os.fspath(target))
    if "-" not in names and os.path.realpath(source) == os.path.realpath(target):
        raise ValueError(f"target is {target}, as source is: they must be two files")
    kept = 0
    with warnings.catch_warnings():  # such rows are counted, and reported once for a file
        warnings.filterwarnings("ignore", message="rows without probability")
        if os.path.isdir(source):
            totals, kept = _decide_folder(Path(source), Path(target), settings, n_jobs, progress)
        else:
            totals = [_decide_file(source, target, settings, n_jobs, progress)]
    rows, defined = sum(one.rows for one in totals), sum(one.defined for one in totals)
    mean = sum(one.sum_f for one in totals) / defined if defined else float("nan")
    return DecideReport(rows, mean, totals[0].average, time.perf_counter() - start, kept)


def _check_decider(decider: Any, decision: dict[str, Any]) -> None:
    from fgfm.decider import FDecider

    if not isinstance(decider, FDecider) or not hasattr(decider, "classes_"):
        raise TypeError(f"decider is {decider!r}: it must be a fitted fgfm.FDecider")
    if decision:
        name, value = next(iter(decision.items()))
        raise ValueError(
            f"{name} is {value!r} and decider is given, which has its own: one of them must be "
            "left out"
        )


def _decide_file(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    settings: _Settings,
    n_jobs: int | None = None,
    progress: Callable[[int], object] | None = None,
    stamp: str | None = None,
) -> _Totals:
    """Decide for the rows of one file; a stamp is written into a Parquet file of label sets."""
    decider = settings.decider
    logits = settings.decision.get("logits") if decider is None else decider.scores
    labels = None if decider is None else _decider_labels(decider)
    with open_probabilities(
        source, logits=bool(logits), labels=labels, **settings.reading
    ) as table:
        average, together, rule = _make_rule(settings, table, n_jobs)
        rows = defined = first = empty = 0
        sum_f = 0.0
        with LabelSetWriter(target, table.label_names, **settings.writing) as writer:
            for proba, ids in [table.read()] if together else table.blocks:
                n = proba.shape[0]
                sets, expected_f = rule(proba) if n else (np.zeros(proba.shape), np.zeros(0))
                writer.write(sets, expected_f if average == "samples" else None, ids)
                if expected_f is not None:
                    undefined = np.isnan(expected_f)
                    if average == "samples" and undefined.any():
                        first = first if empty else rows + int(np.argmax(undefined))
                        empty += int(undefined.sum())
                    sum_f += float(np.nansum(expected_f))
                    defined += int((~undefined).sum())
                rows += n
                if progress is not None:
                    progress(rows)
            totals = _Totals(rows, sum_f, defined, average)
            if stamp is not None:
                writer.metadata = {_STAMP: stamp, _TOTALS: json.dumps(totals)}
    if empty:
        warnings.warn(
            f"{table.source}: all probabilities of row {first} are 0, which contradicts nonempty: "
            f"it gets the empty set and no expected F-measure ({counted(empty, 'such row')})",
            UserWarning,
            stacklevel=3,
        )
    return totals


def _make_rule(
    settings: _Settings, table: Probabilities, n_jobs: int | None
) -> tuple[str, bool, Callable[[Any], tuple[Any, Any]]]:
    """Return the average, whether all rows are decided together, and the rule.

    The rule returns the labels (n, m) of rows and the expected F-measures of its problems, None if
    there are none. A table with a single label is that of a binary classifier.
    """
    m = len(table.label_names)
    if settings.decider is not None:
        decider = copy.copy(settings.decider).set_params(n_jobs=n_jobs)
        decider.__dict__.pop("feature_names_in_", None)  # arrays have its columns, in its order
        if not decider.multilabel_:  # the positive one of two classes, or one of several
            columns = decider.classes_
            if len(columns) == 2:
                columns = decider._classes[-1:]
                _check_one_column(table, columns[0], decider)
            return "macro", False, lambda p: (decider.predict(p)[:, None] == columns, None)
        if decider.average == "samples":
            return "samples", False, decider.decide
        return decider.average, False, lambda p: (decider.predict(p), None)
    decision = dict(settings.decision)
    average = decision.pop("average", "samples")
    average = "macro" if m == 1 else average
    constraints = decision.get("constraints")
    if isinstance(constraints, Constraints):
        names = table.label_names if table.has_names else None
        decision["constraints"] = constraints.numbered(m, names)

    def rule(proba: Any) -> tuple[Any, Any]:
        labels, expected_f = from_marginals(proba, average=average, n_jobs=n_jobs, **decision)
        return labels, np.atleast_1d(expected_f)

    return average, average != "samples", rule


def _check_one_column(table: Probabilities, positive: Any, decider: Any) -> None:
    """Raise unless a table has one column, which is not that of the other of two classes."""
    other = [str(name) for name in decider.classes_ if name != positive]
    names = table.label_names
    if len(names) != 1 or (table.has_names and names == other):
        raise DataError(
            f"its columns are {', '.join(map(repr, names))}: of two classes there must be one "
            f"column, the probabilities of {str(positive)!r}",
            source=table.source,
            arguments=["ids"],
        )


def _decider_labels(decider: Any) -> list[str] | None:
    """Return the names of the labels of a decider, numbers if it was fitted without names.

    The column of the positive one of two classes may have any name: None.
    """
    fitted = vars(decider)
    names = fitted.get("label_names_in_", fitted.get("feature_names_in_"))
    if names is None and not decider.multilabel_:
        if len(decider.classes_) == 2:
            return None
        names = decider.classes_
    return [str(name) for name in (range(decider.n_features_in_) if names is None else names)]


def _decide_folder(
    source: Path,
    target: Path,
    settings: _Settings,
    n_jobs: int | None,
    progress: Callable[[int], object] | None,
) -> tuple[list[_Totals], int]:
    """Decide for all files of a folder; return their totals and how many were up to date."""
    from sklearn.utils.parallel import delayed

    from fgfm._utils.parallel import run_jobs

    import_optional("pyarrow.parquet", "reading Parquet", "data")
    files = _check_folders(source, target, settings)
    source, target = source.absolute(), target.absolute()  # workers may run in other folders
    for folder in {(target / file).parent for file in files}:
        folder.mkdir(parents=True, exist_ok=True)
    for options in (settings.reading, settings.writing):
        options["format"] = "parquet"
    inner_jobs = n_jobs if len(files) == 1 else 1
    jobs = (
        delayed(_decide_unless_done)(source / f, target / f, settings, inner_jobs) for f in files
    )
    totals, kept = [], 0
    failure: Exception | None = None
    for result in run_jobs(jobs, n_jobs, "threads"):
        if isinstance(result, Exception):  # raised after the other files are done
            failure = failure or result
            continue
        totals.append(result[0])
        kept += result[1]
        if progress is not None:
            progress(sum(one.rows for one in totals))
    if failure is not None:
        raise failure
    return totals, kept


def _check_folders(source: Path, target: Path, settings: _Settings) -> list[Path]:
    """Return the Parquet files below a folder, or raise if they cannot be decided."""
    average = settings.decision.get("average", "samples")
    if str(target) == "-":
        raise DataError(
            "it is a folder, whose label sets cannot be written to standard output: the target "
            "must be a folder, too",
            source=source,
        )
    if settings.decider is None and average != "samples":
        raise DataError(
            f"it is a folder, and average {average!r} decides all rows together: pass one file, "
            "or a decider, which decides row by row",
            source=source,
            arguments=["decider"],
        )
    inner, outer = Path(os.path.realpath(target)), Path(os.path.realpath(source))
    if target.is_file() or inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise ValueError(
            f"target is {target}, and source is a folder, {source}: target must be another "
            "folder, neither of both within the other"
        )
    files = _parquet_files(source)
    if not files:
        raise DataError("the folder has no Parquet file: there must be one", source=source)
    strange = sorted(set(_parquet_files(target)) - set(files))
    if strange:
        reason = f"it has {strange[0]}, which source does not: choose another folder"
        raise DataError(reason, source=target)
    return files


def _parquet_files(folder: Path) -> list[Path]:
    """Return the sorted relative paths of the Parquet files below a folder."""
    found = [path for kind in ("parquet", "pq") for path in folder.rglob(f"*.{kind}")]
    relative = [path.relative_to(folder) for path in found if path.is_file()]
    return sorted(p for p in relative if not any(part[0] in "._" for part in p.parts))


def _decide_unless_done(
    source: Path, target: Path, settings: _Settings, n_jobs: int | None
) -> tuple[_Totals, bool] | Exception:
    """Decide for one file unless a file with the same stamp is there.

    Return its totals and whether it was up to date; an error is returned instead of being raised.
    """
    import joblib
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        status, decider = source.stat(), settings.decider
        stamp = json.dumps(
            {
                "fgfm": version("fgfm"),
                "decision": sorted(map(repr, settings.decision.items())),
                "decider": None if decider is None else joblib.hash(decider),
                "reading": repr(settings.reading),
                "writing": repr(settings.writing),
                "bytes": status.st_size,
                "modified": status.st_mtime_ns,
            }
        )
        # a missing, damaged or foreign file is written again
        with contextlib.suppress(pa.ArrowException, OSError, KeyError, TypeError, ValueError):
            metadata = pq.read_metadata(target).metadata or {}
            if metadata.get(_STAMP.encode()) == stamp.encode():
                return _Totals(*json.loads(metadata[_TOTALS.encode()])), True
        return _decide_file(source, target, settings, n_jobs, stamp=stamp), False
    except Exception as error:
        return error
