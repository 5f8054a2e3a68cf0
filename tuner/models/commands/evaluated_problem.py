"""The problem that ``tuner judge`` is given as words, such as "matmul 512x512x512 f32"."""

from typing import Any, Final

from tuner.cli.forms import ProblemOptions
from tuner.core.errors import UsageError
from tuner.core.problem import Problem

LEAST_WORDS: Final = 2  # operation and shape
FURTHER_WORDS: Final = ("dtype", "layout", "epilogue")
PROBLEM_FORM: Final = "OPERATION SHAPE [DTYPE [LAYOUT [EPILOGUE]]] or FILE.mlir"
PROBLEM_EXAMPLE: Final = "matmul 512x512x512 f32"


def required_problem(text: str | None) -> str:
    """Returns the text of a problem. Raises UsageError for None."""
    if text is None:
        raise UsageError("the problem is missing", f'--problem "{PROBLEM_EXAMPLE}"')
    return text


def problem_of_words(text: str) -> Problem:
    """Returns the problem that a text such as "matmul 512x512x512 f32" describes.

    Raises UsageError for a text of another form, or with values that are not allowed.
    """
    words = text.split()
    if not LEAST_WORDS <= len(words) <= LEAST_WORDS + len(FURTHER_WORDS):
        raise UsageError(f"problem: found {text[:80]!r}, allowed {PROBLEM_FORM}", f'"{PROBLEM_EXAMPLE}"')
    further: dict[str, Any] = dict(zip(FURTHER_WORDS, words[LEAST_WORDS:], strict=False))
    return ProblemOptions(words[0], words[1], **further).problem
