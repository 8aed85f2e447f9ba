"""The page "Try it": its JavaScript decides as the package does, in a headless browser."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
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
const unlabelled = [...document.querySelectorAll("#try-labels input")]
  .filter((input) => !input.labels.length && !input.ariaLabel).length;
const cases = JSON.parse(document.getElementById("cases").textContent);
const results = { unlabelled, computed: cases.computed.map(({ p, beta }) => decideLabels(p, beta)),
  driven: cases.driven.map(drive) };
document.getElementById("results").textContent = JSON.stringify(results);
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


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return what the page computes and shows."""
    source = (DOCS / "try_it.md").read_text(encoding="utf-8")
    part = re.search(r"^```\{raw\} html\n(.*?)^```$", source, re.MULTILINE | re.DOTALL)[1]
    part = part.replace("_static/", (DOCS / "_static").as_uri() + "/")
    cases = json.dumps({"computed": computed_cases(), "driven": driven_cases()})
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
        [browser, *options, "--dump-dom", page.as_uri()],
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


def test_every_input_has_a_label(results):
    assert results["unlabelled"] == 0


def test_nothing_is_loaded_from_elsewhere():
    for name in ("_static/try_it.js", "try_it.md"):
        assert "//" not in re.sub(r"^ *//.*|  // .*", "", (DOCS / name).read_text(), flags=re.M)
