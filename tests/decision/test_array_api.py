"""Arrays of other libraries: the same decisions, in kind, where the arrays are.

Every library that is installed is tested: the array API's own strict one, PyTorch, JAX.
"""

from __future__ import annotations

import importlib
import pickle
import re
import subprocess
import sys
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from cases import MARGINALS
from fgfm import decision
from fgfm._kernels import factors as factor_kernels
from fgfm._kernels import power_sums, quadrature
from fgfm.decision import _factors_array_api as factor_arrays
from fgfm.decision import _marginals_array_api as marginal_arrays

pytest.importorskip("array_api_compat", reason="array-api-compat is not installed: fgfm[array]")

FLOAT32 = 2e-5  # the stated bound on the relative error
BETAS = [0.5, 1.0, 2.0]
OPTIONS = [{}, {"zero_division": 0.0}, {"zero_division": 0.4}, {"nonempty": True}]
objectives = pytest.mark.parametrize("beta", BETAS)
options = pytest.mark.parametrize("kwargs", OPTIONS, ids=str)


class Library:
    """How to make and read arrays of a library."""

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
        """Assert that a decision is of this library, and equals one of NumPy."""
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


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed: fgfm[torch]")


@pytest.fixture(params=["array_api_strict", "torch"])
def exact_library(request):
    return _library(request.param)


def possible(p, kwargs):
    return p[p.max(axis=1) > 0.0] if kwargs.get("nonempty") else p


def random_factors(rng, n, sizes):
    joints = [oracle.random_joint(rng, n, size) for size in sizes]
    factors = np.split(rng.permutation(sum(sizes)), np.cumsum(sizes)[:-1])
    Ps = [oracle.cardinality_matrix(*joint) for joint in joints]
    ds = [oracle.cardinality_distribution(*joint) for joint in joints]
    return joints, [f.tolist() for f in factors], Ps, ds


# Against enumeration, and against NumPy ----------------------------------------------------------


@objectives
@options
@pytest.mark.parametrize("name", MARGINALS)
def test_marginals(exact_library, name, beta, kwargs):
    p = possible(MARGINALS[name], kwargs)
    decided = decision.from_marginals(exact_library.array(p), beta=beta, **kwargs)
    exact_library.check(decided, decision.from_marginals(p, beta=beta, **kwargs))
    host = np.asarray(decided.labels), np.asarray(decided.expected_f)
    oracle.check_decision(host, oracle.independent_joint(p), beta=beta, **kwargs)


@settings(deadline=None, max_examples=40)
@given(
    p=st.lists(
        st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 1.0, 0.5, 1e-300, 1 / 64])),
        min_size=1,
        max_size=7,
    ),
    beta=st.floats(0.1, 10.0),
    nonempty=st.booleans(),
)
def test_any_marginals(p, beta, nonempty):
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
def test_many_labels(exact_library, m, power, nonempty):
    p = np.random.default_rng(m).random((5, m)) ** power
    decided = decision.from_marginals(exact_library.array(p), nonempty=nonempty)
    exact_library.check(decided, decision.from_marginals(p, nonempty=nonempty))


def test_every_library(library):
    """JAX compiles each operation for each shape: it gets this test, and few others."""
    p = np.random.default_rng(0).random((5, 40)) ** 2
    library.check(decision.from_marginals(library.array(p)), decision.from_marginals(p))
    draws = np.random.default_rng(1).integers(0, 2, size=(5, 4, 6))
    library.check(decision.from_samples(library.array(draws)), decision.from_samples(draws))
    sets, proba = oracle.random_joint(np.random.default_rng(2), 5, 3)
    decided = decision.from_joint(library.array(sets), library.array(proba))
    library.check(decided, decision.from_joint(sets, proba))


@objectives
@options
@pytest.mark.parametrize("m", [1, 2, 5, 8])
def test_joints(exact_library, m, beta, kwargs):
    """The same distribution by three routes."""
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


@objectives
@options
@pytest.mark.parametrize("sizes", [[3], [1, 1, 1], [1, 4], [2, 3, 1], [4, 4]])
def test_factors(exact_library, sizes, beta, kwargs):
    lib = exact_library
    joints, factors, Ps, ds = random_factors(np.random.default_rng(sum(sizes)), 3, sizes)
    arrays = [lib.array(P) for P in Ps]
    joint = oracle.product_joint(joints, factors)
    for given_ds in (None, [lib.array(d) for d in ds]):
        decided = decision.from_factors(
            arrays, factors, distributions=given_ds, beta=beta, **kwargs
        )
        host = np.asarray(decided.labels), np.asarray(decided.expected_f)
        oracle.check_decision(host, joint, beta=beta, **kwargs)


