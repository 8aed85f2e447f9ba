"""Masks of largest expected Dice, compared with RankSEG: ``python -m benchmarks.masks``.

Both decide the same smooth synthetic maps on the same device, after two calls to warm up; the
time is the median of several calls. RankSEG (PyPI ``rankseg``) runs with its defaults for
overlapping masks, and with its option ``safe_screening="auto"``. The expected Dice of masks is
computed by a quadrature rule in float64, for independent pixels, with 0/0 = 1.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from rankseg import RankSEG

from benchmarks.gpu import lesion_maps, seconds_on_device
from fgfm.decision._quadrature import nodes
from fgfm.torch import DiceDecision

__all__ = ["main"]

Tensor = torch.Tensor


def expected_dice(proba: Tensor, mask: Tensor) -> float:
    """Return the expected Dice of one mask.

    With 1/a = sum_r w_r z_r^a, D(z) = prod_i (1 - p_i u) and u = 1 - z, it is
    2 sum_r w_r z_r^(k + 1) D(z_r) sum_{i in h} p_i / (1 - p_i u_r).
    """
    p, inside = proba.double().flatten(), mask.flatten() > 0
    k = int(inside.sum())
    if k == 0:
        return float(torch.exp(torch.log1p(-p).sum()))
    rule = nodes(1.0, len(p), len(p))
    total = 0.0
    for log_z, weight in zip(rule.log_z.tolist(), rule.weight.tolist(), strict=True):
        u = -torch.expm1(torch.tensor(log_z, dtype=torch.float64)).item()
        log_product = torch.log1p(-p * u).sum()
        share = (p[inside] / (1.0 - p[inside] * u)).sum()
        total += float(weight * torch.exp((k + 1) * log_z + log_product) * share)
    return 2.0 * total


def seconds(task: Callable[[], object], device: str, repeats: int) -> float:
    """Return the median time of a call."""
    if device == "cuda":
        return seconds_on_device(task, repeats)
    times = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        task()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:])


def main() -> None:
    """Measure every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--checked", type=int, default=10, help="maps whose masks are evaluated")
    parser.add_argument("--pixels", type=float, default=2e8, help="of all maps of a case")
    settings = parser.parse_args()
    cases: list[tuple[int, ...]] = [(128, 128), (512, 512), (2048, 2048), (128, 128, 128)]
    for sizes in cases:
        for share in (0.001, 0.05, 0.5):
            count = max(1, round(settings.pixels / torch.Size(sizes).numel()))
            maps = lesion_maps(share, count, sizes, torch.float32, settings.device)[:, None]
            decide = DiceDecision(len(sizes), from_logits=False)
            rules: dict[str, Callable[[], Any]] = {
                "fgfm": lambda decide=decide, maps=maps: decide(maps).labels,
                "RankSEG": lambda maps=maps: RankSEG("dice", output_mode="multilabel")(maps),
                "RankSEG, screening": lambda maps=maps: RankSEG(
                    "dice", output_mode="multilabel", safe_screening="auto"
                )(maps),
            }
            shape = " x ".join(map(str, sizes))
            print(f"{count} maps of {shape}, {share:.1%} likely", flush=True)
            best, took = [], 0.0
            for name, rule in rules.items():
                own = seconds(rule, settings.device, 5)
                masks = rule()
                dice = [
                    expected_dice(maps[i], masks[i]) for i in range(min(count, settings.checked))
                ]
                best, took = best or dice, took or own
                gain = [a - b for a, b in zip(best, dice, strict=True)]
                print(
                    f"  {name}: {own * 1e3:.2f} ms, {own / took:.1f} times fgfm; "
                    f"expected Dice {statistics.mean(dice):.6f}, "
                    f"fgfm minus it {min(gain):.1e} to {max(gain):.1e}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
