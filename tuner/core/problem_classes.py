"""The classes of problems: a matmul, also of groups of rows or with B packed ahead, a fusion of a program.

Each is a subclass of ``tuner.core.problem.Problem``. ``problem_of_values`` makes the right one of the fields
of a stored problem.
"""

import abc
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self, final

from tuner.core.constant_weights import ElementTypes, constant_text
from tuner.core.dtypes import CPU_DTYPES, FLOAT8S, INPUT_DTYPES, STORED, narrow_output, number_type
from tuner.core.epilogues import NONE
from tuner.core.errors import UsageError
from tuner.core.fusion_facts import FusionFacts
from tuner.core.fusions import ATTENTION, CONTRACTION, CONVOLUTION, QUANTIZED, text_hash
from tuner.core.problem import (
    BATCH_LIMIT,
    BATCH_MATMUL,
    FUSION_OPERATIONS,
    GROUPED,
    MATMUL,
    NUMPY_ALIGNMENT,
    PROBLEM_DEFAULTS,
    PRODUCTS,
    SCALED,
    SCALED_DEPTH,
    SCALES,
    WARM,
    Problem,
    require_choice,
    split_extents,
)
from tuner.core.quantization import ACTIVATION_DTYPES, CONSTANT, WeightFormat, quantized_text

NO_FACTS = FusionFacts()
OPTIONS = ("dtype", "layout", "epilogue", "output", "align", "cache")  # of stored problems
GROUPED_DTYPES = ("f16", "bf16")  # of tensor cores, in which mixtures of experts are trained and served
# MLIR types that instructions may multiply faster than f32
NARROW_TYPES = tuple(STORED.get(name, name) for name in INPUT_DTYPES if number_type(name).bits < 32)


@dataclass(frozen=True, repr=False)
class ProductProblem(Problem):
    """A product of matrices whose operands all come at each call, without a text of its own."""

    @property
    def text(self) -> str:
        return ""

    @property
    def scheduled_as(self) -> Problem:
        return self

    @property
    def weights(self) -> str:
        return ""

    @property
    def runs_alone(self) -> bool:
        return True

    @property
    def flop(self) -> int:
        return _products(self)

    @property
    def bytes(self) -> int:
        return _moved_bytes(self)

    @property
    def compared_limit(self) -> int:
        return self.rows * self.sizes[1]

    @property
    def multiplied_dtype(self) -> str:
        return self.dtype

    @property
    def narrowest_dtype(self) -> str:
        return self.dtype

    def variables(self) -> tuple[tuple[str, int | str], ...]:
        return _variables(self)


def _variables(problem: Problem) -> tuple[tuple[str, int | str], ...]:
    """Returns the variables that problems of each class have."""
    m, n, k = problem.sizes
    return (
        ("m", m),
        ("n", n),
        ("k", k),
        ("batch", problem.batch),
        ("input_bytes", problem.input_bytes),
        ("output_bytes", problem.output_bytes),
        ("accumulator_bytes", problem.accumulator_bytes),
        ("dtype", problem.dtype),
        ("output", problem.result_dtype),
        ("layout", problem.layout),
        ("epilogue", problem.epilogue),
        ("scale_depth", SCALED_DEPTH if problem.scales else 0),
        ("groups", problem.groups),
    )


def _moved_bytes(problem: Problem) -> int:
    """Returns the bytes of all arguments; those of C twice where it is read and written."""
    moved = sum(argument.bytes for argument in problem.arguments)
    if problem.after_product.reads_output:
        moved += problem.arguments[-1].bytes
    return moved


def _products(problem: Problem) -> int:
    """Returns the floating-point operations of a product of matrices."""
    m, n, k = problem.sizes
    return 2 * problem.batch * m * n * k


@final
@dataclass(frozen=True, repr=False)
class MatmulProblem(ProductProblem):
    """A product of two matrices, or of a batch of pairs, and an epilogue; all operands come at each call."""

    operations = PRODUCTS

    def __repr__(self) -> str:
        return _call("BatchMatmul" if self.operation == BATCH_MATMUL else "Matmul", self)

    @property
    def groups(self) -> int:
        return 0

    @property
    def one_matmul(self) -> "MatmulProblem":
        return replace(self, operation=MATMUL, batch=1)

    @property
    def form(self) -> tuple[str, ...]:
        return (self.layout, self.epilogue)

    @property
    def computed(self) -> str:
        return self.epilogue


