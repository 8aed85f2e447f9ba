"""Archives of models: zip files that are read within limits.

A small file can inflate to more than any memory, by compression, by members that overlap, or by
arrays and lists that are shared many times. All of this is measured before anything is built.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping
from typing import Any, BinaryIO

from numpy.lib import format as npy

HEADER = "fgfm.json"
SCHEMA = "schema.json"

_FREE = 1 << 28  # bytes that any file may inflate to
_RATIO = 100  # inflated bytes for each byte of a larger file
_EMPTY = 1 << 20  # rows or columns that an array without values may have
_DEEPEST = 200  # levels of lists and objects; those of real models are below 100
_SUFFIXES = {
    "NdArrayNode": ".npy",
    "SparseMatrixNode": ".npz",
    "BytesNode": ".bin",
    "BytearrayNode": ".bin",
}


def most_bytes(size: int) -> int:
    """Return the number of bytes that a file of `size` bytes may inflate to."""
    return _FREE + _RATIO * size


def read_members(file: BinaryIO, most: int) -> dict[str, bytes]:
    """Return the contents of the members of a zip file, which must be valid.

    Parameters
    ----------
    file : binary file
        The zip file.
    most : int
        Limit for the sum of the inflated sizes, those of arrays in sparse matrices included.

    Returns
    -------
    dict
        Contents by name. Sparse matrices are not compressed in them.
    """
    members: dict[str, bytes] = {}
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            name = info.filename
            if name in members:
                raise ValueError(f"it has two members {name}")
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"{name} is not compressed by deflate")
            with archive.open(info) as stream:
                content = stream.read(most + 1)  # the size in the directory may be wrong
            if len(content) > most:
                raise ValueError(f"it inflates to too many bytes, at {name}")
            most -= len(content)
            if name.endswith(".npz"):
                arrays = read_members(io.BytesIO(content), most)
                most -= sum(map(len, arrays.values()))
                content = write_members(arrays).getvalue()
            elif name.endswith(".npy"):
                _check_array(name, content)
            members[name] = content
    return members


def write_members(members: Mapping[str, bytes]) -> io.BytesIO:
    """Return a zip file of members that are not compressed."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target


def _check_array(name: str, content: bytes) -> None:
    """Raise ValueError if an array declares more values than its file has bytes."""
    stream = io.BytesIO(content)
    version = npy.read_magic(stream)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, _ = read(stream)
    if math.prod(max(1, length) for length in shape) > max(len(content), _EMPTY):
        raise ValueError(f"{name} has an array of shape {shape}, but {len(content)} bytes")


def check_schema(schema: Any, members: Mapping[str, bytes]) -> None:
    """Raise ValueError if the description of a model would expand beyond its own size.

    skops writes an object that is used twice, with its number, twice, and reads the first one. In
    files that it writes both descriptions have the same form, but for the numbers and members of
    their parts. A file with a mere reference in place of the second one is refused: 5 kB of them
    can describe a list of two lists of two lists, and so on, that expands to any size.

    Parameters
    ----------
    schema : object
        The description.
    members : mapping
        The members of the archive, each of which must belong to one object.
    """
    forms: dict[Any, int] = {}  # equal descriptions have the same number
    objects: dict[Any, int] = {}  # number of an object -> number of its description
    owners: dict[str, Any] = {}  # member -> number of an object

    def form_of(value: Any, depth: int) -> int:
        if depth > _DEEPEST:
            raise ValueError(f"its description has more than {_DEEPEST} levels")
        if isinstance(value, list):
            return forms.setdefault(tuple(form_of(v, depth + 1) for v in value), len(forms))
        if not isinstance(value, dict):
            return forms.setdefault(repr(value), len(forms))
        loader, number, file = map(value.get, ("__loader__", "__id__", "file"))
        parts = (
            (name, form_of(child, depth + 1))
            for name, child in value.items()
            if name not in ("__id__", "file")
        )
        if isinstance(loader, str) and isinstance(file, str):
            suffix = _SUFFIXES.get(loader)
            if suffix is None or not file.endswith(suffix) or file not in members:
                raise ValueError(f"{file} is not a member for a {loader}")
            if not number or owners.setdefault(file, number) != number:
                raise ValueError(f"{file} belongs to two objects")
        form = forms.setdefault(tuple(parts), len(forms))
        if not isinstance(number, dict | list | None) and objects.setdefault(number, form) != form:
            raise ValueError(f"the object {number} is described in two ways")
        return form

    form_of(schema, 0)
    unused = set(members) - set(owners) - {HEADER, SCHEMA}
    if unused:
        raise ValueError(f"{min(unused)} belongs to no object")
