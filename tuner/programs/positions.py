"""Messages about a payload as compilers write them: ``FILE:8:3: gpu.launch_func: found ..., allowed ...``."""

import contextlib
import re
from collections.abc import Iterator

from tuner.core.errors import CandidateError, TunerError, UsageError

# "line 8:3" in the forms that messages have: behind "error:", in parentheses, behind the name of an op.
POSITION = re.compile(r"(?:error: |note: )?(?: ?\(?at )?line (\d+:\d+)\)?(: )?")
CHILD = "program: "  # begins what comes from the process that runs programs
SUBJECTS = ("payload: ", "host program: ")  # that the name of the file says better


def in_file(reason: str, name: str) -> str:
    """Returns a message with the payload's name, and the first position of it that is named, in front."""
    found = POSITION.search(reason)
    if found is None:
        return f"{name}: {reason.removeprefix(CHILD).removeprefix(f'{name}: ')}"
    place = f"{name}:{found[1]}"
    rest = reason[: found.start()] + (found[2] or "") + reason[found.end() :]
    for subject in (CHILD, *SUBJECTS):
        rest = rest.removeprefix(subject)
    return f"{place}: {rest.strip(' :')}"


@contextlib.contextmanager
def named_in_errors(name: str) -> Iterator[None]:
    """Lets errors say the payload's name; that of standard input is ``-``."""
    try:
        yield
    except CandidateError as error:
        raise CandidateError(error.stage, in_file(error.reason, name)) from error
    except TunerError as error:
        if type(error) not in (TunerError, UsageError):
            raise
        raise type(error)(in_file(str(error), name)) from error
