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
from array_api_compat import torch as xp
from fgfm import decision
from fgfm.decision import _marginals_triton as short, _marginals_triton_long as long
from fgfm.decision._array_api.backend import Backend, common_backend
from fgfm.decision._objective import Objective

torch.cuda.device = lambda device: contextlib.nullcontext()
torch.cuda.get_device_properties = lambda device: SimpleNamespace(multi_processor_count=1)
rng = np.random.default_rng(0)

def by_library(*arguments):
    raise AssertionError("a kernel should decide these rows")

def decide(rows, beta=1.0, nonempty=False, kernels=short):
    rows = torch.as_tensor(rows)
    objective = Objective.checked(beta, 1.0, nonempty, None)
    backend = common_backend([rows], ["proba"], xp)
    return kernels.decide_rows(backend, rows, objective, by_library)

def check(rows, beta=1.0, nonempty=False, kernels=short):
    rows = torch.as_tensor(rows)
    labels, value = decide(rows, beta, nonempty, kernels)
    exact = decision.from_marginals(rows.double().numpy(), beta=beta, nonempty=nonempty)
    single = rows.dtype == torch.float32
    np.testing.assert_allclose(value, exact.expected_f, rtol=2e-5 if single else 1e-12)
    assert (labels.numpy() == exact.labels).all()

def edge(m, expected, width):
    return rng.permutation(1.0 / (1.0 + np.exp((np.arange(m) - expected) / width)))[None]
"""

AGREE = """
Backend.has_triton = True

def agree(labels, value, exact):
    single = value.dtype == torch.float32
    np.testing.assert_allclose(value, exact.expected_f, rtol=2e-5 if single else 1e-12)
    assert (labels.numpy() == exact.labels).all()
"""

FACTORS = (
    AGREE
    + """
import fgfm.decision._factors_array_api as factors_array_api

factors_array_api._decide_block = by_library

def check_factors(Ps, **objective):
    sizes = [P.shape[1] for P in Ps]
    order = rng.permutation(sum(sizes))
    factors = [labels.tolist() for labels in np.split(order, np.cumsum(sizes)[:-1])]
    labels, value = decision.from_factors([torch.as_tensor(P) for P in Ps], factors, **objective)
    exact = decision.from_factors([P.astype("float64") for P in Ps], factors, **objective)
    agree(labels, value, exact)
"""
)

CARDINALITIES = (
    AGREE
    + """
import fgfm.decision._array_api.columns as columns

columns.rank_candidates = by_library

def check_cardinalities(P, distribution=None, **objective):
    d = None if distribution is None else torch.as_tensor(distribution)
    labels, value = decision.from_cardinalities(torch.as_tensor(P), distribution=d, **objective)
    agree(
        labels,
        value,
        decision.from_cardinalities(P.astype("float64"), distribution=distribution, **objective),
    )
