"""StackClassifier: a scikit-learn classifier whose held-out probabilities need no folds."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import fgfm
from fgfm import StackClassifier
from multilabel import X, Y, make_data


def fit(*data: Any, **how: Any) -> StackClassifier:
    return StackClassifier(random_state=0).fit(*data, **how)


@parametrize_with_checks(
    [StackClassifier()],
    expected_failed_checks=lambda estimator: {
        f"check_sample_weight_equivalence_on_{kind}_data": "the forest draws rows at random"
        for kind in ("dense", "sparse")
    },
)
def test_common_checks(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some checks pass data that raise a warning
        check(estimator)


def test_learns_and_holds_out() -> None:
    rows, labels = make_data(n=600, seed=1)
    model = fit(rows[:400], labels[:400])
    frequency = np.tile(labels[:400].mean(axis=0), (400, 1))
    for p, y in (
        (model.oob_decision_function_, labels[:400]),
        (model.predict_proba(rows[400:]), labels[400:]),
    ):
        assert p.shape == y.shape
        baseline = np.mean([log_loss(y[:, i], frequency[: len(y), i]) for i in range(4)])
        assert np.mean([log_loss(y[:, i], p[:, i]) for i in range(4)]) < 0.7 * baseline
    assert (model.predict(rows) == (model.predict_proba(rows) > 0.5)).all()
    assert model.predict(rows).dtype == labels.dtype
    # In sample, the parts are much better than they are held out.
    held_out = log_loss(labels[:400].ravel(), model.oob_decision_function_.ravel())
    assert log_loss(labels[:400].ravel(), model.predict_proba(rows[:400]).ravel()) < held_out


def numbers_in_features(n: int, seed: int = 0) -> tuple[Any, Any]:
    """Return rows that tell the number of labels exactly, and the labels with much noise."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 5, n)
    utility = rng.normal(size=(n, 8))
    noisy = utility + rng.normal(size=(n, 8))
    rank = np.argsort(np.argsort(-utility, axis=1), axis=1)
    return np.column_stack([size, noisy]), (rank < size[:, None]).astype(int)


def test_number_of_labels() -> None:
    rows, labels = numbers_in_features(900)
    model = fit(rows[:600], labels[:600])
    assert model.oob_cardinality_.shape == (600, 5)
    proba, d = model.predict_with_cardinality(rows[600:])
    assert np.array_equal(proba, model.predict_proba(rows[600:]))
    for part, y in ((model.oob_cardinality_, labels[:600]), (d, labels[600:])):
        np.testing.assert_allclose(part.sum(axis=1), 1.0)
        assert (part[:, 0] == 0.0).all()
        assert (part.argmax(axis=1) == y.sum(axis=1)).mean() > 0.95
    one = [model.predict_with_cardinality(rows[i : i + 1])[1][0] for i in range(600, 620)]
    assert np.array_equal(one, d[:20])
    # What the number says is lost where only the probabilities of the labels are used.
    informed = fgfm.FClassifier(random_state=0).fit(rows[:600], labels[:600])
    decider = fgfm.FDecider().fit(model.oob_decision_function_, labels[:600])
    sizes = labels[600:].sum(axis=1)
    of_both = np.abs(informed.predict_proba(rows[600:]).sum(axis=1) - sizes).mean()
    assert of_both < 0.5 * np.abs(decider.predict_proba(proba).sum(axis=1) - sizes).mean()
    assert informed.score(rows[600:], labels[600:]) > decider.score(proba, labels[600:])
    assert informed.expected_f(rows[600:]).mean() == pytest.approx(
        informed.score(rows[600:], labels[600:]), abs=0.03
    )


def test_number_of_labels_behind_transformers() -> None:
    rows, labels = numbers_in_features(300)
    model = fgfm.FClassifier(random_state=0).fit(rows, labels)
    stack = StackClassifier(random_state=0)
    for steps in (["passthrough", stack], ["passthrough", make_pipeline(stack)]):
        piped = fgfm.FClassifier(make_pipeline(*steps)).fit(rows, labels)
        assert np.array_equal(
            piped.predict_proba(rows[:9] + 0.1), model.predict_proba(rows[:9] + 0.1)
        )


