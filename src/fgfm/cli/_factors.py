"""``fgfm factors``: groups of labels that depend on each other."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from fgfm._utils.optional import import_optional
from fgfm._utils.text import WIDTH, clipped, counted, wrapped
from fgfm.cli import _options as opt
from fgfm.cli._console import STAGES, echo, format_table, plain_errors, progress, say
from fgfm.cli._data import (
    check_targets,
    column_lines,
    labels_line,
    load_encoded,
    observed_rows,
    split_rows,
)

__all__ = ["EPILOG", "factors"]

EPILOG = """\b
Examples:
  fgfm factors films.csv --labels 'genre_*'
  fgfm factors emotions.npz --alpha 0.05 --graph emotions.png
  fgfm factors emotions.npz --json > factors.json
  fgfm fit emotions.npz --factors factors.json -o emotions.fgfm

With very many features, such as words, the tests may take minutes.
--max-features 200 takes seconds: it tests given those features only that say
most about a single label. The level of the tests is then not guaranteed: where
other features affect two labels, an edge appears that they would explain.
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
MaxFeatures = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Number of features that the tests condition on: those of the largest F statistic "
        "for a label; 0 for all. The level --alpha only holds if no other feature matters.",
    ),
]
Edges = Annotated[int, typer.Option(metavar="N", help="Number of edges to print per factor.")]
Graph = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Draw the graph to a .png, .pdf or .svg file."),
]


@plain_errors
@opt.with_options(opt.label_options, opt.column_options, opt.text_options, jobs=-1)
def factors(
    context: typer.Context,
    data: opt.Data,
    alpha: Alpha = 0.01,
    test: Test = "auto",
    correction: Correction = "bonferroni",
    max_size: MaxSize = None,
    max_features: MaxFeatures = 0,
    edges: Edges = 5,
    graph: Graph = None,
    as_json: opt.Json = False,
    split: opt.TrainSplit = None,
    **options: Any,
) -> None:
    """Find groups of labels that depend on each other.

    Pairs of labels are tested for independence given the features. Dependent labels are joined by
    an edge, and the labels that edges connect form a factor. Edges are printed with their p-value
    after the correction for multiple tests, the smallest first.
    """
    start = time.perf_counter()
    if graph is not None:
        if graph.suffix.lower() not in _PICTURES:
            names = ", ".join(_PICTURES)
            raise ValueError(f"--graph is {graph}: its name must end in one of {names}")
        check_targets(context.params, "graph")
        import_optional("matplotlib.pyplot", "--graph", "cli")
    for option, value in (("--edges", edges), ("--max-features", max_features)):
        if value < 0:
            raise ValueError(f"{option} is {value}: it must be 0 or more")
    found = _find_factors(data, split, context.params)
    echo(_as_json(found) if as_json else _as_table(found, edges))
    if graph is not None:
        _draw(found, graph)
        say(f"graph drawn to {clipped(str(graph), 60)}")
    say(f"{time.perf_counter() - start:.1f} s")


class _Found(NamedTuple):
    """A fitted `ILFCompo` with the description of its data."""

    finder: Any
    data: str
    rows: int
    features: int
    used: int  # features that the tests condition on
    label_names: list[str]
    edges: list[tuple[int, int]]  # the smallest p-value first

    def edge(self, i: int, j: int) -> tuple[float, float]:
        """Return the corrected p-value and the strength of an edge."""
        effects = self.finder.effects_
        return float(self.finder.edge_p_values_[i, j]), float(np.fmax(effects, effects.T)[i, j])

    @property
    def test(self) -> str:
        """The name of the test."""
        df = getattr(self.finder.test_, "df", None)
        return df if isinstance(df, str) else "gcm"


def _find_factors(path: Path, split: str | None, params: Mapping[str, Any]) -> _Found:
    """Read a file and learn its label factors."""
    from scipy import sparse

    from fgfm import ILFCompo
    from fgfm._utils.progress import report_progress

    data, encoder, X = load_encoded(path, params)
    names = list(data.label_names)
    columns = column_lines(encoder, names) + labels_line(data.label_form, names) or [
        counted(X.shape[1], "feature")
    ]
    correction, jobs = params["correction"], params["jobs"]
    finder = ILFCompo(
        params["test"],
        params["alpha"],
        correction=None if correction == "none" else correction,
        max_factor_size=params["max_size"],
        n_jobs=None if jobs == 1 else jobs,
        random_state=params["seed"],
    )
    assert data.Y is not None
    chosen = observed_rows(data.Y, split_rows(data, split))
    X, Y = X[chosen], data.Y[chosen].astype(np.int8)
    used = _informative(X, Y, params["max_features"])
    with progress(STAGES["label factors"], steps=True) as show:

        def report(stage: str, done: int, total: int) -> None:
            if columns:  # the options are valid
                say("\n".join([*columns, "", wrapped(_together(Y, names)), ""]))
                columns.clear()
            show(done, total, STAGES.get(stage, stage))

        with report_progress(report):
            finder.fit(X if used is None else X[:, used], Y)
    i, j = sparse.triu(finder.graph_, 1).nonzero()
    n_used = X.shape[1] if used is None else len(used)
    found = _Found(finder, str(path), X.shape[0], X.shape[1], n_used, names, [])
    p, strength = np.array([found.edge(*e) for e in zip(i, j, strict=True)]).reshape(-1, 2).T
    order = np.lexsort((j, i, -strength, p))
    return found._replace(edges=[(int(i[e]), int(j[e])) for e in order])


