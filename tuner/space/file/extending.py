"""``extends: default``: a search space file that adds to the shipped file or changes parts of it."""

from typing import Any

from tuner.core.errors import UsageError, unknown_value

KEY = "extends"
DEFAULT = "default"
NEEDED = "ops"  # a key that each new strategy has
TEMPLATE = "template"  # a key of a strategy that has a script of its own
BY_NAME = ("knobs", "let", "projection")  # keys of a strategy whose entries are merged one by one


def is_extending(document: object, name: str) -> bool:
    """Returns whether a search space file has ``extends: default``: it adds to the shipped file.

    ``document`` is the parsed file, ``name`` begins the message. Raises UsageError where ``extends`` has
    another value, also none.
    """
    if not isinstance(document, dict) or KEY not in document:
        return False
    if document[KEY] != DEFAULT:
        raise UsageError(f"{name}: {KEY}: found {document[KEY]!r}, allowed {DEFAULT}")
    return True


def extended(own: dict[str, Any], default: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns the shipped document ``default`` merged with ``own``, a file's: its new strategies come first.

    A strategy that both have stays in its place: each key that the file gives replaces the shipped one; in
    ``knobs``, ``let`` and ``projection`` each name. A document that has not the form of a space file is
    returned as it is, without ``extends``, for the schema to refuse.

    Raises UsageError, which begins with the file's ``name``, for what is shipped under no such name: a
    strategy without what a new one needs, and a knob that the script of a shipped strategy does not read.
    """
    wanted = own.get("strategies")
    if not isinstance(wanted, dict):
        return {key: value for key, value in own.items() if key != KEY}
    shipped = default["strategies"]
    for strategy, entry in wanted.items():
        _require_known(strategy, entry, shipped, name)
    new = {name: entry for name, entry in wanted.items() if name not in shipped}
    known = {name: _changed(entry, wanted.get(name, {})) for name, entry in shipped.items()}
    others = {key: value for key, value in own.items() if key not in (KEY, "strategies")}
    return others | {"strategies": new | known}


def _require_known(strategy: str, entry: Any, shipped: dict[str, Any], name: str) -> None:
    if not isinstance(entry, dict):
        return
    if strategy not in shipped:
        if NEEDED not in entry:
            error = unknown_value(f"{name}: strategies", strategy, shipped)
            raise UsageError(f"{error.message}, or a new one with {NEEDED}", error.hint)
        return
    known, own = shipped[strategy].get("knobs", {}), entry.get("knobs", {})
    if TEMPLATE in entry or not isinstance(own, dict):
        return
    for knob in own:
        if knob not in known:
            raise unknown_value(f"{name}: strategies.{strategy}.knobs", knob, known)


def _changed(shipped: dict[str, Any], own: Any) -> Any:
    if not isinstance(own, dict):
        return own
    return (
        shipped | own | {key: _merged(shipped, own, key) for key in BY_NAME if key in shipped or key in own}
    )


def _merged(shipped: dict[str, Any], own: dict[str, Any], key: str) -> Any:
    """Returns the shipped mapping under ``key`` with the entries of a file added, or put in their place."""
    given = own.get(key, {})
    return shipped.get(key, {}) | given if isinstance(given, dict) else given
