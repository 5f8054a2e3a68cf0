"""AArch64 Linux as the target cpu: machines as Linux describes them, their spaces, the code made for them.

No ARM processor is here: the code is cross-compiled and read, not run. Its text is verified on this one.
"""

import platform
import re
import subprocess
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Tuner, require, require_fields
from tests.runtime.cpu.aarch64_machines import AARCH64_MACHINES, APPLE, N1, V1, V2, Aarch64Machine
from tests.support.llvm_tools import NEEDS_LLVM_TOOLS
from tests.tuning.fakes import present
from tuner.core.candidate import Candidate, TargetName
from tuner.core.errors import CandidateError, Stage, UsageError, install_extra
from tuner.core.instruction_sets import AARCH64, NEON, X86_64, code_level
from tuner.core.interfaces import Script
from tuner.core.machine import Machine, variables_of
from tuner.core.matmul import Matmul
from tuner.core.plausibility import most_flop_per_s
from tuner.core.problem import Problem
from tuner.core.processors import PROCESSORS, instruction_sets_of
from tuner.core.roofline import peak_text
from tuner.runtime.cpu import host
from tuner.runtime.cpu.host import describe_machine, own_architecture, require_own_intrinsics
from tuner.runtime.cpu.jit import loop_text
from tuner.space.empty_spaces import EmptySpace
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import first_rows, load_space_file, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.choice import default_script, first_configuration
from tuner.space.scripts.strategy import Binder, load_strategy
from tuner.targets.cpu import llvm_tools
from tuner.targets.cpu.compiler import CpuCompiler, CrossCompiler, assembly
from tuner.targets.cpu.evaluator import CrossCompiledEvaluator
from tuner.targets.cpu.target import Cpu, CrossCpu, require_conversions
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir
TIMEOUT_S = 60.0
SHAPE = (240, 240, 256)
FMA = re.compile(r"^\s+(?:fmla|fmadd|sdot|smmla|bfdot|bfmmla)\b")
LEAST_SHARE = 0.75  # of multiply-adds among the instructions of the innermost loop
LABEL = re.compile(r"^(\.LBB\w+):")
BRANCH = re.compile(r"^\s+(?:b\.\w+|cbn?z|tbn?z)\s.*?(\.LBB\w+)")


