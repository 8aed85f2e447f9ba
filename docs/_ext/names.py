"""Links for names that docstrings shorten, or that are documented under another module.

`ILFCompo` is documented as ``fgfm.ILFCompo`` and lives in ``fgfm.factors``; docstrings name it as
it is known there. A name that is not found is looked for under every documented module, and linked
if exactly one has it.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.util.nodes import make_refnode


def _elsewhere(app: Any, env: Any, node: Any, contnode: nodes.Element) -> nodes.Element | None:
    if node.get("refdomain") != "py":
        return None
    wanted = node["reftarget"].rpartition(".")[2]
    found = {
        name: entry
        for name, entry in env.domaindata["py"]["objects"].items()
        if name.rpartition(".")[2] == wanted and not entry.aliased
    }
    if len(found) != 1:
        return None
    ((_, entry),) = found.items()
    page = node.get("refdoc", env.docname)
    return make_refnode(app.builder, page, entry.docname, entry.node_id, contnode, wanted)


def setup(app: Any) -> dict[str, Any]:
    """Tell Sphinx where else to look."""
    app.connect("missing-reference", _elsewhere)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
