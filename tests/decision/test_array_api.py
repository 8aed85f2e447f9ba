"""Arrays of other libraries: the same decisions as with NumPy, on the device of the arrays.

Every installed library is tested: array-api-strict, PyTorch, JAX.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from cases import MARGINALS, possible_rows, random_factors
from fgfm import decision
from fgfm.decision import _marginals_array_api as marginal_arrays
from fgfm.decision._measures import MEASURES

pytest.importorskip("array_api_compat", reason="array-api-compat is not installed: fgfm[array]")

FLOAT32 = 2e-5  # the documented bound on the relative error
OPTIONS = [{}, {"zero_division": 0.0}, {"zero_division": 0.4}, {"nonempty": True}]
every_beta = pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
every_option = pytest.mark.parametrize("kwargs", OPTIONS, ids=str)


class Library:
    """Conversion to arrays of a library, and comparison with NumPy."""

    def __init__(self, name):
        self.name = name
        self.module = importlib.import_module(name)
        self.doubles = name != "jax.numpy" or self.module.zeros(1, dtype=float).dtype == float

    def array(self, values, dtype=None):
        values = np.asarray(values)
        if dtype is None and values.dtype == np.float64 and not self.doubles:
            dtype = "float32"
        kind = None if dtype is None else getattr(self.module, dtype)
        if self.name == "torch":
            return self.module.as_tensor(values, dtype=kind)
        return self.module.asarray(values, dtype=kind)

    def check(self, decided, expected):
        """Assert that a decision is of this library, and equals that of NumPy."""
        labels, value = decided
        assert type(labels) is type(value) is type(self.array([0.0]))
        assert labels.dtype == self.module.int8
        labels, value = np.asarray(labels), np.asarray(value)
        tolerance = 1e-12 if value.dtype == np.float64 else FLOAT32
        np.testing.assert_allclose(value, expected.expected_f, rtol=tolerance, atol=1e-30)
        if value.dtype == np.float64:
            np.testing.assert_array_equal(labels, expected.labels)


def _library(name):
    if name == "jax.numpy":
        pytest.importorskip("jax", reason="JAX is not installed")
    else:
        pytest.importorskip(name, reason=f"{name} is not installed")
    return Library(name)


@pytest.fixture(params=["array_api_strict", "torch", "jax.numpy"])
def library(request):
    return _library(request.param)


@pytest.fixture(params=["array_api_strict", "torch"])
def exact_library(request):
    return _library(request.param)


# Against enumeration, and against NumPy ----------------------------------------------------------


@every_beta
@every_option
@pytest.mark.parametrize("name", MARGINALS)
def test_decision_from_marginals_is_optimal(exact_library, name, beta, kwargs):
    p = possible_rows(MARGINALS[name], kwargs.get("nonempty", False))
    decided = decision.from_marginals(exact_library.array(p), beta=beta, **kwargs)
    exact_library.check(decided, decision.from_marginals(p, beta=beta, **kwargs))
    host = np.asarray(decided.labels), np.asarray(decided.expected_f)
    oracle.check_decision(host, oracle.independent_joint(p), beta=beta, **kwargs)


@settings(deadline=None, max_examples=40, derandomize=True)
@given(
    p=st.lists(
        st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 1.0, 0.5, 1e-300, 1 / 64])),
        min_size=1,
        max_size=7,
    ),
    beta=st.floats(0.1, 10.0),
    nonempty=st.booleans(),
)
def test_any_decision_from_marginals_is_optimal(p, beta, nonempty):
    strict = _library("array_api_strict")
    p = np.array([p])
    nonempty = nonempty and bool(p.any())
    labels, expected = decision.from_marginals(strict.array(p), beta=beta, nonempty=nonempty)
    value = oracle.expected_f(oracle.independent_joint(p), beta, 1.0, nonempty)[0]
    chosen = value[np.asarray(labels)[0] @ (1 << np.arange(p.shape[1])[::-1])]
    assert float(expected[0]) == pytest.approx(value.max(), rel=1e-11, abs=1e-305)
    assert chosen == pytest.approx(value.max(), rel=1e-11, abs=1e-305)


@pytest.mark.parametrize(("m", "power"), [(30, 1), (100, 9), (300, 1), (700, 40)])
@pytest.mark.parametrize("nonempty", [False, True])
def test_many_labels_are_decided_as_by_numpy(exact_library, m, power, nonempty):
    p = np.random.default_rng(m).random((5, m)) ** power
    decided = decision.from_marginals(exact_library.array(p), nonempty=nonempty)
    exact_library.check(decided, decision.from_marginals(p, nonempty=nonempty))


def test_every_library_decides_as_numpy(library):
    """JAX compiles each operation for each shape, so that it has few other tests."""
    p = np.random.default_rng(0).random((5, 40)) ** 2
    library.check(decision.from_marginals(library.array(p)), decision.from_marginals(p))
    draws = np.random.default_rng(1).integers(0, 2, size=(5, 4, 6))
    library.check(decision.from_samples(library.array(draws)), decision.from_samples(draws))
    sets, proba = oracle.random_joint(np.random.default_rng(2), 5, 3)
    decided = decision.from_joint(library.array(sets), library.array(proba))
    library.check(decided, decision.from_joint(sets, proba))


@every_beta
@every_option
@pytest.mark.parametrize("m", [1, 2, 5, 8])
def test_decision_from_cardinalities_and_joints_is_optimal(exact_library, m, beta, kwargs):
    lib = exact_library
    joint = oracle.random_joint(np.random.default_rng(m), 4, m)
    P = oracle.cardinality_matrix(*joint)
    d = oracle.cardinality_distribution(*joint)
    for decided in (
        decision.from_cardinalities(lib.array(P), beta=beta, **kwargs),
        decision.from_cardinalities(lib.array(P), distribution=lib.array(d), beta=beta, **kwargs),
        decision.from_joint(lib.array(joint[0]), lib.array(joint[1]), beta=beta, **kwargs),
    ):
        host = np.asarray(decided.labels), np.asarray(decided.expected_f)
        oracle.check_decision(host, joint, beta=beta, **kwargs)


@every_beta
@every_option
@pytest.mark.parametrize("sizes", [[3], [1, 1, 1], [1, 4], [2, 3, 1], [4, 4]])
def test_decision_from_factors_is_optimal(exact_library, sizes, beta, kwargs):
    lib = exact_library
    joints, factors, Ps = random_factors(np.random.default_rng(sum(sizes)), 3, sizes)
    ds = [oracle.cardinality_distribution(*joint) for joint in joints]
    arrays = [lib.array(P) for P in Ps]
    joint = oracle.product_joint(joints, factors)
    for given_ds in (None, [lib.array(d) for d in ds]):
        decided = decision.from_factors(
            arrays, factors, distributions=given_ds, beta=beta, **kwargs
        )
        host = np.asarray(decided.labels), np.asarray(decided.expected_f)
        oracle.check_decision(host, joint, beta=beta, **kwargs)


@every_beta
@every_option
def test_samples_are_decided_as_by_numpy(exact_library, beta, kwargs):
    library = exact_library
    rng = np.random.default_rng(3)
    draws = rng.integers(0, 2, size=(6, 9, 5)) * rng.integers(0, 2, size=(6, 9, 1))
    draws[:, 0] = 1
    decided = decision.from_samples(library.array(draws), beta=beta, **kwargs)
    library.check(decided, decision.from_samples(draws, beta=beta, **kwargs))
    decided = decision.from_samples(library.array(draws == 1), beta=beta, **kwargs)
    library.check(decided, decision.from_samples(draws, beta=beta, **kwargs))


def test_many_factors_are_decided_as_by_numpy(library):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 4, size=25)
    joints, factors, Ps = random_factors(rng, 7, sizes)
    ds = [oracle.cardinality_distribution(*joint) for joint in joints]
    Ps = [P * rng.random() for P in Ps]
    decided = decision.from_factors([library.array(P) for P in Ps], factors)
    library.check(decided, decision.from_factors(Ps, factors))
    arrays = [library.array(P) for P in Ps], [library.array(d) for d in ds]
    decided = decision.from_factors(arrays[0], factors, distributions=arrays[1])
    library.check(decided, decision.from_factors(Ps, factors, distributions=ds))


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
def test_factors_of_different_dtypes(exact_library, dtype):
    lib = exact_library
    P, certain = np.full((2, 1, 1), 0.3), np.array([[[0]], [[1]]])
    decided = decision.from_factors([lib.array(P), lib.array(certain, dtype)], [[1], [0]])
    lib.check(decided, decision.from_factors([P, certain], [[1], [0]]))


# Ties, blocks, precision -------------------------------------------------------------------------


def test_ties_are_broken_as_by_numpy(exact_library):
    lib = exact_library
    p = np.round(np.random.default_rng(5).random((60, 9)), 1)
    lib.check(decision.from_marginals(lib.array(p)), decision.from_marginals(p))
    draws = (np.random.default_rng(6).random((30, 4, 6)) < 0.5).astype(int)
    lib.check(decision.from_samples(lib.array(draws)), decision.from_samples(draws))
    sets = np.eye(5, dtype=int)
    even = np.full((1, 5), 0.2)
    lib.check(
        decision.from_joint(lib.array(sets), lib.array(even)), decision.from_joint(sets, even)
    )


def test_blocks_do_not_change_the_decision(exact_library, monkeypatch):
    """With the real work space of 256 MiB, several blocks would take minutes."""
    rng = np.random.default_rng(1)
    p = rng.random((50, 20)) ** 3
    _, factors, Ps = random_factors(rng, 50, [2, 1, 3])
    Y = rng.integers(0, 2, size=(50, 6, 4))
    monkeypatch.setattr("fgfm.decision._array_api.problem.work_bytes", lambda backend: 20_000)
    lib = exact_library
    lib.check(decision.from_marginals(lib.array(p)), decision.from_marginals(p))
    lib.check(decision.from_samples(lib.array(Y)), decision.from_samples(Y))
    decided = decision.from_factors([lib.array(P) for P in Ps], factors)
    lib.check(decided, decision.from_factors(Ps, factors))


def test_arrays_stay_on_their_device(monkeypatch):
    """array-api-strict raises if arrays of two devices are combined."""
    strict = _library("array_api_strict").module
    other = strict.Device("device1")

    def on(values):
        return strict.asarray(values, device=other)

    # allow explicit transfers to the host, as from a GPU
    kind = type(on([0.0]))
    monkeypatch.setattr(kind, "__array__", lambda array, **_: array._array)
    monkeypatch.delattr(kind, "__buffer__", raising=False)
    rng = np.random.default_rng(0)
    joints, factors, Ps = random_factors(rng, 3, [2, 1])
    ds = [oracle.cardinality_distribution(*joint) for joint in joints]
    sets, proba = oracle.random_joint(rng, 3, 3)
    for decided in (
        decision.from_marginals(on(rng.random((3, 9))), nonempty=True),
        decision.from_marginals(on(np.zeros((0, 9)))),
        decision.from_cardinalities(on(Ps[0]), distribution=on(ds[0])),
        decision.from_factors([on(P) for P in Ps], factors, distributions=[on(d) for d in ds]),
        decision.from_samples(on(rng.integers(0, 2, size=(3, 4, 5)))),
        decision.from_joint(on(sets), on(proba)),
    ):
        assert decided.labels.device == decided.expected_f.device == other


def test_no_rows(library):
    for decided, m in (
        (decision.from_marginals(library.array(np.zeros((0, 3)))), 3),
        (decision.from_cardinalities(library.array(np.zeros((0, 2, 2)))), 2),
        (decision.from_samples(library.array(np.zeros((0, 4, 5)))), 5),
    ):
        assert tuple(decided.labels.shape) == (0, m)
        assert tuple(decided.expected_f.shape) == (0,)


@pytest.mark.parametrize("m", [200, 1000, 3000])
def test_float32_of_equal_labels(exact_library, m):
    """Their rounding errors all have one sign, so that the error is largest."""
    p = np.repeat(np.linspace(0.1, 1.0, 10, dtype=np.float32)[:, None], m, axis=1)
    stated = decision.from_marginals(exact_library.array(p)).expected_f
    assert stated.dtype == exact_library.module.float32
    best = decision.from_marginals(p.astype(np.float64)).expected_f
    np.testing.assert_allclose(np.asarray(stated), best, rtol=max(FLOAT32, 1e-7 * m))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("beta", [1e-50, 1e20, 1e50])
def test_extreme_betas(exact_library, beta, dtype):
    """float32 cannot represent the squares."""
    rng = np.random.default_rng(4)
    _, factors, Ps = random_factors(rng, 6, [3, 1, 2])
    sets, proba = oracle.random_joint(rng, 6, 4)
    draws = rng.integers(0, 2, size=(6, 5, 4))
    for call, values in (
        (decision.from_marginals, [rng.random((6, 5))]),
        (decision.from_cardinalities, [Ps[0]]),
        (lambda *Ps, **kwargs: decision.from_factors(Ps, factors, **kwargs), Ps),
        (decision.from_samples, [draws]),
        (decision.from_joint, [sets, proba]),
    ):
        arrays = [exact_library.array(a, dtype) for a in values]
        exact_library.check(call(*arrays, beta=beta), call(*values, beta=beta))


@every_beta
@pytest.mark.parametrize(("m", "power"), [(8, 1), (200, 1), (1000, 1), (1000, 20), (3000, 3)])
def test_float32_is_within_the_documented_error(exact_library, m, power, beta):
    """The stated expectation, and the value of the decided set."""
    library = exact_library
    p = (np.random.default_rng(m).random((4, m)) ** power).astype(np.float32)
    labels, stated = decision.from_marginals(library.array(p, "float32"), beta=beta)
    assert stated.dtype == library.module.float32
    best = decision.from_marginals(p.astype(np.float64), beta=beta).expected_f
    np.testing.assert_allclose(np.asarray(stated), best, rtol=FLOAT32)
    if beta == 1.0:
        for row, chosen in enumerate(np.asarray(labels)):
            value = oracle.independent_values(p[row].astype(np.float64))[chosen.sum() - 1]
            assert value >= best[row] * (1.0 - FLOAT32)
            assert p[row][chosen == 1].min() >= p[row][chosen == 0].max()


def test_float32_of_factors_and_cardinalities(library):
    rng = np.random.default_rng(2)
    _, factors, Ps = random_factors(rng, 6, [3, 1, 4])
    singles = [P.astype(np.float32) for P in Ps]
    decided = decision.from_factors([library.array(P, "float32") for P in Ps], factors)
    library.check(decided, decision.from_factors(singles, factors))
    assert decided.expected_f.dtype == library.module.float32
    decided = decision.from_cardinalities(library.array(Ps[2], "float32"))
    library.check(decided, decision.from_cardinalities(singles[2]))


def test_tiny_given_probability_of_no_label_is_kept(exact_library):
    """It must not be computed as 1 minus the sum of the others, which is 0."""
    P, d = np.zeros((1, 1, 1)), np.array([[1e-17, 1.0]])
    decided = decision.from_factors(
        [exact_library.array(P)] * 2, [[0], [1]], distributions=[exact_library.array(d)] * 2
    )
    assert float(decided.expected_f[0]) == pytest.approx(1e-34, rel=1e-12, abs=0.0)


def test_tolerance_is_that_of_the_least_precise_array(exact_library):
    lib = exact_library
    P = np.array([[[0.3, 0.7], [0.3, 0.7000001]]], dtype=np.float32)
    d = np.array([[0.0, 0.3, 0.7]])
    decided = decision.from_cardinalities(lib.array(P), distribution=lib.array(d))
    lib.check(decided, decision.from_cardinalities(P, distribution=d))


def test_every_measure_has_an_implementation():
    assert marginal_arrays.MEASURES.keys() == MEASURES.keys()


# Errors ------------------------------------------------------------------------------------------


def invalid_calls(lib):
    half, P = np.full((3, 4), 0.5), np.full((3, 2, 2), 0.1)

    def wrong(array, index, value):
        array = array.copy()
        array[index] = value
        return lib.array(array)

    marginals, cardinalities = decision.from_marginals, decision.from_cardinalities
    rule = "probabilities must lie in [0, 1]"
    return [
        (lambda: marginals(wrong(half, (1, 2), np.nan)), f"proba[1, 2] is nan: {rule}"),
        (lambda: marginals(wrong(half, (2, 0), 1.5)), f"proba[2, 0] is 1.5: {rule}"),
        (lambda: cardinalities(wrong(P, (1, 0, 1), -1.0)), f"P[1, 0, 1] is -1.0: {rule}"),
        (lambda: cardinalities(wrong(P, (1, 0, 1), 1.0)), "P[1, 0] sums to 1.1 over"),
        (lambda: cardinalities(wrong(P, (2, 0, 0), 0.9)), "P[2] implies d_0 = -0.1: the prob"),
        (lambda: cardinalities(lib.array(half)), "P has shape (3, 4): it must have 3 dimensions"),
        (lambda: marginals(lib.array(np.zeros((2, 0)))), "it must have at least one label"),
        (
            lambda: decision.from_samples(wrong(P, (0, 1, 1), 0.1)),
            "samples[0, 0, 0] is 0.1: labels must be 0 or 1",
        ),
        (
            lambda: decision.from_factors(
                [lib.array(P), wrong(P, (2, 1, 0), 7.0)], [[0, 1], [2, 3]]
            ),
            f"Ps[1][2, 1, 0] is 7.0: {rule}",
        ),
        (
            lambda: cardinalities(lib.array(P), distribution=lib.array(np.full((3, 3), 0.2))),
            "distribution[0] sums to 0.6: the probabilities of a row must sum to 1",
        ),
        (
            lambda: decision.from_joint(lib.array(np.eye(3)), lib.array(half)),
            "proba has 4 columns and labelsets has 3 rows",
        ),
    ]


@pytest.mark.parametrize("average", ["samples", "macro", "micro"])
def test_invalid_places_are_those_of_the_array(library, average):
    proba = np.full((30, 4), 0.25)
    proba[20, 3] = 1.5
    message = r"^proba\[{}\] is 1.5: probabilities must lie in \[0, 1\]$"
    with pytest.raises(ValueError, match=message.format("20, 3")):
        decision.from_marginals(library.array(proba), average=average)
    with pytest.raises(ValueError, match=message.format("20")):
        decision.from_marginals(library.array(proba[:, 3]))


@pytest.mark.parametrize("case", range(11))
def test_invalid_values_raise_as_with_numpy(exact_library, case):
    call, message = invalid_calls(exact_library)[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_other_libraries_and_dtypes_raise(exact_library):
    P, d = np.full((3, 2, 2), 0.1), np.full((3, 3), 1 / 3)
    with pytest.raises(TypeError, match=r"distribution is a numpy ndarray and P .*one library"):
        decision.from_cardinalities(exact_library.array(P), distribution=d)
    with pytest.raises(TypeError, match=r"has dtype .*complex.*: it must hold real numbers"):
        decision.from_marginals(exact_library.array(np.ones((2, 2), dtype=complex)))


def test_lists_of_arrays_raise(exact_library):
    """NumPy would convert them, and the decision would be of another library."""
    lib = exact_library
    row, table = lib.array([0.5, 0.5]), lib.array(np.full((2, 2), 0.1))
    for call, name in (
        (lambda: decision.from_marginals([row, row]), "proba"),
        (lambda: decision.from_marginals([[row[0], row[1]]]), "proba"),
        (lambda: decision.from_cardinalities((table, table)), "P"),
        (lambda: decision.from_samples([table, table]), "samples"),
        (lambda: decision.from_joint([row, row], [[0.5, 0.5]]), "labelsets"),
        (lambda: decision.from_factors([[table]], [[0, 1]]), r"Ps\[0\]"),
    ):
        with pytest.raises(TypeError, match=f"^{name} is a list with arrays of .*; stack them"):
            call()


def test_rows_that_contradict_nonempty_warn(exact_library):
    p = np.array([[0.5, 0.0], [0.0, 0.0]])
    with pytest.warns(UserWarning, match=r"nonempty=True: 1, the first is row 1; they get"):
        labels, expected = decision.from_marginals(exact_library.array(p), nonempty=True)
    assert not np.asarray(labels)[1].any()
    assert np.isnan(np.asarray(expected)).tolist() == [False, True]


def test_no_array_library_is_imported():
    code = (
        "import sys, fgfm.decision\n"
        "fgfm.decision.from_marginals([[0.5]])\n"
        "print(*{'array_api_compat', 'cupy', 'jax', 'torch', 'triton'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


# JAX ---------------------------------------------------------------------------------------------


def test_traced_array_raises():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    with pytest.raises(TypeError, match="proba is traced by JAX: it must have values, so decide"):
        jax.jit(decision.from_marginals)(jax.numpy.ones((2, 3)))
