"""The statements of the paper, compared with the results of a run.

Only the linear base learner is used, which is the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import stats

from fgfm.experiments._records import Difference, Finding
from fgfm.experiments._statistics import paired_t_test, standard_error

if TYPE_CHECKING:
    from fgfm.experiments._summary import Values

Floats = npt.NDArray[np.float64]

LEVEL = 0.05  # of the tests, after Holm's correction
_SMALL = 200  # "small" training sets have at most this many rows
_MARGIN = 0.002  # a method that loses less than this is "at least as good"


def find(
    f: Values, differences: Sequence[Difference], rises: Sequence[Difference], *, judge: bool
) -> list[Finding]:
    """Compare the statements of the paper with the results of a run."""
    found = _rise(f, [r for r in rises if r.learner == "linear"])
    for second, topic, claim in (
        ("gfm", "F-GFM ILF against GFM", "F-GFM ILF is at least as good as GFM"),
        (
            "true",
            "F-GFM ILF against F-GFM with the true factors",
            "F-GFM ILF is as good as or better than F-GFM with the true factors",
        ),
    ):
        cells = [
            d for d in differences if (d.learner, d.first, d.second) == ("linear", "ilf", second)
        ]
        if cells:
            found.append(Finding(topic, claim, *_comparison(cells)))
    found += _clearest_gain(f)
    return found if judge else [finding._replace(verdict=None) for finding in found]


def _rise(f: Values, rises: Sequence[Difference]) -> list[Finding]:
    """Compare the largest size with the smallest, and each size with the next."""
    if not rises:
        return []
    smallest, largest = f.sizes[0], f.sizes[-1]
    ends = [r for r in rises if (r.second, r.n) == (f"n = {smallest}", largest)]
    steps = [r for r in rises if r not in ends] or ends
    up, down, undecided = _count_significant(ends)
    _, falls, _ = _count_significant(steps)
    if down or falls:
        verdict = "does not hold everywhere"
    else:
        verdict = "not decided" if undecided else "holds"
    return [
        Finding(
            "F against the number of training rows",
            "F rises with the number of training rows",
            verdict,
            f"significant rise from n = {smallest} to {largest} in {up} of {len(ends)} cases "
            f"(structure and method), {np.mean([r.mean for r in ends]):+.4f} on average; "
            f"significant fall in {falls} of {len(steps)} steps from one size to the next",
        )
    ]


def _comparison(cells: Sequence[Difference]) -> tuple[str, str]:
    """Return verdict and numbers of a comparison of two methods over all cells."""
    up, down, undecided = _count_significant(cells)
    mean = float(np.mean([d.mean for d in cells]))
    largest = max(cells, key=lambda d: abs(d.mean))
    lowest = min(d.low for d in cells)
    if down:
        verdict = f"holds but for {down} of {len(cells)} cells"
    elif any(np.isnan(d.p_value) for d in cells):
        verdict = "not decided"
    elif lowest > -_MARGIN:  # non-inferiority: no interval reaches below the margin
        verdict = f"holds, within {_MARGIN:g}"
    else:
        verdict = "not contradicted" if up else "not decided"
    detail = (
        f"significantly better in {up} of {len(cells)} cells, worse in {down}, no significant "
        f"difference in {undecided}; mean difference {mean:+.4f}, largest {largest.mean:+.4f} "
        f"({largest.structure}, n = {largest.n}); lowest end of a 95 % interval {lowest:+.4f}"
    )
    return verdict, detail


def _count_significant(tests: Sequence[Difference]) -> tuple[int, int, int]:
    """Count the tests that are significantly above 0, below 0, and neither."""
    up = sum(t.p_holm < LEVEL and t.mean > 0.0 for t in tests)
    down = sum(t.p_holm < LEVEL and t.mean < 0.0 for t in tests)
    return up, down, len(tests) - up - down


def _gains(f: Values, structures: Sequence[str], *, small: bool) -> Floats:
    """Return the gain of F-GFM ILF over GFM of each repetition, averaged over sizes."""
    found = []
    for structure in structures:
        parts = [
            a - b
            for n in f.sizes
            if (n <= _SMALL) == small
            and (a := f.get(structure, n, "linear", "ilf")) is not None
            and (b := f.get(structure, n, "linear", "gfm")) is not None
        ]
        if parts:
            found.append(np.mean(parts, axis=0))
    return np.concatenate(found) if len(found) == len(structures) else np.empty(0)


def _clearest_gain(f: Values) -> list[Finding]:
    """Compare the gain over GFM in structures 3 and 4 at small n with all other cells."""
    gain = _gains(f, ("6+2", "8"), small=True)
    other = _gains(f, ("2+2+2+2", "4+4"), small=True)
    large = _gains(f, ("6+2", "8"), small=False)
    if min(len(gain), len(other), len(large)) < 4:  # too few for a t-test
        return []
    positive = paired_t_test(gain)
    welch = stats.ttest_ind(gain, other, equal_var=False)
    drop = paired_t_test(gain - large)
    tests = [
        (positive.p_value, positive.mean),
        (float(welch.pvalue), float(gain.mean() - other.mean())),
        (drop.p_value, drop.mean),
    ]
    if all(p < LEVEL and mean > 0.0 for p, mean in tests):
        verdict = "holds"
    elif any(p < LEVEL and mean < 0.0 for p, mean in tests):
        verdict = "does not hold"
    else:
        verdict = "not decided"
    return [
        Finding(
            f"Gain of F-GFM ILF over GFM in structures 3 and 4 at n <= {_SMALL}",
            "The gain over GFM is clearest for structures 3 and 4 at small n",
            verdict,
            f"mean gain {gain.mean():+.4f} (s.e. {standard_error(gain):.4f}, p = "
            f"{positive.p_value:.2g}) for n <= {_SMALL}; {other.mean():+.4f} (s.e. "
            f"{standard_error(other):.4f}) in structures 1 and 2, p = {welch.pvalue:.2g} for the "
            f"difference (Welch); {large.mean():+.4f} (s.e. {standard_error(large):.4f}) in "
            f"structures 3 and 4 at larger n, p = {drop.p_value:.2g} (paired)",
        )
    ]
