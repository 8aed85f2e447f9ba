"""CSR matrices of marginals that the tests of sparse decisions share."""

from __future__ import annotations

import numpy as np

OBJECTIVES = [
    {},
    {"beta": 2.0},
    {"beta": 0.5, "zero_division": 0.0},
    {"zero_division": 0.4},
    {"nonempty": True},
]


def shuffled(csr, rng):
    """Return the same matrix with the entries of a row in any order, one of them in two parts."""
    data, indices, indptr = [], [], [0]
    for row in range(csr.shape[0]):
        span = slice(csr.indptr[row], csr.indptr[row + 1])
        p, i = csr.data[span], csr.indices[span]
        if len(p):
            p, i = np.append(p, p[0] / 4), np.append(i, i[0])
            p[0] *= 0.75
        order = rng.permutation(len(p))
        data.append(p[order])
        indices.append(i[order])
        indptr.append(indptr[-1] + len(p))
    result = type(csr)((np.concatenate(data), np.concatenate(indices), indptr), shape=csr.shape)
    assert not result.has_canonical_format
    return result


def random_marginals(rng, n, m):
    """Draw marginals, two fifths of them 0, with a row of zeros, and one of zeros and ones."""
    p = rng.random((n, m)) ** 2 * (rng.random((n, m)) < 0.6)
    p[1] = 0.0
    p[2] = np.arange(m) % 2
    return p
