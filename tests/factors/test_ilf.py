"""ILFCompo: recovery of known factors, choice of the test, types of data and errors."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import clone

from fgfm.factors import ILFCompo, group_labels

TRUE = [[0, 3], [1], [2, 4, 5]]


def toy(n, seed=0):
    """Return labels in the factors `TRUE`; all of them depend on the features."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 4))
    noise = rng.random((n, 6)) < 0.25
    Y = X[:, [0, 0, 1, 2, 3, 1]] ^ noise
    Y[:, 3] |= Y[:, 0]
    Y[:, 4] &= Y[:, 2]
    Y[:, 5] |= Y[:, 4]
    return X, Y.astype(int)


def as_lists(factors):
    return [factor.tolist() for factor in factors]


# Factors


@pytest.mark.parametrize("test", ["auto", "mi", "moments"])
def test_known_factors_are_recovered(test):
    X, Y = toy(4000)
    ilf = ILFCompo(test, 0.001).fit(X, Y)
    assert as_lists(ilf.factors_) == TRUE
    assert as_lists(ilf.markov_boundaries_)[:3] == [[0], [0], [1]]
    assert ilf.cuts_ == []
    assert ilf.test_ == ("moments" if test == "auto" else test)


def test_fitted_attributes_are_consistent():
    X, Y = toy(600)
    ilf = ILFCompo(correction=None).fit(X, Y)
    assert ilf.p_values_.shape == ilf.effects_.shape == ilf.graph_.shape == (6, 6)
    assert np.isnan(np.diag(ilf.p_values_)).all()
    assert np.isnan(np.diag(ilf.effects_)).all()
    graph = ilf.graph_.toarray()
    assert graph.dtype == bool
    assert sparse.issparse(ilf.graph_)
    p = np.nan_to_num(ilf.p_values_, nan=1.0)
    np.testing.assert_array_equal(graph, (p <= 0.01) | (p.T <= 0.01))
    assert len(ilf.factors_) == connected_components(ilf.graph_)[0]
    assert sorted(np.concatenate(ilf.factors_)) == list(range(6))
    assert [factor[0] for factor in ilf.factors_] == sorted(f[0] for f in ilf.factors_)


@pytest.mark.parametrize("options", [{}, {"correction": "bh"}])
def test_factors_are_those_of_group_labels(options):
    X, Y = toy(300)
    Y[:, 1] = 0
    ilf = ILFCompo(max_factor_size=2, **options).fit(X, Y)
    tested = np.ones((6, 6), dtype=bool)
    tested[1] = tested[:, 1] = False
    grouping = group_labels(
        ilf.p_values_, effects=ilf.effects_, tested=tested, max_factor_size=2, **options
    )
    assert as_lists(ilf.factors_) == as_lists(grouping.factors)
    assert ilf.cuts_ == grouping.cuts
    np.testing.assert_array_equal(ilf.edge_p_values_, grouping.p_values)
    edges = (ilf.edge_p_values_ <= 0.01) & tested
    cuts = [(cut.i, cut.j) for cut in ilf.cuts_]
    assert edges.sum() == ilf.graph_.nnz + 2 * len(cuts)
    assert all(edges[cut] for cut in cuts)


