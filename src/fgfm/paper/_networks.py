"""The random Bayesian networks of the paper: samples and exact distributions.

The features are binary and independent of each other. The first few are parents of every label,
the others of none. The labels of a factor are fully connected, each with all earlier ones as
parents; labels of different factors are independent given the features. Every conditional
distribution is drawn uniformly from the simplex.

A network computes exactly what models estimate: the distribution of the label set given x, the
matrices P, the F-optimal decision, and the expected F-measure of any other decision.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.validation import (
    check_beta,
    check_count,
    check_same_rows,
    clip_probabilities,
    label_sets,
    real_array,
)
from fgfm.cardinality import merge_factors, of_joint
from fgfm.decision import Decision, from_factors

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Bits = npt.NDArray[np.int8]

STRUCTURES: dict[int, tuple[int, ...]] = {1: (2, 2, 2, 2), 2: (4, 4), 3: (6, 2), 4: (8,)}
"""The sizes of the label factors in the four structures of the paper."""

_N_PARENTS, _N_IRRELEVANT, _N_TEST = 4, 2, 5000  # of the paper's experiment
_MAX_BITS = 22  # of the index of a table: parents and labels of a factor
_MAX_INPUTS = 16  # number of features whose combinations `inputs` enumerates
_MAX_LABELS = 16  # number of labels whose sets `joint` enumerates


class Sample(NamedTuple):
    """Rows drawn from a network."""

    X: Bits  # (n, p) features, 0 or 1
    Y: Bits  # (n, m) labels, 0 or 1


class Joint(NamedTuple):
    """The distribution of label sets given the features."""

    labelsets: Bits  # (L, m) all label sets
    proba: Floats  # (n, L) their probabilities, for each row


class PaperData(NamedTuple):
    """One data set of the paper's experiment: a distribution, and rows drawn from it."""

    network: LabelNetwork
    train: Sample
    test: Sample


