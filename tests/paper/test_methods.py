"""The methods of the experiment: those of the classifier, scored exactly."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.preprocessing import PolynomialFeatures

import fgfm
from fgfm import FGFMClassifier
from fgfm.paper import paper_data, reproduce
from fgfm.ridge import RidgeLogistic


def classifier(estimates, factors, **parameters):
    published = estimates == "published"
    return FGFMClassifier(
        RidgeLogistic(penalize_intercept=published, reference_class=published),
        factors=factors,
        coherent=not published,
        nonempty=False,
        **parameters,
    )


def partition_of(record):
    return [[int(label) for label in part.split()] for part in record.factors.split("|")]


@pytest.mark.parametrize("estimates", ["published", "ours"])
def test_methods_decide_like_the_classifier(tmp_path, estimates):
    results = reproduce(
        tmp_path,
        estimates=estimates,
        reps=1,
        sizes=[60, 200],
        structures=[2],
        interactions="largest",
        beta=2.0,
        seed=5,
        n_test=400,
    )
    records = results.runs[estimates].records
    assert len(records) == 3 * 6
    network, whole, test = paper_data(2, 1, 200, n_test=400, seed=5)
    for r in records:
        X, Y, X_test = whole.X[: r.n], whole.Y[: r.n], test.X
        if r.learner == "interactions":
            expand = PolynomialFeatures(4, interaction_only=True, include_bias=False)
            X, X_test = expand.fit_transform(X), expand.transform(X_test)
        bayes = next(b for b in records if b[:4] == r[:4] and b.method == "bayes")
        assert r.f_exact <= bayes.f_exact + 1e-12
        if r.method == "bayes":
            labels = network.decide(test.X, beta=2.0).labels
        else:
            folds = int(np.random.SeedSequence([5, 1, r.n, 4, 4]).generate_state(1)[0] >> 1)
            model = classifier(estimates, partition_of(r), beta=2.0, random_state=folds)
            model.fit(X, Y)
            labels = model.predict(X_test)
            if r.method == "threshold":
                labels = model.predict_proba(X_test) > 0.5
        assert_allclose(r.f, fgfm.f_measure(test.Y, labels, 2.0), rtol=1e-12)
        if r.method == "ilf" and estimates == "ours":
            learned = fgfm.ILFCompo("mi", 0.01, correction=None).fit(whole.X[: r.n], Y)
            assert partition_of(r) == [factor.tolist() for factor in learned.factors_]
    factors = {r.method: r.factors for r in records}
    assert factors["gfm"] == "0 1 2 3 4 5 6 7"
    assert factors["true"] == factors["bayes"] == "0 1 2 3|4 5 6 7"
    assert factors["independent"] == factors["threshold"] == "0|1|2|3|4|5|6|7"


def test_exact_f_is_the_mean_over_the_whole_distribution(tmp_path):
    results = reproduce(
        tmp_path,
        estimates="ours",
        reps=1,
        sizes=[50],
        structures=[(2, 1)],
        methods=["gfm", "bayes"],
        interactions="none",
    )
    gfm, bayes = results.runs["ours"].records
    network, train, _ = paper_data((2, 1), 1, 50)
    X, proba = network.inputs()
    assert_allclose(bayes.f_exact, network.bayes_f(), rtol=1e-12)
    folds = int(np.random.SeedSequence([0, 1, 50, 2, 1]).generate_state(1)[0] >> 1)
    model = classifier("ours", "single", random_state=folds)
    labels = model.fit(train.X, train.Y).predict(X)
    joint = network.joint(X)
    F = [
        [fgfm.f_measure(y[None], h[None]) if y.any() or h.any() else 1.0 for y in joint.labelsets]
        for h in labels
    ]
    assert_allclose(gfm.f_exact, proba @ (joint.proba * F).sum(axis=1), rtol=1e-12)


def test_published_grouping_differs_from_components(tmp_path):
    """The grouping of the authors' scripts reads half of the tests: its factors are smaller."""
    results = reproduce(
        tmp_path,
        estimates="both",
        reps=12,
        sizes=[200],
        structures=[4],
        methods=["ilf"],
        interactions="none",
    )
    count = {
        kind: np.array([len(partition_of(r)) for r in run.records])
        for kind, run in results.runs.items()
    }
    assert (count["published"] >= count["ours"]).all()
    assert (count["published"] > count["ours"]).any()
