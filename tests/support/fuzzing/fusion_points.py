"""Random fusions of each kind, and random feasible points of the CPU strategies for them, for fuzzing."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from numpy.random import Generator

from tests import byte_fusion_texts as byte_texts
from tests import fusion_texts as texts
from tests.fusion_runs import as_problem
from tests.mlir.attention_texts import MASKS, Attention
from tests.mlir.convolution_texts import Convolution
from tests.support.fuzzing.cpu_points import SHAPES_TRIED, CpuPoint, sizes_of
from tuner.core.candidate import Candidate, Value
from tuner.core.errors import UsageError
from tuner.core.fusions import ATTENTION, CONTRACTION, CONVOLUTION, ELEMENTWISE, QUANTIZED, ROWS
from tuner.core.interfaces import Script
from tuner.core.machine import Machine, variables_of
from tuner.core.problem_classes import TextProblem, quantized_problem
from tuner.core.quantization import ACTIVATION_SCALES, WEIGHT_BITS, WeightFormat
from tuner.mlir.fusions.convolutions import LAYOUTS
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.entries import StrategyEntry
from tuner.space.file.reading import SpaceFile, load_space_file, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.strategy import Binder, load_strategy

NARROW = ("bf16", "f16")
FORMS = ("one", "pairs", "batch")  # of a contraction
BATCH = 3  # of a contraction of matrices
ROW_TEXTS = (texts.softmax, texts.row_sums, texts.row_means, texts.layer_norm)
COLUMN_PARTS = ("softmax", "row_sums", "row_means")
OPERATIONS = ("math.tanh %x0", "math.exp %x0", "arith.mulf %x0, %x0")
UNPADDED = (0, 0, 0, 0)
PADDED_NAME = "linalg.depthwise_conv_2d_nchw_chw"  # the one with a strategy that reads padding
DrawProblem = Callable[[str, Generator, int], TextProblem]  # of an element type, with a largest size


@dataclass(frozen=True)
class FusionKind:
    """A kind of fusion that one strategy is for: everything but the fusion's form and sizes."""

    strategy: str
    operation: str
    dtype: str
    threads: int


class FusionPoints:
    """Draws fusions, and points that the default search space allows for these on one machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._file: SpaceFile = load_space_file(default_space_file())

    def kinds(self, threads: int) -> tuple[FusionKind, ...]:
        """Returns every strategy x element type of fusions that this machine has instructions for."""
        return tuple(
            FusionKind(entry.name, operation, dtype, threads)
            for entry in self._file.strategies
            if self._machine.isa in entry.isas
            for operation in entry.operations
            if operation in DRAWN
            for dtype in entry.dtypes
            if dtype in DRAWN[operation] and self._has_what_it_needs(entry, dtype)
        )

    def draw(self, kind: FusionKind, rng: Generator, largest: int = 130) -> CpuPoint:
        """Returns a random feasible candidate for a random fusion that has one."""
        for _ in range(SHAPES_TRIED):
            problem = DRAWN[kind.operation][kind.dtype](kind.dtype, rng, largest)
            with contextlib.suppress(LookupError):
                return CpuPoint(problem, kind.threads, self._candidate(kind, problem, rng))
        raise LookupError(f"{kind}: nothing allowed for any of {SHAPES_TRIED} fusions")

    def bind(self, point: CpuPoint) -> Script:
        """Returns the point's script. Raises CandidateError."""
        strategies = (load_strategy(point.candidate.strategy),)
        variables = variables_of(point.problem, self._machine, point.threads)
        return Binder(strategies, point.problem, variables, point.threads).bind(point.candidate)

    def _candidate(self, kind: FusionKind, problem: TextProblem, rng: Generator) -> Candidate:
        variables = variables_of(problem, self._machine, kind.threads)
        try:
            space = spaces_for(self._file, problem, self._machine.isa, variables, (kind.strategy,))
            feasible = FeasibleSet.of(space)
        except UsageError as error:
            raise LookupError(f"{kind}: nothing allowed for {problem.key}") from error
        return feasible.candidate(int(rng.integers(feasible.rows)))

    def _has_what_it_needs(self, entry: StrategyEntry, dtype: str) -> bool:
        """Returns False where a constraint on machine and element type alone excludes the strategy."""
        limits: dict[str, Value] = {**dict(self._machine.limits()), "dtype": dtype}
        return all(each.evaluate(limits) for each in entry.constraints if each.names <= limits.keys())


def contraction(sizes: tuple[int, int, int], epilogue: str, form: str, element: str) -> str:
    """Returns the text of a product of ``sizes`` (m, n, k), of two of one A ("pairs"), or of a batch."""
    batch = BATCH * (form == "batch")
    pairs = form == "pairs"
    if element == "i8":
        return byte_texts.product(*sizes, epilogue, batch=batch, pairs=pairs)
    sums = "f32" if element in NARROW else ""
    return texts.product(*sizes, epilogue, batch=batch, pairs=pairs, element=element, sums=sums)


def _drawn_contraction(element: str, rng: Generator, largest: int) -> TextProblem:
    epilogues = byte_texts.NAMES if element == "i8" else texts.EPILOGUES
    epilogue = str(rng.choice(epilogues))
    sizes = sizes_of(rng, largest)
    return as_problem(CONTRACTION, contraction(sizes, epilogue, str(rng.choice(FORMS)), element))


