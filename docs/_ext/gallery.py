"""The order of the examples in the gallery: by field first, then how decisions are made."""

from __future__ import annotations

ORDER = (
    "text.py",
    "background.py",
    "images.py",
    "medicine.py",
    "anomalies.py",
    "masks.py",
    "calibration.py",
    "beta.py",
    "decision_step_by_step.py",
    "label_graphs.py",
)


class ExampleOrder:
    """Sort key of the examples; examples that are not listed come last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        """Return the position of a file."""
        return (ORDER.index(name) if name in ORDER else len(ORDER)), name

    def __repr__(self) -> str:
        return "ExampleOrder"
