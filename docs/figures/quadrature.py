"""Plot the relative error and the number of nodes of the sum of powers for 1/a."""

import matplotlib.pyplot as plt
import numpy as np

from fgfm.decision._quadrature import nodes

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
rule = nodes(1.0, 1000, 1000)
a = np.geomspace(2.0, 2000.0, 4000)
error = np.exp(np.outer(a, rule.log_z)) @ rule.weight * a - 1.0
left.plot(a, error / 1e-14, linewidth=1.0)
left.set_xscale("log")
left.set(xlabel="$a$", ylabel="relative error, in $10^{-14}$")
left.set_title(f"1000 labels: {len(rule.log_z)} nodes")
m = np.unique(np.geomspace(4, 1e6, 60).astype(int)).tolist()
right.plot(m, [len(nodes(1.0, labels, labels).log_z) for labels in m], marker=".")
right.set_xscale("log")
right.set(xlabel="labels", ylabel="nodes", ylim=(0, None))
right.set_title(r"nodes for all set sizes, $\beta = 1$")
