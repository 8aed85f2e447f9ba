"""The solvers that are compared find the same models."""

from __future__ import annotations

import numpy as np
import pytest

from ridge_cases import large_rows

ridge_solvers = pytest.importorskip(
    "benchmarks.ridge_solvers", reason="benchmarks/ is not beside the tests"
)
datasets = pytest.importorskip("benchmarks.datasets")


def test_solvers_agree():
    X, Y, _ = large_rows()
    fits = {
        solver: ridge_solvers.fit_with(solver, X, Y[:, :2], penalties=[10.0, 1.0])
        for solver in ridge_solvers.SOLVERS
    }
    for solver in ("plain", "cholesky"):
        for one, two in zip(fits["cg"], fits[solver], strict=True):
            assert one.penalty == two.penalty
            np.testing.assert_allclose(one.coef, two.coef, atol=1e-8)


def test_table_has_a_row_for_labels_and_one_for_their_number(monkeypatch):
    X, Y, _ = large_rows()
    report = {"done": 2, "seconds": 1.0, "memory": 2**20, "penalties": [1.0, 1.0]}
    found = iter([report, {**report, "seconds": 3.0}, None] * 2)
    monkeypatch.setattr(ridge_solvers, "load", lambda name: datasets.Split(X, Y, X, Y))
    monkeypatch.setattr(ridge_solvers, "_run", lambda *arguments: next(found))
    table = ridge_solvers.solver_table(["some"], 2, 60.0)
    assert [row[:2] for row in table.rows] == [("some", "labels"), ("some", "number")]
    assert table.rows[0][2:] == (311, 0.5, "3.0x", "> 120x", 2**20, None)
    assert max(map(len, table.lines())) <= 80
