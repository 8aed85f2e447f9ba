"""`Problem`: what is known of the labels of n rows; `decide_arrays`, the way to it and back.

Lists, masked arrays, data frames and whatever NumPy converts become problems of NumPy arrays; so
do arrays of PyTorch, CuPy and JAX, unless a Triton kernel decides them on their device, and the
blocks of Dask arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fgfm._kernels import NOT_PROBABILITY
from fgfm._utils.blocks import run_blocks
from fgfm._utils.rows import as_frames, frame_library
from fgfm._utils.validation import check_choice, is_flat
from fgfm.decision._arrays import (
    Place,
    describe,
    has_kernels,
    is_foreign,
    place_of,
    tensors_of,
    to_host,
)
from fgfm.decision._objective import Decision, Objective

Real = npt.NDArray[Any]
AVERAGES = ("samples", "macro", "weighted", "micro")


class Problem:
    """The distributions of the label sets of n independent rows.

    There is one class per kind of input. A constructor validates shapes; values are validated when
    they are read, block by block.
    """

    shape: tuple[int, int]  # rows and labels, (n, m)
    row_bytes: int  # of the input, or of the work space, of one row
    is_sparse = False  # decided labels are in CSR
    kernel_on_device = ""  # the name of the problem in `fgfm.decision.gpu`

    @classmethod
    def read(cls, *arrays: Any, **shared: Any) -> Problem:
        """Return the problem of arrays with one entry per row, and what all rows share."""
        return cls(*arrays, **shared)

    def decide_rows(self, objective: Objective) -> Decision:
        """Decide each row."""
        raise NotImplementedError

    def marginals(self) -> Any:
        """Return the marginals, a problem that also has the method `decide_columns`."""
        raise NotImplementedError

    def as_one_row(self) -> Problem:
        """Return all entries as the labels of one row: every row is a factor, or several."""
        raise NotImplementedError

    def no_labels(self) -> Any:
        """Return the labels of no rows, (0, m)."""
        return np.zeros((0, self.shape[1]), dtype=np.int8)

    def matrix(self, labels: Any) -> Any:
        """Return labels of shape (1, n m) in the shape (n, m)."""
        return labels.reshape(self.shape)


class DenseProblem(Problem):
    """A problem of NumPy arrays."""

    def decide_block(
        self, decision: Decision, objective: Objective, constraints: Any, rows: slice
    ) -> None:
        """Decide some of the rows: fill in their labels, which are 0, and expectations."""
        raise NotImplementedError

    def decide_rows(self, objective: Objective) -> Decision:
        """Decide each row."""
        n, m = self.shape
        decision = Decision(np.zeros((n, m), dtype=np.int8), np.empty(n))
        constraints = None if objective.limits is None else objective.constraints(m)
        work = partial(self.decide_block, decision, objective, constraints)
        run_blocks(n, self.row_bytes, objective.threads, work)
        return decision


def decide_arrays(
    kind: type[Problem],
    arrays: Mapping[str, Any],
    objective: Objective,
    average: Any,
    columns: Any = None,
    **shared: Any,
) -> Decision:
    """Decide from arrays of any type; return a decision of the type of the first one.

    `kind` is the class of the problem; `arrays` have one entry per row, by the name of the
    argument; `columns` are the names of the labels, if the first array is a frame; `shared` are
    further arguments of the problem, the same for all rows.
    """
    check_choice(average, "average", AVERAGES)
    first = next(iter(arrays.values()))
    is_numpy = {*map(type, arrays.values())} == {np.ndarray}
    flat = first.ndim == 1 if is_numpy else is_flat(first)
    if flat:
        average = "macro"  # one label, whatever the average
    if objective.limits is not None:
        objective.limits.check_problem(average, objective.measure, flat=flat)
    missed = shared.get("missed", arrays.get("missed"))
    if objective.floors is not None or missed is not None:
        from fgfm.decision._floors import check_floors

        check_floors(objective, average, missed, flat=flat)
    place, decision = None, None
    if not is_numpy:
        check_array_types(arrays)
        place = place_of(arrays) if is_foreign(first) else None
        decision = _decide_elsewhere(kind, arrays, objective, average, shared, place)
    if decision is None:
        host = arrays.values() if place is None else map(to_host, arrays.values())
        problem = kind.read(*host, **shared)
        if average == "samples":
            decision = problem.decide_rows(objective)
        else:
            decision = decide_together(problem, objective, average)
    if place is not None:
        decision = place.give_back(decision)
    if objective.floors is not None:
        from fgfm.decision._floors import warn_about_floors

        warn_about_floors(objective, average, flat=flat)
    if objective.nonempty:
        _warn_about_impossible_problems(decision.expected_f, average, objective)
    if flat:
        decision = Decision(decision.labels[:, 0], decision.expected_f[0])
        columns = [getattr(first, "name", None)]
    if is_numpy or frame_library(first) is None:
        return decision
    return Decision(*as_frames(*decision, first, columns, average), decision.gap)


def _decide_elsewhere(
    kind: type[Problem],
    arrays: Mapping[str, Any],
    objective: Objective,
    average: str,
    shared: Mapping[str, Any],
    place: Place | None,
) -> Decision | None:
    """Decide on the device of the arrays, or lazily; return None if this is done here."""
    if place is not None:
        name = kind.kernel_on_device
        if not (place.is_cuda and name and has_kernels()):
            return None
        from fgfm.decision import gpu

        tensors = tensors_of(arrays)
        return gpu.decide(name, tensors, shared, objective, average, _decide_marginal_rows)
    from fgfm.decision._dask import any_dask, decide_lazily

    if any_dask(*arrays.values()):
        return decide_lazily(kind, arrays, objective, average, shared)
    return None


def _decide_marginal_rows(proba: Real, objective: Objective) -> Decision:
    from fgfm.decision._marginals import Marginals

    return Marginals(proba).decide_rows(objective)


def check_array_types(arrays: Mapping[str, Any]) -> None:
    """Raise for arrays of several libraries, lists of arrays, and data frames of Dask."""
    others = [name for name, value in arrays.items() if not is_foreign(value)]
    if 0 < len(others) < len(arrays):
        name = next(name for name in arrays if name not in others)
        raise TypeError(
            f"{others[0]} is a {describe(arrays[others[0]])} and {name} is a "
            f"{describe(arrays[name])}: they must be of one library"
        )
    for name in others:
        value = arrays[name]
        if isinstance(value, (list, tuple)):
            _check_list(value, name)
        elif hasattr(value, "to_dask_array"):
            raise TypeError(
                f"{name} is a Dask data frame: it must be a Dask array; "
                f"use {name}.to_dask_array(lengths=True)"
            )


def _check_list(value: Any, name: str) -> None:
    """Raise for a list with arrays of PyTorch, CuPy or JAX: NumPy would copy them to the host."""
    while isinstance(value, (list, tuple)) and value:
        for item in {type(item): item for item in value}.values():  # one item of each type
            if is_foreign(item):
                library = describe(item).split(" ")[0]
                raise TypeError(
                    f"{name} is a list with arrays of {library}: it must be one array; stack them"
                )
        value = value[0]


def decide_together(problem: Problem, objective: Objective, average: str) -> Decision:
    """Decide each label over the rows, or all entries.

    Rows are independent of each other. So are the entries of a column: its marginals determine
    it. All entries together are one row in which every given row is a factor, or several
    (docs/design.md, "Averages"). Weights of labels ("weighted") change no decision.
    """
    if problem.shape[0] == 0:
        count = 1 if average == "micro" else problem.shape[1]
        expected_f = np.full(count, objective.value_without_labels)
        return Decision(problem.no_labels(), expected_f[0] if average == "micro" else expected_f)
    if objective.limits is not None:
        m = problem.shape[1]
        least, most = objective.limits.sizes(m)
        if least > 0 or most < m:
            from fgfm.decision._budgets import decide_limited

            return decide_limited(problem, objective, (least, most), average)
        objective = objective._replace(limits=None)
    if average == "micro":
        labels, expected_f = problem.as_one_row().decide_rows(objective)
        return Decision(problem.matrix(labels), expected_f[0])
    decision: Decision = problem.marginals().decide_columns(objective)
    return decision


def run_kernel(
    kernel: Callable[..., Any],
    values: Real,
    arguments: tuple[Any, ...],
    chosen: Real,
    check: Callable[[], None],
) -> tuple[int, int]:
    """Run a kernel on a block of rows, so that valid input is read once.

    A kernel accepts values in [0, 1] only, and stops at the first other value. Then `check` raises
    if the value is wrong by more than rounding; else the kernel runs again on clipped values.
    `chosen` is the array among `arguments` that the kernel marks chosen labels in. Returns the
    first row with too much probability, or -1, and its factor that has too much.
    """
    status = kernel(values, *arguments)
    if status.code == NOT_PROBABILITY:
        check()
        chosen[...] = 0
        status = kernel(np.clip(values, 0.0, 1.0), *arguments)
    return status.row, status.factor


def _warn_about_impossible_problems(expected_f: Any, average: str, objective: Objective) -> None:
    """Warn about problems with d_0 = 1 under nonempty=True."""
    if hasattr(expected_f, "dask"):
        return
    values = to_host(expected_f) if is_foreign(expected_f) else expected_f
    impossible = np.flatnonzero(np.isnan(values))
    if not len(impossible):
        return
    smallest = "the empty set" if objective.limits is None else "the smallest allowed set"
    problem = "row" if average == "samples" else "label"
    count, first = len(impossible), impossible[0]
    which = f": {count}, the first is {problem} {first}; they get {smallest} and"
    if average == "samples":
        what = "rows without probability for a non-empty label set"
    elif average == "micro":
        what, which = "no label has a probability in any row", ": the decision is empty, with"
    else:
        what = "labels without probability in any row"
    warnings.warn(
        f"{what}, although nonempty=True{which} expected_f NaN", UserWarning, stacklevel=4
    )
