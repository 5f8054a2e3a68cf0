"""The stream that commands print to: nothing that a database holds moves the terminal."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO, cast, final

from tuner.core.printable import printable_lines


@final
class PrintableStream:
    """A text stream whose control characters are written as visible escapes; all else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes a text."""
        return self._stream.write(printable_lines(text))

    def __getattr__(self, name: str) -> Any:
        """Returns what the stream has."""
        return getattr(self._stream, name)


@contextlib.contextmanager
def printable_stdout() -> Iterator[None]:
    """Lets standard output be such a stream as long as the block lasts."""
    stream = sys.stdout
    sys.stdout = cast(TextIO, PrintableStream(stream))
    try:
        yield
    finally:
        sys.stdout = stream
