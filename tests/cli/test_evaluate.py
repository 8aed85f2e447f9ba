"""The command ``fgfm evaluate``."""

from __future__ import annotations

import json

import pandas as pd
from numpy.testing import assert_allclose
from sklearn.multiclass import OneVsRestClassifier

import fgfm
from command_line import NAMES, make_rows, run_ok
from fgfm.evaluation import evaluate
from fgfm.io import FeatureEncoder
from fgfm.ridge import RidgeLogistic


def run_json(*arguments):
    return json.loads(run_ok("evaluate", *arguments, "--json").stdout)


def test_cross_validation_agrees_with_python(folder, dataset):
    found = run_json(folder / "all.arff", "--folds", "4", "-e", "ridge")
    ridge = OneVsRestClassifier(RidgeLogistic(random_state=0))
    X = FeatureEncoder().fit_transform(dataset.X)
    Y = pd.DataFrame(dataset.Y, columns=list(NAMES))
    model = fgfm.FClassifier(ridge, random_state=0)
    expected = evaluate(model, X, Y, folds=4).as_dict()
    assert found["measures"] == expected["measures"]
    assert found["averages"] == expected["averages"]
    assert found["protocol"] == "4-fold cross-validation"
    assert (found["rows"], found["features"], found["labels"]) == (120, 5, 4)


def test_two_files_and_fitted_model_agree(folder, model):
    files = run_json(folder / "train.arff", "--test", folder / "test.arff", "-e", "ridge")
    fitted = run_json(folder / "test.arff", "--model", model)
    assert fitted["n_rows"] == files["n_rows"] == 40
    for measure, by_rule in files["measures"].items():
        for rule in ("f_optimal", "half"):
            assert_allclose(fitted["measures"][measure][rule], by_rule[rule], rtol=1e-9)


def test_beta_of_a_fitted_model_is_replaced(folder, model):
    sizes = []
    for beta in (1, 3):
        found = run_json(folder / "test.arff", "--model", model, "--beta", beta)
        assert found["beta"] == beta
        sizes.append(found["measures"]["labels_per_row"]["f_optimal"])
    assert sizes[0] < sizes[1]


def test_model_without_names_is_evaluated(folder, tmp_path):
    X, Y = make_rows()
    classifier = fgfm.FClassifier(random_state=0).fit(X, Y)
    fgfm.save(classifier, tmp_path / "m.fgfm")
    found = run_json(folder / "all.arff", "--model", tmp_path / "m.fgfm")
    f = found["measures"]["instance_f"]["f_optimal"]
    assert_allclose(f, classifier.score(X, Y))


def test_table_shows_measures_gains_and_notes(folder):
    table = run_ok("evaluate", folder / "all.arff", "--folds", "2").stdout
    for text in ("F-optimal", "p > 0.5", "p > t", "instance F1", "  F-optimal", "t = "):
        assert text in table
    assert "learner auto; 2-fold cross-validation" in table
