"""Settings of the documentation: ``sphinx-build -W --keep-going docs docs/_build/html``."""

import os
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.append(str(ROOT / "docs"))  # gallery_order.py

import skbandit  # noqa: E402  the checkout, not what is installed

logger = logging.getLogger(__name__)

project = "skbandit"
author = "the skbandit developers"
copyright = "the skbandit developers, BSD 3-Clause"
release = version = skbandit.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx-mathjax-offline",
    "sphinxext.opengraph",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "generated/unreleased.md",
    "auto_examples/**/*.ipynb",
    "auto_examples/index.rst",  # examples.rst shows them in groups
]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["skbandit.css"]
html_theme = "pydata_sphinx_theme"
html_title = "skbandit"
html_theme_options = {
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "benchmarks": []}  # no page is below these
html_show_sourcelink = False
html_extra_path = ["llms.txt"]
copybutton_exclude = ".linenos, .gp, .go"  # neither prompts nor what is printed
ogp_site_url = "https://skbandit.readthedocs.io/"
ogp_enable_meta_description = True
ogp_social_cards = {"enable": False}  # they would be drawn anew at every build

# Single backticks of docstrings: a link where there is something of that name, else code.
default_role = "py:obj"
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections say it in words
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # the template lists ours

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

sphinx_gallery_conf = {
    "minigallery_sort_order": "gallery_order.place_in_gallery",
    "write_computation_times": False,  # a page that the search would find
    "doc_module": ("skbandit",),
    "backreferences_dir": "generated/examples",
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/\w+\.py$",  # all are run: they need no network
    "download_all_examples": False,
    "capture_repr": (),
    "parallel": os.cpu_count(),
    "remove_config_comments": True,
}


def close_snippets(app, docname, source):
    """Take away the empty line that doctest needs before the end of a fence."""
    source[0] = re.sub(r"(```pycon\n.*?\n)\n+```", r"\1```", source[0], flags=re.S)


def escape(app, what, name, obj, options, lines):
    """Keep reStructuredText from reading names and norms of docstrings as its own marks."""
    for k, line in enumerate(lines):
        if "shape (" in line:  # n_features_in_ would be a link to "n_features_in"
            line = re.sub(r"(?<=\()(\w+_)(?=[,)])", r"``\1``", line)
        lines[k] = line.replace("|w|", r"\|w\|")


# Names of other projects that pages mention: where they are documented.
_SKLEARN = "https://scikit-learn.org/stable/modules/generated/sklearn."
ELSEWHERE = {
    name: f"{_SKLEARN}{module}.{name}.html"
    for module, names in {
        "calibration": "CalibratedClassifierCV",
        "compose": "ColumnTransformer make_column_transformer",
        "cross_decomposition": "PLSRegression",
        "ensemble": "ExtraTreesRegressor HistGradientBoostingClassifier RandomForestClassifier",
        "kernel_approximation": "Nystroem",
        "linear_model": "LogisticRegression Ridge RidgeCV",
        "model_selection": "GridSearchCV TunedThresholdClassifierCV cross_validate cross_val_score",
        "pipeline": "Pipeline make_pipeline",
        "preprocessing": "OneHotEncoder PolynomialFeatures SplineTransformer StandardScaler",
        "svm": "LinearSVC",
    }.items()
    for name in names.split()
} | {
    "ExponentiatedGradient": "https://fairlearn.org/main/api_reference/generated/"
    "fairlearn.reductions.ExponentiatedGradient.html",
    "ThresholdOptimizer": "https://fairlearn.org/main/api_reference/generated/"
    "fairlearn.postprocessing.ThresholdOptimizer.html",
}


def link_names(app, doctree, docname):
    """Link code that is just a name, of ours or of `ELSEWHERE`, to its page."""
    pages = {}
    for name, _, kind, page, anchor, _ in app.env.domains["py"].get_objects():
        if kind in {"class", "function", "exception"}:
            pages[name] = pages[name.rpartition(".")[2]] = page, anchor
    pages.pop("select", None)  # nearly always the method of a policy
    for code in list(doctree.findall(nodes.literal)):
        name = code.astext()
        if name.startswith("skbandit.") and name not in pages:  # in a room, listed elsewhere
            name = name.rpartition(".")[2]
        if name in ELSEWHERE and not isinstance(code.parent, nodes.reference):
            link = nodes.reference("", "", code.deepcopy(), refuri=ELSEWHERE[name])
            code.replace_self(link)
            continue
        page, anchor = pages.get(name, (docname, ""))
        if page != docname and not isinstance(code.parent, nodes.reference):
            link = make_refnode(app.builder, docname, page, anchor, code.deepcopy())
            code.replace_self(link)


def refuse_configuration(app, doctree, docname):
    """Warn where settings of a page are read as its text: its front matter is not at the top."""
    for text in doctree.findall(nodes.Text):
        in_code = isinstance(text.parent, (nodes.literal, nodes.literal_block))
        if not in_code and re.match(
            r"(html_theme|html_meta|myst|orphan|sd_hide_title)[\w.]*:", text
        ):
            logger.warning("shows its configuration: %r", str(text), location=docname)


def skip_foreign(app, what, name, obj, skip, options):
    """Leave out of a class's page what scikit-learn or Python defines, and request setters."""
    function = getattr(obj, "fget", None) or getattr(obj, "func", obj)
    ours = (getattr(function, "__module__", None) or "").startswith("skbandit")
    generated = name.startswith("set_") and name.endswith("_request")
    return True if generated or not ours else None


def setup(app):
    """Connect the above."""
    app.connect("source-read", close_snippets)
    app.connect("autodoc-process-docstring", escape, priority=400)  # before numpydoc
    app.connect("doctree-resolved", link_names)
    app.connect("doctree-resolved", refuse_configuration)
    app.connect("autodoc-skip-member", skip_foreign)
