"""The file of a dispatch rule: YAML to read, with a checksum, for one machine and one search space."""

import hashlib
from pathlib import Path
from typing import Final

import yaml

from tuner.core.dataclass_json import decode, encode, require_format
from tuner.core.errors import UsageError
from tuner.core.text_file import read_text
from tuner.library.dispatch.rule import DispatchRule
from tuner.library.dispatch.space_of_problems import SpaceOfProblems
from tuner.space.file import strict_yaml

FORMAT: Final = "tuner-rule"
VERSION: Final = 1
LIMIT_BYTES: Final = 4_000_000
HEAD: Final = ("format", "version", "sha256")  # the first lines; the hash is of all lines after them
AGAIN: Final = "tuner distill GROUP --configs K -o {}"


def rule_text(rule: DispatchRule) -> str:
    """Returns the text of a rule file; ``parse_rule`` reads it."""
    body = yaml.safe_dump(encode(rule), sort_keys=False, width=110, default_flow_style=None)
    head = {"format": FORMAT, "version": VERSION, "sha256": _hash(body)}
    return "".join(f"{key}: {value}\n" for key, value in head.items()) + body


def parse_rule(text: str, name: str) -> DispatchRule:
    """Returns the rule of a file's text. Raises UsageError for a damaged, changed or unknown file.

    ``name`` is the file's name for messages.
    """
    lines = text.split("\n", len(HEAD))
    head = {
        key: lines[place].removeprefix(f"{key}: ") for place, key in enumerate(HEAD) if len(lines) > place
    }
    version = head.get("version", "")
    known = {"format": head.get("format"), "version": int(version) if version.isdecimal() else version}
    require_format(known, FORMAT, VERSION, name)
    if len(lines) <= len(HEAD) or head["sha256"] != _hash(lines[-1]):
        raise UsageError(f"{name}: is damaged or was changed: its sha256 differs", AGAIN.format(name))
    return decode(DispatchRule, strict_yaml.load(lines[-1], name), f"{name}: ")


def read_rule(path: Path, space: SpaceOfProblems) -> DispatchRule:
    """Reads a rule file for a search space on a machine with a number of threads.

    Raises UsageError for a file that cannot be read or is damaged, and for one of another machine, another
    number of threads or another search space.
    """
    rule = parse_rule(read_text(path, "a rule file of tuner distill", LIMIT_BYTES), f"{path}")
    if not space.machine.is_named(rule.machine):
        raise UsageError(
            f"{path}: was measured on {rule.machine!r}, this machine is {space.machine.name!r}",
            AGAIN.format(path),
        )
    if rule.threads != space.threads:
        raise UsageError(f"{path}: was measured with threads={rule.threads}, not with {space.threads}")
    if _space_sha256(rule, space) != rule.space_sha256:
        raise UsageError(f"{path}: belongs to another search space", AGAIN.format(path))
    return rule


def _space_sha256(rule: DispatchRule, space: SpaceOfProblems) -> str:
    """Returns the hash of the rule's strategies in a search space; "" where one of them is unknown there."""
    try:
        return space.sha256(each.strategy for each in rule.configurations)
    except UsageError:
        return ""


def _hash(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()
