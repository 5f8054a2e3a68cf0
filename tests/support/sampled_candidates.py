"""The sample: random feasible candidates of every strategy, with all kinds of problems round-robin."""

import itertools
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.golden_hashes.candidates import golden_candidates
from benchmarks.golden_hashes.machines import PROCESSORS
from benchmarks.gpu_check.points import gpu_strategies
from tests.support.fuzzing import gpu_points
from tests.support.fuzzing.cpu_points import CpuPoints, KernelKind
from tuner.core.candidate import Candidate
from tuner.core.errors import Stage
from tuner.core.gpu import chip_of
from tuner.core.interfaces import Script
from tuner.core.machine import Machine, gpu_machine, variables_of
from tuner.core.problem import Problem
from tuner.core.problem_classes import TextProblem
from tuner.gpu.target.compiler import GpuCompiler
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file, spaces_for
from tuner.space.file.shipped import STRATEGY_SCRIPT
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.strategy import Binder, Strategy, strategy_folder
from tuner.targets.cpu.compiler import CpuCompiler, write_object

THREADS = (1, 2)
MACHINES = {  # with all instructions that a strategy asks for
    isa: replace(machine, has_vnni=True, has_amx_bf16=isa == "avx512", has_amx_int8=isa == "avx512")
    for isa, machine in PROCESSORS.items()
}
EPILOGUES = ("none", "bias_relu")  # others differ in what a linalg.generic computes
LARGEST = 280  # size of a dimension: blocks of 256 columns are cut


@dataclass(frozen=True)
class SampledCandidate:
    """A candidate, and for what it is compiled."""

    problem: Problem
    candidate: Candidate
    threads: int
    machine: str  # a key of MACHINES, or a chip

    @property
    def text(self) -> str:
        """Returns one line that identifies it."""
        return f"{self.problem.key} {self.machine} threads={self.threads} {self.candidate.text}"

    def script(self, templates: Path) -> Script:
        """Returns the script of the strategies in a folder. Raises CandidateError."""
        name = self.candidate.strategy
        text = (templates / name / STRATEGY_SCRIPT).read_text()
        # as if it lay above its folder, where the templates lie that strategies share
        strategy = Strategy(name, templates / STRATEGY_SCRIPT, text)
        variables = variables_of(self.problem, _machine(self.machine), self.threads)
        return Binder((strategy,), self.problem, variables, self.threads).bind(self.candidate)

    def code(self, script: Script) -> str:
        """Returns the LLVM dialect or the PTX that a script gives. Raises CandidateError."""
        if self.machine in MACHINES:
            return CpuCompiler().compile(self.problem, script).code.text
        return GpuCompiler(chip_of(self.machine), lambda: None).compile(self.problem, script).code.text


def machine_code(llvm_text: str) -> bytes:
    """Returns the object file of LLVM dialect, in which the order of constants does not matter."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "code.o"
        write_object(llvm_text, file, Stage.COMPILE)
        return file.read_bytes()


def sampled(count: int, seed: int, strategy: str = "") -> Iterator[SampledCandidate]:
    """Yields ``count`` candidates of each strategy whose name begins with ``strategy``, "" for all."""
    names = sorted(file.parent.name for file in strategy_folder().glob(f"*/{STRATEGY_SCRIPT}"))
    for name in names:
        if name.startswith(strategy):
            rng = np.random.default_rng((seed, zlib.crc32(name.encode())))
            yield from itertools.islice(_of_strategy(name, rng), count)


def _of_strategy(name: str, rng: np.random.Generator) -> Iterator[SampledCandidate]:
    if "_gpu_" in name:
        return _gpu_candidates(name, rng)
    fusions = _fusions(name)
    return _fusion_candidates(name, fusions, rng) if fusions else _cpu_candidates(name, rng)


def _cpu_candidates(name: str, rng: np.random.Generator) -> Iterator[SampledCandidate]:
    kinds: list[tuple[str, CpuPoints, KernelKind]] = []
    for isa, machine in MACHINES.items():
        points = CpuPoints(machine)
        for threads in THREADS:
            of_strategy = [kind for kind in points.kinds(threads) if kind.strategy == name]
            kinds += [(isa, points, kind) for kind in of_strategy if kind.epilogue in EPILOGUES]
    order = [kinds[index] for index in rng.permutation(len(kinds))]
    for isa, points, kind in itertools.cycle(order):
        point = points.draw(kind, rng, LARGEST)
        yield SampledCandidate(point.problem, point.candidate, point.threads, isa)


def _gpu_candidates(name: str, rng: np.random.Generator) -> Iterator[SampledCandidate]:
    assert any(entry.name == name for entry in gpu_strategies())
    kinds = gpu_points.kinds(name)
    for kind in itertools.cycle([kinds[index] for index in rng.permutation(len(kinds))]):
        point = gpu_points.draw(kind, rng)
        yield SampledCandidate(point.problem, point.candidate, 1, point.chip)


def _fusions(name: str) -> list[tuple[Problem, int, str]]:
    """Returns (problem, threads, instruction set) of the golden candidates of fusions of a strategy."""
    return [
        (golden.problem, golden.threads, golden.isa)
        for golden in golden_candidates()
        if golden.candidate.strategy == name and isinstance(golden.problem, TextProblem)
    ]


def _fusion_candidates(
    name: str, fusions: list[tuple[Problem, int, str]], rng: np.random.Generator
) -> Iterator[SampledCandidate]:
    space_file = load_space_file(default_space_file())
    for problem, threads, isa in itertools.cycle(fusions):
        variables = variables_of(problem, _machine(isa), threads)
        feasible = FeasibleSet.of(spaces_for(space_file, problem, isa, variables, (name,)))
        yield SampledCandidate(problem, feasible.candidate(int(rng.integers(feasible.rows))), threads, isa)


def _machine(name: str) -> Machine:
    if name in MACHINES:
        return MACHINES[name]
    return gpu_machine("simulator", chip_of(name), "PTX simulator")
