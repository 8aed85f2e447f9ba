"""The page "Try it": its JavaScript decides as the package does, in a headless browser."""

from __future__ import annotations

import html
import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import fgfm

DOCS = Path(__file__).resolve().parent.parent / "docs"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
NAMES = ("drama", "comedy", "crime", "romance", "mystery", "horror", "fantasy")

pytestmark = [
    pytest.mark.skipif(not DOCS.is_dir(), reason="docs are in the repository only"),
    pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason="needs Chromium or Chrome"),
]

# Computes all cases, and moves the sliders of the page for some of them.
DRIVER = """
const set = (input, value) => {
  input.value = value;
  input.dispatchEvent(new Event("input", { bubbles: true }));
};
const click = (text) => [...document.querySelectorAll("#try-labels button")]
  .find((button) => button.textContent === text).click();
const sliders = () => [...document.querySelectorAll("#try-labels fieldset:first-child input")];
function drive({ p, beta }) {
  while (sliders().length < p.length) click("Add a label");
  while (sliders().length > p.length) click("Remove the last");
  sliders().forEach((input, i) => set(input, p[i]));
  set(document.getElementById("try-beta"), beta);
  return {
    summary: document.querySelector(".try-summary").textContent,
    rows: [...document.querySelectorAll("#try-labels tbody tr")].map((row) => ({
      labels: row.children[1].firstChild.textContent,
      marks: [...row.querySelectorAll(".try-mark")].map((mark) => mark.textContent),
      value: row.querySelector(".try-value").textContent,
    })),
  };
}
const texts = (selector) =>
  [...document.querySelectorAll(selector)].map((part) => part.textContent);
async function drop({ text, average, beta }) {
  document.getElementById("try-average").value = average;
  document.getElementById("try-file-beta").value = beta;
  const summary = document.querySelector("#try-file .try-summary");
  summary.textContent = "";
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([text], "probabilities.csv"));
  document.querySelector(".try-drop").dispatchEvent(new DragEvent("drop", { dataTransfer }));
  while (!summary.textContent) await new Promise((done) => setTimeout(done, 10));
  const rows = texts("#try-file tbody th");
  const decide = () => compareRules(readProbabilities(parseTable(text)), average, beta);
  return { summary: summary.textContent, rows, cells: texts("#try-file tbody td"),
    h: rows.length ? decide().map((rule) => rule.h) : null };
}
(async () => {
  const unlabelled = [...document.querySelectorAll("input, select")]
    .filter((input) => !input.labels.length && !input.ariaLabel).length;
  const cases = JSON.parse(document.getElementById("cases").textContent);
  const computed = cases.computed.map(({ p, beta }) => decideLabels(p, beta));
  const results = { unlabelled, computed, driven: cases.driven.map(drive), dropped: [] };
  for (const file of cases.dropped) results.dropped.push(await drop(file));
  document.getElementById("results").textContent = JSON.stringify(results);
})();
"""


def computed_cases():
    """Return random rows and betas, and rows in which labels or set sizes tie."""
    rng = np.random.default_rng(0)
    cases = []
    for _ in range(300):
        p = rng.random(rng.integers(1, 11)) ** rng.choice([0.3, 1.0, 3.0])
        if rng.random() < 0.5:  # equal labels, and labels at 0, 0.5 and 1
            p = p.round(1)
        cases.append({"p": p.tolist(), "beta": float(np.exp2(rng.uniform(-3.0, 3.0)))})
        cases.append({"p": p.tolist(), "beta": 1.0})
    for b2 in np.arange(1, 41) / 8.0:  # one label is as good as two, but for rounding
        q = 1.0 / (1.0 + b2 * (b2 + 2.0) / (2.0 * b2 + 1.0))
        cases.append({"p": [q, 1.0], "beta": b2**0.5})
    ties = ([0.5], [1.0, 0.5], [0.0, 0.0], [1.0, 1.0])
    return cases + [{"p": list(p), "beta": 1.0} for p in ties]


