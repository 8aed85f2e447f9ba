"""Decisions on CUDA devices, by Triton kernels, for tensors that share memory with the arrays.

`decide` is the only entry. Problems that no kernel decides are left to the compiled kernels on the
host, and so are the few rows of a problem that its kernel does not decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from fgfm._utils.validation import (
    check_cardinality_shape,
    check_distribution_shape,
    check_logits,
    check_marginals,
    check_partition,
    check_same_rows,
)
from fgfm.decision._arrays import to_host
from fgfm.decision._objective import Decision, Objective
from fgfm.decision.gpu import cardinalities, long, rows
from fgfm.decision.gpu.functions import DOUBLE, SINGLE, Precision

_LONGEST_ROW = 16384  # labels that a program can keep in registers
_LOWEST_FLOAT32 = -80.0  # logits of a sigmoid that float32 keeps, and its products
_MOST_LABELS = 1024  # of a row of P; of factors, with numbers padded to powers of two
_MOST_CARDINALITIES = 64
_LONGEST_FACTOR = 16  # labels of a factor

Tensors = Mapping[str, torch.Tensor]
HostDecider = Callable[..., Decision]  # of the same arguments, for NumPy arrays


def decide(
    problem: str,
    tensors: Tensors,
    shared: Mapping[str, Any],
    objective: Objective,
    average: str,
    on_host: HostDecider,
) -> Decision | None:
    """Decide from tensors on one CUDA device; return None if no kernel decides such problems.

    Parameters
    ----------
    problem : {"marginals", "cardinalities", "factors"}
        The kind of problem; for any other one the result is None.
    tensors, shared : mapping of str to object
        The arguments of the problem, by name: those with one entry per row, and others.
    objective : Objective
        What is maximised.
    average : {"samples", "macro", "weighted", "micro"}
        Which labels form a problem.
    on_host : callable
        Function from marginals in NumPy, (n, m), to the decision of their rows.

    Returns
    -------
    Decision or None
        Of tensors on the device.
    """
    limited = objective.limits is not None or objective.floors is not None
    if limited or not objective.measure.on_device or problem not in _PROBLEMS:
        return None
    if any(0 in tensor.shape for tensor in tensors.values()):
        return None
    precision = _precision(tensors.values())
    if precision.itemsize == 4:  # beyond these limits F_beta equals recall, or precision
        beta = min(max(objective.beta, 1e-9), 1e9)
        objective = objective._replace(beta=beta, beta2=beta * beta)
    return _PROBLEMS[problem](precision, tensors, shared, objective, average, on_host)


def _precision(tensors: Any) -> Precision:
    """Return float32 if all tensors have float32 or less, else float64, for integers too."""
    single = [t.is_floating_point() and t.dtype != torch.float64 for t in tensors]
    if all(single):
        return SINGLE
    return DOUBLE._replace(slack=SINGLE.slack) if any(single) else DOUBLE


def _decide_marginals(
    precision: Precision,
    tensors: Tensors,
    shared: Mapping[str, Any],
    objective: Objective,
    average: str,
    on_host: HostDecider,
) -> Decision | None:
    """Decide rows, columns (the rows of the transposed matrix), or all entries as one row."""
    proba = tensors["proba"]
    if len(tensors) > 1 or shared.get("missed") is not None or proba.ndim > 2:
        return None
    values = _sigmoid(proba, precision) if shared.get("logits") else proba
    if values.dtype == torch.float64:
        precision = DOUBLE if precision is SINGLE else precision
    elif not values.is_floating_point() or values.element_size() == 1:
        values = values.to(precision.dtype)  # kernels load -1 in place of absent labels
    flat = values.ndim == 1
    matrix = values[:, None] if flat else values
    n, m = matrix.shape
    if average == "micro":
        matrix = matrix.reshape(1, -1)
    elif average != "samples":
        matrix = matrix.T

    def decide_some(some: torch.Tensor) -> Decision:
        labels, expected_f = map(torch.as_tensor, on_host(to_host(some), objective))
        return Decision(labels.to(some.device), expected_f.to(some.device, precision.dtype))

    kernel = rows if matrix.shape[1] <= _LONGEST_ROW else long
    try:
        labels, expected_f = kernel.decide_rows(precision, matrix, objective, decide_some)
    except ValueError:  # name the place in the argument
        check = check_logits if shared.get("logits") else check_marginals
        check(to_host(proba), "proba", [0] * proba.ndim)
        raise
    expected_f = expected_f.to(_precision([proba]).dtype)
    if average == "micro":
        return Decision(labels.reshape(n, m), expected_f[0])
    return Decision(labels if average == "samples" else labels.T, expected_f)


def _sigmoid(logits: torch.Tensor, precision: Precision) -> torch.Tensor:
    """Return the sigmoid, in float64 where float32 would lose the largest one of a problem."""
    values = logits.to(precision.dtype)
    lowest = torch.stack([values.amax(dim=axis).min() for axis in range(logits.ndim)])
    is_nan, least = torch.stack([values.isnan().any().to(lowest.dtype), lowest.min()]).tolist()
    if is_nan:
        check_logits(to_host(logits), "proba", [0] * logits.ndim)
    return torch.sigmoid(values.double() if least < _LOWEST_FLOAT32 else values)


def _decide_cardinalities(
    precision: Precision,
    tensors: Tensors,
    shared: Mapping[str, Any],
    objective: Objective,
    average: str,
    on_host: HostDecider,
) -> Decision | None:
    P, d = tensors["P"], tensors.get("distribution")
    if P.ndim != 3:
        return None
    n, m, S = P.shape
    check_cardinality_shape((n, m, S), "P")
    if average != "samples" or m > _MOST_LABELS or S > _MOST_CARDINALITIES:
        return None
    masses = None
    if d is not None:
        check_distribution_shape(tuple(d.shape), "distribution", n, S)
        d = d.to(precision.dtype)
        total = d.sum(dim=1)
        in_range = ((d >= -precision.slack) & (d <= 1.0 + precision.slack)).all()
        if not bool(in_range & ((total - 1.0).abs() <= precision.slack).all()):
            return None  # an error, which is raised on the host
        d = d.clamp(0.0, 1.0)
        total = d.sum(dim=1)
        masses = torch.stack([d[:, 0], d[:, 1:].sum(dim=1)], dim=1) / total[:, None]
    return cardinalities.decide_cardinalities(precision, P, masses, objective)


def _decide_factors(
    precision: Precision,
    tensors: Tensors,
    shared: Mapping[str, Any],
    objective: Objective,
    average: str,
    on_host: HostDecider,
) -> Decision | None:
    parts: Sequence[torch.Tensor] = list(tensors.values())
    if len(parts) > shared["n_factors"] or average != "samples":
        return None
    if any(P.ndim != 3 for P in parts):
        return None
    for name, P in tensors.items():
        check_cardinality_shape(tuple(P.shape), name)
    check_same_rows([len(P) for P in parts], list(tensors))
    sizes = [P.shape[1] for P in parts]
    members = check_partition(shared["factors"], sum(sizes), sizes=sizes)
    size, depth = (max(P.shape[axis] for P in parts) for axis in (1, 2))
    padded = _power_of_two(size) * _power_of_two(len(parts))
    if max(size, depth) > _LONGEST_FACTOR or padded > _MOST_LABELS:
        return None
    return cardinalities.decide_factors(precision, parts, members, objective)


def _power_of_two(count: int) -> int:
    return 1 << max(0, count - 1).bit_length()


_PROBLEMS: dict[str, Callable[..., Decision | None]] = {
    "marginals": _decide_marginals,
    "cardinalities": _decide_cardinalities,
    "factors": _decide_factors,
}
