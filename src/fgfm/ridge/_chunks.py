"""Chunks of targets: the units of work that are fitted together and run in parallel.

A small model is a chunk of its own and is fitted with its Hessian (`_newton`). Larger models of as
many classes, on the same rows and folds, share a chunk and are fitted side by side (`_batch`).
"""

from __future__ import annotations

import threading

import numpy as np

from fgfm._utils.folds import Fold
from fgfm._utils.parallel import Shared, one_blas_thread
from fgfm.ridge._arrays import free_bytes
from fgfm.ridge._batch import fit_batch
from fgfm.ridge._design import Design
from fgfm.ridge._newton import fit_newton
from fgfm.ridge._preconditioner import INVERSES_LIMIT, LARGEST_BLOCK
from fgfm.ridge._problem import RidgeSettings, RidgeTarget, TargetFit

__all__ = ["SharedInputs", "fit_chunks", "split_targets"]

# Columns of weights in a chunk of large models: more would hardly make products with the rows
# faster.
_COLUMNS = 64
# Entries of an array of a chunk, (n or p, columns): 32 MB. Each fold has arrays of its own, so
# that a chunk has fewer columns if there are more folds than _FOLDS.
_ENTRIES = 1 << 22
_FOLDS = 3
# Entries of an array of a chunk on a device, (n or p, columns of all folds): 512 MiB, and
# _DEVICE_ARRAYS of them in the free memory. Wide products use all of a device.
_DEVICE_ENTRIES = 1 << 26
_DEVICE_ARRAYS = 32
_device_lock = threading.Lock()  # one chunk at a time on a device: its memory is for one


def split_targets(
    design: Design, targets: list[RidgeTarget], device: str | None = None
) -> list[list[int]]:
    """Return the chunks in which targets are fitted, as lists of their indices.

    Chunks depend on the targets alone, not on the number of jobs, so that neither do results.
    """
    small = []
    groups: dict[tuple[int | None, ...], list[int]] = {}
    for t, target in enumerate(targets):
        if _is_small(design, target):
            small.append([t])
        else:
            # A sparse X is kept apart from the extra columns: targets with different ones can be
            # fitted together, but not with targets that have none.
            extra = None if target.extra is None else 0 if design.is_sparse else id(target.extra)
            groups.setdefault((extra, id(target.folds), target.n_classes), []).append(t)
    large = []
    for (_, _, n_classes), members in groups.items():
        columns = _n_columns(design, len(targets[members[0]].folds), device)
        size = max(1, columns // (1 if n_classes == 2 else n_classes or 1))
        large += [members[at : at + size] for at in range(0, len(members), size)]
    return small + large


def _n_columns(design: Design, n_folds: int, device: str | None) -> int:
    """Return the most columns of weights in a chunk, for bounded memory."""
    if device is not None:
        entries = min(_DEVICE_ENTRIES, free_bytes(device) // (8 * _DEVICE_ARRAYS))
        return entries // (max(design.n, design.p) * max(n_folds, 1))
    entries = _ENTRIES * _FOLDS // max(n_folds, _FOLDS)
    columns = min(_COLUMNS, entries // max(design.n, design.p))
    # dense rows are rotated where there are fewer rows than columns
    block = (design.p if design.is_sparse else min(design.n, design.p)) + 1
    if block <= LARGEST_BLOCK:
        columns = min(columns, INVERSES_LIMIT // (block**2 * n_folds))
    return columns


def _is_small(design: Design, target: RidgeTarget) -> bool:
    K = target.n_classes
    return K == 1 or design.suits_newton(K - 1, target.extra)


class SharedInputs(Shared):
    """The inputs that all chunks share, sent to a worker once.

    Parameters
    ----------
    design : Design
        The features and the weights of the rows.
    settings : RidgeSettings
        The objective and the stopping rule.
    targets : list of RidgeTarget
        The targets. Folds that are the same for all are stored here instead of in each job.
    """

    def __init__(
        self, design: Design, settings: RidgeSettings, targets: list[RidgeTarget]
    ) -> None:
        self.design = design
        self.settings = settings
        same = len({id(target.folds) for target in targets}) == 1
        self.folds: list[Fold] | None = targets[0].folds if same else None

    def pack(self, target: RidgeTarget) -> RidgeTarget:
        """Return a target without the folds that are stored here."""
        return target if self.folds is None else target._replace(folds=[])

    def unpack(self, target: RidgeTarget) -> RidgeTarget:
        """Return a packed target with its folds."""
        return target if self.folds is None else target._replace(folds=self.folds)


def fit_chunks(inputs: SharedInputs, chunks: list[list[RidgeTarget]]) -> list[TargetFit]:
    """Choose the penalties and fit the models of the targets of some chunks.

    Parameters
    ----------
    inputs : SharedInputs
        The inputs that all targets share.
    chunks : list of list of RidgeTarget
        Packed targets, as divided by `split_targets`.

    Returns
    -------
    list of TargetFit
        One fit per target, in order.
    """
    with one_blas_thread:
        return [
            fit
            for chunk in chunks
            for fit in _fit_chunk(
                inputs.design, [inputs.unpack(target) for target in chunk], inputs.settings
            )
        ]


def _fit_chunk(
    design: Design, targets: list[RidgeTarget], settings: RidgeSettings
) -> list[TargetFit]:
    first = targets[0]
    if first.n_classes == 1:
        p = design.p + (first.extra is not None)
        losses = np.zeros((len(first.folds), len(settings.penalties)))
        certain = np.ones((design.n, 1)) if settings.held_out else None
        return [TargetFit(np.zeros((1, p)), np.zeros(1), 0, losses, 0, 0, certain)]
    if _is_small(design, first):
        return [fit_newton(design, first, settings)]
    if settings.device is None:
        return fit_batch(design, targets, settings)
    with _device_lock:
        return fit_batch(design, targets, settings)
