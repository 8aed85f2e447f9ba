"""The commands fit, predict, evaluate and factors, from file to file."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import f1_score, hamming_loss, jaccard_score
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from typer.testing import CliRunner

import fgfm
from fgfm.cli._app import app
from fgfm.data import Dataset, decide, load, save
from fgfm.evaluation import best_threshold, evaluate, evaluate_fitted
from fgfm.store import foreign_classes

PROGRAM = [sys.executable, "-W", "error", "-m", "fgfm.cli"]
NAMES = ("red", "green", "blue", "dark")
LONG = tuple(f"{name} {'of a very long and winding description ' * 3}" for name in NAMES)


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).round(3)
    logits = X[:, :4] * [2.0, 1.5, 1.0, 2.0] + rng.logistic(size=(n, 1)) - [0, 0.5, 1, 1.5]
    Y = (logits + rng.logistic(size=(n, 4)) > 0).astype(np.uint8)
    return X, Y


@pytest.fixture(scope="module")
def dataset():
    X, Y = rows()
    features = tuple(f"x{j}" for j in range(1, 6))
    train, test = np.arange(80), np.arange(80, 120)
    return Dataset(X, Y, features, NAMES, train=train, test=test)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, dataset):
    """Files of the same rows in every format, and a table as people have them."""
    path = tmp_path_factory.mktemp("data")
    for name in ("all.csv", "all.parquet", "all.arff", "all.svm", "all.xmc", "all.npz"):
        save(dataset, path / name)
    save(Dataset(dataset.X, dataset.Y, dataset.feature_names, LONG), path / "long.npz")
    frame = pd.DataFrame(dataset.X, columns=dataset.feature_names)
    frame.insert(0, "id", [f"{k:03d}" for k in range(120)])
    frame["place"] = np.where(dataset.X[:, 4] > 0, "north", "south")
    frame.loc[7, "x1"] = np.nan
    lists = [";".join(np.array(NAMES)[y == 1]) for y in dataset.Y]
    frame.assign(**dict(zip(NAMES, dataset.Y.T, strict=True))).to_csv(
        path / "table.csv", index=False
    )
    frame.assign(tags=lists).to_csv(path / "tags.csv", index=False)
    frame.to_csv(path / "new.csv", index=False)
    frame.to_parquet(path / "new.parquet")
    return path


def run(*arguments):
    """Run a command in this process; the terminal is as wide as tables may be."""
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "80"})


def done(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, (result.stderr, result.exception)
    return result


@pytest.fixture(scope="module")
def model(folder):
    path = folder / "model.fgfm"
    done("fit", folder / "all.npz", "--split", "train", "--factors", "single", "-o", path)
    return path


def by_hand(data, factors="independent", scaler=None, **params):
    """Fit what the command should fit."""
    scaler = StandardScaler() if scaler is None else scaler
    classifier = fgfm.FGFMClassifier(factors=factors, random_state=0, **params)
    Y = pd.DataFrame(data.Y, columns=list(data.label_names))
    return Pipeline([("scaler", scaler), ("classifier", classifier)]).fit(data.X, Y)


def sets_in(path):
    """Read label sets as a table of 0 and 1, and what is expected."""
    frame = pd.read_csv(path, keep_default_na=False)
    return [set(filter(None, cell.split(";"))) for cell in frame["labels"]], frame["expected_f"]


def names_of(labels, names):
    return [{names[j] for j in np.flatnonzero(row)} for row in np.asarray(labels)]


# --- fit and predict --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("all.csv", ["--labels", "red,green,blue,dark"]),
        ("all.csv", ["--labels", "-4", "-e", "logistic", "--set", "C=0.5"]),
        ("all.parquet", ["--no-scale"]),
        ("all.arff", []),
        ("all.svm", []),
        ("all.xmc", []),
        ("all.npz", ["--beta", "2", "--nonempty", "no"]),
    ],
)
def test_files_of_every_format_give_what_python_gives(folder, tmp_path, name, options):
    path, target = tmp_path / "model.fgfm", tmp_path / "sets.csv"
    fitted = done("fit", folder / name, *options, "--factors", "independent", "-o", path)
    assert "rows     120\nfeatures 5\nlabels   4" in fitted.stdout
    assert fitted.stderr == ""
    predicted = done("predict", path, folder / name, "-o", target)
    assert predicted.stdout == ""
    assert "120 rows in" in predicted.stderr

    labels = -4 if name == "all.csv" else None
    data = load(folder / name, labels=labels)
    scaler = MaxAbsScaler() if name in ("all.svm", "all.xmc") else None
    params = {}
    if "-e" in options:
        from sklearn.linear_model import LogisticRegression

        params = {"estimator": LogisticRegression(C=0.5, max_iter=1000)}
    if "--beta" in options:
        params = {"beta": 2.0, "nonempty": False}
    if "--no-scale" in options:
        scaler = "passthrough"
    expected = by_hand(data, scaler=scaler, **params)
    decision = expected[-1].decide(expected[:-1].transform(data.X))
    found, expected_f = sets_in(target)
    assert found == names_of(decision.labels, data.label_names)
    assert_allclose(expected_f, decision.expected_f, atol=1e-6)
    whole = fgfm.load(path)
    assert whole.steps[0][0] == "encoder"
    assert list(whole[-1].label_names_in_) == list(data.label_names)


def test_a_table_with_texts_gaps_identifiers_and_lists(folder, tmp_path):
    for data, options in [
        ("table.csv", ["--labels", "red,green", "--labels", "blue,dark"]),
        ("tags.csv", ["--labels", "tags", "--separator", ";"]),
    ]:
        path = tmp_path / f"{data}.fgfm"
        done(
            "fit", folder / data, *options, "--drop", "id", "--factors", "green,red|dark",
            "--method", "tilted", "-o", path,
        )  # fmt: skip
        assert path.stat().st_mode & 0o777 == 0o666 & ~_umask()
        model = fgfm.load(path)
        assert sorted(map(len, model[-1].factors_)) == [1, 1, 2]
        target, chances = tmp_path / "sets.csv", tmp_path / "p.csv"
        done("predict", path, folder / "new.csv", "-o", target, "--ids", "id", "--proba", chances)
        frame = pd.read_csv(folder / "new.csv", dtype={"id": str})
        names = [str(name) for name in model[-1].label_names_in_]
        raw = frame.drop(columns="id")
        assert sets_in(target)[0] == names_of(model.predict(raw), names)
        assert pd.read_csv(target, dtype=str)["id"].tolist() == frame["id"].tolist()
        p = pd.read_csv(chances, dtype={"id": str})
        assert list(p.columns) == ["id", *names]
        assert_allclose(p[names], model.predict_proba(raw), rtol=1e-14)
        report = decide(chances, tmp_path / "decided.csv", ids=["id"])
        assert report.rows == 120


def test_predict_does_not_look_at_labels(folder, tmp_path):
    for data, options in [
        ("table.csv", ["--labels", "red,green,blue,dark"]),
        ("tags.csv", ["--labels", "tags", "--separator", ";"]),
    ]:
        path, target = tmp_path / f"{data}.fgfm", tmp_path / "sets.csv"
        done("fit", folder / data, *options, "--drop", "id", "--factors", "independent",
             "-o", path)  # fmt: skip
        frame = pd.read_csv(folder / "new.csv", dtype=str)
        done("predict", path, folder / "new.csv", "-o", target)
        wanted = target.read_text()
        odd = ["", "?", "soon", "['red']", "red;pink"] * 24
        for columns in ({"red": odd}, {"dark": odd, "tags": odd}):
            known = {k: v for k, v in columns.items() if (k == "tags") == (data == "tags.csv")}
            frame.assign(**known).to_csv(tmp_path / "odd.csv", index=False)
            done("predict", path, tmp_path / "odd.csv", "-o", target)
            assert target.read_text() == wanted
        # labels that are compared with must be labels
        frame.assign(**known).to_csv(tmp_path / "odd.csv", index=False)
        assert run("evaluate", tmp_path / "odd.csv", "--model", path).exit_code == 2


def test_predict_reads_pipes_and_tells_of_categories(folder, tmp_path):
    path, target = tmp_path / "model.fgfm", tmp_path / "sets.csv"
    done("fit", folder / "table.csv", "-l", ",".join(NAMES), "--drop", "id", "--factors",
         "independent", "-o", path)  # fmt: skip
    done("predict", path, folder / "new.csv", "-o", target, "--ids", "id")
    wanted = target.read_text()
    assert wanted.count("\n") == 121
    content = (folder / "new.csv").read_bytes()
    command = [*PROGRAM, "predict", str(path), "-", "--format", "csv", "--ids", "id"]
    for source in ("-", "/dev/stdin"):
        command[command.index("predict") + 2] = source
        result = subprocess.run(command, input=content, capture_output=True, check=True)
        assert result.stdout.decode() == wanted
    frame = pd.read_csv(folder / "new.csv", dtype=str)
    frame["place"] = ["Nowhere"] * 5 + frame["place"].tolist()[5:]
    frame.to_csv(tmp_path / "odd.csv", index=False)
    command = [sys.executable, "-m", "fgfm.cli", "predict", path, tmp_path / "odd.csv"]
    told = subprocess.run(command, capture_output=True, check=True, text=True).stderr
    assert "column 'place': 5 of 120 rows have a category that training did not have" in told
    assert "such as 'Nowhere'" in told


def _umask():
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def test_label_sets_in_every_output_format(folder, tmp_path, model):
    X, test = load(folder / "all.npz").X, slice(80, 120)
    whole = fgfm.load(model)
    for beta in (1.0, 2.0):
        whole[-1].set_params(beta=beta)
        decision = whole[-1].decide(whole[:-1].transform(X[test]))
        sets = names_of(decision.labels, NAMES)
        common = ["predict", model, folder / "all.npz", "--split", "test", "--beta", beta]
        done(*common, "-o", tmp_path / "s.parquet")
        frame = pd.read_parquet(tmp_path / "s.parquet")
        assert [set(cell) for cell in frame["labels"]] == sets
        assert_array_equal(frame["expected_f"], decision.expected_f)
        done(*common, "-o", tmp_path / "s.jsonl")
        lines = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
        assert [set(line["labels"]) for line in lines] == sets
        done(*common, "-o", tmp_path / "s.tsv", "--wide")
        wide = pd.read_csv(tmp_path / "s.tsv", sep="\t")
        assert_array_equal(wide[list(NAMES)], decision.labels)
        stream = done(*common)
        assert stream.stdout.startswith("labels,expected_f\n")
        assert stream.stdout.count("\n") == 41
        assert f"mean expected F{beta:g} {decision.expected_f.mean():.3f}" in stream.stderr
    done(*common, "--proba", tmp_path / "p.parquet")
    p = pd.read_parquet(tmp_path / "p.parquet")
    assert_array_equal(p, whole.predict_proba(X[test]))
    kept = ["--ids", "id", "--proba", "-", "-o", tmp_path / "ids.csv"]
    done("fit", folder / "tags.csv", "-l", "tags", "--separator", ";", "--drop", "id",
         "--factors", "independent", "-o", tmp_path / "tags.fgfm")  # fmt: skip
    text = done("predict", tmp_path / "tags.fgfm", folder / "new.parquet", *kept).stdout
    assert text.startswith("id,blue,dark,green,red\n000,0.")
    assert (tmp_path / "ids.csv").read_text().startswith("id,labels,expected_f\n000,")


def test_models_of_python_are_taken_too(folder, tmp_path):
    data = load(folder / "all.npz")
    plain = fgfm.FGFMClassifier(factors="single", random_state=0).fit(data.X, data.Y)
    fgfm.save(plain, tmp_path / "plain.fgfm")
    done("predict", tmp_path / "plain.fgfm", folder / "all.npz", "-o", tmp_path / "sets.csv")
    numbers = ["0", "1", "2", "3"]
    assert sets_in(tmp_path / "sets.csv")[0] == names_of(plain.predict(data.X), numbers)
    text = done("evaluate", folder / "all.npz", "--model", tmp_path / "plain.fgfm", "--json")
    f = json.loads(text.stdout)["measures"]["instance_f"]["f_optimal"]["value"]
    assert_allclose(f, plain.score(data.X, data.Y))


def test_forests_are_loaded_if_trusted(folder, tmp_path):
    path, target = tmp_path / "forest.fgfm", tmp_path / "sets.csv"
    told = done(
        "fit", folder / "all.npz", "-e", "forest", "--set", "n_estimators=5", "--set",
        "max_depth=3", "--factors", "independent", "--calibration", "none", "-o", path,
    )  # fmt: skip
    assert "--trust sklearn.tree._tree.Tree" in told.stderr
    result = run("predict", path, folder / "all.npz", "-o", target)
    assert result.exit_code == 2
    assert "give --trust sklearn.tree._tree.Tree" in result.stderr
    assert not target.exists()
    done("predict", path, folder / "all.npz", "-o", target, "--trust", "sklearn.tree._tree.Tree")
    learner = fgfm.load(path, trusted=["sklearn.tree._tree.Tree"])[-1].estimator
    assert (learner.n_estimators, learner.max_depth) == (5, 3)


@pytest.mark.parametrize("name", ["boosting", "extra-trees", "knn", "naive-bayes", "svm", "tree"])
def test_learners_by_name(folder, tmp_path, name):
    few = {"boosting": ["--set", "max_iter=5"], "extra-trees": ["--set", "n_estimators=5"]}
    path = tmp_path / "model.fgfm"
    options = [*few.get(name, []), "--dense", "--factors", "independent"]
    done("fit", folder / "all.svm", "-e", name, *options, "-o", path)
    trust = [option for cls in foreign_classes(path) for option in ("--trust", cls)]
    done("predict", path, folder / "all.svm", "-o", tmp_path / "sets.csv", *trust)
    model = fgfm.load(path, trusted=trust[1::2])
    sets = names_of(model.predict(load(folder / "all.svm").X), model[-1].label_names_in_)
    assert sets_in(tmp_path / "sets.csv")[0] == [set(map(str, row)) for row in sets]


# --- evaluate ---------------------------------------------------------------------------------


def test_cross_validation_is_what_scikit_learn_measures(folder, dataset):
    options = ["--factors", "independent", "--folds", "4", "--inner-folds", "0"]
    text = done("evaluate", folder / "all.npz", *options, "--json").stdout
    found = json.loads(text)
    H, half, cut = (np.zeros_like(dataset.Y) for _ in range(3))
    expected = np.zeros(120)
    folds = list(KFold(4, shuffle=True, random_state=0).split(dataset.X))
    for train, test in folds:
        model = by_hand(dataset.rows(train))
        decision = model[-1].decide(model[:-1].transform(dataset.X[test]))
        H[test], expected[test] = decision
        p = model.predict_proba(dataset.X[test])
        half[test] = p > 0.5
        t = best_threshold(model.predict_proba(dataset.X[train]), dataset.Y[train] == 1, 1.0, 1.0)
        assert min(abs(t - given) for given in found["thresholds"]) < 1e-12
        cut[test] = p > t
    for rule, sets in {"f_optimal": H, "half": half, "threshold": cut}.items():
        Y = dataset.Y
        wanted = {
            "instance_f": f1_score(Y, sets, average="samples", zero_division=1.0),
            "micro_f": f1_score(Y, sets, average="micro"),
            "macro_f": f1_score(Y, sets, average="macro"),
            "jaccard": jaccard_score(Y, sets, average="samples", zero_division=1.0),
            "hamming_loss": hamming_loss(Y, sets),
            "subset_accuracy": (sets == Y).all(axis=1).mean(),
            "labels_per_row": sets.sum(axis=1).mean(),
        }
        for measure, value in wanted.items():
            assert_allclose(found["measures"][measure][rule]["value"], value, rtol=1e-12)
    f = fgfm.f_measure(dataset.Y, H, per_row=True)
    by_fold = [f[test].mean() for _, test in folds]
    given = found["measures"]["instance_f"]["f_optimal"]["standard_error"]
    assert_allclose(given, np.std(by_fold, ddof=1) / 2.0)
    assert_allclose(found["excess"]["value"], (expected - f).mean())
    gain = f - fgfm.f_measure(dataset.Y, half, per_row=True)
    assert_allclose(found["gains"]["half"]["value"], gain.mean())


def test_standard_errors_over_rows_are_those_of_resampled_rows():
    X, Y = rows(600, seed=3)
    model = fgfm.FGFMClassifier(factors="independent", random_state=0)
    found = evaluate(model, X[:200], Y[:200], X[200:], Y[200:], inner_folds=0)
    H = model.fit(X[:200], Y[:200]).predict(X[200:])
    rng = np.random.default_rng(0)
    again = rng.integers(0, 400, (150, 400))
    for measure, kind in [("micro_f", "micro"), ("macro_f", "macro"), ("instance_f", "samples")]:
        scores = [
            f1_score(Y[200:][i], H[i], average=kind, zero_division=1.0 if kind == "samples" else 0)
            for i in again
        ]
        error = found.measures[measure]["f_optimal"].standard_error
        assert_allclose(error, np.std(scores), rtol=0.2)


def test_best_threshold_is_the_best_of_all():
    rng = np.random.default_rng(1)
    proba = rng.random((30, 4)).round(2)
    Y = rng.random((30, 4)) < proba
    for beta in (0.5, 1.0, 2.0):
        t = best_threshold(proba, Y, beta, 1.0)
        every = [fgfm.f_measure(Y, proba > c, beta) for c in np.linspace(0.0, 1.0, 201)]
        assert_allclose(fgfm.f_measure(Y, proba > t, beta), max(every))


def test_two_files_a_split_and_a_model_are_the_same_rows(folder, tmp_path, dataset, model):
    save(dataset.rows(dataset.train), tmp_path / "train.csv")
    save(dataset.rows(dataset.test), tmp_path / "test.csv")
    options = ["--factors", "single", "--inner-folds", "2", "--json"]
    split = json.loads(done("evaluate", folder / "all.npz", "--split", "test", *options).stdout)
    files = json.loads(
        done(
            "evaluate", tmp_path / "train.csv", "--test", tmp_path / "test.csv", "-l", "-4",
            *options,
        ).stdout
    )  # fmt: skip
    fitted = json.loads(
        done("evaluate", folder / "all.npz", "--split", "test", "--model", model, "--json").stdout
    )
    assert files["measures"] == split["measures"]
    assert fitted["n_rows"] == split["n_rows"] == 40
    for measure, by_rule in split["measures"].items():
        for rule in ("f_optimal", "half"):
            assert_allclose(
                fitted["measures"][measure][rule]["value"], by_rule[rule]["value"], rtol=1e-9
            )
    other = json.loads(
        done(
            "evaluate", folder / "all.npz", "--split", "test", "--model", model, "--json",
            "--beta", "3",
        ).stdout
    )  # fmt: skip
    assert other["beta"] == 3.0
    assert (
        other["measures"]["labels_per_row"]["f_optimal"]["value"]
        > (fitted["measures"]["labels_per_row"]["f_optimal"]["value"])
    )


# --- factors ----------------------------------------------------------------------------------


def test_factors_are_those_of_python_and_can_be_used(folder, tmp_path, dataset):
    picture = tmp_path / "graph.svg"
    options = ["--test", "gcm", "--alpha", "0.2", "--correction", "none", "--rule", "and"]
    result = done("factors", folder / "all.npz", *options, "--graph", picture, "--json")
    found = json.loads(result.stdout)
    finder = fgfm.ILFCompo("gcm", 0.2, "and", correction=None).fit(dataset.X, dataset.Y)
    assert found["factors"] == [[NAMES[k] for k in factor] for factor in finder.factors_]
    assert len(found["edges"]) == finder.graph_.nnz // 2 > 0
    for edge in found["edges"]:
        i, j = (NAMES.index(name) for name in edge["labels"])
        assert edge["p_value"] == max(finder.p_values_[i, j], finder.p_values_[j, i])
    p = [edge["p_value"] for edge in found["edges"]]
    assert p == sorted(p)
    assert picture.read_text().startswith("<?xml")
    table = done("factors", folder / "all.npz", *options, "--edges", "1").stdout
    assert "test gcm, alpha 0.2, no" in table
    assert f"{found['edges'][0]['labels'][0]} - {found['edges'][0]['labels'][1]}" in table

    (tmp_path / "factors.json").write_text(result.stdout)
    (tmp_path / "factors.txt").write_text("red, blue\ngreen\n")
    for name, sizes in [("factors.json", None), ("factors.txt", [1, 1, 2])]:
        path = tmp_path / "model.fgfm"
        done("fit", folder / "all.npz", "--factors", tmp_path / name, "-o", path)
        parts = sorted(len(factor) for factor in fgfm.load(path)[-1].factors_)
        assert parts == (sorted(map(len, found["factors"])) if sizes is None else sizes)


# --- how it looks -----------------------------------------------------------------------------


def test_nothing_is_wider_than_a_terminal(folder, tmp_path):
    texts = [run("--help").stdout]
    texts += [run(name, "--help").stdout for name in ("fit", "predict", "evaluate", "factors")]
    assert all("Examples:" in text for text in texts[1:])
    common = [folder / "long.npz"]
    path = tmp_path / ("model" * 10 + ".fgfm")
    texts.append(done("fit", *common, "--factors", "single", "-o", path).stdout)
    texts.append(done("evaluate", *common, "--factors", "independent", "--folds", "2").stdout)
    texts.append(done("evaluate", *common, "--model", path).stdout)
    texts.append(done("factors", *common, "--correction", "none", "--alpha", "0.5").stdout)
    for text in texts:
        assert max(map(len, text.splitlines())) <= 80, text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "none.npz", "-o", "m"], "none.npz"),
        (["fit", "all.csv", "-o", "m"], "nothing says which columns are labels: give --labels"),
        (["fit", "all.csv", "-l", "purple", "-o", "m"], "'purple', which --labels asks for"),
        (["fit", "new.csv", "-l", "id", "--separator", ";", "-o", "no/m"], "there is no folder"),
        (["fit", "all.npz", "-o", "."], "a folder: it must be a file"),
        (["fit", "all.npz", "-o", "m", "-e", "rigde"], "it must be one of ridge, logistic, for"),
        (["fit", "all.npz", "-o", "m", "-e", "no.such:Thing"], "No module named"),
        (["fit", "all.npz", "-o", "m", "-e", "sklearn.svm:Thing"], "has no class 'Thing'"),
        (["fit", "all.npz", "-o", "m", "-e", "knn", "--set", "k=3"], "it has n_neighbors, wei"),
        (["fit", "all.npz", "-o", "m", "--set", "k"], "it must be name=value"),
        (["fit", "all.npz", "-o", "m", "--factors", "some"], "--factors is 'some': it must be"),
        (["fit", "all.npz", "-o", "m", "--factors", "red,pink"], "no label 'pink'"),
        (["fit", "all.npz", "-o", "m", "--factors", "red|red"], "'red' occurs twice"),
        (["fit", "all.npz", "-o", "m", "--factors", "all.npz"], "is no text"),
        (["fit", "all.npz", "-o", "m", "--method", "x"], "method is 'x'"),
        (["fit", "all.npz", "-o", "m", "--calibration", "x"], "calibration is 'x'"),
        (["fit", "all.npz", "-o", "m", "--nonempty", "x"], "--nonempty is 'x'"),
        (["fit", "all.npz", "-o", "m", "--beta", "-1"], "beta is -1"),
        (["fit", "all.npz", "-o", "m", "--jobs", "0"], "n_jobs is 0"),
        (["fit", "all.npz", "-o", "m", "--split", "x"], "--split is 'x'"),
        (["fit", "all.svm", "-o", "m", "--split", "train"], "says nothing of rows to train"),
        (["fit", "all.svm", "-o", "m", "-e", "boosting"], "give --dense"),
        (["fit", "all.npz", "-o", "m", "--format", "x"], "format is 'x'"),
        (["predict", "all.npz", "all.npz", "-o", "s.csv"], "is not a model saved by fgfm"),
        (["predict", "all.csv", "all.npz", "-o", "s.csv"], "is not a model saved by fgfm"),
        (["predict", "none.fgfm", "all.npz", "-o", "s.csv"], "none.fgfm: no such file"),
        (["predict", "scaler.fgfm", "all.npz", "-o", "s.csv"], "holds StandardScaler"),
        (["predict", "model.fgfm", "all.npz", "-o", "-", "--proba", "-"], "two files"),
        (["predict", "model.fgfm", "all.npz", "-o", "s.doc"], "'.doc'"),
        (["predict", "model.fgfm", "all.npz", "--proba", "p.jsonl"], "CSV, TSV or Parquet"),
        (["predict", "model.fgfm", "new.csv", "-o", "s.csv"], "no column 'id'"),
        (["predict", "model.fgfm", "all.npz", "-o", "s.csv", "--ids", "x"], "no columns to keep"),
        (["predict", "model.fgfm", "new.csv", "-o", "s.csv", "--ids", "x"], "no column 'x' to"),
        (["predict", "model.fgfm", "wide.npz", "-o", "s.csv"], "features"),
        (["predict", "model.fgfm", "all.npz", "-o", "s.csv", "--beta", "nan"], "beta is nan"),
        (["evaluate", "new.csv", "--drop", "id"], "give --labels"),
        (["evaluate", "all.npz", "--folds", "1"], "folds is 1: it must be from 2 to 120"),
        (["evaluate", "all.npz", "--inner-folds", "1"], "inner_folds is 1"),
        (["evaluate", "all.npz", "--split", "test", "--test", "all.npz"], "give one"),
        (["evaluate", "all.npz", "--split", "train"], "--split is 'train'"),
        (["evaluate", "all.npz", "--test", "long.npz"], "is an unknown label"),
        (["evaluate", "long.npz", "--model", "model.fgfm"], "is an unknown label"),
        (["evaluate", "long.npz", "--model", "named.fgfm"], "those of the model are 'red', 'gre"),
        (["fit", "all.csv", "-l", "-9", "-o", "m"], "--labels -9 leaves no features"),
        (["fit", "table.csv", "-l", "-4", "-o", "m", "--max-categories", "1"], "with --drop"),
        (["evaluate", "all.npz", "--model", "model.fgfm", "-e", "knn"], "--estimator is for fit"),
        (["factors", "all.npz", "--alpha", "2"], "alpha is 2"),
        (["factors", "all.npz", "--test", "x"], "test is 'x'"),
        (["factors", "all.npz", "--rule", "x"], "rule is 'x'"),
        (["factors", "all.npz", "--correction", "x"], "correction is 'x'"),
        (["factors", "all.npz", "--graph", "g.bmp"], "must end in one of .png, .pdf, .svg"),
        (["factors", "new.csv", "--drop", "id"], "give --labels"),
    ],
)
def test_wrong_input_ends_with_one_sentence(folder, monkeypatch, model, arguments, message):
    monkeypatch.chdir(folder)
    if "scaler.fgfm" in arguments:
        fgfm.save(StandardScaler().fit(np.eye(5)), "scaler.fgfm")
    if "named.fgfm" in arguments:
        X, Y = rows()
        named = fgfm.FGFMClassifier(factors="independent")
        fgfm.save(named.fit(X, pd.DataFrame(Y, columns=NAMES)), "named.fgfm")
    if "wide.npz" in arguments:
        save(Dataset(np.eye(6)), "wide.npz")
    before = set(os.listdir())
    result = run(*arguments)
    assert result.exit_code == 2, (result.stdout, result.exception)
    assert result.stdout == ""
    assert result.stderr.startswith("fgfm: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert set(os.listdir()) == before


@pytest.mark.filterwarnings("default")
def test_warnings_are_one_line_each(folder, tmp_path):
    options = ["-e", "network", "--set", "max_iter=2", "--set", "hidden_layer_sizes=(3,)"]
    path = tmp_path / "model.fgfm"
    told = done("fit", folder / "all.npz", *options, "--factors", "independent", "-o", path).stderr
    assert told.count("fgfm: warning: ") == 1
    assert "Maximum iterations (2) reached" in told.splitlines()[0]


def test_what_cannot_be_evaluated_is_refused():
    X, Y = rows()
    with pytest.raises(TypeError, match="model is Pipeline: it must be an FGFMClassifier, or a"):
        evaluate(Pipeline([("scaler", StandardScaler())]), X, Y)
    with pytest.raises(ValueError, match="Y has 1 rows: an evaluation needs two at least"):
        evaluate_fitted(fgfm.FGFMClassifier(), X[:1], Y[:1])


def test_what_is_not_installed_is_named(folder, monkeypatch, model):
    monkeypatch.chdir(folder)
    for module, arguments, extra in [
        ("skops.io", ["fit", "all.npz", "-o", "m"], "fgfm[store]"),
        ("pandas", ["fit", "all.npz", "-o", "m"], "fgfm[data]"),
        ("pyarrow", ["predict", "model.fgfm", "all.npz", "-o", "s.csv"], "fgfm[data]"),
        ("matplotlib.pyplot", ["factors", "all.npz", "--graph", "g.png"], "fgfm[plot]"),
    ]:
        with monkeypatch.context() as without:
            without.setitem(sys.modules, module, None)
            result = run(*arguments)
        assert result.exit_code == 2
        assert result.stderr.endswith(f"pip install '{extra}'\n")


# --- processes --------------------------------------------------------------------------------


def started(*arguments, **options):
    return subprocess.Popen([*PROGRAM, *map(str, arguments)], **options)


def test_who_stops_reading_does_no_harm(tmp_path, model):
    X, Y = rows(20000)
    save(Dataset(X, Y, label_names=NAMES), tmp_path / "many.npz")
    process = started(
        "predict", model, tmp_path / "many.npz", "-o", "-",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.readline() == b"labels,expected_f\n"
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 0


def read_terminal(mine, until=None):
    """Read what a program writes to a terminal, to its end or to some text."""
    seen = b""
    while until is None or until not in seen:
        try:
            part = os.read(mine, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    return seen


def on_terminal(*arguments):
    mine, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    process = started(*arguments, stdout=subprocess.DEVNULL, stderr=theirs, env=env)
    os.close(theirs)
    return process, mine


def test_progress_on_a_terminal_and_control_c(folder, tmp_path):
    path = tmp_path / "model.fgfm"
    process, mine = on_terminal("fit", folder / "all.npz", "--factors", "single", "-o", path)
    seen = read_terminal(mine)
    os.close(mine)
    assert process.wait() == 0
    assert b"models" in seen
    assert b"/5" in seen
    assert b"left" in seen

    X, Y = rows(3000)
    save(Dataset(X, Y, label_names=NAMES), tmp_path / "many.npz")
    other = tmp_path / "other.fgfm"
    process, mine = on_terminal(
        "fit", tmp_path / "many.npz", "-e", "forest", "--set", "n_estimators=2000",
        "--factors", "single", "-o", other,
    )  # fmt: skip
    read_terminal(mine, until=b"models")
    process.send_signal(signal.SIGINT)
    seen = read_terminal(mine)
    os.close(mine)
    assert process.wait() == 130
    assert b"fgfm: stopped" in seen
    assert b"Traceback" not in seen
    assert sorted(os.listdir(tmp_path)) == ["many.npz", "model.fgfm"]


def killed_while_writing(target, delay, *arguments):
    """Start a command, and end it a moment after it has begun to write."""
    process = started(*arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list(target.parent.glob(f".{target.name}.*.part")):
        time.sleep(0.001)
    time.sleep(delay)
    process.kill()
    process.wait()


def test_killed_commands_leave_nothing_or_the_whole(folder, tmp_path, model):
    X, Y = rows(4000)
    save(Dataset(X, Y, label_names=NAMES), tmp_path / "many.npz")
    path, sets = tmp_path / "model.fgfm", tmp_path / "sets.csv"
    rng = np.random.default_rng()
    predict = ["predict", str(model), str(tmp_path / "many.npz"), "-o"]
    whole = subprocess.run([*PROGRAM, *predict, "-"], capture_output=True)
    assert whole.returncode == 0
    assert whole.stdout.startswith(b"labels,expected_f\n")
    assert whole.stdout.count(b"\n") == 4001
    assert whole.stderr.startswith(b"4000 rows in ")
    assert whole.stderr.count(b"\n") == 1
    killed_while_writing(sets, rng.uniform(0.0, 0.1), *predict, sets)
    assert not sets.exists() or sets.read_bytes() == whole.stdout
    path.write_bytes(model.read_bytes())  # what was there stays until the new one is whole
    command = ["fit", folder / "all.npz", "--factors", "independent", "-o", path]
    killed_while_writing(path, rng.uniform(0.0, 0.03), *command)
    assert len(fgfm.load(path)[-1].factors_) in (1, 4)


# --- what must not be mixed up ----------------------------------------------------------------


def test_no_file_is_read_and_written(folder, model, tmp_path):
    for name in ("all.csv", "model.fgfm"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "link.csv").symlink_to(tmp_path / "all.csv")
    data, copy = tmp_path / "all.csv", tmp_path / "model.fgfm"
    before = data.read_bytes(), copy.read_bytes()
    labels = ["--labels", ",".join(NAMES), "--factors", "independent"]
    for arguments in (
        ["fit", data, *labels, "-o", data],
        ["fit", data, *labels, "-o", tmp_path / "link.csv"],
        ["predict", copy, data, "-o", data],
        ["predict", copy, data, "-o", copy, "--output-format", "csv"],
        ["predict", copy, data, "-o", tmp_path / "s.csv", "--proba", f"{tmp_path}/./s.csv"],
        ["decide", data, "-o", tmp_path / "link.csv"],
    ):
        result = run(*arguments)
        assert result.exit_code == 2, arguments
        assert "they must be two files" in result.stderr
    assert (data.read_bytes(), copy.read_bytes()) == before


def test_models_without_an_encoder_take_columns_by_name(dataset, tmp_path):
    frame = pd.DataFrame(dataset.X, columns=dataset.feature_names)
    classifier = fgfm.FGFMClassifier(factors="independent", random_state=0)
    fgfm.save(classifier.fit(frame, dataset.Y), tmp_path / "m.fgfm")
    frame[frame.columns[::-1]].to_csv(tmp_path / "turned.csv", index=False)
    done("predict", tmp_path / "m.fgfm", tmp_path / "turned.csv", "-o", tmp_path / "s.csv")
    found, _ = sets_in(tmp_path / "s.csv")
    assert found == names_of(classifier.predict(frame), ["0", "1", "2", "3"])
    frame.drop(columns="x1").to_csv(tmp_path / "less.csv", index=False)
    assert "no column 'x1'" in run("predict", tmp_path / "m.fgfm", tmp_path / "less.csv").stderr
    frame.assign(more=1.0).to_csv(tmp_path / "more.csv", index=False)
    assert (
        "had no column 'more'" in run("predict", tmp_path / "m.fgfm", tmp_path / "more.csv").stderr
    )
    frame.loc[3, "x2"] = np.nan
    frame.to_csv(tmp_path / "gap.csv", index=False)
    result = run("predict", tmp_path / "m.fgfm", tmp_path / "gap.csv")
    assert result.exit_code == 2
    assert "without the FeatureEncoder" in result.stderr


def test_an_encoder_names_the_labels_of_a_plain_model(folder, dataset, tmp_path):
    data = load(folder / "all.parquet")
    classifier = fgfm.FGFMClassifier(factors="independent", random_state=0).fit(data.X, data.Y)
    fgfm.save(Pipeline([("encoder", data.encoder), ("c", classifier)]), tmp_path / "m.fgfm")
    done("predict", tmp_path / "m.fgfm", folder / "all.parquet", "-o", tmp_path / "s.csv")
    found, _ = sets_in(tmp_path / "s.csv")
    assert found == names_of(classifier.predict(data.X), NAMES)


def test_a_number_that_is_a_name_is_refused(tmp_path):
    (tmp_path / "d.csv").write_text("x,1,2\n" + "1,1,0\n0,0,1\n" * 5)
    result = run("fit", tmp_path / "d.csv", "--labels", "1", "-o", tmp_path / "m.fgfm")
    assert result.exit_code == 2
    assert "write '[1]' for the column" in result.stderr
    command = ["fit", tmp_path / "d.csv", "--labels", "[1]", "-o", tmp_path / "m.fgfm"]
    done(*command, "--factors", "independent")


@pytest.mark.filterwarnings("ignore:rows without probability")
def test_what_contradicts_nonempty_is_not_evaluated(tmp_path):
    (tmp_path / "d.csv").write_text("x,k,l\n" + "0.5,0,0\n0.1,0,0\n" * 10)
    result = run(
        "evaluate", tmp_path / "d.csv", "--labels", "k,l", "--nonempty", "yes", "--folds", "2",
        "--inner-folds", "0", "--factors", "independent",
    )  # fmt: skip
    assert result.exit_code == 2
    assert "contradicts nonempty" in result.stderr


def test_json_of_an_evaluation_keeps_its_settings(folder):
    result = done(
        "evaluate", folder / "all.npz", "--split", "test", "--factors", "independent",
        "--inner-folds", "0", "--json",
    )  # fmt: skip
    told = json.loads(result.stdout)
    assert told["factors"] == "independent"
    assert told["n_factors"] == [4]


def test_decimal_commas_are_read_when_asked_for(folder, dataset, tmp_path):
    frame = pd.DataFrame(dataset.X, columns=dataset.feature_names)
    frame = frame.assign(**dict(zip(NAMES, dataset.Y.T, strict=True)))
    frame.to_csv(tmp_path / "d.csv", index=False, sep=";", decimal=",")
    command = ["fit", tmp_path / "d.csv", "--labels", ",".join(NAMES), "-o", tmp_path / "m.fgfm"]
    command += ["--factors", "independent", "--delimiter", ";"]
    result = run(*command)
    assert result.exit_code == 2
    assert "--decimal" in result.stderr
    done(*command, "--decimal", ",")
    how = ["--delimiter", ";", "--decimal", ",", "-o", tmp_path / "s.csv"]
    done("predict", tmp_path / "m.fgfm", tmp_path / "d.csv", *how)
    found, _ = sets_in(tmp_path / "s.csv")
    assert found == names_of(by_hand(dataset).predict(dataset.X), NAMES)
