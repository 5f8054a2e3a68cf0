"""A C library of kernels for AArch64, made on x86-64: compiled for it and run in an emulator."""

import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.models.library.c.c_programs import (
    FALLBACK,
    LARGE,
    NEEDS_CC,
    PROBLEMS,
    STRICT,
    call,
    entry_of,
    shared_object,
    write,
)
from tests.support.llvm_tools import NEEDS_LLVM_TOOLS
from tuner.core.errors import UsageError
from tuner.core.instruction_sets import AARCH64, ARM_BF16, DOTPROD, I8MM, NEON, CodeLevel
from tuner.core.matmul import Matmul
from tuner.core.processors import PROCESSORS
from tuner.models.library.c.kernels import CodeTarget, code_target
from tuner.models.library.c.writer import c_files
from tuner.runtime.cpu.host import own_architecture

pytestmark = pytest.mark.mlir
V1 = PROCESSORS["neoverse-v1"].machine
GCC = shutil.which("aarch64-linux-gnu-gcc")
QEMU = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
NEEDS_EMULATOR = pytest.mark.skipif(
    GCC is None or QEMU is None,
    reason="needs aarch64-linux-gnu-gcc and qemu-aarch64 (Debian: gcc-aarch64-linux-gnu, qemu-user)",
)
TIMEOUT_S = 120.0
MACHINE_AT = 18  # offset of e_machine in an ELF header
EM_AARCH64 = 183
# Bits of the header
HAS_NEON, HAS_DOTPROD, HAS_I8MM, HAS_BF16 = 1, 2, 4, 8
SERVER = HAS_NEON | HAS_DOTPROD
EMULATED = {  # model of qemu -> what the library finds there; a Cortex-A53 has no atomics of ARMv8.1
    "cortex-a53": 0,
    "neoverse-n1": SERVER,
    "max,sme=off": SERVER | HAS_I8MM | HAS_BF16,
}
# Of sizes that have a kernel without dot products, too: where these are not, that one runs.
DOTS = (
    (Matmul(33, 70, 40, "bf16"), "matmul_cpu_pairs"),
    (Matmul(64, 64, 64, "i8"), "matmul_cpu_vnni"),
)
FEATURES_PROGRAM = """#include <stdio.h>
#include "tuner_matmul.h"
int main(void) { printf("%u\\n", tuner_features()); return 0; }
"""


def test_a_kernel_needs_the_sets_of_its_intrinsics_and_the_level_of_all_processors() -> None:
    level = CodeLevel(AARCH64, "generic", "+neon,+lse")
    assert code_target(Matmul(8, 8, 8, "i8"), V1, ()) == CodeTarget(level, (NEON,))
    target = code_target(Matmul(8, 8, 8, "bf16"), V1, (ARM_BF16, I8MM, DOTPROD))
    assert target.needs == (NEON, DOTPROD, I8MM, ARM_BF16)
    assert target.level.features == "+neon,+lse,+dotprod,+i8mm,+bf16"
    assert target.bits == HAS_NEON | HAS_DOTPROD | HAS_I8MM | HAS_BF16


@NEEDS_CC
@NEEDS_LLVM_TOOLS
@pytest.mark.skipif(own_architecture() is AARCH64, reason="the kernels are for this processor")
def test_the_object_is_of_aarch64_and_c_code_elsewhere_is_the_portable_loop(tmp_path: Path) -> None:
    write(c_files((entry_of(LARGE, "matmul_cpu_packed", machine=V1),)), tmp_path)
    head = (tmp_path / "tuner_kernels.o").read_bytes()
    assert struct.unpack_from("<H", head, MACHINE_AT) == (EM_AARCH64,)
    assert "aarch64 and Linux for the kernels" in (tmp_path / "tuner_matmul.h").read_text()
    library = shared_object(tmp_path, "tuner_matmul.c")
    assert call(library.tuner_matmul_f32_nn, LARGE) == FALLBACK
    assert library.tuner_features() == 0


def test_a_library_is_of_one_architecture() -> None:
    entry = entry_of(LARGE, "matmul_cpu_packed", machine=V1)
    other = replace(entry, machine=PROCESSORS["haswell"].machine)
    line = r"^export: a C library is of one architecture, found problems of .* and .*; --machine NAME$"
    with pytest.raises(UsageError, match=line):
        c_files((entry, other))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    entries = tuple(entry_of(problem, strategy, machine=V1) for problem, strategy in (*PROBLEMS, *DOTS))
    folder = write(c_files(entries), tmp_path_factory.mktemp("aarch64"))
    listed = (folder / "tuner_matmul.c").read_text()
    assert ", TUNER_NEON | TUNER_DOTPROD, 1," in listed
    assert ", TUNER_NEON | TUNER_BF16, 1," in listed
    (folder / "features.c").write_text(FEATURES_PROGRAM)
    for program in ("check", "features"):
        sources = (f"{program}.c", "tuner_matmul.c", "tuner_kernels.o")
        command = [str(GCC), *STRICT, "-static", *sources, "-o", program, "-lm"]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        assert done.returncode == 0, done.stderr
    return folder


def emulated(processor: str, program: Path) -> str:
    done = subprocess.run(
        [str(QEMU), "-cpu", processor, str(program)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@NEEDS_LLVM_TOOLS
@NEEDS_EMULATOR
@pytest.mark.parametrize(("processor", "found"), EMULATED.items())
def test_the_library_asks_linux_what_the_processor_has(processor: str, found: int, folder: Path) -> None:
    assert int(emulated(processor, folder / "features")) == found


@pytest.mark.slow
@NEEDS_LLVM_TOOLS
@NEEDS_EMULATOR
@pytest.mark.parametrize(("processor", "found"), EMULATED.items())
def test_the_check_says_that_all_is_right(processor: str, found: int, folder: Path) -> None:
    lines = emulated(processor, folder / "check").splitlines()
    assert all(line.endswith(" ok") for line in lines)
    tuned = sum(" tuned " in line for line in lines)
    assert tuned == (len(PROBLEMS + DOTS) if found else 0)
