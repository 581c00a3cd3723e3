"""How Sphinx makes the site of README.md, docs/, benchmarks/ and notebooks, as they are: `make docs`."""

import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path

from docutils import nodes
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx

sys.path.append(str(Path(__file__).parent.parent))
from tools.notebooks import markdown_of

project, author = "goldfc", "The goldfc developers"
release = version = version_of("goldfc")
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_click"]

# The root of the repository is that of the site, so that links between pages are the same here and there.
root_doc = "docs/index"
include_patterns = ["*.md", "docs/*.md", "bench/README.md", "benchmarks/*/README.md", "examples/notebooks/*.ipynb"]
exclude_patterns = [".*", "build", "dist"]
myst_heading_anchors = 4
# Pictures with a width are copied, too.
myst_enable_extensions = ["html_image"]

# Types stand in signatures; what else is inherited from scikit-learn is told there.
autodoc_default_options = {
    "members": True,
    "no-value": True,
    "exclude-members": "set_fit_request,set_partial_fit_request",
}
autodoc_preserve_defaults = True
numpydoc_show_class_members = False
python_maximum_signature_line_length = 100

html_theme = "sphinx_book_theme"
html_title = f"goldfc {release}"
# The search is beside the page; a second one above it would be all that is in its bar.
html_theme_options = {
    "navbar_persistent": [],
    "show_navbar_depth": 1,
    "use_download_button": False,
    "use_fullscreen_button": False,
}
html_copy_source = False
# The page that a server shows first.
html_extra_path = ["start"]

# Types that have a name, and what Python makes of it.
ARRAY_LIKE = re.compile(r"~?[\w.]*_Buffer \| .*?\[complex \| bytes \| str\]")
ARRAY = re.compile(r"~?[\w.]*ndarray\[tuple\[~?[\w.]*Any, \.\.\.\], ~?[\w.]*dtype\[~?(?:numpy\.)?(\w+)\]\]")


def with_names(_app: Sphinx, *what: object) -> tuple[str | None, str | None]:
    """A signature in which such types have their names again."""
    *_, arguments, result = what
    return named(arguments), named(result)


def named(text: object) -> str | None:
    """One part of it."""
    if not isinstance(text, str):
        return None
    return ARRAY.sub(r"NDArray[\1]", ARRAY_LIKE.sub("ArrayLike", text.replace("<factory>", "...")))


class NotebookParser(MystParser):
    """A notebook is run, and read as Markdown with what came out."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """As Sphinx asks for it."""
        super().parse(markdown_of(inputstring), document)


def setup(app: Sphinx) -> None:
    """What Sphinx asks for."""
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    app.connect("autodoc-process-signature", with_names)
