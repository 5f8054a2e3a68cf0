"""Compiles everything that a visit runs, on a machine without a GPU: ``make gpu-visit-prepare``.

What the folder has from the same sources and the same ptxas is kept. A program that cannot be compiled is
listed in the manifest with the reason; a micro-kernel whose machine code has another form than meant as well.
"""

import hashlib
import itertools
import math
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.gpu_check.points import Case, built, cases, compiled, first_built, gpu_strategies, is_allowed
from benchmarks.gpu_check.sanitizer import sanitized_case
from benchmarks.gpu_visit.candidates import PlannedCandidate, planned
from benchmarks.gpu_visit.code_folder import COMPARISON, SANITIZED, CodeEntry, CodeFolder, Manifest, store
from benchmarks.gpu_visit.comparison import CONVERSIONS, comparison
from benchmarks.gpu_visit.micro_kernels import MicroKernel
from benchmarks.gpu_visit.micro_plan import micro_kernels
from tests.support.gpu_point import GpuPoint, feasible_set
from tests.support.gpu_points import require_ptxas
from tuner.core.candidate import CUDA, TargetName
from tuner.core.compiled_code import KernelCode
from tuner.core.errors import CandidateError, Refusal, UsageError
from tuner.core.gpu import chip_of
from tuner.core.machine import gpu_machine
from tuner.gpu.ptxsim.target.cycle_model import predicted
from tuner.gpu.target.compiler import gpu_compiler_build, locate
from tuner.gpu.target.sass import listing_of, read_kernels
from tuner.mlir.fingerprint import GPU_SOURCES, sources_sha256
from tuner.search.cost_model.configurations import model_of

WORKERS = 2
MICRO, CORRECTNESS = "micro_kernels", "correctness"
# What code and predictions are made from, next to the sources of the compiler; by section, else STRATEGIES
STRATEGIES = ("strategies", "tuner/search/cost_model", "tuner/gpu/target")
SOURCES = {
    COMPARISON: ("benchmarks/gpu_visit/comparison.py",),
    MICRO: tuple(
        f"benchmarks/gpu_visit/{name}.py"
        for name in ("micro_kernels", "micro_plan", "ptx_text", "wgmma_kernels", "prepare")
    ),
}
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class CompileJob:
    """One program that is to be compiled, and how; ``text`` identifies it among those of its section."""

    section: str
    name: str
    chip: str
    make: "Callable[[CompileJob], Made]"
    item: object  # what ``make`` takes: a candidate, a case, a micro-kernel's place, a result's type


@dataclass(frozen=True)
class MicroPlace:
    """A measurement of a micro-kernel, whose functions cannot be sent to another process."""

    kernel: int  # its place among all micro-kernels
    run: int  # the place among its measurements


@dataclass(frozen=True)
class Made:
    """What a job made."""

    entry: CodeEntry
    program: KernelCode
    inputs: tuple[tuple[str, bytes], ...] = ()


def prepare(folder: Path, chip: str, *, is_quick: bool, report: Callable[[str], None]) -> CodeFolder:
    """Compiles what is missing in the folder, and writes its manifest. Raises UsageError without ptxas."""
    folder.mkdir(parents=True, exist_ok=True)
    ptxas = require_ptxas()
    build = repr((gpu_compiler_build(chip_of(chip), ptxas, GPU_SOURCES), bool(locate("nvdisasm"))))
    known = _known(folder)
    wanted = tuple(jobs(chip, is_quick=is_quick))
    keys = {job: _key(job, build) for job in wanted}
    missing = [job for job in wanted if keys[job] not in known]
    report(f"{len(wanted)} programs, {len(missing)} to be compiled")
    for number, (job, entry) in enumerate(_compiled(missing, folder, keys), 1):
        known[keys[job]] = entry
        if entry.failure:
            report(f"{job.section} {job.name}: {entry.failure}")
        if number % 20 == 0 or number == len(missing):
            report(f"{number} of {len(missing)}")
            _written(folder, chip, ptxas.version, tuple(known.values()))
    return _written(folder, chip, ptxas.version, tuple(known[keys[job]] for job in wanted), is_whole=True)


def jobs(chip: str, *, is_quick: bool) -> Iterator[CompileJob]:
    """Yields everything that a visit runs: comparisons, micro-kernels, candidates, small cases."""
    for result in CONVERSIONS:
        yield CompileJob(COMPARISON, result, chip, _comparison, result)
    for place, kernel in enumerate(micro_kernels()):
        for number, run in enumerate(itertools.islice(kernel.runs, 1 if is_quick else None)):
            yield CompileJob(
                MICRO, f"{kernel.name}: {run.label}", chip, _micro_kernel, MicroPlace(place, number)
            )
    for candidate in planned(chip, is_quick=is_quick):
        yield CompileJob(candidate.section, candidate.name, chip, _candidate, candidate)
    for case in itertools.islice(cases(chip), 2 if is_quick else None):
        yield CompileJob(CORRECTNESS, case.name, chip, _case, case)
    for entry in itertools.islice(gpu_strategies(), 1 if is_quick else None):
        case = sanitized_case(entry.name)
        if is_allowed(entry, case.problem, chip):
            yield CompileJob(SANITIZED, case.name, chip, _sanitized, case)


