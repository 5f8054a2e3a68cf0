"""A function in place of the compiler's that ends its process, or never ends."""

import os
import signal
import time

from tuner.models.request import ProgramRequest


def crash(request: ProgramRequest, *, has_data: bool) -> None:
    """Does to its process what the payload says."""
    if "hang" in request.text:
        time.sleep(1000)
    os.kill(os.getpid(), signal.SIGSEGV if "segfault" in request.text else signal.SIGABRT)
