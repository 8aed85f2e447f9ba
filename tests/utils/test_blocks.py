"""Blocks of rows and numbers of threads."""

from __future__ import annotations

import threading

import joblib
import pytest

from fgfm._utils.blocks import BLOCK_BYTES, n_threads, row_blocks, run_blocks


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("row_bytes", [0, 1, 1000, 2 * BLOCK_BYTES])
@pytest.mark.parametrize("n", [0, 1, 7, 10_000])
def test_blocks_cover_all_rows_in_order(n, row_bytes, threads):
    blocks = row_blocks(n, row_bytes, threads)
    assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(n))
    lengths = [block.stop - block.start for block in blocks]
    assert all(length == 1 or length * row_bytes <= BLOCK_BYTES for length in lengths)
    if threads > 1 and n >= 4 * threads:
        assert len(blocks) >= 4 * threads - 3  # rounding up may leave a few blocks fewer


def test_results_are_in_the_order_of_the_blocks():
    """The first block ends last."""
    others_done = threading.Event()

    def work(rows):
        if rows.start == 0:
            assert others_done.wait(10)
        elif rows.stop == 16:
            others_done.set()
        return rows.start

    assert run_blocks(16, 1, 2, work) == [block.start for block in row_blocks(16, 1, 2)]


@pytest.mark.parametrize("threads", [1, 3])
def test_error_of_the_first_failing_block_is_raised(threads):
    def work(rows):
        if rows.stop > 50:
            raise ValueError(f"block of row {rows.start}")

    first = next(b for b in row_blocks(100, BLOCK_BYTES, threads) if b.stop > 50)
    with pytest.raises(ValueError, match=f"^block of row {first.start}$"):
        run_blocks(100, BLOCK_BYTES, threads, work)


def test_number_of_threads_is_that_of_the_joblib_context():
    assert n_threads(None) == 1
    assert n_threads(3) == 3
    assert n_threads(-1) == joblib.cpu_count()
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert n_threads(None) == 2


@pytest.mark.parametrize("n_jobs", [0, 1.5, True, "2"])
def test_invalid_n_jobs_raises(n_jobs):
    with pytest.raises(
        ValueError, match=r"n_jobs is .*: it must be None or an integer other than"
    ):
        n_threads(n_jobs)
