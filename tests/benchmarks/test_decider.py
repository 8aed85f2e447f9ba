"""The rules and tables of `benchmarks.decider` and the measure of `benchmarks.extreme`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from benchmarks.decider import OURS, Rows, binary, micromacro_cuts, random_split
from benchmarks.extreme import exact_macro_f
from fgfm.decision import from_marginals


def rows(n, m, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random((n, m)) ** np.linspace(1.0, 6.0, m)
    return p, (rng.random((n, m)) < p).astype(np.uint8)  # as stored


def published_cuts(p, Y):
    """Return the thresholds of the loop of LibMultiLabel's `_micromacro_one_label`."""
    fold = np.random.default_rng(0).permutation(len(p)) % 3
    cuts, stats = np.zeros(p.shape[1]), {"tp": 0, "fp": 0, "fn": 0, "labels": 0}
    for j in sorted(range(p.shape[1]), key=lambda j: -int(Y[:, j].sum())):
        stats["labels"] += 1
        thresholds, sums = [], np.zeros(3, dtype=int)

        def objective(tp, fp, fn):
            macro = 2 * tp / max(2 * tp + fp + fn, 1) / stats["labels"]
            tp, fp, fn = tp + stats["tp"], fp + stats["fp"], fn + stats["fn"]
            return macro + 2 * tp / max(2 * tp + fp + fn, 1)

        for k in range(3):
            x, y = p[fold == k, j], Y[fold == k, j]
            order = np.argsort(x, kind="stable")
            tp, fp, fn, cut = int(y.sum()), int((y == 0).sum()), 0, -1
            best, counts = objective(tp, fp, fn), (tp, fp, fn)
            for i, row in enumerate(order):
                tp, fp, fn = (tp - 1, fp, fn + 1) if y[row] else (tp, fp - 1, fn)
                if objective(tp, fp, fn) >= best:
                    best, counts, cut = objective(tp, fp, fn), (tp, fp, fn), i
            s = x[order]
            if cut == -1:
                thresholds.append(np.nextafter(s[0], -np.inf))
            elif cut == len(s) - 1:
                thresholds.append(np.nextafter(s[-1], np.inf))
            else:
                thresholds.append((s[cut] + s[cut + 1]) / 2)
            sums += counts
        cuts[j] = np.mean(thresholds)
        for name, value in zip(("tp", "fp", "fn"), sums, strict=True):
            stats[name] += int(value)
    return cuts


@pytest.mark.parametrize("seed", range(3))
def test_micromacro_is_the_published_rule(seed):
    p, Y = rows(200, 8, seed)
    Y[:, 3] = 0
    np.testing.assert_allclose(micromacro_cuts(p, Y), published_cuts(p, Y), rtol=1e-12)


def test_micromacro_does_not_separate_equal_probabilities():
    p, Y = rows(300, 5)
    cuts = micromacro_cuts(np.round(p, 1), Y)
    assert not np.isin(cuts, np.round(p, 1)).all()
    assert (cuts > 0.0).all()


def test_limits_and_random_splits():
    p, Y = rows(900, 12)
    split = Rows(p[:300], Y[:300], p[300:], Y[300:])
    f1 = dict(binary(split))
    assert f1["half"] <= f1["limit"]
    assert f1["threshold"] <= f1["limit"]
    assert abs(f1[OURS] - f1["threshold"]) < 0.05
    found = list(random_split(split))
    assert [row["average"] for row in found] == ["samples", "macro", "micro"]
    for row in found:
        assert abs(row["expected_f"] - row["f1"]) < 0.05
        assert 0.0 < row["error"] < 0.03


def test_exact_expected_macro_f_is_that_of_the_decision():
    p, _ = rows(30, 6)
    p[:, 5] *= 0.01  # a label that is left empty
    for zero_division in (0.0, 1.0):
        how = {"average": "macro", "max_labels": 2, "zero_division": zero_division}
        decided = from_marginals(sparse.csr_array(p), **how)
        value = exact_macro_f(sparse.csr_array(p), decided.labels, zero_division)
        assert value == pytest.approx(decided.expected_f.mean(), abs=1e-9)
