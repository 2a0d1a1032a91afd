"""Writes a report when the site is built, so that readers can open one: ``live_report.html``."""

import contextlib
import io
import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from melc.report import write_report


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write the report on the model of the page about tables, with the code of that page."""
    if exception is not None or app.builder.format != "html":
        return
    page = (Path(app.srcdir) / "user_guide" / "tables.md").read_text(encoding="utf-8")
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:2]:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(code, names)
    path = Path(app.outdir) / "live_report.html"
    path.unlink(missing_ok=True)
    write_report(names["model"], names["table"], names["y"], path, title="Who pays back?", n_resamples=50, rows=6)


def setup(app: Sphinx) -> ExtensionMetadata:
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
