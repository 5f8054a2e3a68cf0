"""JSON: the files that tuner writes, by the dataclasses that its codec reads; what ``--json`` prints."""

import ast
import datetime
import enum
import importlib
import inspect
import re
import sys
import types
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from docs.generators.markdown import as_markdown, table
from tuner.core.remote_results import MeasuringProvenance, PendingTrial
from tuner.core.serialization import FORM, WORDS, Form, key_of
from tuner.elsewhere.bundle import archive, results_file
from tuner.results.regression import gate
from tuner.results.regression.gate import GateEntry
from tuner.space.scripts.header import ScriptProvenance
from tuner.tuning import rule
from tuner.tuning.rule import DispatchRule

BUNDLE: Final = (
    f'`{archive.MANIFEST}` in the zip: `format` "{archive.BUNDLE_FORMAT}", '
    f"`version` {archive.BUNDLE_VERSION}, `created`, `tuner`, `seed`, `check` and `trials`. "
    "The fields of a trial:"
)
RESULTS: Final = (
    f'JSON lines. The first: `format` "{results_file.RESULTS_FORMAT}", '
    f"`version` {results_file.RESULTS_VERSION} and `provenance`. "
    f"Each further line has one of the keys {', '.join(f'`{key}`' for key in results_file.LINE_TYPES)}."
)
GATE: Final = (
    f'`format` "{gate.FORMAT}", `version` {gate.VERSION}, `created`, `tuner` and `entries`. '
    "The fields of an entry:"
)
RULE: Final = (
    f"YAML of `tuner portfolio -o`: `format` {rule.FORMAT}, `version` {rule.VERSION}, `sha256` of the "
    "lines after it, then the fields of the rule:"
)
FILES: Final[tuple[tuple[str, str, tuple[type, ...]], ...]] = (  # title, about, dataclasses
    ("Provenance of an exported script", "`best.provenance.json` next to `best.mlir`.", (ScriptProvenance,)),
    ("Bundle", BUNDLE, (PendingTrial,)),
    ("Results of a bundle", RESULTS, (MeasuringProvenance, *results_file.LINE_TYPES.values())),
    ("Gate", GATE, (GateEntry,)),
    ("Rule file", RULE, (DispatchRule,)),
)
PRINTED: Final = (  # command -> the function that makes its document
    ("tune", "tuner.results.output.json_documents:tune_document"),
    ("tune FILE", "tuner.models.documents:program_document"),
    ("tune --shapes FILE", "tuner.results.output.campaign_tables:campaign_document"),
    ("tune --on CLASSES", "tuner.cli.tuned:several_document"),
    ("history", "tuner.results.output.json_documents:listed_document"),
    ("show", "tuner.results.output.json_documents:trial_document"),
    ("show run:ID", "tuner.results.output.json_documents:run_document"),
    ("show campaign:ID", "tuner.results.output.campaign_tables:shown_campaign_document"),
    ("history --runs", "tuner.results.output.json_documents:listed_run_document"),
    ("diff", "tuner.results.differences:difference_document"),
    ("judge", "tuner.results.regression.submission_document:submission_document"),
    ("space", "tuner.cli.commands.catalogue:_space_document"),
    ("strategies", "tuner.cli.commands.catalogue:_strategy_document"),
    ("explain", "tuner.results.explanations:explain_document"),
    ("check SCRIPT", "tuner.cli.checked:check_document"),
    ("check --baseline FILE", "tuner.cli.checked:gate_document"),
    ("portfolio", "tuner.cli.commands.portfolio:portfolio_document"),
    ("run", "tuner.models.documents:run_document"),
    ("ptx", "tuner.gpu.commands.ptx:_document"),
    ("fleet status", "tuner.elsewhere.fleet.commands.status:status_document"),
)
COMMENT: Final = re.compile(r"^    (\w+): .*?  # (.*)$", re.MULTILINE)
COMMENT_ABOVE: Final = re.compile(r"^((?:    # .*\n)+)    (\w+): ", re.MULTILINE)


def stored_documents() -> str:
    """Returns a section for each kind of file, with a table per dataclass in it."""
    parts: list[str] = []
    shown: set[type] = set()
    for title, about, roots in FILES:
        kinds = dict.fromkeys(kind for root in roots for kind in _reachable(root) if kind not in shown)
        parts += [f"## {title}\n", f"{about}\n", *map(_table_of, kinds)]
        shown |= kinds.keys()
    return "\n".join(parts)


def command_documents() -> str:
    """Returns the keys of what each command prints with ``--json``."""
    rows = []
    for command, path in PRINTED:
        module, _, name = path.partition(":")
        keys = keys_of(getattr(importlib.import_module(module), name))
        rows.append((f"`tuner {command} --json`", ", ".join(f"`{key}`" for key in keys)))
    return table(("command", "keys"), rows)


