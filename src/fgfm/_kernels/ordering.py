"""Orderings that do not sort what need not be sorted."""

from __future__ import annotations

from fgfm._kernels._compile import compiled

__all__ = ["TINY", "repair_order", "sort_descending"]

TINY = 1e-280  # differences below this have no reciprocal to scale by
_RUN = 16  # so few values are sorted by insertion


@compiled
def _merge_sort(value, place, spare_value, spare_place):
    """Sort downwards whatever the order; equal values keep theirs."""
    size = len(value)
    width = 1
    while width < size:
        for low in range(0, size - width, 2 * width):
            middle = low + width
            if value[middle] <= value[middle - 1]:
                continue
            high = min(middle + width, size)
            for i in range(low, middle):
                spare_value[i] = value[i]
                spare_place[i] = place[i]
            left = low
            right = middle
            out = low
            while left < middle:
                if right < high and value[right] > spare_value[left]:
                    value[out] = value[right]
                    place[out] = place[right]
                    right += 1
                else:
                    value[out] = spare_value[left]
                    place[out] = spare_place[left]
                    left += 1
                out += 1
        width *= 2


@compiled
def repair_order(value, place, spare_value, spare_place):
    """Sort an almost sorted list downwards, carrying `place` along; equal values keep their order.

    Insertion costs the number of inversions. Beyond a fixed budget a merge sort takes over.
    """
    size = len(value)
    budget = 8 * size
    for i in range(1, size):
        v = value[i]
        at = place[i]
        j = i
        while j > 0 and v > value[j - 1]:
            value[j] = value[j - 1]
            place[j] = place[j - 1]
            j -= 1
        value[j] = v
        place[j] = at
        budget -= i - j
        if budget < 0:
            _merge_sort(value, place, spare_value, spare_place)
            return


@compiled
def sort_descending(value, place, spare_value, spare_place, count):
    """Sort a list downwards, carrying `place` along; equal values keep their order.

    The values are first dealt into as many buckets of equal width as there are values, which
    leaves little to repair unless they are very unevenly spread. The spare arrays have room for as
    many, `count` for two more.
    """
    size = len(value)
    if size > _RUN:
        top = bottom = value[0]
        for i in range(size):
            top = max(top, value[i])
            bottom = min(bottom, value[i])
            spare_value[i] = value[i]
            spare_place[i] = place[i]
        if top - bottom > size * TINY:
            scale = (size - 1) / (top - bottom)
            for b in range(size + 1):
                count[b] = 0
            for i in range(size):
                count[int((top - value[i]) * scale) + 1] += 1
            for b in range(size):
                count[b + 1] += count[b]
            for i in range(size):
                b = int((top - spare_value[i]) * scale)
                value[count[b]] = spare_value[i]
                place[count[b]] = spare_place[i]
                count[b] += 1
    repair_order(value, place, spare_value, spare_place)
