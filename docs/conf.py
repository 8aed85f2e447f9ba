"""How Sphinx builds the documentation: `make docs`."""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import version as version_of
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

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
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
    "command_line",
    "names",
    "optional_results",
    "tidy",
]
exclude_patterns = [
    "_ext",
    "_static",
    "_templates",
    "paper/*",
    "benchmark/*",
    "auto_examples/README*",
]
templates_path = ["_templates"]
nitpicky = True
# A name in single backticks is a link where it is documented here, and code elsewhere.
default_role = "autolink"
# Nothing outside the repository is fetched, so that names of other libraries stay plain text.
nitpick_ignore_regex = [(r"py:.*", r"(matplotlib|numpy|pandas|scipy|sklearn|typing)\..*")]

rst_prolog = r".. |y| replace:: \|y\|"  # what docstrings call the number of labels

# -- pages in Markdown ---------------------------------------------------------------------------
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# -- reference -----------------------------------------------------------------------------------
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # the docstrings have the types, in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template lists them
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
    "min_reported_time": 10.0,
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
# MathJax in one file, with its glyphs: pages can be read without a network.
mathjax_path = "tex-svg.js"
mathjax_folder = Path(find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
html_static_path = ["_static", str(mathjax_folder / mathjax_path)]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": "fgfm"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    # The examples have long lines of code: no column on their right.
    "secondary_sidebar_items": {
        name: ["page-toc"] for name in ("*", "reference/*", "reference/generated/*")
    },
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "get_started": [], "changelog": []}
