"""Stable descending sorts of values with their indices, fast on nearly sorted lists."""

from __future__ import annotations

from fgfm._kernels._compile import compiled

__all__ = ["TINY", "repair_order", "sort_descending"]

TINY = 1e-280  # the reciprocal of a smaller difference could overflow
_RUN = 16  # lists up to this length are sorted by insertion alone


@compiled
def _merge_sort(value, index, spare_value, spare_index):
    """Sort any list in descending order by merging; equal values keep their order."""
    size = len(value)
    width = 1
    while width < size:
        for low in range(0, size - width, 2 * width):
            middle = low + width
            if value[middle] <= value[middle - 1]:
                continue  # the two halves are in order already
            high = min(middle + width, size)
            for i in range(low, middle):
                spare_value[i] = value[i]
                spare_index[i] = index[i]
            left = low
            right = middle
            out = low
            while left < middle:
                if right < high and value[right] > spare_value[left]:
                    value[out] = value[right]
                    index[out] = index[right]
                    right += 1
                else:
                    value[out] = spare_value[left]
                    index[out] = spare_index[left]
                    left += 1
                out += 1
        width *= 2


@compiled
def repair_order(value, index, spare_value, spare_index):
    """Sort a nearly sorted list in descending order, permuting `index` alike; stable.

    Insertion sort takes as many moves as there are inversions. If there are more than eight per
    element, a merge sort takes over. The spare arrays are as long as the list.
    """
    size = len(value)
    moves_left = 8 * size
    for i in range(1, size):
        v = value[i]
        v_index = index[i]
        j = i
        while j > 0 and v > value[j - 1]:
            value[j] = value[j - 1]
            index[j] = index[j - 1]
            j -= 1
        value[j] = v
        index[j] = v_index
        moves_left -= i - j
        if moves_left < 0:
            _merge_sort(value, index, spare_value, spare_index)
            return


@compiled
def sort_descending(value, index, spare_value, spare_index, count):
    """Sort a list in descending order, permuting `index` alike; stable.

    A counting sort into as many buckets of equal width as there are values leaves little to repair
    unless they are spread very unevenly. The spare arrays are as long as the list, `count` is
    longer by 2.
    """
    size = len(value)
    if size > _RUN:
        top = bottom = value[0]
        for i in range(size):
            top = max(top, value[i])
            bottom = min(bottom, value[i])
            spare_value[i] = value[i]
            spare_index[i] = index[i]
        if top - bottom > size * TINY:
            scale = (size - 1) / (top - bottom)
            for b in range(size + 1):
                count[b] = 0
            for i in range(size):
                count[int((top - value[i]) * scale) + 1] += 1
            for b in range(size):
                count[b + 1] += count[b]  # count[b] is now where bucket b starts
            for i in range(size):
                b = int((top - spare_value[i]) * scale)
                value[count[b]] = spare_value[i]
                index[count[b]] = spare_index[i]
                count[b] += 1
    repair_order(value, index, spare_value, spare_index)
