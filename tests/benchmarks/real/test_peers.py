"""Other packages in environments of their own: data in, label sets out, and failures."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from scipy import sparse

from benchmarks.real.peers import PEERS, Peer, PeerError, PeerLimit, install, run_peer

X = np.arange(12.0).reshape(6, 2)
Y = np.array([[0, 1, 0], [1, 1, 0], [0, 1, 0], [1, 1, 0], [0, 1, 1], [1, 1, 1]])
X_TEST = X[:4] + 0.5

GOOD = """
    import numpy as np

    def fit(X, Y, seed):
        return Y.mean(axis=0), seed

    def predict(model, X):
        share, seed = model
        proba = np.tile(share, (X.shape[0], 1))
        return {"labels": {"a": proba >= 0.5}, "expected_f": {"a": np.full(X.shape[0], 0.25)}}
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """Return a function that makes a peer of a script, run by the Python of the tests."""
    # pytest sets PYTHONWARNINGS for its own run
    monkeypatch.delenv("PYTHONWARNINGS", raising=False)

    def make(text: str, rules: tuple[str, ...] = ("a",)) -> Peer:
        script = tmp_path / "script.py"
        script.write_text(dedent(text), encoding="utf-8")
        return Peer("fake", "A fake", "fake", (), script, rules, "", "")

    return make


def run(peer: Peer, X_train=X, X_test=X_TEST, **options):
    return run_peer(peer, sys.executable, X_train, Y, X_test, **options)


def predicting(output: str) -> str:
    return f"""
        import numpy as np
        from scipy import sparse

        def fit(X, Y, seed):
            return Y, seed

        def predict(model, X):
            Y, seed = model
            n, m = X.shape[0], Y.shape[1]
            return {output}
    """


def test_a_run_returns_label_sets_times_and_memory(fake):
    found = run(fake(GOOD))
    # the second label is constant and is not passed to the script
    assert found.labels["a"].dtype == np.int8
    assert found.labels["a"].tolist() == [[1, 1, 0]] * 4
    assert found.expected_f["a"].tolist() == [0.25] * 4
    assert found.proba is None
    assert found.fit_s >= 0.0
    assert found.predict_s >= 0.0
    assert 1.0 < found.peak_mib < 100_000.0


def test_constant_labels_are_not_passed_to_the_script(fake):
    shape = run(
        fake(predicting('{"labels": {"a": np.ones((n, m))}, "proba": np.full((n, m), m)/4}'))
    )
    assert shape.proba.tolist() == [[0.5, 1.0, 0.5]] * 4


@pytest.mark.parametrize("kind", ["array", "csr", "csc"])
def test_features_are_passed_unchanged(fake, kind):
    send = {"array": np.asarray, "csr": sparse.csr_array, "csc": sparse.csc_matrix}[kind]
    sparse_there = kind != "array"
    peer = fake(f"""
        import numpy as np
        from scipy import sparse

        def fit(X, Y, seed):
            assert sparse.issparse(X) == {sparse_there}
            assert X.dtype == np.float64
            X = X.toarray() if sparse.issparse(X) else X
            assert X.tolist() == {X.tolist()}
            assert Y.tolist() == {Y[:, [0, 2]].tolist()}
            assert seed == 7

        def predict(model, X):
            X = X.toarray() if sparse.issparse(X) else X
            assert X.tolist() == {X_TEST.tolist()}
            return {{"labels": {{"a": sparse.lil_matrix((4, 2), dtype=np.uint8)}}}}
    """)
    assert run(peer, send(X), send(X_TEST), seed=7).labels["a"].tolist() == [[0, 1, 0]] * 4


def test_sparse_probabilities_stay_sparse(fake):
    proba = "sparse.csr_matrix(np.tile([0.0, 0.25], (n, 1)))"
    output = f'{{"labels": {{"a": np.zeros((n, m))}}, "proba": {proba}}}'
    found = run(fake(predicting(output)))
    assert sparse.issparse(found.proba)
    assert found.proba.toarray().tolist() == [[0.0, 1.0, 0.25]] * 4


def test_rounding_errors_are_clipped(fake):
    output = '{"labels": {"a": np.zeros((n, m))}, "proba": np.full((n, m), 1.0 + 1e-7)}'
    assert run(fake(predicting(output))).proba.max() == 1.0


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (
            '{"labels": {"a": np.zeros((n - 1, m))}}',
            r"have the shape \(3, 3\): it must be \(4, 3\)",
        ),
        (
            '{"labels": {"a": np.full((n, m), 2)}}',
            "by the rule a contain .*2.*: they must be 0 and 1",
        ),
        ('{"labels": {"b": np.zeros((n, m))}}', r"by the rules \('b',\): they must be \('a',\)"),
        (
            '{"labels": {"a": np.zeros((n, m))}, "expected_f": {"a": np.zeros(n + 1)}}',
            r"expected F-measures of fake by the rule a have the shape \(5,\): it must be \(4,\)",
        ),
        (
            '{"labels": {"a": np.zeros((n, m))}, "expected_f": {"a": np.full(n, np.nan)}}',
            r"contain nan: they must lie in \[0, 1\]",
        ),
        (
            '{"labels": {"a": np.zeros((n, m))}, "proba": np.full((n, m), 1.5)}',
            r"probabilities of fake contain 1.5: they must lie in \[0, 1\]",
        ),
    ],
)
def test_invalid_results_raise(fake, output, message):
    with pytest.raises(PeerError, match=message):
        run(fake(predicting(output)))


