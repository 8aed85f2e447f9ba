"""
Which labels belong together
============================

Labels that are independent of each other given the features can be modelled separately.
`fgfm.ILFCompo` tests all pairs of labels, and joins those that are dependent. Here the truth is
known: a network with factors of four, three, two and one labels, as in the paper's experiment.
"""

import matplotlib.pyplot as plt
import networkx as nx
import pandas as pd

import fgfm
from fgfm.paper import random_network

network = random_network([4, 3, 2, 1], random_state=3)
names = ["sad", "calm", "quiet", "slow", "loud", "fast", "happy", "live", "old", "vocal"]
X, Y = network.sample(2000, random_state=0)
Y = pd.DataFrame(Y, columns=names)
print(network)

# %%
# Marginally almost all labels are correlated, since they depend on the same features:

print(f"largest correlation between factors: {abs(Y.corr()).iloc[:4, 4:].max().max():.2f}")

# %%
# Given the features, few of them are dependent:

ilf = fgfm.ILFCompo().fit(X, Y)
for factor in ilf.factors_:
    print(", ".join(names[i] for i in factor))

# %%
# The graph has an edge for each dependent pair:

graph = nx.relabel_nodes(nx.from_scipy_sparse_array(ilf.graph_), dict(enumerate(names)))
nx.draw_networkx(graph, nx.spring_layout(graph, seed=0), node_color="0.85", node_size=1500)
plt.axis("off")
plt.show()

# %%
# With fewer rows the tests have less power. A missed edge splits a factor; with a correction for
# the number of pairs, false edges are rare.

for n in (100, 300, 1000, 2000):
    few = fgfm.ILFCompo().fit(X[:n], Y[:n])
    print(f"{n:5} rows: {sorted(map(len, few.factors_), reverse=True)}")

# %%
# A classifier can use the factors, or find them itself, or model all labels as one factor:

model = fgfm.FGFMClassifier(factors=ilf.factors_).fit(X, Y)
whole = fgfm.FGFMClassifier(factors="single").fit(X, Y)
print(f"probabilities that describe a row: {model.n_parameters_}, with one factor ", end="")
print(f"{whole.n_parameters_}")
