"""Spark: probabilities in a DataFrame, decided by mapInPandas."""

# /// script
# dependencies = ["fgfm", "pandas", "pyarrow", "pyspark"]
# ///

import os
import sys

import pandas as pd
from pyspark.sql import SparkSession
from shared import probabilities, report, table
from sklearn.ensemble import RandomForestClassifier

import fgfm

(X, Y), (X_val, Y_val), (X_new, Y_new) = table()
names = [f"label_{j}" for j in range(Y.shape[1])]
forest = RandomForestClassifier(100, random_state=0).fit(X, Y)
proba_val = probabilities(forest, X_val)
decider = fgfm.FDecider().fit(proba_val, Y_val)
proba = pd.DataFrame(probabilities(forest, X_new), columns=names)
proba.insert(0, "id", range(len(proba)))
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .getOrCreate()
)
rows = spark.createDataFrame(proba).repartition(2)


# %%
def decide(frames):
    """Decide the frames of one partition; a row is decided by itself."""
    for frame in frames:
        labels, expected_f = decider.decide(frame[names].to_numpy())
        decided = pd.DataFrame(labels, columns=names)
        decided.insert(0, "id", frame["id"].to_numpy())
        yield decided.assign(expected_f=expected_f)


columns = [f"{name} byte" for name in names]
schema = ", ".join(["id long", *columns, "expected_f double"])
decided = rows.mapInPandas(decide, schema)
# %%
labels = decided.toPandas().sort_values("id")[names].to_numpy()
spark.stop()
assert (labels == decider.predict(proba[names].to_numpy())).all()
report("Spark", (proba_val, Y_val), (proba[names].to_numpy(), Y_new), labels)