def _call(maker: str, problem: Problem) -> str:
    """Returns the call of ``maker`` that makes the problem, without its defaults."""
    options = [repr(problem.dtype)]
    for name, default in PROBLEM_DEFAULTS.items():
        value = getattr(problem, name)
        if value != default:
            options.append(f"{name}={value!r}")
    return f"{maker}({', '.join([*map(str, problem.extents), *options])})"


@final
@dataclass(frozen=True, repr=False)
class ScaledProblem(ProductProblem):
    """A matmul of fp8 with a scale for each row and 128 steps of K of A, and each block of 128 x 128 of B.

    C[m, n] is the sum over blocks b of K of scale_a[m, b] * scale_b[n / 128, b] * (A_b B_b^T)[m, n].
    """

    operations = (SCALED,)

    def __post_init__(self) -> None:
        """Raises UsageError as for all problems, and for types, layouts and epilogues without scales."""
        super().__post_init__()
        require_choice("dtype with scales", self.dtype, FLOAT8S)
        require_choice("layout with scales", self.layout, ("nt",))
        require_choice("epilogue with scales", self.epilogue, (NONE,))
        require_choice("output dtype with scales", self.result_dtype, ("f32", "bf16"))

    def __repr__(self) -> str:
        return f"{_call('Matmul', self)[:-1]}, scales={SCALES!r})"

    @property
    def groups(self) -> int:
        return 0

    @property
    def one_matmul(self) -> "ScaledProblem":
        return self

    @property
    def form(self) -> tuple[str, ...]:
        return (self.layout, self.epilogue, f"scales={SCALES}")

    @property
    def computed(self) -> str:
        return f"{SCALES} {self.epilogue}"


@final
@dataclass(frozen=True, repr=False)
class GroupedProblem(ProductProblem):
    """A product of groups of rows, each with its own matrix B: C[first:end] = A[first:end] B[group].

    A group begins at row ``offsets[group]`` and ends before row ``offsets[group + 1]``. The offsets come at
    each call; they must not fall and not exceed the rows of A. Groups may be empty. Rows of C before the
    first and after the last offset are not written, as PyTorch's ``grouped_mm`` leaves them.
    """

    operations = (GROUPED,)

    groups: int = 1

    def __post_init__(self) -> None:
        """Raises UsageError as for all problems, and for groups, types, layouts and epilogues not allowed."""
        super().__post_init__()
        require_choice(f"dtype of {GROUPED}", self.dtype, GROUPED_DTYPES)
        require_choice(f"layout of {GROUPED}", self.layout, ("nn", "nt"))
        require_choice(f"epilogue of {GROUPED}", self.epilogue, (NONE,))
        if type(self.groups) is not int or not 1 <= self.groups <= BATCH_LIMIT:
            raise UsageError(f"groups: found {self.groups!r}, allowed 1..{BATCH_LIMIT}")

    def __repr__(self) -> str:
        return _call("GroupedMatmul", self)

    @property
    def one_matmul(self) -> "GroupedProblem":
        return self

    @property
    def form(self) -> tuple[str, ...]:
        return (self.layout, self.epilogue)

    @property
    def computed(self) -> str:
        return f"{GROUPED} {self.epilogue}"


@dataclass(frozen=True, repr=False)
class TextProblem(Problem, abc.ABC):
    """A problem whose kernel is one function with the MLIR text of a fusion: see ``tuner.core.fusions``."""

    @property
    @abc.abstractmethod
    def facts(self) -> FusionFacts:
        """Returns the facts about the fusion that schedules depend on, such as the extents of its loops."""

    @property
    def is_contraction(self) -> bool:
        """Returns whether the fusion is a contraction or a convolution.

        A schedule of the same product with another epilogue may then fit it.
        """
        return self.operation in (CONTRACTION, CONVOLUTION)

    @property
    def one_matmul(self) -> Self:
        return self

    @property
    def groups(self) -> int:
        return 0

    @property
    def narrowest_dtype(self) -> str:
        narrow = (element for element in self.facts.elements if element in NARROW_TYPES)
        return min((self.dtype, *narrow), key=lambda element: number_type(element).bytes)

    def variables(self) -> tuple[tuple[str, int | str], ...]:
        of_problem = _variables(self.scheduled_as if self.facts.layout else self)
        return (*of_problem, *self.facts.variables())


