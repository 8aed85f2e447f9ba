"""Made-up records of the paper's experiment."""

from __future__ import annotations

from fgfm.paper._summary import Record

SETTINGS = {"beta": 1.0, "seed": 0, "n_test": 5000, "estimates": "published"}


def make_records(values, n=50, structure="2+1", factors="0 1|2"):
    """Return records with given F-measures, a list for each method."""
    return [
        Record(structure, n, rep, "linear", method, f, f, factors)
        for method, fs in values.items()
        for rep, f in enumerate(fs, start=1)
    ]
