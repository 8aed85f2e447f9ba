"""Progress of a fit: verbose output and the callbacks of scikit-learn 1.9."""

from __future__ import annotations

import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

from fgfm import FGFMClassifier
from multilabel import X, Y, assert_close, assert_same, one_factor


def test_verbose(capsys):
    FGFMClassifier(random_state=0).fit(X, Y)
    assert capsys.readouterr().out == ""
    FGFMClassifier("ridge", factors=[[0, 1], [2, 3]], verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[FGFMClassifier] 4 label(s) in 2 factor(s) (")
    assert lines[-1].startswith("[FGFMClassifier] 6 of 6 models (")
    assert len(lines) == 2
    FGFMClassifier(GaussianNB(), factors="independent", verbose=2).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("] ")[1].split(" (")[0] for line in lines[1:]] == [
        f"{count} of 4 models" for count in (1, 2, 3, 4)
    ]
    FGFMClassifier(method=one_factor("two-step"), factors=[[0, 1], [2, 3]], verbose=1).fit(X, Y)
    assert "2 of 2 models" in capsys.readouterr().out


class Recording:
    """A callback of scikit-learn 1.9 that records its calls."""

    def __init__(self):
        self.record = []

    def setup(self, estimator, context):
        self.record.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.record.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context, **_):
        self.record.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, **_):
        self.record.append(("end", context.task_name))


@pytest.mark.parametrize(
    ("settings", "models"),
    [
        ({}, 5),
        ({"factors": "independent"}, 4),
        ({"method": "powerset"}, 1),
        ({"estimator": GaussianNB(), "calibration": None}, 5),
        ({"method": one_factor("two-step"), "factors": [[0, 1], [2, 3]]}, 2),
    ],
    ids=str,
)
def test_callbacks_receive_every_model(settings, models):
    pytest.importorskip("sklearn.callback")
    recorder = Recording()
    model = FGFMClassifier(random_state=0, **settings).set_callbacks(recorder).fit(X, Y)
    names = [name for kind, name in recorder.record if kind == "begin"]
    assert sorted(names) == sorted(name for kind, name in recorder.record if kind == "end")
    assert names.count("model") == models
    assert names.count("models") == names.count("label factors") == 1
    assert len(names) == models + 3
    assert recorder.record[0][0] == "setup"
    assert recorder.record[-1][0] == "teardown"
    assert_close(model, FGFMClassifier(random_state=0, **settings).fit(X, Y), atol=1.0)


def test_callbacks_of_a_failing_fit_are_torn_down():
    pytest.importorskip("sklearn.callback")
    recorder = Recording()
    with pytest.raises(ValueError, match="labels must be 0 or 1"):
        FGFMClassifier().set_callbacks(recorder).fit(X, Y + 1)
    kinds = [kind for kind, _ in recorder.record]
    assert kinds.count("setup") == kinds.count("teardown")


def test_progress_bar(capsys):
    callback = pytest.importorskip("sklearn.callback")
    pytest.importorskip("rich")
    model = FGFMClassifier(random_state=0).set_callbacks(callback.ProgressBar()).fit(X, Y)
    assert "FGFMClassifier" in capsys.readouterr().out
    assert_same(model, FGFMClassifier(random_state=0).fit(X, Y))
    search = GridSearchCV(FGFMClassifier(random_state=0), {"beta": [1.0, 2.0]}, cv=2)
    search.set_callbacks(callback.ProgressBar()).fit(X, Y)
