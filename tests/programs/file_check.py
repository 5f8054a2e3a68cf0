"""A program's output against the CHECK lines of its source, by the package ``filecheck``."""

import contextlib
import io

from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts


def require(source: str, output: str) -> None:
    """Raises AssertionError for the first CHECK that the output does not meet, and where there is none."""
    options = Options(match_filename="program")
    checks = Parser(options, io.StringIO(source), *pattern_for_opts(options))
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        status = Matcher(options, FInput("output", FInput.canonicalize_line_ends(output)), checks).run()
    assert status == 0, f"{errors.getvalue()}\n{output}"
