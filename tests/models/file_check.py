"""A program's output against the CHECK lines of its source, by the package ``filecheck``."""

import contextlib
import io
import re
from pathlib import Path

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts

from tests.texts import BEGIN, text_beside


def require(source: str, output: str) -> None:
    """Raises AssertionError for the first CHECK that the output does not meet, and where there is none."""
    options = Options(match_filename="program")
    checks = Parser(options, io.StringIO(source), *pattern_for_opts(options))
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        status = Matcher(options, FInput("output", FInput.canonicalize_line_ends(output)), checks).run()
    assert status == 0, f"{errors.getvalue()}\n{output}"


def checked(test: str) -> list[str]:
    """Returns the parts of ``test_x.mlir`` that have CHECK lines, but for those with names in capitals."""
    _, *parts = BEGIN.split(Path(test).with_suffix(".mlir").read_text())
    return [
        name
        for name, text in zip(parts[::2], parts[1::2], strict=True)
        if "// CHECK" in text and name.islower()
    ]


def cases(text: str) -> list[tuple[dict[str, str], str]]:
    """Returns the cases of a text, which empty lines divide, each with its lines ``// name: value``."""
    return [(directives(case), case) for case in text.strip("\n").split("\n\n")]


def directives(text: str) -> dict[str, str]:
    """Returns the values of the lines ``// name: value`` of a text."""
    return dict(re.findall(r"^// (\w+): (.*)$", text, re.MULTILINE))


def filled(test: str, name: str, **parts: object) -> str:
    """Returns a text of the file next to a test, with parts in the place of their names in capitals."""
    text = text_beside(test, name)
    return re.sub(r"[A-Z][A-Z_]+", lambda found: str(parts.get(found[0].lower(), found[0])), text)
