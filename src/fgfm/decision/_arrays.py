"""Arrays of other libraries: values for the compiled kernels, and decisions of the type they had.

PyTorch, CuPy and JAX are recognised by the names of their types, without importing any. Arrays on
a CUDA device share memory with tensors of PyTorch (DLPack) where Triton has a kernel for the
problem; everything else is copied to the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fgfm.decision._objective import Decision

_LIBRARIES = frozenset({"cupy", "cupyx", "jax", "jaxlib", "torch"})
_CUDA = 2  # the number of this kind of device in DLPack


class Place(NamedTuple):
    """Where arrays are, and the precision of the expectations returned for them."""

    library: str
    device: Any
    is_cuda: bool
    dtype: Any  # float32 if all floats are float32 or less, else float64

    def array(self, value: Any, dtype: Any = None) -> Any:
        """Return a tensor or a NumPy value as an array of the library on the device."""
        is_tensor = hasattr(value, "detach")
        if self.library == "torch" or is_tensor:
            import torch

            dtype = dtype and getattr(torch, np.dtype(dtype).name)
            value = torch.as_tensor(value, dtype=dtype, device=None if is_tensor else self.device)
            if self.library == "torch":
                return value
        if self.library == "cupy":
            import cupy

            with self.device:
                return cupy.from_dlpack(value) if is_tensor else cupy.asarray(value, dtype)
        import jax

        if is_tensor:
            return jax.dlpack.from_dlpack(value.contiguous())
        return jax.device_put(np.asarray(value, dtype), self.device)

    def give_back(self, decision: Decision) -> Decision:
        """Return a decision of NumPy arrays, or of tensors, as one of arrays like these."""
        expected_f = self.array(decision.expected_f, self.dtype)
        return Decision(self.array(decision.labels), expected_f, decision.gap)


def is_foreign(value: Any) -> bool:
    """Return True for arrays of PyTorch, CuPy and JAX."""
    return any(_package(base) in _LIBRARIES for base in type(value).__mro__)


def describe(value: Any) -> str:
    """Describe a value by library and type for an error message, as in "torch Tensor"."""
    library, kind = _package(type(value)), type(value).__name__
    return kind if library == "builtins" else f"{library} {kind}"


def place_of(arrays: Mapping[str, Any]) -> Place:
    """Validate arrays of one of the libraries, which must share it and the device."""
    (first, leading), *others = arrays.items()
    for name, array in arrays.items():
        _check(array, name)
    for name, array in others:
        if _library(array) != _library(leading):
            raise TypeError(
                f"{name} is a {describe(array)} and {first} is a {describe(leading)}: "
                "they must be of one library"
            )
        if array.device != leading.device:
            raise ValueError(
                f"{name} is on {array.device} and {first} is on {leading.device}: "
                "they must be on one device"
            )
    names = [str(array.dtype).removeprefix("torch.") for array in arrays.values()]
    single = all("float" in name and name != "float64" for name in names)
    if _library(leading) == "jax":
        import jax

        single = single or not jax.config.jax_enable_x64
    elif getattr(leading.device, "type", "") == "mps":
        single = True  # the only floats of such devices
    is_cuda = _dlpack_device(leading) == _CUDA
    dtype = np.float32 if single else np.float64
    return Place(_library(leading), leading.device, is_cuda, dtype)


@cache
def has_kernels() -> bool:
    """Return True if Triton and PyTorch are installed."""
    return all(find_spec(library) is not None for library in ("torch", "triton"))


def tensors_of(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return arrays on a CUDA device as tensors of PyTorch that share their memory."""
    import torch

    return {
        name: a.detach() if isinstance(a, torch.Tensor) else torch.from_dlpack(a)
        for name, a in arrays.items()
    }


def to_host(array: Any) -> npt.NDArray[Any]:
    """Copy an array to NumPy; types that NumPy does not know become float32."""
    if hasattr(array, "detach"):
        array = array.detach().cpu()
        if array.is_floating_point() and str(array.dtype)[6:] not in _KNOWN_FLOATS:
            array = array.float()
        return np.asarray(array.numpy())
    host = np.asarray(array.get() if hasattr(array, "get") else array)
    return host.astype(np.float32) if host.dtype.kind == "V" else host


_KNOWN_FLOATS = ("float16", "float32", "float64")


def _check(array: Any, name: str) -> None:
    """Raise unless an array is dense and has values that are real numbers."""
    if hasattr(array, "detach"):
        if array.is_nested or str(array.layout) != "torch.strided":
            form = "nested tensor" if array.is_nested else f"tensor of layout {array.layout}"
            raise TypeError(f"{name} is a {form}: it must be dense")
        if array.is_meta:
            raise TypeError(f"{name} is a tensor on the meta device: it must have values")
    elif _package(type(array)) == "jax" and type(array).__name__.endswith("Tracer"):
        raise TypeError(
            f"{name} is traced by JAX: it must have values, so decide outside jax.jit and jax.vmap"
        )
    elif not hasattr(array, "__dlpack_device__"):
        raise TypeError(f"{name} is a {describe(array)}: it must be a dense array")
    if "complex" in str(array.dtype):
        raise TypeError(
            f"{name} has dtype {array.dtype}: it must hold real numbers (float32 or float64)"
        )


def _dlpack_device(array: Any) -> int:
    """Return the kind of device in DLPack's numbers; tensors of few devices have none."""
    try:
        return int(array.__dlpack_device__()[0])
    except (BufferError, RuntimeError, ValueError):
        return 0


def _library(array: Any) -> str:
    """Return "torch", "cupy" or "jax"."""
    package = next(p for base in type(array).__mro__ if (p := _package(base)) in _LIBRARIES)
    return {"jaxlib": "jax", "cupyx": "cupy"}.get(package, package)


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]
