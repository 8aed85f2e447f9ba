"""MONAI: masks of largest expected Dice after sliding-window inference."""

# /// script
# dependencies = ["fgfm[torch]", "monai", "torch"]
# ///

import torch
from monai.data import DataLoader, MetaTensor
from scipy.ndimage import gaussian_filter

from fgfm.metrics import best_threshold

torch.manual_seed(0)
network = torch.nn.Identity()  # a stand-in: the images are logits, the masks are drawn from them


def volumes(n):
    """Return n images and masks."""
    items = []
    for _ in range(n):
        field = torch.tensor(gaussian_filter(torch.randn(40, 40, 40).numpy(), 3))[None]
        image = MetaTensor(
            4.0 * field / field.std() - 7.0, affine=torch.diag(torch.tensor([1, 1, 3, 1]))
        )
        mask = torch.bernoulli(torch.sigmoid(image.as_tensor()))
        items.append({"image": image, "label": mask})
    return items


items, validation = volumes(12), volumes(12)
loader = DataLoader(items, batch_size=4)
# %%
from monai.data import decollate_batch
from monai.inferers import SlidingWindowInferer
from monai.metrics import DiceMetric
from monai.transforms import Activations, Activationsd, AsDiscrete, Compose, Lambdad

from fgfm.torch import DiceDecision

decide = DiceDecision(spatial_dims=3, nonempty=True, from_logits=False)


def mask(proba):
    """Return the masks of one volume, of shape (class, x, y, z)."""
    return decide(proba).labels


def label_map(proba):
    """Return the labels of one volume, from a softmax of exclusive classes."""
    claims = proba[1:] * decide(proba[1:]).labels
    return torch.cat([torch.zeros_like(proba[:1]), claims]).argmax(dim=0, keepdim=True)


half = Compose([Activations(sigmoid=True), AsDiscrete(threshold=0.5)])
best = Compose([Activations(sigmoid=True), mask])
dice_half, dice_best = DiceMetric(), DiceMetric()

network.eval()
infer = SlidingWindowInferer(roi_size=(32, 32, 32), overlap=0.25)
with torch.no_grad():
    for batch in loader:
        logits = infer(batch["image"], network)  # (batch, class, x, y, z)
        dice_half([half(x) for x in decollate_batch(logits)], batch["label"])
        dice_best([best(x) for x in decollate_batch(logits)], batch["label"])

# In a pipeline of dictionaries, and for a network with softmax:
best_d = Compose([Activationsd("pred", sigmoid=True), Lambdad("pred", mask)])
best_softmax = Compose([Activations(softmax=True), label_map])
# %%
last = decollate_batch(logits)[-1]
for masks in (best_d({"pred": last})["pred"], best_softmax(torch.cat([0 * last, last]))):
    assert torch.equal(masks, best(last))
    assert torch.equal(masks.affine, last.affine)
flat = [
    torch.stack([item[name].as_subclass(torch.Tensor).flatten() for item in validation])
    for name in ("image", "label")
]
t = best_threshold(flat[0].sigmoid().numpy(), flat[1].numpy().astype(int))
tuned = Compose([Activations(sigmoid=True), AsDiscrete(threshold=t)])
dice_t = DiceMetric()
for batch in loader:
    dice_t([tuned(x) for x in decollate_batch(batch["image"])], batch["label"])
means = [metric.aggregate().item() for metric in (dice_half, dice_t, dice_best)]
print("MONAI: Dice {:.2f} above 0.5, {:.2f} above t, {:.2f} for Dice".format(*means))
