"""Makes machine code of a program's host part and runs none of it: what crashes here would crash its user."""

import ctypes
import re

from tuner.core.device_program import DeviceProgram
from tuner.programs.run.host_faults import with_checks
from tuner.programs.run.jitted_host_code import HostCode
from tuner.programs.run.mgpu import SIGNATURES

DECLARED = re.compile(r"^ *llvm\.func [^@\n]*@([\w.$]+)\(.*[^{\n]$", re.MULTILINE)  # a body begins with {
_nothing = ctypes.CFUNCTYPE(None)(lambda: None)


def check_host_code(program: DeviceProgram, *, is_checked: bool) -> None:
    """Compiles the code, with the checks of a device that checks its host or without.

    Raises CandidateError(LOAD).
    """
    llvm = with_checks(program.llvm) if is_checked else program.llvm
    address = ctypes.cast(_nothing, ctypes.c_void_p).value or 0
    names = {*DECLARED.findall(llvm), *SIGNATURES}  # launches become calls behind this text
    HostCode(llvm, program.entry, dict.fromkeys(names, address), is_run=False)
