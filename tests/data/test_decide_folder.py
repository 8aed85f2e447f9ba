"""Label sets from folders of Parquet files of probabilities."""

from __future__ import annotations

import fcntl
import os

import numpy as np
import pandas as pd
import pytest

from fgfm._utils import atomic
from fgfm.data import DataError, _decide_folder, decide

NAMES = ["a", "b", "c"]
FILES = ["0.parquet", "year=2024/0.parquet", "year=2024/month=5/1.pq"]


@pytest.fixture
def source(tmp_path):
    rng = np.random.default_rng(0)
    folder = tmp_path / "p"
    for k, name in enumerate(FILES):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        frame = pd.DataFrame(rng.random((20 + k, 3)), columns=NAMES)
        frame.insert(0, "id", np.arange(len(frame)) + 100 * k)
        frame.to_parquet(path, index=False)
    (folder / "_SUCCESS").touch()
    (folder / ".0.parquet").write_text("hidden")
    (folder / "_metadata.parquet").write_text("of others")
    return folder


def modification_times(folder):
    return {name: (folder / name).stat().st_mtime_ns for name in FILES}


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("wide", [False, True])
def test_files_are_decided_as_single_files_are(source, tmp_path, n_jobs, wide):
    seen = []
    options = {"ids": ["id"], "beta": 2.0, "wide": wide}
    report = decide(source, tmp_path / "s", n_jobs=n_jobs, progress=seen.append, **options)
    assert report.rows == 63
    assert report.kept == 0
    assert seen == [20, 41, 63]
    expected = []
    for name in FILES:
        decide(source / name, tmp_path / "one.parquet", **options)
        one = pd.read_parquet(tmp_path / "one.parquet")
        pd.testing.assert_frame_equal(
            pd.read_parquet(tmp_path / "s" / name, partitioning=None), one
        )
        expected.append(one["expected_f"])
    assert report.mean_expected_f == pytest.approx(np.concatenate(expected).mean(), abs=1e-14)
    written = [p for p in (tmp_path / "s").rglob("*") if p.is_file()]
    assert len(written) == len(FILES)


def test_files_that_are_up_to_date_are_kept(source, tmp_path):
    first = decide(source, tmp_path / "s", ids=["id"])
    before = modification_times(tmp_path / "s")
    again = decide(source, tmp_path / "s", ids=["id"])
    assert modification_times(tmp_path / "s") == before
    assert again.kept == 3
    assert again[:2] == first[:2]
    (tmp_path / "s" / FILES[1]).unlink()
    (tmp_path / "s" / FILES[2]).write_bytes(b"PAR1 damaged")
    assert decide(source, tmp_path / "s", ids=["id"]).kept == 1
    assert modification_times(tmp_path / "s")[FILES[0]] == before[FILES[0]]


@pytest.mark.parametrize(
    "change", [{"beta": 2.0}, {"zero_division": 0.0}, {"nonempty": True}, {"wide": True}]
)
def test_files_of_other_settings_are_replaced(source, tmp_path, change):
    decide(source, tmp_path / "s", ids=["id"])
    assert decide(source, tmp_path / "s", ids=["id"], **change).kept == 0
    decide(source, tmp_path / "t", ids=["id"], **change)
    for name in FILES:
        pd.testing.assert_frame_equal(
            pd.read_parquet(tmp_path / "s" / name, partitioning=None),
            pd.read_parquet(tmp_path / "t" / name, partitioning=None),
        )


def test_files_of_another_version_are_replaced(source, tmp_path, monkeypatch):
    decide(source, tmp_path / "s", ids=["id"])
    monkeypatch.setattr(_decide_folder, "version", lambda name: "0.0.0")
    assert decide(source, tmp_path / "s", ids=["id"]).kept == 0
    assert decide(source, tmp_path / "s", ids=["id"]).kept == 3


def test_files_of_a_changed_source_are_replaced(source, tmp_path):
    decide(source, tmp_path / "s", ids=["id"])
    changed = pd.read_parquet(source / FILES[0])
    changed["a"] = 1.0 - changed["a"]
    changed.to_parquet(source / FILES[0], index=False)
    os.utime(source / FILES[0], ns=(1, 1))  # independent of the resolution of the clock
    assert decide(source, tmp_path / "s", ids=["id"]).kept == 2
    decide(source / FILES[0], tmp_path / "one.parquet", ids=["id"])
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "s" / FILES[0]), pd.read_parquet(tmp_path / "one.parquet")
    )


def test_failed_run_is_resumed(source, tmp_path):
    wrong = pd.read_parquet(source / FILES[2], partitioning=None)
    right = wrong.copy()
    wrong.loc[7, "b"] = 1.5
    wrong.to_parquet(source / FILES[2], index=False)
    with pytest.raises(DataError, match=r"1\.pq, row 7, column 'b': 1\.5 is not a probability"):
        decide(source, tmp_path / "s", ids=["id"])
    assert not (tmp_path / "s" / FILES[2]).exists()
    assert not list((tmp_path / "s").rglob(".*.part"))
    right.to_parquet(source / FILES[2], index=False)
    assert decide(source, tmp_path / "s", ids=["id"]).kept == 2


