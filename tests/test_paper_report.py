"""The report is complete and self-contained, and works in a browser."""

import re
import shutil
from pathlib import Path

import pytest

from melc.paper import protocol, report
from melc.paper.pipeline import reproduce
from melc.paper.results import results_of
from paper_cases import made_record, tiny_with

pytestmark = pytest.mark.slow

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

PROFILE = tiny_with(
    data_sets=("liver-disorders", "heart", "fourclass"), gammas=(1.0,), folds=(0,), n_starts=1, other_n_folds=()
)


@pytest.fixture(scope="module")
def reproduction(tmp_path_factory):
    """A small evaluation from end to end, with one data set missing."""
    folder = tmp_path_factory.mktemp("reproduction")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MELC_DATA", str(folder))
        return reproduce(folder, PROFILE, show_progress=False)


def test_everything_is_written(reproduction):
    folder = reproduction.html.parent
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.suffix != ".json"}
    assert {"report.html", "report.md", "tables/table1.csv", "tables/table2.csv"} <= names
    assert {f"figures/figure{n}.{suffix}" for n in (1, 2) for suffix in ("svg", "png")} <= names


def test_a_missing_data_set_is_named_with_its_remedy(reproduction):
    assert list(reproduction.missing) == ["fourclass"]
    for path in (reproduction.html, reproduction.markdown):
        text = path.read_text(encoding="utf-8")
        assert re.search(r"Missing data set — fourclass: .*fourclass\.libsvm", text)
    assert re.search(r"\| fourclass \| — \| 0\.19 \|", reproduction.markdown.read_text(encoding="utf-8"))


