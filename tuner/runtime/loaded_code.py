"""Objects whose code is loaded into this process: they cannot go to another one."""

from typing import ClassVar, Never


class LoadedCode:
    """Base of callables that hold machine code of this process. pickle and copy raise TypeError."""

    load_again: ClassVar[str]  # what to type in another process

    def __reduce__(self) -> Never:
        """Raises TypeError, which names what loads the code in another process."""
        raise TypeError(
            f"{type(self).__name__}: a loaded kernel cannot be pickled or copied; "
            f"load it in the other process: {self.load_again}"
        )