@objectives
@options
def test_samples(exact_library, beta, kwargs):
    library = exact_library
    rng = np.random.default_rng(3)
    draws = rng.integers(0, 2, size=(6, 9, 5)) * rng.integers(0, 2, size=(6, 9, 1))
    draws[:, 0] = 1
    decided = decision.from_samples(library.array(draws), beta=beta, **kwargs)
    library.check(decided, decision.from_samples(draws, beta=beta, **kwargs))
    decided = decision.from_samples(library.array(draws == 1), beta=beta, **kwargs)
    library.check(decided, decision.from_samples(draws, beta=beta, **kwargs))


def test_many_factors(library):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 4, size=25)
    _, factors, Ps, ds = random_factors(rng, 7, sizes)
    Ps = [P * rng.random() for P in Ps]
    decided = decision.from_factors([library.array(P) for P in Ps], factors)
    library.check(decided, decision.from_factors(Ps, factors))
    arrays = [library.array(P) for P in Ps], [library.array(d) for d in ds]
    decided = decision.from_factors(arrays[0], factors, distributions=arrays[1])
    library.check(decided, decision.from_factors(Ps, factors, distributions=ds))


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
def test_factors_of_different_types(exact_library, dtype):
    lib = exact_library
    P, certain = np.full((2, 1, 1), 0.3), np.array([[[0]], [[1]]])
    decided = decision.from_factors([lib.array(P), lib.array(certain, dtype)], [[1], [0]])
    lib.check(decided, decision.from_factors([P, certain], [[1], [0]]))


def test_one_array_of_factors(exact_library):
    Ps = np.random.default_rng(0).random((5, 3, 2, 2)) / 4.0
    factors = np.arange(10).reshape(5, 2).tolist()
    decided = decision.from_factors(exact_library.array(Ps), factors)
    exact_library.check(decided, decision.from_factors(Ps, factors))


# Ties, blocks, precision -------------------------------------------------------------------------


def test_ties(exact_library):
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


def test_blocks_do_not_show(exact_library, monkeypatch):
    rng = np.random.default_rng(1)
    p = rng.random((50, 20)) ** 3
    _, factors, Ps, _ = random_factors(rng, 50, [2, 1, 3])
    Y = rng.integers(0, 2, size=(50, 6, 4))
    monkeypatch.setattr("fgfm.decision._array_api.selection.work_bytes", lambda space: 20_000)
    lib = exact_library
    lib.check(decision.from_marginals(lib.array(p)), decision.from_marginals(p))
    lib.check(decision.from_samples(lib.array(Y)), decision.from_samples(Y))
    decided = decision.from_factors([lib.array(P) for P in Ps], factors)
    lib.check(decided, decision.from_factors(Ps, factors))


def test_arrays_stay_on_their_device(monkeypatch):
    """The strict library refuses what would mix its device with the default one."""
    strict = _library("array_api_strict").module
    other = strict.Device("device1")

    def on(values):
        return strict.asarray(values, device=other)

    # to the host goes, as from a GPU, what is asked for
    kind = type(on([0.0]))
    monkeypatch.setattr(kind, "__array__", lambda array, **_: array._array)
    monkeypatch.delattr(kind, "__buffer__", raising=False)
    rng = np.random.default_rng(0)
    _, factors, Ps, ds = random_factors(rng, 3, [2, 1])
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
    """Their roundings all go one way: the error is the largest."""
    p = np.repeat(np.linspace(0.1, 1.0, 10, dtype=np.float32)[:, None], m, axis=1)
    claimed = decision.from_marginals(exact_library.array(p)).expected_f
    assert claimed.dtype == exact_library.module.float32
    best = decision.from_marginals(p.astype(np.float64)).expected_f
    np.testing.assert_allclose(np.asarray(claimed), best, rtol=max(FLOAT32, 1e-7 * m))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("beta", [1e-50, 1e20, 1e50])
def test_any_beta(exact_library, beta, dtype):
    """The square of these does not fit float32."""
    rng = np.random.default_rng(4)
    _, factors, Ps, _ = random_factors(rng, 6, [3, 1, 2])
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


