"""How fast fgfm is, and against what: ``python -m benchmarks``, or ``make bench``."""
