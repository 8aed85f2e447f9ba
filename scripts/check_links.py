"""Check the internal links of the built pages: every target file and anchor must exist.

    python scripts/check_links.py build/docs

prints the broken links and exits with status 1 if there are any. Links to other sites are not
checked.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect anchors and links."""
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
    """Parse a page."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def html_files(root: Path) -> list[Path]:
    """Return the pages, without the templates of the theme in _static."""
    return [p for p in sorted(root.rglob("*.html")) if "_static" not in p.parts]


def broken_links(root: Path) -> list[str]:
    """Return one line for each broken link."""
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
                lines.append(f"{where}: no such file")
            elif parts.fragment and target in pages:
                anchor = unquote(parts.fragment)
                if anchor not in pages[target].anchors:
                    lines.append(f"{where}: no such anchor in the page")
    return lines


def main() -> None:
    """Check the folder given on the command line."""
    root = Path(sys.argv[1])
    pages = len(html_files(root))
    if pages == 0:
        sys.exit(f"{root} has no pages")
    broken = sorted(set(broken_links(root)))
    if broken:
        sys.exit("\n".join([*broken, f"{len(broken)} broken links"]))
    print(f"{pages} pages in {root}: no broken internal links")


if __name__ == "__main__":
    main()
