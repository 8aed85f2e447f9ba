"""Plot the gain of FDecider over tuned thresholds by field, from the stored results."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

FIELDS = {
    "text": "bibtex enron langlog reutersk500 stackex_chess stackex_philosophy yahoo_arts",
    "medical text": "medical ohsumed",
    "images": "corel5k image scene",
    "music": "cal500 emotions",
    "proteins and genes": "eukaryote_go genbase gnegativego gnegativepseaac gpositivego "
    "gpositivepseaac plantgo virusgo viruspseaac yeast",
    "tables": "flags foodtruck",
}
AVERAGES = {"samples": "F1 of rows", "macro": "macro F1", "micro": "micro F1"}

# Sphinx runs this file in its own folder.
results = pd.read_csv(Path("../benchmark/decider/results.csv"))
f1 = results.pivot_table("f1", ["average", "data", "learner"], "rule")
gain = f1["fdecider"] - f1[["threshold", "thresholds"]].max(axis=1)
field_of = {data: field for field, names in FIELDS.items() for data in names.split()}
unknown = set(results["data"]) - set(field_of)
if unknown:
    raise ValueError(f"data sets without a field: {sorted(unknown)}")

rng = np.random.default_rng(0)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", sharey=True)
for ax, (average, title) in zip(axes, AVERAGES.items(), strict=True):
    by_field = gain[average].groupby(field_of.get, level="data")
    for at, field in enumerate(FIELDS):
        values = by_field.get_group(field)
        height = -at + rng.uniform(-0.25, 0.25, len(values))
        ax.plot(values, height, "o", color="#0072B2", alpha=0.35)
        ax.plot([values.mean()] * 2, [-at - 0.35, -at + 0.35], color="#D55E00", linewidth=3)
    ax.axvline(0.0, color="0.5", linewidth=1)
    ax.set(title=title, xlabel="gain over tuned thresholds")
    ax.spines[["top", "right", "left"]].set_visible(False)
axes[0].set_yticks(-np.arange(len(FIELDS)), list(FIELDS), fontsize=12)
