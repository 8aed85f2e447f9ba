"""Save fitted models to files, and load them without running code.

A file is a skops archive, a zip file with arrays and a description of the model (schema.json),
with one more member (fgfm.json) that has the version of the format.
"""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

from sklearn.base import BaseEstimator

from fgfm._utils.atomic import atomic_file
from fgfm.store._checks import check_loaded
from fgfm.store._classes import (
    PREDICTOR,
    TREE,
    TRUSTED,
    attribute_names,
    refused_classes,
    to_current_names,
    to_stable_names,
)
from fgfm.store._vocabulary import pack_vocabularies

_HEADER, _SCHEMA = "fgfm.json", "schema.json"
_FORMAT = 1
_WRITERS = ("fgfm", "scikit-learn", "skops")  # whose versions a file has
_INFLATED, _RATIO = 1 << 28, 100  # bytes that any file may inflate to, and more for each byte


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a fitted model to a file that runs no code when it is loaded.

    Parameters
    ----------
    model : scikit-learn estimator
        A classifier or decider of fgfm, a pipeline, or any other estimator.
    path : str or path-like
        The file. It is replaced when the new one is complete.

    See Also
    --------
    load : Load the model.

    Notes
    -----
    These are loaded without trust: the classes of fgfm, and estimators of scikit-learn whose
    parameters are numbers, texts, arrays, other such estimators or functions of NumPy and SciPy
    (`numpy.ufunc`): preprocessing such as `TfidfVectorizer`, `OneHotEncoder` and
    `ColumnTransformer`, linear models, naive Bayes, `MLPClassifier`, trees, forests and
    `HistGradientBoostingClassifier` without categorical features; not support vector machines but
    `LinearSVC`. A function of yours (a tokenizer, a column selector) is saved by its name, if it
    can be imported, and loaded only if it is trusted.

    The file has the versions of fgfm, scikit-learn and skops. scikit-learn warns
    (`InconsistentVersionWarning`) if an estimator was fitted by another version of it.

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
        draft = io.BytesIO()
        skops_io.dump(pack_vocabularies(model, {}), draft)
        with zipfile.ZipFile(draft) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        schema = json.loads(members[_SCHEMA])
        to_stable_names(schema)
        members[_SCHEMA] = json.dumps(schema).encode()
        header = {"format": _FORMAT} | {name: version(name) for name in _WRITERS}
        members[_HEADER] = json.dumps(header).encode()
        content = _archive(members, zipfile.ZIP_DEFLATED)
        if sum(map(len, members.values())) > _INFLATED + _RATIO * len(content):
            content = _archive(members, zipfile.ZIP_STORED)
        file.write(content)


def load(path: str | os.PathLike[str], *, trusted: Sequence[str] = ()) -> Any:
    """Load a model from a file written by `save`.

    Parameters
    ----------
    path : str or path-like
        The file.
    trusted : sequence of str, optional
        Full names of further classes and functions that the file may contain, such as those of a
        base learner from another library; the error that refuses them has their names. Name only
        what you trust: loading may run its code. Models whose arrays compiled code of scikit-learn
        follows without checks, and that are not checked here either, need it too:
        ``"sklearn.tree._tree.Tree"`` for `GradientBoostingClassifier`, and the name of the class
        for models of libsvm (``"sklearn.svm._classes.SVC"``, `NuSVC`, `SVR`, `NuSVR`,
        `OneClassSVM`).

    Returns
    -------
    scikit-learn estimator
        The model.

    See Also
    --------
    save : Write the file.

    Notes
    -----
    No code of the file is run: it has arrays, numbers, texts and names, and may name only classes
    that are known to do nothing else when they are loaded. A file may inflate to 256 MiB and 100
    times its size. Indices that compiled code follows without checks (of sparse matrices, trees,
    forests, `HistGradientBoostingClassifier`) are checked.
    """
    if isinstance(trusted, str):
        raise TypeError(f"trusted is {trusted!r}: it must be a list of names of classes")
    source = Path(path)
    archive, schema, header = _read(source)
    refused = _refused(source, archive, schema, header) - set(trusted)
    if refused:
        attributes = attribute_names(schema)
        named = [f"{c} ({attributes[c]})" if c in attributes else c for c in sorted(refused)]
        raise ValueError(
            f"{source} contains {', '.join(named)}: such classes and functions are loaded only if "
            "you trust them and name them in trusted=[...]"
        )
    with _damage_reported(source, header):
        model = _skops().loads(archive, trusted=[*TRUSTED, *trusted])
        if not isinstance(model, BaseEstimator):
            raise ValueError(f"it contains {type(model).__name__} in place of an estimator")
        check_loaded(model, trees=not {TREE, PREDICTOR} & set(trusted))
        return model


