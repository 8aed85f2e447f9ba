"""Arrays of PyTorch and JAX: the decisions of NumPy, as the same type, on the same device."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from decision_calls import AVERAGES, CALLS, PROBA, SETS, WEIGHTS
from fgfm import decision

# The label sets of a joint distribution must be of the same library.
NAMES = [name for name in CALLS if "sparse" not in name and name not in ("pairs", "joint")]
CASES = [(name, average) for name in NAMES for average in CALLS[name].averages]
pytestmark = pytest.mark.filterwarnings("ignore:.* get the empty set:UserWarning")


class Library:
    """A library of arrays; JAX computes in float32."""

    def __init__(self, name):
        self.module = pytest.importorskip(name, reason=f"{name} is not installed")
        self.is_torch = name == "torch"

    def __call__(self, values, dtype=None):
        values = np.asarray(values)
        if dtype is None and values.dtype == np.float64 and not self.is_torch:
            dtype = "float32"
        kind = None if dtype is None else getattr(self.module, dtype)
        make = self.module.as_tensor if self.is_torch else self.module.asarray
        return make(values, dtype=kind)


@pytest.fixture(params=["torch", "jax.numpy"])
def library(request):
    return Library(request.param)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed: fgfm[torch]")


def check(decided, expected, kind, *, single=None):
    assert type(decided.labels) is type(decided.expected_f) is kind
    np.testing.assert_array_equal(np.asarray(decided.labels), expected.labels)
    assert str(decided.labels.dtype).endswith("int8") or expected.labels.dtype != np.int8
    if single is None:  # there is no row whose precision counts
        return
    dtype = np.asarray(decided.expected_f).dtype
    assert dtype == (np.float32 if single else np.float64)
    rtol = 1e-6 if single else 0.0
    np.testing.assert_allclose(np.asarray(decided.expected_f), expected.expected_f, rtol=rtol)
    assert decided.gap == pytest.approx(expected.gap, abs=1e-6)


@pytest.mark.parametrize(("name", "average"), CASES)
def test_decisions_are_those_of_numpy(library, name, average):
    decided = CALLS[name](library, average=average)
    # of the same values, since float32 rounds them
    plain = CALLS[name](lambda values: np.asarray(library(values)), average=average)
    check(decided, plain, type(library([0.0])), single=not library.is_torch)
    assert decided.labels.device == library(PROBA).device


@pytest.mark.parametrize(("name", "average"), CASES)
def test_no_rows(library, name, average):
    decided = CALLS[name](library, rows=slice(0, 0), average=average)
    check(decided, CALLS[name](rows=slice(0, 0), average=average), type(library([0.0])))


@pytest.mark.parametrize(
    "name", ["marginals", "logits", "jaccard", "limits", "factors", "samples"]
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_half_precision_is_computed_in_float32(torch, name, dtype):
    def lower(values):
        return torch.as_tensor(values).to(getattr(torch, dtype))

    plain = CALLS[name](lambda values: lower(values).float().numpy())
    check(CALLS[name](lower), plain, torch.Tensor, single=True)


@pytest.mark.parametrize("average", AVERAGES)
def test_joint_distributions(library, average):
    decided = decision.from_joint(library(SETS), library(WEIGHTS), average=average)
    plain = decision.from_joint(SETS, np.asarray(library(WEIGHTS)), average=average)
    check(decided, plain, type(library([0.0])), single=not library.is_torch)


def test_missed_items_of_all_rows(library):
    for missed in (library(WEIGHTS[0]), 0.7):
        plain = missed if isinstance(missed, float) else np.asarray(missed)
        decided = decision.from_marginals(library(PROBA), missed=missed)
        expected = decision.from_marginals(np.asarray(library(PROBA)), missed=plain)
        check(decided, expected, type(library([0.0])), single=not library.is_torch)


def test_gradient_is_dropped(torch):
    proba = torch.rand(3, 4, requires_grad=True)
    assert not decision.from_marginals(proba).expected_f.requires_grad


# Errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("average", ["samples", "macro", "micro"])
def test_invalid_places_are_those_of_the_array(library, average):
    proba = np.full((30, 4), 0.25)
    proba[20, 3] = 1.5
    message = r"^proba\[{}\] is 1.5: probabilities must lie in \[0, 1\]$"
    with pytest.raises(ValueError, match=message.format("20, 3")):
        decision.from_marginals(library(proba), average=average)
    with pytest.raises(ValueError, match=message.format("20")):
        decision.from_marginals(library(proba[:, 3]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e5m2"])
def test_wrong_value_of_low_precision_raises(torch, dtype):
    proba = torch.tensor([[0.5, 2.0]]).to(getattr(torch, dtype))
    with pytest.raises(ValueError, match=r"proba\[0, 1\] is 2.0"):
        decision.from_marginals(proba)


def test_other_libraries_and_dtypes_raise(library):
    P, d = np.full((3, 2, 2), 0.1), np.full((3, 3), 1 / 3)
    with pytest.raises(TypeError, match=r"distribution is a numpy ndarray and P .*one library"):
        decision.from_cardinalities(library(P), distribution=d)
    with pytest.raises(TypeError, match=r"has dtype .*complex.*: it must hold real numbers"):
        decision.from_marginals(library(np.ones((2, 2), dtype=np.complex64)))


def test_lists_of_arrays_raise(library):
    """NumPy would convert them, and the decision would be of another library."""
    row, table = library([0.5, 0.5]), library(np.full((2, 2), 0.1))
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


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_without_dense_values_raise(torch):
    nested = torch.nested.nested_tensor([torch.rand(2), torch.rand(3)])
    for tensor, message in (
        (torch.eye(3).to_sparse_csr(), "proba is a tensor of layout .*csr: it must be dense"),
        (torch.rand(2, 3, device="meta"), "proba is a tensor on the meta device: it must have"),
        (nested, "proba is a nested tensor: it must be dense"),
    ):
        with pytest.raises(TypeError, match=message):
            decision.from_marginals(tensor)


def test_traced_array_raises():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    with pytest.raises(TypeError, match="proba is traced by JAX: it must have values, so decide"):
        jax.jit(decision.from_marginals)(jax.numpy.ones((2, 3)))


def test_rows_that_contradict_nonempty_warn(library):
    p = np.array([[0.5, 0.0], [0.0, 0.0]])
    with pytest.warns(UserWarning, match=r"nonempty=True: 1, the first is row 1; they get"):
        labels, expected = decision.from_marginals(library(p), nonempty=True)
    assert not np.asarray(labels)[1].any()
    assert np.isnan(np.asarray(expected)).tolist() == [False, True]


def test_no_array_library_is_imported():
    code = (
        "import sys, fgfm.decision\n"
        "fgfm.decision.from_marginals([[0.5]])\n"
        "print(*{'cupy', 'dask', 'jax', 'torch', 'triton'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
