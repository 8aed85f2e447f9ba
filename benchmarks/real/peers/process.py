"""Run another package in a process of its own environment, and validate its result."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
from scipy import sparse

from benchmarks.real.peers.environment import PeerError, environment_variables, read_log
from benchmarks.real.peers.registry import Peer

__all__ = ["PeerLimit", "PeerRun", "run_peer"]

_RUNNER = Path(__file__).parent / "scripts" / "run_peer.py"
_ROUNDING = 1e-6  # some packages compute in single precision


class PeerLimit(PeerError, TimeoutError):  # noqa: N818
    """Another package exceeded the time limit and was stopped."""


class PeerRun(NamedTuple):
    """The result of another package on a split."""

    labels: dict[str, npt.NDArray[np.int8]]
    expected_f: dict[str, npt.NDArray[np.float64] | None]
    proba: Any
    fit_s: float
    predict_s: float
    peak_mib: float


def run_peer(
    peer: Peer,
    python: str | os.PathLike[str],
    X_train: Any,
    Y_train: npt.ArrayLike,
    X_test: Any,
    *,
    seed: int = 0,
    limit: float | None = None,
) -> PeerRun:
    """Fit another package to training rows and return its decisions for test rows."""
    labels = np.asarray(Y_train, dtype=np.int8)
    with tempfile.TemporaryDirectory(prefix="fgfm-peer-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        split, result, log = folder / "split.npz", folder / "result.npz", folder / "log.txt"
        np.savez(split, Y_train=labels, **_arrays("X_train", X_train), **_arrays("X_test", X_test))
        command = [
            os.fspath(python),
            *map(str, (_RUNNER, peer.script.absolute(), split, result, seed)),
        ]
        with log.open("w", encoding="utf-8") as errors:
            code = _run(command, folder, errors, limit)
        if code is None:
            raise PeerLimit(f"{peer.name} exceeded the limit of {limit:g} seconds")
        if code != 0:
            raise PeerError(f"{peer.name} failed: {_failure(code, log)}")
        return _read(peer, result, (np.shape(X_test)[0], labels.shape[1]))


def _arrays(name: str, X: Any) -> dict[str, Any]:
    """Return the arrays of a matrix for an .npz file."""
    if not sparse.issparse(X):
        return {name: np.asarray(X, dtype=np.float64)}
    X = sparse.csr_array(X)
    return {
        f"{name}/data": X.data.astype(np.float64),
        f"{name}/indices": X.indices,
        f"{name}/indptr": X.indptr,
        f"{name}/shape": np.array(X.shape),
    }


def _run(command: list[str], folder: Path, errors: Any, limit: float | None) -> int | None:
    """Run a command and return its exit code, or None if it exceeded the limit."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment_variables(),
        stdin=subprocess.PIPE,  # closed when this process ends in any way: the child then exits
        stdout=subprocess.DEVNULL,
        stderr=errors,
        start_new_session=True,  # a process group of its own, to be killed together
    )
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.returncode is None:
            _kill(process)
        if process.stdin is not None:
            process.stdin.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all that it started."""
    if os.name == "nt":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _failure(code: int, log: Path) -> str:
    """Return the signal that killed a process, or the last line of its output."""
    lines = read_log(log)
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    return lines[-1] if lines else f"exit code {code} without output"


def _read(peer: Peer, result: Path, shape: tuple[int, int]) -> PeerRun:
    """Read and validate the result of a script."""
    try:
        with np.load(result, allow_pickle=False) as stored:
            found = dict(stored)
    except (OSError, ValueError, BadZipFile) as error:
        raise PeerError(f"{peer.name} returned no readable result: {error}") from error
    rules = tuple(name.removeprefix("labels/") for name in found if name.startswith("labels/"))
    if set(rules) != set(peer.rules):
        raise PeerError(
            f"{peer.name} returned label sets by the rules {rules}: they must be {peer.rules}"
        )
    expected_f = {rule: found.get(f"expected_f/{rule}") for rule in peer.rules}
    for rule in peer.rules:
        name = f"label sets of {peer.name} by the rule {rule}"
        labels = found[f"labels/{rule}"]
        _check_shape(name, labels, shape)
        if not np.isin(labels, (0, 1)).all():
            raise PeerError(f"{name} contain {np.unique(labels)[:5]}: they must be 0 and 1")
        if expected_f[rule] is not None:
            name = f"expected F-measures of {peer.name} by the rule {rule}"
            _check_shape(name, expected_f[rule], shape[:1])
            expected_f[rule] = _check_range(name, expected_f[rule])
    return PeerRun(
        labels={rule: found[f"labels/{rule}"].astype(np.int8) for rule in peer.rules},
        expected_f=expected_f,
        proba=_read_proba(peer, found, shape),
        fit_s=float(found["fit_s"]),
        predict_s=float(found["predict_s"]),
        peak_mib=float(found["peak_mib"]),
    )


def _read_proba(peer: Peer, found: dict[str, Any], shape: tuple[int, int]) -> Any:
    name = f"probabilities of {peer.name}"
    if "proba" in found:
        _check_shape(name, found["proba"], shape)
        return _check_range(name, found["proba"])
    if "proba/data" not in found:
        return None
    values = _check_range(name, found["proba/data"])
    proba = sparse.csr_array(
        (values, found["proba/indices"], found["proba/indptr"]), shape=tuple(found["proba/shape"])
    )
    _check_shape(name, proba, shape)
    return proba


def _check_shape(name: str, values: Any, shape: tuple[int, ...]) -> None:
    if values.shape != shape:
        raise PeerError(f"{name} have the shape {values.shape}: it must be {shape}")


def _check_range(name: str, values: Any) -> npt.NDArray[np.float64]:
    """Return values clipped to [0, 1]; raise if they are outside by more than rounding."""
    array: npt.NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    wrong = array[~((array >= -_ROUNDING) & (array <= 1.0 + _ROUNDING))]
    if wrong.size:
        raise PeerError(f"{name} contain {wrong[0]}: they must lie in [0, 1]")
    return array.clip(0.0, 1.0)
