"""The width of the terminal that stdout goes to."""

import os
import sys

USUAL_COLUMNS = 80  # for a terminal that reports no width


def screen_columns() -> int | None:
    """Returns the width of stdout's terminal in characters; None if stdout is a file or a pipe."""
    if not sys.stdout.isatty():
        return None
    return os.get_terminal_size(sys.stdout.fileno()).columns or USUAL_COLUMNS
