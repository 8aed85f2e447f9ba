r"""Estimates of P from features and labels, for each label factor.

``FGFMClassifier(method=...)`` chooses how :math:`p_{is} = p(y_i = 1, |y| = s)` and
:math:`d_s = p(|y| = s)` of a factor are estimated, with any scikit-learn classifier as base
learner:

- "reweighted": one model per label and one of the number of labels; the distribution of the number
  of labels is learned from held-out predictions of both;
- "two-step": a model of the number of labels, and one per label given that number (the paper);
- "tilted": a model of the number of labels and one per label, combined by tilting the marginals;
- "direct": one multinomial model per label, over 0 and the numbers of labels;
- "powerset": one multinomial model of the label set.

An object of yours can take their place. It is a scikit-learn estimator (each factor gets its own
``sklearn.base.clone``) with two methods:

- ``fit(X, Y)``, with Y of shape (n, m) the labels of the factor, 0 or 1; also ``sample_weight`` if
  the classifier is given weights;
- ``estimate(X)``, which returns P of shape (n, m, S), or the pair of P and d of shape (n, S + 1).
"""

from __future__ import annotations

from fgfm.estimation._calibration import needs_calibration
from fgfm.estimation._estimates import FactorEstimate

__all__ = ["FactorEstimate", "needs_calibration"]


def __dir__() -> list[str]:
    return __all__
