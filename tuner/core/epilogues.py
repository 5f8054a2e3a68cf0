"""The table of epilogues: what follows the product of a matmul, as data.

An epilogue has extra arguments and steps, each a line ``name = operation operand operand``. A step's operands
are ``sum`` (an element of A B), ``before`` (what C held there), extra arguments, earlier steps and numbers.
MLIR texts, the float64 reference with its error bound, C loops and help texts are made from these lines: a
new epilogue is a row of EPILOGUES.
"""

import itertools
import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

SUM = "sum"
BEFORE = "before"  # the element of C before the call
SHIFTED = "shifted = add sum bias"
NONE: Final = "none"


@dataclass(frozen=True)
class EpilogueArgument:
    """An array that an epilogue reads besides A and B; its elements have the type of C."""

    name: str
    axes: str  # dimensions of C that index it: "n" for a row, "mn" for a matrix, "" for one number
    scalar: str  # the name of its element in MLIR texts

    def shape(self, m: int, n: int) -> tuple[int, ...]:
        """Returns the shape of the array for a C of m x n; () for one number."""
        sizes = {"m": m, "n": n}
        return tuple(sizes[axis] for axis in self.axes)

    @property
    def map_results(self) -> str:
        """Returns the results of the affine map of (m, n) to the array's indices: "(n)", "(m, n)", "()"."""
        return f"({', '.join(self.axes)})"

    @property
    def is_shared(self) -> bool:
        """Returns whether all matrices of a batch read the same array."""
        return self.axes != "mn"


@dataclass(frozen=True)
class StepOperation:
    """An operation that steps of epilogues may use: MLIR ops for floats and integers, and a C expression.

    ``tuner.core.bounded`` has the ops' values in float64; ``RULES`` of ``tuner.mlir.epilogues`` has a row for
    each, by which the epilogues of programs are recognized.
    """

    floating: str  # the op of MLIR
    integer: str  # the same for integers; "": floats only
    c: str  # expression in C: "{0} + {1}"; {f} ends the names of functions of float
    is_exact: bool = True  # of small integers: what is approximated, or divided, is not

    def op(self, element: str) -> str:
        """Returns the name of the MLIR op for numbers of type ``element``: "arith.addf" or "arith.addi"."""
        return self.integer if element.startswith("i") else self.floating


OPERATIONS: Final = {
    "add": StepOperation("arith.addf", "arith.addi", "{0} + {1}"),
    "mul": StepOperation("arith.mulf", "", "{0} * {1}"),
    "div": StepOperation("arith.divf", "", "{0} / {1}", is_exact=False),
    "max": StepOperation("arith.maximumf", "arith.maxsi", "({0} <= {1} ? {1} : {0})"),  # a NaN stays one
    "exp": StepOperation("math.exp", "", "exp{f}({0})", is_exact=False),
    "tanh": StepOperation("math.tanh", "", "tanh{f}({0})", is_exact=False),
    "erf": StepOperation("math.erf", "", "erf{f}({0})", is_exact=False),
}


# Names that no step may have: of functions and variables of C libraries, and of values of MLIR texts.
RESERVED: Final = frozenset(
    (*OPERATIONS, *"abcmnkij", "batch", "zero", "before", "old", "nothing", "rounded", "narrow", "wide")
)


@dataclass(frozen=True)
class EpilogueStep:
    """One operation of an epilogue, with a name for its result, as in ``shifted = add sum bias``."""

    name: str
    operation: str  # a key of OPERATIONS
    operands: tuple[str | float, ...]

    @classmethod
    def parsed(cls, line: str) -> "EpilogueStep":
        """Returns the step of a line ``name = operation operand ...``.

        Raises ValueError for any other line.
        """
        name, equals, operation, *operands = line.split()
        if equals != "=" or operation not in OPERATIONS or not operands:
            raise ValueError(f"epilogue: found {line!r}, allowed 'name = operation operand ...'")
        return cls(name, operation, tuple(map(_operand, operands)))


