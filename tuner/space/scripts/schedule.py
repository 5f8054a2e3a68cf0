"""A plain ``.mlir`` schedule as a strategy: reads its knobs and constraints, writes candidates' scripts.

``Schedule`` reads knobs by ``tuner.space.scripts.knobs``, and each ``transform.smt.constrain_params`` op as
constraints. To bind a candidate, it sets the knobs and replaces these ops by constants.
"""

from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain, combinations
from pathlib import Path

from tuner.core.candidate import Candidate, Value
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.core.text_files import read_text
from tuner.mlir.bindings import ir, transform
from tuner.mlir.ir.reading import ops_in
from tuner.mlir.script_linking import Library, linked, text_of
from tuner.mlir.transform import new_context
from tuner.mlir.transform import parse as parse_mlir
from tuner.payload.partitions import PARTITIONS_COMMENT
from tuner.space.expressions import LENGTH_LIMIT, Expression, parse
from tuner.space.scripts.header import without_header
from tuner.space.scripts.knobs import (
    KNOB,
    PARAMETER,
    TunableOp,
    conditions,
    is_word,
    knobs_of,
    name_of,
    read_tunable_ops,
    tunable_ops_in,
    walk,
    where,
)
from tuner.space.scripts.script_text import with_values
from tuner.space.search_space import Knob

# ``transform.smt.constrain_params`` as expressions over knobs: MLIR's interpreter has no semantics for it.
#
# Supports the quantifier-free fragment of SMT-LIB's theories Core and Ints, over integer knobs and results of
# earlier constraints. Assertions become constraints of the search space, yielded values become constants of
# the bound script. Other SMT ops, such as quantifiers, bit vectors and declared functions, are errors.

CONSTRAIN = "transform.smt.constrain_params"
CONSTANT = "transform.param.constant"
ORDER = ("<", "<=", ">", ">=")  # of smt.int.cmp's predicate
INFIX = {
    "smt.int.add": "+",
    "smt.int.mul": "*",
    "smt.int.sub": "-",
    "smt.eq": "==",
    "smt.and": "and",
    "smt.or": "or",
}
ALLOWED_OPS = (
    "smt.constant, smt.int.{constant, add, sub, mul, div, mod, abs, cmp}, "
    "smt.{eq, distinct, and, or, xor, not, implies, ite, assert, yield}"
)


@dataclass(frozen=True)
class Constrained:
    """One ``transform.smt.constrain_params`` op as expressions over knobs: its assertions and its results."""

    assertions: tuple[Expression, ...]
    results: tuple[Expression, ...]


def read_constraints(root: ir.Operation, knobs: tuple[Knob, ...], script: str) -> tuple[Constrained, ...]:
    """Returns every ``constrain_params`` op within ``root`` as expressions over the knobs.

    Raises UsageError for an op in one of them that has no expression.
    """
    reader = _Reader(knobs, script)
    return tuple(map(reader.read, walk(root, (CONSTRAIN,))))


def fold(root: ir.Operation, constrained: tuple[Constrained, ...], values: dict[str, Value]) -> None:
    """Replaces every ``constrain_params`` op within ``root`` by the constants that it yields.

    ``constrained``: the result of ``read_constraints``; ``values``: a candidate's knob values. Raises
    CandidateError(BIND) for a constant that does not fit its type.
    """
    for op, expressions in zip(walk(root, (CONSTRAIN,)), constrained, strict=True):
        with ir.InsertionPoint(op), op.location:
            for result, expression in zip(op.results, expressions.results, strict=True):
                constant = transform.ParamConstantOp(result.type, _number(result.type, expression, values))
                result.replace_all_uses_with(constant.result)
        op.erase()


def _number(parameter: ir.Type, expression: Expression, values: dict[str, Value]) -> ir.IntegerAttr:
    """Returns a yielded integer as an attribute of the parameter's type. Raises CandidateError(BIND)."""
    text = str(parameter)
    type_ = ir.Type.parse(
        text.removeprefix(PARAMETER).removesuffix(">") if text.startswith(PARAMETER) else "i64"
    )
    number = expression.evaluate(values)
    assert isinstance(number, int), f"{expression.text} is of integers, and divides none by zero"
    limit = 2**type_.width if type_.is_unsigned else 2 ** (type_.width - 1)
    if not (0 if type_.is_unsigned else -limit) <= number < limit:
        raise CandidateError(
            Stage.BIND, f"{expression.where}: {expression.text!r}: {number} does not fit {type_}"
        )
    return ir.IntegerAttr.get(type_, number)


