"""Ridge regressions of many targets with exact leave-one-out residuals, by one decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def left_out_residuals(
    vectors: npt.NDArray[Any],  # (n, q) some rows of U
    squares: npt.NDArray[Any],  # (n, q)
    values: npt.NDArray[Any],  # (q,) the eigenvalues
    of_mean: Any,  # a, a number or (n,)
    y: npt.NDArray[Any],  # (n, T) centred targets of these rows
    rotated: npt.NDArray[Any],  # (q, T) products of all rows of U with the targets
    penalty: float,
    most: float,
) -> npt.NDArray[Any]:
    r"""Return the residuals (n, T) of rows that are each left out of a ridge regression.

    With eigenvectors U and eigenvalues :math:`\lambda` of the centred kernel matrix, and the
    shrinkage :math:`g_k = \lambda_k / (\lambda_k + c)` of penalty c, fitted values are
    :math:`U \operatorname{diag}(g) U^T y`, leverages :math:`h_i = a_i + \sum_k u_{ik}^2 g_k` with
    that in the mean, and the residual without the row is the ordinary one over :math:`1 - h_i`,
    exactly (Allen, 1974). Larger leverages than `most` count as this.
    """
    shrinkage = values / (values + penalty)  # (q,)
    leverage = np.minimum(squares @ shrinkage + of_mean, most)
    fitted = vectors @ (shrinkage[:, None] * rotated)
    return np.asarray((y - fitted) / (1.0 - leverage)[:, None])
