"""The error of a call whose program's assertion fails."""

import re

from tuner.core.errors import CandidateError, IndexOutOfRange, Stage

INDEX = "index"  # in assertions of indices, of tuner (``assert_indirect_indices``) and of torch-mlir
# The message of generate-runtime-verification: operation, reason, location
VERIFICATION = re.compile(
    r'.*verification failed\s*(?:%\S+ = )?"?([\w.]+).*\^ (.*)\s*Location: loc\(.*?:(\d+:\d+)', re.DOTALL
)


def failed_assertion(text: str) -> CandidateError:
    """Returns the error for an assertion with this text; that of an index is an IndexError, too."""
    kind = IndexOutOfRange if INDEX in text else CandidateError
    return kind(Stage.RUN, _reason(text))


def _reason(text: str) -> str:
    """Returns an assertion's text in one line, starting with operation and line if the text has them."""
    found = VERIFICATION.match(text)
    if found is None:
        return f"the program's assertion fails: {' '.join(text.split())}"[:300]
    wrong = " ".join(found[2].split())
    return f"host: {found[1]} at line {found[3]}: found {wrong}, allowed what lies in its memory"
