"""Settings of the site: ``make docs``, or ``python -m sphinx -W --keep-going docs docs/_build/html``."""

import os
import sys
from pathlib import Path

import matplotlib

sys.path.insert(0, str(Path(__file__).parent))

from melc import __version__

matplotlib.use("Agg")
os.environ["COLUMNS"] = "120"  # width of what the command line prints in examples

project = "melc"
author = "The melc developers"
project_copyright = "The melc developers"
version = release = __version__

extensions = [
    "live_report",  # both beside this file
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "auto_examples/*.ipynb", "auto_examples/*.py.md5"]
templates_path = ["_templates"]
nitpicky = True
# numpydoc links attributes that are properties, but they have no pages of their own.
nitpick_ignore = [("py:obj", name) for name in ("directions_", "coef_", "thresholds_", "interval_classes_")]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Headings of the same words on different pages are no conflict: links name the page.
suppress_warnings = ["config.cache"]

html_title = f"melc {version}"
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["melc.css"]
html_favicon = "_static/logo.svg"
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "melc", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {page: [] for page in ("index", "choosing", "getting_started", "theory")}

autosummary_generate = True
autodoc_typehints = "none"  # types are in the numpydoc sections
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": False,  # all examples are tried; one that fails is a warning, so an error of the build
    "only_warn_on_example_error": False,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1,
    "doc_module": ("melc",),
    "backreferences_dir": "api/backreferences",
    "reference_url": {"melc": None},
    "inspect_global_variables": False,
    "image_srcset": ["2x"],
    "thumbnail_size": (560, 420),
    "capture_repr": ("_repr_html_",),  # reports, but not the names of matplotlib's objects
}
