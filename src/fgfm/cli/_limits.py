"""Options on which label sets are allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from fgfm.decision import Constraints

__all__ = ["ConstraintsFile", "MaxLabels", "MinLabels", "read_constraints"]

MinLabels = Annotated[
    int | None, typer.Option(metavar="N", help="Least number of labels of a row.")
]
MaxLabels = Annotated[
    int | None, typer.Option(metavar="N", help="Largest number of labels of a row.")
]
ConstraintsFile = Annotated[
    Path | None,
    typer.Option(
        "--constraints",
        metavar="FILE",
        help="JSON object of constraints on the label set of a row: required, forbidden, groups "
        "(at most one label of each), parents, costs; labels by name or number.",
    ),
]


def read_constraints(path: Path) -> Constraints:
    """Read constraints from a JSON file."""
    from fgfm.decision import Constraints
    from fgfm.io import DataError

    try:
        found: Any = json.loads(path.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise DataError(f"it is not JSON: {error}", source=path) from None
    if not isinstance(found, dict):
        raise DataError("it must be a JSON object of constraints", source=path)
    try:
        return Constraints.from_mapping(found)
    except (TypeError, ValueError) as error:
        raise DataError(str(error), source=path) from None
