"""How long a node asks again while its server is away."""

import asyncio
import time
from typing import Final, final

AGAIN_S: Final = 0.5  # until a server that went away is asked again
PATIENCE_S: Final = 300.0  # with a server that went away, before what was done is lost
ENDING_PATIENCE_S: Final = 5.0  # of a node that is to end


@final
class Patience:
    """The patience of one question, which begins now."""

    def __init__(self, ending: asyncio.Event) -> None:
        """Takes what says that the node is to end."""
        self._ending = ending
        self._since_s = time.monotonic()

    @property
    def is_over(self) -> bool:
        """Says whether the server stayed away too long."""
        patience_s = ENDING_PATIENCE_S if self._ending.is_set() else PATIENCE_S
        return time.monotonic() - self._since_s > patience_s