def test_no_number_of_labels_is_learned_where_there_is_none() -> None:
    rows, labels = numbers_in_features(200)
    alike = np.eye(8, dtype=int)[labels.argmax(axis=1)]
    for y in (labels[:, 0], alike):
        model = fit(rows, y)
        assert model.oob_cardinality_ is None
        assert model.predict_with_cardinality(rows)[1] is None


def test_number_of_labels_of_rows_with_missing_ones() -> None:
    rows, labels = numbers_in_features(400)
    labels[np.random.default_rng(0).random(labels.shape) < 0.3] = -1
    model = fit(rows, labels)
    np.testing.assert_allclose(model.oob_cardinality_.sum(axis=1), 1.0)
    decided = fgfm.FClassifier(random_state=0).fit(rows, labels).decide(rows[:5] + 1e-3)
    assert np.isfinite(decided.expected_f).all()


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_flat_y(load: Any) -> None:
    rows, code = load(return_X_y=True)
    y = np.array(["first", "second", "third"])[code]
    train = np.arange(len(y)) % 2 == 0
    model = fit(rows[train], y[train])
    proba = model.predict_proba(rows[~train])
    assert proba.shape == (len(y) - train.sum(), len(np.unique(y)))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert model.oob_decision_function_.shape == (train.sum(), len(np.unique(y)))
    np.testing.assert_allclose(model.oob_decision_function_.sum(axis=1), 1.0)
    assert model.score(rows[~train], y[~train]) > 0.92
    assert (model.predict(rows) == model.classes_[model.predict_proba(rows).argmax(axis=1)]).all()
    of_folds = cross_val_predict(model, rows, y, cv=3, method="predict_proba")
    assert log_loss(y, of_folds) < 0.3


def test_forms_of_X() -> None:
    rows = X.copy()
    rows[:, 2] = (rows[:, 2] > 0.0) * 2.0
    p = fit(rows, Y).predict_proba(rows)
    for form in (sparse.csr_array, sparse.csc_matrix, np.asfortranarray, np.ndarray.tolist):
        assert (fit(form(rows), Y).predict_proba(form(rows)) == p).all()
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pd.DataFrame(rows, columns=list("abc")).astype({"c": int})
    for form in (frame, pl.from_pandas(frame)):
        model = fit(form, Y)
        assert (model.predict_proba(form) == p).all()
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    frame["d"] = "text"
    with pytest.raises(ValueError, match="X has a column without numbers, 'd'"):
        fit(frame, Y)


def test_forms_of_y() -> None:
    pd = pytest.importorskip("pandas")
    p = fit(X, Y).predict_proba(X)
    model = fit(X, pd.DataFrame(Y, columns=list("abcd")))
    assert model.classes_.tolist() == list("abcd")
    assert (model.predict_proba(X) == p).all()
    model = fit(X, sparse.csr_array(Y))
    assert sparse.issparse(model.predict(X))
    assert (model.predict(X).toarray() == (p > 0.5)).all()
    with pytest.raises(ValueError, match=r"y\[1, 2\] is 2: labels must be 0 or 1"):
        fit(X, np.where(np.arange(240).reshape(60, 4) == 6, 2, Y))


def test_rows_of_weight_0_count_as_if_they_were_not_there() -> None:
    weight = np.where(np.arange(60) % 3 == 0, 0.0, 2.0)
    model = fit(X, Y, sample_weight=weight)
    kept = fit(X[weight > 0.0], Y[weight > 0.0], sample_weight=np.full(40, 2.0))
    assert (model.predict_proba(X) == kept.predict_proba(X)).all()
    assert np.isnan(model.oob_decision_function_[weight == 0.0]).all()
    assert (model.oob_decision_function_[weight > 0.0] == kept.oob_decision_function_).all()


def test_missing_labels() -> None:
    rows, labels = make_data(n=300, seed=2)
    missing = labels.astype(float)
    missing[np.random.default_rng(0).random(labels.shape) < 0.3] = np.nan
    model = fit(rows, missing)
    assert np.isfinite(model.oob_decision_function_).all()
    as_minus_one = np.nan_to_num(missing, nan=-1).astype(int)
    assert (fit(rows, as_minus_one).predict_proba(rows) == model.predict_proba(rows)).all()
    observed = ~np.isnan(missing)
    guess = labels[observed].mean()
    p = model.oob_decision_function_
    assert log_loss(labels[~observed], p[~observed]) < 0.8 * log_loss(
        labels[~observed], np.full((~observed).sum(), guess)
    )


