"""Speed of fgfm against alternatives: ``python -m benchmarks``, or ``make bench``."""
