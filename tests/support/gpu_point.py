"""Points of the GPU strategies: bound, compiled, and run on the PTX simulator."""

import functools
from dataclasses import dataclass

import numpy as np

from tuner.core.candidate import Candidate, Value
from tuner.core.compiled_code import KernelCode, buffers_of
from tuner.core.gpu import chip_of
from tuner.core.machine import gpu_machine
from tuner.core.problem import Problem
from tuner.core.records import Verdict
from tuner.gpu.mlir.lowering import lower_to_program
from tuner.gpu.payload.gpu import gpu_payload_mlir
from tuner.gpu.payload.scratch import scratch_in
from tuner.gpu.ptxsim.launch import Simulation
from tuner.gpu.ptxsim.target.evaluator import simulate_program
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.payload.comparison import compare
from tuner.payload.drawing import draw, draw_base
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import load_space_file, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.strategy import Binder, load_strategy


@dataclass(frozen=True)
class GpuPoint:
    """A configuration of a GPU strategy for one problem and one chip."""

    problem: Problem
    candidate: Candidate
    chip: str = "sm_90"
    multiprocessors: int = 0  # 0: not known, as of the simulator

    @property
    def variables(self) -> tuple[tuple[str, Value], ...]:
        """Returns the variables of constraints and templates, in addition to the knobs."""
        known = gpu_variables(self.problem, self.chip)
        if self.multiprocessors == 0:
            return known
        return tuple((name, self.multiprocessors if name == "sm_count" else number) for name, number in known)

    def script(self) -> str:
        """Returns the bound script."""
        strategy = load_strategy(self.candidate.strategy)
        return Binder((strategy,), self.problem, self.variables, 1).bind(self.candidate).text

    def program(self, script: str | None = None) -> KernelCode:
        """Compiles the point, or the given script in place of its own, to PTX. Raises CandidateError."""
        text = self.script() if script is None else script
        with transform.new_context(), ir.Location.unknown():
            scratch = scratch_in(text, self.problem)
            module = transform.parse(gpu_payload_mlir(self.problem, scratch), "payload")
            transform.apply_script(module, transform.parse(text, "script"))
            buffers = buffers_of(self.problem.one_matmul)
            return lower_to_program(module, chip_of(self.chip), buffers, self.problem.batch)

    def run(
        self, program: KernelCode, seed: int = 0, schedule_seed: int | None = None
    ) -> tuple[Verdict, str, tuple[Simulation, ...]]:
        """Simulates every block on random inputs, threads in fixed or random order; C starts as
        NaN, or as numbers that are added to."""
        rng = np.random.default_rng(seed)
        inputs = draw(self.problem, draw_base(self.problem, rng), rng)
        c = inputs.output_before
        arrays = inputs.named | {"c": c}
        simulations = simulate_program(program, arrays, schedule_seed=schedule_seed)
        return *compare(inputs, c), simulations


def gpu_variables(problem: Problem, chip: str) -> tuple[tuple[str, Value], ...]:
    """Returns the variables of a problem on a chip."""
    machine = gpu_machine("simulator", chip_of(chip), "PTX simulator")
    return (*problem.variables(), *machine.limits(), ("threads", 1))


@functools.lru_cache(maxsize=4)
def feasible_set(problem: Problem, strategy: str, chip: str = "sm_90") -> FeasibleSet:
    """Returns the feasible set of the default search space for one strategy."""
    variables = gpu_variables(problem, chip)
    space_file = load_space_file(default_space_file())
    return FeasibleSet.of(spaces_for(space_file, problem, "ptx", variables, (strategy,)))