def driven_cases():
    """Return rows whose probabilities the sliders can show."""
    rng = np.random.default_rng(1)
    cases = [{"p": rng.random(m).round(2).tolist(), "beta": 2.0**m / 8} for m in range(1, 8)]
    return [*cases, {"p": [0.5, 0.0], "beta": 1.0}, {"p": [0.1, 0.2], "beta": 1.0}]


def file_cases():
    """Return probabilities, true labels and parameters: short and long tables, with ties."""
    rng = np.random.default_rng(2)
    cases = []
    for (n, m), average, beta in itertools.product(
        [(1, 3), (7, 1), (60, 5), (40, 30)], ["samples", "macro", "micro"], [1.0, 2.0]
    ):
        p = rng.random((n, m)).round(3) ** 2
        cases.append((p, (rng.random((n, m)) < p).astype(int), average, beta))
    return cases


def written(p, Y, with_sets):
    """Return a CSV file of probabilities and true labels, with columns that are to be left out."""
    names = [f"label {i}" for i in range(p.shape[1])]
    table = pd.DataFrame(p, columns=names)
    table.insert(0, "doc_id", range(len(p)))
    table["title"] = 'A "quoted", title'
    if with_sets:
        table["labels"] = [";".join(np.array(names)[row == 1]) for row in Y]
        return table.to_csv(index=False)
    truth = pd.DataFrame(Y, columns=names).add_prefix("true_")
    return pd.concat([table, truth], axis=1).to_csv(index=False, sep=";")


WRONG = {  # files that cannot be read, and what the page says
    "": "needs a header",
    "art,law\n0.5\n": "Row 1 has 1 cells, the header 2",
    "art\n1.5\n": '"1.5" in row 1 is not a probability',
    "art,labels\n0.5,law\n": 'Row 1 has the label "law"',
    "art,law,true_art\n0.5,0.5,1\n": "no column true_law",
    "art,true_art\n0.5,2\n": 'true_art is "2" in row 1',
}


