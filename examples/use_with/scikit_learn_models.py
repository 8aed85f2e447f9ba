"""Forest, neural network and classifier chain of scikit-learn."""

# /// script
# dependencies = ["fgfm"]
# ///

from shared import probabilities, report, table

import fgfm

(X, Y), (X_val, Y_val), (X_new, Y_new) = table()
# %%
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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
    proba_val, proba = (probabilities(decider.estimator_, rows) for rows in (X_val, X_new))
    report(name, (proba_val, Y_val), (proba, Y_new), labels)