class _Reader:
    def __init__(self, knobs: tuple[Knob, ...], script: str) -> None:
        self._knobs = {knob.name: knob for knob in knobs}
        self._script = script
        self._texts: dict[ir.Value, str] = {}
        self._positive = {knob.name for knob in knobs if all(map(_is_positive, knob.choices))}

    def read(self, op: ir.Operation) -> Constrained:
        block = op.regions[0].blocks[0]
        position = where(op, self._script)
        self._texts |= {
            argument: self._parameter(value, position)
            for argument, value in zip(block.arguments, op.operands, strict=True)
        }
        asserted: list[str] = []
        yielded: list[str] = []
        for inner in ops_in(block):
            operands = [self._texts[operand] for operand in inner.operands]
            if inner.name == "smt.yield":
                yielded = operands
            elif inner.name == "smt.assert":
                asserted += operands
            else:
                is_division = inner.name in ("smt.int.div", "smt.int.mod")
                if is_division and not self._is_positive(operands[1]):
                    asserted.append(f"({operands[1]} != 0)")  # SMT-LIB leaves division by 0 unspecified
                self._texts[inner.results[0]] = self._text(inner, operands)
        self._texts |= dict(zip(op.results, yielded, strict=True))
        return Constrained(
            tuple(parse(text, position) for text in dict.fromkeys(self._guarded(op, asserted, position))),
            tuple(parse(text, position) for text in yielded),
        )

    def _guarded(self, op: ir.Operation, asserted: list[str], position: str) -> list[str]:
        regions = conditions(op)
        if None in regions:
            raise UsageError(
                f"{position}: {CONSTRAIN}: inside alternatives, it needs a knob that picks them, "
                "with a name of letters, digits and _"
            )
        guard = " and ".join(map(str, regions))
        return [f"not ({guard}) or {text}" if guard else _bare(text) for text in asserted]

    def _parameter(self, value: ir.Value, position: str) -> str:
        if value in self._texts:
            return self._texts[value]
        owner = None if isinstance(value.owner, ir.Block) else value.owner
        if (
            owner is not None
            and owner.name == CONSTANT
            and isinstance(owner.attributes["value"], ir.IntegerAttr)
        ):
            return _literal(owner.attributes["value"].value)
        if owner is None or owner.name != KNOB:
            source = "an argument" if owner is None else owner.name
            raise UsageError(
                f"{position}: {CONSTRAIN}: found a parameter from {source}, "
                f"allowed knobs, {CONSTANT} and results of other constraints"
            )
        knob = self._knobs[name_of(owner.operation)]
        if knob.is_text or not is_word(knob.name):
            fault = "texts" if knob.is_text else "another name"
            raise UsageError(
                f"{position}: {CONSTRAIN}: knob {knob.name!r}: found {fault}, "
                "allowed integers, and a name of letters, digits and _"
            )
        return knob.name

    def _text(self, op: ir.Operation, operands: list[str]) -> str:
        text = self._literal(op) or _boolean(op.name, operands) or self._arithmetic(op, operands)
        position = where(op, self._script)
        if text is None:
            raise UsageError(f"{position}: {CONSTRAIN}: found {op.name}, allowed {ALLOWED_OPS}")
        if len(text) > LENGTH_LIMIT:
            what = f"an expression of {len(text)} characters"
            raise UsageError(f"{position}: {CONSTRAIN}: found {what}, allowed {LENGTH_LIMIT}")
        return text

    def _literal(self, op: ir.Operation) -> str | None:
        if op.name == "smt.int.constant":  # the attribute is read as unsigned two's complement
            constant = op.attributes["value"]
            number = int(constant.value)
            bits = int(constant.type.width)
            return _literal(number - 2**bits if number >= 2 ** (bits - 1) else number)
        if op.name == "smt.constant":
            if op.attributes["value"].value:
                return "(1 == 1)"
            return "(1 == 0)"
        return None

    def _arithmetic(self, op: ir.Operation, operands: list[str]) -> str | None:
        first, second = [*operands, "", ""][:2]
        match op.name:
            case "smt.int.cmp":
                return f"({first} {ORDER[int(op.attributes['pred'].value)]} {second})"
            case "smt.int.abs":
                return f"abs({first})"
            case "smt.int.mod":  # SMT-LIB has Euclidean division: the remainder is never negative
                return f"({first} % {self._magnitude(second)})"
            case "smt.int.div" if self._is_positive(second):
                return f"({first} // {second})"
            case "smt.int.div":
                return f"(({first} - {first} % {self._magnitude(second)}) // {second})"
        return None

    def _magnitude(self, text: str) -> str:
        if self._is_positive(text):
            return text
        return f"abs({text})"

    def _is_positive(self, text: str) -> bool:
        return text in self._positive or (text.isdigit() and text != "0")


