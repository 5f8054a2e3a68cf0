"""The before and after of IR that ops and passes show in their docstrings, compared with real modules.

Indented by four is IR, by two what stands between the parts; the first part is before, all others after. A
line is found if the module has one that differs only in the names of values; ``...`` stands for any text.
"""

import inspect
import re

ALIAS = re.compile(r"^(#\w+) = (.*)\n", re.MULTILINE)
VALUE = re.compile(r"%[\w#:]+")


def parts(docstring: str) -> list[list[str]]:
    """Returns the lines of each part."""
    found: list[list[str]] = []
    was_ir = False
    for line in inspect.cleandoc(docstring).splitlines():
        is_ir = line.startswith("    ")
        if is_ir and not was_ir:
            found.append([])
        if is_ir:
            found[-1].append(line)
        was_ir = is_ir
    return found


def missing(docstring: str, before: str, after: str) -> list[str]:
    """Returns the lines of IR in a docstring that the modules do not have."""
    first, *others = parts(docstring)
    old, new = _lines(before), _lines(after)
    shown = [(line, old) for line in first] + [(line, new) for part in others for line in part]
    patterns = {line: re.escape(_plain(line)).replace(re.escape("..."), ".*") for line, _ in shown}
    return [line for line, real in shown if not any(re.fullmatch(patterns[line], each) for each in real)]


def _lines(module: str) -> list[str]:
    for name, text in reversed(ALIAS.findall(module)):
        module = re.sub(rf"{name}\b", lambda _, text=text: text, module)  # type: ignore[misc]
    return [_plain(line) for line in module.splitlines()]


def _plain(line: str) -> str:
    return " ".join(VALUE.sub("%_", line).split())
