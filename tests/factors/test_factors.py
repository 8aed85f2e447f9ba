"""Label factors: recovery, grouping against plain loops, the authors' results, and refusals."""

from __future__ import annotations

import itertools
import sys
import types

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.stats import false_discovery_control
from sklearn.base import clone

import fgfm.factors
from benchmarks import reference_factors as reference
from fgfm.factors import (
    GCM,
    ILFCompo,
    MutualInformation,
    PairwiseResult,
    _suitability,
    g_test,
    markov_boundary,
)
from fgfm.factors._graph import edge_p_values, group_labels, published_grouping
from fgfm.factors._suitability import is_discrete, rows_in_populated_strata


def toy(n, seed=0):
    """Labels in factors {0, 3}, {1}, {2, 4, 5}; all of them depend on the features."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 4))
    noise = rng.random((n, 6)) < 0.25
    Y = X[:, [0, 0, 1, 2, 3, 1]] ^ noise
    Y[:, 3] |= Y[:, 0]
    Y[:, 4] &= Y[:, 2]
    Y[:, 5] |= Y[:, 4]
    return X, Y.astype(int)


TRUE = [[0, 3], [1], [2, 4, 5]]


def as_lists(factors):
    return [factor.tolist() for factor in factors]


class Given:
    """A test that gives the p-values that it was given."""

    def __init__(self, p_values, effects=None):
        self.p_values = p_values
        self.effects = -np.asarray(p_values) if effects is None else effects

    def pairs(self, X, Y, *, n_jobs=None, progress=None):
        if progress is not None:
            for done in range(1, 101):
                progress(done, 100)
        return PairwiseResult(np.asarray(self.p_values), np.asarray(self.effects), None)


def fit_given(p_values, effects=None, **options):
    m = len(p_values)
    Y = np.random.default_rng(0).integers(0, 2, (20, m))
    return ILFCompo(Given(p_values, effects), **{"correction": None, **options}).fit(
        np.zeros((20, 1)), Y
    )


def symmetric(m, edges):
    p = np.ones((m, m))
    for (i, j), value in edges.items():
        p[i, j] = p[j, i] = value
    np.fill_diagonal(p, np.nan)
    return p


@pytest.mark.parametrize("test", ["auto", "mi", "moments", "g"])
@pytest.mark.parametrize("method", ["composition", "general"])
def test_recovers_the_factors(test, method):
    X, Y = toy(4000)
    ilf = ILFCompo(test, 0.001, method=method).fit(X, Y)
    assert as_lists(ilf.factors_) == TRUE
    assert as_lists(ilf.markov_boundaries_)[:3] == [[0], [0], [1]]
    assert ilf.cuts_ == []
    assert isinstance(ilf.test_, MutualInformation)


def test_fitted_attributes_fit_together():
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


def test_p_values_are_those_of_single_tests():
    X, Y = toy(300)
    result = MutualInformation().pairs(X, Y)
    for i, j in itertools.permutations(range(6), 2):
        one = g_test(Y[:, j], Y[:, i], X[:, result.markov_boundaries[i]])
        assert result.p_values[i, j] == pytest.approx(one.p_value)
        assert result.effects[i, j] == pytest.approx(one.statistic / 600)


def test_xor_needs_the_general_method():
    """Each pair is independent: without Composition, pairs do not tell."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (1000, 2))
    Y = rng.integers(0, 2, (1000, 4))
    Y[:, 0] = Y[:, 1] ^ Y[:, 2]
    assert as_lists(ILFCompo().fit(X, Y).factors_) == [[0], [1], [2], [3]]
    general = ILFCompo(method="general").fit(X, Y)
    assert as_lists(general.factors_) == [[0, 1, 2], [3]]
    np.testing.assert_array_equal(general.p_values_, general.p_values_.T)
    for order in itertools.permutations(range(4)):
        found = ILFCompo(method="general").fit(X, Y[:, order]).factors_
        assert {frozenset(order[k] for k in f) for f in found} == {
            frozenset({0, 1, 2}),
            frozenset({3}),
        }


