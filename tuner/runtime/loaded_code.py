"""Objects whose code is loaded into this process and cannot be sent to another process."""

from typing import ClassVar, Never


class LoadedCode:
    """Base class of callables with loaded machine code: to pickle or copy one raises TypeError."""

    load_again: ClassVar[str]  # expression that loads the code in another process

    def __reduce__(self) -> Never:
        raise TypeError(
            f"{type(self).__name__}: a loaded kernel cannot be pickled or copied; "
            f"load it in the other process: {self.load_again}"
        )
