"""Decisions on PyTorch tensors: gradients, layouts, precision settings, memory."""

from __future__ import annotations

import subprocess
import sys
import weakref

import numpy as np
import pytest

from fgfm import decision

torch = pytest.importorskip("torch", reason="PyTorch is not installed: fgfm[torch]")

FLOAT32 = 2e-5  # the documented bound on the relative error


def test_gradient_is_dropped():
    torch.manual_seed(0)
    proba = torch.rand(3, 4, requires_grad=True)
    labels, expected = decision.from_marginals(proba)
    assert not expected.requires_grad
    assert labels.device == proba.device


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_computed_in_float32(dtype):
    torch.manual_seed(0)
    proba = torch.rand(5, 6).to(getattr(torch, dtype))
    expected = decision.from_marginals(proba).expected_f
    exact = decision.from_marginals(proba.double())
    assert expected.dtype == torch.float32
    np.testing.assert_allclose(expected, exact.expected_f, rtol=FLOAT32)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_sparse_tensor_raises():
    with pytest.raises(TypeError, match=r"proba is a tensor of layout .*csr: it must be dense"):
        decision.from_marginals(torch.eye(3).to_sparse_csr())


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_meta_and_nested_tensors_raise():
    with pytest.raises(TypeError, match="proba is a tensor on the meta device: it must have val"):
        decision.from_marginals(torch.rand(2, 3, device="meta"))
    nested = torch.nested.nested_tensor([torch.rand(2), torch.rand(3)])
    with pytest.raises(TypeError, match="proba is a nested tensor: it must be dense"):
        decision.from_marginals(nested)


BACKENDS = """
import torch
from array_api_compat import torch as xp
from fgfm import decision
from fgfm.decision._array_api.backend import common_backend
from fgfm.decision._array_api.backend import full_precision

products = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
{setting}
before = [product.fp32_precision for product in products]
with full_precision(common_backend([torch.zeros(1)], ["x"], xp)):
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
def test_precision_of_backends_is_restored(setting):
    """In a fresh process, since PyTorch does not allow to mix its older and newer settings."""
    if not hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        pytest.skip("this PyTorch has one precision for all backends")
    code = BACKENDS.format(setting=setting)
    subprocess.run([sys.executable, "-c", code], check=True)


def test_precision_of_matrix_products_is_restored():
    torch.set_float32_matmul_precision("high")
    try:
        decision.from_cardinalities(torch.full((2, 2, 2), 0.1))
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_autocast_does_not_reduce_the_precision():
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
def test_wrong_value_of_low_precision_raises(dtype):
    proba = torch.tensor([[0.5, 2.0]]).to(getattr(torch, dtype))
    with pytest.raises(ValueError, match=r"proba\[0, 1\] is 2.0"):
        decision.from_marginals(proba)


def test_arrays_of_two_libraries_raise():
    P, d = np.full((1, 2, 2), 0.1), torch.tensor([[0.6, 0.3, 0.1]])
    rule = "they must be of one library"
    message = f"P is a numpy ndarray and distribution is a torch Tensor: {rule}"
    with pytest.raises(TypeError, match=message):
        decision.from_cardinalities(P, distribution=d)
    message = rf"Ps\[0\] is a numpy ndarray and distributions\[0\] is a torch Tensor: {rule}"
    with pytest.raises(TypeError, match=message):
        decision.from_factors([P], [[0, 1]], distributions=[d])
    message = f"proba is a list and labelsets is a torch Tensor: {rule}"
    with pytest.raises(TypeError, match=message):
        decision.from_joint(torch.eye(2), [[0.5, 0.5]])


class Peak:
    """Peak memory of the tensors that are created under ``counting``, in bytes."""

    def __init__(self):
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
@pytest.mark.parametrize("given", ["marginals", "cardinalities", "factors", "samples", "joint"])
def test_memory_of_a_block_is_bounded(monkeypatch, given, dtype):
    """The work space is as configured, beside the arguments, which their views count too."""
    budget = 1 << 20
    monkeypatch.setattr("fgfm.decision._array_api.problem.work_bytes", lambda backend: budget)
    torch.manual_seed(0)
    kind = getattr(torch, dtype)
    n = 400
    joint = torch.rand(n, 500, dtype=kind)
    draws = (torch.rand(n, 20, 30) < 0.3).to(kind)
    call, arrays = {
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
    }[given]
    peak = Peak()
    with peak.counting:
        call(*arrays)
    arguments = sum(tensor.nbytes for tensor in arrays)
    assert peak.bytes < arguments + 1.5 * budget