"""
)

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
""",
    "dense rows, tried first": """
short._PROBED = 1
rows = rng.random((6, 400))
rows[3] *= 0.01  # few labels are expected
check(rows)
check(rows[:, ::-1].copy().astype("float32"))
rows[2, 7] = 1.0 + 1e-12  # a rounding error
labels, _ = decide(rows)
assert labels[2, 7] == 1
rows[4, 9] = 1.5
try:
    decide(rows)
except ValueError as error:
    assert str(error) == "proba[4, 9] is 1.5: probabilities must lie in [0, 1]", error
else:
    raise AssertionError("row 4 is not valid")
""",
    "long rows, many expected": """
check(rng.random((1, 9000)).astype("float32"), kernels=long)
check(edge(9000, 2000, 20).round(2), kernels=long, beta=1.3)
""",
    "long rows, few expected": """
check(edge(9000, 40, 8), kernels=long)
check(edge(9000, 40, 8).round(2), kernels=long, nonempty=True)
""",
    "long rows, values": """
rows = (rng.random((1, 9000)) < 0.1).astype("float64")
check(rows, kernels=long)
rows[0, 7] = 1.0 + 1e-12  # a rounding error
labels, _ = decide(rows, kernels=long)
assert (labels.numpy() == (rows > 0.5)).all()
rows[0, 7] = 2.0
try:
    check(rows, kernels=long)
except ValueError as error:
    assert "proba[0, 7] is 2.0" in str(error), error
else:
    raise AssertionError
""",
    "factors of one shape": FACTORS
    + """
for dtype, size, beta in (("float32", 4, 1.0), ("float64", 3, 0.7)):
    Ps = [0.1 * rng.random((3, size, size)) * rng.random((3, 1, 1)) for _ in range(9)]
    check_factors([P.astype(dtype) for P in Ps], beta=beta)
Ps = [P.round(2) for P in Ps]  # ties
check_factors(Ps)
check_factors([0.0 * P for P in Ps])
check_factors([1e-60 * P for P in Ps], nonempty=True)
Ps[2][1, 0, 0] = 1.5
try:
    decision.from_factors([torch.as_tensor(P) for P in Ps], np.arange(27).reshape(9, 3).tolist())
except ValueError as error:
    assert "Ps[2][1, 0, 0] is 1.5" in str(error), error
else:
    raise AssertionError
""",
    "factors of several shapes": FACTORS
    + """
Ps = [0.2 * rng.random((2, size, min(size, 3))) / size for size in (1, 4, 2, 1, 3, 5)]
check_factors(Ps, nonempty=True)
check_factors([P.astype(dtype) for P, dtype in zip(Ps, 3 * ("float32", "float64"))], beta=2.0)
""",
    "factors with many candidates": FACTORS
    + """
check_factors([0.3 * rng.random((2, 2, 2)) for _ in range(40)])
check_factors([np.full((2, 2, 2), 0.3, "float32") for _ in range(40)])
""",
    "cardinalities": CARDINALITIES
    + """
for dtype in ("float32", "float64"):
    check_cardinalities((0.006 * rng.random((5, 30, 10)) * rng.random((5, 30, 1))).astype(dtype))
P = (0.04 * rng.random((4, 40, 3))).round(2) / 3  # ties
check_cardinalities(P, beta=0.5)
check_cardinalities(0.0 * P, nonempty=False)
d = rng.dirichlet(np.ones(4), size=4)
check_cardinalities(P, distribution=d, nonempty=True)
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
    "cardinalities, many candidates": CARDINALITIES
    + """
check_cardinalities(0.002 * rng.random((2, 100, 7)) + 0.001, beta=2.0)
check_cardinalities(np.full((2, 100, 7), 0.003))
check_cardinalities(1e-60 * rng.random((2, 100, 7)), nonempty=True)
""",
    "joint distributions": CARDINALITIES
    + """
sets = (rng.random((12, 9)) < 0.3).astype("int8")
sets[0] = 0
proba = rng.dirichlet(np.ones(12), size=5)
for beta in (1.0, 3.0):
    labels, value = decision.from_joint(torch.as_tensor(sets), torch.as_tensor(proba), beta=beta)
    agree(labels, value, decision.from_joint(sets, proba, beta=beta))
""",
    "columns of Delta": """
from fgfm.decision._array_api.columns_triton import largest_sums
for dtype in ("float32", "float64"):
    delta = rng.random((3, 4, 70)).round(1).astype(dtype)
    sums = largest_sums(torch.as_tensor(delta), 5, torch.tensor([9, 7, 5]))
    exact = np.sort(delta)[:, :, ::-1].cumsum(axis=2)[:, range(4), range(5, 9)]
    exact[1, 2:] = exact[2] = 0.0  # not admitted
    np.testing.assert_allclose(sums, exact, rtol=1e-6)
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_kernels_agree_with_compiled_ones(case):
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", DEVICE + CASES[case]], check=True, env=environment)