def _boolean(name: str, operands: list[str]) -> str | None:
    match name:
        case "smt.not":
            return f"(not {operands[0]})"
        case "smt.implies":
            return f"(not {operands[0]} or {operands[1]})"
        case "smt.ite":
            return f"({operands[1]} if {operands[0]} else {operands[2]})"
        case "smt.xor":
            return reduce(lambda text, operand: f"({text} != {operand})", operands)
        case "smt.distinct":
            return "(" + " and ".join(f"{a} != {b}" for a, b in combinations(operands, 2)) + ")"
    if name in INFIX:
        return f"({f' {INFIX[name]} '.join(operands)})"
    return None


def _literal(number: int) -> str:
    if number >= 0:
        return str(number)
    return f"({number})"


def _is_positive(value: Value) -> bool:
    return isinstance(value, int) and value > 0


def _bare(text: str) -> str:
    depth = 0
    for index, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            if text.startswith("(") and index == len(text) - 1:
                return text[1:-1]
            return text
    return text


def with_libraries(text: str, name: str, libraries: tuple[Path, ...]) -> str:
    """Returns the script ``name`` with the sequences of ``libraries`` in its text, so that it needs no file.

    Raises UsageError for a file that cannot be read or parsed, and for two sequences of one name.
    """
    partitions = _partitions_in(text)
    with new_context(), ir.Location.unknown():
        try:
            script = parse_mlir(text, name)
            read = [
                (path.name, read_text(path, "MLIR text of a library"))
                for path in dict.fromkeys(map(Path.resolve, libraries))
            ]
            modules = [(file, parse_mlir(own, file)) for file, own in read]
            return partitions + linked(
                script, name, [Library(file, module.operation) for file, module in modules]
            )
        except CandidateError as error:
            raise UsageError(error.reason) from error


def _partitions_in(text: str) -> str:
    return "".join(f"{line}\n" for line in text.splitlines() if line.startswith(PARTITIONS_COMMENT))


# Knobs are read from the IR, a candidate is written into the IR. A knob is a ``transform.tune.knob``, or the
# choice of a region of ``transform.tune.alternatives``; ops of the same name are one knob. A knob whose value
# the script selects already has this one choice.


