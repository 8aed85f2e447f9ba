"""Entries of CSR rows, put in the order that decisions need."""

from __future__ import annotations

import numpy as np

from fgfm._compile import entry_point

__all__ = ["order_entries"]


@entry_point
def order_entries(data, labels, indptr, ordered, ordered_labels, ends):
    """Fill in the entries of each row in the order of their labels, those of one label summed.

    Also fills in where each row ends: without duplicates where it did.
    """
    count = 0
    for row in range(len(indptr) - 1):
        start = indptr[row]
        first = count
        order = np.argsort(labels[start : indptr[row + 1]])
        for j in range(len(order)):
            at = start + order[j]
            if count > first and ordered_labels[count - 1] == labels[at]:
                ordered[count - 1] += data[at]
            else:
                ordered[count] = data[at]
                ordered_labels[count] = labels[at]
                count += 1
        ends[row] = count
