"""Expressions of the search-space file, such as constraints: a whitelisted part of Python's syntax.

``parse`` checks a text; ``Expression.evaluate`` walks the syntax tree, for numbers or numpy columns.
"""

import ast
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import chain

from tuner.core.errors import UsageError
from tuner.space import partial_arithmetic
from tuner.space.partial_arithmetic import Mask, Operand, Partial

ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}

FUNCTIONS: dict[str, Callable[[list[Partial]], Partial]] = {
    "min": partial_arithmetic.smallest,
    "max": partial_arithmetic.largest,
    "abs": lambda arguments: partial_arithmetic.magnitude(*arguments),
    "ceil_div": lambda arguments: partial_arithmetic.ceil_div(*arguments),
}
LENGTH_LIMIT = 1000  # characters of an expression
DEPTH_LIMIT = 40  # nested parts of an expression
EXPONENT_LIMIT = 16  # exponents are literal: they bound the size of a result before it is computed
ALLOWED = (
    "names, numbers, 'text', + - * // / %, ** by a literal up to 16, comparisons, in ('a', 'b'), "
    "and, or, not, a if b else c, min(), max(), abs(), ceil_div(a, b)"
)
ARGUMENTS = {"min": (2, 8), "max": (2, 8), "abs": (1, 1), "ceil_div": (2, 2)}  # fewest, most


def evaluate(node: ast.expr, values: Mapping[str, Operand]) -> Partial:
    """Returns the value of an expression's syntax tree, and where it is undefined (division by zero).

    Elementwise if names stand for columns.
    ``node``: a tree that ``parse`` has checked. Raises KeyError for a missing name, TypeError for misused
    text, OverflowError for a power above 1024 bits or a result that no float can hold.
    """
    match node:
        case ast.Name(name):
            return Partial(values[name])
        case ast.Constant(value=int() | float() | str() as value):
            return Partial(value)
        case ast.BinOp(left, operation, right):
            name = ARITHMETIC[type(operation)]
            return partial_arithmetic.arithmetic(name, evaluate(left, values), evaluate(right, values))
        case ast.UnaryOp(ast.Not(), operand):
            return partial_arithmetic.negate(evaluate(operand, values))
        case ast.UnaryOp(sign, operand):
            name = "-" if isinstance(sign, ast.USub) else "+"
            return partial_arithmetic.arithmetic(name, Partial(0), evaluate(operand, values))
        case ast.BoolOp(link, operands):
            joined = partial_arithmetic.all_of if isinstance(link, ast.And) else partial_arithmetic.any_of
            return joined([evaluate(operand, values) for operand in operands])
        case ast.IfExp(test, then, other):
            return partial_arithmetic.choose(*(evaluate(part, values) for part in (test, then, other)))
        case ast.Call(ast.Name(name), arguments):
            return FUNCTIONS[name]([evaluate(argument, values) for argument in arguments])
        case ast.Compare(left, signs, rights):
            return _chain(evaluate(left, values), signs, rights, values)
    raise AssertionError(f"not whitelisted: {ast.dump(node)}")


def _chain(
    left: Partial, signs: list[ast.cmpop], rights: list[ast.expr], values: Mapping[str, Operand]
) -> Partial:
    """Evaluates ``a < b <= c`` as ``a < b and b <= c``; ``in`` may only come last."""
    links = []
    for sign, right in zip(signs, rights, strict=True):
        if isinstance(right, ast.Tuple | ast.List):
            members = [partial_arithmetic.compare("==", left, evaluate(item, values)) for item in right.elts]
            is_in = partial_arithmetic.any_of(members)
            links.append(is_in if isinstance(sign, ast.In) else partial_arithmetic.negate(is_in))
            continue
        operand = evaluate(right, values)
        links.append(partial_arithmetic.compare(COMPARISONS[type(sign)], left, operand))
        left = operand
    return partial_arithmetic.all_of(links)


