"""Ranks, differences and guarantees of given scores; tables, figure and files."""

from __future__ import annotations

import csv
import json

import pytest

from benchmarks.deciders.compare import Record
from benchmarks.deciders.report import format_markdown, format_terminal, write_report
from benchmarks.deciders.summary import summarise

NAN = float("nan")
F1 = {  # by data set: half, per-label, fdecider
    "yeast": (0.2, 0.3, 0.5),
    "scene": (0.4, 0.6, 0.6),
    "ng20": (0.7, 0.9, 0.8),
}


def make_records(averages=("samples", "macro", "micro"), datasets=F1):
    records = []
    for dataset in datasets:
        for average in averages:
            for rule, f1 in zip(("half", "per-label", "fdecider"), F1[dataset], strict=True):
                expected = f1 + 0.1 if rule == "fdecider" else NAN
                records.append(
                    Record(dataset, "ridge", rule, average, "ok", f1, expected, NAN, 1.0, 0.5)
                )
        bound = F1[dataset][2] - 0.2 if dataset != "ng20" else 0.9
        records.append(
            Record(
                dataset, "ridge", "guarantee", "samples", "ok", F1[dataset][2], 0.5, bound, 1, 1
            )
        )
    return records


def find(values, **wanted):
    (found,) = (v for v in values if all(getattr(v, k) == w for k, w in wanted.items()))
    return found


def test_ranks_of_both_groups_and_of_all():
    summary = summarise(make_records())
    ranking = find(summary.rankings, group="development", average="macro")
    assert ranking.rules == ["fdecider", "per-label", "half"]
    assert ranking.mean_ranks == [1.25, 1.75, 3.0]
    assert ranking.dataset_ranks == [1.25, 1.75, 3.0]
    assert ranking.mean_f1 == pytest.approx([0.55, 0.45, 0.3])
    assert (ranking.n_pairs, ranking.n_datasets, ranking.n_incomplete) == (2, 2, 0)
    ranking = find(summary.rankings, group="confirmation", average="macro")
    assert ranking.rules == ["per-label", "fdecider", "half"]
    assert find(summary.rankings, group="all", average="macro").n_pairs == 3


def test_one_group_is_not_repeated_as_all():
    summary = summarise(make_records(datasets=("yeast", "scene")))
    assert {ranking.group for ranking in summary.rankings} == {"development"}
    summary = summarise(make_records(datasets=("ng20",)))
    assert {ranking.group for ranking in summary.rankings} == {"confirmation"}


def test_several_learners_of_a_data_set_are_pairs_but_one_data_set():
    records = make_records(datasets=("yeast",))
    records += [r._replace(learner="forest", f1=1.0 - r.f1) for r in records]
    ranking = find(summarise(records).rankings, average="micro")
    assert (ranking.n_pairs, ranking.n_datasets) == (2, 1)
    assert ranking.mean_ranks == [2.0, 2.0, 2.0]


def test_pairs_without_a_score_of_every_rule_are_left_out_and_counted():
    records = make_records()
    at = next(k for k, r in enumerate(records) if r[0] == "yeast" and r.rule == "half")
    records[at] = records[at]._replace(status="limit", f1=NAN)
    summary = summarise(records)
    ranking = find(summary.rankings, group="development", average="samples")
    assert (ranking.n_pairs, ranking.n_incomplete) == (1, 1)
    assert summary.failures == [records[at]]
    d = find(summary.differences, group="development", average="samples", rule="per-label")
    assert d.wins == 1  # on yeast, where both have a score


def test_packages_are_ranked_apart():
    records = make_records(averages=("macro",))
    records += [r._replace(rule="other", f1=0.01) for r in records if r.rule == "half"]
    rankings = [r for r in summarise(records).rankings if r.group == "all"]
    assert [r.packages for r in rankings] == [False, True]
    assert "other" not in rankings[0].rules
    assert rankings[1].rules[-1] == "other"


def test_differences_of_fdecider():
    summary = summarise(make_records())
    d = find(summary.differences, group="all", average="macro", rule="per-label")
    assert (d.wins, d.ties, d.losses) == (1, 1, 1)
    assert d.mean == pytest.approx((0.2 + 0.0 - 0.1) / 3)
    assert d.low <= d.mean <= d.high


def test_rows_one_by_one_are_compared_but_not_ranked():
    records = make_records()
    records += [
        r._replace(rule="fdecider-rows", f1=r.f1 - 0.01)
        for r in records
        if r.rule == "fdecider" and r.average != "samples"
    ]
    summary = summarise(records)
    ranking = find(summary.rankings, group="all", average="macro", packages=False)
    assert "fdecider-rows" not in ranking.rules
    d = find(summary.differences, group="all", average="macro", rule="half", decider="fdecider")
    rows = find(
        summary.differences, group="all", average="macro", rule="half", decider="fdecider-rows"
    )
    assert rows.mean == pytest.approx(d.mean - 0.01)


def test_expected_and_obtained_f():
    summary = summarise(make_records())
    d = find(summary.deviations, group="all", average="micro", rule="fdecider")
    assert (d.mean, d.mean_absolute, d.highest) == pytest.approx((0.1, 0.1, 0.1))
    assert not [d for d in summary.deviations if d.rule == "half"]


def test_guarantees():
    summary = summarise(make_records())
    assert find(summary.guarantees, group="development").n_held == 2
    g = find(summary.guarantees, group="all")
    assert (g.n_held, g.n_pairs) == (2, 3)
    assert g.mean_bound == pytest.approx((0.3 + 0.4 + 0.9) / 3)


def test_without_fdecider_there_are_ranks_only(tmp_path):
    records = [r for r in make_records() if r.rule in ("half", "per-label")]
    summary = summarise(records)
    assert summary.rankings
    assert not summary.differences
    assert not summary.deviations
    assert not summary.guarantees
    assert (tmp_path / "deciders.png") in write_report(tmp_path, records, summary, {}, "command")


def test_text_fits_into_80_columns_and_names_what_is_missing():
    records = make_records()
    records += [
        r._replace(rule="a-package-of-long-name", f1=0.01) for r in records if r.rule == "half"
    ]
    records.append(Record("yeast", "mlp", "tuned-cv", "macro", "limit", NAN, NAN, NAN, NAN, NAN))
    summary = summarise(records)
    text = format_terminal(summary)
    assert max(map(len, text.splitlines())) <= 80
    assert "Not held: ng20 ridge." in text
    assert "1 result missing" in text
    markdown = format_markdown(summary, {"ng20-boosting": "too much work"}, "the command")
    assert "| ng20-boosting | all | too much work |" in markdown
    assert "| yeast-mlp | tuned-cv, macro | limit |" in markdown
    assert "`the command`" in markdown


def test_report_files(tmp_path):
    records = make_records()
    records.append(records[0]._replace(rule="tuned-cv", status='Error: a "b", c', f1=NAN))
    summary = summarise(records)
    paths = write_report(tmp_path / "new", records, summary, {}, "command")
    assert [p.name for p in paths] == ["results.csv", "summary.json", "table.md", "deciders.png"]
    with paths[0].open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == list(Record._fields)
    assert rows[1][:6] == ["yeast", "ridge", "half", "samples", "ok", "0.2"]
    assert rows[-1][4] == 'Error: a "b", c'
    document = json.loads(paths[1].read_text())
    assert document["command"] == "command"
    assert document["rankings"][0]["friedman_p"] is not None
    assert paths[3].read_bytes().startswith(b"\x89PNG")
