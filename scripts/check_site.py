"""Check the built pages: links, what they load, their length, and that no code is cut.

    python scripts/check_site.py build/docs

prints what is wrong and exits with status 1 if anything is. Every target file and anchor of an
internal link must exist (links to other sites are not followed), and no page may load anything
from elsewhere. Where Chromium or Chrome is installed, it measures the pages: none is longer than
12 000 px in a window of 1280 px or wider than a window of 390 px, and no code is cut at 1280 px.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MAX_HEIGHT = 12_000

# Opens page after page in a frame, at two widths, and waits for formulas and fonts.
DRIVER = """
(async () => {
  const frame = document.body.appendChild(document.createElement("iframe"));
  const open = (width, page) => new Promise((done) => {
    frame.style.cssText = `width: ${width}px; height: 900px; border: 0`;
    frame.onload = done;
    frame.src = root + page;
  });
  const found = {};
  for (const page of pages) {
    const measures = [];
    for (const width of [1280, 390]) {
      await open(width, page);
      const view = frame.contentWindow, whole = view.document.documentElement;
      await view.MathJax?.startup?.promise;
      await view.document.fonts.ready;
      const cut = [...view.document.querySelectorAll("article pre")]
        .filter((code) => code.scrollWidth > code.clientWidth + 1)
        .map((code) => code.textContent.split("\\n").sort((a, b) => b.length - a.length)[0]);
      measures.push({ height: whole.scrollHeight, width: whole.scrollWidth, cut });
    }
    found[page] = measures;
  }
  document.getElementById("found").textContent = JSON.stringify(found);
})();
"""


class Page(HTMLParser):
    """The anchors and the links of a page, and the addresses that it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect anchors and addresses."""
        given = dict(attrs)
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name == "src" or (tag == "link" and given.get("rel") != "canonical"):
                self.loads += [value] if name in ("src", "href") else []
            elif name == "href" and tag == "a":
                self.links.append(value)
            elif name == "srcset":
                self.loads += [part.split()[0] for part in value.split(",")]


def read_page(path: Path) -> Page:
    """Parse a page."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def html_files(root: Path) -> list[Path]:
    """Return the pages, without the templates of the theme in _static."""
    return [p for p in sorted(root.rglob("*.html")) if "_static" not in p.parts]


def broken_links(root: Path) -> list[str]:
    """Return one line for each broken link, and for each thing that is loaded from elsewhere."""
    pages = {path.resolve(): read_page(path) for path in html_files(root)}
    lines = []
    for path, page in pages.items():
        for link in page.links + page.loads:
            parts = urlsplit(link)
            where = f"{path.relative_to(root.resolve())}: {link}"
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    lines.append(f"{where}: loaded from elsewhere")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                lines.append(f"{where}: no such file")
            elif parts.fragment and target in pages:
                anchor = unquote(parts.fragment)
                if anchor not in pages[target].anchors:
                    lines.append(f"{where}: no such anchor in the page")
    return lines


def measure(root: Path, browser: str) -> dict[str, list[dict]]:
    """Return the height, the width and the cut lines of code of each page at 1280 and 390 px."""
    names = [path.relative_to(root).as_posix() for path in html_files(root)]
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "driver.html"
        constants = f"const root = {json.dumps(root.resolve().as_uri() + '/')}, pages = {names};"
        page.write_text(
            f'<!doctype html><body><pre id="found"></pre><script>{constants}{DRIVER}</script>',
            encoding="utf-8",
        )
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        options += [f"--user-data-dir={folder}/profile", "--allow-file-access-from-files"]
        options += ["--virtual-time-budget=100000000", "--window-size=1400,1000", "--dump-dom"]
        done = subprocess.run(
            [browser, *options, page.as_uri()],
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        )
    found = re.search(r'<pre id="found">(.+?)</pre>', done.stdout, re.DOTALL)
    if found is None:
        raise RuntimeError(f"{browser} measured no pages: {done.stderr}")
    return json.loads(html.unescape(found[1]))


def faults_of_layout(measures: dict[str, list[dict]]) -> list[str]:
    """Return one line for each page that is too long or too wide, and for each cut block."""
    lines = []
    for page, (wide, narrow) in measures.items():
        if wide["height"] > MAX_HEIGHT:
            lines.append(f"{page}: {wide['height']} px long at 1280 px; at most {MAX_HEIGHT}")
        if narrow["width"] > 390:
            lines.append(f"{page}: {narrow['width']} px wide at 390 px")
        lines += [f"{page}: cut at 1280 px: {line}" for line in wide["cut"]]
    return lines


def main() -> None:
    """Check the folder given on the command line."""
    root = Path(sys.argv[1])
    pages = len(html_files(root))
    if pages == 0:
        sys.exit(f"{root} has no pages")
    wrong = sorted(set(broken_links(root)))
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is not None:
        wrong += faults_of_layout(measure(root, browser))
    if wrong:
        sys.exit("\n".join([*wrong, f"{len(wrong)} faults in {root}"]))
    print(f"{pages} pages in {root}: links, what they load and layout are as they should be")
    if browser is None:
        print("without Chromium: the lengths of the pages were not measured")


if __name__ == "__main__":
    main()
