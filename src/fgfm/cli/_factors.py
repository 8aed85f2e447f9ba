"""``fgfm factors``: groups of labels that depend on each other."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from fgfm._utils.optional import import_optional
from fgfm._utils.text import WIDTH, clipped, counted, wrapped
from fgfm.cli._console import STAGES, echo, plain_errors, progress_bar, say
from fgfm.cli._inputs import check_target, column_lines, load_encoded, split_rows
from fgfm.cli._options import (
    Data,
    Json,
    TrainSplit,
    column_options,
    label_options,
    run_options,
    text_options,
    with_options,
)

__all__ = ["EPILOG", "factors"]

EPILOG = """\b
Examples:
  fgfm factors films.csv --labels 'genre_*'
  fgfm factors emotions.npz --alpha 0.05 --graph emotions.png
  fgfm factors emotions.npz --json > factors.json
  fgfm fit emotions.npz --factors factors.json -o emotions.fgfm
"""
_PICTURES = (".png", ".pdf", ".svg")
_NAME = 25  # characters of a label in the table of edges

Alpha = Annotated[
    float, typer.Option(metavar="A", help="Level of the tests, after the correction.")
]
Test = Annotated[
    str, typer.Option(metavar="NAME", help="Test of independence: auto, mi, moments or gcm.")
]
Correction = Annotated[
    str,
    typer.Option(metavar="NAME", help="Correction for multiple tests: bonferroni, bh or none."),
]
MaxSize = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Maximum number of labels of a factor; the weakest edges are cut."
    ),
]
Edges = Annotated[int, typer.Option(metavar="N", help="Number of edges to print per factor.")]
Graph = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Draw the graph to a .png, .pdf or .svg file."),
]


@plain_errors
@with_options(label_options, column_options, text_options, run_options)
def factors(
    context: typer.Context,
    data: Data,
    alpha: Alpha = 0.01,
    test: Test = "auto",
    correction: Correction = "bonferroni",
    max_size: MaxSize = None,
    edges: Edges = 5,
    graph: Graph = None,
    as_json: Json = False,
    split: TrainSplit = None,
    **options: Any,
) -> None:
    """Find groups of labels that depend on each other.

    Pairs of labels are tested for independence given the features. Dependent labels are joined by
    an edge, and the labels that edges connect form a factor. Edges are printed with their p-value
    after the correction for multiple tests, the smallest first.
    """
    start = time.perf_counter()
    if graph is not None:
        _check_picture(graph, data)
    if edges < 0:
        raise ValueError(f"--edges is {edges}: it must be 0 or more")
    found = _find_factors(data, split, context.params)
    echo(_as_json(found) if as_json else _as_table(found, edges))
    if graph is not None:
        _draw(found, graph)
        say(f"graph drawn to {clipped(str(graph), 60)}")
    say(f"{time.perf_counter() - start:.1f} s")


class _Edge(NamedTuple):
    """Two dependent labels."""

    i: int
    j: int
    p_value: float  # corrected
    strength: float


class _Found(NamedTuple):
    """A fitted `ILFCompo` with the description of its data."""

    finder: Any
    data: str
    shape: tuple[int, int]  # of X
    label_names: list[str]
    edges: list[_Edge]  # the smallest p-value first


def _check_picture(path: Path, data: Path) -> None:
    if path.suffix.lower() not in _PICTURES:
        raise ValueError(f"--graph is {path}: its name must end in one of {', '.join(_PICTURES)}")
    check_target(path, "--graph", [data])
    import_optional("matplotlib.pyplot", "--graph", "cli")


def _find_factors(data: Path, split: str | None, params: Mapping[str, Any]) -> _Found:
    """Read a file and learn its label factors."""
    from fgfm import ILFCompo
    from fgfm._utils.progress import report_progress

    rows, encoder, X = load_encoded(data, params)
    chosen = split_rows(rows, split)
    columns = column_lines(encoder, rows.label_names) or [f"{counted(X.shape[1], 'feature')}"]
    correction, jobs = params["correction"], params["jobs"]
    finder = ILFCompo(
        params["test"],
        params["alpha"],
        correction=None if correction == "none" else correction,
        max_factor_size=params["max_size"],
        n_jobs=None if jobs == 1 else jobs,
        random_state=params["seed"],
    )
    assert rows.Y is not None
    X, Y = X[chosen], rows.Y[chosen]
    with progress_bar(STAGES["label factors"]) as show:

        def progress(stage: str, done: int, total: int) -> None:
            if columns:  # the options are valid
                say("\n".join([*columns, "", wrapped(_together(Y, rows.label_names)), ""]))
                columns.clear()
            show(done, total, STAGES.get(stage, stage))

        with report_progress(progress):
            finder.fit(X, Y)
    return _Found(finder, str(data), X.shape, list(rows.label_names), _edges(finder))


def _together(Y: Any, names: Sequence[str]) -> str:
    """Return a sentence on the pairs of labels that occur together most often."""
    import numpy as np

    Y = np.asarray(Y, dtype=np.float64)
    expected = np.outer(Y.sum(axis=0), Y.sum(axis=0)) / len(Y)  # if labels were independent
    excess = np.triu(Y.T @ Y - expected, 1) / np.sqrt(np.maximum(expected, 1.0))
    pairs = [np.unravel_index(at, excess.shape) for at in np.argsort(-excess, axis=None)[:3]]
    found = [
        f"{clipped(names[i], _NAME)} and {clipped(names[j], _NAME)} "
        f"({Y[:, i] @ Y[:, j]:.0f} rows, {expected[i, j]:.0f} by chance)"
        for i, j in pairs
        if excess[i, j] > 0.0
    ]
    often = "; ".join(found) or "no pair more often than by chance"
    return f"together, whatever the features: {often}"


def _edges(finder: Any) -> list[_Edge]:
    """Return the edges, sorted by p-value, then by strength."""
    import numpy as np
    from scipy import sparse

    p = finder.edge_p_values_  # (m, m)
    strength = np.fmax(finder.effects_, finder.effects_.T)
    i, j = sparse.triu(finder.graph_, 1).nonzero()
    order = np.lexsort((j, i, -strength[i, j], p[i, j]))
    return [
        _Edge(int(i[e]), int(j[e]), float(p[i[e], j[e]]), float(strength[i[e], j[e]]))
        for e in order
    ]


def _test_name(finder: Any) -> str:
    df = getattr(finder.test_, "df", None)
    return str(df) if isinstance(df, str) else "gcm"


def _as_json(found: _Found) -> str:
    finder, names = found.finder, found.label_names
    content = {
        "data": found.data,
        "rows": int(found.shape[0]),
        "features": int(found.shape[1]),
        "test": _test_name(finder),
        "alpha": finder.alpha,
        "correction": finder.correction,
        "factors": [[names[k] for k in factor] for factor in finder.factors_],
        "edges": [
            {
                "labels": [names[edge.i], names[edge.j]],
                "p_value": edge.p_value,
                "strength": edge.strength,
            }
            for edge in found.edges
        ],
        "cuts": [
            {"labels": [names[cut.i], names[cut.j]], "p_value": cut.p_value}
            for cut in finder.cuts_
        ],
    }
    return json.dumps(content, indent=1)


def _as_table(found: _Found, most: int) -> str:
    """Return the factors of several labels with their edges, then the single labels."""
    finder, names, edges = found.finder, found.label_names, found.edges
    lines = _heading(found)
    several = [factor for factor in finder.factors_ if len(factor) > 1]
    single = [names[factor[0]] for factor in finder.factors_ if len(factor) == 1]
    for k, factor in enumerate(several, start=1):
        members = {int(label) for label in factor}
        inside = [edge for edge in edges if edge.i in members]
        lines += ["", f"factor {k}  {len(factor)} labels, {counted(len(inside), 'edge')}"]
        lines.append(_wrapped_names([names[label] for label in factor]))
        lines += [_edge_line(names, edge) for edge in inside[:most]]
        if most and len(inside) > most:
            lines.append(f"    and {len(inside) - most} more")
    if single:
        lines += ["", f"single    {counted(len(single), 'label')}", _wrapped_names(single)]
    if finder.cuts_:
        lines += ["", f"cut       {counted(len(finder.cuts_), 'edge')}, to limit factor sizes"]
    return "\n".join(lines)


def _heading(found: _Found) -> list[str]:
    """Return the lines on the data and the test."""
    finder, m = found.finder, len(found.label_names)
    n, p = found.shape
    correction = finder.correction or "no"
    return [
        wrapped(
            f"{clipped(found.data, 40)}: {counted(n, 'row')}, {counted(p, 'feature')}, "
            f"{counted(m, 'label')}"
        ),
        wrapped(
            f"{counted(len(finder.factors_), 'factor')}, {counted(len(found.edges), 'edge')} "
            f"among {m * (m - 1) // 2} pairs: test {_test_name(finder)}, alpha {finder.alpha:g}, "
            f"{correction} correction"
        ),
    ]


def _wrapped_names(names: Sequence[str]) -> str:
    """Return names separated by commas, with line breaks between names only."""
    lines, line = [], " "
    for at, name in enumerate(names):
        part = f" {clipped(name, WIDTH - 4)}" + ("," if at < len(names) - 1 else "")
        if len(line) + len(part) > WIDTH and line.strip():
            lines.append(line)
            line = " "
        line += part
    return "\n".join([*lines, line])


def _edge_line(names: Sequence[str], edge: _Edge) -> str:
    pair = f"{clipped(names[edge.i], _NAME)} - {clipped(names[edge.j], _NAME)}"
    p = "< 1e-300" if edge.p_value < 1e-300 else f"= {edge.p_value:.2g}"
    return f"    {pair:<{2 * _NAME + 3}}  p {p}"


def _draw(found: _Found, path: Path) -> None:
    """Draw the graph to a file."""
    import matplotlib

    matplotlib.use("agg")  # without a window
    from fgfm._utils.atomic import atomic_file
    from fgfm.plotting import LabelGraphDisplay

    display = LabelGraphDisplay.from_estimator(found.finder, label_names=found.label_names)
    with atomic_file(path) as file:
        display.figure_.savefig(file, format=path.suffix.lower()[1:], dpi=150)
