import functools
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tests.support.architectures import ON_X86_64
from tests.targets.evaluation import fails
from tests.tuning.fakes import present
from tuner.core.errors import CandidateError, Stage
from tuner.core.interfaces import Artifact, Effort, Partition, Script
from tuner.core.machine import Machine, variables_of
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.problem_classes import MatmulProblem
from tuner.core.processors import PROCESSORS
from tuner.core.runs import ChosenStrategy
from tuner.mlir.cpu import lowering
from tuner.mlir.cpu.needed_instructions import instructions_needed
from tuner.runtime.cpu.host import LIMIT_VARIABLE, describe_machine
from tuner.runtime.cpu.jit import host_features
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.choice import default_script, spaces
from tuner.targets import run_plan
from tuner.targets.cpu import compiler as described_compiler
from tuner.targets.cpu import evaluator
from tuner.targets.cpu.compiler import CpuCompiler, CrossCompiler, assembly, hashed_partitions, instructions
from tuner.targets.cpu.evaluator import CompiledOnly, CrossCompiledEvaluator

pytestmark = ON_X86_64  # tests/targets/cpu/test_aarch64.py has the twins for AArch64
LISTING = """
o.o:     file format elf64-x86-64

Disassembly of section .text:

0000000000000000 <matmul>:
   0:	add    $0x1c00,%rdi
   7:	vfmadd231ps (%rsi),%zmm1,%zmm2
0000000000000010 <_mlir_matmul>:
  10:	ret
"""
ADD = """llvm.func @add(%a: f32, %b: f32) -> f32 {
  %c = llvm.fadd %a, %b : f32
  llvm.return %c : f32
}"""


OBJDUMP = shutil.which("objdump") or shutil.which("llvm-objdump")
NEEDS_OBJDUMP = pytest.mark.skipif(not OBJDUMP, reason="needs objdump (binutils)")


def test_addresses_are_left_out() -> None:
    lines = ("<matmul>:", "  add    $0x1c00,%rdi", "  vfmadd231ps (%rsi),%zmm1,%zmm2")
    assert instructions(LISTING).splitlines() == [*lines, "<_mlir_matmul>:", "  ret"]


@pytest.mark.mlir
@NEEDS_OBJDUMP
def test_a_function_becomes_instructions_of_this_processor() -> None:
    text = assembly(ADD)
    assert "<add>:" in text
    assert "addss" in text
    with pytest.raises(CandidateError, match="expected"):
        assembly("llvm.func @add(")


