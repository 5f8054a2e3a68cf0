"""Who may ask which kind a target is: the kinds' own files. Others ask a field of its value."""

import ast
import re
from collections.abc import Collection, Iterator

import pytest

from tests.source_files import MODULES, ROOT, found_in, last_name, nodes_of, tree_of
from tuner.targets.registry import BUILT_IN, TARGETS

OWN_PACKAGE = "targets"
NAMES_THEM = "core.candidate"  # a property of a TargetName is asked in its own file
WORDS = {*TARGETS, "replay"}  # the last names no kind, but a source of outcomes that has no machine
CONSTANTS = {name.upper() for name in WORDS}
OF_A_TARGET = re.compile(r"target|settings|resolved|asked|meant", re.IGNORECASE)


def kind_questions(tree: ast.AST) -> list[str]:
    """Returns where a kind of target is compared: with its word, or by ``target.kind``."""
    return [f"line {asked.lineno}" for node in nodes_of(tree) for asked in _questions(node)]


def _questions(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Compare(left, _, others):
            yield from (each for each in (left, *others) if _is_kind(each))
        case ast.Call(ast.Attribute(_, "startswith" | "removeprefix"), options):
            yield from (each for each in options if _is_word(each))
        case ast.Dict(keys):
            yield from (each for each in keys if each is not None and _is_word(each))
        case ast.match_case(ast.MatchValue(value)) if _is_word(value):
            yield value


def _is_kind(node: ast.AST) -> bool:
    match node:
        case ast.Tuple(items) | ast.List(items) | ast.Set(items):
            return any(_is_word(item) for item in items)
        case ast.Attribute(value, "kind"):
            return OF_A_TARGET.search(ast.unparse(value)) is not None
    return _is_word(node)


def _is_word(node: ast.AST) -> bool:
    match node:
        case ast.Constant(str(text)):
            return text.partition(":")[0] in WORDS
        case ast.Name(name) | ast.Attribute(_, name):
            return name in CONSTANTS
        case ast.JoinedStr([ast.FormattedValue(value), *_]):
            return _is_word(value)
    return False


def test_each_kind_is_one_file_and_compared_in_its_own_package_alone() -> None:
    apart = (NAMES_THEM, f"{OWN_PACKAGE}.", "db.migrations.")  # a migration names the kinds of its time
    others = [name for name in MODULES if not name.startswith(apart)]
    assert found_in(others, kind_questions) == {}
    texts = [path for path in (ROOT / "tuner").rglob("*.*") if path.suffix in (".py", ".html")]
    assert [path for path in texts if "is_replay" in path.read_text()] == []
    assert list(TARGETS) == [*BUILT_IN, "simulator"]  # which is an entry point
    assert {name: kind.name for name, kind in TARGETS.items()} == {name: name for name in TARGETS}


# Fields of dataclasses in ``tuner/targets`` that hold functions, of which "go to definition" leads nowhere.
FUNCTION_FIELDS = 4
GONE = re.compile(r"\b(TargetBackend|MeasurementBackend|Recordings)\b")


def function_fields(tree: ast.AST, aliases: Collection[str]) -> list[str]:
    """Returns the annotated fields of classes whose type is, or contains, a function type."""
    found = []
    for node in nodes_of(tree):
        if isinstance(node, ast.ClassDef):
            fields = (each for each in node.body if isinstance(each, ast.AnnAssign))
            names = {ast.unparse(each.target): ast.unparse(each.annotation) for each in fields}
            found += [f"{node.name}.{name}" for name, type_ in names.items() if _is_function(type_, aliases)]
    return found


def _is_function(annotation: str, aliases: Collection[str]) -> bool:
    return bool({"Callable", *aliases} & set(re.findall(r"\w+", annotation)))


def test_targets_are_classes_with_methods() -> None:
    own = {name: tree_of(path) for name, path in MODULES.items() if name.startswith(f"{OWN_PACKAGE}.")}
    aliases = {
        last_name(node.targets[0])
        for tree in own.values()
        for node in nodes_of(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("Callable[")
    }
    fields = [field for tree in own.values() for field in function_fields(tree, aliases)]
    assert len(fields) <= FUNCTION_FIELDS, fields
    gone = [name for name, path in MODULES.items() if GONE.search(path.read_text())]
    assert gone == []
    for target in (*TARGETS.values(), *(each.cross_compiled for each in TARGETS.values())):
        assert target is None or getattr(type(target), "__final__", False)


def test_a_planted_function_field_is_found() -> None:
    tree = ast.parse("class Kind:\n    name: str\n    status: Callable[[], int]\n    seeds: 'Seeds | None'")
    assert function_fields(tree, ("Seeds",)) == ["Kind.status", "Kind.seeds"]


QUESTIONS = (
    *('settings.target.kind == "cpu"', "trial.record.target.kind in kinds", "word == SIMULATOR"),
    *('name in ("cuda", "simulator")', 'word.startswith("replay:")', 'word.startswith(f"{REPLAY}:")'),
    *('{"cpu": 1, "cuda": 2}[target.kind]', 'match word:\n    case "cuda":\n        pass'),
)
OTHERS = ("kind.programs is None", "TARGETS[target.kind].source(x)", 'dtype.kind == "f"', "target == other")


@pytest.mark.parametrize("source", [*QUESTIONS, *OTHERS])
def test_a_planted_question_is_found(source: str) -> None:
    assert bool(kind_questions(ast.parse(source))) == (source in QUESTIONS)
