"""Turns failing assertions of compiled host code into errors of the call, instead of ending the process.

Upstream lowers ``cf.assert`` to calls of ``puts`` with the text and of ``abort``. Code of the host alone
returns in place of the latter (``failed_assertions.leave_at_failed_assertions``).

Where an assertion is in a function that is not inlined, and in host code of a simulated device, ``abort`` is
called, which must not return. Such code runs in a separate thread: if an assertion fails, that thread waits
forever, and the caller gets the error. So there may be few such failures.
"""

import ctypes
import threading
from collections.abc import Callable
from typing import Any

from tuner.core.errors import CandidateError, Stage
from tuner.programs.lower.on_host.libm_names import MATH_PREFIX
from tuner.programs.run.failed_assertion import failed_assertion

ABORT, PUTS = f"{MATH_PREFIX}abort", f"{MATH_PREFIX}puts"  # names in the compiled code


# Failures after which a program whose assertions keep a thread takes no more calls; a thread has a stack of
# 8 MiB of address space
THREADS_LIMIT = 100


def has_assertions(llvm_text: str) -> bool:
    """Returns whether host code, text in LLVM dialect, contains lowered assertions (``cf.assert``)."""
    return f"@{PUTS}(" in llvm_text


class HostAssertions:
    """The C functions ``puts`` and ``abort`` that compiled host code calls when an assertion fails.

    Their addresses are valid as long as this object.
    """

    def __init__(self, *, aborts: bool, limit: int = THREADS_LIMIT) -> None:
        """``aborts``: whether some assertions call ``abort``; ``limit``: how often these may fail."""
        self._aborts, self._limit = aborts, limit
        self._kept_threads = 0
        self._said: list[str] = []
        self._is_over = threading.Event()
        self._puts = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(self._note)
        self._abort = ctypes.CFUNCTYPE(None)(self._fail)

    def addresses(self) -> dict[str, int]:
        """Returns the address of each C function, by the name that compiled code calls."""
        functions: dict[str, Any] = {PUTS: self._puts, ABORT: self._abort}
        return {name: ctypes.cast(each, ctypes.c_void_p).value or 0 for name, each in functions.items()}

    def call(self, code: Callable[[], None]) -> None:
        """Runs ``code``; raises CandidateError(RUN) for an assertion that fails.

        Code that may call ``abort`` runs in a new thread, which never ends where it does; after as many of
        them as are allowed, each call is an error. An exception of ``code`` is raised here.
        """
        self._said = []
        if self._aborts:
            self._call_in_thread(code)
        else:
            code()
        if self._said:
            raise failed_assertion(self._said[0])

    def _call_in_thread(self, code: Callable[[], None]) -> None:
        if self._kept_threads >= self._limit:
            raise CandidateError(
                Stage.RUN,
                f"found {self._kept_threads} failed assertions of the program, allowed {self._limit}, "
                "since each keeps a thread: compile the program again",
            )
        self._is_over = threading.Event()
        raised: list[BaseException] = []

        def run() -> None:
            try:
                code()
            except BaseException as error:  # noqa: BLE001 - raised to the caller
                raised.append(error)
            finally:
                self._is_over.set()

        threading.Thread(target=run, daemon=True).start()
        self._is_over.wait()
        if raised:
            raise raised[0]

    def _note(self, text: bytes) -> int:
        self._said.append(text.decode(errors="replace"))
        return 0

    def _fail(self) -> None:
        self._said = self._said or ["an assertion of the program fails"]
        self._kept_threads += 1
        self._is_over.set()
        threading.Event().wait()
