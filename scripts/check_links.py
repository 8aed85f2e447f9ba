"""Check the internal links of built pages: every file and every anchor must be there.

    python scripts/check_links.py build/docs

prints what is missing, and fails if anything is. Links to other sites are not followed.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors of a page, and where it points."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note anchors and links."""
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in ("href", "src"):
                self.links.append(value)
            elif name == "srcset":
                self.links += [part.split()[0] for part in value.split(",")]


def read_page(path: Path) -> Page:
    """Read a page."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def html_files(root: Path) -> list[Path]:
    """Give the pages; what is in _static are templates of the theme."""
    return [p for p in sorted(root.rglob("*.html")) if "_static" not in p.parts]


def missing(root: Path) -> list[str]:
    """Give a line for each link that leads nowhere."""
    pages = {path.resolve(): read_page(path) for path in html_files(root)}
    lines = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            where = f"{path.relative_to(root.resolve())}: {link}"
            if not target.is_file():
                lines.append(f"{where}: there is no such file")
            elif parts.fragment and target in pages:
                anchor = unquote(parts.fragment)
                if anchor not in pages[target].anchors:
                    lines.append(f"{where}: the page has no such anchor")
    return lines


def main() -> None:
    """Check the folder that is named."""
    root = Path(sys.argv[1])
    pages = len(html_files(root))
    if pages == 0:
        sys.exit(f"{root} has no pages")
    wrong = sorted(set(missing(root)))
    if wrong:
        sys.exit("\n".join([*wrong, f"{len(wrong)} links lead nowhere"]))
    print(f"{pages} pages in {root}: all internal links lead somewhere")


if __name__ == "__main__":
    main()
