"""Graphs of array operations, recorded once, which `fgfm.onnx` writes and `fgfm.torch` runs.

An operation is a method of `Value`: an operator of ONNX and its attributes. All axes count from
the front.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Graph", "Step", "Value"]


class Step(NamedTuple):
    """An operator on named values; `settings` are not arrays."""

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    settings: dict[str, Any]


class Graph:
    """Operations in the order in which they are computed, and their constants.

    Parameters
    ----------
    dtype : {"float32", "float64"}
        The type of real constants.

    Attributes
    ----------
    constants : dict of str to ndarray
        Arrays by name.
    steps : list of Step
        The operations.
    outputs : dict of str to Value
        The results by name.
    """

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.constants: dict[str, Any] = {}
        self.steps: list[Step] = []
        self.outputs: dict[str, Value] = {}
        self._names: dict[Any, str] = {}  # of constants, by their content

    def constant(self, values: Any) -> Value:
        """Return a constant: real numbers of the graph's type, integers or booleans."""
        array = np.asarray(values)
        if array.dtype.kind == "f":
            array = array.astype(self.dtype)
        content = array.dtype.str, array.shape, array.tobytes()
        if content not in self._names:
            self._names[content] = f"c{len(self.constants)}"
            self.constants[self._names[content]] = array
        return Value(self, self._names[content])

    def step(self, operator: str, *inputs: Any, **settings: Any) -> Value:
        """Append an operation, and return its value."""
        return self.several(operator, *inputs, count=1, **settings)[0]

    def several(self, operator: str, *inputs: Any, count: int, **settings: Any) -> list[Value]:
        """Append an operation, and return its `count` values."""
        values = [x if isinstance(x, Value) else self.constant(x) for x in inputs]
        outputs = tuple(f"v{len(self.steps)}_{i}" for i in range(count))
        self.steps.append(Step(operator, tuple(x.name for x in values), outputs, settings))
        return [Value(self, name) for name in outputs]

    def where(self, condition: Value, first: Any, second: Any) -> Value:
        """Return `first` where a condition holds, and `second` elsewhere."""
        return self.step("Where", condition, first, second)

    def stack(self, values: list[Value], axis: int = 0) -> Value:
        """Return values one after the other along an axis that they have."""
        return values[0] if len(values) == 1 else self.step("Concat", *values, axis=axis)


class Value:
    """An array that a graph computes."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def _step(self, operator: str, *others: Any, **settings: Any) -> Value:
        return self.graph.step(operator, self, *others, **settings)

    def __add__(self, other: Any) -> Value:
        return self._step("Add", other)

    def __sub__(self, other: Any) -> Value:
        return self._step("Sub", other)

    def __mul__(self, other: Any) -> Value:
        return self._step("Mul", other)

    def __truediv__(self, other: Any) -> Value:
        return self._step("Div", other)

    def __radd__(self, other: Any) -> Value:
        return self.graph.step("Add", other, self)

    def __rsub__(self, other: Any) -> Value:
        return self.graph.step("Sub", other, self)

    def __rmul__(self, other: Any) -> Value:
        return self.graph.step("Mul", other, self)

    def __rtruediv__(self, other: Any) -> Value:
        return self.graph.step("Div", other, self)

    def __neg__(self) -> Value:
        return self._step("Neg")

    def __gt__(self, other: Any) -> Value:
        return self._step("Greater", other)

    def __ge__(self, other: Any) -> Value:
        return self._step("GreaterOrEqual", other)

    def __le__(self, other: Any) -> Value:
        return self._step("LessOrEqual", other)

    def __and__(self, other: Any) -> Value:
        return self._step("And", other)

    def log(self) -> Value:
        """Return the natural logarithm."""
        return self._step("Log")

    def exp(self) -> Value:
        """Return the exponential function."""
        return self._step("Exp")

    def sqrt(self) -> Value:
        """Return the square root."""
        return self._step("Sqrt")

    def sigmoid(self) -> Value:
        """Return the sigmoid."""
        return self._step("Sigmoid")

    def softmax(self, axis: int = 0) -> Value:
        """Return exponentials divided by their sum."""
        return self._step("Softmax", axis=axis)

    def clip(self, least: float, most: float) -> Value:
        """Return the nearest values between two limits."""
        return self._step("Clip", least, most)

    def at_least(self, other: Any) -> Value:
        """Return the larger one of two values."""
        return self._step("Max", other)

    def at_most(self, other: Any) -> Value:
        """Return the smaller one of two values."""
        return self._step("Min", other)

    def sum(self, axis: int = 0) -> Value:
        """Return sums, which keep the axis."""
        return self._step("ReduceSum", axis=axis)

    def max(self, axis: int = 0) -> Value:
        """Return maxima, which keep the axis."""
        return self._step("ReduceMax", axis=axis)

    def prod(self, axis: int = 0) -> Value:
        """Return products, which keep the axis."""
        return self._step("ReduceProd", axis=axis)

    def argmax(self, axis: int = 0) -> Value:
        """Return the first place of the maximum, which keeps the axis."""
        return self._step("ArgMax", axis=axis)

    def cumsum(self, *, exclusive: bool = False, reverse: bool = False) -> Value:
        """Return partial sums along the first axis."""
        return self._step("CumSum", exclusive=exclusive, reverse=reverse)

    def largest(self, count: int) -> tuple[Value, Value]:
        """Return the largest values of the first axis, in falling order, and their places."""
        values, places = self.graph.several("TopK", self, count=2, k=count)
        return values, places

    def take(self, places: Value) -> Value:
        """Return the entries at some places of the first axis."""
        return self._step("GatherElements", places)

    def put(self, places: Value, entries: Value) -> Value:
        """Return a copy with other entries at some places of the first axis."""
        return self._step("ScatterElements", places, entries)

    def look_up(self, table: Any) -> Value:
        """Return the entries of a vector whose numbers these values are."""
        return self.graph.step("Gather", table, self)

    def row(self, place: int) -> Value:
        """Return one entry of the first axis, which is kept; -1 is the last."""
        return self._step("Gather", np.array([place]))

    def rows(self, start: int, stop: int) -> Value:
        """Return a part of the first axis."""
        return self._step("Slice", start=(start,), stop=(stop,), axis=(0,))

    def first(self, *counts: int) -> Value:
        """Return the first entries of the first axes."""
        axes = tuple(range(len(counts)))
        return self._step("Slice", start=(0,) * len(counts), stop=counts, axis=axes)

    def split(self, count: int, axis: int = 0) -> list[Value]:
        """Return the `count` entries of an axis, which is kept."""
        if count == 1:
            return [self]
        return self.graph.several("Split", self, count=count, axis=axis)

    def expand(self, axis: int) -> Value:
        """Return the array with a new axis of length 1."""
        return self._step("Unsqueeze", axis=axis)

    def squeeze(self, axis: int) -> Value:
        """Return the array without an axis of length 1."""
        return self._step("Squeeze", axis=axis)

    def transpose(self, ndim: int = 2) -> Value:
        """Return the array with its first two axes exchanged."""
        return self._step("Transpose", perm=[1, 0, 2][:ndim])

    def cast(self, dtype: str) -> Value:
        """Return the values in another type."""
        return self._step("Cast", to=dtype)
