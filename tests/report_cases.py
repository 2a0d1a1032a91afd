"""Models, rows and pages shared by the tests of melc.report, and a browser to open them in."""

import copy
import functools
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from melc import MELC, AdditiveMELC
from melc.model.curve import Curve
from melc.model.line import Line
from melc.report import report_html
from tables_data import mixed_frame

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# No network requests of its own, and able to run as root.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

# Names that would run a script, end an element, close an attribute, or turn the text around.
ATTACKS = [
    "</script><script>document.title='gone'</script>",
    "<img src=x onerror=\"document.title='gone'\">",
    "\"'><b>bold",
    "$title ${data} $",
    "line\nbreak\tand\u202eright to left",
    "x" * 5000,
    "{{7*7}} <!-- --> &lt; \u2028",
]


def bands(n=600, seed=0, n_classes=2):
    """Return rows of four features and their classes: an inner and an outer one, or three."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["dose", "age", "weight", "height"])
    position = X["dose"] + 0.5 * X["age"] + 0.3 * rng.normal(size=n)
    if n_classes == 2:
        return X, np.where(np.abs(position) < 0.7, "inner", "outer")
    return X, np.array(["low", "middle", "high"])[np.digitize(position + 0.4 * X["weight"] ** 2, [-0.3, 0.8])]


def fitted(additive=False, n_classes=2, max_lines=4, **data):
    """Return a fitted model with its rows and labels, for a test alone. Equal models are fitted once."""
    return copy.deepcopy(_fitted(additive, n_classes, max_lines, **data))


@functools.cache
def _fitted(additive, n_classes, max_lines, **data):
    X, y = bands(n_classes=n_classes, **data)
    kind = AdditiveMELC(max_lines=max_lines, random_state=0) if additive else MELC(n_init=3, random_state=0)
    return kind.fit(X, y), X, y


def fitted_to_table(kind, n_classes):
    """Return a model of a table with columns of every kind, with its rows and labels. Equal models are fitted once.

    The kinds are "MELC", "pairs" (lines of two columns, and minor ones), "columns" (a line for each column), and
    "level" and "number" (a single line, of a category and of a number with missing values).
    """
    return copy.deepcopy(_fitted_to_table(kind, n_classes))


@functools.cache
def _fitted_to_table(kind, n_classes):
    frame, y = mixed_frame(400, n_classes=n_classes)
    settings = {"random_state": 0, "categorical_features": ["code"]}
    if kind == "MELC":
        return MELC(n_init=2, **settings).fit(frame, y), frame, y
    if kind == "pairs":
        return AdditiveMELC(full_lines="never", max_lines=3, other_features=True, **settings).fit(frame, y), frame, y
    if kind == "columns":
        return AdditiveMELC(full_lines="never", features_per_line=1, **settings).fit(frame, y), frame, y
    frame = frame[["job" if kind == "level" else "age"]]
    return AdditiveMELC(random_state=0, max_lines=1).fit(frame, y), frame, y


def silent(_):
    """Say nothing of what is being done."""


# Options of a page without intervals, and with as few folds as there can be.
QUICK = {"n_resamples": 0, "cv": 2}


def quick_page(additive=False, n_classes=2, max_lines=4):
    """Return a quick page about the model that ``fitted`` returns. Equal pages are made once."""
    return _quick_page(additive, n_classes, max_lines)


@functools.cache
def _quick_page(additive, n_classes, max_lines):
    return report_html(*_fitted(additive, n_classes, max_lines), **QUICK)


def one_line_of(n_classes):
    """A model of one feature with a single line, along which the classes follow each other, and its rows."""
    X = np.linspace(0, n_classes, 20 * n_classes, endpoint=False)[:, None] + 0.01
    y = np.array([f"class {code:02}" for code in X[:, 0].astype(int)])
    model = AdditiveMELC(max_lines=1, random_state=0).fit(X, X[:, 0] > 1)
    middles = np.arange(n_classes) + 0.5
    curves = tuple(Curve(middles, np.where(middles == middle, 1.0, -1.0)) for middle in middles)
    places = np.linspace(-1, n_classes + 1, 101)
    densities = np.array([np.exp(-4 * (places - middle) ** 2) for middle in middles])
    counts = 20 * np.eye(n_classes)
    line = Line(np.ones(1), curves, 1.0, np.ones(1), counts, places, densities, np.zeros(n_classes))
    model.classes_, model.intercepts_, model.lines_ = np.unique(y), np.zeros(n_classes), [line]
    return model, X, y


def random_rows(X, n=1000, seed=1):
    """Return rows in the range of the data and, every fifth one, far beyond it."""
    rng = np.random.default_rng(seed)
    low, high = X.min(axis=0).to_numpy(), X.max(axis=0).to_numpy()
    rows = rng.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low), size=(n, X.shape[1]))
    rows[::5] *= 10.0 ** rng.uniform(0, 6, size=(len(rows[::5]), 1))
    return rows


@pytest.fixture(autouse=True)
def little_boosting(monkeypatch):
    """Gradient boosting takes most of the time of a small report."""
    few = functools.partial(HistGradientBoostingClassifier, max_iter=2)
    monkeypatch.setattr("melc.report.heldout.HistGradientBoostingClassifier", few)


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium found; on Debian: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'melc[dev]'")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def open_page(browser, tmp_path):
    """Return a function that opens a page and records console messages, errors and requests."""
    contexts = []

    def open_with(text, **options):
        path = tmp_path / f"page{len(contexts)}.html"
        path.write_text(text, encoding="utf-8")
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.complaints, page.requests = [], []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("dialog", lambda dialog: page.complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(path.as_uri())
        page.locator("section").first.wait_for(state="attached")
        return page

    yield open_with
    for context in contexts:
        context.close()
