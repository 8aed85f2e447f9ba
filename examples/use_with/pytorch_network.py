"""A PyTorch network: the decision as its last layer, and calibrated decisions."""

# /// script
# dependencies = ["fgfm[torch]", "torch"]
# ///

import torch
from shared import report, table

import fgfm

torch.manual_seed(0)
(X, Y), (X_val, Y_val), (X_new, Y_new) = table()
mean, scale = X.mean(axis=0), X.std(axis=0)
X, X_val, X_new = (torch.tensor((x - mean) / scale).float() for x in (X, X_val, X_new))
network = torch.nn.Sequential(
    torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(64, 8)
)
optimizer = torch.optim.Adam(network.parameters(), lr=0.01, weight_decay=1e-3)
loss = torch.nn.BCEWithLogitsLoss()
targets = torch.tensor(Y).float()
for _ in range(15):
    for rows in torch.randperm(len(X)).split(128):
        optimizer.zero_grad()
        loss(network(X[rows]), targets[rows]).backward()
        optimizer.step()
# %%
from fgfm.torch import FDecision

network.eval()
with torch.no_grad():
    val_logits, logits = network(X_val), network(X_new)

labels, expected_f = FDecision()(logits)  # a layer, on the same device

decider = fgfm.FDecider(scores=True).fit(val_logits, Y_val)
calibrated = decider.predict(logits)
# %%
validation, new = (val_logits.numpy(), Y_val), (logits.numpy(), Y_new)
report("layer", validation, new, labels.numpy(), half=0.0)
report("calibrated", validation, new, calibrated, half=0.0)