def test_partial_files_of_killed_runs_are_removed(source, tmp_path):
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


def test_files_that_are_being_written_are_not_removed(tmp_path, monkeypatch):
    with atomic.atomic_file(tmp_path / "a") as file:
        with atomic.atomic_file(tmp_path / "a") as other:
            other.write(b"other")
        file.write(b"whole")
    assert (tmp_path / "a").read_bytes() == b"whole"
    lock, taken = atomic._lock, []

    def lose_once(handle, *, wait):
        if wait and not taken:  # another process removes it before it is locked
            taken.append(atomic._remove_leftovers(tmp_path / "b"))
        return lock(handle, wait=wait)

    monkeypatch.setattr(atomic, "_lock", lose_once)
    with atomic.atomic_file(tmp_path / "b") as file:
        file.write(b"whole")
    assert taken
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b"}


def test_contradictions_are_reported_for_new_and_kept_files(source, tmp_path):
    frame = pd.read_parquet(source / FILES[1], partitioning=None)
    frame.loc[[3, 5], NAMES] = 0.0
    frame.to_parquet(source / FILES[1], index=False)
    reports = []
    for _ in range(2):
        with pytest.warns(UserWarning, match=r"0\.parquet, row 3: .*\(2 such rows\)"):
            reports.append(decide(source, tmp_path / "s", ids=["id"], nonempty=True))
    assert reports[0][:2] == reports[1][:2]
    assert reports[1].kept == 3


def test_invalid_folders_raise(source, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for where, options, message in (
        ((source, source), {}, "they must be two files"),
        ((source, source / "s"), {}, "neither folder may be within the other"),
        ((source, tmp_path), {}, "neither folder may be within the other"),
        ((source, tmp_path / "s.csv"), {}, "target must be a folder too"),
        ((source, tmp_path / "file"), {}, "target must be a folder too"),
        ((source, "-"), {}, "target must be a folder too"),
        ((source, tmp_path / "s"), {"format": "csv"}, "format is 'csv'"),
        ((source, tmp_path / "s"), {"output_format": "jsonl"}, "output_format is 'jsonl'"),
        ((tmp_path / "empty", tmp_path / "s"), {}, "the folder has no Parquet file"),
    ):
        with pytest.raises(ValueError, match=message):
            decide(*where, ids=["id"], **options)
    assert not (tmp_path / "s").exists()


def test_files_must_have_the_same_columns(source, tmp_path):
    frame = pd.read_parquet(source / FILES[1], partitioning=None)
    frame.rename(columns={"c": "d"}).to_parquet(source / FILES[1], index=False)
    with pytest.raises(DataError, match="there is column 'd', unlike in"):
        decide(source, tmp_path / "s", ids=["id"])
    frame[["id", "b", "a", "c"]].to_parquet(source / FILES[1], index=False)
    with pytest.raises(DataError, match="another order"):
        decide(source, tmp_path / "s", ids=["id"])
    (source / FILES[1]).write_bytes(b"PAR1 nonsense")
    with pytest.raises(DataError, match="this is not a Parquet file"):
        decide(source, tmp_path / "s", ids=["id"])
    assert not (tmp_path / "s").exists()


def test_other_files_in_the_target_raise(source, tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "old.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"it has old\.parquet, which source does not"):
        decide(source, tmp_path / "s", ids=["id"])


def _write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows, columns=["a", "b"]).to_parquet(path)


def test_link_to_a_source_file_raises(tmp_path):
    _write(tmp_path / "s" / "0.parquet", [[0.2, 0.7]])
    before = (tmp_path / "s" / "0.parquet").read_bytes()
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "0.parquet").symlink_to(tmp_path / "s" / "0.parquet")
    with pytest.raises(ValueError, match=r"target has 0\.parquet, a link to"):
        decide(tmp_path / "s", tmp_path / "t")
    assert (tmp_path / "s" / "0.parquet").read_bytes() == before


def test_links_to_folders_are_followed_except_circles(tmp_path):
    _write(tmp_path / "s" / "0.parquet", [[0.2, 0.7]])
    _write(tmp_path / "elsewhere" / "1.parquet", [[0.9, 0.7], [0.1, 0.8]])
    (tmp_path / "s" / "k=9").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "s" / "again").symlink_to(tmp_path / "s")
    assert decide(tmp_path / "s", tmp_path / "t").rows == 3
    (tmp_path / "s" / "2.parquet").symlink_to(tmp_path / "nowhere.parquet")
    with pytest.raises(ValueError, match="it is a link to a file that does not exist"):
        decide(tmp_path / "s", tmp_path / "t")


def test_other_files_are_finished_before_an_error_is_raised(tmp_path):
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