def test_constant_labels_are_predicted_with_certainty() -> None:
    labels = np.column_stack([Y, np.zeros(60, int), np.ones(60, int)])
    model = fit(X, labels)
    for p in (model.predict_proba(X), model.oob_decision_function_):
        assert (p[:, 4] == 0.0).all()
        assert (p[:, 5] == 1.0).all()
    assert (fit(X, labels[:, 4:]).predict(X) == [0, 1]).all()
    assert (fit(X, ["one"] * 60).predict_proba(X) == np.ones((60, 1))).all()


def test_one_row_of_a_class() -> None:
    y = np.zeros((60, 2), int)
    y[7, 0] = y[3:50, 1] = 1
    p = fit(X, y).predict_proba(X)
    assert ((p[:, 0] > 0.0) & (p[:, 0] < 0.5)).all()
    assert fit(X, y[:, 0]).predict_proba(X).shape == (60, 2)
    assert (fit(X[:1], y[:1]).predict(X[:2]) == 0).all()
    assert fit(X[2:4], y[2:4]).predict_proba(X).shape == (60, 2)


@pytest.mark.parametrize("value", [0.0, 7.0, 1e300, np.nan])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_where_no_feature_varies_frequencies_are_predicted(value: float, form: Any) -> None:
    if form is sparse.csr_array and np.isnan(value):
        pytest.skip("sparse features have no missing values")
    rows = form(np.full((60, 3), value))
    model = fit(rows, Y)
    for p in (model.predict_proba(rows), model.oob_decision_function_):
        np.testing.assert_allclose(p, np.tile(Y.mean(axis=0), (60, 1)), atol=0.05)
    of_folds = cross_val_predict(model, rows, Y, cv=3, method="predict_proba")
    np.testing.assert_allclose(of_folds, np.tile(Y.mean(axis=0), (60, 1)), atol=0.2)


@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1e170, 1e300])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_units_of_features_do_not_matter(unit: float, form: Any) -> None:
    p = fit(form(X), Y).predict_proba(form(X))
    scaled = form(X * unit)
    np.testing.assert_allclose(fit(scaled, Y).predict_proba(scaled), p, atol=0.02)


def test_results_do_not_depend_on_threads_and_seeds_repeat() -> None:
    model = fit(X, Y)
    other = StackClassifier(n_jobs=2, random_state=0).fit(X, Y)
    assert (other.oob_decision_function_ == model.oob_decision_function_).all()
    assert (other.predict_proba(X) == model.predict_proba(X)).all()
    single = np.concatenate([model.predict_proba(X[i : i + 1]) for i in range(60)])
    assert (single == model.predict_proba(X)).all()
    assert (clone(model).set_params(random_state=1).fit(X, Y).predict_proba(X) != single).any()


@pytest.mark.parametrize("rows", [X, sparse.csr_array(np.maximum(X - 1.0, 0.0))])
@pytest.mark.parametrize("labels", [Y, Y[:, 0], Y.sum(axis=1)])
def test_saved_and_pickled(rows: Any, labels: Any, tmp_path: Any) -> None:
    model = fit(rows, labels)
    p = model.predict_proba(rows)
    assert (pickle.loads(pickle.dumps(model)).predict_proba(rows) == p).all()
    pytest.importorskip("skops")
    fgfm.save(model, tmp_path / "model.fgfm")
    assert (fgfm.load(tmp_path / "model.fgfm").predict_proba(rows) == p).all()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((X, None), "requires y to be passed"),
        ((X, Y[:50]), "y has 50 rows and X has 60"),
        ((sparse.csr_array(np.where(X > 1.0, np.nan, 0.0)), Y), "missing values are supported in"),
        ((X, Y, np.full(60, -1.0)), r"sample_weight\[0\] is -1.0"),
    ],
)
def test_invalid_data(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(*data)
