"""Full precision of float32 matrix products, which libraries may round to fewer digits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

from fgfm.decision._array_api.backend import Backend

__all__ = ["full_precision"]


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
