"""Fixtures of several folders of tests."""

import signal

import pytest


@pytest.fixture
def sigint_raises():
    """Let SIGINT raise KeyboardInterrupt: a shell ignores it in its background jobs."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)
