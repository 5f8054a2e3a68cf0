"""The tunable ops of a transform script: the knobs that they declare, with options and conditions.

A knob sets the value of a ``tune.knob``, or which region of ``tune.alternatives`` runs. Ops of one name share
one knob.
"""

import keyword
from collections.abc import Iterable
from dataclasses import dataclass

from tuner.core.candidate import Value
from tuner.core.errors import UsageError
from tuner.mlir.bindings import ir
from tuner.mlir.ir.reading import walk_ops
from tuner.space.search_space import Knob

# The ``options`` of a ``transform.tune.knob`` as values to choose from, each with its attribute. An array
# lists the values. A dictionary describes integers, or lists values as ``options``: MLIR does not verify a
# dictionary, so this module does.

OPTIONS_LIMIT = 4096  # values of one knob, as in a search-space file
RANGE_LIMIT = 1 << 20  # integers enumerated to find the values
ALLOWED_KEYS = (
    "{min, max, step, divisible_by, divides} (lower_bound and upper_bound mean min and max) or {options}"
)
SPELLINGS = {"lower_bound": "min", "upper_bound": "max"}  # keys of llvm/lighthouse
KEYS = frozenset({"min", "max", "step", "divisible_by", "divides"})
KNOB = "transform.tune.knob"
ALTERNATIVES = "transform.tune.alternatives"
PARAMETER = "!transform.param<"  # begins the type of a parameter whose attribute's type is fixed


@dataclass(frozen=True)
class Option:
    """One value that a knob may take, with the MLIR attribute to write into the script."""

    value: Value
    attribute: ir.Attribute


def read_options(options: ir.Attribute, where: str) -> tuple[Option, ...]:
    """Returns the options of a ``tune.knob``, an array or a dictionary attribute, in their order.

    ``where`` begins the messages. If an array has both integers and other attributes, all values become
    texts. Raises UsageError for no options, more than 4096 (OPTIONS_LIMIT), a repeated value, or another
    attribute.
    """
    if isinstance(options, ir.ArrayAttr):
        listed = list(map(_value, options))
        if len(set(map(type, listed))) > 1:
            listed = list(map(str, listed))  # a knob's values have one type
        read = tuple(map(Option, listed, options))
    elif isinstance(options, ir.DictAttr):
        read = _described({option.name: option.attr for option in options}, where)
    else:
        raise UsageError(
            f"{where}: options: found {options}, allowed an array or a dictionary {ALLOWED_KEYS}"
        )
    values = [option.value for option in read]
    if not read or len(read) > OPTIONS_LIMIT:
        raise UsageError(f"{where}: options: found {len(read)} values, allowed 1..{OPTIONS_LIMIT}")
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise UsageError(f"{where}: options: {twice!r} is listed twice")
    return read


def _value(option: ir.Attribute) -> Value:
    return int(option.value) if isinstance(option, ir.IntegerAttr) else _text(option)


def _text(attribute: ir.Attribute) -> str:
    if isinstance(attribute, ir.StringAttr):
        return str(attribute.value)
    if isinstance(attribute, ir.FloatAttr):
        return repr(attribute.value)
    return str(attribute)


def _described(description: dict[str, ir.Attribute], where: str) -> tuple[Option, ...]:
    if description.keys() == {"options"}:
        return read_options(description["options"], where)
    named = {SPELLINGS.get(key, key): attribute for key, attribute in description.items()}
    if not named.keys() <= KEYS or len(named) < len(description):
        raise UsageError(f"{where}: options: found keys {', '.join(description)}, allowed {ALLOWED_KEYS}")
    types = {
        str(attribute.type) if isinstance(attribute, ir.IntegerAttr) else str(attribute)
        for attribute in named.values()
    }
    if len(types) != 1 or not all(isinstance(attribute, ir.IntegerAttr) for attribute in named.values()):
        found_types = ", ".join(sorted(types)) or "nothing"
        raise UsageError(f"{where}: options: found {found_types}, allowed integers of one type")
    integer_type = next(iter(named.values())).type
    numbers = _integers({key: int(attribute.value) for key, attribute in named.items()}, where)
    return tuple(Option(number, ir.IntegerAttr.get(integer_type, number)) for number in numbers)


