"""Sphinx configuration; `make docs` builds the pages into build/docs."""

from __future__ import annotations

import os
import sys
import tomllib
import warnings
from importlib.metadata import version as version_of
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

URLS = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]["urls"]

project = "fgfm"
author = "The fgfm developers"
copyright = author
release = version = version_of("fgfm")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
    "command_line",
    "constants",
    "names",
    "source_lines",
    "tidy",
    "torch_stub",
]
exclude_patterns = [
    "_ext",
    "_static",
    "_templates",
    "paper/*",
    "benchmark/**",
    "auto_examples/README*",
]
templates_path = ["_templates"]
nitpicky = True
# A name in single backticks is a link if it is documented here, and code otherwise.
default_role = "autolink"
# No inventories of other projects are downloaded, so that names of other libraries are not links.
nitpick_ignore_regex = [
    (r"py:.*", r"(matplotlib|numpy|pandas|scipy|sklearn|typing)\..*"),
]

rst_prolog = r".. |y| replace:: \|y\|"  # docstrings write |y| for the number of labels

# -- pages in Markdown ---------------------------------------------------------------------------
myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_url_schemes = {
    "http": None,
    "https": None,
    "repo": f"{URLS['Repository']}/{{{{path}}}}",  # [text](repo:blob/main/CITATION.cff)
}

# Copied code has neither prompts nor output, and what a command prints has no button.
copybutton_exclude = ".linenos, .gp, .go"
copybutton_selector = "div:not(.highlight-text) > div.highlight > pre"

# -- reference -----------------------------------------------------------------------------------
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # the docstrings describe the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template lists the members
numpydoc_class_members_toctree = False

# -- examples ------------------------------------------------------------------------------------
mpl.use("Agg")
warnings.filterwarnings("ignore", message=".*non-interactive", category=UserWarning)
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "gallery.ExampleOrder",
    "backreferences_dir": "auto_examples/backreferences",
    "doc_module": ("fgfm",),
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "image_srcset": ["2x"],
    "thumbnail_size": (640, 420),
    "write_computation_times": False,
    "plot_gallery": "True",
}

# -- figures of the pages ------------------------------------------------------------------------
plot_formats = [("svg", 150)]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_include_source = False
plot_rcparams = {"svg.fonttype": "path", "figure.autolayout": False}
plot_basedir = str(HERE)

# -- the look ------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "fgfm"
html_favicon = "_static/favicon.svg"
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", URLS["Documentation"] + "/")
# MathJax and its glyphs in one local file, so that the pages work offline.
mathjax_path = "tex-svg.js"
mathjax_folder = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
html_static_path = ["_static", str(mathjax_folder / mathjax_path)]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "logo": {
        "text": "fgfm",
        "image_light": "_static/favicon.svg",
        "image_dark": "_static/favicon.svg",
        "alt_text": "fgfm, home",
    },
    "icon_links": [
        {"name": "Source code", "url": URLS["Repository"], "icon": "fa-brands fa-github"},
    ],
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    # No column on the right of pages with long lines of code or wide tables.
    "secondary_sidebar_items": {
        "*": ["page-toc"],
        "auto_examples/*": [],
        "index": [],
        "paper": [],
        "results": [],
        "try_it": [],
    },
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "get_started": [], "try_it": [], "changelog": []}