@objectives
@pytest.mark.parametrize(("m", "power"), [(8, 1), (200, 1), (1000, 1), (1000, 20), (3000, 3)])
def test_float32(exact_library, m, power, beta):
    """What is claimed, and what the decided set is worth, are within the stated bound."""
    library = exact_library
    p = (np.random.default_rng(m).random((4, m)) ** power).astype(np.float32)
    labels, claimed = decision.from_marginals(library.array(p, "float32"), beta=beta)
    assert claimed.dtype == library.module.float32
    best = decision.from_marginals(p.astype(np.float64), beta=beta).expected_f
    np.testing.assert_allclose(np.asarray(claimed), best, rtol=FLOAT32)
    if beta == 1.0:
        for row, chosen in enumerate(np.asarray(labels)):
            worth = oracle.independent_values(p[row].astype(np.float64))[chosen.sum() - 1]
            assert worth >= best[row] * (1.0 - FLOAT32)
            assert p[row][chosen == 1].min() >= p[row][chosen == 0].max()


def test_float32_of_other_routes(library):
    rng = np.random.default_rng(2)
    _, factors, Ps, _ = random_factors(rng, 6, [3, 1, 4])
    singles = [P.astype(np.float32) for P in Ps]
    decided = decision.from_factors([library.array(P, "float32") for P in Ps], factors)
    library.check(decided, decision.from_factors(singles, factors))
    assert decided.expected_f.dtype == library.module.float32
    decided = decision.from_cardinalities(library.array(Ps[2], "float32"))
    library.check(decided, decision.from_cardinalities(singles[2]))


def test_integers_are_probabilities_too(library):
    p = np.array([[0, 1, 1], [0, 0, 0]])
    decided = decision.from_marginals(library.array(p))
    library.check(decided, decision.from_marginals(p))


def test_a_small_given_chance_of_no_label_is_kept(exact_library):
    """1 less the others, it would be 0."""
    P, d = np.zeros((1, 1, 1)), np.array([[1e-17, 1.0]])
    decided = decision.from_factors(
        [exact_library.array(P)] * 2, [[0], [1]], distributions=[exact_library.array(d)] * 2
    )
    assert float(decided.expected_f[0]) == pytest.approx(1e-34, rel=1e-12, abs=0.0)


def test_rounding_is_that_of_the_least_precise_array(exact_library):
    lib = exact_library
    P = np.array([[[0.3, 0.7], [0.3, 0.7000001]]], dtype=np.float32)
    d = np.array([[0.0, 0.3, 0.7]])
    decided = decision.from_cardinalities(lib.array(P), distribution=lib.array(d))
    lib.check(decided, decision.from_cardinalities(P, distribution=d))


class Peak:
    """The most bytes that new tensors of PyTorch took at once."""

    def __init__(self, torch):
        from torch.utils._python_dispatch import TorchDispatchMode

        hold = self.hold

        class Count(TorchDispatchMode):
            def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
                made = operation(*args, **(kwargs or {}))
                for tensor in made if isinstance(made, (tuple, list)) else [made]:
                    if isinstance(tensor, torch.Tensor):
                        hold(tensor)
                return made

        self.counting = Count()
        self.holders, self.live, self.bytes = {}, 0, 0

    def hold(self, tensor):
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if not self.holders.get(key):
            self.live += size
            self.bytes = max(self.bytes, self.live)
        self.holders[key] = self.holders.get(key, 0) + 1
        weakref.finalize(tensor, self.release, key, size)

    def release(self, key, size):
        self.holders[key] -= 1
        if not self.holders[key]:
            self.live -= size


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("route", ["marginals", "cardinalities", "factors", "samples", "joint"])
def test_memory_is_bounded(torch, monkeypatch, route, dtype):
    """Blocks take what they may, beside the arguments, which every view of them counts."""
    budget = 1 << 20
    monkeypatch.setattr("fgfm.decision._array_api.selection.work_bytes", lambda space: budget)
    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    n = 400
    joint = torch.rand(n, 500, dtype=kind)
    draws = (torch.rand(n, 20, 30) < 0.3).to(kind)
    call, given = {
        "marginals": (decision.from_marginals, [torch.rand(n, 300, dtype=kind)]),
        "cardinalities": (decision.from_cardinalities, [torch.rand(n, 20, 20, dtype=kind) / 500]),
        "factors": (
            lambda *Ps: decision.from_factors(Ps, np.arange(80).reshape(20, 4).tolist()),
            [torch.rand(n, 4, 4, dtype=kind) / 40 for _ in range(20)],
        ),
        "samples": (decision.from_samples, [draws]),
        "joint": (
            lambda proba: decision.from_joint((torch.rand(500, 5) < 0.4).to(kind), proba),
            [joint / joint.sum(dim=1, keepdim=True)],
        ),
    }[route]
    peak = Peak(torch)
    with peak.counting:
        call(*given)
    arguments = sum(tensor.nbytes for tensor in given)
    assert peak.bytes < arguments + 1.5 * budget


