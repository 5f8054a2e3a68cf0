"""Compiles a program's host code without running it, to detect compiler crashes in a child process."""

import ctypes
import re

from tuner.core.device_program import DeviceProgram
from tuner.programs.run.host_faults import with_checks
from tuner.programs.run.jitted_host_code import HostCode
from tuner.programs.run.mgpu import SIGNATURES

DECLARED = re.compile(r"^ *llvm\.func [^@\n]*@([\w.$]+)\(.*[^{\n]$", re.MULTILINE)  # a definition ends with {
_nothing = ctypes.CFUNCTYPE(None)(lambda: None)


def check_host_code(program: DeviceProgram, *, is_checked: bool) -> None:
    """Compiles a program's host code to machine code without running it, to see whether that works.

    Raises CandidateError(LOAD) where it does not compile.

    Args:
        program: the program.
        is_checked: whether checks of host accesses are added first, as for a simulated device.
    """
    llvm = with_checks(program.llvm) if is_checked else program.llvm
    address = ctypes.cast(_nothing, ctypes.c_void_p).value or 0
    names = {*DECLARED.findall(llvm), *SIGNATURES}  # launches become calls of these names after this text
    HostCode(llvm, program.entry, dict.fromkeys(names, address), is_run=False)
