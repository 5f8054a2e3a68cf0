"""IREE's compiler, as a program that is called on files."""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tuner.core.errors import TunerError, UsageError
from tuner.library.iree.spec import APPLIED

TIMEOUT_S = 300.0
# Code for this processor, on the thread that calls; as the times were taken. A spec names them.
OPTIONS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-level=O2",
)
ERROR = re.compile(r"\berror:\s(.*)")  # a line that MLIR prints, after its place
INSTALL = "pip install 'mlir-tuner[iree]'"


class IreeCompileError(TunerError):
    """IREE's compiler refuses a program with a tuning spec; the message is its first error."""


@dataclass(frozen=True)
class IreeCompiler:
    """The program ``iree-compile`` of the wheel, and its version."""

    path: Path
    version: str

    def compile(self, program: str, spec: str = "") -> bytes:
        """Returns the code of a program for IREE's runtime; ``spec``: text of a tuning spec, "": none.

        Raises IreeCompileError where IREE refuses one of both.
        """
        return self._run(program, spec, ())

    def applied(self, program: str, spec: str) -> int:
        """Returns how many operations of a program a spec configures. Raises IreeCompileError.

        IREE uses a spec without a fitting matcher silently, so this has to be looked at.
        """
        listed = self._run(program, spec, ("--compile-to=executable-configurations",))
        return listed.decode(errors="replace").count(APPLIED)

    def _run(self, program: str, spec: str, options: tuple[str, ...]) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            source, made = Path(folder) / "program.mlir", Path(folder) / "program.out"
            source.write_text(program)
            if spec:
                file = Path(folder) / "spec.mlir"
                file.write_text(spec)
                options = (*options, f"--iree-codegen-tuning-spec-path={file}")
            command = [str(self.path), *OPTIONS, *options, str(source), "-o", str(made)]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False
                )
            except subprocess.TimeoutExpired as error:
                raise IreeCompileError(f"iree-compile: no end after {TIMEOUT_S:.0f} s") from error
            if done.returncode:
                raise IreeCompileError(f"iree-compile: {_first_error(done.stderr)}")
            return made.read_bytes()


def find_compiler() -> IreeCompiler:
    """Returns IREE's compiler. Raises UsageError where it or its runtime is not installed."""
    names = ("compiler", "runtime")
    missing = [name for name in names if find_spec("iree") is None or find_spec(f"iree.{name}") is None]
    if missing:
        raise UsageError(f"format iree: IREE's {' and '.join(missing)} is not installed", INSTALL)
    from iree.compiler import version
    from iree.compiler.tools import binaries

    return IreeCompiler(Path(binaries.find_tool("iree-compile")), str(version.VERSION))


def _first_error(text: str) -> str:
    lines = ERROR.findall(text)
    return " ".join((lines or text.splitlines() or ["no message"])[0].split())[:300]