def dropped_cases():
    """Return the files that are dropped on the page: good ones, one without labels, wrong ones."""
    good = [
        {"text": written(p, Y, with_sets=i % 2 == 0), "average": average, "beta": beta}
        for i, (p, Y, average, beta) in enumerate(file_cases())
    ]
    plain = ["art,law\n0.8,0.45\n0.2,0.1\n", *WRONG]
    return good + [{"text": text, "average": "samples", "beta": 1.0} for text in plain]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return what the page computes and shows."""
    source = (DOCS / "how_it_works.md").read_text(encoding="utf-8")
    part = "".join(re.findall(r"^```\{raw\} html\n(.*?)^```$", source, re.MULTILINE | re.DOTALL))
    part = part.replace("_static/", (DOCS / "_static").as_uri() + "/")
    cases = json.dumps(
        {"computed": computed_cases(), "driven": driven_cases(), "dropped": dropped_cases()}
    )
    page = tmp_path_factory.mktemp("page") / "page.html"
    page.write_text(
        f'<!doctype html><meta charset="utf-8">{part}<pre id="results"></pre>'
        f'<script id="cases" type="application/json">{cases}</script><script>{DRIVER}</script>',
        encoding="utf-8",
    )
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    options.append(f"--user-data-dir={page.parent / 'profile'}")
    done = subprocess.run(
        [browser, *options, "--virtual-time-budget=60000", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    found = re.search(r'<pre id="results">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stderr
    return json.loads(html.unescape(found[1]))


def test_decisions_and_values_are_those_of_the_package(results):
    cases = computed_cases()
    assert len(results["computed"]) == len(cases)
    for case, found in zip(cases, results["computed"], strict=True):
        p, beta = case["p"], case["beta"]
        labels, expected_f = fgfm.decision.from_marginals([p], beta=beta)
        chosen = sorted(found["order"][: found["best"]])
        assert chosen == np.flatnonzero(labels[0]).tolist(), case
        assert_allclose(found["values"][found["best"]], expected_f[0], rtol=1e-11)
        sizes = [
            fgfm.decision.from_marginals([p], beta=beta, min_labels=k, max_labels=k).expected_f[0]
            for k in range(1, len(p) + 1)
        ]
        sizes.insert(0, np.prod(1.0 - np.array(p)))
        assert_allclose(found["values"], sizes, rtol=1e-11, atol=1e-15, err_msg=str(case))
        half = sorted(found["order"][: found["half"]])
        assert half == np.flatnonzero(np.array(p) > 0.5).tolist()


def test_page_shows_the_decisions_for_its_sliders(results):
    for case, shown in zip(driven_cases(), results["driven"], strict=True):
        p, beta = case["p"], case["beta"]
        labels, expected_f = fgfm.decision.from_marginals([p], beta=beta)
        best = [NAMES[i] for i in np.flatnonzero(labels[0])]
        half = [NAMES[i] for i in np.flatnonzero(np.array(p) > 0.5)]
        assert len(shown["rows"]) == len(p) + 1
        (row,) = [row for row in shown["rows"] if "F-optimal" in row["marks"]]
        assert row["labels"] == (", ".join(best) or "none")
        assert row["value"] == f"{expected_f[0]:.4f}"
        (row,) = [row for row in shown["rows"] if "p > 0.5" in row["marks"]]
        assert row["labels"] == (", ".join(half) or "none")
        assert f"expected F{beta:.3g} {expected_f[0]:.4f}" in shown["summary"]
        assert ("chooses the same set" in shown["summary"]) == (best == half)


def tuned(p, Y, average, beta):
    """Decide each half of the rows with the threshold that is best on the other half."""
    H = np.zeros_like(Y)
    for half in (0, 1):
        mine = np.arange(len(p)) % 2 == half
        grid = np.arange(1, 100) / 100
        scores = [fgfm.f_measure(Y[~mine], p[~mine] > t, beta, average=average) for t in grid]
        H[mine] = p[mine] > grid[np.argmax(np.round(scores, 12))]
    return H


def test_page_compares_the_rules_on_a_dropped_file(results):
    for (p, Y, average, beta), shown in zip(file_cases(), results["dropped"], strict=False):
        best = fgfm.decision.from_marginals(p, beta=beta, average=average)
        rules = [p > 0.5, best.labels]
        if len(p) > 1:
            rules.insert(1, tuned(p, Y, average, beta))
        assert len(shown["rows"]) == len(rules)
        assert shown["h"] == [h.astype(int).tolist() for h in rules]
        sizes, obtained, expected = np.array(shown["cells"]).reshape(-1, 3).T
        assert_allclose(sizes.astype(float), [h.sum(axis=1).mean() for h in rules], atol=0.0051)
        scores = [fgfm.f_measure(Y, h, beta, average=average) for h in rules]
        assert_allclose(obtained.astype(float), scores, atol=0.51e-4)
        assert_allclose(float(expected[-1]), np.mean(best.expected_f), atol=0.51e-4)
        assert f"{len(p)} rows, {p.shape[1]} labels (label 0" in shown["summary"]
        assert "Left out: doc_id (an identifier), title (" in shown["summary"]


def test_page_decides_a_file_without_labels_and_names_what_is_wrong(results):
    plain, *wrong = results["dropped"][len(file_cases()) :]
    assert plain["rows"] == ["p > 0.5", "F-optimal"]
    labels, expected_f = fgfm.decision.from_marginals([[0.8, 0.45], [0.2, 0.1]])
    assert plain["cells"] == ["0.50", "", f"{labels.sum() / 2:.2f}", f"{expected_f.mean():.4f}"]
    for shown, message in zip(wrong, WRONG.values(), strict=True):
        assert message in shown["summary"]
        assert shown["rows"] == []


def test_every_input_has_a_label(results):
    assert results["unlabelled"] == 0


def test_nothing_is_loaded_from_elsewhere():
    for name in ("_static/try_it.js", "how_it_works.md"):
        assert "//" not in re.sub(r"^ *//.*|  // .*", "", (DOCS / name).read_text(), flags=re.M)
