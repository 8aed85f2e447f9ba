"""Files of probabilities decided for other averages, under constraints, and by a decider."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import logit

import fgfm
from fgfm.data import DataError, decide
from fgfm.decision import Constraints, from_marginals

NAMES = ["a", "b", "c"]


@pytest.fixture
def proba():
    return np.round(np.random.default_rng(0).random((300, 3)) ** 2, 4)


@pytest.fixture(scope="module")
def deciders():
    """A fitted decider of each average, of named labels."""
    rng = np.random.default_rng(1)
    p = rng.random((400, 3)) ** 2
    Y = pd.DataFrame((rng.random((400, 3)) < p).astype(np.int8), columns=NAMES)
    return {
        average: fgfm.FDecider(average=average).fit(p**1.5, Y)
        for average in ("samples", "macro", "micro")
    }


def write(proba, path, names=NAMES, **ids):
    """Write probabilities in the format of the suffix; return the path."""
    if path.suffix == ".npy":
        np.save(path, proba)
    elif path.suffix == ".npz":
        sparse.save_npz(path, sparse.csr_array(proba))
    else:
        frame = pd.DataFrame(proba, columns=names).assign(**ids)
        if path.suffix == ".csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_parquet(path, index=False)
    return path


def read_wide(path, m=3):
    """Return the labels of a wide file, and its other columns."""
    frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    numbers = [str(j) for j in range(m)]
    names = NAMES[:m] if NAMES[0] in frame else numbers
    return frame[names].to_numpy(), frame.drop(columns=names)


@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "npy", "npz"])
@pytest.mark.parametrize("measure", ["f", "jaccard"])
def test_averages_decide_the_whole_file(proba, tmp_path, average, kind, measure):
    source = write(proba, tmp_path / f"p.{kind}")
    options = {"average": average, "measure": measure}
    report = decide(source, tmp_path / "s.csv", wide=True, **options)
    labels, expected_f = from_marginals(proba, **options)
    found, rest = read_wide(tmp_path / "s.csv")
    assert_array_equal(found, labels)
    assert rest.shape[1] == 0  # rows have no expected F-measure
    assert_allclose(report.mean_expected_f, np.mean(expected_f), rtol=1e-12)
    assert report.rows == 300
    assert report.average == average


@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "npy", "npz"])
def test_many_blocks_are_decided_together(tmp_path, average, kind):
    n = 150_000  # more than a block
    proba = np.random.default_rng(0).random((n, 3)).round(3)
    proba[:, 1] **= 3
    counts = []
    ids = {"id": np.arange(n)} if kind == "csv" else {}
    source = write(proba, tmp_path / f"p.{kind}", **ids)
    decide(
        source,
        tmp_path / "s.parquet",
        average=average,
        wide=True,
        ids=list(ids),
        progress=counts.append,
        n_jobs=2,
    )
    assert len(counts) > 1
    assert counts[-1] == n
    found, rest = read_wide(tmp_path / "s.parquet")
    given = proba if kind != "csv" else pd.read_csv(source)[NAMES].to_numpy()
    assert_array_equal(found, from_marginals(given, average=average).labels)
    if kind == "csv":
        assert_array_equal(rest["id"].astype(int), np.arange(n))


def test_single_precision_is_decided_as_such(proba, tmp_path):
    single = proba.astype(np.float32)
    report = decide(write(single, tmp_path / "p.npy"), tmp_path / "s.csv", average="macro")
    assert report.mean_expected_f == from_marginals(single, average="macro").expected_f.mean()


@pytest.mark.parametrize("average", ["samples", "macro", "micro"])
def test_one_label_is_a_binary_classifier(proba, tmp_path, average):
    column = proba[:, 0]
    source = write(column[:, None], tmp_path / "p.csv", ["a"])
    report = decide(source, tmp_path / "s.csv", average=average, beta=2.0)
    labels, expected_f = from_marginals(column, beta=2.0)
    # An empty set in quotes: readers of CSV skip empty lines.
    lines = (tmp_path / "s.csv").read_text().splitlines()
    assert lines == ["labels", *("a" if y else '""' for y in labels)]
    assert_allclose(report.mean_expected_f, expected_f)
    assert report.average == "macro"
    assert len(pd.read_csv(tmp_path / "s.csv")) == 300


@pytest.mark.parametrize("average", ["samples", "macro", "micro"])
@pytest.mark.parametrize("kind", ["csv", "npy"])
def test_logits(proba, tmp_path, average, kind):
    values = logit(np.clip(proba, 0.001, 0.999)).round(3)
    source = write(values, tmp_path / f"z.{kind}")
    report = decide(source, tmp_path / "s.csv", logits=True, average=average, wide=True)
    labels, expected_f = from_marginals(values, logits=True, average=average)
    assert_array_equal(read_wide(tmp_path / "s.csv")[0], labels)
    assert_allclose(report.mean_expected_f, np.mean(expected_f))
    with pytest.raises(DataError, match=r"apply a sigmoid to logits \(argument: logits\)"):
        decide(source, tmp_path / "t.csv", average=average)
    assert not (tmp_path / "t.csv").exists()


def test_invalid_logits_raise(tmp_path):
    (tmp_path / "z.csv").write_text("a,b\n1.5,-2\n0.1,\n")
    with pytest.raises(
        DataError, match="line 3, column 'b': there is no value: every label needs"
    ):
        decide(tmp_path / "z.csv", tmp_path / "s.csv", logits=True)
    sparse.save_npz(tmp_path / "z.npz", sparse.csr_array([[0.5, 0.0]]))
    with pytest.raises(DataError, match="not stored would be probabilities of 1/2"):
        decide(tmp_path / "z.npz", tmp_path / "s.csv", logits=True)


@pytest.mark.parametrize("kind", ["csv", "npy", "npz"])
def test_constraints(proba, tmp_path, kind):
    rules = Constraints(required=[0], groups=[[1, 2]])
    source = write(proba, tmp_path / f"p.{kind}")
    given = rules if kind != "csv" else Constraints(required=["a"], groups=[["b", 2]])
    decide(source, tmp_path / "s.csv", constraints=given, max_labels=1, wide=True)
    decision = from_marginals(proba, constraints=rules, max_labels=1)
    found, rest = read_wide(tmp_path / "s.csv")
    assert_array_equal(found, decision.labels)
    assert_allclose(rest["expected_f"], decision.expected_f, atol=5.1e-7)
    decide(source, tmp_path / "s.csv", min_labels=2, wide=True)
    assert_array_equal(
        read_wide(tmp_path / "s.csv")[0], from_marginals(proba, min_labels=2).labels
    )


def test_text_numbers_are_labels_of_files_without_names(proba, tmp_path):
    source = write(proba, tmp_path / "p.npy")
    rules = Constraints.from_mapping(json.loads('{"required": ["2"], "parents": {"0": "1"}}'))
    decide(source, tmp_path / "s.csv", constraints=rules, wide=True)
    same = Constraints(required=[2], parents={0: 1})
    expected = from_marginals(proba, constraints=same).labels
    assert_array_equal(read_wide(tmp_path / "s.csv")[0], expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"average": "weighted"}, "average is 'weighted': it must be one of 'samples'"),
        ({"measure": "dice"}, "measure is 'dice'"),
        ({"measure": "jaccard", "beta": 2.0}, "beta is 2.0: it must be 1 if measure is 'jaccard'"),
        ({"average": "macro", "max_labels": 1}, "cannot be combined with average='macro'"),
        ({"measure": "jaccard", "min_labels": 1}, "cannot be combined with measure='jaccard'"),
        ({"min_labels": 4}, "min_labels is 4, but there are 3 labels"),
        ({"constraints": Constraints(required=["d"])}, "no such label; there are 'a', 'b', 'c'"),
    ],
)
def test_invalid_objective_raises(proba, tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        decide(write(proba, tmp_path / "p.csv"), tmp_path / "s.csv", **change)
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_table_without_rows(tmp_path, average, deciders):
    (tmp_path / "p.csv").write_text("id,a,b,c\n")
    for options in ({"average": average}, {"decider": deciders[average]}):
        report = decide(tmp_path / "p.csv", tmp_path / "s.csv", ids=["id"], **options)
        assert report.rows == 0
        assert (tmp_path / "s.csv").read_text() == "id,labels\n"


def test_labels_that_contradict_nonempty(tmp_path):
    (tmp_path / "p.csv").write_text("a,b\n0.5,0\n0.6,0\n")
    with pytest.warns(UserWarning, match="labels without probability in any row"):
        report = decide(tmp_path / "p.csv", tmp_path / "s.csv", average="macro", nonempty=True)
    expected = from_marginals([0.5, 0.6], nonempty=True).expected_f
    assert_allclose(report.mean_expected_f, expected)


def test_folder_is_refused_unless_there_is_a_decider(proba, tmp_path, deciders):
    (tmp_path / "p").mkdir()
    for k in range(2):
        write(proba[k::2], tmp_path / "p" / f"{k}.parquet")
    with pytest.raises(DataError, match=r"'macro' decides all rows together: .*argument: decider"):
        decide(tmp_path / "p", tmp_path / "s", average="macro")
    (tmp_path / "q").mkdir()
    write(proba[:, :1], tmp_path / "q" / "0.parquet", ["a"])
    with pytest.raises(DataError, match="'macro' decides all rows together"):
        decide(tmp_path / "q", tmp_path / "s")
    assert not (tmp_path / "s").exists()
    for average, decider in deciders.items():
        report = decide(tmp_path / "p", tmp_path / "s", decider=decider, wide=True)
        assert (report.rows, report.kept, report.average) == (300, 0, average)
        again = decide(tmp_path / "p", tmp_path / "s", decider=decider, wide=True)
        assert (again.rows, again.kept, again.average) == (300, 2, average)
        assert_allclose(again.mean_expected_f, report.mean_expected_f)
        for k in range(2):
            found, _ = read_wide(tmp_path / "s" / f"{k}.parquet")
            assert_array_equal(found, decider.predict(proba[k::2]))


def test_limits_of_a_folder_are_part_of_its_stamp(proba, tmp_path):
    (tmp_path / "p").mkdir()
    write(proba, tmp_path / "p" / "0.parquet")
    for options in (
        {},
        {"max_labels": 1},
        {"constraints": Constraints(required=["a"])},
        {"constraints": Constraints(required=["b"])},
        {"measure": "jaccard"},
    ):
        assert decide(tmp_path / "p", tmp_path / "s", **options).kept == 0
        assert decide(tmp_path / "p", tmp_path / "s", **options).kept == 1


@pytest.mark.parametrize("average", ["samples", "macro", "micro"])
@pytest.mark.parametrize("kind", ["csv", "parquet", "npy", "npz"])
def test_decider_streams_as_it_decides_in_memory(tmp_path, deciders, average, kind):
    decider = deciders[average]
    n = 70_000  # more than a block
    proba = (np.random.default_rng(0).random((n, 3)) ** 2).round(4)
    counts = []
    source = write(proba, tmp_path / f"p.{kind}")
    report = decide(
        source, tmp_path / "s.parquet", decider=decider, wide=True, progress=counts.append
    )
    assert counts[-1] == n
    assert len(counts) > 1 or kind == "csv"
    found, rest = read_wide(tmp_path / "s.parquet")
    given = sparse.csr_array(proba) if kind == "npz" else proba
    assert_array_equal(found, decider.predict(given))
    if average == "samples":
        assert_array_equal(rest["expected_f"], decider.decide(given).expected_f)
        assert_allclose(report.mean_expected_f, rest["expected_f"].mean())
    else:
        assert rest.shape[1] == 0
        assert np.isnan(report.mean_expected_f)
    assert report.average == average


def test_decider_names_the_labels_of_arrays(proba, tmp_path, deciders):
    decide(write(proba, tmp_path / "p.npy"), tmp_path / "s.csv", decider=deciders["macro"])
    sets = pd.read_csv(tmp_path / "s.csv", keep_default_na=False)["labels"]
    labels = deciders["macro"].predict(proba)
    assert sets.tolist() == [";".join(np.array(NAMES)[y == 1]) for y in labels]


def test_binary_decider_of_any_classes(proba, tmp_path):
    p = proba[:, 0]
    y = np.where(np.random.default_rng(9).random(300) < p, "yes", "no")
    decider = fgfm.FDecider().fit(p, y)
    report = decide(
        write(p[:, None], tmp_path / "p.csv", ["spam"]), tmp_path / "s.csv", decider=decider
    )
    sets = pd.read_csv(tmp_path / "s.csv", keep_default_na=False)["labels"]
    assert_array_equal(sets == "spam", decider.predict(p) == "yes")
    assert report.average == "macro"


def test_decider_of_logits(proba, tmp_path):
    values = logit(np.clip(proba, 0.001, 0.999)).round(3)
    Y = (np.random.default_rng(9).random((300, 3)) < proba).astype(int)
    decider = fgfm.FDecider(logits=True).fit(values, Y)
    decide(write(values, tmp_path / "z.csv"), tmp_path / "s.csv", decider=decider, wide=True)
    assert_array_equal(read_wide(tmp_path / "s.csv")[0], decider.predict(values))


def test_decider_without_names_checks_the_number(proba, tmp_path):
    Y = (np.random.default_rng(9).random((300, 3)) < proba).astype(int)
    decider = fgfm.FDecider().fit(proba, Y)
    decide(write(proba, tmp_path / "p.csv"), tmp_path / "s.csv", decider=decider)
    source = write(proba[:, :2], tmp_path / "two.csv", NAMES[:2])
    with pytest.raises(
        DataError, match="number of labels is 2: it must be 3, that of the decider"
    ):
        decide(source, tmp_path / "t.csv", decider=decider)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "c", "b"], "column 'c': the decider has 'b' in its place"),
        (["a", "b", "cc"], "'cc' is not a label of the decider: did you mean 'c'"),
        (["a", "b"], "there is no label 'c', unlike in the decider"),
    ],
)
def test_other_labels_than_the_decider_raise(proba, tmp_path, deciders, names, message):
    source = write(proba[:, : len(names)], tmp_path / "p.csv", names)
    with pytest.raises(DataError, match=message):
        decide(source, tmp_path / "s.csv", decider=deciders["macro"])
    source = write(proba[:, :2], tmp_path / "p.npy")  # without names
    with pytest.raises(DataError, match="the number of labels is 2: it must be 3"):
        decide(source, tmp_path / "s.csv", decider=deciders["macro"])


def test_invalid_decider_raises(proba, tmp_path, deciders):
    source = write(proba, tmp_path / "p.csv")
    for wrong in (fgfm.FDecider(), "decider.fgfm", fgfm.FGFMClassifier()):
        with pytest.raises(TypeError, match=r"it must be a fitted fgfm\.FDecider"):
            decide(source, tmp_path / "s.csv", decider=wrong)
    for name, value in {"beta": 2.0, "average": "macro", "logits": True, "max_labels": 2}.items():
        with pytest.raises(ValueError, match=f"{name} is .* and decider is given, which has its"):
            decide(source, tmp_path / "s.csv", decider=deciders["samples"], **{name: value})
    assert not (tmp_path / "s.csv").exists()
