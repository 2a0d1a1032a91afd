"""Every public name is on the page of the API, and has an example that the tests run."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import melc

PAGE = (Path(__file__).parents[1] / "docs" / "api" / "index.md").read_text(encoding="utf-8")
NOT_PUBLIC = {"melc.cli", "melc.data", "melc.fit", "melc.kernels", "melc.model", "melc.objective", "melc.sums"}


def public_modules():
    """The package, its packages with public names, and the bounds."""
    packages = [f"melc.{found.name}" for found in pkgutil.iter_modules(melc.__path__) if found.ispkg]
    return ["melc", *(name for name in packages if name not in NOT_PUBLIC), "melc.sums.bounds"]


def public_names():
    names = [(module, name) for module in public_modules() for name in importlib.import_module(module).__all__]
    return [(module, name) for module, name in names if name not in ("__version__", "bounds")]


def listed_names():
    sections = re.findall(r"currentmodule:: (\S+)\n\.\. autosummary::\n.*?\n\n(.*?)```", PAGE, re.DOTALL)
    return [(module, name) for module, names in sections for name in names.split()]


def test_packages_that_are_not_public_exist():
    assert all(importlib.import_module(name) for name in NOT_PUBLIC)


@pytest.mark.parametrize(("module", "name"), public_names())
def test_a_public_name_is_on_the_page_and_has_an_example(module, name):
    assert (module, name) in listed_names()
    documentation = getattr(importlib.import_module(module), name).__doc__ or ""
    assert re.search(r"^ *Examples\n *-+\n(.|\n)*>>> ", documentation, re.MULTILINE), f"{module}.{name} has no example"


def test_the_page_lists_nothing_else():
    assert set(listed_names()) - set(public_names()) == set()