class LabelNetwork:
    r"""A Bayesian network of binary features and of labels in independent factors.

    Parameters
    ----------
    factor_sizes : sequence of int
        Number of labels of each factor. Factors hold consecutive labels.
    feature_probability : array-like of shape (p,)
        Probability that each feature is 1.
    tables : sequence of m array-likes
        For each label, its probability in each state of its parents: the `n_parents` first
        features and the k labels before it in its factor, :math:`2^{n\_parents + k}` numbers. The
        first feature is the lowest bit of a state, the last of these labels the highest.
    n_parents : int
        Number of features, the first ones, that are parents of the labels.

    Attributes
    ----------
    factors : list of ndarray
        The labels of each factor.
    n_features : int
        Number of features, p.
    n_labels : int
        Number of labels, m.

    See Also
    --------
    random_network : Draw a network at random.

    Examples
    --------
    One feature and two labels; the second label equals the first with probability 0.9:

    >>> network = LabelNetwork([2], [0.5], [[0.2, 0.6], [0.1, 0.1, 0.9, 0.9]], 1)
    >>> network.marginals([[0], [1]])
    array([[0.2 , 0.26],
           [0.6 , 0.58]])
    >>> network.decide([[0], [1]])
    Decision(labels=array([[0, 0],
           [1, 1]], dtype=int8), expected_f=array([0.72      , 0.60666667]))
    """

    def __init__(
        self,
        factor_sizes: Sequence[int],
        feature_probability: Any,
        tables: Sequence[Any],
        n_parents: int,
    ) -> None:
        sizes = _check_sizes(factor_sizes)
        name = "feature_probability"
        p = clip_probabilities(real_array(feature_probability, name, ("feature",)), name)
        self.n_parents = check_count(n_parents, "n_parents")
        if self.n_parents > len(p):
            raise ValueError(
                f"n_parents is {n_parents}: feature_probability has {len(p)} features, of which "
                "the parents are the first"
            )
        _check_bits(self.n_parents, sizes)
        self.factor_sizes = sizes
        self.factors = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        self.feature_probability = p.astype(np.float64)
        self.n_features, self.n_labels = len(p), sum(sizes)
        if len(tables) != self.n_labels:
            raise ValueError(
                f"tables has {len(tables)} elements: there must be one for each of the "
                f"{self.n_labels} labels"
            )
        self.tables: list[Floats] = []
        parents = [self.n_parents + k for size in sizes for k in range(size)]  # of each label
        for label, (values, k) in enumerate(zip(tables, parents, strict=True)):
            table = real_array(values, f"tables[{label}]", ("state",))
            if len(table) != 1 << k:
                raise ValueError(
                    f"tables[{label}] has {len(table)} probabilities: with {k} parents it must "
                    f"have {1 << k}"
                )
            self.tables.append(clip_probabilities(table, f"tables[{label}]").astype(np.float64))

    def __repr__(self) -> str:
        return (
            f"LabelNetwork(factor_sizes={self.factor_sizes}, n_features={self.n_features}, "
            f"n_parents={self.n_parents})"
        )

    def sample(self, n: int, random_state: Any = None) -> Sample:
        """Draw rows.

        Parameters
        ----------
        n : int
            Number of rows. A larger sample from the same seed begins with the same rows.
        random_state : int, Generator, SeedSequence or None, default=None
            Seed, as in `numpy.random.default_rng`.

        Returns
        -------
        Sample
            Features ``X`` (n, p) and labels ``Y`` (n, m).
        """
        n = check_count(n, "n")
        p = self.n_features
        # one row of random numbers per row of data: larger samples begin with the same rows
        u = np.random.default_rng(random_state).random((n, p + self.n_labels))
        X = (u[:, :p] < self.feature_probability).astype(np.int8)
        Y = np.empty((n, self.n_labels), dtype=np.int8)
        start = self._states(X)
        for factor in self.factors:
            state = start.copy()
            for k, label in enumerate(factor):
                Y[:, label] = u[:, p + label] < self.tables[label][state]
                state += Y[:, label].astype(np.int64) << (self.n_parents + k)
        return Sample(X, Y)

    def inputs(self) -> tuple[Bits, Floats]:
        """Enumerate all feature vectors and their probabilities.

        Returns
        -------
        X : ndarray of shape (2^p, p)
            The feature vectors.
        proba : ndarray of shape (2^p,)
            Their probabilities.
        """
        if self.n_features > _MAX_INPUTS:
            raise ValueError(
                f"the network has {self.n_features} features: inputs enumerates the combinations "
                f"of at most {_MAX_INPUTS}; use sample to draw rows"
            )
        return _all_bits(self.n_features), self._input_proba(self.n_features)

    def joint(self, X: Any) -> Joint:
        """Compute the probability of every label set.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Features.

        Returns
        -------
        Joint
            ``labelsets``, all label sets (2^m, m), and ``proba``, their probabilities (n, 2^m).
        """
        if self.n_labels > _MAX_LABELS:
            raise ValueError(
                f"the network has {self.n_labels} labels: joint enumerates the sets of at most "
                f"{_MAX_LABELS}"
            )
        state = self._states(X)
        proba = np.ones((len(state), 1))
        for part in self._joints:  # later labels are higher bits of the index of a set
            proba = (part.proba[state][:, :, None] * proba[:, None, :]).reshape(len(proba), -1)
        return Joint(_all_bits(self.n_labels), proba)

    def marginals(self, X: Any) -> Floats:
        """Compute the probability of each label.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Features.

        Returns
        -------
        ndarray of shape (n, m)
            Probabilities.
        """
        state = self._states(X)
        return np.hstack([j.proba @ j.labelsets for j in self._joints])[state]

    def decide(self, X: Any, *, beta: float = 1.0) -> Decision:
        """Compute the F-optimal decisions under this distribution.

        An empty decision for an empty true set counts as 1.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Features.
        beta : float, default=1.0
            Weight of recall relative to precision.

        Returns
        -------
        Decision
            ``labels`` (n, m) and ``expected_f`` (n,).
        """
        state = self._states(X)
        decision = self._decide_states(beta)
        return Decision(decision.labels[state], decision.expected_f[state])

    def expected_f(self, X: Any, labels: Any, *, beta: float = 1.0) -> Floats:
        r"""Compute the expected F-measure of decisions, :math:`E[F_\beta(y, h) \mid x]`.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Features.
        labels : array-like of shape (n, m)
            The decisions h, 0 or 1.
        beta : float, default=1.0
            Weight of recall relative to precision.

        Returns
        -------
        ndarray of shape (n,)
            The exact expectation for each row.
        """
        beta = check_beta(beta)
        h = label_sets(labels, "labels")
        h = (h.toarray() if hasattr(h, "toarray") else h).astype(np.float64)  # (n, m)
        state = self._states(X)
        check_same_rows([len(state), len(h)], ["X", "labels"])
        if h.shape[1] != self.n_labels:
            raise ValueError(
                f"labels has {h.shape[1]} columns: the network has {self.n_labels} labels"
            )
        merged = merge_factors(self._exact_P, self.factors)
        return mean_f(merged.P, merged.d[:, 0], state, h, beta)

    def bayes_f(self, *, beta: float = 1.0) -> float:
        """Compute the largest expected F-measure of any decision rule.

        Parameters
        ----------
        beta : float, default=1.0
            Weight of recall relative to precision.

        Returns
        -------
        float
            The exact expectation over features and labels.
        """
        return float(self._input_proba(self.n_parents) @ self._decide_states(beta).expected_f)

    def _states(self, X: Any) -> Integers:
        """Validate features; return the state of the parents, the first being the lowest bit."""
        bits = label_sets(X, "X", ("row", "feature"))
        if bits.shape[1] != self.n_features:
            raise ValueError(
                f"X has {bits.shape[1]} columns: the network has {self.n_features} features"
            )
        bits = bits.toarray() if hasattr(bits, "toarray") else bits
        return np.asarray(bits[:, : self.n_parents] @ (1 << np.arange(self.n_parents)))

    def _input_proba(self, k: int) -> Floats:
        """Return the probabilities (2^k,) of all values of the first k features."""
        p = self.feature_probability[:k]
        return np.asarray(np.where(_all_bits(k) == 1, p, 1.0 - p).prod(axis=1))

    def _decide_states(self, beta: float) -> Decision:
        """Decide in every state of the parents."""
        return from_factors(self._exact_P, [f.tolist() for f in self.factors], beta=beta)

    @cached_property
    def _joints(self) -> list[Joint]:
        """The distribution of the label sets of each factor in all states of the parents."""
        joints = []
        for factor in self.factors:
            proba = np.ones((1 << self.n_parents, 1))
            for k, label in enumerate(factor):
                # chain rule: label k doubles the sets, without it and then with it
                p = self.tables[label].reshape(1 << k, -1).T  # (states, 2^k)
                proba = np.hstack([proba * (1.0 - p), proba * p])
            joints.append(Joint(_all_bits(len(factor)), proba))
        return joints

    @cached_property
    def _exact_P(self) -> list[Floats]:
        """P of each factor, (states, m_f, m_f), in all states of the parents."""
        return [of_joint(j.labelsets, j.proba) for j in self._joints]