@dataclass(frozen=True)
class Expression:
    """A checked expression over knobs, problem and machine, such as a constraint. Made by ``parse``."""

    text: str
    where: str = field(compare=False)  # file and key path, such as "a.yaml: let.tile", for messages
    names: frozenset[str] = field(compare=False)  # every name in ``tree`` that needs a value
    tree: ast.expr = field(compare=False, repr=False)  # whitelisted nodes only
    is_written_out: bool = field(default=False, compare=False)  # ``tree`` has derived names replaced

    @property
    def full_text(self) -> str:
        """Returns the text with each derived name (``let:`` of the file) replaced by its expression."""
        if self.is_written_out:
            return ast.unparse(self.tree)
        return self.text

    def evaluate(self, values: Mapping[str, Operand]) -> Operand:
        """Returns the value of the expression; ``values`` gives each name a value or a numpy column.

        False, 0 or "" where the value is undefined because of a division by zero: a constraint does not hold
        there. Raises UsageError for unknown names, misused texts and too large numbers.
        """
        self.require(values)
        try:
            return evaluate(self.tree, values).filled()
        except (TypeError, OverflowError) as error:
            raise UsageError(
                f"{self.where}: {self.text!r}: {error}; arithmetic is for numbers below 2**1024, "
                "== != in also for texts"
            ) from None

    def undefined(self, values: Mapping[str, Operand]) -> Mask:
        """Returns a mask: True where the value is undefined, because of a division by zero.

        ``values``: name -> value or numpy column. Raises KeyError for a missing name, TypeError for misused
        text, OverflowError for a too large number.
        """
        return evaluate(self.tree, values).undefined

    def require(self, known: Collection[str]) -> None:
        """Raises UsageError when the expression uses a name that is not in ``known``."""
        unknown = sorted(self.names - set(known))
        if unknown:
            raise UsageError(
                f"{self.where}: {self.text!r}: unknown name {unknown[0]!r}, known: {', '.join(sorted(known))}"
            )


def parse(text: str, where: str) -> Expression:
    """Parses the text of an expression. ``where``, its file and key path, begins error messages.

    Raises UsageError for syntax that is not allowed, and above 1000 characters or 40 levels.
    """
    if len(text) > LENGTH_LIMIT:
        raise UsageError(f"{where}: found an expression of {len(text)} characters, allowed {LENGTH_LIMIT}")
    line = " ".join(text.split())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # "1or 2" warns and would print
            tree = ast.parse(line, mode="eval").body
    except (SyntaxError, ValueError, Warning, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        message = f"{where}: {_short(line)} is not an expression ({reason}), allowed {ALLOWED}"
        raise UsageError(message) from None
    check_depth(tree, where)
    _check(tree, line, where)
    nodes = list(ast.walk(tree))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = frozenset(node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called)
    return Expression(line, where, names, tree)


def check_depth(tree: ast.expr, where: str) -> None:
    """Raises UsageError, naming ``where``, when a syntax tree has more than DEPTH_LIMIT (40) levels."""
    level: list[ast.AST] = [tree]
    depth = 0
    while level:
        depth += 1
        if depth > DEPTH_LIMIT:
            raise UsageError(f"{where}: found an expression nested deeper, allowed {DEPTH_LIMIT} levels")
        level = list(chain.from_iterable(map(ast.iter_child_nodes, level)))


def _check(node: ast.expr, line: str, where: str) -> None:
    operands = _operands(node)
    if operands is None:
        source = ast.get_source_segment(line, node) or type(node).__name__
        raise UsageError(f"{where}: found {_short(source)}, allowed {ALLOWED}")
    for operand in operands:
        _check(operand, line, where)


def _operands(node: ast.expr) -> list[ast.expr] | None:
    """Returns the operands of a whitelisted node; None for a node that is not whitelisted."""
    match node:
        case ast.Name():
            return []
        case ast.Constant(value=value):
            return [] if _is_literal(value) else None
        case ast.BinOp(left, ast.Pow(), ast.Constant(value=int(exponent))):
            is_small = not isinstance(exponent, bool) and exponent <= EXPONENT_LIMIT
            return [left] if is_small else None
        case ast.BinOp(left, sign, right):
            is_known = type(sign) in ARITHMETIC and not isinstance(sign, ast.Pow)
            return [left, right] if is_known else None
        case ast.UnaryOp(ast.Not() | ast.USub() | ast.UAdd(), operand):
            return [operand]
        case ast.BoolOp(_, operands):
            return operands
        case ast.IfExp(test, then, other):
            return [test, then, other]
        case ast.Call(ast.Name(name), arguments, []) if name in ARGUMENTS:
            fewest, most = ARGUMENTS[name]
            return arguments if fewest <= len(arguments) <= most else None
        case ast.Compare(left, signs, rights):
            return _compared(left, signs, rights)
    return None


def _compared(left: ast.expr, signs: list[ast.cmpop], rights: list[ast.expr]) -> list[ast.expr] | None:
    # ``in`` and ``not in`` may only be the last operator, before a tuple or list of literals
    if not all(type(sign) in COMPARISONS for sign in signs[:-1]):
        return None
    if not isinstance(signs[-1], ast.In | ast.NotIn):
        if type(signs[-1]) in COMPARISONS:
            return [left, *rights]
        return None
    members = rights[-1].elts if isinstance(rights[-1], ast.Tuple | ast.List) else []
    is_literal = bool(members) and all(map(_is_literal_node, members))
    if is_literal:
        return [left, *rights[:-1], *members]
    return None


def _is_literal(value: object) -> bool:
    is_finite = not isinstance(value, float) or abs(value) < float("inf")
    return type(value) in (int, float, str) and is_finite


def _is_literal_node(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        bare = node.operand
    else:
        bare = node
    return isinstance(bare, ast.Constant) and _is_literal(bare.value)


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
