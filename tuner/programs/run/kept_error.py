"""The first error of functions that compiled code calls, which cannot see a Python exception."""


class KeptError:
    """Whoever called the compiled code asks for the error; until then later calls do nothing."""

    def __init__(self) -> None:
        self._error: BaseException | None = None

    @property
    def is_there(self) -> bool:
        """Tells whether there is one that nobody asked for yet."""
        return self._error is not None

    def keep(self, error: BaseException) -> None:
        """Keeps an error, unless there is one."""
        self._error = self._error or error

    def raise_it(self) -> None:
        """Raises the first error since the last time, if there is one."""
        error, self._error = self._error, None
        if error is not None:
            raise error
