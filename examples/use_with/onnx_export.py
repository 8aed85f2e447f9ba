"""ONNX: a scikit-learn network and its decider in one model, run by ONNX Runtime."""

# /// script
# dependencies = ["fgfm[onnx]", "onnx", "onnxruntime", "skl2onnx"]
# ///

import numpy as np
from shared import report, table
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fgfm

(X, Y), (X_val, Y_val), (X_new, Y_new) = table()
X, X_val, X_new = (rows.astype(np.float32) for rows in (X, X_val, X_new))
network = make_pipeline(
    StandardScaler(), MLPClassifier((32,), early_stopping=True, max_iter=500, random_state=0)
)
network.fit(X, Y)
# %%
import onnx
import onnxruntime
from skl2onnx import to_onnx

proba_val = network.predict_proba(X_val)
decider = fgfm.FDecider().fit(proba_val, Y_val)

model = to_onnx(network, X[:1], target_opset=18, options={"zipmap": False})
decision = fgfm.onnx.export_decision(decider)
decision.ir_version = model.ir_version
joint = [("probabilities", "proba")]
both = onnx.compose.merge_models(model, decision, io_map=joint)
onnx.save(both, "decide.onnx")

session = onnxruntime.InferenceSession("decide.onnx")
labels, expected_f = session.run(["labels", "expected_f"], {"X": X_new})
# %%
proba = network.predict_proba(X_new)
agreement = (labels == decider.predict(proba)).all(axis=1).mean()
print(f"rows decided as in Python: {100 * agreement:.0f} %")
report("ONNX", (proba_val, Y_val), (proba, Y_new), labels)
