"""The paper's experiment: cells, resuming, statistics, report, and the command that runs it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

import joblib
import numpy as np
import pytest
from joblib.parallel import ThreadingBackend
from numpy.testing import assert_allclose
from scipy import stats
from typer.testing import CliRunner

import fgfm
from fgfm.cli._app import app
from fgfm.experiments import paper, reproduce, write_report
from fgfm.experiments._results import ResultFile
from fgfm.experiments._runner import run_tasks
from fgfm.experiments._statistics import Record, holm, paired, score_factors, summarise
from fgfm.experiments._table import tables
from fgfm.synthetic import paper_data

SMALL = {"reps": 2, "sizes": [50, 100], "structures": [2, (2, 1)], "interactions": "none"}
PROGRAM = [sys.executable, "-m", "fgfm.cli", "reproduce"]
FEW = ["--reps", "1", "--sizes", "50", "--dags", "1,4", "--interactions", "none"]
QUICK = ["--reps", "3", "--sizes", "50,100", "--dags", "1,4", "--interactions", "none"]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return reproduce(tmp_path_factory.mktemp("small"), **SMALL)


@pytest.fixture
def counted(monkeypatch):
    """Count the cells that are computed, and for which methods."""
    done = []

    def run_cell(cell, original=paper.run_cell):
        done.append((cell.structure, cell.n, cell.repetition, cell.methods))
        return original(cell)

    monkeypatch.setattr(paper, "run_cell", run_cell)
    return done


# --- one cell ---------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["linear", "interactions"])
def test_a_cell_is_what_the_classifier_gives_row_by_row(learner):
    settings = paper.Settings(seed=5, beta=2.0, n_test=400)
    cell = paper.Cell((4, 4), 200, 3, learner, paper.METHODS, settings)
    rows = {row[4]: row[5:] for row in paper.run_cell(cell)}
    network, train, test = paper_data(2, 3, 200, n_test=400, seed=5)
    for method, (f, exact, factors) in rows.items():
        if method == "bayes":
            labels = network.decide(test.X, beta=2.0).labels
        elif method == "threshold":
            continue
        else:
            partition = [[int(i) for i in part.split()] for part in factors.split("|")]
            X, X_test = train.X, test.X
            if learner == "interactions":
                from sklearn.preprocessing import PolynomialFeatures

                expand = PolynomialFeatures(4, interaction_only=True, include_bias=False)
                X, X_test = expand.fit_transform(X), expand.transform(X_test)
            folds = np.random.SeedSequence([5, 3, 200, 4, 4]).generate_state(1)[0] >> 1
            model = fgfm.FGFMClassifier(
                factors=partition,
                method="two-step",
                nonempty=False,
                beta=2.0,
                random_state=int(folds),
            ).fit(X, train.Y)
            labels = model.predict(X_test)
        assert_allclose(f, fgfm.f_measure(test.Y, labels, 2.0), rtol=1e-12)
        assert exact <= rows["bayes"][1] + 1e-12
    assert rows["gfm"][2] == "0 1 2 3 4 5 6 7"
    assert rows["true"][2] == rows["bayes"][2] == "0 1 2 3|4 5 6 7"
    assert rows["independent"][2] == rows["threshold"][2] == "0|1|2|3|4|5|6|7"
    found = paper.find_factors(train.X, train.Y)
    assert rows["ilf"][2] == paper.partition_name(found)


def test_exact_f_is_the_mean_over_the_whole_distribution():
    cell = paper.Cell((2, 1), 50, 1, "linear", ("gfm", "bayes"), paper.Settings())
    gfm, bayes = paper.run_cell(cell)
    network, train, _ = paper_data((2, 1), 1, 50)
    X, proba = network.inputs()
    assert_allclose(bayes[6], network.bayes_f(), rtol=1e-12)
    folds = int(np.random.SeedSequence([0, 1, 50, 2, 1]).generate_state(1)[0] >> 1)
    model = fgfm.FGFMClassifier(
        factors="single", method="two-step", nonempty=False, random_state=folds
    )
    labels = model.fit(train.X, train.Y).predict(X)
    joint = network.joint(X)
    F = [
        [fgfm.f_measure(y[None], h[None]) if y.any() or h.any() else 1.0 for y in joint.labelsets]
        for h in labels
    ]
    assert_allclose(gfm[6], proba @ (joint.proba * F).sum(axis=1), rtol=1e-12)


def test_a_rich_learner_comes_near_the_limit_and_a_linear_one_does_not(tmp_path):
    results = reproduce(tmp_path, reps=2, sizes=[5000], methods=["gfm", "ilf", "bayes"])
    means = [m for m in results.summary.means if m.method != "bayes"]
    assert len(means) == 4 * 2 * 2
    assert max(m.limit_gap for m in means if m.learner == "interactions") < 0.005
    assert np.mean([m.limit_gap for m in means if m.learner == "linear"]) > 0.01


def test_published_settings_are_others(tmp_path):
    settings = {"reps": 1, "sizes": [100], "structures": [4], "methods": ["gfm"]}
    ours = reproduce(tmp_path / "ours", interactions="none", **settings).records
    theirs = reproduce(tmp_path / "theirs", interactions="none", published=True, **settings)
    assert ours[0].f != theirs.records[0].f
    assert abs(ours[0].f - theirs.records[0].f) < 0.05


# --- the run ----------------------------------------------------------------------------------


def test_every_cell_has_its_records(small):
    keys = {(r.structure, r.n, r.repetition, r.method) for r in small.records}
    assert len(keys) == len(small.records) == 2 * 2 * 2 * 6
    assert {r.structure for r in small.records} == {"4+4", "2+1"}
    lines = (small.folder / "results.csv").read_text().splitlines()
    assert lines[0] == "structure,n,repetition,learner,method,f,f_exact,factors"
    assert len(lines) == 1 + len(small.records)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_processes_do_not_change_the_file(small, tmp_path, n_jobs):
    reproduce(tmp_path, n_jobs=n_jobs, **SMALL)
    expected = (small.folder / "results.csv").read_bytes()
    assert (tmp_path / "results.csv").read_bytes() == expected


def test_what_is_there_is_not_computed_again(small, tmp_path, counted):
    reproduce(tmp_path, **SMALL | {"reps": 1, "methods": ["gfm"]})
    assert len(counted) == 4
    reproduce(tmp_path, **SMALL | {"methods": ["gfm", "ilf"]})
    assert [methods for *_, methods in counted[4:8]] == [("ilf",)] * 4  # of repetition 1
    assert len(counted) == 12
    reproduce(tmp_path, **SMALL)
    assert (tmp_path / "results.csv").read_bytes() == (small.folder / "results.csv").read_bytes()
    before = len(counted)
    assert reproduce(tmp_path, **SMALL).records == small.records
    assert len(counted) == before


@pytest.mark.parametrize("cut", [1, 2, 40, 200, 700])
def test_a_file_that_was_cut_off_is_mended(small, tmp_path, counted, cut):
    whole = (small.folder / "results.csv").read_bytes()
    (tmp_path / "settings.json").write_bytes((small.folder / "settings.json").read_bytes())
    (tmp_path / "results.csv").write_bytes(whole[:-cut])
    reproduce(tmp_path, **SMALL)
    assert (tmp_path / "results.csv").read_bytes() == whole
    lost = whole.count(b"\n") - whole[:-cut].count(b"\n")
    assert sum(len(methods) for *_, methods in counted) == lost


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense\n", "is no file of results: its first line must be"),
        ("", "is no file of results"),
        (
            "structure,n,repetition,learner,method,f,f_exact,factors\n8,x,1,linear,gfm,1,1,0\n",
            "line 2 is no row of results",
        ),
        (
            "structure,n,repetition,learner,method,f,f_exact,factors\n8,50\n",
            "line 2 is no row of results: '8,50'",
        ),
        (
            "structure,n,repetition,learner,method,f,f_exact,factors\n8,50,1,linear,gfm,7,1,0\n",
            "line 2 is no row of results",
        ),
        (
            "structure,n,repetition,learner,method,f,f_exact,factors\n8,50,1,linear,gfm,1,1,0\n",
            "settings.json is missing: nothing tells what the results beside it depend on",
        ),
    ],
)
def test_a_damaged_file_is_not_written_to(tmp_path, text, message):
    (tmp_path / "results.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        reproduce(tmp_path, **SMALL)
    assert (tmp_path / "results.csv").read_text() == text


def test_other_settings_are_refused(small):
    with pytest.raises(ValueError, match=r"another run: seed = 0, not 1\. Choose another folder"):
        reproduce(small.folder, seed=1, **SMALL)
    with pytest.raises(ValueError, match="published = False, not True"):
        reproduce(small.folder, published=True, **SMALL)


def test_two_runs_do_not_share_a_folder(small):
    with (small.folder / "results.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match="is being written to by another program"):
            reproduce(small.folder, **SMALL)


def test_a_killed_worker_is_told(tmp_path):
    results = ResultFile(tmp_path / "results.csv", {"task": int}, 1, {})
    with (
        results.opened(),
        pytest.raises(ChildProcessError, match="what was done is kept, and the same call goes on"),
    ):
        run_tasks(lambda task: os._exit(1) if task else [(task,)], range(5), results, 2, None)
    assert (tmp_path / "results.csv").read_text() == "task\n0\n"


def test_a_backend_that_answers_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(ThreadingBackend, "supports_return_generator", False)
    results = ResultFile(tmp_path / "results.csv", {"task": int}, 1, {})
    with results.opened(), joblib.parallel_config("threading"):
        run_tasks(lambda task: [(task,)], range(4), results, 2, None)
    assert (tmp_path / "results.csv").read_text() == "task\n0\n1\n2\n3\n"


def test_a_method_named_twice_is_one(small, counted):
    assert reproduce(small.folder, **SMALL, methods=["gfm", "gfm"]).records[0].method == "gfm"
    assert not counted


def test_progress_is_told(tmp_path):
    told = []
    reproduce(tmp_path, progress=lambda done, total: told.append((done, total)), **SMALL)
    assert told == [(k, 8) for k in range(9)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reps": 0}, "reps is 0: it must be an integer, 1 or more"),
        ({"sizes": [50, 1]}, r"sizes\[1\] is 1"),
        ({"sizes": []}, "sizes is empty"),
        ({"structures": [7]}, r"structures\[0\] is 7"),
        ({"structures": [(2, 0)]}, r"structures\[0\]\[1\] is 0"),
        ({"methods": ["gmf"]}, r"methods\[0\] is 'gmf'"),
        ({"methods": []}, "methods is empty"),
        ({"interactions": "some"}, "interactions is 'some'"),
        ({"beta": -1.0}, "beta is -1"),
        ({"seed": -1}, "seed is -1"),
        ({"n_test": 0}, "n_test is 0"),
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"structures": [(19, 1)]}, r"2\^23 probabilities"),
    ],
)
def test_wrong_arguments_are_named_and_nothing_is_written(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        reproduce(tmp_path / "new", **SMALL | change)
    assert not (tmp_path / "new").exists()


# --- statistics -------------------------------------------------------------------------------


def test_paired_test_is_the_t_test():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 30))
    test = paired(a - b)
    expected = stats.ttest_rel(a, b)
    assert_allclose(test.p_value, expected.pvalue)
    assert_allclose([test.low, test.high], expected.confidence_interval(0.95))
    assert paired(np.zeros(5)).p_value == 1.0
    assert np.isnan(paired(np.ones(1)).p_value)
    assert np.isnan(paired(np.ones(2)).p_value)


def test_holm_multiplies_by_what_is_left():
    assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])
    assert_allclose(holm([0.5, float("nan"), 0.4]), [0.8, float("nan"), 0.8])
    assert holm([]) == []


def records(values, n=50, structure="2+1", factors="0 1|2"):
    return [
        Record(structure, n, rep, "linear", method, f, f, factors)
        for method, fs in values.items()
        for rep, f in enumerate(fs, start=1)
    ]


ABOUT = {"beta": 1.0, "reps": 3, "seed": 0, "n_test": 5000, "published": False}


def test_summary_of_given_numbers():
    given = records({"gfm": [0.5, 0.6, 0.7], "ilf": [0.6, 0.7, 0.9], "bayes": [0.8, 0.8, 0.9]})
    summary = summarise(given, ABOUT)
    gfm, ilf, bayes = summary.means
    assert_allclose([gfm.mean, gfm.standard_error], [0.6, 0.1 / np.sqrt(3)])
    assert ilf.best
    assert not gfm.best
    assert not bayes.best
    assert_allclose(ilf.limit_gap, np.mean([0.2, 0.1, 0.0]))
    (difference,) = summary.differences
    assert_allclose(difference.mean, 0.4 / 3)
    assert (difference.wins, difference.losses) == (3, 0)
    (score,) = summary.factors
    assert score[2:] == (1.0, 1.0, 1.0)
    json.dumps(summary.as_dict(), allow_nan=False)


@pytest.mark.parametrize(
    ("factors", "precision", "recall", "exact"),
    [("0 1 2", 1 / 3, 1.0, 0.0), ("0|1|2", 1.0, 0.0, 0.0), ("2|0 1", 1.0, 1.0, 1.0)],
)
def test_factors_are_scored_by_pairs(factors, precision, recall, exact):
    (score,) = summarise(records({"ilf": [0.5]}, factors=factors), ABOUT).factors
    assert_allclose(score[2:], [precision, recall, exact])


def test_pairs_of_partitions():
    true = [[0, 1], [2, 3]]
    assert score_factors([[0, 1, 2], [3]], true) == (1 / 3, 1 / 2, False)
    assert score_factors([[3], [2], [1], [0]], true) == (1.0, 0.0, False)
    assert score_factors([[3, 2], [1, 0]], true) == (1.0, 1.0, True)


def test_findings_say_what_the_numbers_say():
    rng = np.random.default_rng(0)
    base = rng.uniform(0.5, 0.6, 40)
    noise = rng.normal(0, 0.001, (4, 40))
    rising = records({"gfm": base, "ilf": base - 0.02 + noise[0]}, 50) + records(
        {"gfm": base + 0.1 + noise[1], "ilf": base + 0.1 + noise[1]}, 100
    )
    rise, against = summarise(rising, ABOUT).findings
    assert rise.verdict == "holds"
    assert against.verdict == "does not hold everywhere"
    assert "better in 0, worse in 1, and not told apart in 1" in against.detail
    falling = records({"gfm": base}, 50) + records({"gfm": base - 0.1 + noise[2]}, 100)
    (fall,) = summarise(falling, ABOUT).findings
    assert fall.verdict == "does not hold everywhere"
    better = records({"gfm": base, "true": base, "ilf": base + 0.01 + noise[3]})
    held = ["holds, within 0.002"] * 2
    assert [f.verdict for f in summarise(better, ABOUT).findings] == held
    # one significant gain is no proof where the other cells are open
    wide = rng.normal(-0.02, 0.2, 40)
    mixed = better + records({"gfm": base, "ilf": np.clip(base + wide, 0.0, 1.0)}, 100)
    verdicts = {f.claim: f.verdict for f in summarise(mixed, ABOUT).findings}
    assert verdicts["F-GFM ILF is at least as good as GFM"] == "not contradicted"
    once = records({"gfm": [0.5], "ilf": [0.6]})
    assert [f.verdict for f in summarise(once, ABOUT).findings] == ["not decided"]


@pytest.mark.parametrize(
    ("here", "elsewhere", "larger", "verdict"),
    [
        (0.02, 0.0, 0.0, "holds"),
        (0.0, -0.02, 0.0, "not decided"),  # more than elsewhere, but no gain
        (0.02, 0.0, 0.1, "does not hold"),  # a larger gain with more rows
        (0.02, 0.05, 0.0, "does not hold"),
    ],
)
def test_where_the_gain_is_clearest(here, elsewhere, larger, verdict):
    rng = np.random.default_rng(1)
    given = []
    for structure in ("2+2+2+2", "4+4", "6+2", "8"):
        for n in (50, 1000):
            late = structure in ("6+2", "8")
            gain = (here if n == 50 else larger) if late else elsewhere
            gfm = rng.uniform(0.4, 0.5, 30)
            ilf = gfm + gain + rng.normal(0, 0.002, 30)
            given += records({"gfm": gfm, "ilf": ilf}, n, structure)
    finding = summarise(given, ABOUT).findings[-1]
    assert "clearest" in finding.claim
    assert finding.verdict == verdict


# --- the report -------------------------------------------------------------------------------


def test_report_is_whole_and_stands_alone(small):
    paths = write_report(small, "fgfm reproduce --out <folder>")
    assert {path.name for path in paths} == {
        *(
            f"{name}.{kind}"
            for name in ("figure", "differences")
            for kind in ("png", "pdf", "svg")
        ),
        "table.txt",
        "summary.json",
        "report.html",
    }
    first = {path.name: path.read_bytes() for path in paths}
    assert first["figure.png"].startswith(b"\x89PNG")
    assert first["figure.pdf"].startswith(b"%PDF")
    page = first["report.html"].decode()
    assert "fgfm reproduce --out &lt;folder&gt;" in page
    assert not re.search(r"""(src|href)=["'](?!data:)""", page)
    assert page.count("<tr>") == page.count("</tr>")
    summary = json.loads(first["summary.json"])
    assert len(summary["means"]) == 2 * 2 * 6
    assert summary["settings"]["structures"] == ["4+4", "2+1"]
    write_report(small, "fgfm reproduce --out <folder>")
    assert {path.name: path.read_bytes() for path in paths} == first


