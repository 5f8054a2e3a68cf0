"""The ``options`` of a ``transform.tune.knob`` as values to choose from, each with its attribute.

An array lists the values. A dictionary describes integers: MLIR does not verify it, so this module does.
"""

from dataclasses import dataclass

from tuner.core.candidate import Value
from tuner.core.errors import UsageError
from tuner.mlir.bindings import ir

OPTIONS_LIMIT = 4096  # values of one knob, as in a search space file
RANGE_LIMIT = 1 << 20  # integers enumerated to find the values
ALLOWED_KEYS = (
    "{min, max, step, divisible_by, divides} (lower_bound and upper_bound mean min and max) or {options}"
)
SPELLINGS = {"lower_bound": "min", "upper_bound": "max"}  # keys of llvm/lighthouse
KEYS = frozenset({"min", "max", "step", "divisible_by", "divides"})


@dataclass(frozen=True)
class Option:
    """One value that a knob may take, with the MLIR attribute to write into the script."""

    value: Value
    attribute: ir.Attribute


def read_options(options: ir.Attribute, where: str) -> tuple[Option, ...]:
    """Returns the options of a ``tune.knob``, an array or a dictionary attribute, in their order.

    ``where`` begins the messages. All values are texts where an array has both integers and other attributes.
    Raises UsageError for no options, more than 4096 (OPTIONS_LIMIT), a value twice, or an unknown form.
    """
    if isinstance(options, ir.ArrayAttr):
        found = _listed(options)
    elif isinstance(options, ir.DictAttr):
        found = _described({each.name: each.attr for each in options}, where)
    else:
        raise UsageError(
            f"{where}: options: found {options}, allowed an array or a dictionary {ALLOWED_KEYS}"
        )
    values = [option.value for option in found]
    if not found or len(found) > OPTIONS_LIMIT:
        raise UsageError(f"{where}: options: found {len(found)} values, allowed 1..{OPTIONS_LIMIT}")
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise UsageError(f"{where}: options: {twice!r} is listed twice")
    return found


def _value(attribute: ir.Attribute) -> Value:
    """Returns the integer of an integer attribute, the text of any other attribute."""
    if isinstance(attribute, ir.IntegerAttr):
        return int(attribute.value)
    return _text(attribute)


def _listed(options: ir.ArrayAttr) -> tuple[Option, ...]:
    values = [_value(each) for each in options]
    if len({type(value) for value in values}) > 1:
        values = [str(value) for value in values]  # a knob's values have one type
    return tuple(Option(value, each) for value, each in zip(values, options, strict=True))


def _text(attribute: ir.Attribute) -> str:
    if isinstance(attribute, ir.StringAttr):
        return str(attribute.value)
    if isinstance(attribute, ir.FloatAttr):
        return repr(attribute.value)
    return str(attribute)


def _described(given: dict[str, ir.Attribute], where: str) -> tuple[Option, ...]:
    if given.keys() == {"options"}:
        return read_options(given["options"], where)
    named = {SPELLINGS.get(key, key): attribute for key, attribute in given.items()}
    if not named.keys() <= KEYS or len(named) < len(given):
        raise UsageError(f"{where}: options: found keys {', '.join(given)}, allowed {ALLOWED_KEYS}")
    types = {str(each.type) if isinstance(each, ir.IntegerAttr) else str(each) for each in named.values()}
    if len(types) != 1 or not all(isinstance(each, ir.IntegerAttr) for each in named.values()):
        found = ", ".join(sorted(types)) or "nothing"
        raise UsageError(f"{where}: options: found {found}, allowed integers of one type")
    integer_type = next(iter(named.values())).type
    numbers = _integers({key: int(each.value) for key, each in named.items()}, where)
    return tuple(Option(number, ir.IntegerAttr.get(integer_type, number)) for number in numbers)


def _integers(given: dict[str, int], where: str) -> list[int]:
    """Returns the integers from min to max, both included, that satisfy step, divisible_by and divides."""
    for key in ("step", "divisible_by", "divides"):
        if given.get(key, 1) < 1:
            raise UsageError(f"{where}: options.{key}: found {given[key]}, allowed 1 or more")
    low, high = given.get("min", 1), given.get("max", given.get("divides"))
    if high is None:
        raise UsageError(f"{where}: options: the key max is missing")
    factor = given.get("divisible_by", 1)
    start, step = (low, given["step"]) if "step" in given else (-(-low // factor) * factor, factor)
    numbers = range(start, high + 1, step)
    if len(numbers) > RANGE_LIMIT:
        raise UsageError(f"{where}: options: found {len(numbers)} integers, allowed {RANGE_LIMIT}")
    multiple = given.get("divides")
    return [
        number
        for number in numbers
        if number % factor == 0 and (multiple is None or (number != 0 and multiple % number == 0))
    ]