def _integers(bounds: dict[str, int], where: str) -> list[int]:
    """Returns the integers from min to max, both included, that satisfy step, divisible_by and divides.

    ``bounds``: these five keys, each with a number; only max, or divides, must be there. Raises UsageError.
    """
    for key in ("step", "divisible_by", "divides"):
        if bounds.get(key, 1) < 1:
            raise UsageError(f"{where}: options.{key}: found {bounds[key]}, allowed 1 or more")
    low = bounds.get("min", 1)
    high = bounds.get("max", bounds.get("divides"))
    if high is None:
        raise UsageError(f"{where}: options: the key max is missing")
    factor = bounds.get("divisible_by", 1)
    start, step = (low, bounds["step"]) if "step" in bounds else (-(-low // factor) * factor, factor)
    count = (high - start) // step + 1
    if count > RANGE_LIMIT:
        raise UsageError(f"{where}: options: found {count} integers, allowed {RANGE_LIMIT}")
    multiple = bounds.get("divides")
    return [
        number
        for number in range(start, high + 1, step)
        if number % factor == 0 and (multiple is None or (number != 0 and multiple % number == 0))
    ]


@dataclass(frozen=True)
class TunableOp:
    """A transform op whose ``attribute`` a knob sets to one of the op's options."""

    name: str  # of the knob
    where: str  # script, line and column, for messages
    attribute: str
    options: tuple[Option, ...]
    selected: Value | None  # the value that the script selects already
    conditions: tuple[str, ...]  # expressions over other knobs; the op runs only where all conditions hold

    @property
    def values(self) -> tuple[Value, ...]:
        """Returns the values that the knob may have; only the selected one if the script selects a value."""
        if self.selected is None:
            return tuple(option.value for option in self.options)
        return (self.selected,)

    def option(self, value: Value) -> ir.Attribute | None:
        """Returns the MLIR attribute of a knob's value; None for a value that is not one of the options."""
        return next((option.attribute for option in self.options if option.value == value), None)


def walk(root: ir.Operation, names: Iterable[str]) -> list[ir.Operation]:
    """Returns the ops within ``root``, itself included, with one of ``names``, in the text's order."""
    ops: list[ir.Operation] = []

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in names:
            ops.append(op)
        return ir.WalkResult.ADVANCE

    walk_ops(root, visit, is_pre_order=True)
    return ops


def tunable_ops_in(root: ir.Operation) -> list[ir.Operation]:
    """Returns the ``tune.knob`` ops, and the alternatives that no parameter selects, in the text's order."""
    ops = walk(root, (KNOB, ALTERNATIVES))
    return [op for op in ops if op.name == KNOB or not len(op.operands)]


def read_tunable_ops(root: ir.Operation, script: str) -> tuple[TunableOp, ...]:
    """Returns a ``TunableOp`` for each tunable op inside ``root``, in the text's order.

    ``script``: the file's name, for messages. Raises UsageError for an invalid op.
    """
    return tuple(_tunable_op(op, name_of(op), where(op, script)) for op in tunable_ops_in(root))


def name_of(op: ir.Operation) -> str:
    """Returns the name of a tunable op's knob; for an op without a name a numbered one: ``knob_0``."""
    name = str(op.attributes["name"].value)
    if name:
        return name
    root = op
    while root.parent is not None:
        root = root.parent.operation
    return f"{op.name.rpartition('.')[2]}_{walk(root, (op.name,)).index(op)}"


def where(op: ir.Operation, script: str) -> str:
    """Returns where an op is in the file ``script``, for messages: 'a.mlir:3:5', with line and column.

    'a.mlir: ' and the op's name if its line is not known.
    """
    location = op.location
    if not isinstance(location, ir.FileLineColLoc):
        return f"{script}: {op.name}"
    return f"{script}:{location.start_line}:{location.start_col}"


def conditions(op: ir.Operation) -> tuple[str | None, ...]:
    """Returns the conditions under which an op runs, outermost first, such as ``order == 1``.

    The op runs if all hold. There is one for each enclosing ``tune.alternatives``; None where no knob selects
    its region, or where the knob's name cannot be used in expressions (``is_word``).
    """
    outermost_first: list[str | None] = []
    while (parent := op.parent) is not None:
        parent = parent.operation
        if parent.name == ALTERNATIVES:
            blocks = [list(region.blocks) for region in parent.regions]
            region_index = next(index for index, inside in enumerate(blocks) if op.block in inside)
            decider = _decider(parent)
            outermost_first.insert(0, None if decider is None else f"{decider} == {region_index}")
        op = parent
    return tuple(outermost_first)


def is_word(name: str) -> bool:
    """Returns whether a name can be used in expressions: an identifier that is not a Python keyword."""
    return name.isidentifier() and not keyword.iskeyword(name)


def knobs_of(tunable_ops: tuple[TunableOp, ...]) -> tuple[Knob, ...]:
    """Returns the knobs of the tunable ops, one per name.

    Raises UsageError if two ops of one name have different options or selected values.
    """
    first: dict[str, TunableOp] = {}
    for tunable in tunable_ops:
        known = first.setdefault(tunable.name, tunable)
        if {option.value for option in known.options} != {option.value for option in tunable.options}:
            raise UsageError(
                f"{tunable.where}: knob {tunable.name!r}: its options {_short(tunable)} "
                f"differ from those of {known.where}: {_short(known)}"
            )
        if known.selected is None and tunable.selected is not None:
            first[tunable.name] = tunable
        elif tunable.selected not in (None, known.selected):
            raise UsageError(
                f"{tunable.where}: knob {tunable.name!r}: {tunable.selected!r} is selected, "
                f"but {known.selected!r} at {known.where}"
            )
    return tuple(Knob(name, tunable.values) for name, tunable in first.items())


def _decider(alternatives: ir.Operation) -> str | None:
    if not len(alternatives.operands):
        name = name_of(alternatives)
    else:
        owner = alternatives.operands[0].owner
        if isinstance(owner, ir.Block) or owner.name != KNOB:
            return None
        name = name_of(owner.operation)
    if is_word(name):
        return name
    return None


def _tunable_op(op: ir.Operation, name: str, position: str) -> TunableOp:
    runs_where = tuple(condition for condition in conditions(op) if condition is not None)
    if op.name == ALTERNATIVES:
        if not len(op.regions):
            raise UsageError(f"{position}: alternatives {name!r}: has no regions")
        i64 = ir.IntegerType.get_signless(64)
        regions = tuple(Option(number, ir.IntegerAttr.get(i64, number)) for number in range(len(op.regions)))
        region = op.attributes.get("selected_region_attr")  # MLIR verified the number
        chosen = None if region is None else int(region.value)
        return TunableOp(name, position, "selected_region_attr", regions, chosen, runs_where)
    what = f"{position}: knob {name!r}"
    options = op.attributes["options"]
    selected = op.attributes.get("selected")
    if selected is not None and isinstance(options, ir.DictAttr) and not len(options):
        options = ir.ArrayAttr.get([selected])  # an empty dictionary describes no options
    read = read_options(options, what)
    _check_types(op, read, what)
    return TunableOp(name, position, "selected", read, _selection(selected, read, what), runs_where)


def _selection(selected: ir.Attribute | None, options: tuple[Option, ...], what: str) -> Value | None:
    """Returns the value that the script selects for a knob; None if it selects none.

    Raises UsageError for a value that is not an option: MLIR checks that for an array of options only.
    """
    if selected is None:
        return None
    for option in options:
        if option.attribute == selected:
            return option.value
    listed = ", ".join(str(option.value) for option in options[:20])
    raise UsageError(f"{what}: found {selected} selected, allowed {listed}")


def _check_types(op: ir.Operation, options: tuple[Option, ...], what: str) -> None:
    # with options of another type than the result, the interpreter would reject every candidate
    result = str(op.results[0].type)
    if not result.startswith(PARAMETER):
        return
    allowed = result.removeprefix(PARAMETER).removesuffix(">")
    for option in options:
        attribute = option.attribute
        if not isinstance(attribute, ir.IntegerAttr) or str(attribute.type) != allowed:
            raise UsageError(f"{what}: found option {attribute}, allowed {allowed}: its result is a {result}")


def _short(tunable: TunableOp) -> str:
    values = [str(option.value) for option in tunable.options]
    return ", ".join(values[:8] + (["..."] if len(values) > 8 else []))
