"""Decisions on a CUDA device: ``python -m benchmarks.gpu``.

Rows are drawn on the device. Each case is timed with events, as the median of several calls after
two calls to warm up. The lower bound on the time is the number of bytes that must be moved
(probabilities read once, labels and expectations written once) divided by the bandwidth of a copy
on the device, measured in the same run. A sample of the rows is decided by the compiled kernels on
all cores of the host too. Expectations
must agree with exact decisions within the documented bound in float32; in float64 the sets must be
equal.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from fgfm import decision

__all__ = ["main"]

Tensor = torch.Tensor
_BOUND = 2e-5  # documented relative error of float32


def marginal_rows(kind: str, n: int, m: int, dtype: torch.dtype, device: str) -> Tensor:
    """Draw marginals as `benchmarks.inputs` does: sparse, flat or dense."""
    torch.manual_seed(n + m)
    if kind == "dense":
        return torch.rand((n, m), dtype=dtype, device=device)
    if kind == "flat":
        return (2.0 / m) * (0.99 + 0.02 * torch.rand((n, m), dtype=dtype, device=device))
    likely = 1.0 / torch.arange(1.0, m + 1.0, device=device)
    likely = (likely * (5.0 / likely.sum())).to(dtype)
    proba = torch.empty((n, m), dtype=dtype, device=device)
    for start in range(0, n, 10_000):  # each row in its own order
        part = proba[start : start + 10_000]
        order = torch.rand(part.shape, device=device).argsort(dim=1)
        part.exponential_().mul_(likely).clamp_(max=0.98)
        part.copy_(part.gather(1, order))
    return proba


def lesion_maps(
    share: float, n: int, sizes: tuple[int, ...], dtype: torch.dtype, device: str
) -> Tensor:
    """Draw smooth maps, of which about a share is probable.

    They are the sigmoid of a random field, interpolated from values at every 32nd pixel.
    """
    torch.manual_seed(n + sum(sizes))
    mode = "bicubic" if len(sizes) == 2 else "trilinear"
    maps = torch.empty((n, *sizes), dtype=dtype, device=device)
    for start in range(0, n, 50):
        part = maps[start : start + 50]
        coarse = torch.randn((len(part), 1, *(size // 32 + 1 for size in sizes)), device=device)
        field = torch.nn.functional.interpolate(coarse, size=sizes, mode=mode)[:, 0]
        sample = field.flatten(1)[:, :: max(1, field[0].numel() // 100_000)]
        cut = sample.quantile(1.0 - share, dim=1).reshape(-1, *(1 for _ in sizes))
        part.copy_(torch.sigmoid(12.0 * (field - cut)))
    return maps


def factor_rows(n: int, count: int, dtype: torch.dtype, device: str) -> list[Tensor]:
    """Draw the P of factors of four labels that depend on each other, about 5 labels expected."""
    torch.manual_seed(n + count)
    sets = torch.tensor(list(itertools.product([0, 1], repeat=4)), device=device)[1:]  # (15, 4)
    one_hot = torch.zeros((15, 4, 4), dtype=dtype, device=device)  # set, label, cardinality
    for at, labels in enumerate(sets.tolist()):
        for i in np.flatnonzero(labels):
            one_hot[at, i, sum(labels) - 1] = 1.0
    present = marginal_rows("sparse", n, count, dtype, device) / 2.0  # (n, factors)
    Ps = []
    for f in range(count):
        share = torch.empty((n, 15), dtype=dtype, device=device).exponential_() ** 2
        share *= present[:, f, None] / share.sum(dim=1, keepdim=True)
        Ps.append((share @ one_hot.reshape(15, 16)).reshape(n, 4, 4))
    return Ps


def cardinality_rows(n: int, m: int, S: int, dtype: torch.dtype, device: str) -> Tensor:
    """Draw P with about 5 expected labels: marginals split over cardinalities at random.

    The cardinalities have about a Poisson distribution.
    """
    p = marginal_rows("sparse", n, m, dtype, device)
    s = torch.arange(1.0, S + 1.0, dtype=dtype, device=device)
    likely = s * torch.exp(s * np.log(5.0) - torch.lgamma(s + 1.0))
    P = torch.empty((n, m, S), dtype=dtype, device=device)
    for start in range(0, n, 10_000):
        part = P[start : start + 10_000]
        part.exponential_().mul_(likely)
        part *= (p[start : start + 10_000] / part.sum(dim=2))[:, :, None]
        part /= (part.sum(dim=1) / s).sum(dim=1).mul_(1.01).clamp_(min=1.0)[:, None, None]
    return P


def seconds_on_device(task: Callable[[], object], repeats: int) -> float:
    """Return the median time of a call, by events on the device."""
    for _ in range(2):
        task()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        task()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return statistics.median(times)


def copy_bandwidth(device: str) -> float:
    """Return the bytes per second, read and written, of a copy on the device."""
    source = torch.rand(1 << 30, device=device)
    target = torch.empty_like(source)
    return 2.0 * source.nbytes / seconds_on_device(lambda: target.copy_(source), 10)


def on_cpu(call: Callable[..., Any], rows: Any) -> tuple[Any, float]:
    """Decide rows on the CPU; return the decision and the seconds per call."""
    host = [P.cpu().numpy() for P in rows] if isinstance(rows, list) else rows.cpu().numpy()
    call(host)
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        decided = call(host)
        times.append(time.perf_counter() - begin)
    return decided, min(times)


def exact(call: Callable[..., Any], rows: Any) -> Any:
    """Decide in float64 on the CPU."""
    double = [P.double() for P in rows] if isinstance(rows, list) else rows.double()
    return on_cpu(call, double)[0]


def compare(call: Callable[..., Any], rows: Any) -> str:
    """Describe how decisions on the device differ from exact ones."""
    labels, expected = (np.asarray(part.cpu()) for part in call(rows))
    true_labels, true_expected = (np.asarray(part) for part in exact(call, rows))
    error = float(np.abs(expected / true_expected - 1.0).max())
    rows = np.atleast_2d(labels if labels.ndim > 1 else labels[None])
    other = int((rows != true_labels.reshape(rows.shape)).any(axis=1).sum())
    single = expected.dtype == np.float32
    bound = _BOUND if single else 1e-12
    assert error <= bound, error
    assert single or other == 0, other
    return f"{other} of {len(rows)} sets differ, relative error {error:.1e}"


def measure(
    name: str, call: Callable[..., Any], rows: Any, bandwidth: float, sample: int, repeats: int
) -> None:
    """Measure and print one case."""
    parts = rows if isinstance(rows, list) else [rows]
    n = parts[0].shape[0]
    m = sum(P.shape[1] for P in parts) if parts[0].ndim > 1 else 1
    took = seconds_on_device(lambda: call(rows), repeats)
    problems = n if parts[0].ndim > 1 else 1
    results = n * m + problems * parts[0].element_size()
    least = (sum(P.nbytes for P in parts) + results) / bandwidth
    few = [P[:sample] for P in rows] if isinstance(rows, list) else rows[:sample]
    _, cpu = on_cpu(call, few)
    by = f"compiled kernels, {os.cpu_count()} cores"
    if parts[0].ndim > 1:
        few = [P[:2000] for P in rows] if isinstance(rows, list) else rows[:2000]
        few = few[:20] if m > 100_000 else few
    ratio = cpu / sample * n / took
    print(
        f"{name}: {n / took:.3g} rows/s, {took * 1e3:.2f} ms, {least / took:.1%} of bandwidth; "
        f"{ratio:.1f} times {by} ({sample / cpu:.3g} rows/s); "
        f"{compare(call, few)}",
        flush=True,
    )


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of 1000 marginals")
    parser.add_argument("--sample", type=int, default=20_000, help="rows timed on the CPU")
    settings = parser.parse_args()
    device = "cuda"
    bandwidth = copy_bandwidth(device)
    print(f"{torch.cuda.get_device_name()}: a copy moves {bandwidth / 1e12:.2f} TB/s")
    for dtype in (torch.float32, torch.float64):
        word = str(dtype).removeprefix("torch.")

        def from_marginals(rows: Any) -> Any:
            return decision.from_marginals(
                rows, n_jobs=-1 if isinstance(rows, np.ndarray) else None
            )

        for kind in ("sparse", "flat", "dense"):
            proba = marginal_rows(kind, settings.rows, 1000, dtype, device)
            name = f"marginals, {kind}, {word}"
            measure(name, from_marginals, proba, bandwidth, settings.sample, 7)
            del proba
        for share in (0.001, 0.05, 0.5):
            maps = lesion_maps(share, settings.rows // 1000, (512, 512), dtype, device).flatten(1)
            name = f"masks of 512 x 512, {share:.1%} likely, {word}"
            measure(name, from_marginals, maps, bandwidth, settings.sample // 1000, 7)
            del maps
        column = torch.rand(100 * settings.rows, dtype=dtype, device=device)
        name = f"a column of {column.numel():.0e} rows, {word}"
        measure(name, from_marginals, column, bandwidth, column.numel(), 7)
        del column
        factors = np.arange(400).reshape(100, 4).tolist()
        Ps = factor_rows(settings.rows // 10, 100, dtype, device)
        measure(
            f"100 factors of 4 labels, {word}",
            lambda rows, factors=factors: decision.from_factors(
                rows, factors, n_jobs=-1 if isinstance(rows[0], np.ndarray) else None
            ),
            Ps,
            bandwidth,
            settings.sample // 10,
            3,
        )
        del Ps
        measure(
            f"P of 400 labels and 16 cardinalities, {word}",
            lambda rows: decision.from_cardinalities(
                rows, n_jobs=-1 if isinstance(rows, np.ndarray) else None
            ),
            cardinality_rows(settings.rows // 10, 400, 16, dtype, device),
            bandwidth,
            settings.sample // 10,
            3,
        )


if __name__ == "__main__":
    main()
