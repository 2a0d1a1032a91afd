"""Rows as a table to read and as JSON to keep."""

import datetime
import json
import math
import os
import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.measure import Profile, Row
from melc.export.files import replacing

_HEAD = ("measured", "bar", "goal", "holds")


def line(row: Row, judged: bool = True) -> str:
    """One row of the table."""
    if row.skipped or row.broken:
        return f"{row.what:<66}  " + (f"skipped: {row.skipped}" if row.skipped else f"BROKEN: {row.broken}")
    sign = "≥" if row.more_is_better else "≤"
    limits = ["" if limit is None else f"{sign} {limit:g}" for limit in (row.bar, row.goal)]
    holds = {None: "", True: "yes", False: "NO"}[row.reaches(row.bar) if judged else None]
    if judged and holds == "yes" and row.reaches(row.goal):
        holds = "goal"
    measured = f"{row.value:.3g} {row.unit}".strip()
    return f"{row.what:<66}  {measured:>10}  {limits[0]:>8}  {limits[1]:>8}  {holds:>5}  {row.note}".rstrip()


def head() -> str:
    measured, bar, goal, holds = _HEAD
    titles = f"{'what':<66}  {measured:>10}  {bar:>8}  {goal:>8}  {holds:>5}  note"
    return f"{titles}\n{'─' * len(titles)}"


def write(rows: list[Row], profile: Profile, folder: Path) -> Path:
    """All rows and the circumstances, in a file named by the time."""
    now = datetime.datetime.now(datetime.UTC)
    document = {
        "time": now.isoformat(timespec="seconds"),
        "quick": profile.quick,
        "machine": _machine(),
        "rows": [_plain(row) for row in rows],
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{now:%Y%m%d-%H%M%S}.json"
    with replacing(path) as draft:
        draft.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _plain(row: Row) -> dict[str, Any]:
    """JSON knows no NaN."""
    return {**asdict(row), "value": None if math.isnan(row.value) else float(row.value), "holds": row.reaches(row.bar)}


def _machine() -> dict[str, Any]:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    packages = {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")}
    return {"python": platform.python_version(), "cpu": _processor(), "cores": os.cpu_count(), "load": load, **packages}


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    names = [text for text in info.read_text().splitlines() if text.startswith("model name")] if info.exists() else []
    return names[0].split(":", 1)[1].strip() if names else platform.processor()
