"""Files of saved models, taken apart and changed."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest

import fgfm


def read_members(path):
    """Return the contents of the members of an archive."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path, members, compression=zipfile.ZIP_DEFLATED):
    """Write an archive."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def rewrite(path, change, compression=zipfile.ZIP_DEFLATED):
    """Call ``change(members, schema)``, which changes members and description in place."""
    members = read_members(path)
    schema = json.loads(members["schema.json"])
    change(members, schema)
    members["schema.json"] = json.dumps(schema).encode()
    write_members(path, members, compression)


def replace_in_schema(path, old, new):
    """Replace a text in the description of a model."""
    members = read_members(path)
    assert old in members["schema.json"]
    members["schema.json"] = members["schema.json"].replace(old, new)
    write_members(path, members)


def dicts(value):
    """Return every dict in a JSON value."""
    found, pending = [], [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            found.append(part)
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)
    return found


def saved_array(array):
    """Return the bytes of a .npy file."""
    target = io.BytesIO()
    np.save(target, array, allow_pickle=True)
    return target.getvalue()


def saved_arrays(arrays):
    """Return the bytes of a .npz file."""
    target = io.BytesIO()
    np.savez(target, **arrays)
    return target.getvalue()


def assert_refused(path, reason=""):
    """Assert that a file is called damaged, for a reason."""
    with pytest.raises(ValueError, match=rf"{path.name} is damaged.*: .*{reason}"):
        fgfm.load(path)