@pytest.fixture
def as_v3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Limits this process to x86-64-v3: AVX2."""
    monkeypatch.setenv(LIMIT_VARIABLE, "x86-64-v3")
    host_features.cache_clear()
    yield describe_machine()
    host_features.cache_clear()


@pytest.mark.mlir
@NEEDS_OBJDUMP
@pytest.mark.parametrize(
    ("problem", "product"),
    [
        (Matmul(33, 70, 40, "f32"), "vfmadd"),
        (Matmul(33, 70, 40, "i8"), "vpm(?:ulld|addwd)"),
        (Matmul(33, 70, 64, weights="i4-g32-f16-a8group"), "vpmaddubsw"),
        (Matmul(1, 70, 64, weights="i4-g32-f16-zp-a8row"), "vpmaddubsw"),
        (Matmul(33, 70, 64, "bf16", weights="i8-g32-f16-a8group"), "vpmaddwd"),
        (Matmul(33, 70, 64, weights="i4-g32-f16"), "vfmadd"),
    ],
    ids=lambda given: getattr(given, "key", given),
)
def test_code_limited_to_avx2_has_no_register_beyond_it(
    as_v3: Machine, problem: Problem, product: str
) -> None:
    assert as_v3.isa == "avx2"
    script = present(default_script(problem, as_v3))
    text = assembly(CpuCompiler().compile(problem, script).code.text)
    assert re.search(rf"{product}\w* .*%ymm", text)
    assert not re.search(r"%zmm|%k[1-7]|%ymm(?:1[6-9]|2\d|3[01])|vpdpbusd", text)


def test_without_objdump_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert assembly(ADD) == ""


# Code for the processors of other machines: its instructions, and what of it is verified here.

# this processor's vectors, and nothing else
PLAIN = replace(describe_machine(), has_bf16=False, has_vnni=False, has_amx_bf16=False, has_amx_int8=False)
NAMED = ("tdpbf16ps", "tdpbssd", "tileloadd", "vpdpbusd", "vdpbf16ps", "vpmaddwd", "vpmaddubsw", "vpmulld")
SLOW = {"vpmulld", "vpmaddubsw"}  # the second one saturates, and is wrong
INSTRUCTIONS = re.compile(rf"(?:\{{vex\}} |\b)(?:{'|'.join(NAMED)})\b|[xyz]mm")


@functools.cache
def bound(strategy: str, processor: str, problem: Problem) -> Script:
    machine = PROCESSORS[processor].machine
    variables, chosen = variables_of(problem, machine, 1), (ChosenStrategy(strategy),)
    found = spaces(chosen, load_space_file(default_space_file()), problem, machine.isa, variables)
    return run_plan.bind(chosen, problem, 1, machine)(FeasibleSet.of(found).candidate(0))


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Machine:
    for module in (described_compiler, evaluator):
        monkeypatch.setattr(module, "describe_machine", lambda: PLAIN)
    return PLAIN


def sources(processor: str, dtype: str, strategy: str) -> tuple[CrossCompiler, Problem, Script]:
    problem = Matmul(33, 70, 40, dtype)
    return CrossCompiler(processor), problem, bound(strategy, processor, problem)


@pytest.mark.mlir
@pytest.mark.drawn(2)
@NEEDS_OBJDUMP
@pytest.mark.parametrize(
    ("processor", "dtype", "strategy", "has", "has_not"),
    [
        ("haswell", "f32", "matmul_cpu_packed", {"ymm"}, {"zmm"}),
        ("znver3", "i8", "matmul_cpu_direct", {"ymm"}, {"zmm", "vpdpbusd"}),
        ("znver3", "i8", "matmul_cpu_vnni", {"ymm", "vpmaddwd"}, SLOW | {"zmm", "vpdpbusd"}),
        ("alderlake", "i8", "matmul_cpu_vnni", {"ymm", "{vex} vpdpbusd"}, SLOW | {"zmm", "vpmaddwd"}),
        ("skylake-avx512", "i8", "matmul_cpu_vnni", {"zmm", "vpmaddwd"}, SLOW | {"vpdpbusd"}),
        ("skylake-avx512", "f32", "matmul_cpu_direct", {"zmm"}, {"vpdpbusd"}),
        ("skylake-avx512", "i8", "matmul_cpu_direct", {"zmm"}, {"vpdpbusd"}),
        ("cascadelake", "i8", "matmul_cpu_vnni", {"zmm", "vpdpbusd"}, {"tdpbssd"}),
        ("icelake-server", "i8", "matmul_cpu_vnni", {"zmm", "vpdpbusd"}, {"tdpbssd"}),
        ("znver4", "bf16", "matmul_cpu_pairs", {"zmm", "vdpbf16ps"}, {"tdpbf16ps"}),
        ("znver5", "i8", "matmul_cpu_vnni", {"zmm", "vpdpbusd"}, {"tdpbssd"}),
        ("sapphirerapids", "bf16", "matmul_cpu_amx", {"zmm", "tdpbf16ps", "tileloadd"}, {"tdpbssd"}),
        ("sapphirerapids", "i8", "matmul_cpu_amx", {"tdpbssd", "tileloadd"}, {"tdpbf16ps"}),
        ("graniterapids", "bf16", "matmul_cpu_amx", {"zmm", "tdpbf16ps", "tileloadd"}, set()),
    ],
)
def test_object_code_has_the_instructions_of_the_processor(
    processor: str, dtype: str, strategy: str, has: set[str], has_not: set[str]
) -> None:
    compiler, problem, script = sources(processor, dtype, strategy)
    code = compiler.code_of(CpuCompiler().compile(problem, script))
    body = assembly(code).split("<_mlir_")[0]  # the wrappers are for the processor that is here
    found = set(INSTRUCTIONS.findall(body))
    assert (found >= has, found & has_not) == (True, set()), found


@pytest.mark.mlir
@pytest.mark.drawn(2)
@NEEDS_OBJDUMP
@pytest.mark.parametrize(
    ("processor", "dtype", "weights", "has", "has_not"),
    [
        ("haswell", "f32", "i4-g32-f16-a8row", {"ymm"}, {"zmm", "vpdpbusd"}),
        ("alderlake", "f32", "i4-g32-f16-a8row", {"ymm", "{vex} vpdpbusd"}, SLOW | {"zmm", "vpmaddwd"}),
        ("alderlake", "i8", "constant", {"ymm", "{vex} vpdpbusd"}, SLOW | {"zmm", "vpmaddwd"}),
        ("znver4", "f32", "i4-g32-f16-a8row", {"zmm", "vpdpbusd"}, {"tdpbssd"}),
        ("sapphirerapids", "f32", "i4-g32-f16-a8row", {"tdpbssd"}, {"tdpbf16ps"}),
        ("sapphirerapids", "bf16", "i8-g32-f16", {"tdpbf16ps"}, {"tdpbssd"}),
        ("sapphirerapids", "i8", "constant", {"tdpbssd"}, {"tdpbf16ps"}),
        ("haswell", "i8", "constant", {"ymm", "vpmaddwd"}, SLOW | {"zmm", "vpdpbusd"}),
    ],
)
def test_object_code_of_packed_weights_is_that_of_the_processor(
    processor: str, dtype: str, weights: str, has: set[str], has_not: set[str]
) -> None:
    problem = Matmul(33, 70, 64, dtype, weights=weights)
    script = present(default_script(problem, PROCESSORS[processor].machine))
    code = CrossCompiler(processor).code_of(CpuCompiler().compile(problem, script))
    found = set(INSTRUCTIONS.findall(assembly(code).split("<_mlir_")[0]))
    assert (found >= has, found & has_not) == (True, set()), found


@pytest.mark.mlir
@pytest.mark.parametrize(
    ("processor", "needs"),
    [
        ("sapphirerapids", {"avx512-bf16", "amx-bf16"}),
        ("znver4", {"avx512-bf16"}),
        ("haswell", set()),
    ],
)
def test_a_processor_that_multiplies_bf16_rounds_to_it(processor: str, needs: set[str]) -> None:
    problem = Matmul(33, 70, 64, "bf16", epilogue="bias_relu", output="bf16", weights="constant")
    script = present(default_script(problem, PROCESSORS[processor].machine))
    code = CpuCompiler().compile(problem, script).code.text
    assert ("llvm.fptrunc" in code, set(instructions_needed(code))) == (bool(needs), needs)


@pytest.mark.mlir
def test_tiles_as_vectors_need_no_processor_that_rounds_to_bf16() -> None:
    problem = Matmul(33, 70, 64, "bf16", epilogue="bias_relu", output="bf16", weights="constant")
    script = present(default_script(problem, PROCESSORS["sapphirerapids"].machine))
    assert instructions_needed(CpuCompiler(emulates=True).compile(problem, script).code.text) == ()


@pytest.mark.mlir
@pytest.mark.parametrize("processor", ["sapphirerapids", "znver4", "haswell"])
def test_sums_before_an_epilogue_are_kept_for_one_tile(processor: str) -> None:
    problem = Matmul(512, 768, 64, "bf16", epilogue="bias_relu", output="bf16", weights="constant")
    script = present(default_script(problem, PROCESSORS[processor].machine))
    code = CpuCompiler().compile(problem, script).code.text
    assert "@malloc(" not in code  # 512 x 768 sums would not be on the stack


@pytest.mark.mlir
def test_each_function_is_compiled_for_the_processor() -> None:
    problem = MatmulProblem("batch_matmul", (16, 16, 16), "f32", batch=3)
    script = bound("matmul_cpu_direct", "znver4", problem)
    code = CrossCompiler("znver4").code_of(CpuCompiler().compile(problem, script))
    heads = [line for line in code.splitlines() if re.match(r" *llvm\.func .*\{$", line)]
    assert len(heads) == 2
    assert all('["target-cpu", "znver4"], ["target-features", "+avx2,+fma,' in head for head in heads)


@pytest.mark.mlir
@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "strategy", "needs"),
    [
        ("f32", "matmul_cpu_packed", ()),
        ("bf16", "matmul_cpu_amx", ("amx-bf16",)),
        ("i8", "matmul_cpu_amx", ("amx-int8",)),
        ("i8", "matmul_cpu_vnni", ("vnni", "avx512")),
    ],
)
def test_what_vectors_can_do_is_verified_on_a_processor_that_has_vectors_alone(
    plain: Machine, dtype: str, strategy: str, needs: tuple[str, ...]
) -> None:
    compiler, problem, script = sources("sapphirerapids", dtype, strategy)
    assert instructions_needed(CpuCompiler().compile(problem, script).code.text) == needs
    artifact, here = compiler.compile(problem, script), CrossCompiledEvaluator(1)
    assert instructions_needed(artifact.code.text) == ()
    verdict = here.verify(problem, here.load(problem, artifact), np.random.default_rng(0))
    assert (verdict.elements, verdict.max_error <= 1) == (33 * 70, True)
    note = "verified is the code as compiled for this processor, with vectors in"
    assert verdict.notes[-1].startswith(note)


@pytest.mark.mlir
def test_what_cannot_run_here_is_compiled_only(plain: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler, problem, script = sources("znver4", "bf16", "matmul_cpu_pairs")
    here = CrossCompiledEvaluator(1)
    loaded = here.load(problem, compiler.compile(problem, script))
    assert isinstance(loaded, CompiledOnly)
    verdict = here.verify(problem, loaded, np.random.default_rng(0))
    reason = f"{plain.processor} has no avx512-bf16"
    assert (verdict.elements, verdict.notes) == (0, (f"compiled only, nothing was verified: {reason}",))

    def fail(module: object) -> None:
        raise CandidateError(Stage.COMPILE, "tiles of 8 rows")

    compiler, problem, script = sources("sapphirerapids", "bf16", "matmul_cpu_amx")
    monkeypatch.setattr(lowering, "tiles_as_vectors", fail)  # tiles that cannot be made of vectors
    loaded = here.load(problem, compiler.compile(problem, script))
    assert loaded == CompiledOnly(f"{plain.processor} has no amx-bf16")


def test_the_text_by_which_trials_are_stored_is_that_of_the_first_version() -> None:
    whole = Partition("main", 0, 0, 8, 24)
    half = Partition("part_1", 4, 0, 4, 24, first=2, matrices=3)
    panel = "Panel(entry='main', row=0, column=0, m=8, n=24, first=0, matrices=1)"
    other = "Panel(entry='part_1', row=4, column=0, m=4, n=24, first=2, matrices=3)"
    texts = [hashed_partitions(partitions) for partitions in ((), (whole,), (whole, half))]
    assert texts == ["", f"({panel},)", f"({panel}, {other})"]  # a fusion has none


@pytest.mark.mlir
@pytest.mark.slow
def test_outcomes_of_equal_code_are_shared_by_all_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    _, problem, script = sources("sapphirerapids", "bf16", "matmul_cpu_amx")
    artifacts: list[Artifact] = []
    for machine in (PLAIN, PROCESSORS["sapphirerapids"].machine):
        monkeypatch.setattr(described_compiler, "describe_machine", lambda machine=machine: machine)
        artifacts.append(CrossCompiler("sapphirerapids").compile(problem, script))
    assert artifacts[0].code.text != artifacts[1].code.text
    assert artifacts[0].sha256 == artifacts[1].sha256
    assert CrossCompiler("graniterapids").compile(problem, script).sha256 != artifacts[0].sha256


@pytest.mark.mlir
def test_a_script_that_the_processor_cannot_run_fails_before_code_is_generated() -> None:
    _, problem, script = sources("sapphirerapids", "bf16", "matmul_cpu_amx")
    with fails(Stage.COMPILE, match=r"^needs amx-bf16, which haswell, as Xeon E5-2680 v3 does not offer$"):
        CrossCompiler("haswell").compile(problem, script)


@pytest.mark.mlir
def test_nothing_is_timed() -> None:
    here, problem, rng = CrossCompiledEvaluator(1), Matmul(8, 8, 8), np.random.default_rng(0)
    assert not here.is_timed
    for time in (partial(here.measure, problem, None), partial(here.measure_together, problem, ())):
        with pytest.raises(CandidateError, match="code for another processor is not timed"):
            time(Effort(), rng)
