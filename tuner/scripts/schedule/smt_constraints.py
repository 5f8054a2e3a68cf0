"""``transform.smt.constrain_params`` as expressions over knobs: MLIR's interpreter has no semantics for it.

Supports the quantifier-free fragment of SMT-LIB's theories Core and Ints, over integer knobs and results of
earlier constraints. Assertions become constraints of the search space, yielded values become constants of the
bound script. Other SMT ops, such as quantifiers, bit vectors and declared functions, are errors.
"""

from dataclasses import dataclass
from itertools import combinations

from tuner.core.candidate import Value
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.mlir.bindings import ir, transform
from tuner.scripts.schedule.knob_ops import KNOB, PARAMETER, conditions, is_word, name_of, walk, where
from tuner.space.expression import LENGTH_LIMIT, Expression, parse
from tuner.space.search_space import Knob

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
    """Returns every ``constrain_params`` op below ``root`` as expressions, in the order of the text.

    ``script`` is the script's name for messages. Raises UsageError for unsupported ops or parameters.
    """
    reader = _Reader(knobs, script)
    return tuple(reader.read(op) for op in walk(root, (CONSTRAIN,)))


def fold(root: ir.Operation, constrained: tuple[Constrained, ...], values: dict[str, Value]) -> None:
    """Replaces every ``constrain_params`` op below ``root`` by the constants that the op yields.

    ``constrained`` has the ops as expressions, in the order of the text, ``values`` a candidate's knob
    values. Raises CandidateError(BIND) for a constant that does not fit its type.
    """
    for op, what in zip(walk(root, (CONSTRAIN,)), constrained, strict=True):
        with ir.InsertionPoint(op), op.location:
            for result, expression in zip(op.results, what.results, strict=True):
                constant = transform.ParamConstantOp(result.type, _number(result.type, expression, values))
                result.replace_all_uses_with(constant.result)
        op.erase()


def _number(parameter: ir.Type, expression: Expression, values: dict[str, Value]) -> ir.IntegerAttr:
    """Returns a yielded integer as an attribute of the parameter's type. Raises CandidateError(BIND)."""
    text = str(parameter)
    kind = ir.Type.parse(
        text.removeprefix(PARAMETER).removesuffix(">") if text.startswith(PARAMETER) else "i64"
    )
    number = expression.evaluate(values)
    assert isinstance(number, int), f"{expression.text} is of integers, and divides none by zero"
    limit = 2**kind.width if kind.is_unsigned else 2 ** (kind.width - 1)
    if not (0 if kind.is_unsigned else -limit) <= number < limit:
        raise CandidateError(
            Stage.BIND, f"{expression.where}: {expression.text!r}: {number} does not fit {kind}"
        )
    return ir.IntegerAttr.get(kind, number)


class _Reader:
    """Translates SMT values to texts of expressions over knobs."""

    def __init__(self, knobs: tuple[Knob, ...], script: str) -> None:
        self._knobs = {knob.name: knob for knob in knobs}
        self._script = script
        self._texts: dict[ir.Value, str] = {}
        self._positive = {knob.name for knob in knobs if all(_is_positive(each) for each in knob.choices)}

    def read(self, op: ir.Operation) -> Constrained:
        block = op.regions[0].blocks[0]
        place = where(op, self._script)
        self._texts |= {
            argument: self._parameter(value, place)
            for argument, value in zip(block.arguments, op.operands, strict=True)
        }
        asserted: list[str] = []
        yielded: list[str] = []
        for inner in (each.operation for each in block.operations):
            operands = [self._texts[operand] for operand in inner.operands]
            if inner.name == "smt.yield":
                yielded = operands
            elif inner.name == "smt.assert":
                asserted += operands
            else:
                asserted += self._nonzero(inner, operands)
                self._texts[inner.results[0]] = self._text(inner, operands)
        self._texts |= dict(zip(op.results, yielded, strict=True))
        return Constrained(
            tuple(parse(text, place) for text in dict.fromkeys(self._guarded(op, asserted, place))),
            tuple(parse(text, place) for text in yielded),
        )

    def _guarded(self, op: ir.Operation, asserted: list[str], place: str) -> list[str]:
        """Returns assertions as implications, so that each applies only where its region runs."""
        found = conditions(op)
        if None in found:
            raise UsageError(
                f"{place}: {CONSTRAIN}: inside alternatives, it needs a knob that picks them, "
                "with a name of letters, digits and _"
            )
        guard = " and ".join(str(each) for each in found)
        return [f"not ({guard}) or {text}" if guard else _bare(text) for text in asserted]

    def _parameter(self, value: ir.Value, place: str) -> str:
        """Returns the expression of a parameter whose value is known before the script runs."""
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
            found = "an argument" if owner is None else owner.name
            raise UsageError(
                f"{place}: {CONSTRAIN}: found a parameter from {found}, "
                f"allowed knobs, {CONSTANT} and results of other constraints"
            )
        knob = self._knobs[name_of(owner.operation)]
        if knob.is_text or not is_word(knob.name):
            found = "texts" if knob.is_text else "another name"
            raise UsageError(
                f"{place}: {CONSTRAIN}: knob {knob.name!r}: found {found}, "
                "allowed integers, and a name of letters, digits and _"
            )
        return knob.name

    def _nonzero(self, op: ir.Operation, operands: list[str]) -> list[str]:
        """Returns the assertion that a divisor is not 0, since SMT-LIB leaves division by 0 unspecified."""
        if op.name not in ("smt.int.div", "smt.int.mod") or self._is_positive(operands[1]):
            return []
        return [f"({operands[1]} != 0)"]

    def _text(self, op: ir.Operation, operands: list[str]) -> str:
        text = self._literal(op) or _boolean(op.name, operands) or self._arithmetic(op, operands)
        place = where(op, self._script)
        if text is None:
            raise UsageError(f"{place}: {CONSTRAIN}: found {op.name}, allowed {ALLOWED_OPS}")
        if len(text) > LENGTH_LIMIT:
            raise UsageError(
                f"{place}: {CONSTRAIN}: found an expression of {len(text)} characters, allowed {LENGTH_LIMIT}"
            )
        return text

    def _literal(self, op: ir.Operation) -> str | None:
        if op.name == "smt.int.constant":
            return _literal(_signed(op.attributes["value"]))
        if op.name == "smt.constant":
            return "(1 == 1)" if op.attributes["value"].value else "(1 == 0)"
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
        return text if self._is_positive(text) else f"abs({text})"

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
            return "(" * (len(operands) - 1) + operands[0] + "".join(f" != {each})" for each in operands[1:])
        case "smt.distinct":
            return "(" + " and ".join(f"{a} != {b}" for a, b in combinations(operands, 2)) + ")"
    return f"({f' {INFIX[name]} '.join(operands)})" if name in INFIX else None


def _signed(constant: ir.IntegerAttr) -> int:
    """Returns the signed value of a constant, whose attribute is read as unsigned two's complement."""
    number, bits = int(constant.value), int(constant.type.width)
    return number - 2**bits if number >= 2 ** (bits - 1) else number


def _literal(number: int) -> str:
    return str(number) if number >= 0 else f"({number})"


def _is_positive(value: Value) -> bool:
    return isinstance(value, int) and value > 0


def _bare(text: str) -> str:
    """Returns a text without a pair of parentheses around the whole text."""
    depth = 0
    for place, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return text[1:-1] if text.startswith("(") and place == len(text) - 1 else text
    return text
