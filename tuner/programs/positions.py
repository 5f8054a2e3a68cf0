"""Messages about a payload as compilers write them: ``FILE:8:3: gpu.launch_func: found ..., allowed ...``."""

import contextlib
import re
from collections.abc import Iterator

from tuner.core.errors import CandidateError, TunerError, UsageError

OPERATION = re.compile(r'"?([a-z_]\w*(?:\.\w+)+|[a-z_]\w+)')  # memref.load, "gpux.wait", call
# "line 8:3" in the forms that messages have: behind "error:", in parentheses, behind the name of an op.
POSITION = re.compile(r"(?:error: |note: )?(?: ?\(?at )?line (\d+:\d+)\)?(: )?")
CHILD = "program: "  # begins what comes from the process that runs programs
SUBJECTS = ("payload: ", "host program: ")  # that the name of the file says better


def in_file(reason: str, name: str, text: str = "") -> str:
    """Returns a message with the payload's name, and the first position of it that is named, in front.

    With the payload's text the operation there is named as well.
    """
    found = POSITION.search(reason)
    if found is None:
        return f"{name}: {reason.removeprefix(CHILD).removeprefix(f'{name}: ')}"
    place = f"{name}:{found[1]}"
    rest = reason[: found.start()] + (found[2] or "") + reason[found.end() :]
    for subject in (CHILD, *SUBJECTS):
        rest = rest.removeprefix(subject)
    rest = rest.strip(" :")
    operation = operation_at(text, found[1])
    return f"{place}: {rest}" if operation in rest else f"{place}: {operation}: {rest}"


def operation_at(text: str, position: str) -> str:
    """Returns the name of the op that begins at "LINE:COLUMN" of a text; "" where none does."""
    line, column = map(int, position.split(":"))
    found = OPERATION.match("".join(text.splitlines()[line - 1 : line])[column - 1 :])
    return found[1] if found else ""


@contextlib.contextmanager
def named_in_errors(name: str, text: str) -> Iterator[None]:
    """Lets errors say the payload's name and the op that they are about; that of standard input is ``-``."""
    try:
        yield
    except CandidateError as error:
        raise CandidateError(error.stage, in_file(error.reason, name, text)) from error
    except TunerError as error:
        if type(error) not in (TunerError, UsageError):
            raise
        raise type(error)(in_file(str(error), name, text)) from error
