"""`fgfm.onnx.export_decision`: the exported graph decides as `from_marginals` does."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fgfm import decision
from fgfm.onnx import export_decision
from oracle import check_decision, expected_f, independent_joint

REASON = "needs onnx and onnxruntime: pip install 'fgfm[onnx]' onnxruntime"


@pytest.fixture(scope="module")
def run():
    """Return a function that runs a model on an array."""
    pytest.importorskip("onnx", reason=REASON)
    onnxruntime = pytest.importorskip("onnxruntime", reason=REASON)

    def run(model, inputs):
        session = onnxruntime.InferenceSession(model.SerializeToString())
        return session.run(None, {session.get_inputs()[0].name: inputs})

    return run


def random_marginals(m, dtype="float64"):
    """Draw dense, sparse and tied rows, and rows of zeros, ones and tiny values."""
    rng = np.random.default_rng(m)
    rows = [rng.random((40, m)) ** power for power in (1, 4, 12)]
    rows.append(rng.choice([0.0, 0.25, 0.5, 1.0], size=(40, m)))
    special = np.ones((4, m)) * [[0.0], [1.0], [0.5], [1e-30]]
    return np.concatenate([*rows, special]).astype(dtype)


@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    ("zero_division", "nonempty"), [(1.0, False), (0.5, False), (0.0, False), (1.0, True)]
)
def test_graph_chooses_the_best_of_all_sets(run, m, beta, zero_division, nonempty):
    proba = random_marginals(m)
    if nonempty:
        proba = proba[proba.max(axis=1) > 0.01]  # the oracle divides by the mass that is left
    how = {"beta": beta, "zero_division": zero_division, "nonempty": nonempty}
    decided = run(export_decision(m, dtype="float64", **how), proba)
    check_decision(decided, independent_joint(proba), **how)
    value = expected_f(independent_joint(proba), **how)
    labels, stated = run(export_decision(m, **how), proba.astype(np.float32))
    obtained = value[np.arange(len(labels)), labels @ (1 << np.arange(m)[::-1])]
    assert_allclose(obtained, value.max(axis=1), rtol=1e-5)
    assert_allclose(stated, value.max(axis=1), rtol=1e-5)
    assert stated.dtype == np.float32


@pytest.mark.parametrize("m", [128, 1000])
@pytest.mark.parametrize("nonempty", [False, True])
def test_many_labels(run, m, nonempty):
    proba = random_marginals(m)[:-1]
    proba = proba[proba.max(axis=1) > 0.0]
    for beta in (0.5, 1.0, 3.0):
        exact = decision.from_marginals(proba, beta=beta, nonempty=nonempty)
        how = {"beta": beta, "nonempty": nonempty}
        labels, stated = run(export_decision(m, dtype="float64", **how), proba)
        assert_array_equal(labels, exact.labels)
        assert_allclose(stated, exact.expected_f, rtol=1e-12)
        _, stated = run(export_decision(m, **how), proba.astype(np.float32))
        assert_allclose(stated, exact.expected_f, rtol=1e-7 * max(m, 200))


def test_logits(run):
    logits = np.random.default_rng(0).normal(-1.0, 2.0, size=(50, 7))
    logits[0, :2] = -np.inf, np.inf
    labels, stated = run(export_decision(7, logits=True, dtype="float64"), logits)
    exact = decision.from_marginals(logits, logits=True)
    assert_array_equal(labels, exact.labels)
    assert_allclose(stated, exact.expected_f, rtol=1e-12)


def test_rows_that_have_no_expectation(run):
    model = export_decision(3, nonempty=True)
    rows = np.array([[0.0, 0.0, 0.0], [0.2, 0.1, 0.0], [1e-30, 0.0, 0.0]], dtype=np.float32)
    labels, stated = run(model, rows)
    assert_array_equal(labels, [[0, 0, 0], [1, 0, 0], [1, 0, 0]])
    assert_array_equal(np.isnan(stated), [True, False, False])
    assert_allclose(stated[2], 1.0)
    rows[1, 1] = np.nan
    for nonempty in (False, True):
        _, stated = run(export_decision(3, nonempty=nonempty), rows)
        assert np.isnan(stated[1])
    labels, stated = run(model, rows[:0])
    assert (labels.shape, stated.shape) == ((0, 3), (0,))


def test_rounding_beyond_the_unit_interval_is_clipped(run):
    labels, stated = run(export_decision(2), np.array([[1.0000001, -1e-8]], dtype=np.float32))
    assert_array_equal(labels, [[1, 0]])
    assert_allclose(stated, 1.0, rtol=1e-6)


def test_later_opsets(run):
    onnx = pytest.importorskip("onnx", reason=REASON)
    proba = random_marginals(4, "float32")
    labels, stated = run(export_decision(4), proba)
    for opset in range(19, min(onnx.defs.onnx_opset_version(), 22) + 1):
        model = export_decision(4, opset=opset)
        assert [(o.domain, o.version) for o in model.opset_import] == [("", opset)]
        later = run(model, proba)
        assert_array_equal(later[0], labels)
        assert_array_equal(later[1], stated)


def test_graph_behind_another_one(run):
    onnx = pytest.importorskip("onnx", reason=REASON)
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(3, 5)).astype(np.float32)
    linear = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> linear (float[n, 3] X) => (float[n, 5] scores)'
        " { scores = MatMul (X, weights) }"
    )
    linear.graph.initializer.append(onnx.numpy_helper.from_array(weights, "weights"))
    merged = onnx.compose.merge_models(
        linear, export_decision(5, logits=True), io_map=[("scores", "logits")]
    )
    X = rng.normal(size=(20, 3)).astype(np.float32)
    labels, _ = run(merged, X)
    assert_array_equal(labels, decision.from_marginals(X @ weights, logits=True).labels)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_labels": 0}, "n_labels is 0: it must be an integer, 1 or more"),
        ({"beta": -1.0}, "beta is -1.0: it must be a number greater than 0"),
        ({"zero_division": 2.0}, "zero_division is 2.0"),
        ({"nonempty": 1}, "nonempty is 1"),
        ({"logits": "yes"}, "logits is 'yes'"),
        ({"dtype": "float16"}, "dtype is 'float16': it must be one of 'float32', 'float64'"),
        ({"opset": 17}, "opset is 17: it must be an integer, 18 or more"),
    ],
)
def test_invalid_arguments_raise(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        export_decision(**({"n_labels": 3} | wrong))


def test_missing_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"^exporting a decision needs onnx: pip .*fgfm\[onnx\]"):
        export_decision(3)