def mean_f(P: Floats, d_0: Floats, row: Integers, h: Floats, beta: float) -> Floats:
    """Return the expected F-measure of label sets h (n, m) under P[row] and d_0[row]."""
    s, squared_beta = np.arange(1, P.shape[2] + 1), beta**2
    k = h.sum(axis=1).astype(np.int64)  # (n,)
    value: Floats = d_0[row]  # of empty sets
    for size in np.unique(k[k > 0]):
        # E[F] is the sum over i in h of Delta_ik = sum_s (1 + beta^2) p_is / (beta^2 s + k)
        delta = P @ ((1.0 + squared_beta) / (squared_beta * s + size))  # (states, m)
        chosen = k == size
        value[chosen] = (delta[row[chosen]] * h[chosen]).sum(axis=1)
    return value


def random_network(
    factor_sizes: Sequence[int] = STRUCTURES[1],
    *,
    n_parents: int = _N_PARENTS,
    n_irrelevant: int = _N_IRRELEVANT,
    random_state: Any = None,
) -> LabelNetwork:
    """Draw a network with every conditional distribution uniform on the simplex.

    Parameters
    ----------
    factor_sizes : sequence of int, default=(2, 2, 2, 2)
        Number of labels of each factor.
    n_parents : int, default=4
        Number of features that are parents of every label.
    n_irrelevant : int, default=2
        Number of features that no label depends on.
    random_state : int, Generator, SeedSequence or None, default=None
        Seed, as in `numpy.random.default_rng`.

    Returns
    -------
    LabelNetwork
        The network.

    Examples
    --------
    >>> network = random_network((3, 2), random_state=0)
    >>> X, Y = network.sample(1000, random_state=1)
    >>> X.shape, Y.shape
    ((1000, 6), (1000, 5))
    >>> network.factors
    [array([0, 1, 2]), array([3, 4])]
    >>> round(network.bayes_f(), 3)
    0.747
    """
    sizes = _check_sizes(factor_sizes)
    n_parents = check_count(n_parents, "n_parents")
    p = n_parents + check_count(n_irrelevant, "n_irrelevant")
    _check_bits(n_parents, sizes)
    if p == 0:
        raise ValueError("n_parents and n_irrelevant are 0: there must be at least one feature")
    rng = np.random.default_rng(random_state)
    feature_probability = rng.random(p)
    tables = [rng.random(1 << (n_parents + k)) for size in sizes for k in range(size)]
    return LabelNetwork(sizes, feature_probability, tables, n_parents)


