"""`fgfm.onnx.export_decision`: graphs decide as `from_marginals` and `FDecider.predict` do."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from fgfm import FClassifier, FDecider, decision
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


def validation_rows(n, m, *, steps=None, some=False):
    """Draw probabilities of a miscalibrated model, in `steps` of a forest's trees, and labels."""
    rng = np.random.default_rng(m)
    logit = rng.normal(-1.2, 1.5, size=(n, m)) + rng.normal(size=(n, 1))
    Y = (rng.random((n, m)) < 1.0 / (1.0 + np.exp(-logit))).astype(np.int64)
    if some:
        Y[np.arange(n), logit.argmax(axis=1)] = 1
    proba = 1.0 / (1.0 + np.exp(0.5 - 1.7 * logit))
    return (proba if steps is None else np.round(steps * proba) / steps), Y


def check_decider(run, decider, X, dtype="float64"):
    """Compare the exported decider with what it returns in Python."""
    labels, other = run(export_decision(decider, dtype=dtype), X)
    assert other.dtype == dtype
    assert_array_equal(labels, decider.predict(X))
    exact = decider.predict_proba(X)
    if not decider.multilabel_:
        exact = exact[:, 1]
    elif decider.average == "samples":
        exact = decider.expected_f(X)
    assert_allclose(other, exact, atol=1e-12 if dtype == "float64" else 1e-6)


@pytest.mark.parametrize("steps", [None, 20])
@pytest.mark.parametrize("some", [False, True])
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic", None])
@pytest.mark.parametrize("average", ["samples", "macro", "micro"])
def test_deciders_of_all_averages(run, average, calibration, some, steps):
    proba, Y = validation_rows(10_500, 6, steps=steps, some=some)
    decider = FDecider(average=average, calibration=calibration).fit(proba[:500], Y[:500])
    assert len(np.unique(decider.predict(proba), axis=0)) > 10
    check_decider(run, decider, proba[500:])
    check_decider(run, decider, proba[500:1500].astype(np.float32), "float32")


@pytest.mark.parametrize(
    "parameters",
    [
        {"beta": 0.5, "zero_division": 0.5},
        {"beta": 2.0, "zero_division": 0.0},
        {"min_labels": 2},
        {"max_labels": 2},
        {"nonempty": True},
        {"nonempty": True, "min_labels": 1, "max_labels": 3},
    ],
)
def test_parameters_of_deciders(run, parameters):
    proba, Y = validation_rows(2000, 7)
    check_decider(run, FDecider(**parameters).fit(proba[:400], Y[:400]), proba[400:])


@pytest.mark.parametrize("shape", [lambda x: 3.0 * x + 50.0, np.sinh, np.floor, np.exp])
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("average", ["samples", "macro", "micro", "weighted"])
def test_scores(run, average, calibration, shape):
    proba, Y = validation_rows(10_400, 5)
    X = shape((np.log(proba) - np.log1p(-proba)) * [1.0, 1.0, 2.0, 0.5, 3.0])
    X[:, 4] = np.floor(X[:, 4])  # another shape, with ties
    decider = FDecider(average=average, calibration=calibration, scores=True)
    decider.fit(X[:400], Y[:400])
    X[-2:] = [[1e300], [-1e300]]
    check_decider(run, decider, X[400:])


@pytest.mark.parametrize("average", ["samples", "macro"])
@pytest.mark.parametrize("calibration", ["sigmoid", None])
def test_numbers_of_labels_that_the_probabilities_all_but_rule_out(run, average, calibration):
    proba, Y = validation_rows(400, 120, steps=4)
    Y[::10] = 1
    decider = FDecider(average=average, calibration=calibration).fit(proba, Y)
    extremes = np.zeros((4, 120))
    extremes[1] = 1.0
    extremes[2, :60] = 1.0
    extremes[3] = 0.5
    check_decider(run, decider, np.concatenate([extremes, proba[:100]]))


def test_decider_of_a_flat_y(run):
    proba, Y = validation_rows(10_400, 1)
    for calibration in ("sigmoid", "isotonic", None):
        decider = FDecider(calibration=calibration).fit(proba[:400, 0], Y[:400, 0])
        check_decider(run, decider, proba[400:])
        check_decider(run, decider, np.hstack([1.0 - proba, proba])[400:])
    logit = np.log(proba) - np.log1p(-proba)
    check_decider(run, FDecider(scores=True).fit(logit[:400], Y[:400, 0]), logit[400:])


