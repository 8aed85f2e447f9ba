"""Random rows against enumeration: every route, average, measure and limit.

Probabilities are equal or nearly so, 0 and 1, and as small as numbers can be. The enumeration is
in long double, which has more digits and a larger range than the decisions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse

import oracle
from cases import dense
from fgfm import decision
from fgfm.decision import Constraints

pytestmark = pytest.mark.skipif(
    np.finfo(np.longdouble).maxexp < 2000, reason="long double has no larger range here"
)
PADDED = 150  # labels: more than the kernel for short rows takes


class Case(NamedTuple):
    """One call: what a failure prints."""

    route: str
    values: np.ndarray  # (n, ..), what the route builds its input from
    m: int
    dtype: str
    options: dict[str, Any]


# Values ------------------------------------------------------------------------------------------


def numbers(rng: np.random.Generator, n: int, width: int, least: float) -> np.ndarray:
    """Draw numbers in [0, 1], positive ones not below `least`, of two kinds in each row."""
    shape = (n, width)
    near = rng.random((n, 1)) * (1.0 + 1e-13 * rng.integers(-9, 10, shape))
    kinds = [
        rng.random(shape),
        rng.random(shape) ** 6,
        rng.integers(0, 9, shape) / 8.0,  # equal ones
        np.minimum(near, 1.0),
        rng.integers(0, 2, shape).astype(np.float64),
        10.0 ** (np.log10(least) * rng.random(shape)),
        least * rng.integers(0, 4, shape),
        1.0 - 10.0 ** (-16.0 * rng.random(shape)),
    ]
    first, second = rng.integers(len(kinds), size=(2, n, 1))
    kind = np.where(rng.random(shape) < 0.5, first, second)
    return np.choose(kind, kinds)


def marginal_values(rng, n, m, least):
    return numbers(rng, n, m, least)


def logit_values(rng, n, m, least):
    values = rng.choice([-3.0, 0.5, 2.0, 40.0, -90.0, -100.0, -300.0], (n, m))
    drawn = rng.normal(size=(n, m)) * rng.choice([1.0, 30.0], (n, 1)) + rng.choice(
        [0, -150], (n, 1)
    )
    return np.where(rng.random((n, 1)) < 0.5, values, drawn).astype(np.float32).astype(np.float64)


def set_values(rng, n, m, least):
    """Draw the masses of all label sets; few sets have any."""
    return numbers(rng, n, 2**m, least) * (rng.random((n, 2**m)) < rng.random((n, 1)))


def factor_values(rng, n, m, least):
    return np.hstack([set_values(rng, n, size, least) for size in factor_sizes(m)])


def draw_values(rng, n, m, least):
    return rng.integers(0, 2**m, (n, 5)).astype(np.float64)


# Routes: the joint distribution, and the arguments of the decision by name -----------------------


def factor_sizes(m: int) -> list[int]:
    """Return the sizes of factors of m labels: one or two of several labels, and single labels."""
    return [m // 2, m - m // 2] if m % 2 == 0 and m > 2 else [m - m // 2] + [1] * (m // 2)


def unit(masses: np.ndarray) -> np.ndarray:
    """Return masses of label sets as probabilities; without any, the empty set is certain."""
    masses = masses.copy()
    masses[masses.max(axis=1) == 0.0, 0] = 1.0
    return masses / masses.sum(axis=1, keepdims=True)


def marginals(p, m):
    return oracle.independent_joint(p.astype(np.longdouble)), decision.from_marginals, {"proba": p}


def csr_marginals(p, m):
    joint, function, _ = marginals(p, m)
    return joint, function, {"proba": sparse.csr_array(p)}


def padded_marginals(p, m):
    joint, function, _ = marginals(p, m)
    return joint, function, {"proba": np.pad(p, ((0, 0), (0, PADDED - m)))}


def logits(values, m):
    p = 1.0 / (1.0 + np.exp(-values.astype(np.longdouble)))
    return oracle.independent_joint(p), decision.from_marginals, {"proba": values, "logits": True}


def set_joint(masses, m):
    return oracle.all_labelsets(m), unit(masses).astype(np.longdouble)


def cardinalities(masses, m):
    joint = set_joint(masses, m)
    return joint, decision.from_cardinalities, {"P": oracle.cardinality_matrix(*joint)}


def distribution(masses, m):
    joint, function, arguments = cardinalities(masses, m)
    return joint, function, {**arguments, "distribution": oracle.cardinality_distribution(*joint)}


def joints(masses, m):
    joint = set_joint(masses, m)
    arguments = {"labelsets": joint[0], "proba": joint[1].astype(np.float64)}
    return joint, decision.from_joint, arguments


def factor_distributions(masses, m):
    return factors(masses, m, with_distributions=True)


def factors(masses, m, *, with_distributions=False):
    sizes = factor_sizes(m)
    members = [part.tolist() for part in np.split(np.arange(m)[::-1], np.cumsum(sizes)[:-1])]
    parts = np.split(masses, np.cumsum([2**size for size in sizes])[:-1], axis=1)
    own = [set_joint(part, size) for part, size in zip(parts, sizes, strict=True)]
    Ps = [oracle.cardinality_matrix(*joint) for joint in own]
    joint = oracle.product_joint(own, members)
    arguments = {"Ps": Ps, "factors": members}
    if with_distributions:
        arguments["distributions"] = [oracle.cardinality_distribution(*joint) for joint in own]
    return joint, decision.from_factors, arguments


def sparse_factors(masses, m):
    joint, function, arguments = factors(masses, m)
    Ps = [sparse.csr_array(P[:, :, 0]) if P.shape[1] == 1 else P for P in arguments["Ps"]]
    return joint, function, {**arguments, "Ps": Ps}


def samples(values, m):
    sets = oracle.all_labelsets(m)
    drawn = values.astype(np.int64)  # (n, T)
    counts = (drawn[:, :, None] == np.arange(2**m)).sum(axis=1)  # (n, 2^m)
    proba = counts.astype(np.longdouble) / drawn.shape[1]
    return (sets, proba), decision.from_samples, {"samples": sets[drawn]}


class Route(NamedTuple):
    """How values are drawn, and what is built from them."""

    draw: Callable[..., np.ndarray]
    build: Callable[[np.ndarray, int], tuple[oracle.Joint, Callable[..., Any], dict[str, Any]]]
    is_independent: bool = False
    is_sparse: bool = False


ROUTES = {
    "marginals": Route(marginal_values, marginals, True),
    "csr_marginals": Route(marginal_values, csr_marginals, True, True),
    "padded_marginals": Route(marginal_values, padded_marginals, True),
    "logits": Route(logit_values, logits, True),
    "cardinalities": Route(set_values, cardinalities),
    "distribution": Route(set_values, distribution),
    "factors": Route(factor_values, factors),
    "factor_distributions": Route(factor_values, factor_distributions),
    "sparse_factors": Route(factor_values, sparse_factors, False, True),
    "samples": Route(draw_values, samples),
    "joints": Route(set_values, joints),
}


# Cases -------------------------------------------------------------------------------------------


def random_limits(rng: np.random.Generator, m: int) -> dict[str, Any]:
    """Draw sizes and constraints, perhaps contradictory, for m labels."""
    order = rng.permutation(m).tolist()
    first, second = sorted(rng.integers(0, 3, 2).tolist())
    arguments: dict[str, Any] = {"required": order[:first], "forbidden": order[first:second]}
    structure = rng.choice(["none", "groups", "parents"])
    order = rng.permutation(m).tolist()
    if structure == "groups":
        middle = m // 2
        arguments["groups"] = [order[:middle], order[middle : rng.integers(middle, m + 1)]]
        if any(
            len({*group, *arguments["required"]}) <= len(group) + len(arguments["required"]) - 2
            for group in arguments["groups"]
        ):
            arguments["required"] = []
    elif structure == "parents":
        above = [int(rng.integers(-1, i)) if i else -1 for i in range(m)]
        arguments["parents"] = {order[i]: order[j] for i, j in enumerate(above) if j >= 0}
    if rng.random() < 0.4:
        arguments["costs"] = rng.choice([0.0, 0.01, 0.1, 0.5], m).tolist()
    least = int(rng.integers(0, m + 1))
    most = int(rng.integers(max(1, least), m + 1)) if rng.random() < 0.7 else None
    constraints = Constraints(**arguments) if rng.random() < 0.7 else None
    return {"min_labels": least, "max_labels": most, "constraints": constraints}


KINDS = ["any", "averages", "limits"]


def random_case(seed: int, name: str, kind: str = "any") -> Case:
    """Draw a case of a route: any, one of columns or all entries, or one with limits."""
    rng = np.random.default_rng([seed, KINDS.index(kind)] if kind != "any" else seed)
    limited = kind == "limits"
    route = ROUTES[name]
    dtype = str(rng.choice(["float64", "float32"]))
    averages = {"averages": ["micro", "macro"], "limits": ["samples"]}
    average = str(rng.choice(averages.get(kind, ["samples", "samples", "micro", "macro"])))
    if name == "padded_marginals" and average == "macro":  # its columns are short
        average = "samples"
    shapes = {"samples": (20, 6), "macro": (6, 3), "micro": (4, 2)}
    n, m = (int(rng.integers(1, most + 1)) for most in shapes[average])
    options: dict[str, Any] = {
        "beta": float(rng.choice([1.0, 1.0, 0.5, 2.0, 0.01, 30.0, 464.78, 1e6])),
        "zero_division": float(rng.choice([0.0, 0.3, 1.0])),
        "nonempty": bool(rng.random() < 0.4),
        "average": average,
    }
    if "marginals" in name and not limited and rng.random() < 0.3:
        options |= {"measure": "jaccard", "beta": 1.0}
    elif limited or (average == "samples" and rng.random() < 0.6):
        options |= random_limits(rng, m)
        if name == "padded_marginals":  # which could be met by further labels
            options["constraints"], options["min_labels"] = None, 0
    # The numbers of P must not underflow if they are rounded to single precision.
    least = {"float64": 5e-324, "float32": 2e-45 if route.is_independent else 1e-25}[dtype]
    values = route.draw(rng, n, m, least)
    if route.is_independent and dtype == "float32":
        values = values.astype(np.float32).astype(np.float64)
    return Case(name, values, m, dtype, options)


def problems(joint: oracle.Joint, average: str) -> oracle.Joint:
    """Return the distribution of the labels of each problem: a row, a column, or all entries."""
    sets, proba = joint
    if average == "macro":
        return oracle.independent_joint(np.clip((proba @ sets).T, 0.0, 1.0))
    if average == "micro":
        n, m = len(proba), sets.shape[1]
        entries = np.arange(n * m).reshape(n, m).tolist()
        return oracle.product_joint([(sets, proba[[row]]) for row in range(n)], entries)
    return joint


def convert(value: Any, case: Case) -> Any:
    """Return arrays of floats in the type of a case."""
    if isinstance(value, list) and not isinstance(value[0], list):
        return [convert(part, case) for part in value]
    if sparse.issparse(value):
        return value.astype(case.dtype)
    if not isinstance(value, np.ndarray):
        return value
    return value.astype(case.dtype) if value.dtype == np.float64 else value


def check(case: Case) -> None:
    """Decide a case, and compare with the best of all allowed label sets."""
    route = ROUTES[case.route]
    joint, function, arguments = route.build(case.values, case.m)
    options = dict(case.options)
    average = options.pop("average", "samples")
    joint = problems(joint, average)
    sets, proba = joint
    if options.get("nonempty") and (proba[:, sets.any(axis=1)].sum(axis=1) == 0.0).any():
        options["nonempty"] = False
    limits = {k: options[k] for k in ("min_labels", "max_labels", "constraints") if k in options}
    arguments = {name: convert(value, case) for name, value in arguments.items()}

    def decide() -> tuple[np.ndarray, np.ndarray]:
        labels, expected = function(**arguments, average=average, **options)
        labels, expected = dense(labels), np.atleast_1d(np.asarray(expected))
        assert not labels[:, case.m :].any()
        labels = labels[:, : case.m]
        if average == "samples":
            return labels, expected
        return (labels.T, expected) if average == "macro" else (labels.reshape(1, -1), expected)

    constraints = limits.get("constraints")
    nonempty = options.get("nonempty", False)
    is_sparse = any(map(sparse.issparse, arguments.get("Ps", arguments.values())))
    is_refused = is_sparse and constraints is not None and constraints.parents
    is_refused = is_refused and any(constraints.costs or ()) and (nonempty or limits["min_labels"])
    width = sets.shape[1]
    if is_refused or not any(
        oracle.is_allowed(one, nonempty=nonempty, **limits) for one in oracle.all_labelsets(width)
    ):
        with pytest.raises(ValueError, match=r"allow|required|forbid|there are|dense"):
            decide()
        return
    is_exact = case.dtype == "float64" or route.is_independent
    is_exact = is_exact or case.route == "samples"
    least = 1e-305 if is_exact else 1e-37
    if limits:  # they may leave only sets whose probability is the rounding error of others
        least = (
            (1e-100 if route.build in (marginals, csr_marginals) else 1e-15) if is_exact else 1e-6
        )
    p = proba @ sets
    tie = -1.0
    if (p[p > 0.0] > 1e-3).all() and (is_exact or route.is_independent):
        tie = 1e-18 if route.is_independent else 1e-13  # compared by probabilities, or by values
    tolerance = 1e-11 if is_exact else 2e-5
    oracle.check_decision(decide(), joint, tolerance=tolerance, tie=tie, least=least, **options)


# Failures ----------------------------------------------------------------------------------------


def smaller(case: Case) -> Iterator[Case]:
    """Return cases with a row, a label or an option less, or with a plainer value."""
    n = len(case.values)
    for row in range(n if n > 1 else 0):
        yield case._replace(values=np.delete(case.values, row, axis=0))
    if ROUTES[case.route].is_independent and case.m > 1 and not case.options.get("constraints"):
        for label in range(case.m):
            yield case._replace(values=np.delete(case.values, label, axis=1), m=case.m - 1)
    for name in case.options:
        yield case._replace(options={k: v for k, v in case.options.items() if k != name})
    for at, plain in itertools.product(np.ndindex(case.values.shape), (0.0, 0.5)):
        if case.values[at] not in (0.0, plain):
            values = case.values.copy()
            values[at] = plain
            yield case._replace(values=values)


def failure(case: Case) -> str | None:
    """Return how a case fails, or None."""
    try:
        check(case)
    except (Exception, pytest.fail.Exception) as error:
        return f"{type(error).__name__}: {error}"
    return None


def shrink(case: Case) -> Case:
    """Return a case that fails while none of its smaller ones does."""
    while (found := next(filter(failure, smaller(case)), None)) is not None:
        case = found
    return case


@pytest.mark.filterwarnings("ignore:all rows of proba sum to 1")
@pytest.mark.parametrize("name", ROUTES)
@pytest.mark.parametrize("kind", KINDS)
def test_decisions_are_those_of_enumeration(name, kind, seeds):
    for seed in itertools.chain(range(15, 75), seeds):  # a case is decided in milliseconds
        case = random_case(seed, name, kind)
        if failure(case):
            case = shrink(case)
            pytest.fail(
                f"seed {seed}: {case._replace(values=case.values.tolist())}\n{failure(case)}"
            )


def test_a_failure_is_shrunk_to_its_smallest_case(monkeypatch):
    def check_one(case):
        assert not (case.values > 0.9).any()

    monkeypatch.setitem(globals(), "check", check_one)
    case = Case("marginals", np.array([[0.1, 0.2], [0.3, 0.95]]), 2, "float64", {"beta": 2})
    found = shrink(case)
    assert found.values.tolist() == [[0.95]]
    assert found.options == {}