def foreign_classes(path: str | os.PathLike[str]) -> list[str]:
    """Return the full names of the classes in a file that `load` refuses; run no code."""
    return sorted(_refused(Path(path), *_read(Path(path))))


def _skops() -> Any:
    """Import skops, without the libraries that it imports by importing all of scikit-learn."""
    unused = [f"sklearn.externals.array_api_compat.{name}" for name in ("cupy", "dask", "torch")]
    hidden = [name for name in unused if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # cannot be imported
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            "saving and loading models needs skops: pip install 'fgfm[store]'"
        ) from error
    finally:
        for name in hidden:
            del sys.modules[name]
    return skops.io


# Archives


def _read(source: Path) -> tuple[bytes, Any, dict[str, Any]]:
    """Return the archive and the description in a file, with current names, and its header."""
    with source.open("rb") as file:
        try:  # decompressors and the JSON parser have various errors
            most = _INFLATED + _RATIO * os.fstat(file.fileno()).st_size
            members = _read_members(file, most)
            header = json.loads(members.get(_HEADER, b"null"))
        except Exception as error:
            raise ValueError(
                f"{source} is damaged, or is not a model saved by fgfm: {error}"
            ) from error
    if _HEADER not in members:
        raise ValueError(f"{source} is not a model saved by fgfm: it has no {_HEADER}")
    written = header.get("format") if isinstance(header, dict) else None
    if type(written) is not int or written < 1:
        raise ValueError(f"{source} is damaged: its format is {written!r}")
    if written > _FORMAT:
        raise ValueError(
            f"{source} was written by fgfm {header.get('fgfm')} in format {written}, but this is "
            f"fgfm {version('fgfm')}, which reads formats up to {_FORMAT}: update fgfm"
        )
    with _damage_reported(source, header):
        schema = json.loads(members[_SCHEMA])
        _check_shared_objects(schema, {})
        to_current_names(schema)
        members[_SCHEMA] = json.dumps(schema).encode()
    return _archive(members, zipfile.ZIP_STORED), schema, header


def _read_members(file: BinaryIO, most: int) -> dict[str, bytes]:
    """Return the members of a zip file, which may inflate to `most` bytes, those of .npz too."""
    members: dict[str, bytes] = {}
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            name = info.filename
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"{name} is not compressed by deflate")
            with archive.open(info) as stream:
                content = stream.read(most + 1)  # the size in the directory may be wrong
            most -= len(content)
            if most < 0:
                raise ValueError(f"it inflates to too many bytes, at {name}")
            if name.endswith(".npz"):
                arrays = _read_members(io.BytesIO(content), most)
                most -= sum(map(len, arrays.values()))
                content = _archive(arrays, zipfile.ZIP_STORED)
            members[name] = content
    return members


def _archive(members: Mapping[str, bytes], compression: int) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


def _check_shared_objects(part: Any, sizes: dict[Any, int]) -> int:
    """Return the number of parts of a description; refuse one that would expand beyond it.

    skops writes an object that is used twice, with its number, twice, and reads one of the two. If
    both have the same number of parts, either can stand for the other; otherwise 5 kB can describe
    a list of two lists of two lists, and so on, that expands to any size.
    """
    if not isinstance(part, dict | list):
        return 1
    values = part.values() if isinstance(part, dict) else part
    size = 1 + sum(_check_shared_objects(value, sizes) for value in values)
    number = part.get("__id__") if isinstance(part, dict) else None
    if isinstance(number, int | float | str) and sizes.setdefault(number, size) != size:
        raise ValueError(f"the object {number} is described in two ways")
    return size


def _refused(source: Path, archive: bytes, schema: Any, header: dict[str, Any]) -> set[str]:
    with _damage_reported(source, header):
        return refused_classes(schema, set(_skops().get_untrusted_types(data=archive)))


@contextmanager
def _damage_reported(source: Path, header: dict[str, Any]) -> Iterator[None]:
    """Let every error name the file, and the versions that wrote it if they are others."""
    try:
        yield
    except Exception as error:
        others = [
            f"{name} {header[name]} (this is {version(name)})"
            for name in _WRITERS
            if header.get(name, version(name)) != version(name)
        ]
        written = f"was written by {' and '.join(others)}" if others else "was changed"
        reason = f"there is no {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"{source} is damaged or {written}: {reason}") from error
