"""The machine and the compiler as values."""

from dataclasses import replace

import pytest

from tuner.core.chips import chip_of
from tuner.core.machine import Compiler, Machine, gpu_machine

MACHINE = Machine("any", "any", "avx512", True, 4, 8, 32768, 1 << 20, 1 << 25, 1 << 34)
COMPILER = Compiler("LLVM 23", (("numba-cuda-mlir", "0.6.1"), ("torch-mlir", "20261001")), "ab" * 32)


@pytest.mark.parametrize(
    ("isa", "width", "registers"), [("avx512", 64, 32), ("avx2", 32, 16), ("none", 16, 16)]
)
def test_vectors_follow_from_the_instruction_set(isa: str, width: int, registers: int) -> None:
    machine = replace(MACHINE, isa=isa)
    assert (machine.vector_bytes, machine.vector_registers) == (width, registers)


def test_constraints_see_numbers_only() -> None:
    limits = dict(MACHINE.limits())
    assert limits["has_bf16"] == 1
    assert limits["cores"] == 4
    assert {type(limit) for limit in limits.values()} == {int}


def test_constraints_see_the_limits_of_a_chip() -> None:
    machine = gpu_machine("simulator", chip_of("sm_90a"), "PTX simulator")
    assert (machine.name, machine.chip, machine.isa) == ("simulator sm_90a", "sm_90a", "ptx")
    assert dict(machine.limits()) == {
        "compute_capability": 90,
        "has_wgmma": 1,
        "max_shared_bytes": 227 * 1024,
        "registers_per_block": 65536,
        "max_threads": 1024,
        "sm_count": 0,
    }


@pytest.mark.parametrize(
    "changed",
    [
        replace(COMPILER, mlir="LLVM 24"),
        replace(COMPILER, packages=(("numba-cuda-mlir", "0.6.2"), ("torch-mlir", "20261001"))),
        replace(COMPILER, pipeline_sha256="cd" * 32),
    ],
)
def test_whatever_may_change_code_changes_the_fingerprint(changed: Compiler) -> None:
    assert changed.fingerprint != COMPILER.fingerprint
    assert "\n" not in changed.fingerprint
