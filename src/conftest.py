"""Modules that need a library which is not installed hold no doctests to collect."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = []
if find_spec("torch") is None:
    collect_ignore.append("fgfm/torch.py")
if find_spec("torch") is None or find_spec("triton") is None:
    collect_ignore.append("fgfm/decision/_marginals_triton.py")
