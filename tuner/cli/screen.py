"""How wide the screen is that stdout goes to."""

import os
import sys

USUAL_COLUMNS = 80  # where a terminal does not know


def screen_columns() -> int | None:
    """Returns the columns of the terminal; None for a file or a pipe, whose lines are never cut."""
    if not sys.stdout.isatty():
        return None
    return os.get_terminal_size(sys.stdout.fileno()).columns or USUAL_COLUMNS
