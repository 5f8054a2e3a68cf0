"""The pages on exported scripts and on names of templates show what their strategies write and see today."""

import json
import re

from benchmarks import first_page
from benchmarks.golden_hashes.machines import AVX512
from tests.docs.guide import ROOT, blocks_of
from tuner.cli.options import parse_candidate
from tuner.core.candidate import Candidate
from tuner.core.gpu import chip_of
from tuner.core.machine import Machine, gpu_machine, variables_of
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.problem_classes import FusedProblem
from tuner.results.exported_trial import with_knob_options
from tuner.space.file.reading import load_space_file, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.strategy import Binder, load_strategy

PAGE = (ROOT / "docs" / "guides" / "reading-a-script.md").read_text()

GPU = gpu_machine("simulator", chip_of("sm_90a"), "any")
ON_CPU = (
    "block_k=0, block_m=96, block_n=128, loop_order=ij, pack_a=0, pack_order=panels, prefetch=0, "
    "prefetch_c=0, split=none, tile_m=4, tile_n=64, unroll_k=4"
)
ON_GPU = (
    "block_k=64, block_m=64, block_n=64, depth=3, exchange=0, group=1, pack=0, prefetch=1, "
    "promote=0, shared=swizzle, split_by=none, splits=1, warps_m=2, warps_n=2"
)


def shown(text: str) -> list[str]:
    return [block.text for block in blocks_of(text) if block.language == "mlir"]


def exported(problem: Problem, machine: Machine, text: str) -> str:
    candidate, variables = parse_candidate(text), variables_of(problem, machine, 1)
    file = load_space_file(default_space_file())
    (space,) = spaces_for(file, problem, machine.isa, variables, (candidate.strategy,))
    binder = Binder((load_strategy(candidate.strategy),), problem, variables, 1)
    return with_knob_options(binder.bind(candidate).text, candidate, binder, space)


def test_the_page_has_the_main_steps_of_scripts_for_cpus_and_gpus_in_their_order() -> None:
    cpu, gpu = PAGE.split("## A script for a GPU")
    on_cpu = exported(Matmul(512, 512, 512), AVX512, f"matmul_cpu_packed({ON_CPU})")
    on_gpu = exported(Matmul(256, 256, 256, "f16"), GPU, f"matmul_gpu_mma_sync({ON_GPU})")
    assert min(len(shown(cpu)), len(shown(gpu))) >= 4
    for text, rest in ((cpu, on_cpu), (gpu, on_gpu)):
        for step in shown(text):
            _, found, rest = rest.partition(step)
            assert found, step


def test_the_lines_of_the_readme_are_of_one_script_before_and_after_its_tuning() -> None:
    readme = blocks_of((ROOT / "README.md").read_text())
    before, after = (joined(block.text) for block in readme if block.language == "mlir")
    assert before <= joined(first_page.SCRIPT.read_text())
    _, best = json.loads(first_page.FILE.read_text())["rows"]
    assert after <= joined(first_page.bound(best["knobs"]))
    names = [sorted(re.findall(r'knob<"(\w+)">', " ".join(lines))) for lines in (before, after)]
    assert names == [["tile_m", "tile_n"]] * 2


def joined(text: str) -> set[str]:
    """Returns the lines of a text without indents, those that go on in the next line joined with it."""
    return {line.strip() for line in text.replace("\n  from options", " from options").splitlines()}


# What templates see, no more and no less.

TEMPLATES = (ROOT / "docs" / "reference" / "templates.md").read_text()
PROCESSOR = Machine("any", "any", "avx512", True, 2, 2, 49152, 1 << 20, 1 << 25, 1 << 34)
EVERYWHERE, PROCESSORS, GPUS, FUSIONS = (
    frozenset(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", part, re.MULTILINE))))
    for part in re.split(r"^For (?:processors|GPUs|fusions) also:$", TEMPLATES, flags=re.MULTILINE)
)


def seen(machine: Machine, problem: Problem) -> frozenset[str]:
    """Returns the names that a template without knobs sees."""
    binder = Binder((), problem, variables_of(problem, machine, threads=1), threads=1)
    return frozenset(binder.names_for(Candidate.of("any", {})))


def test_the_page_lists_what_templates_see_of_a_panel_too() -> None:
    assert seen(PROCESSOR, Matmul(64, 64, 64)) == EVERYWHERE | PROCESSORS
    assert seen(GPU, Matmul(64, 64, 64)) == EVERYWHERE | GPUS
    fusion = FusedProblem("rows", (4, 8, 1), "f32", text="func.func @fusion() {}")
    assert seen(PROCESSOR, fusion) == EVERYWHERE | PROCESSORS | FUSIONS
    problem = Matmul(64, 64, 64)
    binder = Binder((), problem, variables_of(problem, PROCESSOR, threads=1), threads=1)
    (partition,) = binder.names_for(Candidate.of("any", {}))["panels"]
    (row,) = (line for line in TEMPLATES.splitlines() if line.startswith("| `panels` |"))
    assert frozenset(re.findall(r"`(\w+)`", row)) == {"panels", "split", *partition}
