"""The packages that the benchmark compares with."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

__all__ = ["PEERS", "Peer"]

_SCRIPTS = Path(__file__).parent / "scripts"


class Peer(NamedTuple):
    """A package to compare with."""

    name: str
    title: str
    environment: str
    requirements: tuple[str, ...]
    script: Path
    rules: tuple[str, ...]
    url: str
    citation: str


_MULTILEARN = (
    "scikit-multilearn-ng==0.0.8",
    "numpy==2.4.6",
    "scikit-learn==1.9.1",
    "scipy==1.17.1",
)

PEERS: dict[str, Peer] = {
    peer.name: peer
    for peer in (
        Peer(
            name="f1-maximizer",
            title="example-wise-f1-maximizer, logistic regression",
            environment="f1-maximizer",
            requirements=(
                "example-wise-f1-maximizer==0.1.5",
                "numpy==1.24.4",
                "scikit-learn==1.2.2",
                "scipy==1.10.1",
            ),
            script=_SCRIPTS / "f1_maximizer.py",
            rules=("gfm",),
            url="https://pypi.org/project/example-wise-f1-maximizer/",
            citation="Zhang, Ramaswamy and Agarwal (2020), Convex Calibrated Surrogates for the "
            "Multi-Label F-Measure, ICML",
        ),
        Peer(
            name="dacaf",
            title="dacaf-mlc, probabilistic classifier chain of logistic regressions",
            environment="dacaf",
            requirements=(
                "dacaf-mlc==1.3.0",
                "numpy==1.26.4",
                "pandas==3.0.6",
                "scikit-learn==1.9.1",
                "scipy==1.17.1",
            ),
            script=_SCRIPTS / "dacaf.py",
            rules=("gfm",),
            url="https://pypi.org/project/dacaf-mlc/",
            citation="Nguyen, Hoang, Hoang and Huynh (2026), Probabilistic multi-label "
            "classification via a divide-and-conquer and fusion approach, Information Fusion, "
            "doi:10.1016/j.inffus.2026.104517",
        ),
        Peer(
            name="boomer",
            title="mlrl-boomer, gradient boosted rules",
            environment="boomer",
            requirements=(
                "mlrl-boomer==0.12.3",
                "numpy==2.3.5",
                "scikit-learn==1.7.2",
                "scipy==1.16.3",
            ),
            script=_SCRIPTS / "boomer.py",
            rules=("gfm", "threshold"),
            url="https://pypi.org/project/mlrl-boomer/",
            citation="Rapp, Loza Mencia, Fuernkranz, Nguyen and Huellermeier (2020), Learning "
            "Gradient Boosted Multi-label Classification Rules, ECML PKDD, "
            "doi:10.1007/978-3-030-67664-3_8",
        ),
        Peer(
            name="mlknn",
            title="scikit-multilearn-ng, MLkNN",
            environment="multilearn",
            requirements=_MULTILEARN,
            script=_SCRIPTS / "mlknn.py",
            rules=("mlknn",),
            url="https://pypi.org/project/scikit-multilearn-ng/",
            citation="Zhang and Zhou (2007), ML-KNN: A lazy learning approach to multi-label "
            "learning, Pattern Recognition 40, doi:10.1016/j.patcog.2006.12.019",
        ),
        Peer(
            name="rakel",
            title="scikit-multilearn-ng, RAkEL of logistic regressions",
            environment="multilearn",
            requirements=_MULTILEARN,
            script=_SCRIPTS / "rakel.py",
            rules=("rakel",),
            url="https://pypi.org/project/scikit-multilearn-ng/",
            citation="Tsoumakas, Katakis and Vlahavas (2011), Random k-Labelsets for Multilabel "
            "Classification, IEEE TKDE 23, doi:10.1109/TKDE.2010.164",
        ),
        Peer(
            name="napkinxc",
            title="napkinXC, probabilistic label tree",
            environment="napkinxc",
            requirements=("napkinXC==0.7.2", "numpy==2.4.6", "scipy==1.17.1"),
            script=_SCRIPTS / "napkinxc_plt.py",
            rules=("threshold", "top-k"),
            url="https://pypi.org/project/napkinxc/",
            citation="Jasinska-Kobus, Wydmuch, Dembczynski, Kuznetsov and Busa-Fekete (2020), "
            "Probabilistic Label Trees for Extreme Multi-label Classification, arXiv:2009.11218",
        ),
    )
}
