"""Other packages that decide from probabilities, each run in an environment of its own.

A package is passed the labels that vary on the validation rows, with their probabilities in the
place of features; labels that are constant there keep their constant. Its times cover all of its
rules together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np

from benchmarks.deciders.probabilities import Probabilities
from benchmarks.deciders.rules import Average, Outcome
from benchmarks.extreme import XCOLUMNS
from benchmarks.real.peers import Peer, run_peer

__all__ = ["PEERS", "decide_by_peer"]

_SCRIPTS = Path(__file__).parent / "peer_scripts"

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        XCOLUMNS._replace(
            script=_SCRIPTS / "xcolumns_rules.py", rules=("fw/macro", "fw/micro", "bc/macro")
        ),
        Peer(
            name="cutoffs",
            title="optimal-classification-cutoffs",
            environment="cutoffs",
            requirements=(
                "optimal-classification-cutoffs==0.6.0",
                "numpy==2.4.6",
                "scikit-learn==1.9.1",
                "scipy==1.17.1",
            ),
            script=_SCRIPTS / "cutoffs_rules.py",
            rules=("empirical/macro", "empirical/micro", "expected/macro", "expected/micro"),
            url="https://pypi.org/project/optimal-classification-cutoffs/",
            citation="Dinkelbach (1967), On Nonlinear Fractional Programming, Management Science "
            "13, doi:10.1287/mnsc.13.7.492",
        ),
    )
}


def decide_by_peer(
    name: str, python: str | os.PathLike[str], limit: float, p: Probabilities
) -> Iterator[tuple[str, Outcome]]:
    """Tune and decide with another package."""
    varies = p.Y_val.any(axis=0) & ~p.Y_val.all(axis=0)  # (m,)
    run = run_peer(
        PEERS[name],
        python,
        p.proba_val[:, varies],
        p.Y_val[:, varies],
        p.proba_test[:, varies],
        limit=limit,
    )
    constant: Any = p.Y_val[0]
    for found, decided in run.labels.items():
        rule, average = found.split("/")
        labels = np.tile(constant, (len(p.proba_test), 1))
        labels[:, varies] = decided
        yield f"{name}-{rule}", Outcome(cast("Average", average), labels, run.fit_s, run.predict_s)
