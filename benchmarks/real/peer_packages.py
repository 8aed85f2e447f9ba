"""Other packages that decide for label sets, each run in an environment of its own.

Their pins exclude each other's libraries, and ours. So a peer is a list of pinned requirements,
installed by `prepare`, and a script, which `run_peer` gives a split and asks for label sets. Every
peer runs on one core. The scripts are in the folder ``peers``; its ``child.py`` says what they
offer.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
from scipy import sparse

__all__ = ["PEERS", "Peer", "PeerError", "PeerLimit", "PeerRun", "prepare", "run_peer"]

_SCRIPTS = Path(__file__).parent / "peers"
_MARKER = "installed.txt"
_LONGEST_LINE = 300
_ROUNDING = 1e-6  # peers compute in single precision too
_THREADS = (
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


class PeerError(RuntimeError):
    """A peer cannot be installed, or gave no answer that can be used."""


class PeerLimit(PeerError, TimeoutError):  # noqa: N818
    """A peer was stopped: it took longer than it may."""


class Peer(NamedTuple):
    """A package to compare with, and how.

    Attributes
    ----------
    name : str
        A short name, for files and tables.
    title : str
        What it is, in a line.
    environment : str
        The name of the environment; peers of one package share it.
    requirements : tuple of str
        What pip installs.
    script : Path
        What the environment's Python runs.
    rules : tuple of str
        The names of the label sets that it gives.
    url : str
        Where the package is.
    citation : str
        What it implements.
    """

    name: str
    title: str
    environment: str
    requirements: tuple[str, ...]
    script: Path
    rules: tuple[str, ...]
    url: str
    citation: str


class PeerRun(NamedTuple):
    """What a peer made of a split.

    Attributes
    ----------
    labels : dict of str to ndarray of int8, shape (n, m)
        The label sets of the test rows, by rule.
    expected_f : dict of str to (ndarray of float64, shape (n,), or None)
        The F-measure that the peer expects of each row, by rule, where it says so.
    proba : ndarray or CSR array of float64, shape (n, m), or None
        The marginal probabilities of the test rows, from a peer that gives them.
    fit_s, predict_s : float
        Seconds; `predict_s` is for all rules together.
    peak_mib : float
        The peak of its memory, its libraries and the data among it; NaN if unknown.
    """

    labels: dict[str, npt.NDArray[np.int8]]
    expected_f: dict[str, npt.NDArray[np.float64] | None]
    proba: Any
    fit_s: float
    predict_s: float
    peak_mib: float


_MULTILEARN = (
    "scikit-multilearn-ng==0.0.8",
    "numpy==2.4.6",
    "scikit-learn==1.9.1",
    "scipy==1.17.1",
)

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(
            name="f1-maximizer",
            title="example-wise-f1-maximizer, logistic regression",
            environment="f1-maximizer",
            requirements=(
                "example-wise-f1-maximizer==0.1.5",
                "numpy==1.24.4",
                "scikit-learn==1.2.2",
                "scipy==1.10.1",
            ),
            script=_SCRIPTS / "f1_maximizer.py",
            rules=("gfm",),
            url="https://pypi.org/project/example-wise-f1-maximizer/",
            citation="Zhang, Ramaswamy and Agarwal (2020), Convex Calibrated Surrogates for the "
            "Multi-Label F-Measure, ICML",
        ),
        Peer(
            name="dacaf",
            title="dacaf-mlc, probabilistic classifier chain of logistic regressions",
            environment="dacaf",
            requirements=(
                "dacaf-mlc==1.3.0",
                "numpy==1.26.4",
                "pandas==3.0.6",
                "scikit-learn==1.9.1",
                "scipy==1.17.1",
            ),
            script=_SCRIPTS / "dacaf.py",
            rules=("gfm",),
            url="https://pypi.org/project/dacaf-mlc/",
            citation="Nguyen, Hoang, Hoang and Huynh (2026), Probabilistic multi-label "
            "classification via a divide-and-conquer and fusion approach, Information Fusion, "
            "doi:10.1016/j.inffus.2026.104517",
        ),
        Peer(
            name="boomer",
            title="mlrl-boomer, gradient boosted rules",
            environment="boomer",
            requirements=(
                "mlrl-boomer==0.12.3",
                "numpy==2.3.5",
                "scikit-learn==1.7.2",
                "scipy==1.16.3",
            ),
            script=_SCRIPTS / "boomer.py",
            rules=("gfm", "threshold"),
            url="https://pypi.org/project/mlrl-boomer/",
            citation="Rapp, Loza Mencia, Fuernkranz, Nguyen and Huellermeier (2020), Learning "
            "Gradient Boosted Multi-label Classification Rules, ECML PKDD, "
            "doi:10.1007/978-3-030-67664-3_8",
        ),
        Peer(
            name="mlknn",
            title="scikit-multilearn-ng, MLkNN",
            environment="multilearn",
            requirements=_MULTILEARN,
            script=_SCRIPTS / "mlknn.py",
            rules=("mlknn",),
            url="https://pypi.org/project/scikit-multilearn-ng/",
            citation="Zhang and Zhou (2007), ML-KNN: A lazy learning approach to multi-label "
            "learning, Pattern Recognition 40, doi:10.1016/j.patcog.2006.12.019",
        ),
        Peer(
            name="rakel",
            title="scikit-multilearn-ng, RAkEL of logistic regressions",
            environment="multilearn",
            requirements=_MULTILEARN,
            script=_SCRIPTS / "rakel.py",
            rules=("rakel",),
            url="https://pypi.org/project/scikit-multilearn-ng/",
            citation="Tsoumakas, Katakis and Vlahavas (2011), Random k-Labelsets for Multilabel "
            "Classification, IEEE TKDE 23, doi:10.1109/TKDE.2010.164",
        ),
        Peer(
            name="napkinxc",
            title="napkinXC, probabilistic label tree",
            environment="napkinxc",
            requirements=("napkinXC==0.7.2", "numpy==2.4.6", "scipy==1.17.1"),
            script=_SCRIPTS / "napkinxc_plt.py",
            rules=("threshold", "top-k"),
            url="https://pypi.org/project/napkinxc/",
            citation="Jasinska-Kobus, Wydmuch, Dembczynski, Kuznetsov and Busa-Fekete (2020), "
            "Probabilistic Label Trees for Extreme Multi-label Classification, arXiv:2009.11218",
        ),
    )
}


def prepare(peer: Peer, folder: str | os.PathLike[str]) -> Path:
    """Install a peer into an environment of its own, unless it is there.

    Parameters
    ----------
    peer : Peer
        What to install.
    folder : str or path-like
        Where environments are. What venv and pip said is kept there in ``ENVIRONMENT.log``.

    Returns
    -------
    Path
        The environment's Python.

    Raises
    ------
    PeerError
        If it cannot be installed, with what pip said last.
    """
    folder = Path(folder).absolute()
    home = folder / peer.environment
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    marker = home / _MARKER
    wanted = "\n".join(peer.requirements)
    if python.exists() and marker.exists() and marker.read_text(encoding="utf-8") == wanted:
        return python
    folder.mkdir(parents=True, exist_ok=True)
    marker.unlink(missing_ok=True)
    steps = [[sys.executable, "-m", "venv", "--clear", str(home)]]
    if not peer.requirements:
        steps[0].append("--without-pip")
    else:
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
        steps.append([*pip, "--progress-bar", "off", *peer.requirements])
    log = folder / f"{peer.environment}.log"
    with log.open("w", encoding="utf-8") as file:
        for step in steps:
            done = subprocess.run(
                step, stdout=file, stderr=subprocess.STDOUT, env=_environment(), check=False
            )
            if done.returncode != 0:
                file.flush()
                raise PeerError(
                    f"{peer.name} cannot be installed: {_last_error(log)} (all of it: {log})"
                )
    marker.write_text(wanted, encoding="utf-8")
    return python


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
    """Fit a peer to training rows, and let it decide for test rows.

    Parameters
    ----------
    peer : Peer
        What to run.
    python : str or path-like
        The Python of its environment, from `prepare`.
    X_train, X_test : array-like or sparse matrix, shape (rows, features)
        The features.
    Y_train : array-like of 0 and 1, shape (rows, m)
        The labels of the training rows.
    seed : int, default=0
        Where the peer's random numbers start.
    limit : float, optional
        The most seconds that it may take, from the start of its Python to its end.

    Returns
    -------
    PeerRun
        Label sets, times and memory.

    Raises
    ------
    PeerLimit
        If it took longer. It was ended, with the processes that it had started.
    PeerError
        If it failed, with the last line of what it said; or if its answer is not one.
    """
    labels = np.asarray(Y_train, dtype=np.int8)
    with tempfile.TemporaryDirectory(prefix="fgfm-peer-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        split, result, log = folder / "split.npz", folder / "result.npz", folder / "log.txt"
        np.savez(split, Y_train=labels, **_parts("X_train", X_train), **_parts("X_test", X_test))
        child = [_SCRIPTS / "child.py", peer.script.absolute(), split, result, seed]
        with log.open("w", encoding="utf-8") as errors:
            code = _run([os.fspath(python), *map(str, child)], folder, errors, limit)
        if code is None:
            raise PeerLimit(f"{peer.name} took longer than {limit:g} seconds, and was stopped")
        if code != 0:
            raise PeerError(f"{peer.name} failed: {_reason(code, log)}")
        return _read(peer, result, (np.shape(X_test)[0], labels.shape[1]))


def _parts(name: str, X: Any) -> dict[str, Any]:
    """Give the arrays that an .npz file holds of a matrix."""
    if not sparse.issparse(X):
        return {name: np.asarray(X, dtype=np.float64)}
    X = sparse.csr_array(X)
    return {
        f"{name}/data": X.data.astype(np.float64),
        f"{name}/indices": X.indices,
        f"{name}/indptr": X.indptr,
        f"{name}/shape": np.array(X.shape),
    }


def _environment() -> dict[str, str]:
    """Give the environment variables of a peer: one core, and none of our own modules."""
    ours = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    # the scripts' folder may be read-only, and another Python's bytecode is none of its business
    alone = {"PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return kept | dict.fromkeys(_THREADS, "1") | alone


def _run(command: list[str], folder: Path, errors: Any, limit: float | None) -> int | None:
    """Run a command to its end and give its exit code, or None if it was stopped."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=_environment(),
        stdin=subprocess.PIPE,  # closed when this process ends, however it does: `child.py`
        stdout=subprocess.DEVNULL,
        stderr=errors,
        start_new_session=True,  # a group of its own, to be ended as one
    )
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.returncode is None:
            _end(process)
        if process.stdin is not None:
            process.stdin.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    if os.name == "nt":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _lines(log: Path) -> list[str]:
    text = log.read_text(encoding="utf-8", errors="replace")
    return [line.strip()[:_LONGEST_LINE] for line in text.splitlines() if line.strip()]


