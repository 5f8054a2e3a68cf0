"""The format "iree": configurations timed against IREE's default, and a tuning spec of those that win.

Tiles do not carry over: a register tile of 12 x 32 that wins in tuner's code was 3 times slower than IREE's
default, 8 x 32 was the fastest (docs/decisions/libraries.md). So an entry's knobs are one proposal of
several, and times in IREE's runtime decide. The spec has a matcher of exact sizes for each winning
configuration:

    transform.named_sequence @match_0(%op) {
      ... transform.iree.match.contraction %op, lhs_type = f32, ...
      ... transform.iree.match.dims_equal %m, [128]
      %config = transform.param.constant #iree_codegen.compilation_info<...>

Format: https://iree.dev/reference/tuning. The attributes are those of one version of the compiler.
"""

import itertools
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from tuner.analysis.ratios import Comparable, NotComparable, comparison
from tuner.core.dtypes import CPU_DTYPES
from tuner.core.errors import TunerError, UsageError, reason_of
from tuner.core.interfaces import Effort
from tuner.core.problem import NUMPY_ALIGNMENT, WARM, Problem
from tuner.core.records import Measurement, Verdict
from tuner.core.reliability import RELIABLE
from tuner.core.round_quality import Evidence
from tuner.core.serialization import printable, seconds_text
from tuner.models.library.entries import LibraryEntry, LibraryFile
from tuner.payload.comparison import compare
from tuner.payload.cpu import MAPS, tensor_program
from tuner.payload.drawing import draw, draw_base
from tuner.payload.reference import Inputs
from tuner.runtime import timing
from tuner.runtime.timing_lock import TimingLock, holder_text
from tuner.tuning.remeasurement import noise_of
from tuner.version import __version__

# of the register tile that was the fastest
ROWS = 8
COLUMNS = 32
BLOCKS = ((64, 64), (128, 128), (128, 256), (64, 512))  # rows, columns of C that a thread computes at a time
STEPS = (1, 4, 16)  # of k, in one iteration of the innermost loop
MOST = 12  # configurations of one problem: each is compiled in one to two seconds
NUMBERED = {"m": 0, "n": 1, "k": 2}  # dimensions as IREE numbers them, without a batch
APPLIED = "__tuning_spec_applied__"  # on each operation that a spec configured
OP = "!transform.any_op"
PARAM = "!transform.any_param"
TIMEOUT_S = 300.0
# Code for this processor, on the thread that calls; as the times were taken. A spec names them.
OPTIONS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-opt-level=O2",
)
ERROR = re.compile(r"\berror:\s(.*)")  # a line that MLIR prints, after its place
INSTALL = "pip install iree-base-compiler==3.13.0 iree-base-runtime==3.13.0"
DRIVER = "local-sync"  # runs all work on the thread that calls
SIEVE = Effort(budget_s=0.05, min_samples=6, max_samples=30)  # of each configuration
FINAL = Effort(budget_s=0.5, min_samples=12, max_samples=60)  # of the fastest, the default, the default again
ATTEMPTS = 3  # final timings, where other programs disturb
SEED = 0
# IREE computes f64 as f32 unless an option of its compiler says otherwise; f16 was not tried with it.
DTYPES = tuple(dtype for dtype in CPU_DTYPES if dtype not in ("f64", "f16"))
FILE = "tuning_spec.mlir"


@dataclass(frozen=True)
class IreeConfiguration:
    """Tile sizes of IREE's pipeline DoubleTilingExpert for one contraction."""

    distribution: tuple[int, int]  # rows and columns of C of one work group
    tile: tuple[int, int]  # rows and columns of C in registers
    step: int  # of k

    def attribute(self, problem: Problem) -> str:
        """Returns the MLIR attribute ``#iree_codegen.compilation_info<...>`` for a problem.

        The matrices of a batch are computed one after the other.
        """
        lead = [1] * len(problem.lead)
        lists = (
            ("distribution", [*lead, *self.distribution, 0]),
            ("vector_common_parallel", [*lead, *self.tile, 0]),
            ("vector_reduction", [0] * len(lead) + [0, 0, self.step]),
        )
        sizes = ", ".join(f"{name} = {values}" for name, values in lists)
        pipeline = "#iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>"
        lowering = f"#iree_cpu.lowering_config<{sizes}>"
        return f"#iree_codegen.compilation_info<lowering_config = {lowering}, translation_info = {pipeline}>"


