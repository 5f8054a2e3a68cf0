"""The installed ptxas; skipped where there is none."""

from dataclasses import replace
from pathlib import Path

import pytest

from tuner.core.chips import CHIPS, chip_of
from tuner.core.errors import CandidateError, MachineError, Stage, UsageError
from tuner.core.kernel_program import KernelProgram, Launch
from tuner.targets.gpu.cuda_tools import Tool
from tuner.targets.gpu.ptxas import Ptxas, ask_ptxas, find_ptxas

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry first(.param .u64 p) {
  .reg .b64 %rd<3>; .reg .b32 %r<3>; .shared .align 4 .b8 s[64];
  ld.param.u64 %rd1, [p]; ld.shared.b32 %r1, [s]; st.global.b32 [%rd1], %r1;
  bar.sync 0; ret;
}
.visible .entry second(.param .u64 p) { ret; }
"""
PROGRAM = KernelProgram("sm_80", PTX, b"", (Launch("first", (1, 1, 1), (256, 1, 1), 4096, ("p",)),), ())


@pytest.fixture(scope="module")
def ptxas() -> Ptxas:
    found = find_ptxas()
    if found is None:
        pytest.skip("no ptxas: neither the extra cuda nor one on PATH")
    return found


def test_ptxas_tells_its_version_and_chips(ptxas: Ptxas) -> None:
    assert int(ptxas.version.partition(".")[0]) >= 12
    assert ptxas.chips >= {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"}


def test_a_program_gets_machine_code_and_figures_of_each_kernel(ptxas: Ptxas) -> None:
    program = ptxas.assemble(PROGRAM)
    assert program.cubin.startswith(b"\x7fELF")
    assert replace(program, cubin=b"", resources=()) == PROGRAM
    first, second = sorted(program.resources, key=lambda each: each.kernel)
    assert (first.kernel, first.static_shared_bytes, first.dynamic_shared_bytes) == ("first", 64, 4096)
    assert (first.spill_store_bytes, first.spill_load_bytes) == (0, 0)
    # 8 blocks of 8 warps fill the 64 warps of sm_80
    assert (first.blocks_per_multiprocessor, first.occupancy) == (8, 1.0)
    assert (second.kernel, second.dynamic_shared_bytes) == ("second", 0)


def test_the_same_program_gives_the_same_code(ptxas: Ptxas) -> None:
    assert ptxas.assemble(PROGRAM) == ptxas.assemble(PROGRAM)


def test_an_error_of_the_ptx_is_the_candidates(ptxas: Ptxas) -> None:
    wrong = replace(PROGRAM, ptx=PTX.replace("ld.shared.b32", "ld.shared.b33"))
    with pytest.raises(CandidateError, match=r"^ptxas: line 6: .*b33") as failure:
        ptxas.assemble(wrong)
    assert failure.value.stage is Stage.COMPILE


def test_ptxas_that_takes_too_long_is_stopped(ptxas: Ptxas) -> None:
    with pytest.raises(CandidateError, match=r"^ptxas: no result within 0\.0001 s$"):
        ptxas.assemble(PROGRAM, timeout_s=1e-4)


def test_a_chip_that_this_ptxas_does_not_know_is_refused(ptxas: Ptxas) -> None:
    old = replace(ptxas, version="11.0.1", chips=frozenset({"sm_80", "sm_86"}))
    with pytest.raises(
        UsageError, match=r"^chip: found 'sm_90', allowed by ptxas 11\.0\.1 \(.+\): sm_80, sm_86$"
    ):
        old.require(chip_of("sm_90"))
    with pytest.raises(UsageError, match=r"^chip: found 'sm_90'"):
        old.assemble(replace(PROGRAM, chip="sm_90"))


def test_every_chip_of_the_table_is_a_name_that_ptxas_knows(ptxas: Ptxas) -> None:
    if int(ptxas.version.partition(".")[0]) < 13:
        pytest.skip("ptxas before CUDA 13 knows fewer chips")
    assert set(CHIPS) <= ptxas.chips


def test_a_cubin_that_the_disk_has_no_room_for_is_no_machine_code(ptxas: Ptxas, tmp_path: Path) -> None:
    whole = len(ptxas.assemble(PROGRAM).cubin)
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


def test_a_ptxas_that_dies_is_told_by_its_signal(tmp_path: Path) -> None:
    dying = Ptxas(tool(tmp_path, "kill -SEGV $$"), "13.0", frozenset({"sm_80"}))
    with pytest.raises(CandidateError, match=r"^ptxas: ended by signal 11$"):
        dying.assemble(PROGRAM)


def test_something_else_called_ptxas_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^ptxas: found .*ptxas without a version or chips"):
        ask_ptxas(tool(tmp_path, "echo hello"))
    with pytest.raises(UsageError, match=r"^ptxas: found .*absent that does not run"):
        ask_ptxas(Tool(tmp_path / "absent", "PATH"))
