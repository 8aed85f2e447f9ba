"""Import `fgfm.torch` for the reference where PyTorch is not installed.

Sphinx's own mock (`autodoc_mock_imports`) stays visible to SciPy, which then takes it for PyTorch.
This stub is removed as soon as the module is imported.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from unittest.mock import MagicMock


def setup(app: Any) -> dict[str, Any]:
    """Import the module, with a stub in the place of PyTorch if need be."""
    if find_spec("torch") is None:
        stub = MagicMock(Tensor=type("Tensor", (), {}), __spec__=None)
        stub.nn.Module = type("Module", (), {})
        sys.modules["torch"] = stub
        try:
            import_module("fgfm.torch")
        finally:
            del sys.modules["torch"]
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
