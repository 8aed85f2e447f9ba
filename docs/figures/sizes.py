"""Plot the expected F of the best set of each size, and the bound that ends the search."""

import matplotlib.pyplot as plt
import numpy as np

from fgfm.plotting import ExpectedFDisplay

rng = np.random.default_rng(0)
figure, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ExpectedFDisplay.from_marginals(rng.beta(0.05, 2.0, size=(1, 1000)), ax=ax)
