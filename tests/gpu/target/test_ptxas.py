"""The tools of CUDA: where they are found, ptxas, its report and its known defects; skipped without ptxas."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.targets.evaluation import fails
from tests.texts import filled, text_beside
from tuner.core.compiled_code import KernelBuffer, KernelCode, Launch, Resources, code_sha256
from tuner.core.errors import CandidateError, MachineError, Stage, UsageError
from tuner.core.gpu import CHIPS, chip_of
from tuner.gpu.target import compiler as gpu
from tuner.gpu.target.compiler import KernelReport, Ptxas, defects_of, locate, refusal_of
from tuner.mlir.fingerprint import GPU_SOURCES
from tuner.runtime.wheel_tools import Tool

PTX = text_beside(__file__, "PTX")
PROGRAM = KernelCode("sm_80", PTX, b"", (Launch("first", (1, 1, 1), (256, 1, 1), 4096, ("p",)),), ())


def test_ptxas_reports_its_version_and_chips(ptxas: Ptxas) -> None:
    major = int(ptxas.version.partition(".")[0])
    assert major >= 12
    assert ptxas.chips >= {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"}
    if major >= 13:  # earlier ones know fewer
        assert ptxas.chips >= set(CHIPS)


def test_a_program_gets_machine_code_the_same_again_and_figures_of_each_kernel(ptxas: Ptxas) -> None:
    program = ptxas.assemble(PROGRAM)
    assert ptxas.assemble(PROGRAM) == program
    assert program.binary.startswith(b"\x7fELF")
    assert replace(program, binary=b"", resources=()) == PROGRAM
    first, second = sorted(program.resources, key=lambda each: each.kernel)
    assert (first.kernel, first.static_shared_bytes, first.dynamic_shared_bytes) == ("first", 64, 4096)
    assert (first.spill_store_bytes, first.spill_load_bytes) == (0, 0)
    # 8 blocks of 8 warps fill the 64 warps of sm_80
    assert (first.blocks_per_multiprocessor, first.occupancy) == (8, 1.0)
    assert (second.kernel, second.dynamic_shared_bytes) == ("second", 0)


def test_an_error_of_the_ptx_or_a_timeout_is_the_candidates(ptxas: Ptxas) -> None:
    wrong = replace(PROGRAM, text=PTX.replace("ld.shared.b32", "ld.shared.b33"))
    with fails(Stage.COMPILE, match=r"^ptxas: line 6: .*b33"):
        ptxas.assemble(wrong)
    with pytest.raises(CandidateError, match=r"^timed out after 0\.0001 s: ptxas$"):
        ptxas.assemble(PROGRAM, timeout_s=1e-4)


@pytest.mark.mlir
def test_a_chip_that_this_ptxas_does_not_know_is_refused_before_a_run(ptxas: Ptxas) -> None:
    old = replace(ptxas, version="11.0.1", chips=frozenset({"sm_80", "sm_86"}))
    message = r"^chip: found 'sm_90', allowed by ptxas 11\.0\.1 \(.+\): sm_80, sm_86$"
    for use in (
        lambda: old.require(chip_of("sm_90")),
        lambda: old.assemble(replace(PROGRAM, chip="sm_90")),
        lambda: gpu.gpu_compiler_build(chip_of("sm_90"), old, GPU_SOURCES),
    ):
        with pytest.raises(UsageError, match=message):
            use()


def test_a_cubin_that_the_disk_has_no_package_for_is_no_machine_code(ptxas: Ptxas, tmp_path: Path) -> None:
    whole = len(ptxas.assemble(PROGRAM).binary)
    cutting = 'for last; do :; done; truncate -s %d "$last"'  # the cubin is the last word
    for length in (0, 40, whole - 1):  # ptxas itself ends so on a full disk: with 0, and no word of it
        script = f'{ptxas.tool.path} "$@" && {cutting % length}'
        torn = Ptxas(tool(tmp_path, script), ptxas.version, ptxas.chips)
        with pytest.raises(MachineError, match=rf": found {length} bytes of a cubin, allowed all: no room"):
            torn.assemble(PROGRAM)


def tool(folder: Path, script: str) -> Tool:
    path = folder / "ptxas"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return Tool(path, "PATH")


def test_a_ptxas_that_dies_or_something_else_called_ptxas_is_reported(tmp_path: Path) -> None:
    dying = Ptxas(tool(tmp_path, "kill -SEGV $$"), "13.0", frozenset({"sm_80"}))
    with pytest.raises(CandidateError, match=r"^ptxas: ended by signal 11$"):
        dying.assemble(PROGRAM)
    with pytest.raises(UsageError, match=r"^ptxas: .*ptxas prints neither a version nor chips"):
        gpu.ask_ptxas(tool(tmp_path, "echo hello"))
    with pytest.raises(UsageError, match=r"^ptxas: .*absent does not run"):
        gpu.ask_ptxas(Tool(tmp_path / "absent", "PATH"))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder first on the import path, where wheels can be laid out; PATH is its folder bin."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def install(site: Path, distribution: str, version: str, *files: str) -> None:
    """Lays out a wheel as pip does: files, and a record of them."""
    folder = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    (folder / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    for file in files:
        executable(site / file)


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_tool_of_the_wheel_is_preferred_to_path(site: Path) -> None:
    install(site, "nvidia-cuda-nvcc", "99.1", "nvidia/cu13/bin/ptxas", "nvidia/cu13/bin/nvcc")
    executable(site / "bin/ptxas")
    assert locate("ptxas") == Tool(site / "nvidia/cu13/bin/ptxas", "nvidia-cuda-nvcc 99.1")


def test_the_layout_of_cuda_12_wheels_is_known(site: Path) -> None:
    install(site, "nvidia-cuda-nvcc-cu12", "12.9", "nvidia/cuda_nvcc/bin/ptxas")
    install(site, "nvidia-cuda-nvcc", "99.0", "nvidia/cu13/bin/nvcc")  # a wheel without the tool
    assert locate("ptxas") == Tool(site / "nvidia/cuda_nvcc/bin/ptxas", "nvidia-cuda-nvcc-cu12 12.9")


def test_a_file_that_cannot_be_run_is_passed_over_and_no_tool_anywhere_is_none(site: Path) -> None:
    install(site, "nvidia-cuda-nvcc", "99.0", "nvidia/cu13/bin/ptxas")
    install(site, "nvidia-cuda-nvcc-cu12", "0.0")  # hides one that is really there
    (site / "nvidia/cu13/bin/ptxas").chmod(0o644)
    assert locate("ptxas") is None
    assert Tool(executable(site / "bin/ptxas"), "PATH") == locate("ptxas")


REPORT = text_beside(__file__, "REPORT")  # of ptxas -v
BEFORE = "Unsupported .version 9.9; current version is '9.0'"
SLOW = "(C7519) Potential Performance Loss: wgmma.mma_async instructions are serialized"


def test_every_figure_of_every_kernel_is_read_and_none_is_taken_for_zero() -> None:
    matmul = KernelReport("matmul", 234, 1, 0, 0, 0, 0, (BEFORE,))
    assert gpu.read_report(REPORT) == (KernelReport("reduce", 20, 0, 64, 8, 12, 1024, (BEFORE, SLOW)), matmul)
    message = r"^ptxas -v: found no registers of matmul, allowed 'Used N registers'"
    with pytest.raises(ValueError, match=message):
        gpu.read_report(REPORT.replace("Used 234 registers", "234 registers"))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("ptxas /f/k.ptx, line 4; error   : Bad 'add'\nptxas fatal   : Ptx aborted\n", "line 4: Bad 'add'"),
        ("ptxas info    : 0 bytes gmem\nptxas fatal   : SM version is higher\n", "SM version is higher"),
        ("Segmentation fault\ncore dumped\n", "Segmentation fault"),
        ("", "no message"),
    ],
)
def test_the_first_fault_is_reported_without_the_temporary_file(text: str, fault: str) -> None:
    assert gpu.first_fault(text) == fault


# chip and number of known defects -> versions
MISCOMPILING: dict[tuple[str, int], tuple[str, ...]] = {
    ("sm_80", 1): ("9.2.148", "11.0.221", "11.3.58", "11.6.124", "12.3.103"),
    ("sm_80", 0): ("11.1", "11.1.74", "11.8.89", "12.3.107"),
    ("sm_89", 0): ("12.6.77",),
    ("sm_90a", 1): ("12.6.77",),
    ("sm_90", 2): ("12.3.103",),
    ("sm_90", 0): ("12.6.85", "12.8.93", "13.1.80"),
}


def test_a_version_is_known_to_miscompile_for_the_chips_that_it_concerns() -> None:
    for (chip, count), versions in MISCOMPILING.items():
        found = [len(defects_of(version, chip_of(chip))) for version in versions]
        assert found == [count] * len(versions), (chip, versions)
    assert (len(defects_of("12.8.93")), len(defects_of("12.3.103"))) == (1, 2)  # without a chip: all


def test_every_defect_has_a_range_and_a_source_and_a_line_that_names_what_and_where() -> None:
    for defect in gpu.DEFECTS:
        assert defect.since < defect.before
        assert defect.capabilities[0] <= defect.capabilities[1]
        assert defect.source.startswith("https://")
    (defect,) = defects_of("12.6.77", chip_of("sm_90"))
    assert gpu.defect_line(defect) == (
        "this version is known to miscompile: NVIDIA's bug 4826023, of Hopper and later "
        "(https://github.com/openxla/xla/pull/19927)"
    )


# What is hashed of a GPU program, and which programs are refused.
LAUNCH = Launch("k", (4, 4, 1), (128, 1, 1), 49152, ("a",))
RESOURCES = Resources("k", 128, 0, 0, 0, 49152, 0, 0.25, 4)
TINY = KernelCode("sm_90", "ptx", b"cubin", (LAUNCH,), (KernelBuffer("a", 4, "output"),), (RESOURCES,))


def test_equal_machine_code_is_equal_whatever_its_ptx_which_decides_without_it() -> None:
    assert code_sha256(TINY) == code_sha256(replace(TINY, text="other words"))
    assert code_sha256(TINY) == code_sha256(replace(TINY, resources=()))
    bare = replace(TINY, binary=b"")
    assert code_sha256(bare) != code_sha256(replace(bare, text="other"))


@pytest.mark.parametrize(
    "other",
    [
        replace(TINY, binary=b"other"),
        replace(TINY, binary=b""),
        replace(TINY, launches=(replace(LAUNCH, grid=(2, 8, 1)),)),
        replace(TINY, buffers=(replace(TINY.buffers[0], is_zeroed=True),)),
    ],
)
def test_whatever_changes_what_runs_changes_the_hash(other: KernelCode) -> None:
    assert code_sha256(other) != code_sha256(TINY)


def test_registers_by_another_name_give_the_same_machine_code(ptxas: Ptxas) -> None:
    bodies = (".reg .u64 %rd1; ld.param.u64 %rd1, [a];", "// a comment\n.reg .u64 %x; ld.param.u64 %x, [a];")
    texts = (filled(__file__, "EMPTY_KERNEL", body=body) for body in bodies)
    programs = [ptxas.assemble(replace(TINY, binary=b"", text=text)) for text in texts]
    assert programs[0].text != programs[1].text
    assert code_sha256(programs[0]) == code_sha256(programs[1])


@pytest.mark.mlir
def test_without_an_assembler_the_compiler_says_so() -> None:
    assert dict(gpu.gpu_compiler_build(chip_of("sm_90"), None, GPU_SOURCES).packages)["ptxas"] == "none"


def with_resources(**changes: Any) -> KernelCode:
    return replace(TINY, resources=(replace(RESOURCES, **changes),))


def with_launch(**changes: Any) -> KernelCode:
    return replace(TINY, launches=(replace(LAUNCH, **changes),))


def test_what_fits_is_not_refused_though_it_spills() -> None:
    assert refusal_of(TINY) is None
    assert refusal_of(with_resources(spill_store_bytes=400)) is None


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (with_resources(static_shared_bytes=2**18), "shared bytes: found 311296"),
        (with_launch(dynamic_shared_bytes=2**18), "shared bytes: found 262144"),
        (with_launch(block=(2048, 1, 1)), "threads of a block: found 2048"),
    ],
)
def test_what_cannot_launch_is_refused_with_the_reason(program: KernelCode, reason: str) -> None:
    refusal = refusal_of(program)
    assert refusal is not None
    assert refusal.stage is Stage.RESOURCES
    assert refusal.reason.startswith(f"k: {reason}, allowed")
