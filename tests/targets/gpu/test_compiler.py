"""What is hashed of a GPU program, and which programs are refused."""

from dataclasses import replace

import pytest

from tuner.core.errors import Stage, UsageError
from tuner.core.gpu import chip_of
from tuner.core.gpu_code import KernelBuffer, KernelProgram, Launch, Resources, code_sha256
from tuner.mlir.fingerprint import GPU_SOURCES
from tuner.targets.gpu.compiler import find_ptxas, gpu_compiler_build, refusal_of

pytestmark = pytest.mark.mlir

LAUNCH = Launch("k", (4, 4, 1), (128, 1, 1), 49152, ("a",))
RESOURCES = Resources("k", 128, 0, 0, 0, 49152, 0, 0.25, 4)
PROGRAM = KernelProgram("sm_90", "ptx", b"cubin", (LAUNCH,), (KernelBuffer("a", 4, "output"),), (RESOURCES,))
EMPTY_KERNEL = (
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a) {{ {} ret; }}\n"
)


def test_equal_machine_code_is_equal_whatever_its_ptx() -> None:
    assert code_sha256(PROGRAM) == code_sha256(replace(PROGRAM, ptx="other words"))
    assert code_sha256(PROGRAM) == code_sha256(replace(PROGRAM, resources=()))


@pytest.mark.parametrize(
    "other",
    [
        replace(PROGRAM, cubin=b"other"),
        replace(PROGRAM, cubin=b""),
        replace(PROGRAM, launches=(replace(LAUNCH, grid=(2, 8, 1)),)),
        replace(PROGRAM, buffers=(replace(PROGRAM.buffers[0], is_zeroed=True),)),
    ],
)
def test_whatever_changes_what_runs_changes_the_hash(other: KernelProgram) -> None:
    assert code_sha256(other) != code_sha256(PROGRAM)


def test_without_machine_code_ptx_decides() -> None:
    bare = replace(PROGRAM, cubin=b"")
    assert code_sha256(bare) != code_sha256(replace(bare, ptx="other"))


@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
def test_registers_by_another_name_give_the_same_machine_code() -> None:
    ptxas = find_ptxas()
    assert ptxas is not None
    bodies = (".reg .u64 %rd1; ld.param.u64 %rd1, [a];", "// a comment\n.reg .u64 %x; ld.param.u64 %x, [a];")
    programs = [ptxas.assemble(replace(PROGRAM, cubin=b"", ptx=EMPTY_KERNEL.format(body))) for body in bodies]
    assert programs[0].ptx != programs[1].ptx
    assert code_sha256(programs[0]) == code_sha256(programs[1])


def test_without_an_assembler_the_compiler_says_so() -> None:
    compiler = gpu_compiler_build(chip_of("sm_90"), None, GPU_SOURCES)
    assert dict(compiler.packages)["ptxas"] == "none"


@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
def test_a_chip_that_ptxas_does_not_know_is_refused_before_a_run() -> None:
    ptxas = find_ptxas()
    assert ptxas is not None
    old = replace(ptxas, chips=frozenset({"sm_80"}))
    with pytest.raises(UsageError, match=r"chip: found 'sm_90', allowed by ptxas .*: sm_80$"):
        gpu_compiler_build(chip_of("sm_90"), old, GPU_SOURCES)


def test_what_fits_is_not_refused_though_it_spills() -> None:
    assert refusal_of(PROGRAM) is None
    assert refusal_of(replace(PROGRAM, resources=(replace(RESOURCES, spill_store_bytes=400),))) is None


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (
            replace(PROGRAM, resources=(replace(RESOURCES, static_shared_bytes=2**18),)),
            "shared bytes: found 311296",
        ),
        (
            replace(PROGRAM, launches=(replace(LAUNCH, dynamic_shared_bytes=2**18),)),
            "shared bytes: found 262144",
        ),
        (replace(PROGRAM, launches=(replace(LAUNCH, block=(2048, 1, 1)),)), "threads of a block: found 2048"),
    ],
)
def test_what_cannot_launch_is_refused_with_the_reason(program: KernelProgram, reason: str) -> None:
    refusal = refusal_of(program)
    assert refusal is not None
    assert refusal.stage is Stage.RESOURCES
    assert refusal.reason.startswith(f"k: {reason}, allowed")
