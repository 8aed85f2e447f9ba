"""``fgfm factors``: which labels of a file belong together."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fgfm.cli._console import (
    WIDTH,
    clipped,
    counted,
    plain_errors,
    progress_bar,
    say,
    wrapped,
)
from fgfm.cli._options import (
    Categorical,
    Decimal,
    Delimiter,
    Drop,
    Encoding,
    Features,
    Format,
    Jobs,
    Labels,
    MaxCategories,
    Seed,
    Separator,
    check_target,
    data_options,
    load_labelled,
    rows_of_split,
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
_NAME = 25  # letters of a label's name, in the table of edges


@plain_errors
def factors(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="File with features and labels.")],
    alpha: Annotated[
        float, typer.Option(metavar="A", help="Level of the tests, after correction.")
    ] = 0.01,
    test: Annotated[
        str, typer.Option(metavar="NAME", help="auto, mi, moments, g or gcm.")
    ] = "auto",
    rule: Annotated[
        str, typer.Option(metavar="NAME", help="Edge if either test rejects (or), or both (and).")
    ] = "or",
    correction: Annotated[
        str, typer.Option(metavar="NAME", help="bonferroni, bh, by or none.")
    ] = "bonferroni",
    max_size: Annotated[
        int | None, typer.Option(metavar="N", help="Most labels of a factor; weak edges go.")
    ] = None,
    edges: Annotated[
        int, typer.Option(metavar="N", help="How many edges of each factor the table shows.")
    ] = 5,
    graph: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the graph: .png, .pdf or .svg.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="All edges, as JSON.")] = False,
    labels: Labels = None,
    separator: Separator = None,
    split: Annotated[
        str | None,
        typer.Option(metavar="PART", help="train: only the training rows that DATA names."),
    ] = None,
    format: Format = None,
    drop: Drop = None,
    categorical: Categorical = None,
    delimiter: Delimiter = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    features: Features = None,
    max_categories: MaxCategories = 255,
    jobs: Jobs = 1,
    seed: Seed = 0,
) -> None:
    """Find out which labels depend on each other, given the features.

    Pairs of labels are tested for independence given the features; an edge joins those that are
    dependent, and what edges connect is a factor. Edges are shown with their p-value after the
    correction for the number of pairs, the smallest first.
    """
    from fgfm import ILFCompo
    from fgfm._utils.progress import report_progress

    if graph is not None:
        _check_picture(graph, data)
    if edges < 0:
        raise ValueError(f"--edges is {edges}: it must be 0 or more")
    start = time.perf_counter()
    options = data_options(
        labels,
        separator,
        format,
        drop,
        categorical,
        delimiter,
        encoding,
        features,
        max_categories,
        decimal,
    )
    rows = rows_of_split(load_labelled(data, options), split)
    assert rows.Y is not None
    finder = ILFCompo(
        test,
        alpha,
        rule,
        correction=None if correction == "none" else correction,
        max_factor_size=max_size,
        n_jobs=None if jobs == 1 else jobs,
        random_state=seed,
    )
    with (
        progress_bar("label factors") as show,
        report_progress(lambda what, done, total: show(done, total, what)),
    ):
        finder.fit(rows.X, rows.Y)
    names = list(rows.label_names or ())
    found = _edges(finder)
    if as_json:
        typer.echo(json.dumps(_as_dict(finder, data, rows, names, found), indent=1))
    else:
        typer.echo(_table(finder, data, rows, names, found, edges))
    if graph is not None:
        _draw(finder, names, graph)
        say(f"graph in {clipped(str(graph), 60)}")
    say(f"{time.perf_counter() - start:.1f} s")


def _check_picture(path: Path, data: Path) -> None:
    from fgfm._utils.optional import import_optional

    if path.suffix.lower() not in _PICTURES:
        raise ValueError(f"--graph is {path}: its name must end in one of {', '.join(_PICTURES)}")
    check_target(path, "--graph", [data])
    import_optional("matplotlib.pyplot", "--graph", "plot")


def _edges(finder: Any) -> list[tuple[int, int, float, float]]:
    """Give the labels of each edge, its corrected p-value and its strength; smallest p first."""
    import numpy as np
    from scipy import sparse

    p = finder.edge_p_values_
    stronger = np.fmax if finder.rule == "or" else np.fmin
    strength = stronger(finder.effects_, finder.effects_.T)
    i, j = sparse.triu(finder.graph_, 1).nonzero()
    order = np.lexsort((j, i, -strength[i, j], p[i, j]))
    return [
        (int(i[e]), int(j[e]), float(p[i[e], j[e]]), float(strength[i[e], j[e]])) for e in order
    ]


def _as_dict(
    finder: Any, path: Path, rows: Any, names: Sequence[str], edges: Sequence[Any]
) -> dict[str, Any]:
    return {
        "data": str(path),
        "rows": int(rows.X.shape[0]),
        "features": int(rows.X.shape[1]),
        "test": _test_name(finder),
        "alpha": finder.alpha,
        "rule": finder.rule,
        "correction": finder.correction,
        "factors": [[names[k] for k in factor] for factor in finder.factors_],
        "edges": [
            {"labels": [names[i], names[j]], "p_value": p, "strength": strength}
            for i, j, p, strength in edges
        ],
        "cuts": [
            {"labels": [names[cut.i], names[cut.j]], "p_value": cut.p_value}
            for cut in finder.cuts_
        ],
    }


def _test_name(finder: Any) -> str:
    df = getattr(finder.test_, "df", None)
    return str(df) if isinstance(df, str) else "gcm"


def _table(
    finder: Any,
    path: Path,
    rows: Any,
    names: Sequence[str],
    edges: Sequence[tuple[int, int, float, float]],
    most: int,
) -> str:
    """Give the factors of several labels with their edges, then the labels that are alone."""
    m = len(names)
    n, p = rows.X.shape
    together = [factor for factor in finder.factors_ if len(factor) > 1]
    alone = [names[factor[0]] for factor in finder.factors_ if len(factor) == 1]
    correction = finder.correction or "no"
    lines = [
        wrapped(
            f"{clipped(str(path), 40)}: {counted(n, 'row')}, {counted(p, 'feature')}, "
            f"{counted(m, 'label')}"
        ),
        wrapped(
            f"{counted(len(finder.factors_), 'factor')}, by {counted(len(edges), 'edge')} of "
            f"{m * (m - 1) // 2} pairs: test {_test_name(finder)}, alpha {finder.alpha:g}, "
            f"{correction} correction, rule {finder.rule}"
        ),
    ]
    for k, factor in enumerate(together, start=1):
        members = {int(label) for label in factor}
        inside = [edge for edge in edges if edge[0] in members]
        title = f"factor {k}  {len(factor)} labels, {counted(len(inside), 'edge')}"
        shown = [clipped(names[label], WIDTH - 4) for label in factor]
        lines += ["", title, _listing(shown)]
        lines += [_edge(names, *edge[:3]) for edge in inside[:most]]
        if most and len(inside) > most:
            lines.append(f"    and {len(inside) - most} more")
    if alone:
        lines += ["", f"alone     {counted(len(alone), 'label')}"]
        lines.append(_listing([clipped(name, WIDTH - 4) for name in alone]))
    if finder.cuts_:
        lines += ["", f"cut       {counted(len(finder.cuts_), 'edge')}, so that factors fit"]
    return "\n".join(lines)


def _listing(names: Sequence[str]) -> str:
    """Give names with commas between them; a line breaks between two names only."""
    lines, line = [], " "
    for at, name in enumerate(names):
        part = f" {name}" + ("," if at < len(names) - 1 else "")
        if len(line) + len(part) > WIDTH and line.strip():
            lines.append(line)
            line = " "
        line += part
    return "\n".join([*lines, line])


def _edge(names: Sequence[str], i: int, j: int, p: float) -> str:
    pair = f"{clipped(names[i], _NAME)} - {clipped(names[j], _NAME)}"
    return f"    {pair:<{2 * _NAME + 3}}  p {'< 1e-300' if p < 1e-300 else f'= {p:.2g}'}"


def _draw(finder: Any, names: Sequence[str], path: Path) -> None:
    """Draw the graph; the file appears when it is complete."""
    import matplotlib

    matplotlib.use("agg")  # no window: the picture goes to a file
    from fgfm._utils.atomic import atomic_file
    from fgfm.plotting import LabelGraphDisplay

    figure = LabelGraphDisplay.from_estimator(finder, label_names=names).figure_
    with atomic_file(path) as file:
        figure.savefig(file, format=path.suffix.lower()[1:], dpi=150)