def test_constants_are_those_of_the_kernels():
    assert marginal_arrays.SMALL == power_sums.SMALL
    assert marginal_arrays.POWERS == power_sums.POWERS
    assert marginal_arrays.TAIL == quadrature.TAIL
    assert tuple(factor_kernels.GROWTH) == factor_arrays.GROWTH


# Refusals ----------------------------------------------------------------------------------------


def refusals(lib):
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


@pytest.mark.parametrize("case", range(11))
def test_values_are_refused_as_by_numpy(exact_library, case):
    call, message = refusals(exact_library)[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_rounding_is_forgiven(exact_library):
    off = np.array([[1.0 + 1e-10, 0.5, -1e-11]])
    decided = decision.from_marginals(exact_library.array(off))
    exact_library.check(decided, decision.from_marginals(off))


def test_libraries_are_not_mixed(exact_library):
    P, d = np.full((3, 2, 2), 0.1), np.full((3, 3), 1 / 3)
    with pytest.raises(TypeError, match=r"distribution is a .*dense|they must be of one library"):
        decision.from_cardinalities(exact_library.array(P), distribution=d)
    with pytest.raises(TypeError, match=r"has dtype .*complex.*: it must hold real numbers"):
        decision.from_marginals(exact_library.array(np.ones((2, 2), dtype=complex)))


def test_lists_of_arrays_are_refused(exact_library):
    """NumPy would read them, and the answer would not be in kind."""
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


def test_contradictions_warn(exact_library):
    p = np.array([[0.5, 0.0], [0.0, 0.0]])
    with pytest.warns(UserWarning, match=r"supposes: 1, the first is row 1; they get the empty"):
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


# PyTorch -----------------------------------------------------------------------------------------


def test_gradients_are_dropped(torch):
    proba = torch.rand(3, 4, requires_grad=True)
    labels, expected = decision.from_marginals(proba)
    assert not expected.requires_grad
    assert labels.device == proba.device


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32(torch, dtype):
    proba = torch.rand(5, 6).to(getattr(torch, dtype))
    expected = decision.from_marginals(proba).expected_f
    exact = decision.from_marginals(proba.double())
    assert expected.dtype == torch.float32
    np.testing.assert_allclose(expected, exact.expected_f, rtol=FLOAT32)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_sparse_tensors_are_refused(torch):
    with pytest.raises(TypeError, match=r"proba is a tensor of layout .*csr: it must be dense"):
        decision.from_marginals(torch.eye(3).to_sparse_csr())


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_without_plain_values_are_refused(torch):
    with pytest.raises(TypeError, match="proba is a tensor on the meta device: it must have val"):
        decision.from_marginals(torch.rand(2, 3, device="meta"))
    nested = torch.nested.nested_tensor([torch.rand(2), torch.rand(3)])
    with pytest.raises(TypeError, match="proba is a nested tensor: it must be dense"):
        decision.from_marginals(nested)


BACKENDS = """
import torch
from array_api_compat import torch as xp
from fgfm import decision
from fgfm.decision._array_api.space import common_space, full_precision

products = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
{setting}
before = [product.fp32_precision for product in products]
with full_precision(common_space([torch.zeros(1)], ["x"], xp)):
    assert {{"ieee", "none"}}.issuperset(product.fp32_precision for product in products)
decision.from_cardinalities(torch.full((2, 2, 2), 0.1))
assert [product.fp32_precision for product in products] == before
assert "tf32" in before
"""


@pytest.mark.parametrize(
    "setting",
    [
        "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
        "torch.backends.mkldnn.matmul.fp32_precision = 'tf32'",
        "torch.backends.fp32_precision = 'tf32'",
        "torch.backends.cuda.matmul.allow_tf32 = True",
        "torch.set_float32_matmul_precision('high')",
    ],
)
def test_precision_of_backends_is_set_back(torch, setting):
    """By the older settings and the newer ones, which PyTorch does not let one mix."""
    if not hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        pytest.skip("this PyTorch has one precision for all backends")
    code = BACKENDS.format(setting=setting)
    subprocess.run([sys.executable, "-c", code], check=True)


def test_precision_of_products_is_set_back(torch):
    torch.set_float32_matmul_precision("high")
    try:
        decision.from_cardinalities(torch.full((2, 2, 2), 0.1))
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_layer(torch):
    from fgfm.torch import FDecision

    network = torch.nn.Sequential(torch.nn.Linear(5, 7), FDecision(beta=2.0, nonempty=True))
    x = torch.randn(11, 5)
    labels, expected = network(x)
    exact = decision.from_marginals(torch.sigmoid(network[0](x)), beta=2.0, nonempty=True)
    assert torch.equal(labels, exact.labels)
    assert torch.equal(expected, exact.expected_f)
    assert not expected.requires_grad
    assert list(network[1].parameters()) == []
    assert "beta=2, zero_division=1, nonempty=True, from_logits=True" in repr(network)
    proba = torch.rand(3, 4, dtype=torch.bfloat16)
    decided = FDecision(from_logits=False)(proba)
    assert torch.equal(decided.labels, decision.from_marginals(proba.float()).labels)
    with pytest.raises(ValueError, match=r"beta is 0.0: it must be a number greater than 0"):
        FDecision(beta=0.0)


def test_layer_refuses(torch):
    from fgfm.torch import FDecision

    logits = torch.zeros(2, 3)
    for inputs, message in (
        (logits + 0j, "inputs has dtype torch.complex64: it must hold real numbers"),
        (logits.to_sparse(), "inputs is a tensor of layout torch.sparse_coo: it must be dense"),
        (logits.numpy(), "inputs is ndarray: it must be a tensor"),
    ):
        with pytest.raises(TypeError, match=message):
            FDecision()(inputs)
    with pytest.raises(ValueError, match=r"inputs has shape \(3,\): it must have 2 dimensions"):
        FDecision()(logits[0])
    with pytest.raises(ValueError, match=r"proba\[0, 0\] is nan") as caught:
        FDecision()(logits * torch.nan)
    assert caught.value.__notes__ == ["proba: the sigmoid of the inputs"]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_layer_is_one_operation(torch, dtype):
    """To what traces a network, whatever the values, for any number of rows."""
    from fgfm.torch import FDecision

    layer = FDecision(nonempty=True)
    torch.manual_seed(0)
    logits = torch.randn(6, 5).to(getattr(torch, dtype))
    torch.library.opcheck(torch.ops.fgfm.decide, (logits, 1.0, 1.0, True, True))
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    rows = {0: torch.export.Dim("rows")}
    exported = torch.export.export(layer, (logits,), dynamic_shapes=(rows,)).module()
    for inputs in (logits, 5.0 * torch.cat([logits, -logits])):
        labels, expected = layer(inputs)
        for decided in (compiled(inputs), exported(inputs)):
            assert torch.equal(decided.labels, labels)
            assert torch.equal(decided.expected_f, expected)


def test_layer_keeps_what_a_module_keeps(torch):
    from fgfm.torch import FDecision

    layer = FDecision(2.0, nonempty=True).half().train()
    assert layer.state_dict() == {}
    logits = torch.randn(4, 5, requires_grad=True)
    decided = layer(logits)
    assert not decided.expected_f.requires_grad
    assert torch.equal(pickle.loads(pickle.dumps(layer))(logits).labels, decided.labels)
    assert layer(logits[:0]).labels.shape == (0, 5)
    assert layer(logits.to("meta")).labels.shape == (4, 5)


def test_torch_computes_in_full_precision_under_autocast(torch):
    rng = np.random.default_rng(0)
    sets = torch.tensor(rng.integers(0, 2, (30, 6)), dtype=torch.float32)
    proba = torch.tensor(rng.dirichlet(np.ones(30), 200), dtype=torch.float32)
    plain = decision.from_joint(sets, proba)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = decision.from_joint(sets, proba)
        assert torch.is_autocast_enabled("cpu")
    assert torch.equal(cast.labels, plain.labels)
    assert torch.equal(cast.expected_f, plain.expected_f)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e5m2"])
def test_a_wrong_value_of_low_precision_is_named(torch, dtype):
    proba = torch.tensor([[0.5, 2.0]]).to(getattr(torch, dtype))
    with pytest.raises(ValueError, match=r"proba\[0, 1\] is 2.0"):
        decision.from_marginals(proba)


def test_arrays_of_two_libraries_are_refused(torch):
    P, d = np.full((1, 2, 2), 0.1), torch.tensor([[0.6, 0.3, 0.1]])
    with pytest.raises(TypeError, match="distribution is an array of torch, and P is not"):
        decision.from_cardinalities(P, distribution=d)
    with pytest.raises(TypeError, match=r"distributions\[0\] is an array of torch, and Ps is not"):
        decision.from_factors([P], [[0, 1]], distributions=[d])
    with pytest.raises(TypeError, match="labelsets is an array of torch, and proba is not"):
        decision.from_joint(torch.eye(2), [[0.5, 0.5]])


# JAX ---------------------------------------------------------------------------------------------


def test_traced_arrays_are_refused():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    with pytest.raises(TypeError, match="proba is traced by JAX: it must have values, so decide"):
        jax.jit(decision.from_marginals)(jax.numpy.ones((2, 3)))