def keys_of(function: Any) -> tuple[str, ...]:
    """Returns the keys of the document, or of each of a list, that the text of a function returns."""
    (tree,) = ast.parse(inspect.getsource(function)).body
    returned = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value]
    return tuple(dict.fromkeys(key for value in returned for key in _keys(value, function, tree)))


def _keys(node: ast.expr, function: Any, tree: ast.stmt) -> list[str]:
    """Returns the keys of an expression that is a document. Raises ValueError for another expression."""
    match node:
        case ast.Dict():
            pairs = zip(node.keys, node.values, strict=True)
            own = [(name and [ast.literal_eval(name)], value) for name, value in pairs]
            return [key for name, value in own for key in name or _keys(value, function, tree)]
        case ast.ListComp():
            return _keys(node.elt, function, tree)
        case ast.BinOp():
            return [*_keys(node.left, function, tree), *_keys(node.right, function, tree)]
        case ast.Name():
            return [key for each in _assigned(tree, node.id) for key in _keys(each, function, tree)]
        case ast.Call(func=ast.Name(id="encode")):
            return [name for name, _, _ in _rows(_returned_type(function, node))]
        case ast.Call(func=ast.Name(id=name)):
            return list(keys_of(vars(sys.modules[function.__module__])[name]))
    raise ValueError(f"{function.__name__}: {ast.unparse(node)} is not a document")


def _assigned(tree: ast.stmt, name: str) -> list[ast.expr]:
    """Returns what a function assigns to a local name, as a whole or to one of its keys."""
    found: list[ast.expr] = []
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        match targets, node:
            case [ast.Name(id=assigned)], (ast.Assign() | ast.AnnAssign()) if assigned == name and node.value:
                found.append(node.value)
            case [ast.Subscript(value=ast.Name(id=assigned), slice=key)], ast.Assign() if assigned == name:
                found.append(ast.Dict(keys=[key], values=[node.value]))
    return found


def _returned_type(function: Any, call: ast.Call) -> Any:
    """Returns the type of the argument that a function encodes whole."""
    (argument,) = call.args
    assert isinstance(argument, ast.Name), ast.unparse(call)
    return get_type_hints(function)[argument.id]


def _reachable(kind: Any) -> list[type]:
    """Returns the dataclasses that a document of a kind may contain, itself first."""
    found: dict[type, None] = {}

    def visit(hint: Any) -> None:
        if is_dataclass(hint) and isinstance(hint, type):
            if hint not in found:
                found[hint] = None
                for _, inner, _ in _rows(hint):
                    visit(inner)
        else:
            for inner in get_args(hint):
                visit(inner)

    visit(kind)
    return list(found)


def _table_of(kind: type) -> str:
    rows = [(f"`{name}`", json_type(hint), meaning) for name, hint, meaning in _rows(kind)]
    about = as_markdown((inspect.getdoc(kind) or "").partition("\n")[0])
    return f"### {kind.__name__.lstrip('_')}\n\n{about}\n\n{table(('key', 'type', 'meaning'), rows)}"


def _rows(kind: type) -> list[tuple[str, Any, str]]:
    """Returns (key, type, meaning) of what a dataclass has in JSON."""
    hints = get_type_hints(kind, include_extras=True)
    source = inspect.getsource(kind)
    above = {name: " ".join(text.replace("#", "").split()) for text, name in COMMENT_ABOVE.findall(source)}
    comments = above | dict(COMMENT.findall(source))
    rows: list[tuple[str, Any, str]] = []
    for field in fields(kind):
        other: Form | None = field.metadata.get(FORM)
        if other is not None and other.is_flat:
            rows += _rows(other.kind)
        else:
            hint = other.kind if other else hints[field.name]
            rows.append((key_of(field), hint, _meaning(field, comments)))
    return rows


def _meaning(field: Field[Any], comments: dict[str, str]) -> str:
    is_optional = field.default is not MISSING or field.default_factory is not MISSING
    found = as_markdown(comments.get(field.name, ""))
    return f"{found} (may be missing)".strip() if is_optional else found


def json_type(hint: Any) -> str:
    """Returns how a type is written in JSON."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return str(inner[1].words)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(json_type, inner)))
    if origin is tuple:
        if inner[-1] is ...:
            return f"list of: {json_type(inner[0])}"
        return f"[{', '.join(map(json_type, inner))}]"
    if origin is dict:
        return f"object of: {json_type(inner[1])}"
    if hint is types.NoneType:
        return "null"
    if hint is Any:
        return "any value"
    if is_dataclass(hint):
        return str(hint.__name__).lstrip("_")  # type: ignore[union-attr]
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return " or ".join(f'"{each.value}"' for each in hint)
    return WORDS.get(hint, {datetime.datetime: "time, ISO 8601", bytes: "text, ASCII"}.get(hint, str(hint)))
