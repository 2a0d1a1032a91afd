"""What the README promises is there."""

import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_python_in_the_readme_runs(code):
    exec(compile(code, "README.md", "exec"), {})
    plt.close("all")


def test_files_that_the_readme_points_to_exist():
    linked = re.findall(r"\]\(([^)#]+)\)", README)
    missing = [target for target in linked if "://" not in target and not (ROOT / target).exists()]
    assert linked
    assert missing == []


def test_make_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^make (\w+)", README, re.MULTILINE))
    assert targets >= {"demo", "test"}
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []
