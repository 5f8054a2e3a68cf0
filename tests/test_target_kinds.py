"""Who may ask which kind a target is: the kinds' own files. Others ask a field of its value."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.source_files import MODULES, ROOT, found_in, nodes_of
from tuner.targets.registry import BUILT_IN, KINDS

OWN_PACKAGE = "targets"
NAMES_THEM = "core.candidate"  # a property of a TargetName is asked in its own file
WORDS = {*KINDS, "replay"}  # the last names no kind, but a source of outcomes that has no machine
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
    folder = ROOT / "tuner" / OWN_PACKAGE.replace(".", "/")
    files = {path for path in folder.rglob("*.py") if "\nKIND = " in path.read_text()}
    assert len(files) == len(BUILT_IN)
    assert list(KINDS) == [*BUILT_IN, "simulator"]  # which is an entry point
    assert {name: kind.name for name, kind in KINDS.items()} == {name: name for name in KINDS}


QUESTIONS = (
    *('settings.target.kind == "cpu"', "trial.record.target.kind in kinds", "word == SIMULATOR"),
    *('name in ("cuda", "simulator")', 'word.startswith("replay:")', 'word.startswith(f"{REPLAY}:")'),
    *('{"cpu": 1, "cuda": 2}[target.kind]', 'match word:\n    case "cuda":\n        pass'),
)
OTHERS = ("kind.programs is None", "KINDS[target.kind].source(x)", 'dtype.kind == "f"', "target == other")


@pytest.mark.parametrize("source", [*QUESTIONS, *OTHERS])
def test_a_planted_question_is_found(source: str) -> None:
    assert bool(kind_questions(ast.parse(source))) == (source in QUESTIONS)