def test_general_conditions_on_the_features_of_earlier_labels():
    """Label 1 is an effect of label 0 and feature 1: given it alone, 0 would depend on label 2."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (4000, 2))
    Y = np.empty((4000, 3), dtype=int)
    Y[:, 0] = X[:, 0] ^ (rng.random(4000) < 0.3)
    Y[:, 1] = (X[:, 1] | Y[:, 0]) ^ (rng.random(4000) < 0.05)
    Y[:, 2] = X[:, 1] ^ (rng.random(4000) < 0.05)
    assert g_test(Y[:, 0], Y[:, 2], np.column_stack([X[:, 0], Y[:, 1]])).p_value < 1e-9
    for order in itertools.permutations(range(3)):
        found = ILFCompo(method="general", alpha=0.001).fit(X, Y[:, order]).factors_
        assert sorted(sorted(order[k] for k in f) for f in found) == [[0, 1], [2]]


def test_general_bonferroni_lowers_the_level_of_labels_only():
    X, Y = toy(300)
    plain = ILFCompo(method="general", correction=None).fit(X, Y)
    ilf = ILFCompo(method="general", correction="bonferroni").fit(X, Y)
    assert as_lists(ilf.markov_boundaries_) == as_lists(plain.markov_boundaries_)
    expected = MutualInformation(df="moments").ordered_pairs(X, Y, level=0.01 / 15)
    np.testing.assert_array_equal(ilf.p_values_, expected.p_values)
    none = MutualInformation(df="moments").ordered_pairs(X, Y, level=1e-99)  # none depends
    assert not np.array_equal(none.p_values, plain.p_values_, equal_nan=True)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("df", ["mi", "permutation"])
def test_any_number_of_jobs(n_jobs, df):
    X, Y = toy(120)
    expected = MutualInformation(df=df, n_tables=10, random_state=0).pairs(X, Y)
    found = MutualInformation(df=df, n_tables=10, random_state=0).pairs(X, Y, n_jobs=n_jobs)
    np.testing.assert_array_equal(found.p_values, expected.p_values)
    assert as_lists(found.markov_boundaries) == as_lists(expected.markov_boundaries)
    wider = MutualInformation(df=df, n_tables=10, random_state=1).pairs(X, Y)
    assert np.array_equal(wider.p_values, expected.p_values, equal_nan=True) == (df == "mi")


def test_jobs_and_features_with_different_numbers_of_levels():
    """A feature with three levels in one label's boundary must not change another label's."""
    rng = np.random.default_rng(50)
    n = 150
    X = np.column_stack([rng.integers(0, 2, (n, 4)), rng.integers(0, 3, (n, 1))])
    Y = np.empty((n, 6), dtype=int)
    for i in range(6):
        logit = (X[:, i % 4] - 0.5) * 1.2 + (X[:, (i + 1) % 4] - 0.5)
        logit = logit + ((X[:, 4] - 1) * 1.2 if i % 2 else 0.0)
        Y[:, i] = rng.random(n) < 1.0 / (1.0 + np.exp(-1.3 * logit))
    Y[:, 1] |= Y[:, 0] & (rng.random(n) < 0.5)
    test = MutualInformation(df="moments")
    one, two = test.pairs(X, Y), test.pairs(X, Y, n_jobs=2)
    np.testing.assert_array_equal(one.p_values, two.p_values)
    np.testing.assert_array_equal(one.effects, two.effects)
    assert as_lists(one.markov_boundaries) == as_lists(two.markov_boundaries)
    for i, boundary in enumerate(one.markov_boundaries):
        np.testing.assert_array_equal(markov_boundary(X, Y[:, i], df="moments"), boundary)


def test_groups_of_labels_do_not_matter(monkeypatch):
    X, Y = toy(200)
    expected = MutualInformation().pairs(X, Y)
    monkeypatch.setattr("fgfm.factors.mutual_information._IN_STEP", 2)
    np.testing.assert_array_equal(MutualInformation().pairs(X, Y).p_values, expected.p_values)


def test_permuted_labels_and_rows():
    X, Y = toy(500)
    p = ILFCompo().fit(X, Y).p_values_
    labels, rows = np.array([3, 5, 0, 1, 4, 2]), np.random.default_rng(0).permutation(500)
    permuted = ILFCompo().fit(X[rows], Y[rows][:, labels]).p_values_
    np.testing.assert_allclose(permuted, p[np.ix_(labels, labels)])


def test_forms_of_the_data():
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


def test_one_label():
    X, Y = toy(50)
    for y in (Y[:, 0], Y[:, :1]):
        ilf = ILFCompo().fit(X, y)
        assert as_lists(ilf.factors_) == [[0]]
        assert ilf.graph_.shape == (1, 1)


@pytest.mark.parametrize("method", ["composition", "general"])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_rows(n, method):
    X, Y = toy(n)
    ilf = ILFCompo(test="mi", method=method).fit(X, Y)
    assert as_lists(ilf.factors_) == [[k] for k in range(6)]


def test_constant_labels_never_have_an_edge():
    X, Y = toy(500)
    Y[:, 0], Y[:, 1] = 0, 1
    ilf = ILFCompo().fit(X, Y)
    assert not ilf.graph_.toarray()[:2].any()
    p = symmetric(3, {(0, 1): 1e-9, (1, 2): 1e-9})
    Y = np.random.default_rng(0).integers(0, 2, (20, 3))
    Y[:, 0] = 1
    assert as_lists(ILFCompo(Given(p)).fit(np.zeros((20, 1)), Y).factors_) == [[0], [1, 2]]


def test_rules():
    p = np.ones((3, 3))
    p[0, 1], p[1, 0], p[1, 2] = 0.001, 0.002, 0.003
    np.fill_diagonal(p, np.nan)
    assert as_lists(fit_given(p).factors_) == [[0, 1, 2]]
    assert as_lists(fit_given(p, rule="and").factors_) == [[0, 1], [2]]
    assert as_lists(fit_given(p, rule="and", alpha=0.0015).factors_) == [[0], [1], [2]]


def test_corrections_are_those_of_scipy():
    rng = np.random.default_rng(0)
    p = rng.random((5, 5)) ** 3
    np.fill_diagonal(p, np.nan)
    upper = np.triu_indices(5, 1)
    smaller, larger = np.fmin(p, p.T)[upper], np.fmax(p, p.T)[upper]
    for method in ("bh", "by"):
        for rule, family in (("or", np.minimum(1.0, 2 * smaller)), ("and", larger)):
            np.testing.assert_allclose(
                edge_p_values(p, rule, method)[upper],
                false_discovery_control(family, method=method),
            )
    for rule, family in (("or", 20 * smaller), ("and", 10 * larger)):
        corrected = edge_p_values(p, rule, "bonferroni")
        np.testing.assert_allclose(corrected[upper], np.minimum(1.0, family))
        np.testing.assert_array_equal(corrected, corrected.T)
    np.testing.assert_array_equal(edge_p_values(p, "or")[upper], smaller)
    np.testing.assert_array_equal(edge_p_values(p, "and")[upper], larger)


def test_a_test_without_direction_counts_once():
    p = symmetric(5, {(0, 1): 0.001, (2, 4): 0.02})
    corrected = edge_p_values(p, "or", "bonferroni")
    assert corrected[0, 1] == corrected[1, 0] == pytest.approx(0.01)
    assert corrected[2, 4] == pytest.approx(0.2)
    tested = np.ones((5, 5), dtype=bool)
    tested[3] = tested[:, 3] = False
    corrected = edge_p_values(p, "or", "bonferroni", tested)
    assert corrected[0, 1] == pytest.approx(0.006)
    assert corrected[2, 3] == p[2, 3]


def test_corrections_remove_edges():
    p = symmetric(4, {(0, 1): 0.003, (1, 2): 0.0001, (2, 3): 0.006})
    sizes = {c: len(fit_given(p, correction=c).factors_) for c in (None, "bonferroni", "bh", "by")}
    assert sizes == {None: 1, "bonferroni": 3, "bh": 2, "by": 3}


def cut_one_by_one(p, effects, alpha, limit):
    """Cut the weakest edge of what is too large, again and again."""
    m = len(p)
    edges = [(i, j) for i, j in itertools.combinations(range(m), 2) if p[i, j] <= alpha]
    while True:
        graph = np.zeros((m, m))
        for i, j in edges:
            graph[i, j] = 1
        _, part = connected_components(graph, directed=False)
        sizes = np.bincount(part)
        large = [e for e in edges if sizes[part[e[0]]] > limit]
        if not large:
            return {frozenset(np.flatnonzero(part == k).tolist()) for k in set(part.tolist())}
        edges.remove(min(large, key=lambda e: (-p[e], effects[e], e)))


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_cuts_are_those_of_cutting_one_by_one(seed, limit):
    rng = np.random.default_rng(seed)
    m = 10
    p, effects = np.full((m, m), np.nan), np.full((m, m), np.nan)
    for i, j in itertools.combinations(range(m), 2):  # many ties
        p[i, j] = p[j, i] = 0.9 if rng.random() < 0.6 else rng.integers(0, 3) / 300
        effects[i, j] = effects[j, i] = rng.integers(0, 3)
    found = group_labels(p, effects, 0.01, max_factor_size=limit)
    assert {frozenset(f.tolist()) for f in found.factors} == cut_one_by_one(
        p, effects, 0.01, limit
    )
    assert max(map(len, found.factors)) <= limit
    whole = group_labels(p, effects, 0.01)
    cut = {(i, j) for i, j, _ in found.cuts}
    left = set(zip(*np.nonzero(np.triu(found.graph.toarray())), strict=True))
    assert cut | left == set(zip(*np.nonzero(np.triu(whole.graph.toarray())), strict=True))
    assert not cut & left
    owner = {k: f for f, factor in enumerate(found.factors) for k in factor}
    assert all(owner[i] != owner[j] and value == p[i, j] for i, j, value in found.cuts)
    assert [c.p_value for c in found.cuts] == sorted((c.p_value for c in found.cuts), reverse=True)


def test_cuts_of_a_chain():
    p = symmetric(5, {(0, 1): 1e-9, (1, 2): 1e-3, (2, 3): 1e-5, (3, 4): 1e-4})
    ilf = fit_given(p, max_factor_size=2)
    assert as_lists(ilf.factors_) == [[0, 1], [2, 3], [4]]
    assert [tuple(cut) for cut in ilf.cuts_] == [(1, 2, 1e-3), (3, 4, 1e-4)]
    assert as_lists(fit_given(p, max_factor_size=5).factors_) == [[0, 1, 2, 3, 4]]


def test_cuts_by_effect_where_p_values_are_equal():
    p = symmetric(3, {(0, 1): 0.0, (1, 2): 0.0})
    for weak, factors in [((0, 1), [[0], [1, 2]]), ((1, 2), [[0, 1], [2]])]:
        effects = np.ones((3, 3))
        effects[weak] = effects[weak[::-1]] = 0.5
        assert as_lists(fit_given(p, effects, max_factor_size=2).factors_) == factors


def test_published_grouping_is_not_a_closure():
    p = np.ones((4, 4))
    p[0, 3] = p[1, 3] = p[2, 1] = 0.001  # 1 comes before 3 has joined; (2, 1) is not read
    assert as_lists(published_grouping(p)) == [[0, 3], [1], [2]]
    assert as_lists(fit_given(p).factors_) == [[0, 1, 2, 3]]


def test_auto_chooses_by_the_features(monkeypatch):
    module = types.ModuleType("fgfm.factors.gcm")

    class GCM(Given):
        def __init__(self, random_state=None, n_jobs=None):
            self.random_state, self.n_jobs = random_state, n_jobs
            super().__init__(symmetric(6, {(0, 1): 0.0}))

    module.GCM = GCM
    monkeypatch.setitem(sys.modules, "fgfm.factors.gcm", module)
    monkeypatch.setattr(fgfm.factors, "gcm", module, raising=False)
    X, Y = toy(400)

    def chosen(X, test="auto"):
        ilf = ILFCompo(test, random_state=7, n_jobs=1).fit(X, Y)
        if isinstance(ilf.test_, GCM):
            assert (ilf.test_.random_state, ilf.test_.n_jobs) == (7, 1)
            assert as_lists(ilf.factors_)[0] == [0, 1]
            assert ilf.markov_boundaries_ is None
        return type(ilf.test_).__name__

    assert chosen(X) == "MutualInformation"
    assert chosen(X, "gcm") == "GCM"
    assert chosen(X + 0.5 * X[:, ::-1]) == "GCM"  # not whole numbers
    assert chosen(np.arange(1600).reshape(400, 4)) == "GCM"  # many levels
    assert chosen(np.tile(X, 21)) == "GCM"  # wide
    monkeypatch.setattr("fgfm.factors.ilf.rows_in_populated_strata", lambda X, b: 0.4)
    assert chosen(X) == "GCM"
    assert fgfm.factors.GCM is GCM


def test_default_is_the_calibrated_test():
    X, Y = toy(300)
    default = ILFCompo().fit(X, Y)
    assert default.test_.df == "moments"
    np.testing.assert_array_equal(
        default.p_values_, ILFCompo("moments", random_state=None).fit(X, Y).p_values_
    )


def test_default_is_deterministic():
    X, Y = toy(200)
    X = X + np.random.default_rng(0).random(X.shape)
    p = ILFCompo().fit(X, Y).p_values_
    np.testing.assert_array_equal(ILFCompo().fit(X, Y).p_values_, p)
    np.testing.assert_array_equal(p, p.T)
    other = ILFCompo(random_state=1).fit(X, Y).p_values_
    assert not np.array_equal(other, p, equal_nan=True)


def test_unrelated_labels_stay_apart_by_default():
    """Without a correction one false edge or more is found in every second data set."""
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


def test_what_is_discrete():
    X, _ = toy(100)
    assert is_discrete(X, 2)
    assert not is_discrete(X, 1)
    assert is_discrete(sparse.csr_array(X.astype(float)), 2)
    assert is_discrete(np.array([["a", 1.0], ["b", 2.0]], dtype=object), 2)
    assert not is_discrete(np.array([["a", 1.5], ["b", 2.0]], dtype=object), 2)
    assert not is_discrete(0.5 * X, 5)


def test_rows_in_populated_strata():
    X = np.array([[0, 0]] * 6 + [[1, 0]] * 3 + [[1, 1]] * 1)
    assert rows_in_populated_strata(X, [np.array([0])]) == pytest.approx(0.6)
    assert rows_in_populated_strata(X, [np.array([0]), np.array([], dtype=int)]) == pytest.approx(
        0.8
    )


def test_progress_is_reported(capsys):
    X, Y = toy(60)
    ILFCompo(verbose=1).fit(X, Y)
    assert "[ILFCompo] 6 of 6 steps" in capsys.readouterr().err
    fit_given(symmetric(2, {}), verbose=1)
    assert capsys.readouterr().err.count("\n") == 11
    ILFCompo().fit(X, Y)
    assert capsys.readouterr() == ("", "")


def test_scikit_learn_manners():
    ilf = ILFCompo("mi", 0.05, correction="bh", max_factor_size=3)
    twin = clone(ilf)
    assert twin is not ilf
    assert twin.get_params() == ilf.get_params()
    assert set(ilf.get_params()) == {
        "test", "alpha", "rule", "correction", "max_factor_size", "method", "max_levels",
        "n_jobs", "random_state", "verbose",
    }  # fmt: skip
    assert repr(ilf) == "ILFCompo(alpha=0.05, correction='bh', max_factor_size=3, test='mi')"
    X, Y = toy(50)
    assert ilf.fit(X, Y) is ilf
    assert vars(clone(ilf)) == vars(twin)


REFUSALS = [
    ({"test": "nonsense"}, ValueError, r"^test is 'nonsense': it must be one of 'auto', 'mi'"),
    ({"test": 3}, TypeError, r"^test is 3: .* or an object .* with a method pairs\(X, Y"),
    ({"alpha": 1.0}, ValueError, r"^alpha is 1.0: it must be a number in \(0, 1\)"),
    ({"alpha": None}, TypeError, r"^alpha is None: it must be a number in \(0, 1\)"),
    ({"rule": "xor"}, ValueError, r"^rule is 'xor': it must be one of 'or', 'and'"),
    ({"rule": ["or"]}, ValueError, r"^rule is \['or'\]: it must be one of"),
    ({"correction": "holm"}, ValueError, r"^correction is 'holm': it must be one of None, 'bonf"),
    ({"method": "any"}, ValueError, r"^method is 'any': it must be one of 'composition', 'gen"),
    ({"max_factor_size": 0}, ValueError, r"^max_factor_size is 0: it must be None or an integer"),
    ({"max_factor_size": 2.5}, ValueError, r"^max_factor_size is 2.5: it must be None or an int"),
    ({"max_levels": 0}, ValueError, r"^max_levels is 0: it must be an integer greater than 0"),
    ({"max_levels": 1, "test": "mi"}, ValueError, r"^X\[:, 0\] has 2 levels: discrete features"),
    ({"method": "general", "test": "gcm"}, ValueError, r"^test is 'gcm': with method='general'"),
    ({"method": "general", "correction": "bh"}, ValueError, r"^correction is 'bh': with method="),
    ({"n_jobs": 0}, ValueError, r"^n_jobs is 0: it must be None or an integer other than 0"),
]


@pytest.mark.parametrize(("options", "kind", "sentence"), REFUSALS)
def test_refused_parameters(options, kind, sentence):
    X, Y = toy(60)
    with pytest.raises(kind, match=sentence):
        ILFCompo(**options).fit(X, Y)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_levels_are_counted_before_there_are_indicators(form, monkeypatch):
    """The indicators of a column with thousands of levels would take gigabytes."""

    def refused(X):
        raise AssertionError("encoded")

    monkeypatch.setattr("fgfm.factors.mutual_information.encode", refused)
    X = np.column_stack([np.zeros(30, dtype=int), np.arange(30) // 2])
    for test in (ILFCompo("moments", max_levels=14), MutualInformation(max_levels=14)):
        with pytest.raises(ValueError, match=r"^X\[:, 1\] has 15 levels: .*max_levels=14; "):
            getattr(test, "fit", getattr(test, "pairs", None))(form(X), X[:, :1])


def test_refused_data():
    X, Y = toy(60)
    wrong = Y.copy()
    wrong[7, 2] = 2
    for arguments, sentence in [
        ((X, wrong), r"^Y\[7, 2\] is 2: labels must be 0 or 1"),
        ((X, Y[:50]), r"^Y has 50 rows and X has 60: they must have the same number of rows"),
        ((X, None), r"^Y is None: ILFCompo requires y to be passed"),
        ((np.where(X == 0, np.inf, 0.0), Y), r"Input X contains infinity"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            ILFCompo().fit(*arguments)
    with pytest.raises(ValueError, match=r"^test.pairs gave p_values of shape \(2, 2\): with 6"):
        ILFCompo(Given(np.ones((2, 2)))).fit(X, Y)
    with pytest.raises(AttributeError, match=r"^fgfm.factors has no attribute 'nonsense': "):
        _ = fgfm.factors.nonsense


def stored_cases():
    if not reference.FOLDER.is_dir():
        pytest.skip("the authors' results are not there: FGFM_REFERENCE must name their folder")
    return [case for case in reference.cases() if case.n in (50, 500, 5000)]


def test_p_values_are_the_authors_but_for_their_noise():
    """Their degrees of freedom are the mean of 100 random tables, ours its expectation."""
    off = ~np.eye(8, dtype=bool)
    ours, theirs, inside = [], [], []
    for case in stored_cases():
        result = reference.given_boundaries(case, case.boundaries)
        low, high = reference.monte_carlo_range(result, 5.0)
        ours.append(result.p_value[off])
        theirs.append(case.p_values[off])
        inside.append(((low - 1e-9 <= case.p_values) & (case.p_values <= high + 1e-9))[off])
    ours, theirs, inside = (np.concatenate(part) for part in (ours, theirs, inside))
    assert inside.mean() > 0.998
    assert np.corrcoef(ours, theirs)[0, 1] > 0.99
    assert np.abs(ours - theirs).mean() < 0.025
    assert ((ours <= 0.01) != (theirs <= 0.01)).mean() < 0.01


def test_boundaries_and_factors_are_the_authors_but_for_their_noise():
    same, equal, total = 0, 0, 0
    for case in stored_cases():
        ilf = ILFCompo("mi", correction=None).fit(case.X, case.Y)
        pairs = zip(ilf.markov_boundaries_, case.boundaries, strict=True)
        same += sum(np.array_equal(a, b) for a, b in pairs)
        result = reference.given_boundaries(case, case.boundaries)
        groups = sorted(tuple(g.tolist()) for g in published_grouping(result.p_value))
        equal += groups == case.factors
        total += 1
    assert same >= 0.95 * 8 * total
    assert equal >= 0.9 * total


def test_names_and_gaps_are_read_as_numbers():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(300, 2))
    words = np.where(x[:, 1] > 0.0, "left", "right").astype(object)
    mixed = np.column_stack([x[:, 0].astype(object), words])
    mixed[::9, 0] = None
    mixed[::11, 1] = np.nan
    numbers = _suitability.as_numbers(mixed)
    assert numbers.shape == (300, 5)  # a gap, its number; "left", "nan", "right"
    assert numbers.dtype == np.float64
    gap = numbers[:, 0] == 1.0
    assert (np.flatnonzero(gap) == np.arange(0, 300, 9)).all()
    assert np.allclose(numbers[gap, 1], numbers[~gap, 1].mean())
    assert (numbers[:, 2:].sum(axis=1) == 1.0).all()
    Y = (x[:, [0, 0, 1]] + rng.normal(size=(300, 1)) * [1.0, 1.0, 0.0] > 0.0).astype(int)
    assert [f.tolist() for f in ILFCompo().fit(mixed, Y).factors_] == [[0, 1], [2]]
    with pytest.raises(
        ValueError, match=r"^X has missing values: with test='mi' .* it must have n"
    ):
        ILFCompo("mi").fit(np.where(x > 1.0, np.nan, 0.0), Y)


def test_columns_with_many_values_are_counted_before_they_are_encoded(monkeypatch):
    def never(X):
        raise AssertionError("a table of n x levels was made")

    monkeypatch.setattr(_suitability, "encode", never)
    many = np.column_stack([np.arange(200), np.arange(200) % 2])
    assert not is_discrete(many, 10)
    assert not is_discrete(sparse.csr_array(many), 10)
    assert is_discrete(many[:, 1:], 2)
    assert is_discrete(sparse.csr_array(many[:, 1:]), 2)
    assert not is_discrete(sparse.csr_array(many[:, 1:] * [1]) + sparse.csr_array(many[:, 1:]), 1)


def test_frames_of_every_dtype():
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
    assert [f.tolist() for f in ilf.factors_] == [[0, 1], [2]]
    assert ilf.feature_names_in_.tolist() == list(frame.columns)
    numbers = _suitability.as_numbers(ilf._read_features(frame))
    assert numbers.shape == (200, 2 + 2 + 2 + 0 + 2)  # texts that occur once tell nothing
    assert np.isfinite(numbers).all()
    mixed = np.array([["a", 1.5], [2, 2.5], [None, 3.5]] * 4, dtype=object)
    assert np.isfinite(_suitability.as_numbers(mixed)).all()


def test_a_test_without_a_seed_gets_one():
    rng = np.random.default_rng(7)
    X, Y = rng.normal(size=(80, 3)), rng.integers(0, 2, (80, 3))
    test = GCM()
    first, second = (ILFCompo(test, random_state=0).fit(X, Y).p_values_ for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert test.random_state is None
    with pytest.raises(TypeError, match=r"test is .*GCM.*: it must be .* \(an instance\)"):
        ILFCompo(GCM).fit(X, Y)
    with pytest.raises(ValueError, match="n_jobs is 0: it must be None or an integer other than"):
        ILFCompo(n_jobs=0).fit(X, Y)