def _compiled(
    missing: list[CompileJob], folder: Path, keys: dict[CompileJob, str]
) -> Iterator[tuple[CompileJob, CodeEntry]]:
    """Compiles by several processes; yields in order, once code and inputs are in the folder."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, context) as processes:
        for job, made in zip(missing, processes.map(_made, missing, chunksize=4), strict=True):
            if isinstance(made, Refusal):
                yield job, CodeEntry(job.section, job.name, keys[job], made.text)
                continue
            files = tuple((name, store(folder, content)) for name, content in made.inputs)
            code = store(folder, made.program.binary)
            yield job, replace(made.entry, key=keys[job], code=code, inputs=files)


def _made(job: CompileJob) -> "Made | Refusal":
    try:
        return job.make(job)
    except (CandidateError, UsageError) as error:
        return Refusal(str(error))


def _candidate(job: CompileJob) -> Made:
    assert isinstance(job.item, PlannedCandidate)
    point = job.item.point
    program = compiled(point, TargetName(CUDA, job.chip))
    entry = _entry(job, program)
    by_machine_code = predicted(point.problem, program)
    return Made(
        replace(
            entry,
            problem=point.problem,
            candidate=point.candidate,
            by_knobs=_by_knobs(point),
            by_machine_code=None if by_machine_code is None else by_machine_code.cycles,
        ),
        program,
    )


def _by_knobs(point: GpuPoint) -> float | None:
    """Returns the cycles that the cost model expects of a configuration; None without a model."""
    feasible = feasible_set(point.problem, point.candidate.strategy, point.chip)
    row = feasible.row_of(point.candidate)
    model = model_of(feasible.spaces[0], point.problem, gpu_machine(CUDA, chip_of(point.chip), point.chip), 1)
    if row is None or model is None:
        return None
    cycles = float(model.costs(feasible.index[0][row : row + 1], {})[0])
    if math.isfinite(cycles):
        return cycles
    return None


def _case(job: CompileJob) -> Made:
    assert isinstance(job.item, Case)
    point, program = built(job.item, TargetName(CUDA, job.chip))
    return Made(replace(_entry(job, program), problem=point.problem, candidate=point.candidate), program)


def _sanitized(job: CompileJob) -> Made:
    assert isinstance(job.item, Case)
    point, program = first_built(job.item, TargetName(CUDA, job.chip))
    return Made(replace(_entry(job, program), problem=point.problem, candidate=point.candidate), program)


def _comparison(job: CompileJob) -> Made:
    program = require_ptxas().assemble(comparison(job.chip, str(job.item)))
    return Made(_entry(job, program), program)


def _micro_kernel(job: CompileJob) -> Made:
    assert isinstance(job.item, MicroPlace)
    kernel = micro_kernels()[job.item.kernel]
    run = kernel.runs[job.item.run]
    program = require_ptxas().assemble(kernel.program(job.chip, run))
    require_form(kernel, program)
    entry = replace(_entry(job, program), unit=kernel.unit, operations=kernel.operations)
    return Made(entry, program, tuple((name, words.tobytes()) for name, words in run.inputs.items()))


def require_form(kernel: MicroKernel, program: KernelCode) -> None:
    """Raises UsageError where the machine code has another form than meant; nothing without nvdisasm."""
    tool = locate("nvdisasm")
    if tool is None:
        return
    (code,) = read_kernels(listing_of(program.binary, tool.path))
    fault = kernel.fault(code)
    if fault:
        raise UsageError(f"{kernel.name}: ptxas has not kept the form: {fault}")


def _entry(job: CompileJob, program: KernelCode) -> CodeEntry:
    sha256 = hashlib.sha256(program.text.encode()).hexdigest()
    return CodeEntry(
        job.section,
        job.name,
        "",
        launches=program.launches,
        buffers=program.buffers,
        resources=program.resources,
        ptx_sha256=sha256,
    )


def _known(folder: Path) -> dict[str, CodeEntry]:
    """Returns the entries of an earlier preparation by their keys."""
    try:
        earlier = CodeFolder.read(folder)
    except UsageError:
        return {}
    return {entry.key: entry for entry in earlier.manifest.entries if not entry.failure}


def _written(
    folder: Path, chip: str, ptxas: str, entries: tuple[CodeEntry, ...], *, is_whole: bool = False
) -> CodeFolder:
    """Writes the manifest; of a whole preparation, files that it does not name are deleted."""
    code = CodeFolder(folder, Manifest(chip, ptxas, entries))
    code.write()
    if is_whole:
        named = {name for name, _ in code.files}
        for file in folder.iterdir():
            if file.name not in named:
                file.unlink()
    return code


def _key(job: CompileJob, build: str) -> str:
    sources = sources_sha256(SOURCES.get(job.section, STRATEGIES), ROOT)
    return hashlib.sha256(f"{build} {sources} {job.section} {job.name} {job.chip}".encode()).hexdigest()
