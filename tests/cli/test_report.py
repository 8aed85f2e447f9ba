"""The page that ``fgfm evaluate --report`` writes."""

from __future__ import annotations

import json
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from numpy.testing import assert_allclose

from command_line import make_rows, run_ok, save_arff

STRANGE = ("<script>alert(1)</script>", "a & b", '"quoted"', "dark")
OPTIONS = ("--folds", "2")


class Tables(HTMLParser):
    """Collect the cells of all tables, and the names of all elements with their attributes."""

    def __init__(self):
        super().__init__()
        self.tables, self.elements, self.cell = [], [], None

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.cell = ""

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.tables[-1][-1].append(self.cell)
            self.cell = None

    def handle_data(self, text):
        if self.cell is not None:
            self.cell += text


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    X, Y = make_rows()
    path = tmp_path_factory.mktemp("report") / "strange.arff"
    save_arff(path, X, Y, label_names=STRANGE)
    return path


@pytest.fixture(scope="module")
def report(data):
    """The printed table, the page and its tables."""
    path = data.parent / "report.html"
    printed = run_ok("evaluate", data, *OPTIONS, "--report", path)
    page = path.read_text(encoding="utf-8")
    parsed = Tables()
    parsed.feed(page)
    return printed.stdout, page, parsed


def test_values_are_those_printed(report):
    printed, page, parsed = report
    averages, measures, _, _ = parsed.tables
    lines = {line[:17].strip(): line[17:] for line in printed.splitlines() if line}
    for row in measures[1:]:
        assert lines[row[0]].split() == row[1:]  # of two lines with this name the last
    text = " ".join(printed.split())
    for name, *cells in averages[1:]:
        assert " ".join([name, *cells[:3], "F-optimal", *cells[3:]]) in text
    page_text = " ".join(unescape(page).split())
    for note in ("In brackets 95 % intervals", "Expected F1 0.", "t = 0."):
        at = text.index(note)
        assert text[at : at + 30] in page_text


def test_label_and_row_tables_agree_with_the_labels(report, data):
    _, _, parsed = report
    labels, rows = parsed.tables[2:]
    _, Y = make_rows()
    assert {row[0] for row in labels[1:]} == set(STRANGE)
    for row in labels[1:]:
        j = STRANGE.index(row[0])
        true, decided, precision, recall, f = map(float, row[1:6])
        assert true == Y[:, j].sum()
        assert_allclose(recall * true, precision * decided, atol=0.02)
        assert_allclose(f, 2.0 * precision * recall / (precision + recall), atol=2e-4)
    expected = [float(row[1]) for row in rows[1:]]
    assert len(expected) == 20
    assert expected == sorted(expected)
    for name, _, obtained, *sets in rows[1:]:
        right, wrong, missed = (set(filter(None, part.split(", "))) for part in sets)
        truth = {STRANGE[j] for j in np.flatnonzero(Y[int(name.removeprefix("row ")) - 1])}
        assert right | missed == truth
        assert not wrong & truth
        size = len(truth) + len(right) + len(wrong)
        assert_allclose(float(obtained), 2.0 * len(right) / size if size else 1.0, atol=5e-5)


def test_page_is_self_contained_and_escaped(report):
    _, page, parsed = report
    names = {name for name, _ in parsed.elements}
    assert not names & {"script", "link", "img", "iframe"}
    assert "//" not in page
    links = [attributes.get("xlink:href", "#") for _, attributes in parsed.elements]
    assert all(link.startswith("#") for link in links)  # markers of the charts
    assert all("href" not in attributes for _, attributes in parsed.elements)
    charts = [attributes for name, attributes in parsed.elements if name == "svg"]
    assert len(charts) == 2
    assert all(chart["aria-label"] for chart in charts)


def test_report_of_a_model_and_of_json(folder, model, tmp_path):
    path = tmp_path / "report.html"
    options = ["--model", model, "--beta", "2", "--report", path, "--json"]
    found = json.loads(run_ok("evaluate", folder / "test.arff", *options).stdout)
    page = path.read_text(encoding="utf-8")
    for scores in found["averages"].values():
        assert f">{scores['f']['f_optimal']['f']:.3f} (" in page
    assert "instance F2" in page
    numbers = {int(k) for k in re.findall(r">row (\d+)<", page)}
    assert len(numbers) == 20
    assert numbers <= set(range(1, 41))


def test_hard_rows_have_their_identifiers(folder, tmp_path):
    path = tmp_path / "report.html"
    for options, pattern in (([], r"\d{3}"), (["--ids", "id,place"], r"\d{3}, (north|south)")):
        arguments = ["--labels", "red,green,blue,dark", *OPTIONS, *options, "--report", path]
        run_ok("evaluate", folder / "table.csv", *arguments)
        parsed = Tables()
        parsed.feed(path.read_text(encoding="utf-8"))
        names = [row[0] for row in parsed.tables[3][1:]]
        assert len(set(names)) == 20
        assert all(re.fullmatch(pattern, name) for name in names), names