@pytest.mark.parametrize("methods", [["gfm"], ["threshold"], ["ilf", "true"], ["bayes"]])
def test_few_methods_make_a_report_too(tmp_path, methods):
    results = reproduce(
        tmp_path, reps=1, sizes=[50], structures=[(1, 1)], methods=methods, interactions="all"
    )
    write_report(results, "command")
    text = tables(results.summary)
    assert "Factors of 1+1" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("structure", ["2+1", "+".join(["2"] * 30)])
def test_tables_fit_a_terminal_whatever_is_in_them(structure):
    given = []
    for n in [*range(10, 20), 100_000, 1_000_000]:
        given += records({m: [0.5, 0.7] for m in paper.METHODS}, n, structure, "0")
    lines = tables(summarise(given, ABOUT)).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("1000000" in line for line in lines)


def test_tables_fit_a_terminal(small):
    lines = tables(small.summary).splitlines()
    assert max(map(len, lines)) <= 80
    assert "DAG 2 (4+4)" in lines
    assert sum("*" in line for line in lines) >= 4  # a best method in every row


# --- the command ------------------------------------------------------------------------------


def run(*arguments, cwd):
    return subprocess.run(
        [*PROGRAM, *arguments], capture_output=True, text=True, cwd=cwd, timeout=300, check=False
    )


