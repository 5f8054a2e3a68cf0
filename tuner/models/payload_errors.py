"""Errors about a payload with the name of its file, the line and the operation, in the form of compilers."""

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
    """Returns a message about a payload in compilers' form: "NAME:LINE:COLUMN: OPERATION: message".

    Args:
        reason: the message; LINE:COLUMN is its first "line 8:3". Without a position the result is
            "NAME: message".
        name: name of the payload's file.
        text: MLIR text of the payload, in which OPERATION is read at LINE:COLUMN. OPERATION is left out if
            ``reason`` has it, or if no operation begins there.
    """
    position = POSITION.search(reason)
    if position is None:
        return f"{name}: {reason.removeprefix(CHILD).removeprefix(f'{name}: ')}"
    rest = reason[: position.start()] + (position[2] or "") + reason[position.end() :]
    for subject in (CHILD, *SUBJECTS):
        rest = rest.removeprefix(subject)
    rest = rest.strip(" :")
    operation = operation_at(text, position[1])
    return f"{name}:{position[1]}: {rest if operation in rest else f'{operation}: {rest}'}"


def operation_at(text: str, position: str) -> str:
    """Returns the name of the operation at "LINE:COLUMN", counted from 1; "" where none begins there.

    ``text``: MLIR.
    """
    line, column = map(int, position.split(":"))
    match = OPERATION.match("".join(text.splitlines()[line - 1 : line])[column - 1 :])
    if match:
        return match[1]
    return ""


@contextlib.contextmanager
def named_in_errors(name: str, text: str) -> Iterator[None]:
    """Context manager: gives errors that are raised inside it the form of ``in_file``.

    Messages of CandidateError, UsageError and TunerError begin with ``name``, the payload's, and the position
    and operation that they are about. Errors of other classes are not changed. ``text``: the payload's MLIR.
    """
    try:
        yield
    except CandidateError as error:
        raise CandidateError(error.stage, in_file(error.reason, name, text)) from error
    except TunerError as error:
        if type(error) not in (TunerError, UsageError):
            raise
        raise type(error)(in_file(error.message, name, text), error.hint) from error
