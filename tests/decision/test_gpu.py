"""The Triton kernels, in Triton's interpreter: decisions equal those of the compiled kernels.

The interpreter is chosen when Triton is imported, so that these tests run in a process of their
own, where a CPU takes the part of the device.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: fgfm[torch]")
triton = pytest.importorskip("triton", reason="Triton is not installed")
if tuple(map(int, triton.__version__.split(".")[:2])) < (3, 7):
    pytest.skip(
        "the interpreter of Triton before 3.7 fails with NumPy 2.4", allow_module_level=True
    )

DEVICE = """
import contextlib
from types import SimpleNamespace
import numpy as np, torch
from fgfm import decision
from fgfm.decision import _arrays, gpu
from fgfm.decision.gpu import long, rows

_arrays._CUDA = 1  # the number of a CPU in DLPack
torch.cuda.device = lambda device: contextlib.nullcontext()
torch.cuda.get_device_properties = lambda device: SimpleNamespace(multi_processor_count=1)
torch.cuda.mem_get_info = lambda device: (1 << 30, 1 << 30)
rng = np.random.default_rng(0)

def on_host(*arguments):
    raise AssertionError("a kernel should decide these rows")

def agree(decided, exact):
    labels, value = decided
    single = value.dtype == torch.float32
    np.testing.assert_allclose(value, exact.expected_f, rtol=2e-5 if single else 1e-12)
    assert (labels.numpy() == exact.labels).all()

def only_kernels(name, tensors, shared, objective, average, _):
    decided = gpu_decide(name, tensors, shared, objective, average, on_host)
    assert decided is not None
    return decided

gpu_decide, gpu.decide = gpu.decide, only_kernels

def decide(proba, long_rows=False, **kwargs):
    gpu._LONGEST_ROW = 1 if long_rows else 16384
    return decision.from_marginals(torch.as_tensor(proba), **kwargs)

def check(proba, long_rows=False, **kwargs):
    exact = decision.from_marginals(np.asarray(proba, "float64"), **kwargs)
    agree(decide(proba, long_rows, **kwargs), exact)

def edge(m, expected, width):
    return rng.permutation(1.0 / (1.0 + np.exp((np.arange(m) - expected) / width)))[None]

def check_factors(Ps, **kwargs):
    sizes = [P.shape[1] for P in Ps]
    order = rng.permutation(sum(sizes))
    factors = [labels.tolist() for labels in np.split(order, np.cumsum(sizes)[:-1])]
    decided = decision.from_factors([torch.as_tensor(P) for P in Ps], factors, **kwargs)
    agree(decided, decision.from_factors([P.astype("float64") for P in Ps], factors, **kwargs))

def check_cardinalities(P, distribution=None, **kwargs):
    d = None if distribution is None else torch.as_tensor(distribution)
    decided = decision.from_cardinalities(torch.as_tensor(P), distribution=d, **kwargs)
    exact = P.astype("float64")
    agree(decided, decision.from_cardinalities(exact, distribution=distribution, **kwargs))
"""

CASES = {
    "short rows": """
for m in (3, 70):
    check(rng.random((4, m)))
    check(rng.random((4, m)).round(1), beta=2.0, nonempty=True)
""",
    "dense rows": """
for dtype in ("float32", "float64"):
    check(rng.random((3, 400)).astype(dtype), beta=0.7)
    check(0.2 * rng.random((2, 1000)).astype(dtype), nonempty=True)
check(rng.random((2, 1000)).round(2))
check((rng.random((2, 700)) < 0.4).astype("float32"))
""",
    "dense rows, tried first": """
rows._PROBED = 1
proba = rng.random((6, 400))
proba[3] *= 0.01  # few labels are expected
check(proba)
check(proba[:, ::-1].copy().astype("float32"))
proba[2, 7] = 1.0 + 1e-12  # a rounding error
labels, _ = decide(proba)
assert labels[2, 7] == 1
proba[4, 9] = 1.5
try:
    decide(proba)
except ValueError as error:
    assert str(error) == "proba[4, 9] is 1.5: probabilities must lie in [0, 1]", error
else:
    raise AssertionError("row 4 is not valid")
""",
    "long rows, many expected": """
check(rng.random((1, 9000)).astype("float32"), long_rows=True)
check(edge(9000, 2000, 20).round(2), long_rows=True, beta=1.3)
""",
    "long rows, few expected": """
check(edge(9000, 40, 8), long_rows=True)
check(edge(9000, 40, 8).round(2), long_rows=True, nonempty=True)
rows = 1e-4 * rng.random((3, 9000))
rows[:, :3] = 0.2 + 0.5 * rng.random((3, 3))
check(rows, long_rows=True)
check(np.zeros((1, 20000)), long_rows=True)
rows = np.zeros((1, 9000))
rows[0, 5:7] = 0.9, 0.3  # not in the sample
check(rows, beta=1e-50, long_rows=True)
""",
    "long rows, a step that overshoots": """
rows = np.zeros((1, 4096))  # of which every other label is in the sample
rows[0, 1:3] = 0.0144, 0.013
rows[0, 3:57:2] = rows[0, 4:68:2] = 0.0119
check(rows, beta=0.3, nonempty=True, long_rows=True)
""",
    "booleans": """
for m in (70, 401, 17001):
    rows = rng.random((2, m)) < 0.4
    rows[1, 60:] = False
    labels, value = decision.from_marginals(torch.as_tensor(rows))
    assert (labels.numpy() == rows).all()
    np.testing.assert_allclose(value, 1.0, rtol=1e-12)
