"""Objects whose code is loaded into this process and cannot be sent to another process."""

from typing import ClassVar, Never


class LoadedCode:
    """Base class of callables that hold machine code loaded into this process.

    To pickle or copy an instance raises TypeError, which says how to load the code in another process.
    """

    load_again: ClassVar[str]  # expression that loads the code in another process

    def __reduce__(self) -> Never:
        raise TypeError(
            f"{type(self).__name__}: a loaded kernel cannot be pickled or copied; "
            f"load it in the other process: {self.load_again}"
        )
