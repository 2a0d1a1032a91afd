"""``python -m benchmarks.excerpts``: copies figures from the pages of measurements into others.

A page has a place for them between ``<!-- quality: begin … -->`` and ``<!-- quality: end -->``, or with ``tables``,
``cards`` or ``speed`` instead. So figures stand in several pages, but are written in one.
"""

import re
import sys

from benchmarks.measure import ROOT

PAGES = ("README.md", "docs/choosing.md", "docs/user_guide/cards.md", "docs/user_guide/tables.md")
_MODELS = ("MELC", "AdditiveMELC", "logistic", "EBM", "boosting", "SVM")
_SIZES = ("1,000 × 20", "10,000 × 20", "100,000 × 20", "1,000,000 × 20", "20,000 × 200", "50,000 × 500")

Table = list[list[str]]  # rows of cells, the head first


def main() -> int:
    for name in PAGES:
        page = ROOT / name
        page.write_text(updated(page.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def updated(text: str) -> str:
    """Return a page with its excerpts as they should be."""
    for name, excerpt in {"quality": quality, "speed": speed, "tables": tables, "cards": cards}.items():
        place = re.compile(rf"(<!-- {name}: begin[^\n]*-->\n).*?(<!-- {name}: end -->)", re.DOTALL)
        text = place.sub(lambda found, made=excerpt: f"{found[1]}\n{made()}\n{found[2]}", text)
    return text


def quality() -> str:
    """Return the means by group of data sets, for the models that most readers know."""
    accuracy, loss = _tables("quality.md")[:2]
    by_model = {row[0]: row for row in loss[1:]}
    seconds = loss[0].index("seconds")
    rows = [[*_plain(row[:4]), *_plain([by_model[row[0]][4], by_model[row[0]][seconds]])] for row in accuracy[1:]]
    head = ["balanced accuracy on data", *accuracy[0][1:4], "log loss, all", "seconds of a fit"]
    return _markdown([head, *(row for row in rows if row[0] in _MODELS)])


def speed() -> str:
    """Return the times of a fit at some sizes."""
    table = _tables("speed.md")[0]
    rows = [row for row in table[1:] if row[0] in _SIZES]
    return _markdown([[title, *column] for title, *column in zip(*[table[0], *rows], strict=True)])


def tables() -> str:
    """Return the means over tables with texts and missing values."""
    return _markdown(_tables("quality_tables.md")[0])


def cards() -> str:
    """Return the means of rules of few features, for each group of data."""
    titles = re.findall(r"^## Means: (.*)$", (ROOT / "docs" / "quality_cards.md").read_text("utf-8"), re.MULTILINE)
    groups = zip(titles, _tables("quality_cards.md"), strict=False)
    return "\n".join(_markdown([[title, *table[0][1:]], *table[1:]]) for title, table in groups)


def _tables(name: str) -> list[Table]:
    """Return the tables of a page."""
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    rows = [[[cell.strip() for cell in line[1:-1].split("|")] for line in block.splitlines()] for block in blocks]
    return [[table[0], *table[2:]] for table in rows]


def _plain(cells: list[str]) -> list[str]:
    return [cell.replace("*", "") for cell in cells]


def _markdown(table: Table) -> str:
    lines = [table[0], ["---"] + ["--:"] * (len(table[0]) - 1), *table[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
