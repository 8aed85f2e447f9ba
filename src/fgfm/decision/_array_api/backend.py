"""Namespace, device and precision of a computation, and transfers to the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm._utils.validation import check_axes
from fgfm.decision._array_api import describe, is_array_api
from fgfm.decision._objective import Objective

__all__ = [
    "Backend",
    "common_backend",
    "copy_to_host",
    "first_nan",
    "full_precision",
    "has_float64",
    "multiprocessors",
    "read_array",
    "to_host",
    "work_bytes",
]

Array = Any  # of any of the libraries


class Backend(NamedTuple):
    """Where, and in which precision, a decision is computed."""

    xp: Any  # the array API namespace of the library
    device: Any
    dtype: Any  # of the computation
    itemsize: int  # its bytes
    tie: float  # values with a smaller relative difference count as equal
    margin: float  # relative rounding error of bounds: candidates beyond it are discarded
    slack: float  # rounding error of a probability, or a sum, in the least precise array

    @property
    def has_triton(self) -> bool:
        """True if Triton kernels can run on the device."""
        return getattr(self.device, "type", "") == "cuda" and _is_triton_installed()

    def array(self, values: npt.ArrayLike) -> Array:
        """Convert NumPy values to an array of `dtype` on the device."""
        return self.xp.asarray(np.asarray(values), dtype=self.dtype, device=self.device)

    def floats(self, array: Array) -> Array:
        """Convert an array to `dtype`."""
        return self.xp.astype(array, self.dtype, copy=False)

    def indices(self, array: Array) -> Array:
        """Convert an array of whole numbers to the integer type for indexing."""
        dtypes = self.xp.__array_namespace_info__().default_dtypes(device=self.device)
        return self.xp.astype(array, dtypes["indexing"])

    def count_true(self, array: Array, axis: int) -> Array:
        """Count the True elements along an axis, as floats for further arithmetic."""
        return self.xp.sum(self.floats(array), axis=axis)

    def one_to(self, count: int) -> Array:
        """Return 1, 2, .., count as floats."""
        return self.xp.arange(1, count + 1, dtype=self.dtype, device=self.device)

    def fetch(self, *scalars: Array) -> list[float]:
        """Copy scalars to the host, in one transfer: each one waits for the device."""
        stacked = self.xp.stack([self.floats(scalar) for scalar in scalars])
        return [float(number) for number in to_host(stacked)]

    def representable(self, objective: Objective) -> Objective:
        """Return the objective with a beta whose square float32 can represent.

        Beyond these limits F_beta equals recall, or precision, in all digits of float32.
        """
        if self.itemsize == 8:
            return objective
        beta = min(max(objective.beta, 1e-9), 1e9)
        return objective._replace(beta=beta, beta2=beta * beta)


def common_backend(arrays: Sequence[Array], names: Sequence[str], xp: Any) -> Backend:
    """Return the backend for arrays, which must share library and device.

    The computation is in float32 if all arrays have float32 or less, and in float64 otherwise,
    for integers and booleans too, if the device has float64.
    """
    from array_api_compat import array_namespace, device

    where = device(arrays[0])
    for array, name in zip(arrays, names, strict=True):
        if type(array) is not type(arrays[0]) and array_namespace(array) is not xp:
            raise TypeError(
                f"{name} is a {describe(array)} and {names[0]} is a {describe(arrays[0])}: "
                "they must be of one library"
            )
        if device(array) != where:
            raise ValueError(
                f"{name} is on {device(array)} and {names[0]} is on {where}: "
                "they must be on one device"
            )
    is_single = [
        xp.isdtype(dtype, "real floating") and dtype != xp.float64
        for dtype in {array.dtype for array in arrays}
    ]
    if all(is_single) or not has_float64(xp, where):
        return Backend(xp, where, xp.float32, 4, tie=2e-6, margin=1e-4, slack=1e-5)
    slack = 1e-5 if any(is_single) else 1e-9
    return Backend(xp, where, xp.float64, 8, tie=1e-12, margin=1e-9, slack=slack)


def has_float64(xp: Any, device: Any) -> bool:
    """Return True if a device computes in double precision."""
    known = xp.__array_namespace_info__().dtypes(device=device, kind="real floating")
    return "float64" in known


@cache
def _is_triton_installed() -> bool:
    return find_spec("triton") is not None


def work_bytes(backend: Backend) -> int:
    """Return the memory for the temporary arrays of one block of rows.

    Small blocks stay in the cache of a CPU; large blocks need fewer launches on an accelerator.
    """
    if "cpu" in str(backend.device).lower():
        return 1 << 28
    if getattr(backend.device, "type", "") == "cuda":
        import torch

        free, _ = torch.cuda.mem_get_info(backend.device)
        return int(min(1 << 32, free // 4))
    return 1 << 30


@cache
def multiprocessors(device: Any) -> int:
    """Return the number of multiprocessors of a CUDA device of PyTorch."""
    import torch

    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def read_array(value: Any, name: str, axes: Sequence[str]) -> tuple[Array, Any]:
    """Validate a dense array of real numbers; return it without gradient, and its namespace."""
    try:
        from array_api_compat import array_namespace
    except ImportError:
        raise ImportError(
            f"{name} is a {describe(value)}: this needs array-api-compat; install fgfm[array]"
        ) from None
    try:
        xp = array_namespace(value)
    except TypeError:
        raise TypeError(f"{name} is a {describe(value)}: it must be a dense array") from None
    if hasattr(value, "detach"):
        value = _plain_tensor(value, name)
    if xp.__name__ == "jax.numpy":
        _check_not_traced(value, name)
    if not xp.isdtype(value.dtype, ("bool", "integral", "real floating")):
        raise TypeError(
            f"{name} has dtype {value.dtype}: it must hold real numbers (float32 or float64)"
        )
    check_axes(tuple(value.shape), name, axes)
    return value, xp


def _plain_tensor(tensor: Any, name: str) -> Any:
    """Return a PyTorch tensor without gradient; raise unless it is dense and has values."""
    if tensor.is_nested or str(tensor.layout) != "torch.strided":
        form = "nested tensor" if tensor.is_nested else f"tensor of layout {tensor.layout}"
        raise TypeError(f"{name} is a {form}: it must be dense")
    if tensor.is_meta:
        raise TypeError(f"{name} is a tensor on the meta device: it must have values")
    return tensor.detach()


def _check_not_traced(value: Any, name: str) -> None:
    from jax.core import Tracer

    if isinstance(value, Tracer):
        raise TypeError(
            f"{name} is traced by JAX: it must have values, so decide outside jax.jit and jax.vmap"
        )


def to_host(array: Array) -> npt.NDArray[Any]:
    """Copy an array to NumPy."""
    if hasattr(array, "cpu"):
        array = array.cpu()
        if str(array.dtype).startswith(("torch.bfloat", "torch.float8")):  # unknown to NumPy
            array = array.float()
    if hasattr(array, "get"):
        array = array.get()
    return np.asarray(array)


def copy_to_host(
    arrays: Mapping[str, Array], shared: Mapping[str, Any]
) -> tuple[Backend, dict[str, Any], dict[str, Any]]:
    """Return where arrays are, and them and what all rows share on the host."""
    read = {name: read_array(value, name, ["row"] * value.ndim) for name, value in arrays.items()}
    values = [value for value, _ in read.values()]
    backend = common_backend(values, list(read), read["proba"][1])
    host = {name: to_host(value) for name, (value, _) in read.items()}
    rest = {name: to_host(v) if is_array_api(v) else v for name, v in shared.items()}
    return backend, host, rest


def first_nan(array: Array) -> tuple[int, int]:
    """Return the number of NaN in an array, and the index of the first if it is 1-D."""
    from array_api_compat import array_namespace

    xp = array_namespace(array)
    missing = xp.reshape(xp.astype(xp.isnan(array), xp.int32), (-1,))
    count = int(xp.sum(missing))
    return count, int(xp.argmax(missing)) if count else 0


def full_precision(backend: Backend) -> AbstractContextManager[Any]:
    """Return a context in which float32 matrix products are computed in float32.

    TF32 and bfloat16 have 11 and 8 significant bits, far fewer than the stated error bound.
    """
    library = backend.xp.__name__
    if library == "jax.numpy":
        import jax

        context: AbstractContextManager[Any] = jax.default_matmul_precision("highest")
        return context
    if library.endswith("torch"):
        return _torch_precision(backend.device.type)
    return nullcontext()


@contextmanager
def _torch_precision(device_type: str) -> Iterator[None]:
    """Set PyTorch to full precision without autocast, and restore its settings."""
    import torch

    with ExitStack() as restore:
        if torch.is_autocast_enabled(device_type):
            restore.enter_context(torch.autocast(device_type, enabled=False))
        # PyTorch has one setting for all backends, and since 2.9 one for each as well.
        backends = [
            backend.matmul
            for backend in (torch.backends.cuda, torch.backends.mkldnn)
            if hasattr(getattr(backend, "matmul", None), "fp32_precision")
        ]
        before = [backend.fp32_precision for backend in backends]
        try:
            common = torch.get_float32_matmul_precision()
        except RuntimeError:  # raised where the setting of a backend differs from the common one
            common = "highest"
        if common != "highest":
            # Setting the common precision overwrites those of the backends.
            restore.callback(_set_precisions, backends, before)
            restore.callback(torch.set_float32_matmul_precision, common)
            torch.set_float32_matmul_precision("highest")
        elif not {"ieee", "none"}.issuperset(before):
            restore.callback(_set_precisions, backends, before)
            _set_precisions(backends, ["ieee"] * len(backends))
        yield


def _set_precisions(backends: list[Any], precisions: list[str]) -> None:
    for backend, precision in zip(backends, precisions, strict=True):
        backend.fp32_precision = precision
