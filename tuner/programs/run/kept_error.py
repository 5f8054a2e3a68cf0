"""Stores the first error of functions that compiled code calls, since it cannot propagate exceptions."""


class KeptError:
    """Keeps the first error of functions that compiled code calls, until ``raise_it`` raises it.

    Compiled code cannot propagate Python exceptions. While an error is kept, those functions do nothing.
    """

    def __init__(self) -> None:
        self._error: BaseException | None = None

    @property
    def is_there(self) -> bool:
        """Returns whether an error is kept, which ``raise_it`` has not raised yet."""
        return self._error is not None

    def keep(self, error: BaseException) -> None:
        """Stores an error to be raised later, unless an earlier error is stored."""
        self._error = self._error or error

    def raise_it(self) -> None:
        """Raises the kept error and forgets it; does nothing if no error is kept."""
        error, self._error = self._error, None
        if error is not None:
            raise error
