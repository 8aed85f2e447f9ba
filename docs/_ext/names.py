"""Links for code in the Markdown pages and for unqualified names in docstrings.

In the pages, inline code such as `decision.from_marginals(proba)` links to the function.

In docstrings, a name that Sphinx does not resolve, such as `ILFCompo` in ``fgfm.factors`` (which
is documented as ``fgfm.ILFCompo``), is looked up in all documented modules and linked if exactly
one has it.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.util.nodes import make_refnode


def _resolve_unqualified(
    app: Any, env: Any, node: Any, contnode: nodes.Element
) -> nodes.Element | None:
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


def _link_code(app: Any, doctree: nodes.document, page: str) -> None:
    if not str(app.env.doc2path(page)).endswith(".md"):
        return
    objects = app.env.domaindata["py"]["objects"]
    for code in list(doctree.findall(nodes.literal)):
        name = code.astext().partition("(")[0].removeprefix("fgfm.")
        entry = objects.get(f"fgfm.{name}")
        if entry is None or isinstance(code.parent, nodes.reference):
            continue
        if entry.objtype == "module" and code.astext() == name:  # `io` need not be fgfm.io
            continue
        link = make_refnode(app.builder, page, entry.docname, entry.node_id, code.deepcopy(), name)
        code.replace_self(link)


def setup(app: Any) -> dict[str, Any]:
    """Connect both lookups."""
    app.connect("missing-reference", _resolve_unqualified)
    app.connect("doctree-resolved", _link_code)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
