"""Values written into the text of a plain script: its comments, names and layout stay as they are."""

import re
from collections.abc import Mapping, Sequence

NAME = r"%[\w$.-]+"
STRING = r'"(?:[^"\\\n]|\\.)*"'
CONSTRAIN = "transform.smt.constrain_params"
# Comments and strings are matched first, so that nothing in them is taken for an op.
OPEN_OP = re.compile(
    rf"//[^\n]*|(?P<knob>transform\.tune\.knob<{STRING}>)(?=\s+options\b)"
    rf"|(?P<alternatives>transform\.tune\.alternatives<{STRING}>)(?=\s*(?:->|\{{))"
    rf"|(?P<constrain>(?:{NAME}(?:\s*,\s*{NAME})*\s*=\s*)?{re.escape(CONSTRAIN)})\b"
    rf"|{STRING}|(?P<brace>[{{}}])"
)
SELECTED_KNOB = re.compile(
    rf"//[^\n]*|transform\.tune\.knob<{STRING}>\s*=\s*(?P<value>{STRING}|[^\s{{}}\[\]]+(?:\s*:\s*\w+)?)"
    rf"\s+from\s+options\s*=\s*(?:\[[^\]]*\]|\{{[^}}]*\}})|{STRING}"
)
INTEGER = re.compile(r"-?\d+")


def with_values(
    text: str, options: Mapping[str, str], constants: Sequence[Sequence[tuple[str, str]]]
) -> str | None:
    """Returns a script's text with a value for each knob that has none; None if an op is in another form.

    ``options``: by knob, the option as MLIR text. ``constants``: for each ``constrain_params`` op in the
    order of the text its results, a value and a type each; the op becomes these constants.

        %tile = transform.tune.knob<"tile"> options = [4, 5] -> !transform.param<i64>  // rows
      becomes
        %tile = transform.tune.knob<"tile"> = 4 from options = [4, 5] -> !transform.param<i64>  // rows
    """
    pieces: list[str] = []
    done = 0  # up to here the text is in ``pieces``
    left = list(constants)
    for match in OPEN_OP.finditer(text):
        if match.start() < done:
            continue
        if op := match["knob"] or match["alternatives"]:
            option = options.get(op.partition('"')[2].removesuffix('">'))
            if option is None:
                return None
            if match["knob"]:
                filled = f" = {option} from"
            else:
                filled = f" selected_region = {option}"
            pieces += [text[done : match.end()], filled]
            done = match.end()
        elif match["constrain"] and left:
            names = re.findall(NAME, match["constrain"])
            results = left.pop(0)
            end = _end_of_region(text, match.end())
            if len(names) != len(results) or end is None:
                return None
            start = match.start()
            if not results:
                start, end = _whole_lines(text, start, end)
            pieces += [text[done:start], _constants(names, results, text, start)]
            done = end
    return "".join([*pieces, text[done:]])


def with_constants(text: str) -> str:
    """Returns a bound script with plain constants in place of knobs, for tools without ``transform.tune``.

      %tile = transform.tune.knob<"tile"> = 4 from options = [4, 5] -> !transform.param<i64>  // rows
    becomes
      %tile = transform.param.constant 4 : i64 -> !transform.param<i64>  // rows
    """

    def constant(match: re.Match[str]) -> str:
        value = match["value"]
        if value is None:
            return match[0]
        typed = f"{value} : i64" if INTEGER.fullmatch(value) else value
        return f"transform.param.constant {typed}"

    return SELECTED_KNOB.sub(constant, text)


def _constants(names: Sequence[str], results: Sequence[tuple[str, str]], text: str, start: int) -> str:
    """Returns the constants that replace the op at ``start``, indented as that op is."""
    lines = []
    for name, (value, type_) in zip(names, results, strict=True):
        lines.append(f"{name} = transform.param.constant {value} -> {type_}")
    indent = text[text.rfind("\n", 0, start) + 1 : start]
    return f"\n{indent}".join(lines)


def _end_of_region(text: str, start: int) -> int | None:
    """Returns the index at which the first region after ``start`` ends; None if it does not end."""
    depth = 0
    for match in OPEN_OP.finditer(text, start):
        if match["brace"]:
            depth += {"{": 1, "}": -1}[match["brace"]]
            if depth == 0:
                return match.end()
    return None


def _whole_lines(text: str, start: int, end: int) -> tuple[int, int]:
    """Returns the span of the lines from ``start`` to ``end`` if they hold nothing else, else the span."""
    begin = text.rfind("\n", 0, start) + 1
    after = text.find("\n", end)
    if after < 0 or text[begin:start].strip() or text[end:after].strip():
        return start, end
    return begin, after + 1