class Schedule:
    """A plain transform script with knobs, parsed once; binding a candidate takes less than 1 ms."""

    def __init__(self, text: str, name: str = "script") -> None:
        """Parses the script ``name``. Raises UsageError for invalid MLIR, options or constraints."""
        self._partitions = _partitions_in(text)
        self._context = new_context()
        with self._context, ir.Location.unknown():
            try:
                self._module = parse_mlir(text, name)
            except CandidateError as error:
                raise UsageError(error.reason) from error
            self._tunable_ops = read_tunable_ops(self._module.operation, name)
            self.knobs = knobs_of(self._tunable_ops)
            self._constrained = read_constraints(self._module.operation, self.knobs, name)
            self._constrain_ops = walk(self._module.operation, (CONSTRAIN,))
        self._text = without_header(text)

    @property
    def constraints(self) -> tuple[Expression, ...]:
        """Returns constraints over knobs: ``transform.smt`` assertions of the script; no divisor may be 0."""
        return tuple(chain.from_iterable(op.assertions for op in self._constrained))

    @property
    def idle(self) -> tuple[Expression, ...]:
        """Returns constraints that keep a knob at its first choice if no op that runs uses the knob.

        Without them, candidates would differ only in knobs without effect. A knob has no such constraint if
        its name cannot be used in expressions, or if the constraint would exceed 1000 characters.
        """
        texts = ((knob, _runs_or_first(knob, self._tunable_ops)) for knob in self.knobs)
        return tuple(
            parse(text, f"knob {knob.name}") for knob, text in texts if text and len(text) <= LENGTH_LIMIT
        )

    def select(self, candidate: Candidate) -> str:
        """Returns the script with a candidate's values filled in.

        The text keeps its comments, names and layout where the values can be written into it; else MLIR
        prints the script. Raises CandidateError(BIND) for a missing or unknown knob, a value that the knob
        cannot have, a constraint that does not hold, and a constant that does not fit its type.
        """
        values = dict(candidate.choices)
        self._require(values)
        if self._has_writable_text:
            written = self._written(values)
            if written is not None:
                return written
        return f"{self._partitions}{self._printed(values)}"

    @cached_property
    def _has_writable_text(self) -> bool:
        """True if values can be written into the text: with first choices it parses to the right module."""
        first = {knob.name: knob.choices[0] for knob in self.knobs}
        try:
            written = self._written(first)
            if written is None:
                return False
            with self._context, ir.Location.unknown():
                return str(parse_mlir(written, "script").operation) == self._printed(first)
        except CandidateError:  # an op is written in another form, or a constant does not fit its type
            return False

    def _written(self, values: dict[str, Value]) -> str | None:
        options = {
            op.name: str(op.option(values[op.name])).removesuffix(" : i64") for op in self._tunable_ops
        }
        with self._context:
            constants = []
            for op, constrained in zip(self._constrain_ops, self._constrained, strict=True):
                constants.append(_constants(op, constrained, values))
        return with_values(self._text, options, constants)

    def _printed(self, values: dict[str, Value]) -> str:
        with self._context, ir.Location.unknown():
            bound = self._module.operation.clone()
            root = bound.operation
            for tunable, op in zip(self._tunable_ops, tunable_ops_in(root), strict=True):
                op.attributes[tunable.attribute] = tunable.option(values[tunable.name])
            fold(root, self._constrained, values)
            if self._is_printed_differently:
                return text_of(root)
            return str(root)

    @cached_property
    def _is_printed_differently(self) -> bool:
        """True if MLIR prints the script as a text that it parses to another script."""
        root = self._module.operation
        return text_of(root) != str(root)

    def _require(self, values: dict[str, Value]) -> None:
        for knob in self.knobs:
            if values.get(knob.name) not in knob.choices:
                allowed = ", ".join(map(str, knob.choices[:20]))
                is_given = knob.name in values
                fault = f"found {values[knob.name]!r}" if is_given else "its value is missing"
                raise CandidateError(Stage.BIND, f"knob {knob.name!r}: {fault}, allowed {allowed}")
        known = [knob.name for knob in self.knobs]
        for name in values:
            if name not in known:
                allowed = ", ".join(known) or "none: the script has no knobs"
                raise CandidateError(Stage.BIND, f"knob: found {name!r}, allowed {allowed}")
        for constraint in self.constraints:
            if not constraint.evaluate(values):
                raise CandidateError(Stage.BIND, f"{constraint.where}: {constraint.text!r} does not hold")


def _constants(op: ir.Operation, constrained: Constrained, values: dict[str, Value]) -> list[tuple[str, str]]:
    """Returns the value and the type of each result of a ``constrain_params`` op, as MLIR text."""
    constants = []
    for result, expression in zip(op.results, constrained.results, strict=True):
        constants.append((str(_number(result.type, expression, values)), str(result.type)))
    return constants


def _runs_or_first(knob: Knob, tunable_ops: tuple[TunableOp, ...]) -> str | None:
    uses = [tunable.conditions for tunable in tunable_ops if tunable.name == knob.name]
    if len(knob.choices) == 1 or not all(uses) or not is_word(knob.name):
        return None
    runs = " or ".join(
        f"({' and '.join(conditions)})" if len(conditions) > 1 else conditions[0]
        for conditions in dict.fromkeys(uses)
    )
    return f"{runs} or {knob.name} == {knob.choices[0]!r}"