def configurations_for(entry: LibraryEntry) -> tuple[IreeConfiguration, ...]:
    """Returns at most MOST configurations to time for an entry's problem; those of its knobs come first."""
    m, n, k = entry.problem.sizes
    usual = (
        IreeConfiguration(blocks, (ROWS, COLUMNS), step) for step, blocks in itertools.product(STEPS, BLOCKS)
    )
    fitting = []
    for configuration in (*_of_knobs(entry), *usual):
        blocks = (min(configuration.distribution[0], m), min(configuration.distribution[1], n))
        tile = (min(configuration.tile[0], m), min(configuration.tile[1], n))
        fitting.append(IreeConfiguration(blocks, tile, min(configuration.step, k)))
    return tuple(dict.fromkeys(fitting))[:MOST]


def _of_knobs(entry: LibraryEntry) -> Iterator[IreeConfiguration]:
    m, n, _ = entry.problem.sizes
    blocks = (entry.size("block_m") or m, entry.size("block_n") or n)
    rows = entry.size("tile_m")
    columns = entry.size("tile_n")
    step = entry.size("unroll_k") or 1
    if rows and columns:
        yield IreeConfiguration(blocks, (rows, columns), step)
    yield IreeConfiguration(blocks, (ROWS, COLUMNS), step)


def contraction_of(problem: Problem) -> Problem:
    """Returns the problem without what IREE's matchers do not see: epilogue, type of C, alignment, caches."""
    return replace(problem, epilogue="none", output="", align=NUMPY_ALIGNMENT, cache=WARM)


def indexing_maps(problem: Problem) -> str:
    """Returns the indexing maps of A, B and C as an MLIR attribute; dimensions are named d0, d1, ..."""
    shift = 1 if problem.lead else 0
    names = {name: f"d{index + shift}" for name, index in NUMBERED.items()}
    lead = ["d0"] * shift
    domain = ", ".join((*lead, *names.values()))
    operands = (*MAPS[problem.layout], "mn")
    results = (", ".join([*lead, *map(names.__getitem__, operand)]) for operand in operands)
    return "[" + ", ".join(f"affine_map<({domain}) -> ({result})>" for result in results) + "]"


def program_of(problem: Problem) -> str:
    """Returns an MLIR program for IREE: the public function ``product`` of tensors A and B returns C."""
    maps = "" if problem.layout == "nn" else f"indexing_maps = {indexing_maps(problem)}"
    return tensor_program(problem, "product", problem.accumulator, maps)


@dataclass(frozen=True)
class SpecEntry:
    """A contraction, the configuration that a tuning spec gives it, and a line on its origin."""

    problem: Problem
    configuration: IreeConfiguration
    note: str


def spec_text(entries: tuple[SpecEntry, ...], header: tuple[str, ...] = ()) -> str:
    """Returns the text of an IREE tuning spec; of several entries that match an op, the first applies.

    ``header``: lines of text without "//", which become comments at the top.
    """
    comments = "".join(f"// {printable(' '.join(line.split()))}\n" for line in header)
    matchers = "".join(_matcher(index, entry) for index, entry in enumerate(entries))
    pairs = ",\n".join(f"      @match_{index} -> @apply_config" for index in range(len(entries)))
    return f"""{comments}module @tuner_library
    attributes {{iree_codegen.tuning_spec_with_default_entrypoint, transform.with_named_sequence}} {{
  transform.named_sequence @apply_config(%op: {OP} {{transform.readonly}},
      %config: {PARAM} {{transform.readonly}}) {{
    transform.annotate %op "compilation_info" = %config : {OP}, {PARAM}
    transform.annotate %op "{APPLIED}" : {OP}
    transform.yield
  }}
{matchers}  transform.named_sequence @__kernel_config(%variant: {OP} {{transform.consumed}}) -> {OP}
      attributes {{iree_codegen.tuning_spec_entrypoint}} {{
    %res = transform.foreach_match in %variant
{pairs} : ({OP}) -> {OP}
    transform.yield %res : {OP}
  }}
}}
"""


