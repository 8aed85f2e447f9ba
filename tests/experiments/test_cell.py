"""One cell of the experiment: the methods are those of the package, scored exactly."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.preprocessing import PolynomialFeatures

import fgfm
from fgfm.experiments._cell import (
    METHODS,
    Cell,
    Settings,
    find_factors,
    partition_name,
    run_cell,
)
from fgfm.ridge import RidgeLogistic
from fgfm.synthetic import paper_data


def classifier(estimates, factors, **parameters):
    published = estimates == "published"
    return fgfm.FGFMClassifier(
        RidgeLogistic(penalize_intercept=published, reference_class=published),
        factors=factors,
        method="two-step",
        coherent=not published,
        nonempty=False,
        **parameters,
    )


@pytest.mark.parametrize(
    ("learner", "estimates"),
    [
        ("linear", "published"),
        pytest.param("linear", "ours", marks=pytest.mark.slow),
        pytest.param("interactions", "published", marks=pytest.mark.slow),
        ("interactions", "ours"),
    ],
)
def test_methods_predict_like_the_classifier(learner, estimates):
    settings = Settings(seed=5, beta=2.0, n_test=400, estimates=estimates)
    cell = Cell((4, 4), 200, 3, learner, METHODS, settings)
    rows = {row[4]: row[5:] for row in run_cell(cell)}
    network, train, test = paper_data(2, 3, 200, n_test=400, seed=5)
    X, X_test = train.X, test.X
    if learner == "interactions":
        expand = PolynomialFeatures(4, interaction_only=True, include_bias=False)
        X, X_test = expand.fit_transform(X), expand.transform(X_test)
    folds = int(np.random.SeedSequence([5, 3, 200, 4, 4]).generate_state(1)[0] >> 1)
    for method, (f, exact, factors) in rows.items():
        assert exact <= rows["bayes"][1] + 1e-12
        if method == "bayes":
            labels = network.decide(test.X, beta=2.0).labels
        else:
            partition = [[int(i) for i in part.split()] for part in factors.split("|")]
            model = classifier(estimates, partition, beta=2.0, random_state=folds)
            model.fit(X, train.Y)
            labels = model.predict(X_test)
            if method == "threshold":
                labels = model.predict_proba(X_test) > 0.5
        assert_allclose(f, fgfm.f_measure(test.Y, labels, 2.0), rtol=1e-12)
    assert rows["gfm"][2] == "0 1 2 3 4 5 6 7"
    assert rows["true"][2] == rows["bayes"][2] == "0 1 2 3|4 5 6 7"
    assert rows["independent"][2] == rows["threshold"][2] == "0|1|2|3|4|5|6|7"
    found = find_factors(train.X, train.Y, estimates)
    assert rows["ilf"][2] == partition_name(found)


def test_exact_f_is_the_mean_over_the_whole_distribution():
    settings = Settings(estimates="ours")
    cell = Cell((2, 1), 50, 1, "linear", ("gfm", "bayes"), settings)
    gfm, bayes = run_cell(cell)
    network, train, _ = paper_data((2, 1), 1, 50)
    X, proba = network.inputs()
    assert_allclose(bayes[6], network.bayes_f(), rtol=1e-12)
    folds = int(np.random.SeedSequence([0, 1, 50, 2, 1]).generate_state(1)[0] >> 1)
    model = classifier("ours", "single", random_state=folds)
    labels = model.fit(train.X, train.Y).predict(X)
    joint = network.joint(X)
    F = [
        [fgfm.f_measure(y[None], h[None]) if y.any() or h.any() else 1.0 for y in joint.labelsets]
        for h in labels
    ]
    assert_allclose(gfm[6], proba @ (joint.proba * F).sum(axis=1), rtol=1e-12)


def test_published_grouping_differs_from_components():
    """The grouping of the authors' scripts reads half of the tests: its factors are smaller."""
    for repetition in range(1, 30):
        _, train, _ = paper_data(4, repetition, 200)
        published = find_factors(train.X, train.Y, "published")
        ours = find_factors(train.X, train.Y, "ours")
        assert len(published) >= len(ours)
        if len(published) > len(ours):
            return
    pytest.fail("both groupings agree on all data sets")