def _last_error(log: Path) -> str:
    """Give the last line that pip calls an error; hints and notices may follow it."""
    lines = _lines(log)
    errors = [line for line in lines if re.match(r"error:", line, re.IGNORECASE)]
    return (errors or lines or ["it said nothing"])[-1]


def _reason(code: int, log: Path) -> str:
    """Say why a process failed: by its last line, unless it was killed."""
    lines = _lines(log)
    if code < 0:
        return f"it was killed by {signal.Signals(-code).name}"
    return lines[-1] if lines else f"it ended with code {code} and said nothing"


def _read(peer: Peer, result: Path, shape: tuple[int, int]) -> PeerRun:
    """Read what a script wrote, and check it."""
    try:
        with np.load(result, allow_pickle=False) as stored:
            found = dict(stored)
    except (OSError, ValueError, BadZipFile) as error:
        raise PeerError(f"{peer.name} gave no answer that can be read: {error}") from error
    given = tuple(name.removeprefix("labels/") for name in found if name.startswith("labels/"))
    if set(given) != set(peer.rules):
        raise PeerError(f"{peer.name} must give label sets for {peer.rules}: it gave {given}")
    expected_f = {rule: found.get(f"expected_f/{rule}") for rule in peer.rules}
    for rule in peer.rules:
        what = f"{peer.name}'s label sets by {rule}"
        labels = found[f"labels/{rule}"]
        _check_shape(what, labels, shape)
        if not np.isin(labels, (0, 1)).all():
            raise PeerError(f"{what} must be 0 and 1: they hold {np.unique(labels)[:5]}")
        if expected_f[rule] is not None:
            what = f"{peer.name}'s expected F-measure by {rule}"
            _check_shape(what, expected_f[rule], shape[:1])
            expected_f[rule] = _check_range(what, expected_f[rule])
    return PeerRun(
        labels={rule: found[f"labels/{rule}"].astype(np.int8) for rule in peer.rules},
        expected_f=expected_f,
        proba=_read_proba(peer, found, shape),
        fit_s=float(found["fit_s"]),
        predict_s=float(found["predict_s"]),
        peak_mib=float(found["peak_mib"]),
    )


def _read_proba(peer: Peer, found: dict[str, Any], shape: tuple[int, int]) -> Any:
    what = f"{peer.name}'s probabilities"
    if "proba" in found:
        _check_shape(what, found["proba"], shape)
        return _check_range(what, found["proba"])
    if "proba/data" not in found:
        return None
    values = _check_range(what, found["proba/data"])
    proba = sparse.csr_array(
        (values, found["proba/indices"], found["proba/indptr"]), shape=tuple(found["proba/shape"])
    )
    _check_shape(what, proba, shape)
    return proba


def _check_shape(what: str, values: Any, shape: tuple[int, ...]) -> None:
    if values.shape != shape:
        raise PeerError(f"{what} must have the shape {shape}: they have {values.shape}")


def _check_range(what: str, values: Any) -> npt.NDArray[np.float64]:
    """Give values as probabilities, free of rounding."""
    checked: npt.NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    wrong = checked[~((checked >= -_ROUNDING) & (checked <= 1.0 + _ROUNDING))]
    if wrong.size:
        raise PeerError(f"{what} must lie in [0, 1]: they hold {wrong[0]}")
    return checked.clip(0.0, 1.0)