def _operand(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


@dataclass(frozen=True)
class Epilogue:
    """What follows the product of a matmul: C = f(A B, extra arguments), element by element."""

    name: str
    arguments: tuple[EpilogueArgument, ...]
    steps: tuple[EpilogueStep, ...]
    text: str  # the formula for help texts

    @property
    def result(self) -> str:
        """Returns the name of the value that is stored in C."""
        if self.steps:
            return self.steps[-1].name
        return SUM

    @property
    def reads_output(self) -> bool:
        """Returns whether C is read before it is written."""
        operands = itertools.chain(*map(operator.attrgetter("operands"), self.steps))
        return BEFORE in operands

    @property
    def takes_integers(self) -> bool:
        """Returns whether all operations and numbers of the steps exist for integers."""
        return all(
            OPERATIONS[step.operation].integer
            and all(isinstance(operand, str) or operand.is_integer() for operand in step.operands)
            for step in self.steps
        )

    @property
    def is_exact(self) -> bool:
        """Returns whether the result is exact where sums and arguments are small integers."""
        return all(OPERATIONS[step.operation].is_exact for step in self.steps)

    @property
    def calls_functions(self) -> bool:
        """Returns whether the C code of the steps calls functions of <math.h>."""
        return any("{f}" in OPERATIONS[step.operation].c for step in self.steps)

    def c_lines(self, type_: str, elements: Mapping[str, str]) -> list[str]:
        """Returns the steps as declarations in C; ``type_``: C type of the declared ``sum``.

        ``elements``: the C expression of the element of each extra argument, widened to ``type_``.
        """
        suffix = "f" if type_ == "float" else ""
        lines = []
        for step in self.steps:
            values = []
            for operand in step.operands:
                if isinstance(operand, str):
                    values.append(elements.get(operand, operand))
                else:
                    values.append(str(int(operand)) if operand.is_integer() else f"{operand!r}{suffix}")
            expression = OPERATIONS[step.operation].c.format(*values, f=suffix)
            lines.append(f"{type_} {step.name} = {expression};")
        return lines

    def scalar_arguments(self, element: str) -> str:
        """Returns the block arguments for the extra arguments: ``%shift: f32, ``, with a comma at the end.

        ``element``: their MLIR type.
        """
        return "".join(f"%{argument.scalar}: {element}, " for argument in self.arguments)

    def scalar_lines(self, sums: str, element: str, zero: str) -> list[str]:
        """Returns the body of a linalg.generic: the steps on scalars of the type ``sums``, and the yield.

        Args:
            sums: MLIR type that %sum and all steps have: f32, f64 or i32.
            element: MLIR type of C and of the extra arguments: a narrower one is extended before the steps,
                and the result is rounded to it.
            zero: a value of type ``sums`` that is 0; "": a constant %nothing is made where it is needed.
        """
        lines = []
        names = {SUM: f"%{SUM}", BEFORE: f"%{BEFORE}"}
        if self.reads_output and element != sums:
            names[BEFORE] = "%wide_before"
            lines.append(f"%wide_before = arith.extf %{BEFORE} : {element} to {sums}")
        for argument in self.arguments:
            names[argument.name] = f"%{argument.scalar}"
            if element != sums:
                wide = "%wide" if len(self.arguments) == 1 else f"%wide_{argument.scalar}"
                lines.append(f"{wide} = arith.extf %{argument.scalar} : {element} to {sums}")
                names[argument.name] = wide
        numbers: dict[float, str] = {0.0: zero} if zero else {}
        for number in (operand for step in self.steps for operand in step.operands):
            if isinstance(number, float) and number not in numbers:
                numbers[number] = "%nothing" if number == 0 else f"%number{len(numbers)}"
                lines.append(f"{numbers[number]} = arith.constant {_constant(number, sums)}")
        for step in self.steps:
            op = OPERATIONS[step.operation].op(sums)
            values = [names[key] if isinstance(key, str) else numbers[key] for key in step.operands]
            names[step.name] = f"%{step.name}"
            lines.append(f"%{step.name} = {op} {', '.join(values)} : {sums}")
        last = names[self.result]
        if element != sums:
            lines.append(f"%rounded = arith.truncf {last} : {sums} to {element}")
            last = "%rounded"
        return [*lines, f"linalg.yield {last} : {element}"]


def _constant(number: float, element: str) -> str:
    if element.startswith("i"):
        return f"{int(number)} : {element}"
    return f"{number!r} : {element}"


BIAS = EpilogueArgument("bias", "n", "shift")
ADDEND = EpilogueArgument("addend", "mn", "added")
FACTOR = EpilogueArgument("factor", "", "times")


def _gelu(value: str) -> tuple[str, ...]:
    """Returns value * (1 + erf(value / sqrt(2))) / 2, as PyTorch's default."""
    return (
        f"scaled = mul {value} {math.sqrt(0.5)!r}",
        "part = erf scaled",
        "more = add part 1",
        f"half = mul {value} 0.5",
        "activated = mul half more",
    )


def _gelu_tanh(value: str) -> tuple[str, ...]:
    """Returns value * (1 + tanh(sqrt(2 / pi) (value + 0.044715 value^3))) / 2, as approximate="tanh"."""
    return (
        f"square = mul {value} {value}",
        f"cube = mul square {value}",
        "bent = mul cube 0.044715",
        f"inner = add {value} bent",
        f"scaled = mul inner {math.sqrt(2.0 / math.pi)!r}",
        "part = tanh scaled",
        "more = add part 1",
        f"half = mul {value} 0.5",
        "activated = mul half more",
    )


def _silu(value: str) -> tuple[str, ...]:
    """Returns value / (1 + exp(-value))."""
    return (
        f"minus = mul {value} -1",
        "power = exp minus",
        "below = add power 1",
        f"activated = div {value} below",
    )


def epilogue_row(
    name: str, arguments: tuple[EpilogueArgument, ...], lines: tuple[str, ...], text: str
) -> Epilogue:
    """Returns a row of EPILOGUES; ``lines`` are its steps, ``text`` is its formula for help texts.

    Raises ValueError for a step of another form, for an operand that no line before defines, and for the
    name of a step that is defined already or is one of RESERVED.
    """
    steps = tuple(map(EpilogueStep.parsed, lines))
    known = {SUM, BEFORE, *(argument.name for argument in arguments)}
    for step in steps:
        for operand in step.operands:
            if isinstance(operand, str) and operand not in known:
                raise ValueError(f"epilogue {name}: {step.name} reads {operand!r}, not defined before")
        if step.name in known | RESERVED:
            raise ValueError(f"epilogue {name}: a step cannot be called {step.name!r}, which is taken")
        known.add(step.name)
    return Epilogue(name, arguments, steps, text)


EPILOGUES: Final[Mapping[str, Epilogue]] = {
    epilogue.name: epilogue
    for epilogue in (
        epilogue_row(NONE, (), (), "A B"),
        epilogue_row("bias_relu", (BIAS,), (SHIFTED, "positive = max shifted 0"), "max(A B + bias[n], 0)"),
        epilogue_row("bias", (BIAS,), (SHIFTED,), "A B + bias[n]"),
        epilogue_row("relu", (), ("positive = max sum 0",), "max(A B, 0)"),
        epilogue_row("gelu", (), _gelu("sum"), "gelu(A B)"),
        epilogue_row("gelu_tanh", (), _gelu_tanh("sum"), "gelu(A B) by tanh"),
        epilogue_row("silu", (), _silu("sum"), "silu(A B)"),
        epilogue_row("bias_gelu", (BIAS,), (SHIFTED, *_gelu("shifted")), "gelu(A B + bias[n])"),
        epilogue_row("bias_silu", (BIAS,), (SHIFTED, *_silu("shifted")), "silu(A B + bias[n])"),
        epilogue_row("residual", (ADDEND,), ("total = add sum addend",), "A B + addend[m, n]"),
        epilogue_row(
            "bias_residual",
            (BIAS, ADDEND),
            (SHIFTED, "total = add shifted addend"),
            "A B + bias[n] + addend[m, n]",
        ),
        epilogue_row(
            "bias_relu_residual",
            (BIAS, ADDEND),
            (SHIFTED, "positive = max shifted 0", "total = add positive addend"),
            "max(A B + bias[n], 0) + addend[m, n]",
        ),
        epilogue_row("scale", (FACTOR,), ("scaled = mul sum factor",), "factor A B"),
        epilogue_row("accumulate", (), ("total = add sum before",), "C + A B"),
    )
}