@final
@dataclass(frozen=True, repr=False)
class FusedProblem(TextProblem):
    """A fusion of a program, tuned by itself; its operation is the fusion's kind."""

    operations = FUSION_OPERATIONS

    text: str = ""
    facts: FusionFacts = NO_FACTS

    def __post_init__(self) -> None:
        """Raises UsageError as for all problems, and where there is no text."""
        super().__post_init__()
        if not self.text:
            raise UsageError("fusion: is missing")

    def __repr__(self) -> str:
        return f"FusedProblem({self.key})"

    @property
    def form(self) -> tuple[str, ...]:
        return (text_hash(self.text),)

    @property
    def computed(self) -> str:
        return self.text

    @cached_property
    def scheduled_as(self) -> Problem:
        facts = self.facts
        if self.operation != CONTRACTION or not facts.epilogue or not (facts.layout or facts.weights):
            return self
        options = (facts.layout or "nn", facts.epilogue, narrow_output(self.dtype, facts.output))
        memory = (self.align, self.cache)
        try:
            if facts.layout:
                return MatmulProblem(MATMUL, self.sizes, self.dtype, *options, 1, *memory)
            return PackedProblem(CONTRACTION, self.sizes, self.dtype, *options, 1, *memory)
        except UsageError:  # of types that no matmul has
            return self

    @property
    def weights(self) -> str:
        return ""

    @property
    def runs_alone(self) -> bool:
        return False

    @property
    def flop(self) -> int:
        if self.operation == ATTENTION:
            m, n, k = self.sizes
            return 2 * self.batch * self.facts.visible_scores(m, n) * (k + self.facts.loops[-1])
        if self.facts.products:
            return 2 * self.facts.products
        return max(1, self.facts.contractions) * _products(self)

    @property
    def bytes(self) -> int:
        return self.facts.bytes

    @property
    def compared_limit(self) -> int:
        return self.facts.bytes  # one of several results, or wider than the sizes say, as an attention's

    @property
    def multiplied_dtype(self) -> str:
        return self.dtype