def test_no_result_raises(fake):
    with pytest.raises(PeerError, match="fake returned no readable result"):
        run(fake("import os\nos._exit(0)"))


def test_a_failure_shows_the_last_line_of_the_traceback(fake):
    with pytest.raises(PeerError, match=r"^fake failed: ValueError: too few rows: 6$"):
        run(fake("def fit(X, Y, seed):\n    raise ValueError(f'too few rows: {len(X)}')"))


def test_a_crash_shows_the_signal(fake):
    with pytest.raises(PeerError, match="fake failed: killed by SIGKILL"):
        run(fake("import os\nos.kill(os.getpid(), 9)"))


def test_a_script_does_not_see_our_modules(fake, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    peer = fake(
        "import os\nraise ValueError(sorted({'PYTHONPATH', 'OMP_NUM_THREADS'} & {*os.environ}))"
    )
    with pytest.raises(PeerError, match=r"ValueError: \['OMP_NUM_THREADS'\]"):
        run(peer)


def test_constant_labels_only_raise(fake):
    with pytest.raises(PeerError, match="all labels are constant in the training rows"):
        run_peer(fake(GOOD), sys.executable, X, np.ones((6, 3)), X_TEST)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads processes from /proc")
@pytest.mark.slow
def test_the_limit_kills_a_script_and_its_children(fake, tmp_path):
    pid_file = tmp_path / "pids"
    peer = fake(f"""
        import os, subprocess, sys, time

        def fit(X, Y, seed):
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            with open({str(pid_file)!r} + ".part", "w") as file:
                file.write(f"{{os.getpid()}} {{child.pid}}")
            os.replace({str(pid_file)!r} + ".part", {str(pid_file)!r})
            time.sleep(600)
    """)
    with pytest.raises(PeerLimit, match=r"^fake exceeded the limit of 10 seconds$"):
        run(peer, limit=10.0)
    pids = [int(pid) for pid in pid_file.read_text().split()]
    assert len(pids) == 2
    for _ in range(100):  # an orphan cannot be waited for
        if not any(map(is_alive, pids)):
            break
        time.sleep(0.1)
    assert not any(map(is_alive, pids))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads processes from /proc")
@pytest.mark.slow
def test_a_script_ends_with_its_parent(fake, tmp_path):
    pid_file = tmp_path / "pid"
    peer = fake(f"""
        import os, time

        def fit(X, Y, seed):
            with open({str(pid_file)!r} + ".part", "w") as file:
                file.write(str(os.getpid()))
            os.replace({str(pid_file)!r} + ".part", {str(pid_file)!r})
            time.sleep(600)
    """)
    code = f"""
import sys
import numpy as np
from pathlib import Path
from benchmarks.real.peers import Peer, run_peer
peer = Peer("fake", "A fake", "fake", (), Path({str(peer.script)!r}), ("a",), "", "")
run_peer(peer, sys.executable, np.eye(3), np.eye(3, dtype=np.int8), np.eye(3))
"""
    process = subprocess.Popen([sys.executable, "-c", code])
    for _ in range(600):
        if pid_file.exists():
            break
        time.sleep(0.1)
    process.kill()
    process.wait()
    pid = int(pid_file.read_text())
    for _ in range(100):
        if not is_alive(pid):
            break
        time.sleep(0.1)
    assert not is_alive(pid)


def test_an_environment_is_created_once(tmp_path):
    peer = PEERS["mlknn"]._replace(environment="empty", requirements=())
    python = install(peer, tmp_path / "new")
    assert python.is_relative_to(tmp_path / "new" / "empty")
    assert os.access(python, os.X_OK)
    trace = tmp_path / "new" / "empty" / "trace"
    trace.touch()
    assert install(peer, tmp_path / "new") == python
    assert trace.exists()
    # without the marker, which is written last, it is created again
    (tmp_path / "new" / "empty" / "installed.txt").unlink()
    install(peer, tmp_path / "new")
    assert not trace.exists()


@pytest.mark.slow
def test_a_failed_installation_leaves_no_marker(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    peer = PEERS["mlknn"]._replace(environment="none", requirements=("no-such-package==1.0",))
    message = (
        "^mlknn cannot be installed: ERROR: No matching distribution found for no-such-package"
    )
    with pytest.raises(PeerError, match=message) as caught:
        install(peer, tmp_path)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "none" / "installed.txt").exists()
    assert "no-such-package" in (tmp_path / "none.log").read_text()


@pytest.mark.parametrize("name", PEERS)
def test_every_peer_is_pinned_and_has_its_script(name):
    peer = PEERS[name]
    assert peer.name == name
    assert all("==" in requirement for requirement in peer.requirements)
    text = peer.script.read_text(encoding="utf-8")
    assert "fgfm" not in text
    assert all(f'"{rule}"' in text for rule in peer.rules)


def test_peers_that_share_an_environment_agree_on_it():
    wanted = {}
    for peer in PEERS.values():
        assert wanted.setdefault(peer.environment, peer.requirements) == peer.requirements
