"""Folders of Parquet files: `fgfm.data.decide` part by part."""

from __future__ import annotations

import fcntl
import json
import os

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from fgfm._utils import atomic as _atomic
from fgfm.cli._app import app
from fgfm.data import DataError, _decide_parts, decide

NAMES = ["a", "b", "c"]
PARTS = ["0.parquet", "year=2024/0.parquet", "year=2024/month=5/1.pq"]


@pytest.fixture
def source(tmp_path):
    rng = np.random.default_rng(0)
    folder = tmp_path / "p"
    for k, name in enumerate(PARTS):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        frame = pd.DataFrame(rng.random((20 + k, 3)), columns=NAMES)
        frame.insert(0, "id", np.arange(len(frame)) + 100 * k)
        frame.to_parquet(path, index=False)
    (folder / "_SUCCESS").touch()
    (folder / ".0.parquet").write_text("hidden")
    (folder / "_metadata.parquet").write_text("of others")
    return folder


def times(folder):
    return {name: (folder / name).stat().st_mtime_ns for name in PARTS}


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("wide", [False, True])
def test_parts_are_what_their_files_are(source, tmp_path, n_jobs, wide):
    seen = []
    how = {"ids": ["id"], "beta": 2.0, "wide": wide}
    report = decide(source, tmp_path / "s", n_jobs=n_jobs, progress=seen.append, **how)
    assert report.rows == 63
    assert report.kept == 0
    assert seen == [20, 41, 63]
    expected = []
    for name in PARTS:
        decide(source / name, tmp_path / "one.parquet", **how)
        one = pd.read_parquet(tmp_path / "one.parquet")
        pd.testing.assert_frame_equal(
            pd.read_parquet(tmp_path / "s" / name, partitioning=None), one
        )
        expected.append(one["expected_f"])
    assert report.mean_expected_f == pytest.approx(np.concatenate(expected).mean(), abs=1e-14)
    written = [p for p in (tmp_path / "s").rglob("*") if p.is_file()]
    assert len(written) == len(PARTS)


def test_parts_that_are_there_are_kept(source, tmp_path):
    first = decide(source, tmp_path / "s", ids=["id"])
    before = times(tmp_path / "s")
    again = decide(source, tmp_path / "s", ids=["id"])
    assert times(tmp_path / "s") == before
    assert again.kept == 3
    assert again[:2] == first[:2]
    (tmp_path / "s" / PARTS[1]).unlink()
    (tmp_path / "s" / PARTS[2]).write_bytes(b"PAR1 damaged")
    assert decide(source, tmp_path / "s", ids=["id"]).kept == 1
    assert times(tmp_path / "s")[PARTS[0]] == before[PARTS[0]]


@pytest.mark.parametrize(
    "change", [{"beta": 2.0}, {"zero_division": 0.0}, {"nonempty": True}, {"wide": True}]
)
def test_other_settings_make_parts_anew(source, tmp_path, change):
    decide(source, tmp_path / "s", ids=["id"])
    assert decide(source, tmp_path / "s", ids=["id"], **change).kept == 0
    decide(source, tmp_path / "t", ids=["id"], **change)
    for name in PARTS:
        pd.testing.assert_frame_equal(
            pd.read_parquet(tmp_path / "s" / name, partitioning=None),
            pd.read_parquet(tmp_path / "t" / name, partitioning=None),
        )


def test_another_version_makes_parts_anew(source, tmp_path, monkeypatch):
    decide(source, tmp_path / "s", ids=["id"])
    monkeypatch.setattr(_decide_parts, "version", lambda name: "0.0.0")
    assert decide(source, tmp_path / "s", ids=["id"]).kept == 0
    assert decide(source, tmp_path / "s", ids=["id"]).kept == 3


