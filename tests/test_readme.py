"""What the README and the pages of the site promise is there, and their code runs and prints what they show."""

import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest
from benchmarks import excerpts
from tools import pages

from cli_cases import call, fit_patients, patients

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDES = sorted(
    path
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "user_guide").glob("*.md")]
    if re.search(r"^```(python|bash)$", path.read_text(encoding="utf-8"), re.MULTILINE)
)
LINKING = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(ROOT.glob("docs/**/*.md"))
MADE_BY_THE_BUILD = ("auto_examples",)


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def succeed(arguments):
    done = call(*arguments)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the tables that the commands of the README name."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("patients.csv", "new.csv", "test.csv")):
        patients(seed=seed).to_csv(name, index=False)
    yield tmp_path
    plt.close("all")


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDES, ids=name_of)
def test_code_runs_and_prints_what_the_page_shows(page, folder):
    text = page.read_text(encoding="utf-8")
    if "model.json" in text and "-o model.json" not in text:  # the page has a model already
        assert fit_patients(folder, "-o", "model.json", "--no-cv").exit_code == 0
    for ran in pages.run(text, succeed):
        if ran.expected is not None:
            assert pages.same(ran.expected, ran.printed), f"the page shows\n{ran.expected}\nbut it is\n{ran.printed}"
        if ran.pictures:
            assert len(ran.figures) == len(ran.pictures), f"the page shows {ran.pictures}"


@pytest.mark.parametrize(
    ("expected", "printed", "equal"),
    [
        ("a  0.51\n", "a 0.513", True),
        ("a 0.51", "b 0.51", False),
        ("2 lines", "3 lines", False),
        ("1 2", "1", False),
        ("-1.0", "1.0", False),
    ],
)
def test_outputs_are_compared_up_to_white_space_and_last_digits(expected, printed, equal):
    assert pages.same(expected, printed) is equal


def test_blocks_of_a_page_share_their_names_and_commands_are_run():
    commands = "```bash\nmake demo\nmelc explain m.json  # the rule\n```\n"
    page = f"```python\nx = 2\n```\n\n{commands}\n```python\nprint(x)\n```\n\n```text\n2\n```\n"
    called = []
    ran = list(pages.run(page, lambda arguments: called.append(arguments) or "rule"))
    assert called == [["explain", "m.json"]]
    assert [(each.expected, each.printed) for each in ran] == [(None, ""), (None, "rule"), ("2\n", "2\n")]


def test_pictures_below_a_block_are_the_figures_that_it_draws():
    code = "import matplotlib.pyplot as plt\n\nplt.figure()\nplt.figure()\n"
    page = f"```python\n{code}```\n\n![one](a.png)\n\n![two](b.png)\n\nAnother: ![three](c.png)\n"
    (ran,) = pages.run(page, lambda _: "")
    assert ran.pictures == ["a.png", "b.png"]
    assert len(ran.figures) == 2
    assert not plt.get_fignums()


def test_every_page_of_the_guide_has_a_picture():
    texts = {page.name: page.read_text("utf-8") for page in (ROOT / "docs" / "user_guide").glob("*.md")}
    assert [name for name, text in texts.items() if "![" not in text and "<iframe" not in text] == []


@pytest.mark.parametrize("page", LINKING, ids=name_of)
def test_files_that_a_page_points_to_exist(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    linked = [target for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text) if "://" not in target]
    missing = [target for target in linked if not (page.parent / target).exists()]
    assert [target for target in missing if not set(MADE_BY_THE_BUILD) & set(Path(target).parts)] == []


def test_make_targets_that_pages_name_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    text = "\n".join(page.read_text(encoding="utf-8") for page in LINKING)
    targets = set(re.findall(r"^make (?:PYTHON=\S+ )?([\w-]+)", text, re.MULTILINE))
    assert targets >= {"demo", "test", "quick", "lint", "bench", "paper", "docs", "fuzz", "coverage", "release-check"}
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


def test_extras_that_pages_name_exist():
    extras = set(re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE))
    named = re.findall(r"pip install '(?:melc|\.)\[([\w,]+)\]'", "\n".join(p.read_text("utf-8") for p in LINKING))
    assert named
    assert {extra for each in named for extra in each.split(",")} <= extras


@pytest.mark.parametrize("name", excerpts.PAGES)
def test_figures_are_those_of_the_records(name):
    page = (ROOT / name).read_text(encoding="utf-8")
    assert ": begin; written by python -m benchmarks.excerpts" in page
    assert excerpts.updated(page) == page, "run: python -m benchmarks.excerpts"


def test_the_two_commands_stand_near_the_top():
    top = README.splitlines()[:30]
    assert any(line.startswith("make demo") for line in top)
    assert any(line.startswith("make test") for line in top)
