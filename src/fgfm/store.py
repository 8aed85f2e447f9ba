"""Models in files that run no code when they are loaded.

A file is a skops archive (a zip with a description of the model and its arrays) with one member
more, which says which format it is. It appears under its name when it is complete, not before.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

from sklearn.base import BaseEstimator

from fgfm._utils.atomic import atomic_file

__all__ = ["foreign_classes", "load", "save"]

_FORMAT = 1
_HEADER = "fgfm.json"
# The classes that a file may name, beyond those of scikit-learn, NumPy and SciPy that skops knows.
_TRUSTED = frozenset(
    {
        "scipy.sparse._csr.csr_array",
        # folds: numbers and a seed
        *(
            f"sklearn.model_selection._split.{name}"
            for name in (
                "GroupKFold",
                "KFold",
                "LeaveOneOut",
                "RepeatedKFold",
                "RepeatedStratifiedKFold",
                "ShuffleSplit",
                "StratifiedKFold",
                "StratifiedShuffleSplit",
            )
        ),
        "fgfm.classifier.FGFMClassifier",
        "fgfm.data._encoder.FeatureEncoder",
        "fgfm.estimation.calibration.IsotonicCalibrator",
        "fgfm.estimation.calibration.SigmoidCalibrator",
        "fgfm.estimation.direct.Direct",
        "fgfm.estimation._models.EstimatorModels",
        "fgfm.estimation._models.FittedModel",
        "fgfm.estimation._models.RidgeModels",
        "fgfm.estimation.powerset.Powerset",
        "fgfm.estimation.reweighted.Reweighted",
        "fgfm.estimation._stack.LogStack",
        "fgfm.ridge._estimator.RidgeLogistic",
        "fgfm.estimation.tilted.Tilted",
        "fgfm.estimation.two_step.TwoStep",
        "fgfm.factors._label_graph.Cut",
        "fgfm.factors._gcm.GCM",
        "fgfm.factors._ilf.ILFCompo",
        "fgfm.factors._mutual_information.MutualInformation",
    }
)


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            "saving and loading models needs skops: pip install 'fgfm[store]'"
        ) from error
    return skops.io


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted model to a file that runs no code when it is loaded.

    Parameters
    ----------
    model : scikit-learn estimator
        An `FGFMClassifier`, a pipeline that holds one, or any other estimator.
    path : str or path-like
        The file. It appears when it is complete; one that was there is replaced then.

    See Also
    --------
    load : The way back.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import fgfm
    >>> model = fgfm.FGFMClassifier(random_state=0).fit([[0], [0], [1]], [[1, 0], [1, 0], [0, 1]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fgfm.save(model, Path(folder) / "model.fgfm")
    ...     again = fgfm.load(Path(folder) / "model.fgfm")
    >>> again.predict([[0], [1]])
    array([[1, 0],
           [0, 1]])
    """
    if not isinstance(model, BaseEstimator):
        raise TypeError(
            f"model is {type(model).__name__}: it must be a scikit-learn estimator (an instance)"
        )
    skops_io = _skops()
    with atomic_file(path) as file:
        # skops cannot write on: the archive is made in a file, and the header is added to it
        skops_io.dump(model, file, compression=zipfile.ZIP_DEFLATED)
        with zipfile.ZipFile(file, "a") as archive:
            header = {"format": _FORMAT, "fgfm": version("fgfm")}
            archive.writestr(_HEADER, json.dumps(header))


def load(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """Load a model that `save` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.
    trusted : sequence of str, optional
        Full names of further classes that the file may hold, such as those of a base learner from
        another library. Name only what you trust: loading may run their code. Trees and forests of
        scikit-learn need ``["sklearn.tree._tree.Tree"]``: nothing checks where their nodes point.

    Returns
    -------
    scikit-learn estimator
        The model.

    See Also
    --------
    save : Writes the file.
    """
    if isinstance(trusted, str):
        raise TypeError(f"trusted is {trusted!r}: it must be a list of names of classes")
    skops_io = _skops()
    source = Path(path)
    refused = sorted(set(foreign_classes(source)) - set(trusted))
    model = None
    try:
        if not refused:
            model = skops_io.load(source, trusted=[*_TRUSTED, *trusted])
    except Exception as error:
        raise ValueError(
            f"{source} is damaged, or was written by other versions: {error}"
        ) from error
    if refused:
        raise ValueError(
            f"{source} holds {', '.join(refused)}: such classes are loaded only if you trust them "
            "and name them in trusted=[...]"
        )
    if not isinstance(model, BaseEstimator):
        raise ValueError(f"{source} holds {type(model).__name__}: it must hold an estimator")
    return model


def foreign_classes(path: str | os.PathLike[str]) -> list[str]:
    """Name the classes in a file that `load` refuses unless they are trusted; run no code.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    list of str
        Their full names.
    """
    skops_io = _skops()
    source = Path(path)
    with source.open("rb") as file:  # no such file, no permission: it says so itself
        _check_header(source, file)
    try:
        unknown = set(skops_io.get_untrusted_types(file=source))
    except Exception as error:
        raise ValueError(
            f"{source} is damaged, or was written by other versions: {error}"
        ) from error
    return sorted(unknown - _TRUSTED)


def _check_header(source: Path, file: BinaryIO) -> None:
    """Raise unless the file is a whole one, of a format that is known."""
    try:
        with zipfile.ZipFile(file) as archive:
            known = _HEADER in archive.namelist()
            broken = archive.testzip()
            header: Any = json.loads(archive.read(_HEADER)) if known else None
    except zipfile.BadZipFile as error:
        raise ValueError(f"{source} is no model saved by fgfm, or is damaged: {error}") from error
    except Exception as error:  # the decompressors and the parser have errors of their own
        raise ValueError(f"{source} is damaged: {error}") from error
    if not known:
        raise ValueError(f"{source} is no model saved by fgfm: it has no {_HEADER}")
    if broken is not None:
        raise ValueError(f"{source} is damaged: the checksum of {broken} is wrong")
    found = header.get("format") if isinstance(header, dict) else None
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ValueError(f"{source} is damaged: its format is {found!r}")
    if found > _FORMAT:
        raise ValueError(
            f"{source} was written by fgfm {header.get('fgfm')} in format {found}, and this is "
            f"fgfm {version('fgfm')}, which reads formats up to {_FORMAT}: update fgfm"
        )
