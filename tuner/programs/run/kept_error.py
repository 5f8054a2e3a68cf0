"""Stores the first error of functions that compiled code calls, since it cannot propagate exceptions."""


class KeptError:
    """The first error; until ``raise_it`` is called, later calls from compiled code do nothing."""

    def __init__(self) -> None:
        self._error: BaseException | None = None

    @property
    def is_there(self) -> bool:
        """Returns whether there is an error that was not raised yet."""
        return self._error is not None

    def keep(self, error: BaseException) -> None:
        """Stores an error, unless an earlier error is stored."""
        self._error = self._error or error

    def raise_it(self) -> None:
        """Raises the first error since the last call of this method, if there is one."""
        error, self._error = self._error, None
        if error is not None:
            raise error
