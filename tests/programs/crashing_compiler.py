"""A service in place of the compiler's whose compilations end its process, or never end."""

import os
import signal
import time
from collections.abc import Callable

from tuner.programs.request import ProgramRequest


class CrashingCompiler:
    """Does to its process what the payload says."""

    def __init__(self, announce: Callable[[str], None]) -> None:
        pass

    def compile(self, request: ProgramRequest) -> None:
        """Ends the process, or hangs."""
        if "hang" in request.text:
            time.sleep(1000)
        os.kill(os.getpid(), signal.SIGSEGV if "segfault" in request.text else signal.SIGABRT)
