"""Exclude modules from doctest collection if the libraries that they import are not installed."""

from __future__ import annotations

from importlib.util import find_spec

needed = {"fgfm/onnx.py": "onnxruntime", "fgfm/torch.py": "torch"}
collect_ignore = [path for path, library in needed.items() if find_spec(library) is None]
if find_spec("torch") is None or find_spec("triton") is None:
    collect_ignore_glob = ["fgfm/decision/gpu/*.py"]
