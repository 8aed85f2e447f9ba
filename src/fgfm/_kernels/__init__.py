"""Compiled loops: one file per problem, named as the packages that call them.

The formulas, bounds and symbols are those of ``docs/design.md``; comments name its sections.

=======================  ==========================================================================
module                   contents
=======================  ==========================================================================
``marginals``            decide rows of independent labels, dense or CSR
``marginals_short``      the same for rows of at most 128 labels
``marginals_window``     bounds that select the ranks to evaluate
``marginals_workspace``  scratch arrays of ``marginals``
``power_sums``           products and sums over independent labels from eight power sums
``cardinalities``        decide rows from P (GFM)
``samples``, ``joint``   decide rows from draws and from probabilities of label sets
``factors``              decide rows from the P of independent factors (F-GFM)
``candidates``           labels that can be in an optimal set, and a first guess of its size
``search``               the best set size from a few columns of Delta
``ordering``             stable sorting of nearly sorted lists
``quadrature``           the quadrature rule of a row
``constants``            ties and status codes
``tilt``, ``condition``  inclusion probabilities given the number of labels
``poisson_binomial``     distribution of the number of independent labels
``ridge``                multinomial logistic regression by Newton's method
``columns``, ``gram``    column sums and weighted Gram matrices
=======================  ==========================================================================

Kernels that Python calls read C-contiguous arrays and write their results into arrays that the
caller allocates. Those that decide take each row by itself, so that results have the same bits for
any block size and number of threads ("Determinism"). They share their last arguments:

- ``beta2`` is beta squared, ``zero_division`` the value of 0/0, and ``nonempty`` whether to
  condition on y != 0;
- ``rules`` are the tables of ``fgfm.decision._quadrature``;
- ``labels`` (n, m) are int8 zeros, set to 1 at the chosen labels; ``expected`` (n,) is filled with
  the expected F-measures.

Kernels that validate their input return ``(row, status, factor)``: the first invalid row, its code
from ``constants``, and its factor; or ``(-1, 0.0, 0)``.
"""
