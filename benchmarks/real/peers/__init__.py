"""Other multi-label packages, each run in an environment of its own.

Their pinned dependencies exclude each other, and ours. So a peer is a list of pinned
requirements, which `install` installs, and a script in the folder ``scripts``, which `run_peer`
runs on one core with training and test rows. ``scripts/run_peer.py`` defines what a script
provides.
"""

from __future__ import annotations

from benchmarks.real.peers.environment import PeerError, install
from benchmarks.real.peers.process import PeerLimit, PeerRun, run_peer
from benchmarks.real.peers.registry import PEERS, Peer

__all__ = ["PEERS", "Peer", "PeerError", "PeerLimit", "PeerRun", "install", "run_peer"]
