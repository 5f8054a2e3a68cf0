"""The machine code of CPU kernels, as the JIT compiles it, as assembly text; needs objdump."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tuner.targets.cpu.object_code import write_object

TIMEOUT_S = 60.0
OPTIONS = ("-d", "--no-show-raw-insn")
INSTRUCTION = re.compile(r"^\s+[0-9a-f]+:\s+(\S.*?)\s*$", re.MULTILINE)  # after its address
FUNCTION = re.compile(r"^[0-9a-f]+ (<.*>:)$", re.MULTILINE)


def assembly(llvm_text: str) -> str:
    """Returns the assembly of LLVM-dialect text; "" without objdump.

    Compiled for the processor that the attributes of its functions name, else for this machine's. In the form
    of ``instructions``. Raises CandidateError(LOAD) for text that LLVM does not compile.
    """
    objdump = shutil.which("objdump") or shutil.which("llvm-objdump")
    if objdump is None:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "code.o"
        write_object(llvm_text, file)
        command = [objdump, *OPTIONS, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return instructions(done.stdout)


def instructions(listing: str) -> str:
    """Returns objdump's listing reduced to function names and instructions, without addresses, one per line.

    Instructions are indented by two spaces.
    """
    lines = (
        (found.start(), found[1] if found.re is FUNCTION else f"  {found[1]}")
        for pattern in (FUNCTION, INSTRUCTION)
        for found in pattern.finditer(listing)
    )
    return "".join(f"{line}\n" for _, line in sorted(lines))