@final
@dataclass(frozen=True, repr=False)
class PackedProblem(TextProblem):
    """A matmul whose B is packed ahead: quantized to integers with scales, or constant and not quantized.

    A quantized one has the operation ``quantized_matmul``; a constant one ``contraction``, as it is scheduled
    as fusions of that kind are.
    """

    operations = (QUANTIZED, CONTRACTION)

    weights: str = CONSTANT  # the text of a WeightFormat, or CONSTANT

    def __post_init__(self) -> None:
        """Raises UsageError as for all problems, and for types and layouts that no strategy packs ahead."""
        super().__post_init__()
        if self.weights == CONSTANT:
            require_choice("dtype with constant weights", self.dtype, CPU_DTYPES)
            require_choice("layout with constant weights", self.layout, ("nn", "nt"))
            return
        require_choice("dtype with quantized weights", self.dtype, ACTIVATION_DTYPES)
        require_choice("epilogue with quantized weights", self.epilogue, (NONE,))
        WeightFormat.of_text(self.weights).require_depth(self.sizes[2])

    def __repr__(self) -> str:
        return f"{_call('Matmul', self)[:-1]}, weights={self.weights!r})"

    @property
    def format(self) -> WeightFormat | None:
        """Returns the format of quantized weights; None for a constant B that is not quantized."""
        if self.weights == CONSTANT:
            return None
        return WeightFormat.of_text(self.weights)

    @property
    def unpacked(self) -> MatmulProblem:
        """Returns the matmul with the same sizes and types that takes B at each call, unpacked."""
        options = (self.dtype, self.layout, self.epilogue, self.output)
        return MatmulProblem(MATMUL, self.sizes, *options, align=self.align, cache=self.cache)

    @property
    def form(self) -> tuple[str, ...]:
        return (self.layout, self.epilogue)

    @property
    def computed(self) -> str:
        return f"{self.weights} {self.epilogue}"

    @property
    def scheduled_as(self) -> "PackedProblem":
        if self.format is not None:
            return self
        return replace(self, layout="nn")

    @property
    def runs_alone(self) -> bool:
        return True

    @cached_property
    def text(self) -> str:
        if self.format is not None:
            return quantized_text(self._matrices, self.dtype, self.format, self.result_dtype)
        types = ElementTypes(self.stored_dtype, self.accumulator, self.result_dtype)
        return constant_text(self._matrices, types, self.bytes, self.after_product)

    @property
    def _matrices(self) -> tuple[int, int, int]:
        m, n, k = self.sizes
        return m, n, k

    @property
    def facts(self) -> FusionFacts:
        elements = {self.stored_dtype, self.accumulator, self.result_dtype}
        if self.format is not None:
            elements |= {"i8", self.format.scale_dtype}
        if self.format is not None and self.format.activations:
            elements.add("i32")  # sums of products of bytes
        return FusionFacts(
            loops=self.sizes[:2],
            contractions=1,
            weights=1,
            bytes=self.bytes,
            elements=tuple(sorted(elements)),
            epilogue=self.epilogue if self.format is None else "",
            output=self.result_dtype,
            weights_format=self.weights,
        )

    @property
    def flop(self) -> int:
        return _products(self)

    @property
    def bytes(self) -> int:
        if self.format is not None:
            return self.format.moved_bytes(self._matrices, self.input_bytes, self.output_bytes)
        return _moved_bytes(self)

    @property
    def compared_limit(self) -> int:
        return self.rows * self.sizes[1]

    @property
    def multiplied_dtype(self) -> str:
        has_integers = self.format is not None and bool(self.format.activations)
        if has_integers:
            return "i8"
        return self.dtype


def problem_of_values(
    operation: str,
    extents: tuple[int, ...],
    options: Mapping[str, str],
    weights: str = "",
    text: str = "",
    facts: FusionFacts | None = None,
) -> Problem:
    """Returns the problem that stored values describe.

    Args:
        operation: ``Problem.operation``.
        extents: ``Problem.extents``.
        options: dtype, layout, epilogue, output, align and cache.
        weights: ``PackedProblem.weights``; "" for other classes.
        text: ``FusedProblem.text``; "" for other classes.
        facts: ``FusedProblem.facts``; None for other classes.

    Raises UsageError for values that no problem has, and for a fusion's text without facts.
    """
    batch, sizes = split_extents(operation, extents)
    if weights:
        return PackedProblem(operation, sizes, batch=batch, weights=weights, **options)
    if operation == SCALED:
        return ScaledProblem(operation, sizes, batch=batch, **options)
    if operation == GROUPED:
        dtype, layout, epilogue, output, align, cache = (options[name] for name in OPTIONS)
        return GroupedProblem(operation, sizes, dtype, layout, epilogue, output, 1, align, cache, batch)
    if not text:
        return MatmulProblem(operation, sizes, batch=batch, **options)
    if facts is None:
        raise UsageError("facts of a fusion: are missing")
    return FusedProblem(operation, sizes, batch=batch, text=text, facts=facts, **options)


def quantized_problem(
    sizes: tuple[int, int, int],
    dtype: str,
    weights: WeightFormat,
    output: str = "",
    align: str = NUMPY_ALIGNMENT,
    cache: str = WARM,
) -> PackedProblem:
    """Returns the problem of a matmul by quantized weights, with layout nt and no epilogue.

    ``sizes``: (m, n, k); ``output``: type of C, "" for the default. Raises UsageError for a ``dtype`` of A
    that is not allowed, and for sizes that the format does not fit.
    """
    require_choice("dtype with quantized weights", dtype, ACTIVATION_DTYPES)
    options = ("nt", NONE, narrow_output(dtype, output))
    return PackedProblem(QUANTIZED, sizes, dtype, *options, align=align, cache=cache, weights=str(weights))
