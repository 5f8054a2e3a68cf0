"""Settings of Sphinx, which ``make docs`` runs over this folder."""

import shutil
import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(
    0, str(Path(__file__).parents[1])
)  # the reference is read from the sources next to this folder

from docs.generators.mlir_lexer import MlirLexer
from docs.generators.navigation import with_menu

project = "tuner"
extensions = ["myst_parser"]
root_doc = "README"
exclude_patterns = ["generators"]
html_theme = "furo"
html_show_copyright = False
myst_heading_anchors = 3
smartquotes = False  # they make one dash of the two of an option


def setup(app: Sphinx) -> None:
    """Registers what this project adds to Sphinx."""
    app.add_lexer("mlir", MlirLexer)
    app.connect("source-read", _complete)
    app.connect("build-finished", _name_index)


def _complete(app: Sphinx, name: str, content: list[str]) -> None:
    """Puts its part of the menu into an index, which was just read."""
    content[0] = with_menu(name, content[0], Path(app.srcdir))


def _name_index(app: Sphinx, error: Exception | None) -> None:
    """Copies the index to ``index.html``, which servers look for."""
    if error is None and app.builder.format == "html":
        shutil.copy(app.outdir / f"{root_doc}.html", app.outdir / "index.html")
