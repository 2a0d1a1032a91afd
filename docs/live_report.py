"""Writes a report when the site is built, so that readers can open one: ``live_report.html``."""

import contextlib
import io
import re
from pathlib import Path

import matplotlib.pyplot as plt
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from melc.report import write_report


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write the report on the last model of the page about tables, with the code of that page."""
    if exception is not None or app.builder.format != "html":
        return
    page = (Path(app.srcdir) / "user_guide" / "tables.md").read_text(encoding="utf-8")
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    last_fit = max(number for number, code in enumerate(blocks) if ".fit(" in code)
    for code in blocks[: last_fit + 1]:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, names)
    plt.close("all")
    path = Path(app.outdir) / "live_report.html"
    path.unlink(missing_ok=True)
    write_report(names["model"], names["table"], names["y"], path, title="Who pays back?", n_resamples=50, rows=6)


def setup(app: Sphinx) -> ExtensionMetadata:
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
