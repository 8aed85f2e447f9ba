"""MLflow: log a fitted model with its scores, and serve it as a pyfunc."""

# /// script
# dependencies = ["fgfm[store]", "mlflow", "skops"]
# ///

import mlflow
from shared import report, table

import fgfm

(X, Y), (X_val, Y_val), (X_new, Y_new) = table()
mlflow.set_tracking_uri("sqlite:///mlflow.db")
model = fgfm.FClassifier(random_state=0)
# %%
from skops.io import dumps, get_untrusted_types

with mlflow.start_run():
    model.fit(X, Y)
    mlflow.log_params({"average": model.average, "beta": model.beta})
    mlflow.log_metric("f1", model.score(X_new, Y_new))
    types = get_untrusted_types(data=dumps(model))  # those of fgfm
    logged = mlflow.sklearn.log_model(
        model,
        name="fgfm",
        skops_trusted_types=types,
        pip_requirements=["fgfm[store]"],
    )

served = mlflow.pyfunc.load_model(logged.model_uri)
labels = served.predict(X_new)
# %%
proba_val, proba = model.predict_proba(X_val), model.predict_proba(X_new)
report("MLflow", (proba_val, Y_val), (proba, Y_new), labels)
