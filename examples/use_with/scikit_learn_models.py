"""Forest, neural network and classifier chain of scikit-learn."""

# /// script
# dependencies = ["fgfm"]
# ///

from shared import report, table
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fgfm

(X, Y), _, (X_new, Y_new) = table()
# %%
network = MLPClassifier((32,), early_stopping=True, random_state=0)
models = {
    "forest": RandomForestClassifier(100, random_state=0),
    "network": make_pipeline(StandardScaler(), network),
    "chain": ClassifierChain(LogisticRegression(max_iter=1000), random_state=0),
}
for name, model in models.items():
    decider = fgfm.FClassifier(model, random_state=0).fit(X, Y)
    labels = decider.predict(X_new)
    # %%
    report(name, Y_new, decider.estimator_.predict(X_new), labels)