def test_xor_is_not_found():
    """Each pair of labels is independent: the Composition property does not hold."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (1000, 2))
    Y = rng.integers(0, 2, (1000, 4))
    Y[:, 0] = Y[:, 1] ^ Y[:, 2]
    assert as_lists(ILFCompo().fit(X, Y).factors_) == [[0], [1], [2], [3]]


def test_permuted_labels_and_rows():
    X, Y = toy(500)
    p = ILFCompo().fit(X, Y).p_values_
    labels, rows = np.array([3, 5, 0, 1, 4, 2]), np.random.default_rng(0).permutation(500)
    permuted = ILFCompo().fit(X[rows], Y[rows][:, labels]).p_values_
    np.testing.assert_allclose(permuted, p[np.ix_(labels, labels)])


def test_constant_labels_have_no_edges():
    X, Y = toy(500)
    Y[:, 0], Y[:, 1] = 0, 1
    ilf = ILFCompo().fit(X, Y)
    assert not ilf.graph_.toarray()[:2].any()


def test_unrelated_labels_are_separate_by_default():
    """Without a correction every second data set has a false edge."""
    rng = np.random.default_rng(0)
    joined = {None: 0, "bonferroni": 0}
    for _ in range(40):
        X = rng.integers(0, 2, (200, 2))
        Y = rng.random((200, 12)) < 0.2 + 0.5 * X[:, :1]
        for correction in joined:
            ilf = ILFCompo(correction=correction).fit(X, Y)
            joined[correction] += len(ilf.factors_) < 12
    assert joined[None] >= 12
    assert joined["bonferroni"] <= 3


# Choice of the test


def test_auto_chooses_by_the_features():
    X, Y = toy(300)

    def chosen(X):
        ilf = ILFCompo().fit(X, Y)
        assert (ilf.markov_boundaries_ is None) == (ilf.test_ == "gcm")
        return ilf.test_

    assert chosen(X) == "moments"
    assert chosen(X + 0.5 * X[:, ::-1]) == "gcm"  # not integers
    assert chosen(np.arange(1200).reshape(300, 4)) == "gcm"  # many levels
    assert chosen(sparse.csr_array(X.astype(float))) == "moments"
    assert chosen(sparse.csr_array(0.5 * X)) == "gcm"
    words = np.array([["a", "b"][v] for v in X[:, 0]], dtype=object)
    assert chosen(np.column_stack([words, X[:, 1].astype(object)])) == "moments"
    assert chosen(np.column_stack([words, (X[:, 1] + 0.5).astype(object)])) == "gcm"
    assert chosen(np.column_stack([words, np.where(X[:, 1], None, 1)])) == "gcm"  # missing values
    assert chosen(np.tile(X, 16)) == "gcm"  # fewer than five rows for each feature


def test_auto_needs_populated_strata():
    """Two features with eight levels each make 64 strata of about three rows."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 8, (200, 3))
    Y = (X.sum(axis=1)[:, None] + rng.integers(0, 3, (200, 2)) > 11).astype(int)
    boundaries = ILFCompo("moments").fit(X, Y).markov_boundaries_
    assert min(map(len, boundaries)) >= 2
    assert ILFCompo().fit(X, Y).test_ == "gcm"


def test_default_is_deterministic():
    X, Y = toy(100)
    X = X + np.random.default_rng(0).random(X.shape)
    p = ILFCompo().fit(X, Y).p_values_
    np.testing.assert_array_equal(ILFCompo().fit(X, Y).p_values_, p)
    np.testing.assert_array_equal(p, p.T)
    other = ILFCompo(random_state=1).fit(X, Y).p_values_
    assert not np.array_equal(other, p, equal_nan=True)


# Types of data


def test_types_of_tables():
    X, Y = toy(400)
    expected = ILFCompo().fit(X, Y)
    names, features = [f"label {k}" for k in range(6)], list("abcd")
    words = pd.DataFrame(
        {name: np.array(["no", "yes"])[column] for name, column in zip(features, X.T, strict=True)}
    )
    for X_form, Y_form, named in [
        (sparse.csr_array(X), sparse.csr_array(Y), False),
        (X.astype(np.float32), sparse.csc_matrix(Y), False),
        (X.tolist(), Y.astype(bool).tolist(), False),
        (pd.DataFrame(X, columns=features), pd.DataFrame(Y, columns=names), True),
        (pl.DataFrame(X, schema=features), pl.DataFrame(Y, schema=names), True),
        (words, Y, True),
        (words.astype("category"), Y, True),
    ]:
        found = ILFCompo().fit(X_form, Y_form)
        np.testing.assert_allclose(found.p_values_, expected.p_values_)
        assert found.n_features_in_ == 4
        assert hasattr(found, "feature_names_in_") == named
        if hasattr(Y_form, "columns"):
            assert found.label_names_in_.tolist() == names
            assert found.feature_names_in_.tolist() == features
            assert not hasattr(found.fit(X, Y), "label_names_in_")


def test_columns_of_every_dtype():
    rng = np.random.default_rng(6)
    x = rng.normal(size=(200, 2))
    shared = rng.normal(size=200)
    Y = np.column_stack([x[:, 0] + shared > 0, x[:, 0] + shared > 0.3, x[:, 1] > 0]).astype(int)
    frame = pd.DataFrame(
        {
            "number": pd.array(np.round(9 * x[:, 0]).astype(int), dtype="Int64"),
            "flag": pd.array(x[:, 1] > 0, dtype="boolean"),
            "kind": pd.Categorical(np.where(x[:, 1] > 0, "a", "b")),
            "text": pd.array([f"row {i}" for i in range(200)], dtype="string"),
            "moment": pd.Timestamp("2026-01-01") + pd.to_timedelta(x[:, 0], unit="D"),
        }
    )
    for name in frame.columns:
        frame.loc[3, name] = None
    ilf = ILFCompo().fit(frame, Y)
    assert as_lists(ilf.factors_) == [[0, 1], [2]]
    assert ilf.feature_names_in_.tolist() == list(frame.columns)


