"""How Sphinx makes the site of README.md, docs/ and benchmarks/, as they are: `make docs`."""

from importlib.metadata import version as version_of

project, author = "goldfc", "The goldfc developers"
release = version = version_of("goldfc")
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_click"]

# The root of the repository is that of the site, so that links between pages are the same here and there.
root_doc = "docs/index"
include_patterns = ["*.md", "docs/*.md", "bench/README.md", "benchmarks/*/README.md"]
exclude_patterns = [".*", "build", "dist"]
myst_heading_anchors = 4

# Types stand in signatures; what else is inherited from scikit-learn is told there.
autodoc_default_options = {"members": True, "no-value": True, "exclude-members": "set_fit_request"}
numpydoc_show_class_members = False

html_theme = "sphinx_book_theme"
html_title = f"goldfc {release}"
html_theme_options = {"show_navbar_depth": 1, "use_download_button": False, "use_fullscreen_button": False}
html_copy_source = False
# The page that a server shows first.
html_extra_path = ["start"]
