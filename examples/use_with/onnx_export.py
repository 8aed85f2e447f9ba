"""ONNX: a scikit-learn network and the decision in one model, run by ONNX Runtime."""

# /// script
# dependencies = ["fgfm[onnx]", "onnx", "onnxruntime", "skl2onnx"]
# ///

import numpy as np
from shared import report, table
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fgfm

(X, Y), _, (X_new, Y_new) = table()
X, X_new = X.astype(np.float32), X_new.astype(np.float32)
network = make_pipeline(
    StandardScaler(), MLPClassifier((32,), early_stopping=True, max_iter=500, random_state=0)
)
network.fit(X, Y)
# %%
import onnx
import onnxruntime
from skl2onnx import to_onnx

model = to_onnx(network, X[:1], target_opset=18, options={"zipmap": False})
decision = fgfm.onnx.export_decision(n_labels=8)
decision.ir_version = model.ir_version
joint = [("probabilities", "proba")]
both = onnx.compose.merge_models(model, decision, io_map=joint)
onnx.save(both, "decide.onnx")

session = onnxruntime.InferenceSession("decide.onnx")
labels, expected_f = session.run(["labels", "expected_f"], {"X": X_new})
# %%
proba = network.predict_proba(X_new)
agreement = (labels == fgfm.decision.from_marginals(proba).labels).all(axis=1).mean()
print(f"rows decided as in Python: {100 * agreement:.0f} %")
report("ONNX", Y_new, proba > 0.5, labels)