def _matcher(index: int, entry: SpecEntry) -> str:
    problem = entry.problem
    source = problem.stored_dtype
    sums = problem.accumulator
    extents = (("batch", list(problem.lead)), *zip("mnk", ([size] for size in problem.sizes), strict=True))
    sizes = "\n".join(
        f"    transform.iree.match.dims_equal %{name}, {size} : !transform.param<i64>"
        for name, size in extents
    )
    return f"""  // {printable(" ".join(entry.note.split()))}
  transform.named_sequence @match_{index}(%op: {OP} {{transform.readonly}}) -> ({OP}, {PARAM}) {{
    %batch, %m, %n, %k = transform.iree.match.contraction %op,
      lhs_type = {source}, rhs_type = {source}, output_type = {sums},
      indexing_maps = {indexing_maps(problem)}
      : {OP} -> !transform.param<i64>
{sizes}
    %config = transform.param.constant {entry.configuration.attribute(problem)} -> {PARAM}
    transform.yield %op, %config : {OP}, {PARAM}
  }}
"""


class IreeCompileError(TunerError):
    """IREE's compiler fails on a program, or takes too long; the message has its first error."""


@dataclass(frozen=True)
class IreeCompiler:
    """The program ``iree-compile`` of the wheel, and its version."""

    path: Path
    version: str

    def compile(self, program: str, spec: str = "") -> bytes:
        """Compiles MLIR text for IREE's runtime, with the tuning spec ``spec``, unless it is "".

        A spec that does not fit is ignored by IREE. Raises IreeCompileError if the compiler fails, or takes
        longer than TIMEOUT_S.
        """
        return self._run(program, spec, ())

    def applied(self, program: str, spec: str) -> int:
        """Returns the number of operations of a program that a tuning spec configures; 0: IREE ignores it.

        Raises IreeCompileError if the compiler fails, or takes longer than TIMEOUT_S.
        """
        listed = self._run(program, spec, ("--compile-to=executable-configurations",))
        return listed.decode(errors="replace").count(APPLIED)

    def _run(self, program: str, spec: str, options: tuple[str, ...]) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "program.mlir"
            output = Path(folder) / "program.out"
            source.write_text(program)
            if spec:
                file = Path(folder) / "spec.mlir"
                file.write_text(spec)
                options = (*options, f"--iree-codegen-tuning-spec-path={file}")
            command = [str(self.path), *OPTIONS, *options, str(source), "-o", str(output)]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False
                )
            except subprocess.TimeoutExpired as error:
                raise IreeCompileError(f"iree-compile: no end after {TIMEOUT_S:.0f} s") from error
            if done.returncode:
                lines = ERROR.findall(done.stderr) or done.stderr.splitlines() or ["no message"]
                raise IreeCompileError(f"iree-compile: {reason_of(lines[0])}")
            return output.read_bytes()


def find_compiler() -> IreeCompiler:
    """Returns IREE's compiler. Raises UsageError if the compiler or the runtime is not installed."""
    names = ("compiler", "runtime")
    missing = [name for name in names if find_spec("iree") is None or find_spec(f"iree.{name}") is None]
    if missing:
        raise UsageError(f"format iree: IREE's {' and '.join(missing)} is not installed", INSTALL)
    from iree.compiler import version
    from iree.compiler.tools import binaries

    return IreeCompiler(Path(binaries.find_tool("iree-compile")), str(version.VERSION))


