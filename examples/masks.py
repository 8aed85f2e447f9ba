"""
Dice and IoU of masks
=====================

A segmentation model estimates for every pixel the probability that it belongs to the object. Masks
are scored by the Dice coefficient, which is F1 over the pixels, or by the intersection over union
(IoU), which is the Jaccard index. This example decides the masks with the largest expected scores,
and compares them with ``p > 0.5``.

A mask is one row whose labels are pixels. `fgfm.decision.from_marginals` considers the pixels
independent of each other given the image.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

import fgfm

# %%
# Probability maps
# ----------------
# Three lesions: one with a sharp boundary, one with an uncertain boundary, and one of a few
# uncertain pixels.

SIZE = 48
y, x = np.mgrid[:SIZE, :SIZE]
angle = np.arctan2(y - 24, x - 23)
radius = np.hypot(x - 23, y - 24) * (1 + 0.12 * np.sin(3 * angle) + 0.08 * np.cos(5 * angle))
maps = {
    "sharp": expit((14 - radius) / 0.6),
    "diffuse": expit((9 - radius) / 4),
    "faint": 0.6 * np.exp(-(np.hypot(x - 23.3, (y - 24.2) / 1.3) ** 2)),
}
proba = np.stack([p.ravel() for p in maps.values()])  # (3, SIZE^2)

# %%
# Masks
# -----
# ``measure="f"`` maximises the expected Dice coefficient, ``measure="jaccard"`` the expected IoU.

dice = fgfm.decision.from_marginals(proba, measure="f")
iou = fgfm.decision.from_marginals(proba, measure="jaccard")
masks = {"p > 0.5": proba > 0.5, "Dice-optimal": dice.labels, "IoU-optimal": iou.labels}

# %%
# To check them, true masks are drawn from the model, and every decided mask is scored:


def mean_scores(decided, truth):
    """Return the mean Dice coefficient and the mean IoU of decided masks; 0/0 is 1."""
    hits = truth @ decided.T.astype(np.float32)  # (true masks, decided masks)
    both = truth.sum(axis=1)[:, None] + decided.sum(axis=1)  # |y| + |h|
    mean_dice = np.where(both == 0, 1.0, 2 * hits / np.maximum(both, 1)).mean(axis=0)
    mean_iou = np.where(both == 0, 1.0, hits / np.maximum(both - hits, 1)).mean(axis=0)
    return mean_dice, mean_iou


rng = np.random.default_rng(0)
truths = [(rng.random((5000, p.size)) < p).astype(np.float32) for p in proba]
print("lesion   rule          pixels  mean Dice  mean IoU")
for row, name in enumerate(maps):
    decided = np.stack([mask[row] for mask in masks.values()])
    for rule, mask, *scores in zip(
        masks, decided, *mean_scores(decided, truths[row]), strict=True
    ):
        print(f"{name:8} {rule:13} {mask.sum():6}  {scores[0]:9.3f}  {scores[1]:8.3f}")
    expected = dice.expected_f[row], iou.expected_f[row]
    print(f"{name:8} {'expected':13} {'':6}  {expected[0]:9.3f}  {expected[1]:8.3f}")

# %%
# The rule ``p > 0.5`` is nearly optimal for the sharp lesion only. In large masks the optimal
# threshold is half of the optimal expected Dice coefficient, for both scores: about 0.3 for the
# diffuse lesion. The two optimal masks differ where few pixels are expected: that of the faint
# lesion is smaller for IoU. The curves are the mean scores of masks ``p > threshold``.

figure, axes = plt.subplots(2, 3, figsize=(8, 5.4), layout="constrained")
styles = {
    "p > 0.5": {"color": "C1", "linewidth": 1.6},
    "Dice-optimal": {"color": "C0", "linewidth": 3.2},
    "IoU-optimal": {"color": "C3", "linewidth": 1.6, "linestyle": "--"},
}
for row, (name, p) in enumerate(maps.items()):
    top, bottom = axes[:, row]
    image = top.imshow(p, cmap="Greys", vmin=0, vmax=1)
    thresholds = np.linspace(0.02, 0.98, 49) * p.max()
    mean_dice, mean_iou = mean_scores(proba[row] > thresholds[:, None], truths[row])
    bottom.plot(thresholds, mean_dice, color="C0", label="mean Dice")
    bottom.plot(thresholds, mean_iou, color="C3", label="mean IoU")
    for rule, style in styles.items():
        mask = masks[rule][row].astype(bool)
        cut = 0.5 if rule == "p > 0.5" else (proba[row][mask].min() + proba[row][~mask].max()) / 2
        bottom.axvline(cut, alpha=0.6, **style)
        top.contour(
            np.kron(mask.reshape(SIZE, SIZE), np.ones((8, 8))),  # follows the edges of pixels
            [0.5],
            extent=(-0.5, SIZE - 0.5, -0.5, SIZE - 0.5),
            **{f"{key}s": value for key, value in style.items()},
        )
        top.plot([], [], label=rule, **style)
    top.set(title=f"{name}: {p.sum():.1f} pixels", xticks=[], yticks=[])
    if name == "faint":
        top.set(xlim=(16.5, 30.5), ylim=(33.5, 19.5))
    bottom.set(xlabel="threshold", ylim=(0, 1))
axes[0, 2].legend(loc="lower left")
axes[1, 0].legend(loc="lower left")
axes[1, 0].set_ylabel("mean over true masks")
figure.colorbar(image, ax=axes[0], label="probability", shrink=0.9)
plt.show()

# %%
# Large masks
# -----------
# The time is linear in the number of pixels:

large = np.kron(maps["diffuse"], np.ones((11, 11), dtype=np.float32))[:512, :512]
batch = np.clip(large.ravel() + rng.normal(0, 0.02, (10, large.size)), 0, 1).astype(np.float32)
start = time.perf_counter()
fgfm.decision.from_marginals(batch, measure="jaccard")
print(f"512 x 512 pixels: {(time.perf_counter() - start) / len(batch) * 1e3:.1f} ms per mask")

# %%
# Pixels that depend on each other
# --------------------------------
# Errors of neighbouring pixels often depend on each other. If the model can draw whole masks (an
# ensemble, dropout, a diffusion model), `fgfm.decision.from_samples` maximises the expected Dice
# coefficient without assuming independence. There is no such function for IoU, because its
# expectation is not determined by the probabilities from which that decision is computed.
