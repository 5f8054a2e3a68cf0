"""The error of a call whose program's assertion fails."""

import re

from tuner.core.errors import CandidateError, IndexOutOfRange, Stage, reason_of

INDEX = "index"  # in assertions of indices, of tuner (``assert_indirect_indices``) and of torch-mlir
# The message of generate-runtime-verification: operation, reason, location
VERIFICATION = re.compile(
    r'.*verification failed\s*(?:%\S+ = )?"?([\w.]+).*\^ (.*)\s*Location: loc\(.*?:(\d+:\d+)', re.DOTALL
)


def failed_assertion(text: str) -> CandidateError:
    """Returns the error for an assertion with this text; that of an index is an IndexError, too."""
    if match := VERIFICATION.match(text):
        wrong = " ".join(match[2].split())
        reason = f"host: {match[1]} at line {match[3]}: found {wrong}, allowed what lies in its memory"
    else:
        reason = reason_of(f"the program's assertion fails: {text}")
    error = IndexOutOfRange if INDEX in text else CandidateError
    return error(Stage.RUN, reason)