@pytest.fixture
def become(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Become":
    return Become(tmp_path, monkeypatch)


class Become:
    """Puts an AArch64 processor in place of this machine's; caches are unknown."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch

    def __call__(self, cpuinfo: str) -> Machine:
        (self._folder / "cpuinfo").write_text(cpuinfo)
        self._monkeypatch.delenv(host.LIMIT_VARIABLE, raising=False)
        self._monkeypatch.setattr(host, "CPUINFO", self._folder / "cpuinfo")
        self._monkeypatch.setattr(host, "SYSTEM_PROCESSORS", self._folder / "none")
        self._monkeypatch.setattr(platform, "machine", lambda: "aarch64")
        return describe_machine()


@pytest.mark.parametrize("faked", AARCH64_MACHINES, ids=lambda faked: faked.named)
def test_a_processor_is_named_by_its_part_and_has_what_linux_lists(
    faked: Aarch64Machine, become: Become
) -> None:
    machine = become(faked.cpuinfo())
    numbers = f"implementer {faked.implementer} part {faked.part}"
    assert machine.name == f"{faked.named} ({numbers}, {faked.words}, caches ?/?/?)"
    assert (machine.processor, machine.isa) == (faked.named, NEON)
    assert (machine.vector_bytes, machine.vector_registers) == (16, 32)
    words = faked.words.split()
    assert instruction_sets_of(machine) == tuple(word.replace("bf16", "arm-bf16") for word in words)
    limits = dict(machine.limits())
    assert [limits[f"has_{word}"] for word in ("dotprod", "i8mm", "arm_bf16")] == [
        int(word in words) for word in ("dotprod", "i8mm", "bf16")
    ]
    assert limits["has_vnni"] == limits["has_bf16"] == limits["has_amx_bf16"] == 0
    status = Cpu().status()
    assert status.is_available
    assert f"has {', '.join(instruction_sets_of(machine))}" in status.reason
    assert peak_text(machine).startswith("f32, f64")
    require_conversions(Matmul(8, 8, 8, "f16"), host.own_flags())


@pytest.mark.drawn(1)
@pytest.mark.parametrize("faked", AARCH64_MACHINES, ids=lambda faked: faked.named)
def test_commands_describe_it_and_its_constraints_leave_out_what_it_lacks(
    faked: Aarch64Machine, become: Become, tmp_path: Path
) -> None:
    become(faked.cpuinfo())
    command = Tuner(tmp_path / "results.db", real_backends())
    described = command("targets --json").json[0]
    require_fields(described, name="cpu", available=True)
    require(described["reason"], faked.named, faked.words, "; has neon, dotprod")
    multiplies_bf16 = "bf16" in faked.words
    space = command("space matmul 64x64x64 --dtype bf16 --json").json
    assert space["feasible"] > 0
    assert bool(space["rejected"]["dots <= max(has_bf16, has_arm_bf16)"]) is not multiplies_bf16
    refused = command.refused("space matmul 64x64x64 --dtype bf16 --strategy matmul_cpu_amx")
    require(refused, "matmul_cpu_amx")


def test_kinds_of_cores_that_differ_are_both_named_and_an_unknown_part_is_its_numbers(become: Become) -> None:
    small, large = (APPLE.cpuinfo(1).replace("0x000", part) for part in ("0x022", "0x023"))
    machine = become(small + large)
    assert machine.name.startswith("Apple M1 Icestorm and Apple M1 Firestorm (implementer 0x61")
    assert become(V2.cpuinfo().replace("0xd4f", "0xfff")).name.startswith("aarch64 (implementer 0x41 part")


def test_a_processor_without_atomics_is_refused_and_no_x86_code_is_made(become: Become) -> None:
    assert become(N1.cpuinfo().replace(" atomics", "")).isa == "none"
    assert "no NEON with the atomics of ARMv8.1" in Cpu().status().reason
    assert (
        CrossCpu().status().reason.startswith("compiles for neoverse-n1, neoverse-v1, neoverse-v2, apple-m1;")
    )
    assert CrossCpu().machine(TargetName.parse("cpu:neoverse-v1")).isa == NEON
    with pytest.raises(UsageError, match=r"^target cpu:haswell: code for x86-64 is compiled on x86-64 alone"):
        CrossCpu().machine(TargetName.parse("cpu:haswell"))


def test_a_result_is_possible_up_to_four_units_and_products_of_matrices(become: Become) -> None:
    machine = become(V1.cpuinfo())
    of_f32 = most_flop_per_s(Matmul(64, 64, 64), machine, 1)
    assert of_f32 == 4 * 4 * 2 * 7e9  # four units of four lanes
    assert most_flop_per_s(Matmul(64, 64, 64, "f64"), machine, 1) == of_f32 / 2
    assert most_flop_per_s(Matmul(64, 64, 64, "bf16"), machine, 1) == 4 * 32 * 7e9  # bfmmla: 16 products
    assert most_flop_per_s(Matmul(64, 64, 64, "i8"), machine, 2) == 2 * 4 * 64 * 7e9  # smmla: 32


def test_instructions_of_another_architecture_are_refused_by_name(
    become: Become, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    x86, arm = '"llvm.x86.sse2.clflush"(%at)', '"llvm.aarch64.neon.smmla.v4i32.v16i8"(%a)'
    require_own_intrinsics(x86)
    with pytest.raises(CandidateError, match=r"calls llvm\.aarch64\.neon\.smmla.*of aarch64; .* is x86-64"):
        require_own_intrinsics(arm)
    become(V1.cpuinfo())
    require_own_intrinsics(arm)
    with pytest.raises(CandidateError, match=r"calls llvm\.x86\.sse2\.clflush, .* x86-64; .* is aarch64"):
        require_own_intrinsics(x86)


def test_shipped_loops_wait_and_flush_by_the_instructions_of_their_architecture(
    become: Become, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    here = loop_text("evict") + loop_text("thread_team")
    assert '"pause"' in here
    assert "llvm.x86.sse2.clflush" in here
    become(V1.cpuinfo())
    there = loop_text("evict") + loop_text("thread_team")
    assert "llvm.x86" not in there
    assert all(text in there for text in ('"dc civac, $0"', '"dsb ish"', '"isb"'))
    for text in (here, there):
        assert "SPIN_WAIT" not in text
        assert "FLUSH" not in text


def test_portable_code_has_the_level_and_the_added_sets_of_its_architecture() -> None:
    level = code_level(NEON, ("neon", "dotprod"), AARCH64)
    assert (level.architecture, level.name, level.features) == (AARCH64, "generic", "+neon,+lse,+dotprod")
    level = code_level("avx2", ("avx2", "avx-vnni"), X86_64)
    assert (level.architecture, level.name, level.features) == (X86_64, "x86-64-v3", "+avxvnni")
    for architecture, name in ((AARCH64, "generic"), (X86_64, "x86-64")):
        level = code_level("none", (), architecture)
        assert (level.architecture, level.name, level.features) == (architecture, name, "")


# First configurations, and the innermost loop of the code that they become.


def initial_configurations(problem: Problem, machine: Machine) -> list[Candidate]:
    space_file = load_space_file(default_space_file())
    variables = variables_of(problem, machine, 1)
    feasible = FeasibleSet.of(spaces_for(space_file, problem, machine.isa, variables, None))
    return [feasible.candidate(row) for row in first_rows(space_file, feasible, machine.isa)]


def tiles_of(candidates: list[Candidate]) -> list[tuple[str, object, object]]:
    knobs = ((candidate.strategy, dict(candidate.choices)) for candidate in candidates)
    return [(strategy, chosen["tile_m"], chosen["tile_n"]) for strategy, chosen in knobs]


@pytest.mark.parametrize("faked", AARCH64_MACHINES, ids=lambda faked: faked.named)
def test_the_first_configurations_fill_the_registers(faked: Aarch64Machine, become: Become) -> None:
    machine = become(faked.cpuinfo())
    f32 = tiles_of(initial_configurations(Matmul(*SHAPE), machine))
    assert f32[:3] == [("matmul_cpu_packed", *tile) for tile in ((8, 8), (10, 8), (6, 12))]
    f64 = tiles_of(initial_configurations(Matmul(*SHAPE, "f64"), machine))
    assert set(f64) == {("matmul_cpu_packed", 4, 8), ("matmul_cpu_direct", 4, 8)}
    i8 = tiles_of(initial_configurations(Matmul(*SHAPE, "i8"), machine))
    bf16 = tiles_of(initial_configurations(Matmul(*SHAPE, "bf16"), machine))
    of_matrices = [("matmul_cpu_matrices", *tile) for tile in ((8, 12), (8, 8), (12, 8))]
    if machine.has_i8mm:
        assert (i8, bf16) == (of_matrices, of_matrices)
        single = tiles_of(initial_configurations(Matmul(1, 512, 512, "bf16"), machine))
        assert ("matmul_cpu_pairs", 1, 16) in single
    else:
        assert i8 == [("matmul_cpu_vnni", *tile) for tile in ((8, 8), (6, 12), (4, 16))]
        assert ("matmul_cpu_packed", 8, 8) in bf16
    assert initial_configurations(Matmul(1, 512, 512), machine)


@pytest.mark.parametrize(
    ("strategy", "dtype", "missing"),
    [
        ("matmul_cpu_vnni", "i8", "dotprod"),
        ("matmul_cpu_matrices", "i8", "i8mm"),
        ("matmul_cpu_matrices", "bf16", "bf16"),
    ],
)
def test_a_strategy_without_its_instructions_is_not_tried_and_a_line_says_why(
    strategy: str, dtype: str, missing: str, become: Become
) -> None:
    machine = become(N1.cpuinfo().replace(" asimddp", ""))
    problem = Matmul(*SHAPE, dtype)
    variables = variables_of(problem, machine, 1)
    space_file = load_space_file(default_space_file())
    (space,) = spaces_for(space_file, problem, machine.isa, variables, (strategy,))
    assert EmptySpace.of(space).note() == f"this processor has no {missing}: {strategy} not tried"


def test_a_matmul_that_was_not_tuned_has_the_first_of_these(become: Become) -> None:
    untuned = first_configuration(Matmul(*SHAPE), become(V2.cpuinfo()))
    assert untuned is not None
    assert tiles_of([untuned[0]]) == [("matmul_cpu_packed", 8, 8)]


def test_tiles_for_vectors_of_128_bits_are_not_tried_elsewhere() -> None:
    machine = Machine("any", "any", "avx2", False, 4, 8, 32768, 1 << 20, 1 << 25, 1 << 34)
    problem = Matmul(*SHAPE, "f64")
    variables = variables_of(problem, machine, 1)
    feasible = FeasibleSet.of(
        spaces_for(load_space_file(default_space_file()), problem, "avx2", variables, None)
    )
    widths = {
        dict(feasible.candidate(row).choices)["tile_n"]
        for row in range(0, feasible.rows, 97)
        if feasible.candidate(row).strategy != "matmul_cpu_dot"
    }
    assert widths == {8, 16, 32, 48, 64}


def innermost_loop(assembly: str) -> list[str]:
    """Returns the instructions of the loop without loops in it that multiplies most."""
    lines = assembly.splitlines()
    labels = {match[1]: number for number, line in enumerate(lines) if (match := LABEL.match(line))}
    loops = []
    for number, line in enumerate(lines):
        branch = BRANCH.match(line)
        if branch is None or labels.get(branch[1], number) >= number:
            continue
        body = lines[labels[branch[1]] + 1 : number + 1]
        if not any(LABEL.match(inside) for inside in body):
            loops.append([inside for inside in body if re.match(r"\s+[a-z]", inside)])
    return max(loops, key=lambda body: sum(map(bool, map(FMA.match, body))))


def cross_compiled(problem: Problem, candidate: Candidate, machine: Machine, processor: str) -> str:
    binder = Binder((load_strategy(candidate.strategy),), problem, variables_of(problem, machine, 1), 1)
    text = CpuCompiler().compile(problem, binder.bind(candidate)).code.text
    translate, optimise, generate = (str(llvm_tools.llvm_tool(name)) for name in llvm_tools.COMPILES)
    target = (f"-mcpu={processor}", "-mtriple=aarch64-linux-gnu", "-O3")
    for command in ((translate, "--mlir-to-llvmir"), (optimise, "-S", *target), (generate, *target)):
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
        text = done.stdout
    return text


@NEEDS_LLVM_TOOLS
@pytest.mark.drawn(1)
@pytest.mark.parametrize("processor", ["neoverse-v2", "neoverse-n1", "neoverse-v1"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "i8", "bf16"])
def test_the_inner_loop_of_each_first_configuration_stays_in_registers(dtype: str, processor: str) -> None:
    """B that is read where it lies needs an address per row, of f64 for half as many multiply-adds."""
    has_matrices = processor != "neoverse-n1"
    machine = Machine(
        *("V2", "V2", NEON, False, 64, 64, 65536, 1 << 20, 1 << 25, 1 << 36),
        has_dotprod=True,
        has_i8mm=has_matrices,
        has_arm_bf16=has_matrices,
    )
    if dtype == "bf16" and not machine.has_arm_bf16:
        pytest.skip("Neoverse N1 has no instructions for bf16")
    problem = Matmul(*SHAPE, dtype)
    for candidate in initial_configurations(problem, machine):
        loop = innermost_loop(cross_compiled(problem, candidate, machine, processor))
        assert not [line for line in loop if "[sp" in line], candidate
        share = sum(map(bool, map(FMA.match, loop))) / len(loop)
        reads_b = candidate.strategy == "matmul_cpu_direct" and dtype == "f64"
        assert share >= (0.7 if reads_b else LEAST_SHARE), (candidate, share)


# ``--cpu neoverse-v2``: code by LLVM's tools, which is verified as its text on this processor.

DESCRIBED = [name for name, processor in PROCESSORS.items() if processor.architecture is AARCH64]


def script_for(problem: Problem, processor: str) -> Script:
    return present(default_script(problem, PROCESSORS[processor].machine))


@NEEDS_LLVM_TOOLS
@pytest.mark.drawn(2)
@pytest.mark.parametrize("processor", DESCRIBED)
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16", "i8"])
def test_code_for_a_processor_is_made_and_its_text_verified_here(dtype: str, processor: str) -> None:
    problem = Matmul(33, 70, 40, dtype)
    artifact = CrossCompiler(processor).compile(problem, script_for(problem, processor))
    here = CrossCompiledEvaluator(1)
    verdict = here.verify(problem, here.load(problem, artifact), np.random.default_rng(0))
    assert (verdict.elements, verdict.max_error <= 1) == (33 * 70, True)


@NEEDS_LLVM_TOOLS
@pytest.mark.skipif(
    own_architecture() is AARCH64, reason="by LLVM's tools where code is for another architecture"
)
def test_the_code_is_of_the_processor() -> None:
    problem = Matmul(16, 16, 16)
    artifact = CpuCompiler().compile(problem, script_for(problem, "neoverse-n1"))
    text = assembly(CrossCompiler("neoverse-n1").code_of(artifact))
    assert "<matmul>:" in text
    assert re.search(r"^  fmla\s+v\d+\.4s", text, re.M)


def test_a_script_with_instructions_of_x86_is_refused_for_it() -> None:
    problem = Matmul(64, 64, 64, "i8")
    script = script_for(problem, "sapphirerapids")
    with pytest.raises(CandidateError, match=r"needs .*amx-int8, which neoverse-n1, as Ampere Altra .*"):
        CrossCompiler("neoverse-n1").compile(problem, script)


def test_without_llvm_s_tools_a_line_says_what_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(llvm_tools, "llvm_tool", lambda name: None)
    line = r"^target cpu:apple-m1: code for aarch64 needs mlir-translate, opt, llc of LLVM 22, which"
    with pytest.raises(UsageError, match=line) as refused:
        CrossCpu().machine(TargetName.parse("cpu:apple-m1"))
    assert refused.value.hint == install_extra("arm")
    assert "; for neoverse-n1, neoverse-v1, neoverse-v2, apple-m1 after pip" in CrossCpu().status().reason
    assert CrossCpu().machine(TargetName.parse("cpu:haswell")).isa == "avx2"


@NEEDS_LLVM_TOOLS
def test_what_a_tool_refuses_is_a_failure_of_the_candidate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = partial(
        llvm_tools.write_foreign_object,
        *("llvm.func @f(", tmp_path / "code.o", AARCH64, Stage.COMPILE),
        is_position_independent=False,
    )
    with pytest.raises(CandidateError, match=r"^mlir-translate of LLVM 22: expected"):
        make()
    monkeypatch.setattr(llvm_tools, "TIMEOUT_S", 0.0)
    with pytest.raises(CandidateError, match=r"^mlir-translate: not done in 0 s$"):
        make()
