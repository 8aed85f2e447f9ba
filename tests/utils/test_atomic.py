"""Atomic writes: complete files or none, whatever happens in between."""

from __future__ import annotations

import errno
import os
import stat
import threading

import pytest

from fgfm._utils.atomic import atomic_file


def test_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with atomic_file(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_error_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write():
        with atomic_file(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name == "nt", reason="modes and links of POSIX")
def test_mode_and_link_are_kept(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    with atomic_file(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    before = os.umask(0o027)
    try:
        with atomic_file(tmp_path / "fresh"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_pipe_is_written_to_directly(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    received = []
    reader = threading.Thread(target=lambda: received.append(path.read_bytes()))
    reader.start()
    with atomic_file(path) as file:
        file.write(b"through")
    reader.join()
    assert received == [b"through"]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_missing_folder_and_folder_raise(tmp_path):
    missing = tmp_path / "missing" / "file"
    with pytest.raises(FileNotFoundError, match="no such folder"), atomic_file(missing):
        pass
    with pytest.raises(IsADirectoryError, match="it is a folder"), atomic_file(tmp_path):
        pass


def test_two_writers_of_one_file(tmp_path):
    path = tmp_path / "file"
    with atomic_file(path) as first:
        with atomic_file(path) as second:
            second.write(b"second")
        assert path.read_bytes() == b"second"
        first.write(b"first")
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(os.name == "nt" or os.getuid() == 0, reason="modes of POSIX")
def test_folder_that_cannot_be_listed(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o300)
    try:
        with atomic_file(folder / "file") as file:
            file.write(b"whole")
    finally:
        folder.chmod(0o700)
    assert (folder / "file").read_bytes() == b"whole"


def test_errors_name_the_file(tmp_path):
    def write(path, error):
        with atomic_file(path):
            raise error

    path = tmp_path / "file"
    with pytest.raises(OSError, match="No space") as caught:
        write(path, OSError(errno.ENOSPC, "No space left on device"))
    assert caught.value.filename == str(path)
    with pytest.raises(OSError, match="No space") as caught:
        write(path, OSError(errno.ENOSPC, "No space left on device", "other"))
    assert caught.value.filename == "other"
    long = tmp_path / ("x" * 250)  # the hidden name is longer
    with pytest.raises(OSError, match="too long") as caught:
        write(long, ValueError())
    assert caught.value.filename == str(long)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_full_device_is_named():
    with pytest.raises(OSError, match="No space") as caught:  # noqa: SIM117
        with atomic_file("/dev/full") as file:
            file.write(b"x" * 100_000)
    assert caught.value.filename == "/dev/full"
