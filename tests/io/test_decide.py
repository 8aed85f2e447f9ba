"""Label sets from files and folders of probabilities."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fgfm
from fgfm.decision import Constraints, from_marginals
from fgfm.io import DataError, decide

NAMES = ["news", "sport", "arts", "war, peace"]
RNG = np.random.default_rng(0)
P = np.round(RNG.random((300, 4)) ** 2, 4)


def write(table, path):
    """Write probabilities in the format of the suffix; return the path."""
    suffix = path.name.partition(".")[2]
    if suffix in ("csv", "csv.gz", "tsv"):
        table.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    elif suffix == "parquet":
        table.to_parquet(path, index=False)
    else:
        table.to_json(path, orient="records", lines=True)
    return path


@pytest.fixture
def table():
    return pd.DataFrame(P, columns=NAMES)


def read_sets(path, names):
    """Return the label sets of a file as an (n, m) array, and the expected F-measures."""
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        sets, expected = [row["labels"] for row in rows], [row["expected_f"] for row in rows]
    elif path.suffix == ".parquet":
        frame = pd.read_parquet(path)
        sets, expected = frame["labels"].tolist(), frame["expected_f"].tolist()
    else:
        with path.open(newline="") as lines:
            rows = list(csv.DictReader(lines, delimiter="," if path.suffix == ".csv" else "\t"))
        sets = [[name for name in row["labels"].split(";") if name] for row in rows]
        expected = [float(row["expected_f"]) for row in rows]
    return np.array([[name in of for name in names] for of in sets], dtype=int), np.array(expected)


@pytest.mark.parametrize(
    ("kind", "out"),
    [
        *((kind, "parquet") for kind in ("csv", "csv.gz", "tsv", "parquet", "jsonl")),
        *(("csv", out) for out in ("csv", "tsv", "jsonl")),
    ],
)
def test_formats_agree_with_from_marginals(table, tmp_path, kind, out):
    source = write(table, tmp_path / f"p.{kind}")
    options = {"beta": 2.0, "nonempty": True, "zero_division": 0.0}
    report = decide(source, tmp_path / f"sets.{out}", **options)
    labels, expected_f = from_marginals(P, **options)
    found, expected = read_sets(tmp_path / f"sets.{out}", NAMES)
    assert_array_equal(found, labels)
    assert_allclose(expected, expected_f, atol=1e-12 if out == "parquet" else 5.1e-7)
    assert report.rows == 300
    assert_allclose(report.mean_expected_f, expected_f.mean(), rtol=1e-12)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"p.{kind}", f"sets.{out}"]


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_id_columns_are_recognised_or_given(table, tmp_path, kind):
    table.insert(2, "doc_id", [f'row "{i}", of 300' for i in range(300)])
    table.insert(0, "no", np.arange(300) + 0.5)
    source = write(table.drop(columns="no"), tmp_path / f"p.{kind}")
    for options in ({}, {"ids": ["doc_id"]}):
        decide(source, tmp_path / "s.parquet", **options)
        found = pd.read_parquet(tmp_path / "s.parquet")
        assert found["doc_id"].tolist() == table["doc_id"].tolist()
        assert_array_equal(read_sets(tmp_path / "s.parquet", NAMES)[0], from_marginals(P).labels)
    source = write(table, tmp_path / f"q.{kind}")
    with pytest.raises(
        DataError, match=r"column 'no': 1.5 is not a probability: .*\(arguments: ids"
    ):
        decide(source, tmp_path / "t.csv")
    decide(source, tmp_path / "s.jsonl", ids=["no", "doc_id"])
    rows = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert [float(row["no"]) for row in rows[:2]] == [0.5, 1.5]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_blocks_do_not_change_the_result(tmp_path, kind):
    n = 160_000  # more than a block
    proba = RNG.random((n, 8)).round(3)
    counts = []
    source = write(pd.DataFrame(proba, columns=list("abcdefgh")), tmp_path / f"p.{kind}")
    decide(source, tmp_path / "s.parquet", n_jobs=2, progress=counts.append)
    assert len(counts) > 1
    assert counts[-1] == n
    found = pd.read_parquet(tmp_path / "s.parquet")
    labels, expected_f = from_marginals(proba)
    assert_array_equal(found["expected_f"], expected_f)
    assert_array_equal(found["labels"].map(len), labels.sum(axis=1))


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_averages_and_one_label_are_decided_together(table, tmp_path, average):
    source = write(table, tmp_path / "p.csv")
    report = decide(source, tmp_path / "s.csv", average=average, wide=True)
    labels, expected_f = from_marginals(P, average=average)
    assert_array_equal(pd.read_csv(tmp_path / "s.csv"), labels)
    assert_allclose(report.mean_expected_f, np.mean(expected_f), rtol=1e-12)
    assert report.average == average
    one = decide(write(table[["arts"]], tmp_path / "one.csv"), tmp_path / "s.csv", average=average)
    assert one.average == "macro"
    assert_array_equal(
        (pd.read_csv(tmp_path / "s.csv", keep_default_na=False)["labels"] == "arts").astype(int),
        from_marginals(P[:, [2]], average="macro").labels[:, 0],
    )


def test_logits_and_constraints(table, tmp_path):
    with np.errstate(divide="ignore"):
        logits = np.log(P / (1.0 - P))
    source = write(pd.DataFrame(logits, columns=NAMES), tmp_path / "p.parquet")
    options = {"constraints": Constraints(required=["arts"]), "max_labels": 2}
    decide(source, tmp_path / "s.parquet", logits=True, **options)
    expected = from_marginals(P, constraints=Constraints(required=[2]), max_labels=2).labels
    assert_array_equal(read_sets(tmp_path / "s.parquet", NAMES)[0], expected)
    with pytest.raises(DataError, match=r"is not a probability: .*\(arguments: ids, logits\)"):
        decide(source, tmp_path / "t.csv")


def test_decider_of_classes(table, tmp_path):
    classes = table.div(table.sum(axis=1), axis=0)
    y = np.array(NAMES)[np.random.default_rng(0).permuted(P, axis=1).argmax(axis=1)]
    columns = np.sort(NAMES).tolist()
    decider = fgfm.FDecider(average="macro").fit(classes[columns].to_numpy(), y)
    report = decide(
        write(classes, tmp_path / "p.parquet"), tmp_path / "s.parquet", decider=decider
    )
    assert report.average == "macro"
    found = decider.predict(classes[columns].to_numpy())
    sets = pd.read_parquet(tmp_path / "s.parquet")["labels"]
    assert [list(row) for row in sets] == [[name] for name in found]


@pytest.mark.parametrize(
    ("classes", "pos_label"), [(["no", "yes"], "yes"), (["no", "yes"], "no"), ([0, 1], None)]
)
def test_decider_of_two_classes(classes, pos_label, tmp_path):
    p = RNG.random(300) ** 2
    is_true = RNG.random(300) < p
    first = pos_label == classes[0]
    y = np.array(classes)[np.where(is_true, 1 - first, first)]
    decider = fgfm.FDecider(pos_label=pos_label).fit(p, y)
    source = write(pd.DataFrame({"rated": p}), tmp_path / "p.csv")
    decide(source, tmp_path / "s.csv", decider=decider)
    sets = pd.read_csv(tmp_path / "s.csv", keep_default_na=False)["labels"]
    positive = classes[1 - first]
    assert_array_equal(sets == "rated", decider.predict(p) == positive)
    wrong = {str(classes[first]): p, **({} if pos_label else {"b": p})}
    with pytest.raises(DataError, match=f"one column, the probabilities of '{positive}'"):
        decide(write(pd.DataFrame(wrong), tmp_path / "q.csv"), tmp_path / "t.csv", decider=decider)


def test_decider_finds_columns_by_name(table, tmp_path):
    Y = (RNG.random(P.shape) < P).astype(int)
    decider = fgfm.FDecider().fit(table, pd.DataFrame(Y, columns=NAMES))
    shuffled = table[NAMES[::-1]].assign(key=[f"k{i}" for i in range(300)])
    report = decide(write(shuffled, tmp_path / "p.csv"), tmp_path / "s.parquet", decider=decider)
    labels, expected_f = decider.decide(table)
    assert_array_equal(read_sets(tmp_path / "s.parquet", NAMES)[0], labels)
    assert_allclose(report.mean_expected_f, np.mean(expected_f), rtol=1e-12)
    assert pd.read_parquet(tmp_path / "s.parquet")["key"].tolist()[:2] == ["k0", "k1"]
    with pytest.raises(DataError, match="'sports' is not a label of the decider: did you mean"):
        decide(
            write(table.rename(columns={"sport": "sports"}), tmp_path / "q.csv"),
            tmp_path / "t.csv",
            decider=decider,
        )
    table[NAMES[:3]].to_csv(tmp_path / "q.csv", index=False, header=False)
    with pytest.raises(DataError, match="the number of labels is 3"):
        decide(tmp_path / "q.csv", tmp_path / "t.csv", decider=decider, header=False)
    with pytest.raises(ValueError, match=r"beta is 2.0 and decider is given"):
        decide(tmp_path / "p.csv", tmp_path / "t.csv", decider=decider, beta=2.0)
    with pytest.raises(TypeError, match=r"it must be a fitted fgfm.FDecider"):
        decide(tmp_path / "p.csv", tmp_path / "t.csv", decider=fgfm.FDecider())


def test_bad_cells_are_0_with_a_warning(tmp_path):
    rows = ["0.9,0.1"] * 100
    rows[7], rows[9] = "0.9,soon", ",0.1"
    (tmp_path / "p.csv").write_text("a,b\n" + "\n".join(rows) + "\n")
    rule = r"p.csv, row 7, column 'b': 'soon' is not a probability; 1 more .* a probability of 0"
    with pytest.warns(UserWarning, match=rule):
        decide(tmp_path / "p.csv", tmp_path / "s.csv")
    with pytest.raises(DataError, match=r"row 9, column 'a': '' is not a probability"):
        decide(tmp_path / "p.csv", tmp_path / "t.csv", strict=True)
    (tmp_path / "p.csv").write_text("a;b\n" + "0,9;1\n" * 100)
    with pytest.raises(
        DataError, match=r"'0,9' is not a probability, .*\(arguments: decimal, ids"
    ):
        decide(tmp_path / "p.csv", tmp_path / "t.csv")
    decide(tmp_path / "p.csv", tmp_path / "t.csv", decimal=",")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n0.1,0.2\n0.3\n", "row 1: expected 2 columns, got 1"),
        (b"a,b\n0.1,0.2\n0.3,1.5\n", "row 1, column 'b': 1.5 is not a probability"),
        (b"a,b\n0.1,-0.2\n", "row 0, column 'b': -0.2 is not a probability"),
        (b"a,b\n0.1,inf\n", "row 0, column 'b': inf is not a probability"),
        (b"a,b\n0.1,0.2\n\xff,0.3\n", "this is not utf-8 text"),
        (b"a,a\n0.1,0.2\n", "two columns are called 'a'"),
        (b"", "the file is empty"),
    ],
)
def test_invalid_table_raises_with_the_place(tmp_path, content, message):
    (tmp_path / "p.csv").write_bytes(content)
    with pytest.raises(DataError, match="^" + str(tmp_path / "p.csv")) as error:
        decide(tmp_path / "p.csv", tmp_path / "s.csv")
    assert message in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


def test_places_in_later_blocks(tmp_path):
    row = "0.25,0.5\n"
    text = "a,b\n" + row * 600_000
    (tmp_path / "p.csv").write_text(text + "0.5,2.5\n")
    with pytest.raises(DataError, match=r"row 600000, column 'b': 2.5 is not a probability"):
        decide(tmp_path / "p.csv", tmp_path / "s.csv")
    (tmp_path / "p.csv").write_text(text + "0,0\n" + row + "0,0\n")
    with pytest.warns(UserWarning, match=r"of row 600000 are 0, .* \(2 such rows\)") as caught:
        decide(tmp_path / "p.csv", tmp_path / "s.csv", nonempty=True)
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beta": 0.0}, "beta is 0"),
        ({"zero_division": 2.0}, "zero_division is 2"),
        ({"average": "mean"}, "average is 'mean'"),
        ({"ids": ["none"]}, "there is no column 'none'"),
        ({"ids": NAMES}, "there are no labels"),
        ({"format": "xls"}, "format is 'xls'"),
        ({"output_format": "xls"}, "format is 'xls'"),
        ({"delimiter": ",,"}, "delimiter is ',,'"),
        ({"separator": ", "}, "separator is ', ', which occurs in the label 'war, peace'"),
        ({"target": "s.xls"}, "extension '.xls'"),
        ({"target": "p.csv"}, "they must be two files"),
        ({"source": "none.csv"}, "it does not exist"),
        ({"source": "p.npy"}, r"p\.npy: it has arrays of NumPy: load and decide them in Python"),
        ({"source": "p.xmc"}, "it has sparse rows: probabilities must be a table"),
    ],
)
def test_invalid_argument_raises(table, tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    write(table, tmp_path / "p.csv")
    (tmp_path / "p.xmc").write_text("1 2 2\n0 1:1\n")
    with pytest.raises(ValueError, match=message):
        decide(**{"source": "p.csv", "target": "s.csv"} | change)
    assert {path.name for path in tmp_path.iterdir()} == {"p.csv", "p.xmc"}


def test_empty_tables_pipes_and_standard_input(table, tmp_path, monkeypatch):
    (tmp_path / "p.csv").write_text("id,a,b\n")
    assert decide(tmp_path / "p.csv", tmp_path / "s.csv", ids=["id"]).rows == 0
    assert (tmp_path / "s.csv").read_text() == "id,labels,expected_f\n"
    source = write(table, tmp_path / "p.csv")
    decide(source, tmp_path / "s.csv")
    whole = (tmp_path / "s.csv").read_bytes()
    os.mkfifo(tmp_path / "pipe.csv")
    with subprocess.Popen(["cat", tmp_path / "pipe.csv"], stdout=subprocess.PIPE) as reader:
        decide(source, tmp_path / "pipe.csv")
        assert reader.communicate()[0] == whole
    with subprocess.Popen(["cp", source, tmp_path / "pipe.csv"]):
        decide(tmp_path / "pipe.csv", tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == whole
    with source.open() as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert decide("-", tmp_path / "s.csv").rows == 300
    single = pa.table({"a": np.float32([1.000001]), "b": np.float32([0])})
    pq.write_table(single, tmp_path / "p.parquet")  # rounded in single precision
    assert decide(tmp_path / "p.parquet", tmp_path / "s.csv").mean_expected_f == 1.0


FILES = ["0.parquet", "year=2024/0.parquet", "year=2024/month=5/1.pq"]


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "p"
    for k, name in enumerate(FILES):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        frame = pd.DataFrame(np.random.default_rng(k).random((20 + k, 3)), columns=["a", "b", "c"])
        frame.assign(id=np.arange(20 + k) + 100 * k).to_parquet(path / name, index=False)
    (path / "_SUCCESS").touch()
    (path / ".0.parquet").write_text("hidden")
    return path


def sets(path):
    return pd.read_parquet(path, partitioning=None)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_files_of_a_folder_are_decided_as_single_files_are(folder, tmp_path, n_jobs):
    seen = []
    report = decide(folder, tmp_path / "s", n_jobs=n_jobs, progress=seen.append, beta=2.0)
    assert (report.rows, report.kept) == (63, 0)
    assert seen == [20, 41, 63]
    for name in FILES:
        decide(folder / name, tmp_path / "one.parquet", beta=2.0)
        pd.testing.assert_frame_equal(sets(tmp_path / "s" / name), sets(tmp_path / "one.parquet"))
    assert len([p for p in (tmp_path / "s").rglob("*") if p.is_file()]) == len(FILES)


def test_second_run_does_what_is_missing(folder, tmp_path):
    first = decide(folder, tmp_path / "s")
    times = [(tmp_path / "s" / name).stat().st_mtime_ns for name in FILES]
    again = decide(folder, tmp_path / "s")
    assert again[:3] == first[:3]
    assert again.kept == 3
    assert times == [(tmp_path / "s" / name).stat().st_mtime_ns for name in FILES]
    (tmp_path / "s" / FILES[1]).unlink()
    (tmp_path / "s" / FILES[2]).write_bytes(b"PAR1 damaged")
    assert decide(folder, tmp_path / "s").kept == 1
    os.utime(folder / FILES[0], ns=(1, 1))
    assert decide(folder, tmp_path / "s").kept == 2
    for change in ({"beta": 2.0}, {"max_labels": 1}, {"wide": True}):
        assert decide(folder, tmp_path / "s", **change).kept == 0
        assert decide(folder, tmp_path / "s", **change).kept == 3


def test_failed_runs_are_resumed(folder, tmp_path):
    right = sets(folder / FILES[2])
    right.assign(b=1.5).to_parquet(folder / FILES[2], index=False)
    with pytest.raises(DataError, match=r"1\.pq, row 0, column 'b': 1\.5 is not a probability"):
        decide(folder, tmp_path / "s", n_jobs=2)
    assert not (tmp_path / "s" / FILES[2]).exists()
    right.to_parquet(folder / FILES[2], index=False)
    assert decide(folder, tmp_path / "s").kept == 2


def test_invalid_folders_raise(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "old.parquet").write_bytes(b"PAR1")
    for where, options, message in (
        ((folder, folder), {}, "they must be two files"),
        ((folder, folder / "s"), {}, "neither of both within the other"),
        ((folder, tmp_path), {}, "neither of both within the other"),
        ((folder, tmp_path / "file"), {}, "target must be another folder"),
        ((folder, tmp_path / "s"), {"average": "macro"}, "decides all rows together"),
        ((folder, tmp_path / "old"), {}, r"it has old\.parquet, which source does not"),
        ((tmp_path / "empty", tmp_path / "s"), {}, "the folder has no Parquet file"),
    ):
        with pytest.raises(ValueError, match=message):
            decide(*where, **options)
    assert not (tmp_path / "s").exists()


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="a file of Linux")
def test_memory_does_not_grow_with_rows(tmp_path):
    script = (
        "import sys; from fgfm.io import decide; decide(sys.argv[1], sys.argv[2]);"
        "print(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0])"
    )
    peaks = []
    for n in (800_000, 2_400_000):  # pyarrow reads 32 MB ahead
        row = b"0.25,0.5,0.125,0.75\n"
        (tmp_path / "p.csv").write_bytes(b"a,b,c,d\n" + row * n)
        command = [sys.executable, "-c", script, tmp_path / "p.csv", tmp_path / "s.parquet"]
        peaks.append(int(subprocess.run(command, capture_output=True, check=True).stdout))
    assert peaks[1] - peaks[0] < 60_000  # KiB; the table alone would be 51 MB of numbers


@pytest.mark.parametrize(
    ("cells", "hint"), [(["1", "2"], False), (["-2.5", "0.5"], True)], ids=["codes", "logits"]
)
def test_only_numbers_that_may_be_logits_are_called_so(tmp_path, cells, hint):
    path = tmp_path / "p.csv"
    path.write_text("art,doc\n" + "".join(f"0.5,{cell}\n" for cell in cells))
    with pytest.raises(DataError, match="must be an id column") as caught:
        decide(path, tmp_path / "sets.csv")
    assert ("sigmoid" in str(caught.value)) == hint
