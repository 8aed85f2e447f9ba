"""Which library an array is from, and how it is read and answered there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.validation import check_axes

__all__ = [
    "Space",
    "common_space",
    "first_nan",
    "full_precision",
    "is_foreign",
    "library_of",
    "read_array",
    "to_host",
    "work_bytes",
]

Array = Any  # of any of the libraries
LIBRARIES = frozenset({"array_api_strict", "cupy", "cupyx", "jax", "jaxlib", "torch"})


def is_foreign(value: Any) -> bool:
    """Tell whether a value comes from a library whose arrays are answered in kind."""
    return any(_root(base) in LIBRARIES for base in type(value).__mro__)


def library_of(value: Any) -> str:
    """Give the name of the library that a value comes from."""
    return _root(type(value))


def _root(kind: type) -> str:
    return kind.__module__.partition(".")[0]


class Space(NamedTuple):
    """Where, and how accurately, is computed.

    Attributes
    ----------
    xp : module
        The functions of the library, by the array API standard.
    device : object
        Where its arrays are.
    dtype : object
        The floating type that is computed with.
    itemsize : int
        Its bytes.
    tie : float
        Values closer than this, relatively, count as equal.
    margin : float
        A bound may be off by this, relatively, by rounding: it prunes only beyond.
    slack : float
        How far a probability, or a sum of them, may be off, by the least precise of the arrays.
    """

    xp: Any
    device: Any
    dtype: Any
    itemsize: int
    tie: float
    margin: float
    slack: float

    def array(self, values: npt.ArrayLike) -> Array:
        """Give numbers as an array of floats."""
        return self.xp.asarray(np.asarray(values), dtype=self.dtype, device=self.device)

    def floats(self, array: Array) -> Array:
        """Give an array in the floating type that is computed with."""
        return self.xp.astype(array, self.dtype, copy=False)

    def places(self, array: Array) -> Array:
        """Give whole numbers as indices."""
        kinds = self.xp.__array_namespace_info__().default_dtypes(device=self.device)
        return self.xp.astype(array, kinds["indexing"])

    def counted(self, array: Array, axis: int) -> Array:
        """Count what is true, as floats: they are compared with and divided by."""
        return self.xp.sum(self.floats(array), axis=axis)

    def upto(self, count: int) -> Array:
        """Give 1 .. count as floats."""
        return self.xp.arange(1, count + 1, dtype=self.dtype, device=self.device)

    def fetch(self, *scalars: Array) -> list[float]:
        """Give scalars of the device as numbers, in one transfer."""
        stacked = self.xp.stack([self.floats(scalar) for scalar in scalars])
        return [float(number) for number in to_host(stacked)]


def work_bytes(space: Space) -> int:
    """Give the memory that a block of rows may take while it is worked on.

    Small blocks suit the caches of a CPU; on an accelerator large ones cost fewer launches.
    """
    if "cpu" in str(space.device).lower():
        return 1 << 28
    if getattr(space.device, "type", "") == "cuda":
        import torch

        free, _ = torch.cuda.mem_get_info(space.device)
        return int(min(1 << 32, free // 4))
    return 1 << 30


def full_precision(space: Space) -> AbstractContextManager[Any]:
    """Keep matrix products of float32 from being rounded to fewer digits."""
    library = space.xp.__name__
    if library == "jax.numpy":
        import jax

        context: AbstractContextManager[Any] = jax.default_matmul_precision("highest")
        return context
    if library.endswith("torch"):
        return _torch_precision(space.device.type)
    return nullcontext()


@contextmanager
def _torch_precision(device_type: str) -> Iterator[None]:
    """Let PyTorch compute products of float32 as such, and set its settings back."""
    import torch

    with ExitStack() as undo:
        if torch.is_autocast_enabled(device_type):
            undo.enter_context(torch.autocast(device_type, enabled=False))
        backends = [  # from PyTorch 2.9 on
            backend.matmul
            for backend in (torch.backends.cuda, torch.backends.mkldnn)
            if hasattr(getattr(backend, "matmul", None), "fp32_precision")
        ]
        before = [backend.fp32_precision for backend in backends]
        try:
            common = torch.get_float32_matmul_precision()
        except RuntimeError:  # PyTorch does not tell it where a backend has been set
            common = "highest"
        if common != "highest":
            undo.callback(_set_backends, backends, before)  # the common one sets all of them alike
            undo.callback(torch.set_float32_matmul_precision, common)
            torch.set_float32_matmul_precision("highest")
        elif not {"ieee", "none"}.issuperset(before):
            undo.callback(_set_backends, backends, before)
            _set_backends(backends, ["ieee"] * len(backends))
        yield


def _set_backends(backends: list[Any], precisions: list[str]) -> None:
    for backend, precision in zip(backends, precisions, strict=True):
        backend.fp32_precision = precision


def read_array(value: Any, name: str, axes: Sequence[str]) -> tuple[Array, Any]:
    """Give a dense array of real numbers without its gradient, and its namespace."""
    try:
        from array_api_compat import array_namespace
    except ImportError:
        raise ImportError(
            f"{name} is a {_kind(value)}: deciding on it needs array-api-compat; "
            "install fgfm[array]"
        ) from None
    try:
        xp = array_namespace(value)
    except TypeError:
        raise TypeError(f"{name} is a {_kind(value)}: it must be a dense array") from None
    if hasattr(value, "detach"):
        value = _plain_tensor(value, name)
    if xp.__name__ == "jax.numpy":
        _refuse_tracer(value, name)
    if not xp.isdtype(value.dtype, ("bool", "integral", "real floating")):
        raise TypeError(
            f"{name} has dtype {value.dtype}: it must hold real numbers (float32 or float64)"
        )
    check_axes(tuple(value.shape), name, axes)
    return value, xp


def _plain_tensor(tensor: Any, name: str) -> Any:
    """Give a tensor of PyTorch without its gradient, or raise unless it is dense, with values."""
    if tensor.is_nested or str(tensor.layout) != "torch.strided":
        form = "nested tensor" if tensor.is_nested else f"tensor of layout {tensor.layout}"
        raise TypeError(f"{name} is a {form}: it must be dense")
    if tensor.is_meta:
        raise TypeError(f"{name} is a tensor on the meta device: it must have values")
    return tensor.detach()


def _refuse_tracer(value: Any, name: str) -> None:
    from jax.core import Tracer

    if isinstance(value, Tracer):
        raise TypeError(
            f"{name} is traced by JAX: it must have values, so decide outside jax.jit and jax.vmap"
        )


def _kind(value: Any) -> str:
    return f"{library_of(value)} {type(value).__name__}"


def common_space(arrays: Sequence[Array], names: Sequence[str], xp: Any) -> Space:
    """Give the space of arrays that must share library and device.

    float64 is kept, and so is float32 where all arrays have it or less; integers and booleans take
    float64 where the device has it.
    """
    from array_api_compat import array_namespace, device

    where = device(arrays[0])
    for array, name in zip(arrays, names, strict=True):
        if array_namespace(array) is not xp:
            raise TypeError(
                f"{name} is a {_kind(array)} and {names[0]} is a {_kind(arrays[0])}: "
                "they must be of one library"
            )
        if device(array) != where:
            raise ValueError(
                f"{name} is on {device(array)} and {names[0]} is on {where}: "
                "they must be on one device"
            )
    short = [
        xp.isdtype(array.dtype, "real floating") and array.dtype != xp.float64 for array in arrays
    ]
    known = xp.__array_namespace_info__().dtypes(device=where, kind="real floating")
    if all(short) or "float64" not in known:
        return Space(xp, where, xp.float32, 4, 2e-6, 1e-4, 1e-5)
    return Space(xp, where, xp.float64, 8, 1e-12, 1e-9, 1e-5 if any(short) else 1e-9)


def to_host(array: Array) -> npt.NDArray[Any]:
    """Give a copy of an array in the memory of NumPy."""
    if hasattr(array, "cpu"):
        array = array.cpu()
        if str(array.dtype).startswith(("torch.bfloat", "torch.float8")):  # NumPy has neither
            array = array.float()
    if hasattr(array, "get"):
        array = array.get()
    return np.asarray(array)


def first_nan(array: Array) -> tuple[int, int]:
    """Give how many elements of a flat array are NaN, and the first of them."""
    from array_api_compat import array_namespace

    xp = array_namespace(array)
    missing = xp.astype(xp.isnan(array), xp.int32)
    count = int(xp.sum(missing))
    return count, int(xp.argmax(missing)) if count else 0
