"""A Keras network, with any backend."""

# /// script
# dependencies = ["fgfm", "keras", "torch"]
# ///

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

from shared import report, table

import fgfm

(X, Y), (X_val, Y_val), (X_new, Y_new) = table()
# %%
import keras

keras.utils.set_random_seed(0)
normalize = keras.layers.Normalization()
normalize.adapt(X)
network = keras.Sequential(
    [
        normalize,
        keras.layers.Dense(64, "relu"),
        keras.layers.Dense(8, "sigmoid"),
    ]
)
network.compile(optimizer="adam", loss="binary_crossentropy")
network.fit(X, Y, batch_size=64, epochs=15, verbose=0)
proba_val = network.predict(X_val, verbose=0)
decider = fgfm.FDecider().fit(proba_val, Y_val)
proba = network.predict(X_new, verbose=0)
labels, expected_f = decider.decide(proba)
# %%
report("Keras", (proba_val, Y_val), (proba, Y_new), labels)