def _informative(X: Any, Y: Any, most: int) -> Any:
    """Return the features of the largest F statistic for any label, or None for all features.

    What makes two labels dependent, though they are not given X, is associated with both.
    """
    from sklearn.feature_selection import f_classif

    varies = (Y.min(axis=0) < Y.max(axis=0)).nonzero()[0]
    if not 0 < most < X.shape[1] or not len(varies):
        return None
    with np.errstate(divide="ignore", invalid="ignore"):  # features that are constant in a class
        F = np.max([np.nan_to_num(f_classif(X, Y[:, k])[0]) for k in varies], axis=0)  # (p,)
    return np.sort(np.argsort(-F, kind="stable")[:most])


def _together(Y: Any, names: Sequence[str]) -> str:
    """Return a sentence on the pairs of labels that occur together most often."""
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


def _as_json(found: _Found) -> str:
    finder, names = found.finder, found.label_names
    edges = [
        {"labels": [names[i], names[j]], "p_value": p, "strength": strength}
        for (i, j), (p, strength) in ((edge, found.edge(*edge)) for edge in found.edges)
    ]
    content = {
        "data": found.data,
        "rows": found.rows,
        "features": found.features,
        "features_used": found.used,
        "test": found.test,
        "alpha": finder.alpha,
        "correction": finder.correction,
        "factors": [[names[k] for k in factor] for factor in finder.factors_],
        "edges": edges,
        "cuts": [
            {"labels": [names[cut.i], names[cut.j]], "p_value": cut.p_value}
            for cut in finder.cuts_
        ],
    }
    return json.dumps(content, indent=1)


def _as_table(found: _Found, most: int) -> str:
    """Return each factor with its labels and at most `most` of its edges."""
    finder, names, m = found.finder, found.label_names, len(found.label_names)
    of = f"{found.used} of " if found.used < found.features else ""
    lines = [
        wrapped(
            f"{clipped(found.data, 40)}: {counted(found.rows, 'row')}, "
            f"{of}{counted(found.features, 'feature')}, {counted(m, 'label')}"
        ),
        wrapped(
            f"{counted(len(finder.factors_), 'factor')}, {counted(len(found.edges), 'edge')} "
            f"among {m * (m - 1) // 2} pairs: test {found.test}, alpha {finder.alpha:g}, "
            f"{finder.correction or 'no'} correction"
        ),
    ]
    several = [factor for factor in finder.factors_ if len(factor) > 1]
    single = [names[factor[0]] for factor in finder.factors_ if len(factor) == 1]
    for k, factor in enumerate(several, start=1):
        inside = [edge for edge in found.edges if edge[0] in factor]
        lines += ["", f"factor {k}  {len(factor)} labels, {counted(len(inside), 'edge')}"]
        lines += _wrapped_names([names[label] for label in factor])
        rows = []
        for i, j in inside[:most]:
            p = found.edge(i, j)[0]
            pair = f"    {clipped(names[i], _NAME)} - {clipped(names[j], _NAME)}"
            rows.append((pair, "p < 1e-300" if p < 1e-300 else f"p = {p:.2g}"))
        lines += format_table(rows)
        if most and len(inside) > most:
            lines.append(f"    and {len(inside) - most} more")
    if single:
        lines += ["", f"single    {counted(len(single), 'label')}", *_wrapped_names(single)]
    if finder.cuts_:
        lines += ["", f"cut       {counted(len(finder.cuts_), 'edge')}, to limit factor sizes"]
    return "\n".join(lines)


def _wrapped_names(names: Sequence[str]) -> list[str]:
    """Return lines of names separated by commas, with line breaks between names only."""
    lines = [" "]
    for at, name in enumerate(names):
        part = f" {clipped(name, WIDTH - 4)}" + ("," if at < len(names) - 1 else "")
        if len(lines[-1]) + len(part) > WIDTH and lines[-1].strip():
            lines.append(" ")
        lines[-1] += part
    return lines


def _draw(found: _Found, path: Path) -> None:
    """Draw the graph to a file."""
    import matplotlib

    matplotlib.use("agg")  # without a window
    import matplotlib.pyplot as plt
    import networkx as nx

    from fgfm._utils.atomic import atomic_file

    graph = nx.from_scipy_sparse_array(found.finder.graph_)
    names = found.label_names or [str(node) for node in graph]
    figure, ax = plt.subplots(figsize=(8, 6), layout="constrained")
    nx.draw_networkx(graph, nx.spring_layout(graph, seed=0), ax=ax, labels=dict(enumerate(names)))
    with atomic_file(path) as file:
        figure.savefig(file, format=path.suffix.lower()[1:], dpi=150)