def _drawn_convolution(element: str, rng: Generator, _largest: int) -> TextProblem:
    """Returns a convolution of few pixels; of one in three the channels are those of AMX tiles."""
    name = str(rng.choice(sorted(LAYOUTS)))
    has_rows = "h" in LAYOUTS[name][1]
    is_wide = rng.random() < 1 / 3
    channels = int(rng.integers(16, 81)) if is_wide else int(rng.integers(1, 21))
    filters = int(rng.choice((16, 17, 24, 32, 45, 64) if is_wide else (1, 3, 5, 8, 16, 17, 40)))

    def pair(most: int) -> tuple[int, int]:
        columns = int(rng.integers(1, most + 1))
        return (int(rng.integers(1, most + 1)) if has_rows else 1, columns)

    height, width = pair(18)
    drawn = Convolution(
        name,
        images=int(rng.integers(1, 4)),
        groups=int(rng.integers(1, 4)),
        channels=channels,
        filters=filters,
        height=height,
        width=width,
        window=pair(5),
        strides=(1, 1) if is_wide else pair(3),
        dilations=pair(2),
        epilogue=str(rng.choice(("none", "bias_relu", "residual"))),
        is_weight=bool(rng.random() < 0.75),
        element=element,
        planes=(int(rng.integers(1, 4)), int(rng.integers(1, 4)), int(rng.integers(1, 4)), 1),
    )
    if name == PADDED_NAME and drawn.is_weight:
        drawn = replace(drawn, padding=_drawn_padding(drawn, rng))
    return as_problem(CONVOLUTION, drawn.text())


def _drawn_padding(convolution: Convolution, rng: Generator) -> tuple[int, int, int, int]:
    """Returns padding that leaves at least a row and a column of the image."""
    amounts: list[int] = []
    for extent in convolution.shapes[0][-2:]:
        before = int(rng.integers(0, min(6, extent - 1) + 1))
        amounts += [before, int(rng.integers(0, min(6, extent - 1 - before) + 1))]
    top, bottom, left, right = amounts
    return top, bottom, left, right


def _drawn_attention(element: str, rng: Generator, largest: int) -> TextProblem:
    queries, width, width_of_v = sizes_of(rng, largest)
    sizes = (queries, int(rng.integers(17, 201)), width, width_of_v)
    has_epilogue = bool(rng.random() < 0.5)
    mask = str(rng.choice(MASKS))
    return as_problem(
        ATTENTION, Attention(sizes, mask, int(rng.integers(0, 4)), has_epilogue, element).text()
    )


def _drawn_rows(_element: str, rng: Generator, largest: int) -> TextProblem:
    rows, columns, outer = sizes_of(rng, largest)
    if rng.random() < 0.5:
        text = ROW_TEXTS[int(rng.integers(len(ROW_TEXTS)))](rows, columns)
    else:  # sizes of 1 are folded before
        part = str(rng.choice(COLUMN_PARTS))
        text = texts.of_columns(part, 1 + outer % 3, max(2, rows), max(2, columns))
    return as_problem(ROWS, text)


def _drawn_narrow_rows(_element: str, rng: Generator, largest: int) -> TextProblem:
    rows, columns, outer = sizes_of(rng, largest)
    text = texts.narrow_rows(rows, columns)
    if rng.random() < 0.5:
        text = texts.of_columns("narrow_rows", 1 + outer % 3, max(2, rows), max(2, columns))
    return as_problem(ROWS, text)


def _drawn_elements(element: str, rng: Generator, largest: int) -> TextProblem:
    shape = sizes_of(rng, largest)[: int(rng.integers(1, 4))]
    if len(shape) > 1 and rng.random() < 0.5:
        order = tuple(map(int, rng.permutation(len(shape))))
        return as_problem(ELEMENTWISE, texts.transpose(shape, order, element))
    if element == "i8":
        return as_problem(ELEMENTWISE, byte_texts.quantized(shape))
    return as_problem(ELEMENTWISE, texts.elementwise(shape, str(rng.choice(OPERATIONS)), element))


def _drawn_quantized(element: str, rng: Generator, largest: int) -> TextProblem:
    m, n, k = sizes_of(rng, largest)
    bits = int(rng.choice(sorted(WEIGHT_BITS.values())))
    group = int(rng.choice((0, 32, 64)))
    activations = str(rng.choice(("", *ACTIVATION_SCALES))) if group else ""
    weights = WeightFormat(bits, group, has_zero_points=bool(rng.random() < 0.5), activations=activations)
    multiple = group or weights.group_multiple
    return quantized_problem((m, n, -(-k // multiple) * multiple), element, weights)


DRAWN: Mapping[str, Mapping[str, DrawProblem]] = {  # by operation and element type
    CONTRACTION: dict.fromkeys(("f32", "f64", "bf16", "i8"), _drawn_contraction),
    CONVOLUTION: dict.fromkeys(("f32", "f64", "bf16"), _drawn_convolution),
    ATTENTION: dict.fromkeys(("f32", "f64"), _drawn_attention),
    ROWS: {"f32": _drawn_rows, "bf16": _drawn_narrow_rows},
    ELEMENTWISE: dict.fromkeys(("f32", "f64", "bf16", "f16", "i8"), _drawn_elements),
    QUANTIZED: dict.fromkeys(("f32", "bf16"), _drawn_quantized),
}