class IreeProduct:
    """The function ``product`` of a compiled program, with random inputs in IREE's memory.

    Raises TunerError for code that IREE's runtime does not load.
    """

    def __init__(self, code: bytes, problem: Problem, seed: int = 0) -> None:
        from iree import runtime

        rng = np.random.default_rng(seed)
        self._inputs: Inputs = draw(problem, draw_base(problem, rng), rng)
        config = runtime.Config(DRIVER)
        context = runtime.SystemContext(config=config)
        try:
            context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, code))
        except (RuntimeError, ValueError) as error:
            raise TunerError(f"IREE's runtime: {reason_of(error)}") from error
        self._function: Any = context.modules.module.product
        arrays = self._inputs.arrays[:2]
        self._arguments = [
            runtime.asdevicearray(config.device, np.ascontiguousarray(array)) for array in arrays
        ]

    def verify(self) -> tuple[Verdict, str]:
        """Compares all elements of C with a float64 reference; returns the verdict and its text.

        Raises TunerError if IREE's runtime fails.
        """
        try:
            result = np.asarray(self._function(*self._arguments).to_host())
        except (RuntimeError, ValueError) as error:
            raise TunerError(f"IREE's runtime: {reason_of(error)}") from error
        return compare(self._inputs, result.reshape(-1, result.shape[-1]))

    @property
    def stopwatch(self) -> timing.Stopwatch:
        """Returns a stopwatch that times calls; where calls are short, an untimed one comes first."""

        def repeat(times: int) -> None:
            for _ in range(times):
                self._function(*self._arguments)

        return timing.with_untimed_calls(timing.stopwatch_of(repeat))


# Times works interleaved, for as long as the effort says.
Timer = Callable[[tuple[IreeProduct, ...], Effort], tuple[Measurement, ...]]


@dataclass(frozen=True)
class Selection:
    """The configuration that beats IREE's default on a problem, or why the default configuration stays."""

    problem: Problem
    configuration: IreeConfiguration | None  # None: the default stays
    default_s: float | None  # median seconds per call; None: not timed
    compared: Comparable | None  # time of the configuration over that of the default; None: the default stays
    reason: str  # "" where a configuration wins


def select(
    compiler: IreeCompiler,
    problem: Problem,
    configurations: tuple[IreeConfiguration, ...],
    timer: Timer | None = None,
) -> Selection:
    """Times configurations; returns the fastest if it beats IREE's default, else why the default stays.

    It beats the default if its time is less by more than the 95 % interval and the noise. ``timer``: replaces
    the timing here. Raises IreeCompileError if IREE cannot compile the default.
    """

    def default_stays(reason: str, default_s: float | None = None) -> Selection:
        return Selection(problem, None, default_s, None, reason)

    if problem.dtype not in DTYPES:
        return default_stays(f"IREE does not compute {problem.dtype} as such by default")
    timer = timer or _timed_here(problem)
    default = IreeProduct(compiler.compile(program_of(problem)), problem)
    products = {}
    for configuration in configurations:
        product = _loaded(compiler, problem, configuration)
        if product is not None:
            products[configuration] = product
    if not products:
        return default_stays("no configuration is used by IREE and right")
    _, *times = timer((default, *products.values()), SIEVE)
    fastest = min(zip(times, products, strict=True), key=lambda pair: pair[0].median_s)[1]
    for _ in range(ATTEMPTS):
        default_time, time, again = timer((default, products[fastest], default), FINAL)
        evidence = Evidence(is_interleaved=True, noise=noise_of(default_time, again))
        compared = comparison(time, default_time, evidence)
        if isinstance(compared, Comparable) or compared.is_equal:
            break
    default_s = default_time.median_s
    if isinstance(compared, NotComparable):
        return default_stays(compared.reason, default_s)
    if compared.ratio > 1:
        longer = f"the fastest of {len(products)} takes {compared.longer_text} against IREE's default"
        return default_stays(longer, default_s)
    return Selection(problem, fastest, default_s, compared, "")


