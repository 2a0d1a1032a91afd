"""Check that every link and picture inside a built site leads somewhere: ``python tools/check_links.py FOLDER``."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The addresses that a page points to, and the anchors in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [link for link in (given.get("href"), given.get("src")) if link]
        self.anchors |= {name for name in (given.get("id"), given.get("name")) if name}


def broken_links(folder: Path) -> list[str]:
    """Return the links that lead nowhere, each with the page that it is on."""
    paths = [path for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts]
    pages = {path.resolve(): Page(path) for path in paths}
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            missing_anchor = anchor and target in pages and anchor not in pages[target].anchors
            if not target.exists() or missing_anchor:
                found.append(f"{path.relative_to(folder.resolve())}: {link}")
    return found


def main(folder: Path) -> int:
    if not (folder / "index.html").exists():
        print(f"There is no site in {folder}; build it with: make docs", file=sys.stderr)
        return 1
    broken = broken_links(folder)
    for each in broken:
        print(f"leads nowhere: {each}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/check_links.py <folder of the built site>")
    sys.exit(main(Path(sys.argv[1])))
