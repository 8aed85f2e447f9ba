"""Self-contained HTML pages: the frame of a page, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape as escape_html

from fgfm._utils.text import escaped

__all__ = ["Cell", "escape", "format_html", "format_html_table"]

Cell = str | tuple[str, str]  # a text, or a text and the CSS class of its cell

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; }
body { padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.3rem; margin-top: 2.5rem; }
h3 { font-size: 1.1rem; margin-top: 2rem; } h4 { font-size: 1rem; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .6rem; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
.wide { overflow-x: auto; } .best { font-weight: bold; } .sig { font-weight: bold; }
img { max-width: 100%; background: #fff; } caption { text-align: left; padding: .4rem 0; }
code { background: #8882; padding: .1rem .3rem; } .note { font-size: .85rem; }
"""


def escape(text: str) -> str:
    """Return a text as HTML, with control characters escaped too."""
    return escape_html(escaped(text))


def format_html(title: str, parts: Iterable[str], style: str = "") -> str:
    """Return a page without external files.

    Parameters
    ----------
    title : str
        Title of the window; it is escaped.
    parts : iterable of str
        HTML of the body.
    style : str
        CSS beside that of all pages.

    Returns
    -------
    str
        The page.
    """
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}{style}</style></head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def format_html_table(caption: str, heads: Sequence[Cell], rows: Iterable[Sequence[Cell]]) -> str:
    """Return a table whose texts are escaped.

    Parameters
    ----------
    caption : str
        Caption of the table.
    heads : sequence of Cell
        Heads of the columns. A cell is a text, or a text and a CSS class.
    rows : iterable of sequence of Cell
        The rows.

    Returns
    -------
    str
        The table.

    Examples
    --------
    >>> format_html_table("", ["a < b"], [["1"], [("2", "best")]]).partition("<tbody>")[2]
    '<tr><td>1</td></tr><tr><td class="best">2</td></tr></tbody></table></div>'
    """
    titles = "".join(_format_cell(head, 'th scope="col"') for head in heads)
    body = "".join(f"<tr>{''.join(map(_format_cell, row))}</tr>" for row in rows)
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="wide"><table>{above}'
        f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _format_cell(cell: Cell, tag: str = "td") -> str:
    text, style = (cell, "") if isinstance(cell, str) else cell
    attribute = f' class="{style}"' if style else ""
    return f"<{tag}{attribute}>{escape(text)}</{tag[:2]}>"