@pytest.mark.parametrize("steps", [None, 20])
@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic", None])
@pytest.mark.parametrize("scores", [False, True])
@pytest.mark.parametrize("average", ["macro", "micro"])
def test_decider_of_classes(run, average, calibration, scores, steps):
    if scores and calibration is None:
        pytest.skip("scores need a calibration")
    rng = np.random.default_rng(0)
    X = rng.normal([2.0, 1.0, 0.0, -1.0], 1.5, size=(10_500, 4))
    proba = np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)
    classes = np.array(["ant", "bee", "cow", "dog"])
    y = classes[(rng.random((10_500, 1)) > proba.cumsum(axis=1)).sum(axis=1)]
    if steps is not None:
        proba = rng.multinomial(steps, proba) / steps  # with many ties, zeros and ones
        X = np.log(proba + 0.01)
    X = X if scores else proba
    counted = ["bee", "dog"] if average == "micro" else None
    decider = FDecider(
        average=average, labels=counted, calibration=calibration, scores=scores, beta=2.0
    )
    decider.fit(X[:500], y[:500])
    labels, calibrated = run(export_decision(decider, dtype="float64"), X)
    differ = classes[labels] != decider.predict(X)
    assert differ.mean() < (1e-3 if calibration == "isotonic" else 1e-9)  # which has ties
    assert_allclose(calibrated, decider.predict_proba(X), atol=1e-12)
    assert len(np.unique(labels)) == 4
    labels, calibrated = run(export_decision(decider), X[:0].astype(np.float32))
    assert (labels.shape, calibrated.shape) == ((0,), (0, 4))
    assert calibrated.dtype == np.float32


def test_decider_fitted_to_sparse_probabilities(run):
    sparse = pytest.importorskip("scipy.sparse")
    proba, Y = validation_rows(600, 5)
    proba[:, 3] = 0.0  # never stored: isotonic regression has nothing to learn from
    for calibration in ("sigmoid", "isotonic"):
        decider = FDecider(calibration=calibration).fit(sparse.csr_array(proba), Y)
        check_decider(run, decider, proba)


@pytest.mark.parametrize("nonempty", [False, True])
def test_decider_with_missed_items(run, nonempty):
    proba, Y = validation_rows(600, 5)
    missed = np.random.default_rng(0).poisson(0.3 * (1.0 + Y.sum(axis=1)))
    decider = FDecider(nonempty=nonempty, beta=2.0).fit(proba, Y, missed=missed)
    check_decider(run, decider, proba)


def test_no_rows(run):
    proba, Y = validation_rows(100, 4)
    for average in ("samples", "macro"):
        decider = FDecider(average=average, calibration="isotonic").fit(proba, Y)
        labels, _ = run(export_decision(decider), proba[:0].astype(np.float32))
        assert labels.shape == (0, 4)


def test_cross_validated_decider_behind_its_model(run):
    onnx = pytest.importorskip("onnx", reason=REASON)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    Y = (X @ rng.normal(size=(5, 4)) + rng.logistic(size=(300, 4)) > 0.8).astype(np.int64)
    model = FClassifier(LogisticRegression(), random_state=0).fit(X, Y)
    parts = model.estimator_.estimators_
    network = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 18]> linear (double[n, 5] X) => (double[n, 4] p)'
        " { s = MatMul (X, weights) t = Add (s, shifts) p = Sigmoid (t) }"
    )
    values = {
        "weights": np.hstack([part.coef_.T for part in parts]),
        "shifts": np.hstack([part.intercept_ for part in parts]),
    }
    for name, value in values.items():
        network.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    decide = export_decision(model, dtype="float64")
    labels, _ = run(onnx.compose.merge_models(network, decide, io_map=[("p", "proba")]), X)
    assert_array_equal(labels, model.predict(X))


def test_deciders_that_cannot_be_exported():
    proba, Y = validation_rows(100, 3)
    with pytest.raises(ValueError, match=r"decider is FDecider\(\): it must be fitted"):
        export_decision(FDecider())
    with pytest.raises(ValueError, match=r"decider is FClassifier\(.*it must be fitted"):
        export_decision(FClassifier(LogisticRegression()))
    constraints = decision.Constraints(groups=[[0, 1]])
    limited = FDecider(constraints=constraints).fit(proba, Y)
    with pytest.raises(ValueError, match=r"decider has constraints.*min_labels and max_labels"):
        export_decision(limited)
    other = FDecider(average="macro").fit(proba, Y).set_params(average="micro")
    with pytest.raises(ValueError, match="average is 'micro' and was 'macro' in fit"):
        export_decision(other)
    with pytest.raises(ValueError, match=r"beta=2.0 is given with a decider, which has its own"):
        export_decision(FDecider().fit(proba, Y), beta=2.0)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"decider": 0}, "decider is 0: it must be an integer, 1 or more"),
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
        export_decision(wrong.pop("decider", 3), **wrong)


def test_missing_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"^exporting a decision needs onnx: pip .*fgfm\[onnx\]"):
        export_decision(3)