def test_another_file_makes_its_part_anew(source, tmp_path):
    decide(source, tmp_path / "s", ids=["id"])
    changed = pd.read_parquet(source / PARTS[0])
    changed["a"] = 1.0 - changed["a"]
    changed.to_parquet(source / PARTS[0], index=False)
    os.utime(source / PARTS[0], ns=(1, 1))  # however coarse the clock of the files is
    assert decide(source, tmp_path / "s", ids=["id"]).kept == 2
    decide(source / PARTS[0], tmp_path / "one.parquet", ids=["id"])
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "s" / PARTS[0]), pd.read_parquet(tmp_path / "one.parquet")
    )


def test_a_run_that_fails_goes_on_where_it_was(source, tmp_path):
    wrong = pd.read_parquet(source / PARTS[2], partitioning=None)
    right = wrong.copy()
    wrong.loc[7, "b"] = 1.5
    wrong.to_parquet(source / PARTS[2], index=False)
    with pytest.raises(DataError, match=r"1\.pq, row 7, column 'b': 1\.5 is no probability"):
        decide(source, tmp_path / "s", ids=["id"])
    assert not (tmp_path / "s" / PARTS[2]).exists()
    assert not list((tmp_path / "s").rglob(".*.part"))
    right.to_parquet(source / PARTS[2], index=False)
    assert decide(source, tmp_path / "s", ids=["id"]).kept == 2


def test_what_a_killed_run_left_is_removed(source, tmp_path):
    target = tmp_path / "s"
    inner = target / "year=2024"
    inner.mkdir(parents=True)
    left = [target / ".0.parquet.abcd_123.part", inner / ".0.parquet.00000000.part"]
    others = [
        target / ".0.parquet.part",
        target / ".1.parquet.abcd_123.part",
        target / ".0.parquet.ABCD-123.part",
        target / "0.parquet.abcd_123.part",
        inner / ".0.parquet.livelive.part",
    ]
    for path in [*left, *others]:
        path.write_text("half a file")
    (target / ".0.parquet.folder01.part").mkdir()
    (target / ".0.parquet.linklink.part").symlink_to(others[0])
    with others[-1].open("r+b") as live:
        fcntl.flock(live, fcntl.LOCK_EX)
        decide(source, target, ids=["id"])
    assert not any(path.exists() for path in left)
    assert {path.read_text() for path in others} == {"half a file"}
    assert (target / ".0.parquet.folder01.part").is_dir()
    assert (target / ".0.parquet.linklink.part").is_symlink()


def test_what_is_being_written_is_no_leftover(tmp_path, monkeypatch):
    with _atomic.atomic_file(tmp_path / "a") as file:
        _atomic.remove_leftovers(tmp_path, ["a"])
        file.write(b"whole")
    assert (tmp_path / "a").read_bytes() == b"whole"
    lock, taken = _atomic._lock, []

    def lose_once(handle, *, wait):
        if wait and not taken:  # another run is quicker to lock it, and removes it
            taken.append(_atomic.remove_leftovers(tmp_path, ["b"]))
        return lock(handle, wait=wait)

    monkeypatch.setattr(_atomic, "_lock", lose_once)
    with _atomic.atomic_file(tmp_path / "b") as file:
        file.write(b"whole")
    assert taken
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def test_contradictions_are_told_whether_made_or_kept(source, tmp_path):
    frame = pd.read_parquet(source / PARTS[1], partitioning=None)
    frame.loc[[3, 5], NAMES] = 0.0
    frame.to_parquet(source / PARTS[1], index=False)
    reports = []
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"0\.parquet, row 3, .*\(2 such rows\)"):
            reports.append(decide(source, tmp_path / "s", ids=["id"], nonempty=True))
    assert reports[0][:2] == reports[1][:2]
    assert reports[1].kept == 3