def test_command_prints_the_table_and_names_the_files(tmp_path):
    done = run(*FEW, "--out", "here", "--jobs", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "DAG 4 (8)" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout + done.stderr  # no bar, no colours
    assert "report.html" in done.stderr
    assert (tmp_path / "here" / "figure.svg").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sizes", "50,x"], "fgfm: --sizes is '50,x'"),
        (["--dags", "9"], "fgfm: structures[0] is 9"),
        (["--dags", "a+b"], "fgfm: --dags is 'a+b'"),
        (["--dags", "40+"], "fgfm: 4 parents and a factor of 40 labels"),
        (["--methods", "gmf"], "fgfm: methods[0] is 'gmf'"),
        (["--reps", "0"], "fgfm: reps is 0"),
        (["--out", "/dev/null/x"], "fgfm: "),
    ],
)
def test_command_refuses_in_one_sentence(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["reproduce", *arguments])
    assert done.exit_code == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def started(folder, jobs="2"):
    return subprocess.Popen(
        [*PROGRAM, *QUICK, "--out", str(folder), "--jobs", jobs],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_rows(folder, rows, process):
    end = time.monotonic() + 120
    path = folder / "results.csv"
    while not (path.exists() and path.read_bytes().count(b"\n") > rows):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.005)


def test_killed_runs_go_on_and_end_the_same(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    settings = {"reps": 3, "sizes": [50, 100], "structures": [1, 4], "interactions": "none"}
    whole = reproduce(one, **settings)
    for rows in (1, 25):
        process = started(other)
        wait_for_rows(other, rows, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        text = (other / "results.csv").read_text()
        kept = text[: text.rfind("\n") + 1].splitlines()
        assert len(kept) > rows
        assert set(kept) <= set((one / "results.csv").read_text().splitlines())
    assert reproduce(other, **settings).summary == whole.summary
    assert (other / "results.csv").read_bytes() == (one / "results.csv").read_bytes()


def test_control_c_says_how_to_go_on(tmp_path):
    process = started(tmp_path / "here", jobs="1")
    wait_for_rows(tmp_path / "here", 1, process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "the same command goes on from there" in errors
    assert "Traceback" not in errors


def test_progress_bar_on_a_terminal(tmp_path):
    mine, theirs = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *FEW, "--out", str(tmp_path / "here"), "--jobs", "1"],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(mine, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(mine)
    assert process.wait() == 0
    assert b"data sets" in seen
    assert b"/2" in seen
    assert b"left" in seen
