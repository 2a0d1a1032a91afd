"""Put the results of a full run of the evaluation into docs/reproduction.md.

    make paper
    python tools/update_reproduction_page.py melc-paper

What stands above the marker line in the page is written by hand and kept; what stands below it is replaced
by the run's own report, and the figures are copied beside the page.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
MARKER = "<!-- Everything below is made by tools/update_reproduction_page.py from the records of a run. -->"
FIGURES = ("figure1.svg", "figure2.svg")


def main(run: Path) -> None:
    page = DOCS / "reproduction.md"
    by_hand = page.read_text(encoding="utf-8").split(MARKER)[0]
    _, measured = (run / "report.md").read_text(encoding="utf-8").split("\n", 1)
    figures = DOCS / "reproduction"
    figures.mkdir(exist_ok=True)
    for name in FIGURES:
        shutil.copyfile(run / "figures" / name, figures / name)
    below = measured.replace("(figures/", "(reproduction/")
    page.write_text(f"{by_hand}{MARKER}\n{below}", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/update_reproduction_page.py <folder of a finished run>")
    main(Path(sys.argv[1]))
