"""The fixed candidates, with their scripts and code.

``candidates.json`` gives each candidate by its knobs, so that a changed search space has no effect here. The
candidates were drawn from an earlier search space: per strategy, type, layout and chip the first random
feasible point that compiles, of a generator with the place in the list as its seed; some with a given knob.
Those of fusions are initial configurations; ``fusions`` has the fusions' texts.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.golden_hashes.machines import machine_of
from benchmarks.golden_hashes.tuner_names import (
    GROUPED,
    Artifact,
    Binder,
    Candidate,
    CpuCompiler,
    FusedProblem,
    GpuCompiler,
    GroupedMatmul,
    KernelCode,
    Machine,
    Matmul,
    MatmulProblem,
    Problem,
    Script,
    TargetName,
    chip_of,
    encode,
    facts_of,
    load_strategy,
    parse_sizes,
    variables_of,
)

FILE = Path(__file__).with_name("candidates.json")
FUSIONS = FILE.with_name("fusions")  # the text of a fusion each


@dataclass(frozen=True)
class GoldenCandidate:
    """A candidate with everything that determines its script and its code."""

    number: int  # its place in the file, from 1
    target: TargetName
    isa: str  # "avx512" or "avx2"; "ptx" of a GPU
    threads: int
    problem: Problem
    candidate: Candidate

    @property
    def name(self) -> str:
        """Returns its name for people."""
        where = self.isa if self.target.kind == "cpu" else self.target.text
        threads = f" {self.threads} threads" if self.threads > 1 else ""
        return f"{self.number:02d} {self.candidate.strategy} {self.problem.key} {where}{threads}"

    @property
    def machine(self) -> Machine:
        """Returns the machine for which its code is compiled."""
        return machine_of(self.target, self.isa)


@dataclass(frozen=True)
class BuiltCandidate:
    """A candidate with its script and its code."""

    golden: GoldenCandidate
    script: Script
    artifact: Artifact

    @property
    def texts(self) -> dict[str, str]:
        """Returns the texts by the name of the part."""
        code = {"script": self.script.text, "code": self.artifact.code.text}
        program = self.artifact.code
        if not program.is_for_device:
            return code | {"panels": _lines(encode(self.artifact.partitions))}
        return code | {"launches": _lines(_without_code(program))}


def golden_candidates() -> tuple[GoldenCandidate, ...]:
    """Returns the candidates of the file."""
    return tuple(_candidate(number, row) for number, row in enumerate(json.loads(FILE.read_text()), 1))


def bound(golden: GoldenCandidate) -> Script:
    """Returns the script of a candidate. Raises CandidateError: its template asks for a missing knob."""
    strategies = (load_strategy(golden.candidate.strategy),)
    variables = variables_of(golden.problem, golden.machine, golden.threads)
    return Binder(strategies, golden.problem, variables, golden.threads).bind(golden.candidate)


def build(golden: GoldenCandidate) -> BuiltCandidate:
    """Binds and compiles, to PTX without machine code. Raises CandidateError."""
    script = bound(golden)
    if golden.target.kind == "cpu":
        return BuiltCandidate(golden, script, CpuCompiler().compile(golden.problem, script))
    compiler = GpuCompiler(chip_of(golden.target.detail), lambda: None)
    return BuiltCandidate(golden, script, compiler.compile(golden.problem, script))


def _candidate(number: int, row: dict[str, Any]) -> GoldenCandidate:
    operation, shape, *options = row["problem"]
    dtype, layout, epilogue, output = options
    fusion = (FUSIONS / row["fusion"]).read_text() if "fusion" in row else ""
    batch, sizes = _sizes_of_fusion(shape) if fusion else parse_sizes(operation, shape)
    options = (sizes, dtype, layout, epilogue, output, batch)
    problem: Problem
    if fusion:
        problem = FusedProblem(operation, *options, text=fusion, facts=facts_of(fusion))
    elif operation == GROUPED:
        m, n, k = sizes
        problem = GroupedMatmul(batch, m, n, k, dtype, layout, output)
    elif "weights" not in row:
        problem = MatmulProblem(operation, *options)
    else:
        m, n, k = sizes
        problem = Matmul(m, n, k, dtype, output=output, weights=row["weights"])
    return GoldenCandidate(
        number,
        TargetName.parse(row["target"]),
        row["isa"],
        row["threads"],
        problem,
        Candidate.of(row["strategy"], row["knobs"]),
    )


def _sizes_of_fusion(shape: str) -> tuple[int, tuple[int, ...]]:
    *batch, m, n, k = map(int, shape.split("x"))
    return (batch or [1])[0], (m, n, k)


def _without_code(program: KernelCode) -> dict[str, Any]:
    """Returns the launches and buffers of a program."""
    return {"launches": encode(program.launches), "buffers": encode(program.buffers)}


def _lines(document: Any) -> str:
    return json.dumps(document, indent=1) + "\n"
