"""Compiled loops, written in C++: one header per problem, named as the packages that call them.

The formulas, bounds and symbols are those of ``docs/design.md``; comments name its sections.

=======================  ==========================================================================
header                   contents
=======================  ==========================================================================
``marginals``            decide rows of independent labels, dense or CSR
``marginals_short``      the same for rows of at most 128 labels
``marginals_window``     bounds that select the ranks to evaluate
``marginals_columns``    decide columns, where rows are stored one after the other
``jaccard``              the same for the Jaccard index
``floors``               floors on precision and recall, and true items without a label
``power_sums``           products and sums over independent labels from eight power sums
``cardinalities``        decide rows from P (GFM); P of draws of label sets
``constrained``          the best feasible set, where constraints exclude the optimum;
                         ``constrained_marginals`` for independent labels
``budgets``              macro decisions with limits on rows, one class per row: ascent;
                         ``budget_bounds`` evaluates and bounds them
``prefixes``             micro decisions with limits on rows: the best prefix of a sequence
``factors``              decide rows from the P of independent factors (F-GFM)
``search``               labels that can be in an optimal set; its size from few columns of Delta
``ordering``             stable sorting of nearly sorted lists
``quadrature``           the quadrature rules, and the rule of a row
``constants``            ties, status codes, shared types
``arrays``               views of arrays, and sums in a fixed order
``checks``               sizes and indices that enter a kernel
``tilt``                 inclusion probabilities given the number of labels
``poisson_binomial``     distribution of the number of independent labels
``reweighted``           the same, and decisions, for a distribution of that number
``betting``              bets against a hypothesis about a mean
``ridge``                ridge logistic regressions, with the penalty chosen by cross-validation
``ridge_problem``        the penalised likelihood of one of them
``ridge_newton``         Newton's method for several of them on the same rows
``ridge_cg``             its steps by conjugate gradients
``ridge_rows``           products of dense or sparse rows with many columns
``logistic``             sums of logistic regressions on one or two features
``exponentials``         exp, log and log(1 + x) of vectors; softmax of rows
``grouping``             groups of equal rows
``transpose``            transposition of strided matrices
``forest``               decision trees, grown on features in bins; the leaves of rows
``signals``              Ctrl-C in loops that take long
``instruction_set``      which of the modules a machine can run
=======================  ==========================================================================

``module.cpp`` and one ``bind_*.cpp`` for each kind of problem make them functions of a Python
module, which is compiled twice: for every processor of an architecture (``_native``) and, on x86,
for those with AVX2 (``_native_v3``). The better one that the machine can run is imported here, and
its functions are attributes of this package; both give the same bits.

Kernels read C-contiguous arrays and write their results into arrays that the caller allocates, and
release the GIL. Those that decide take each row by itself, so that results have the same bits for
any block size and number of threads ("Determinism"). They share their last arguments:

- ``objective`` is an ``Objective``: beta squared, the value of 0/0, and whether to condition on
  y != 0;
- ``rules`` are the tables of ``fgfm.decision._quadrature``;
- ``constraints``, the last argument of those that take any, is a ``Constraints`` or None;
- ``labels`` (n, m) are int8 zeros, set to 1 at the chosen labels; ``expected`` (n,) is filled with
  the expected F-measures.

Kernels that validate their input return a ``Status``: the first invalid row, its status code, and
its factor; or the row -1.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["native"]


def _import_native() -> Any:
    """Import the module for the best instruction set that this machine can run."""
    baseline: Any = import_module("fgfm._kernels._native")
    return import_module("fgfm._kernels._native_v3") if baseline.runs_x86_64_v3() else baseline


native = _import_native()


def __getattr__(name: str) -> Any:
    return getattr(native, name)
