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

How long a fit takes, beside scikit-learn's logistic regression on the same rows. Both are measured in turns on the same
machine, so the ratio says more than the milliseconds: it hardly depends on what else the machine does.

```bash
make bench BENCH="--only sizes digits"   # measures; about ten minutes
python -m benchmarks.speed               # writes this page
```

Two classes, `MELC(random_state=0).fit` with its ten starts against `LogisticRegression(max_iter=1000).fit`, on data of
`make_classification` with up to ten informative features and three clusters for each class. The time of a data set is
the median of several fits. Of three data sets, that with the middle ratio is shown; a million rows are one data set.

{sizes}
A number above one means that logistic regression is faster.

Ten classes, handwritten digits (1,797 × 64): {digits}.

## What to expect

- A fit tries ten starting directions, so on small data it takes a few times as long as logistic regression; both take
  milliseconds. With fewer, such as `n_init=3`, it is faster and may miss the best direction.
- From some tens of thousands of rows on, the starts are searched on samples, and the time of a fit is that of some
  passes over the rows.
- It takes longer if the classes hardly overlap or have heavy tails, and on large sparse data.
- `gamma="auto"` takes two to five times as long as a fit. `AdditiveMELC` takes several times as long as `MELC`: see the
  seconds in [How well it decides](quality.md).
- The very first fit after an installation compiles for about ten seconds. What is compiled is kept on disk.
- [How it scales](scaling.md) has larger data: mapped files, and clusters.

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