def _loaded(compiler: IreeCompiler, problem: Problem, configuration: IreeConfiguration) -> IreeProduct | None:
    spec = spec_text((SpecEntry(problem, configuration, ""),))
    program = program_of(problem)
    try:
        if not compiler.applied(program, spec):
            return None
        product = IreeProduct(compiler.compile(program, spec), problem)
        verdict, _ = product.verify()
    except TunerError:  # of IREE's compiler or runtime
        return None
    if verdict.max_error <= 1.0:
        return product
    return None


def _timed_here(problem: Problem) -> Timer:
    rng = np.random.default_rng(SEED)

    def timed(products: tuple[IreeProduct, ...], effort: Effort) -> tuple[Measurement, ...]:
        with TimingLock("cpu", holder_text(problem)).held():
            return timing.measure_together_by(tuple(product.stopwatch for product in products), effort, rng)

    return timed


def iree_files(entries: tuple[LibraryEntry, ...]) -> tuple[LibraryFile, ...]:
    """Returns the file of a tuning spec; each problem is timed for some 20 s.

    Raises UsageError if IREE is not installed, or for an entry of several threads; TunerError if nothing
    wins.
    """
    compiler = find_compiler()
    several = next((entry for entry in entries if entry.threads > 1), None)
    if several is not None:
        raise UsageError(
            f"format iree: trial {several.trial} is of {several.threads} threads, IREE is timed on one",
            "--threads 1",
        )
    of_problem: dict[Problem, LibraryEntry] = {}
    for entry in entries:
        of_problem.setdefault(contraction_of(entry.problem), entry)
    chosen = tuple(
        (select(compiler, problem, configurations_for(entry)), entry) for problem, entry in of_problem.items()
    )
    return (LibraryFile(FILE, tuning_spec(compiler, chosen).encode()),)


def tuning_spec(compiler: IreeCompiler, chosen: tuple[tuple[Selection, LibraryEntry], ...]) -> str:
    """Returns the text of a tuning spec with the winning selections.

    Raises TunerError if no configuration wins, and if IREE does not use the spec for one.
    """
    won = tuple(
        SpecEntry(selection.problem, selection.configuration, _note(selection, entry))
        for selection, entry in chosen
        if selection.configuration is not None
    )
    lost = [selection for selection, _ in chosen if selection.configuration is None]
    left = [f"{selection.problem.key}: {selection.reason}" for selection in lost]
    if not won:
        raise TunerError(f"format iree: nothing is faster than IREE's default: {'; '.join(left)}")
    machines = sorted({timed.machine.name for _, timed in chosen})
    header = (
        f"For IREE's compiler {compiler.version} and no other version. Written by tuner {__version__}.",
        f"iree-compile {' '.join(OPTIONS)} --iree-codegen-tuning-spec-path={FILE} MODEL.mlir -o MODEL.vmfb",
        "Timed in IREE's runtime (local-sync, one thread), interleaved with IREE's default. Schedules of:",
        *(f"  {name}" for name in machines),
        f"An operation that is configured has {APPLIED} (--compile-to=executable-configurations).",
        *(f"left to IREE: {reason}" for reason in left),
    )
    text = spec_text(won, header)
    for entry in won:
        if not compiler.applied(program_of(entry.problem), text):
            raise TunerError(f"format iree: IREE does not use the spec for {entry.problem.key}")
    return text


def _note(selection: Selection, entry: LibraryEntry) -> str:
    assert selection.compared is not None  # of one that wins
    assert selection.default_s is not None
    default = f"IREE's default takes {seconds_text(selection.default_s)}"
    faster = f"{selection.compared.faster_text}, {RELIABLE.word}"
    return f"{selection.problem.key}: {faster}; {default}; tuner's trial {entry.trial}"
