"""``python -m benchmarks.quality``: measures what has no record yet, and writes docs/quality.md with its pictures."""

import argparse
import sys
from pathlib import Path

from benchmarks import excerpts
from benchmarks.measure import ROOT
from benchmarks.quality import page, records, run
from benchmarks.quality.models import MODELS, Model
from benchmarks.quality.sets import SETS
from benchmarks.quality.summary import summarise

PAGE = ROOT / "docs" / "quality.md"


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    models = _installed([MODELS[name] for name in given.models])
    names, missing = ([], {}) if given.page_only else run.at_hand(given.sets)
    for name, reason in missing.items():
        print(f"Left out: {name} ({reason})")
    cells = records.cells_of([SETS[name] for name in names], models, given.repeats)
    failed = run.run(cells, given.records, given.jobs)
    _write_page(given.records, given.page)
    for reason in failed:
        print(f"Failed: {reason}")
    return 1 if failed else 0


def _write_page(path: Path, target: Path) -> None:
    found = records.read(path)
    current = records.current(found)
    print(f"{len(found)} records, of which {len(found) - len(current)} of other settings or versions are left aside")
    if any(record.cell.model.startswith("AdditiveMELC") for record in current):
        page.write(summarise(current), target, target.parent / "images")
        print(f"Written to {target}")
        if target == PAGE:
            excerpts.main()
    else:
        print("No page is written, for there is no record of an additive model")


def _installed(models: list[Model]) -> list[Model]:
    for model in models:
        if not model.is_installed:
            print(f"Left out: {model.name} ({model.package} is not installed: pip install 'melc[bench]')")
    return [model for model in models if model.is_installed]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("--sets", nargs="+", metavar="NAME", choices=SETS, default=list(SETS), help=", ".join(SETS))
    parser.add_argument(
        "--models", nargs="+", metavar="NAME", choices=MODELS, default=list(MODELS), help=", ".join(MODELS)
    )
    parser.add_argument("--repeats", type=_positive, default=2, help="how often the folds are drawn anew")
    parser.add_argument("--jobs", type=_positive, default=2, help="number of processes")
    parser.add_argument("--records", type=Path, default=records.RECORDS, help="file of records, one JSON object a line")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page; images/ beside it")
    parser.add_argument("--page-only", action="store_true", help="measure nothing, write the page from the records")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
