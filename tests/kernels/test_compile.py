"""Kernels are compiled once per type, and again when a source changes."""

from __future__ import annotations

import numpy as np
import pytest

from fgfm import decision
from fgfm._kernels import _compile, marginals, marginals_window, ordering


def test_fingerprint_depends_on_the_sources(tmp_path):
    for folder in ("_kernels", "decision"):
        (tmp_path / folder).mkdir()
    sources = [tmp_path / name for name in ("decision/_quadrature.py", "_kernels/a.py")]
    for source in sources:
        source.write_text("x = 1\n")
    for source in sources:
        before = _compile._fingerprint(tmp_path)
        assert before == _compile._fingerprint(tmp_path)
        source.write_text("x = 2\n")
        assert before != _compile._fingerprint(tmp_path)


@pytest.mark.compiled
def test_kernels_are_not_compiled_again_for_read_only_or_strided_input():
    p = np.random.default_rng(0).random((3, 400))
    decision.from_marginals(p)
    p.flags.writeable = False
    decision.from_marginals(p)
    decision.from_marginals(p[:, ::2])
    assert len(marginals.decide_dense_rows.signatures) <= 2  # float64, and float32 elsewhere
    assert len(marginals_window.find_window.signatures) <= 2
    # Zero if the callers were loaded from the cache, which contains this kernel.
    assert len(ordering.sort_descending.signatures) <= 1
