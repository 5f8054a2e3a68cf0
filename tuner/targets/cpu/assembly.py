"""The machine code of CPU kernels, as the JIT compiles it, as assembly text; needs objdump."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tuner.core.errors import CandidateError, Stage
from tuner.mlir.bindings import jit_bindings

TIMEOUT_S = 60.0
OPTIONS = ("-d", "--no-show-raw-insn")
INSTRUCTION = re.compile(r"^\s+[0-9a-f]+:\s+(\S.*?)\s*$", re.MULTILINE)  # after its address
FUNCTION = re.compile(r"^[0-9a-f]+ (<.*>:)$", re.MULTILINE)


def assembly(llvm_text: str) -> str:
    """Returns the assembly of LLVM-dialect text compiled for this machine's processor; "" without objdump.

    In the form of ``instructions``. Raises CandidateError(LOAD) for text that LLVM does not compile.
    """
    objdump = shutil.which("objdump") or shutil.which("llvm-objdump")
    if objdump is None:
        return ""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "code.o"
        _compile(llvm_text, file)
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


def _compile(llvm_text: str, file: Path) -> None:
    jit_ir, execution_engine = jit_bindings()
    try:
        with jit_ir.Context(), jit_ir.Location.unknown():
            module = jit_ir.Module.parse(llvm_text)
            engine = execution_engine.ExecutionEngine(module, opt_level=3, enable_object_dump=True)
            engine.initialize()
            engine.dump_to_object_file(str(file))
    except (RuntimeError, ValueError, jit_ir.MLIRError) as error:
        raise CandidateError(Stage.LOAD, " ".join(str(error).split())[:300]) from error