""",
    "long rows, values": """
rows = (rng.random((1, 9000)) < 0.1).astype("float64")
check(rows, long_rows=True)
rows[0, 7] = 1.0 + 1e-12  # a rounding error
labels, _ = decide(rows, long_rows=True)
assert (labels.numpy() == (rows > 0.5)).all()
rows[0, 7] = 2.0
try:
    check(rows, long_rows=True)
except ValueError as error:
    assert "proba[0, 7] is 2.0" in str(error), error
else:
    raise AssertionError
""",
    "factors of one shape": """
for dtype, size, beta in (("float32", 4, 1.0), ("float64", 3, 0.7)):
    Ps = [0.1 * rng.random((3, size, size)) * rng.random((3, 1, 1)) for _ in range(9)]
    check_factors([P.astype(dtype) for P in Ps], beta=beta)
Ps = [P.round(2) for P in Ps]  # ties
check_factors(Ps)
check_factors([0.0 * P for P in Ps])
check_factors([np.diag([0.01, 0.04, 0.94])[None]], beta=4.0, zero_division=0.0)  # not coherent
gpu.decide = gpu_decide  # what is not valid is left to the host
check_factors([1e-60 * P for P in Ps], nonempty=True)
Ps[2][1, 0, 0] = 1.5
try:
    decision.from_factors([torch.as_tensor(P) for P in Ps], np.arange(27).reshape(9, 3).tolist())
except ValueError as error:
    assert "Ps[2][1, 0, 0] is 1.5" in str(error), error
else:
    raise AssertionError
""",
    "factors of several shapes": """
Ps = [0.2 * rng.random((2, size, min(size, 3))) / size for size in (1, 4, 2, 1, 3, 5)]
check_factors(Ps, nonempty=True)
check_factors([P.astype(dtype) for P, dtype in zip(Ps, 3 * ("float32", "float64"))], beta=2.0)
""",
    "factors with many candidates": """
check_factors([0.3 * rng.random((2, 2, 2)) for _ in range(40)])
check_factors([np.full((2, 2, 2), 0.3, "float32") for _ in range(40)])
""",
    "cardinalities": """
for dtype in ("float32", "float64"):
    check_cardinalities((0.006 * rng.random((5, 30, 10)) * rng.random((5, 30, 1))).astype(dtype))
P = (0.04 * rng.random((4, 40, 3))).round(2) / 3  # ties
check_cardinalities(P, beta=0.5)
check_cardinalities(0.0 * P, nonempty=False)
d = rng.dirichlet(np.ones(4), size=4)
check_cardinalities(P, distribution=d, nonempty=True)
gpu.decide = gpu_decide  # what is not valid is left to the host
P[3, 5, 1] = -1e-12  # a rounding error
check_cardinalities(P)
P[3, 5, 1] = 1.25
try:
    decision.from_cardinalities(torch.as_tensor(P))
except ValueError as error:
    assert "P[3, 5, 1] is 1.25" in str(error), error
else:
    raise AssertionError
""",
    "cardinalities, many candidates": """
check_cardinalities(0.002 * rng.random((2, 100, 7)) + 0.001, beta=2.0)
check_cardinalities(np.full((2, 100, 7), 0.003))
gpu.decide = gpu_decide  # tiny probabilities are left to the host
check_cardinalities(1e-60 * rng.random((2, 100, 7)), nonempty=True)
""",
    "columns and batches": """
proba = rng.random((300, 4))
proba[:, 0] *= 0.1
for average in ("macro", "weighted", "micro"):
    check(proba, average=average)
    check(proba.astype("float32"), average=average, long_rows=True)
check(proba[:, 0])
check(np.log(proba) - np.log1p(-proba), logits=True, average="macro")
gpu.decide = gpu_decide  # tiny probabilities are left to the host
check(np.full((2, 3), -300.0) + np.arange(3.0), logits=True, nonempty=True)
proba[7, 2] = 1.5
for average in ("macro", "micro"):
    try:
        decide(proba, average=average)
    except ValueError as error:
        assert str(error) == "proba[7, 2] is 1.5: probabilities must lie in [0, 1]", error
    else:
        raise AssertionError
""",
    "on the host": """
gpu.decide = gpu_decide
P = 0.02 * rng.random((3, 5, 4))
d = np.full((3, 5), 0.2)
sets = np.unique((rng.random((9, 4)) < 0.4).astype("int8"), axis=0)
w = rng.dirichlet(np.ones(len(sets)), size=3)
tensor = torch.as_tensor
for call in (
    lambda to: decision.from_marginals(to(P[0]), measure="jaccard"),
    lambda to: decision.from_marginals(to(P[0]), max_labels=1),
    lambda to: decision.from_marginals(to(P[0]), min_recall=0.3),
    lambda to: decision.from_marginals(to(P[0]), missed=to(d[0])),
    lambda to: decision.from_cardinalities(to(P), average="micro"),
    lambda to: decision.from_cardinalities(to(P), distribution=to(d), average="macro"),
    lambda to: decision.from_factors([to(P)], [range(5)], distributions=[to(d)]),
    lambda to: decision.from_joint(to(sets), to(w)),
    lambda to: decision.from_samples(to(sets[None])),
    lambda to: decision.from_marginals(to(P[0][:0])),
):
    agree(call(tensor), call(np.asarray))
check(np.full((1, 9000), 0.5))  # equal labels: some are left to the host
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_kernels_agree_with_compiled_ones(case):
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", DEVICE + CASES[case]], check=True, env=environment)
