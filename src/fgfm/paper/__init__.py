"""The synthetic experiment of Gasse and Aussem (2016).

Random Bayesian networks (`random_network`, `paper_data`) know their exact distributions.
`reproduce` runs the experiment, with the estimates of the authors' scripts, with those of this
package, or with both; `format_tables` and `write_report` show the results.
"""

from __future__ import annotations

from fgfm.paper._experiment import PaperResults, reproduce
from fgfm.paper._networks import STRUCTURES, LabelNetwork, paper_data, random_network
from fgfm.paper._report import format_tables, write_report

__all__ = [
    "STRUCTURES",
    "LabelNetwork",
    "PaperResults",
    "format_tables",
    "paper_data",
    "random_network",
    "reproduce",
    "write_report",
]


def __dir__() -> list[str]:
    return __all__