def test_one_fold_and_one_gamma_give_no_spread_and_no_nan(reproduction):
    assert "nan" not in reproduction.markdown.read_text(encoding="utf-8")
    assert "nan%" not in reproduction.html.read_text(encoding="utf-8")
    assert "-0.0%" not in reproduction.html.read_text(encoding="utf-8")
    rows = (reproduction.html.parent / "tables" / "off.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert rows
    assert all(row.endswith(",–") for row in rows)


def test_the_page_asks_for_nothing_from_outside(reproduction):
    html = reproduction.html.read_text(encoding="utf-8")
    linked = re.findall(r'(?:src|href|xlink:href)="([^"]*)"', html)
    assert all(address.startswith(("#", "data:")) for address in linked)
    assert "default-src 'none'" in html
    assert len(html) < 600_000


def test_the_same_records_give_the_same_page_tables_and_figures(reproduction, monkeypatch):
    folder = reproduction.html.parent
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    monkeypatch.setenv("MELC_DATA", str(folder))
    again = reproduce(folder, PROFILE, show_progress=False)
    assert again.n_solved == 0
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before


def test_figure_1_takes_the_ink_of_the_page():
    svg = report.as_inline_svg()
    assert "currentColor" in svg
    assert "#123456" not in svg
    assert svg.startswith('<svg role="img" aria-label="The two bounds')


def test_figure_2_has_twenty_panels_for_ten_data_sets():
    profile = tiny_with(data_sets=protocol.DATA_SETS)
    results = results_of(profile, [made_record(cell) for cell in protocol.cells(profile)], {})
    drawn = report.draw_losses(results)
    titles = [axis.get_title() for axis in drawn.axes if axis.get_title()]
    assert len(titles) == 20
    assert sum("sort and discard" in title for title in titles) == 10


# ----------------------------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium found; on Debian: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'melc[dev]'")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def open_page(browser, reproduction):
    """Return a function that opens the report and records console messages, errors and requests."""
    contexts = []

    def open_with(**options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.complaints, page.requests = [], []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(reproduction.html.as_uri())
        return page

    yield open_with
    for context in contexts:
        context.close()


def test_it_loads_without_a_word_of_complaint_or_a_request(open_page, reproduction):
    page = open_page()
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith("data:")] == [reproduction.html.as_uri()]
    assert page.locator("h2").count() >= 12


def test_a_click_on_a_head_sorts_and_a_second_turns_it_round(open_page):
    page = open_page()
    head = page.locator("#table1 th button").nth(2)  # the paper's ratios, which do not depend on the run
    values = page.locator("#table1 tbody td:nth-child(3)")
    head.click()
    assert values.all_text_contents() == ["0.19", "0.29", "0.29"]
    assert page.locator("#table1 th").nth(2).get_attribute("aria-sort") == "ascending"
    head.click()
    assert values.all_text_contents() == ["0.29", "0.29", "0.19"]
    page.locator("#table1 th button").first.click()
    names = page.locator("#table1 tbody td:first-child").all_text_contents()
    assert names == ["fourclass", "heart", "liver-disorders"]


def test_cells_without_a_number_sort_last_either_way(open_page):
    page = open_page()
    head = page.locator("#table1 th button").nth(1)
    for _ in range(2):
        head.click()
        assert page.locator("#table1 tbody td:first-child").all_text_contents()[-1] == "fourclass"


def test_pointing_at_a_square_tells_its_numbers(open_page):
    page = open_page()
    words = page.locator("#words")
    assert words.is_hidden()
    page.locator("#figure2 rect.loss, #figure2 rect.gain").first.hover()
    assert re.fullmatch(r"\S+, γ = \S+, ε = \S+: BAC 0\.\d{3} \(exact 0\.\d{3}\), [+-]\d+\.\d%", words.inner_text())
    page.locator("h1").hover()
    assert words.is_hidden()


def test_a_tap_on_a_square_tells_its_numbers(open_page):
    page = open_page(has_touch=True)
    page.locator("#figure2 rect[data-words]").first.tap()
    assert "BAC" in page.locator("#words").inner_text()
    page.locator("h1").tap()
    assert page.locator("#words").is_hidden()


def test_a_touch_that_moves_no_focus_tells_the_numbers(open_page):
    """Some browsers do not give the focus to what is tapped."""
    page = open_page(has_touch=True)
    square = page.locator("#figure2 rect[data-words]").first
    square.dispatch_event("pointerdown", {"pointerType": "touch"})
    assert page.locator("#words").inner_text() == square.get_attribute("data-words")


def test_escape_hides_the_numbers(open_page):
    page = open_page()
    page.locator("#figure2 rect[data-words]").first.focus()
    assert page.locator("#words").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#words").is_hidden()


def test_squares_are_reached_by_the_keyboard(open_page):
    page = open_page()
    squares = page.locator("#figure2 svg").nth(1).locator("rect[data-words]")
    squares.first.focus()
    assert page.locator("#words").inner_text() == squares.first.get_attribute("data-words")
    page.keyboard.press("ArrowDown")
    assert page.locator("#words").inner_text() == squares.nth(1).get_attribute("aria-label")
    page.keyboard.press("ArrowDown")  # there is no further one below
    assert page.evaluate("document.activeElement.dataset.words") == squares.nth(1).get_attribute("data-words")
    page.keyboard.press("Tab")
    assert page.locator("#figure2 svg").nth(1).locator("rect[tabindex='0']").count() == 1
    assert page.locator("#words").inner_text() != squares.nth(1).get_attribute("data-words")


def test_figures_are_drawn(open_page):
    page = open_page()
    assert page.locator("#figure2 svg").count() == 6
    assert page.locator("#figure2 rect[data-words]").count() == 2 * 2 * 1 * 2  # methods, sets, γ, ε
    box = page.locator("#figure1 svg").bounding_box()
    assert box["width"] > 300
    assert box["height"] > 100


@pytest.mark.parametrize("width", [360, 1600])
def test_no_sideways_scrolling_of_the_page(open_page, width):
    page = open_page(viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_light_and_dark_follow_the_system(open_page):
    def lightness(scheme):
        page = open_page(color_scheme=scheme)
        colours = page.evaluate(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
        )
        return [sum(map(int, re.findall(r"\d+", colour)[:3])) / 3 for colour in colours]

    light, dark = lightness("light"), lightness("dark")
    assert light[0] > 200 > 80 > light[1]
    assert dark[0] < 80 < 200 < dark[1]


def test_the_page_is_not_blank(open_page, tmp_path):
    path = Path(tmp_path) / "page.png"
    open_page(viewport={"width": 1200, "height": 900}).screenshot(path=path)
    from matplotlib.image import imread

    assert imread(path)[..., :3].std() > 0.05