def paper_data(
    structure: int | Sequence[int],
    repetition: int,
    n_train: int,
    *,
    n_test: int = _N_TEST,
    seed: int = 0,
) -> PaperData:
    """Draw one data set of the paper's experiment.

    The network and the test rows depend on structure, repetition and seed only. The training rows
    of a smaller data set are the first rows of a larger one.

    Parameters
    ----------
    structure : {1, 2, 3, 4} or sequence of int
        A structure of the paper, or the sizes of the label factors.
    repetition : int
        Index of the distribution; the paper has 100 of each structure.
    n_train : int
        Number of training rows; in the paper 50, 100, 200, 500, 1000, 2000 and 5000.
    n_test : int, default=5000
        Number of test rows.
    seed : int, default=0
        Seed of the whole experiment.

    Returns
    -------
    PaperData
        ``network``, a `LabelNetwork`; ``train`` and ``test``, rows with features ``X`` and labels
        ``Y``.

    Examples
    --------
    >>> network, train, test = paper_data(3, repetition=1, n_train=50)
    >>> network
    LabelNetwork(factor_sizes=(6, 2), n_features=6, n_parents=4)
    >>> train.X.shape, test.Y.shape
    ((50, 6), (5000, 8))
    """
    sizes = factor_sizes_of(structure)
    repetition = check_count(repetition, "repetition")
    key = (len(sizes), *sizes, repetition)
    streams = np.random.SeedSequence(check_count(seed, "seed"), spawn_key=key).spawn(3)
    network = random_network(sizes, random_state=streams[0])
    return PaperData(
        network, network.sample(n_train, streams[1]), network.sample(n_test, streams[2])
    )


def factor_sizes_of(structure: Any, name: str = "structure") -> tuple[int, ...]:
    """Return the sizes of the label factors of a structure.

    Examples
    --------
    >>> factor_sizes_of(3), factor_sizes_of([3, 1])
    ((6, 2), (3, 1))
    """
    if not isinstance(structure, numbers.Integral):
        return _check_sizes(structure, name)
    if int(structure) not in STRUCTURES:
        raise ValueError(
            f"{name} is {structure}: it must be one of {', '.join(map(str, STRUCTURES))}, or the "
            "sizes of the label factors"
        )
    return STRUCTURES[int(structure)]


def _check_sizes(sizes: Any, name: str = "factor_sizes") -> tuple[int, ...]:
    try:
        listed = tuple(sizes)
    except TypeError:
        raise TypeError(f"{name} is {sizes!r}: it must be a sequence of integers") from None
    if not listed:
        raise ValueError(f"{name} is empty: there must be at least one factor")
    return tuple(check_count(size, f"{name}[{f}]", 1) for f, size in enumerate(listed))


def _check_bits(n_parents: int, sizes: tuple[int, ...]) -> None:
    if n_parents + max(sizes) > _MAX_BITS:
        raise ValueError(
            f"{n_parents} parents and a factor of {max(sizes)} labels need tables of "
            f"2^{n_parents + max(sizes)} probabilities: parents and labels must not exceed "
            f"{_MAX_BITS} together"
        )


def _all_bits(n: int) -> Bits:
    """Return all vectors of n bits, (2^n, n); the first column is the lowest bit."""
    return ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1).astype(np.int8)