def test_categories_and_missing_values():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(300, 2))
    mixed = np.column_stack(
        [x[:, 0].astype(object), np.where(x[:, 1] > 0.0, "left", "right").astype(object)]
    )
    mixed[::9, 0] = None
    mixed[::11, 1] = np.nan
    Y = (x[:, [0, 0, 1]] + rng.normal(size=(300, 1)) * [1.0, 1.0, 0.0] > 0.0).astype(int)
    assert as_lists(ILFCompo().fit(mixed, Y).factors_) == [[0, 1], [2]]
    with pytest.raises(
        ValueError, match=r"^X has missing values: with test='mi' it must not have any; encode"
    ):
        ILFCompo("mi").fit(np.where(x > 1.0, np.nan, 0.0), Y)


def test_rare_categories_have_no_column():
    names = np.array([[f"row {i}", "ab"[i % 2]] for i in range(200)], dtype=object)
    Y = np.column_stack([np.arange(200) % 2, (np.arange(200) + (np.arange(200) < 10)) % 2])
    assert as_lists(ILFCompo().fit(names, Y).factors_) == [[0], [1]]  # given the second column
    assert as_lists(ILFCompo().fit(names[:, :1], Y).factors_) == [[0, 1]]  # nothing is left


def test_columns_with_many_values_are_not_encoded():
    """The indicators of 20 000 levels would need 400 MB."""
    X, Y = np.arange(20_000)[:, None], np.arange(40_000).reshape(20_000, 2) % 7 > 2
    for form in (np.asarray, sparse.csr_array):
        tracemalloc.start()
        try:
            assert ILFCompo().fit(form(X), Y[:, :1]).test_ == "gcm"
            assert tracemalloc.get_traced_memory()[1] < 100e6
        finally:
            tracemalloc.stop()


def test_one_label():
    X, Y = toy(50)
    for y in (Y[:, 0], Y[:, :1]):
        ilf = ILFCompo().fit(X, y)
        assert as_lists(ilf.factors_) == [[0]]
        assert ilf.graph_.shape == (1, 1)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_rows(n):
    X, Y = toy(n)
    ilf = ILFCompo(test="mi").fit(X, Y)
    assert as_lists(ilf.factors_) == [[k] for k in range(6)]


# Estimator


def test_scikit_learn_conventions():
    ilf = ILFCompo("mi", 0.05, correction="bh", max_factor_size=3)
    twin = clone(ilf)
    assert twin is not ilf
    assert twin.get_params() == ilf.get_params()
    assert set(ilf.get_params()) == {
        "test", "alpha", "correction", "max_factor_size", "max_levels", "n_jobs", "random_state",
    }  # fmt: skip
    assert repr(ilf) == "ILFCompo(alpha=0.05, correction='bh', max_factor_size=3, test='mi')"
    X, Y = toy(50)
    assert ilf.fit(X, Y) is ilf
    assert vars(clone(ilf)) == vars(twin)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"test": "nonsense"}, ValueError, r"^test is 'nonsense': it must be one of 'auto', 'mi'"),
        ({"test": 3}, ValueError, r"^test is 3: it must be one of 'auto', 'mi'"),
        ({"alpha": 1.0}, ValueError, r"^alpha is 1.0: it must be a number greater"),
        ({"alpha": None}, TypeError, r"^alpha is None: it must be a number greater"),
        ({"correction": "holm"}, ValueError, r"^correction is 'holm': it must be one of None, 'b"),
        ({"max_factor_size": 0}, ValueError, r"^max_factor_size is 0: it must be an integer"),
        ({"max_factor_size": 2.5}, ValueError, r"^max_factor_size is 2.5: it must be an integer"),
        ({"max_factor_size": True}, ValueError, r"^max_factor_size is True: it must be an int"),
        ({"max_levels": 0}, ValueError, r"^max_levels is 0: it must be an integer"),
        ({"max_levels": 1, "test": "mi"}, ValueError, r"^X\[:, 0\] has 2 levels: discrete featur"),
        ({"n_jobs": 0}, ValueError, r"^n_jobs is 0: it must be None or an integer other than 0"),
    ],
)
def test_invalid_parameters_raise(options, kind, message):
    X, Y = toy(60)
    with pytest.raises(kind, match=message):
        ILFCompo(**options).fit(X, Y)


def test_invalid_data_raise():
    X, Y = toy(60)
    wrong = Y.copy()
    wrong[7, 2] = 2
    for arguments, message in [
        ((X, wrong), r"^Y\[7, 2\] is 2: labels must be 0 or 1"),
        ((X, Y[:50]), r"^Y has 50 rows and X has 60: they must have the same number of rows"),
        ((X, None), r"^Y is None: ILFCompo requires y to be passed"),
        ((np.where(X == 0, np.inf, 0.0), Y), r"Input X contains infinity"),
    ]:
        with pytest.raises(ValueError, match=message):
            ILFCompo().fit(*arguments)
