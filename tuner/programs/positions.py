"""Formats messages about a payload as compilers do: ``FILE:8:3: gpu.launch_func: found ..., allowed ...``."""

import contextlib
import re
from collections.abc import Iterator

from tuner.core.errors import CandidateError, TunerError, UsageError

OPERATION = re.compile(r'"?([a-z_]\w*(?:\.\w+)+|[a-z_]\w+)')  # memref.load, "gpux.wait", call
# "line 8:3" in the forms of messages: after "error:", in parentheses, after the name of an operation.
POSITION = re.compile(r"(?:error: |note: )?(?: ?\(?at )?line (\d+:\d+)\)?(: )?")
CHILD = "program: "  # prefix of messages of the process that runs programs
SUBJECTS = ("payload: ", "host program: ")  # prefixes that the file's name replaces


def in_file(reason: str, name: str, text: str = "") -> str:
    """Returns a message about a payload as compilers print it: "NAME:LINE:COLUMN: OPERATION: message".

    LINE:COLUMN is the first position in ``reason``, OPERATION what stands there in the payload's ``text``,
    unless the message has the operation already. Without a position: "NAME: message".
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
    """Returns the name of the operation at "LINE:COLUMN" of MLIR text; "" where none begins there.

    Lines and columns are counted from 1.
    """
    line, column = map(int, position.split(":"))
    found = OPERATION.match("".join(text.splitlines()[line - 1 : line])[column - 1 :])
    return found[1] if found else ""


@contextlib.contextmanager
def named_in_errors(name: str, text: str) -> Iterator[None]:
    """Context manager: puts the payload's name before the message of errors raised inside.

    A position in the message ("line 8:3") moves there, NAME:8:3, with the name of the operation at this
    position of ``text``, the payload. This concerns CandidateError, UsageError and TunerError itself; other
    errors pass unchanged.
    """
    try:
        yield
    except CandidateError as error:
        raise CandidateError(error.stage, in_file(error.reason, name, text)) from error
    except TunerError as error:
        if type(error) not in (TunerError, UsageError):
            raise
        raise type(error)(in_file(error.message, name, text), error.hint) from error
