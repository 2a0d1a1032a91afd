"""``python -m benchmarks.speed``: writes docs/speed.md from the newest records of ``python -m benchmarks``."""

import json
import sys
from typing import Any

from benchmarks import excerpts
from benchmarks.measure import ROOT
from melc.export.files import replacing

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "speed.md"

_PAGE = """# Speed

How long a fit takes, compared with scikit-learn's logistic regression on the same data. The two are measured in
alternation on the same machine, so their ratio is more reliable than the milliseconds: it hardly depends on other load.

```bash
make bench BENCH="--only sizes digits"   # measures; about ten minutes
python -m benchmarks.speed               # writes this page
```

The models are `MELC(random_state=0)`, which has ten starts, and `LogisticRegression(max_iter=1000)`. The data have two
classes and come from `make_classification`, with up to ten informative features and three clusters per class. Times are
medians over several fits. For each size there are three data sets, of which the table shows the one with the median
ratio; for a million rows there is one.

{sizes}
A ratio above one means that logistic regression is faster.

On handwritten digits, which have ten classes (1,797 × 64): {digits}.

## What to expect

- On small data, `MELC` takes a few times as long as logistic regression, because it tries ten starting directions; both
  take milliseconds. With fewer starts, such as `n_init=3`, it is faster, but may miss the best direction.
- With more than 20,000 rows, the search runs on samples first, and most of the time is spent on a few passes over all
  rows.
- A fit takes longer if the classes hardly overlap, if they have heavy tails, and on large sparse data.
- `gamma="auto"` takes two to four times as long as a fit with the gamma that it chooses. That fit may itself be slow:
  on ionosphere 2.5 is chosen, with which a fit takes 24 times as long as with 1. `AdditiveMELC` mostly takes two to
  four times as long as `MELC`: see the [seconds per fit](quality.md#seconds-per-fit).
- The first fit after the installation takes ten to twenty seconds longer, because numba compiles the code. The
  compiled code is cached on disk.
- [How it scales](scaling.md) covers larger data: memory-mapped files and clusters.

Measured with Python {python}, NumPy {numpy}, scikit-learn {sklearn} and numba {numba} on {cores} cores ({cpu}), {date}.
"""


def main() -> int:
    found = _newest_rows()
    sizes = [row for name, row in found.items() if name.startswith("size-")]
    if not sizes:
        print(f"No record of sizes in {RESULTS}; run: python -m benchmarks --only sizes digits", file=sys.stderr)
        return 1
    with replacing(PAGE) as draft:
        draft.write_text(text(sizes, found.get("digits")), encoding="utf-8")
    print(f"Written to {PAGE}")
    excerpts.main()
    return 0


def _newest_rows() -> dict[str, dict[str, Any]]:
    """Return the newest row of each name, with the circumstances of its measurement; quick runs do not count."""
    rows: dict[str, dict[str, Any]] = {}
    for path in sorted(RESULTS.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if not document["quick"]:
            circumstances = {"machine": document["machine"], "time": document["time"]}
            rows |= {row["name"]: row | circumstances for row in document["rows"] if row["value"] is not None}
    return rows


def text(sizes: list[dict[str, Any]], digits: dict[str, Any] | None) -> str:
    """Return the page."""
    lines = ["| rows × features | MELC, ms | logistic regression, ms | ratio |", "|---|--:|--:|--:|"]
    lines += [f"| {_size(row)} | {' | '.join(_figures(row))} |" for row in sizes]
    machine = sizes[0]["machine"]
    return _PAGE.format(
        sizes="\n".join(lines) + "\n",
        digits="not measured" if digits is None else f"{digits['note']}, ratio {digits['value']:.1f}",
        python=machine["python"],
        numpy=machine["numpy"],
        sklearn=machine["scikit-learn"],
        numba=machine["numba"],
        cores=machine["cores"],
        cpu=machine["cpu"],
        date=sizes[0]["time"][:10],
    )


def _size(row: dict[str, Any]) -> str:
    """Return rows and features: "1,000 × 20" for the row named "size-1000x20"."""
    n, d = row["name"].removeprefix("size-").split("x")
    return f"{int(n):,} × {int(d):,}"


def _figures(row: dict[str, Any]) -> tuple[str, str, str]:
    """Return the milliseconds of both on the data set with the middle ratio, and that ratio."""
    middle = sorted(row["details"]["draws"], key=lambda draw: draw[0] / draw[1])[len(row["details"]["draws"]) // 2]
    return f"{1e3 * middle[0]:,.0f}", f"{1e3 * middle[1]:,.0f}", f"{row['value']:.1f}"


if __name__ == "__main__":
    sys.exit(main())
