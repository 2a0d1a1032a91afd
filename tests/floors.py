"""Prints the oldest version of everything that the estimator and its tests use, as pyproject.toml allows them."""

import tomllib
from pathlib import Path

# Of the development tools, what the tests of the estimator import; the rest has no part in it.
TOOLS = {"pytest", "pytest-xdist", "hypothesis", "polars", "pandas"}


def floors(pyproject: Path) -> list[str]:
    """Requirements of the kind "numpy>=2.0" as "numpy==2.0.*"."""
    project = tomllib.loads(pyproject.read_text())["project"]
    extras = project["optional-dependencies"]
    tools = [each for each in [*extras["dev"], *extras["cli"]] if each.split(">=")[0] in TOOLS]
    return [f"{each.replace('>=', '==')}.*" for each in [*project["dependencies"], *tools]]


if __name__ == "__main__":
    print(*floors(Path(__file__).parents[1] / "pyproject.toml"))
