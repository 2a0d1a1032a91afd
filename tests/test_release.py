"""What a release consists of agrees with itself: versions, requirements, workflows."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from tools import check_links, release_check

import melc

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github").rglob("*.yml"))
# Put together here, so that this file does not name them.
REGISTRIES = [
    ".".join(parts) for parts in (("pypi", "org"), ("pythonhosted", "org"), ("anaconda", "org"), ("npmjs", "org"))
]


def recipe():
    text = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text.replace("{{ PYTHON }}", "python"))


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(recipe()["package"]["version"]) == str(citation["version"]) == melc.__version__
    assert f"## [{melc.__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_recipe_requires_what_the_package_requires():
    wanted = {"python " + PROJECT["requires-python"], *(each.replace(">=", " >=") for each in PROJECT["dependencies"])}
    assert set(recipe()["requirements"]["run"]) == wanted
    optional = {
        each.replace(">=", " >=") for name in ("plot", "cli") for each in PROJECT["optional-dependencies"][name]
    }
    assert {
        each.replace("matplotlib-base", "matplotlib") for each in recipe()["requirements"]["run_constrained"]
    } == optional


def test_workflows_run_every_supported_python():
    tests = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    matrix = tests["jobs"]["newest"]["strategy"]["matrix"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert len(matrix["system"]) == 3
    assert f">={matrix['python'][0]}" == PROJECT["requires-python"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_make_targets_and_scripts_of_a_workflow_exist(path):
    text = path.read_text(encoding="utf-8")
    assert yaml.safe_load(text)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert [
        t for t in re.findall(r"run: make ([\w-]+)", text) if not re.search(rf"^{t}:", makefile, re.MULTILINE)
    ] == []
    assert [name for name in re.findall(r"python (tools/\S+\.py)", text) if not (ROOT / name).exists()] == []


def test_no_file_for_publishing_names_a_registry():
    files = [*WORKFLOWS, ROOT / "pyproject.toml", ROOT / "README.md", ROOT / "Makefile", *(ROOT / "conda").iterdir()]
    files += [ROOT / ".pre-commit-config.yaml", *ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")]
    named = [path.name for path in files for host in REGISTRIES if host in path.read_text(encoding="utf-8")]
    assert named == []


def test_another_tag_than_the_version_is_refused():
    assert release_check.check_version(f"v{melc.__version__}") == melc.__version__
    with pytest.raises(SystemExit, match=r"The tag is v9\.9\.9"):
        release_check.check_version("v9.9.9")


def test_links_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "index.html").write_text(
        '<a href="other.html#here">1</a><a href="other.html#gone">2</a><img src="no.png">'
    )
    (tmp_path / "other.html").write_text('<p id="here"></p><a href="https://example.org/x">3</a><a href="#gone">4</a>')
    found = ["index.html: other.html#gone", "index.html: no.png", "other.html: #gone"]
    assert check_links.broken_links(tmp_path) == found
    assert check_links.main(tmp_path) == 1