def test_wrong_folders_are_refused(source, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for where, how, message in (
        ((source, source), {}, "they must be two files"),
        ((source, source / "s"), {}, "neither within the other"),
        ((source, tmp_path), {}, "neither within the other"),
        ((source, tmp_path / "s.csv"), {}, "target must be a folder too"),
        ((source, tmp_path / "file"), {}, "target must be a folder too"),
        ((source, "-"), {}, "target must be a folder too"),
        ((source, tmp_path / "s"), {"format": "csv"}, "format is 'csv'"),
        ((source, tmp_path / "s"), {"output_format": "jsonl"}, "output_format is 'jsonl'"),
        ((tmp_path / "empty", tmp_path / "s"), {}, "there is no Parquet file"),
    ):
        with pytest.raises(ValueError, match=message):
            decide(*where, ids=["id"], **how)
    assert not (tmp_path / "s").exists()


def test_parts_must_have_the_same_columns(source, tmp_path):
    frame = pd.read_parquet(source / PARTS[1], partitioning=None)
    frame.rename(columns={"c": "d"}).to_parquet(source / PARTS[1], index=False)
    with pytest.raises(DataError, match="there is column 'd', unlike in"):
        decide(source, tmp_path / "s", ids=["id"])
    frame[["id", "b", "a", "c"]].to_parquet(source / PARTS[1], index=False)
    with pytest.raises(DataError, match="another order"):
        decide(source, tmp_path / "s", ids=["id"])
    (source / PARTS[1]).write_bytes(b"PAR1 nonsense")
    with pytest.raises(DataError, match="it is no Parquet file"):
        decide(source, tmp_path / "s", ids=["id"])
    assert not (tmp_path / "s").exists()


def test_what_else_is_in_the_target_is_not_mixed_in(source, tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "old.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"it holds old\.parquet, which source does not"):
        decide(source, tmp_path / "s", ids=["id"])


def test_program(source, tmp_path):
    command = ["decide", str(source), "--ids", "id", "-o", str(tmp_path / "s")]
    done = CliRunner().invoke(app, [*command, "--json"])
    assert done.exit_code == 0
    told = json.loads(done.stderr)
    assert told["rows"] == 63
    assert told["kept"] == 0
    again = CliRunner().invoke(app, [*command, "--stats"])
    assert "3 files were there already" in again.stderr


def _write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows, columns=["a", "b"]).to_parquet(path)


def test_a_link_does_not_lead_over_a_source(tmp_path):
    _write(tmp_path / "s" / "0.parquet", [[0.2, 0.7]])
    before = (tmp_path / "s" / "0.parquet").read_bytes()
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "0.parquet").symlink_to(tmp_path / "s" / "0.parquet")
    with pytest.raises(ValueError, match=r"target has 0\.parquet, which leads to"):
        decide(tmp_path / "s", tmp_path / "t")
    assert (tmp_path / "s" / "0.parquet").read_bytes() == before


def test_linked_folders_are_followed_and_circles_left(tmp_path):
    _write(tmp_path / "s" / "0.parquet", [[0.2, 0.7]])
    _write(tmp_path / "elsewhere" / "1.parquet", [[0.9, 0.7], [0.1, 0.8]])
    (tmp_path / "s" / "k=9").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "s" / "again").symlink_to(tmp_path / "s")
    assert decide(tmp_path / "s", tmp_path / "t").rows == 3
    (tmp_path / "s" / "2.parquet").symlink_to(tmp_path / "nowhere.parquet")
    with pytest.raises(ValueError, match="it is a link that leads nowhere"):
        decide(tmp_path / "s", tmp_path / "t")


def test_other_parts_are_finished_before_an_error_is_told(tmp_path):
    for k in range(4):
        _write(tmp_path / "s" / f"{k}.parquet", [[0.2, 7.0 if k == 1 else 0.7]])
    with pytest.raises(ValueError, match=r"1\.parquet"):
        decide(tmp_path / "s", tmp_path / "t", n_jobs=3)
    assert sorted(p.name for p in (tmp_path / "t").iterdir()) == [
        "0.parquet",
        "2.parquet",
        "3.parquet",
    ]
    with pytest.raises(ValueError, match="n_jobs is 0"):
        decide(tmp_path / "s", tmp_path / "t", n_jobs=0)
