"""Arrays of the solver of large models: NumPy's, or PyTorch tensors on a device.

Both are computed with by the same code. It keeps to what both libraries call by the same name
(`namespace`); the functions here are the rest. PyTorch is imported for tensors only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fgfm._utils.optional import import_optional

__all__ = [
    "Flags",
    "Floats",
    "Integers",
    "check_device",
    "columns",
    "contiguous",
    "copied",
    "counting",
    "filled",
    "free_bytes",
    "indices",
    "namespace",
    "to_device",
    "to_host",
]

Array = Any  # ndarray or tensor
Floats = Integers = Flags = Array  # of float64, int64 and bool

# Entries of sparse features up to which a device holds them densely (2 GiB): there a dense product
# is faster.
_DENSE_ENTRIES = 1 << 28


def check_device(device: Any) -> str | None:
    """Validate a device of PyTorch, which must have float64; return its name, None for None."""
    if device is None:
        return None
    torch = import_optional("torch", f"device={device!r}", "torch")
    try:
        name = str(torch.device(device))
        torch.zeros(1, dtype=torch.float64, device=name)
    except (AssertionError, RuntimeError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"device is {device!r}: it must be None or a device on which PyTorch computes in "
            f"double precision ({reason})"
        ) from error
    return name


def namespace(array: Array) -> Any:
    """Return the module of an array: numpy or torch."""
    if isinstance(array, np.ndarray):
        return np
    import torch

    return torch


def free_bytes(device: str) -> int:
    """Return the free memory of a CUDA device; for others, a number without limit."""
    import torch

    if torch.device(device).type != "cuda":
        return 1 << 62
    torch.cuda.empty_cache()  # memory that only this process can use is free, too
    return int(torch.cuda.mem_get_info(device)[0])


def filled(shape: tuple[int, ...], value: float, device: str | None) -> Array:
    """Return an array of one value."""
    if device is None:
        return np.full(shape, value)
    import torch

    return torch.full(shape, value, dtype=torch.float64, device=device)


def to_device(array: Any, device: str | None) -> Any:
    """Copy an array or a CSR matrix to a device; return it as it is if that is None."""
    if device is None:
        return array
    import torch

    if not sparse.issparse(array):
        return torch.tensor(np.ascontiguousarray(array), device=device)
    if array.shape[0] * array.shape[1] <= _DENSE_ENTRIES:
        return torch.tensor(array.toarray(), device=device)
    cells = array.tocoo()
    index = torch.tensor(np.stack([cells.row, cells.col]), dtype=torch.int64, device=device)
    values = torch.tensor(cells.data, device=device)
    return torch.sparse_coo_tensor(index, values, cells.shape, check_invariants=False).coalesce()


def to_host(array: Array) -> npt.NDArray[Any]:
    """Return an array as NumPy's."""
    return array if isinstance(array, np.ndarray) else np.asarray(array.cpu())


def copied(array: Array) -> Array:
    """Return a copy of an array."""
    return array.copy() if isinstance(array, np.ndarray) else array.clone()


def contiguous(array: Array) -> Array:
    """Return an array in the order of C, without a copy if it is."""
    return np.ascontiguousarray(array) if isinstance(array, np.ndarray) else array.contiguous()


def columns(array: Array, some: Array) -> Array:
    """Return the columns at increasing indices; the array itself if these are all."""
    return array if len(some) == array.shape[1] else array[:, some]


def indices(flags: Array) -> Array:
    """Return the indices of the true elements of a vector, as an array of the same library."""
    if isinstance(flags, np.ndarray):
        return np.flatnonzero(flags)
    return flags.nonzero()[:, 0]


def counting(vector: Array) -> Array:
    """Return 0, 1, .. for the elements of a vector, on its device."""
    if isinstance(vector, np.ndarray):
        return np.arange(len(vector))
    return namespace(vector).arange(len(vector), device=vector.device)
