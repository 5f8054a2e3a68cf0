"""What no file does: print, read the environment, swallow an exception, name a test, repeat a class name."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

import pytest

from tests.source_files import MODULES, ROOT, found_in, imports, last_name, tree_of
from tuner.core.fusions import NUMBER_TYPES

PRINTERS = {
    "library.bundle.command",  # it runs where click is not installed
    "results.output.progress",  # of a run and of a campaign, for the command line and for the Python API
}
# Who may read the environment, beside the command line.
ENVIRONMENT_READERS = {
    "runtime.workers.processes",  # TUNER_LOCK_FOLDER: processes of tests share no lock
    "runtime.workers.child_process",  # a child gets its parent's environment, changed
    "results.database_name",  # TUNER_DB means the same on the command line and in the Python API
}
PTX = ("simulator.", "cli.commands.ptx")  # whose types have their own names
ADVICE = re.compile(r"(?::|;|, with:?|by) tuner [a-z]")  # a command as the end of a message begins
OLD_MESSAGE = re.compile(
    r"\bfound (no|none|neither|both)\b.*\ballowed\b|\ballowed (with|without|none|one of (both|them))\b"
)
BELOW_CLI = [name for name in MODULES if not name.startswith(("cli.", "fleet.commands."))]


def texts_in(tree: ast.AST) -> Iterator[str]:
    """Yields the texts that stand in a tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def named_tests(tree: ast.AST) -> list[str]:
    """Returns which modules of tests are imported, or named in a text for a child process to import."""
    in_texts = {name for text in texts_in(tree) for name in re.findall(r"\btests\.\w[\w.:]*", text)}
    return sorted(in_texts | {name for name in imports(tree) if name.split(".")[0] == "tests"})


def used_twice(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Returns which public classes of files have one name: name -> files."""
    homes: dict[str, list[str]] = defaultdict(list)
    for file, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(file)
    return {name: files for name, files in homes.items() if len(files) > 1}


def trees_besides_tests() -> dict[str, ast.Module]:
    """Returns the files of product and benchmarks, parsed, by their paths."""
    paths = (*MODULES.values(), *sorted((ROOT / "benchmarks").rglob("*.py")))
    return {str(path.relative_to(ROOT)): tree_of(path) for path in paths}


def environment_reads(tree: ast.AST) -> list[str]:
    """Returns where a module reads or changes the environment."""
    names = ("os.environ", "os.environb", "os.getenv", "environ", "getenv")
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute | ast.Name))
    likely = (node for node in nodes if last_name(node).startswith(("environ", "getenv")))
    return [f"line {node.lineno}" for node in likely if ast.unparse(node) in names]


def prints(tree: ast.AST) -> list[str]:
    """Returns where a module prints."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [
        f"line {node.lineno}" for node in calls if isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def simulator_questions(tree: ast.AST) -> list[str]:
    """Returns where a device is asked whether it is the simulated one."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    asked = (node for node in calls if last_name(node.func) == "isinstance")
    return [f"line {node.lineno}" for node in asked if "SimulatedDevice" in ast.unparse(node.args[1])]


def element_tables(tree: ast.AST) -> list[str]:
    """Returns where widths or numpy types of numbers are listed by their MLIR names."""
    tables = (node for node in ast.walk(tree) if isinstance(node, ast.Dict))
    return [f"line {table.lineno}" for table in tables if sum(map(_is_of_table, *_items(table))) > 1]


def _items(table: ast.Dict) -> tuple[list[str], list[str]]:
    pairs = [(key, value) for key, value in zip(table.keys, table.values, strict=True) if key is not None]
    return [ast.unparse(key) for key, _ in pairs], [ast.unparse(value) for _, value in pairs]


def _is_of_table(key: str, value: str) -> bool:
    number = NUMBER_TYPES.get(key.strip("'"))
    if number is None:
        return False
    options = (str(number.bits), str(number.bytes), number.numpy_name)
    return value.strip("()'").rpartition(".")[2] in options


def swallowed(tree: ast.AST) -> list[str]:
    """Returns where any exception at all is caught and forgotten: neither raised again nor looked at."""
    return [
        f"line {node.lineno}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and _is_broad(node) and not _is_used(node)
    ]


def _is_broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(ast.unparse(kind) in ("Exception", "BaseException") for kind in kinds)


def _is_used(handler: ast.ExceptHandler) -> bool:
    nodes = [node for statement in handler.body for node in ast.walk(statement)]
    return any(
        isinstance(node, ast.Raise) or (isinstance(node, ast.Name) and node.id == handler.name)
        for node in nodes
    )


def test_neither_product_nor_benchmarks_name_a_test() -> None:
    found = {name: named_tests(tree) for name, tree in trees_besides_tests().items()}
    assert {name: names for name, names in found.items() if names} == {}


def test_no_public_class_name_is_used_twice() -> None:
    assert used_twice(trees_besides_tests()) == {}


def test_only_the_command_line_prints() -> None:
    assert found_in((name for name in BELOW_CLI if name not in PRINTERS), prints) == {}


def test_only_the_command_line_reads_the_environment() -> None:
    assert found_in((name for name in BELOW_CLI if name not in ENVIRONMENT_READERS), environment_reads) == {}


def test_no_device_is_asked_whether_it_is_simulated() -> None:
    others = [name for name in MODULES if name.split(".")[0] != "simulator"]
    assert found_in(others, simulator_questions) == {}


def test_element_types_have_one_table() -> None:
    others = [name for name in MODULES if not name.startswith(PTX)]
    assert found_in(others, element_tables) == {}


def test_no_exception_is_swallowed() -> None:
    assert found_in(MODULES, swallowed) == {}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f():\n    from tests.fakes import FakeTarget", ["tests.fakes.FakeTarget"]),
        ("Factory('tests.fakes:FakeTarget')", ["tests.fakes:FakeTarget"]),
        ("'the largest that tests/mlir/test_jit.py allows, as in all tests.'", []),
    ],
)
def test_a_name_of_a_test_is_found(source: str, names: list[str]) -> None:
    assert named_tests(ast.parse(source)) == names


def test_a_class_name_of_two_files_is_found() -> None:
    sources = {
        "a.py": "class Table: ...",
        "b.py": "class _Row: ...",
        "c.py": "class Table: ...\nclass _Row: ...",
    }
    found = used_twice({file: ast.parse(source) for file, source in sources.items()})
    assert found == {"Table": ["a.py", "c.py"]}


@pytest.mark.parametrize("source", ["os.environ['A']", "os.getenv('A')", "environ['A'] = '1'"])
def test_a_look_at_the_environment_is_found(source: str) -> None:
    assert environment_reads(ast.parse(source)) == ["line 1"]


@pytest.mark.parametrize(
    ("table", "is_found"),
    [
        ("{'f32': 4, 'f64': 8}", True),
        ("{'f16': 16, 'bf16': 16, 'tf32': 32}", True),
        ("{'f32': np.dtype(np.float32), 'i8': np.dtype(np.int8), **more}", True),
        ("{'f16': 'float16', 'f64': 'float64'}", True),
        ("{'i64': c_int64, 'i32': c_int32}", False),
        ("{'f32': 0, 'f64': 1, 'f16': 2, 'bf16': 14}", False),
        ("{'f32': 4}", False),
    ],
)
def test_a_table_of_element_types_is_found(table: str, is_found: bool) -> None:
    assert element_tables(ast.parse(table)) == ["line 1"] * is_found


@pytest.mark.parametrize("kinds", ["SimulatedDevice", "(A, device.SimulatedDevice)", "A | SimulatedDevice"])
def test_a_question_for_the_simulated_device_is_found(kinds: str) -> None:
    assert simulator_questions(ast.parse(f"isinstance(device, {kinds})")) == ["line 1"]


def test_a_print_is_found() -> None:
    assert prints(ast.parse("def f():\n    print()")) == ["line 2"]


@pytest.mark.parametrize(
    ("clause", "is_swallowed"),
    [
        ("except Exception:\n    result = ()", True),
        ("except:\n    pass", True),
        ("except (ValueError, BaseException) as error:\n    pass", True),
        ("except Exception as error:\n    result = str(error)", False),
        ("except BaseException:\n    stop()\n    raise", False),
        ("except ValueError:\n    pass", False),
    ],
)
def test_a_swallowed_exception_is_found(clause: str, is_swallowed: bool) -> None:
    tree = ast.parse(f"try:\n    work()\n{clause}")
    assert bool(swallowed(tree)) == is_swallowed


def commands_within_lines(tree: ast.AST) -> list[str]:
    """Returns lines of errors that have a command in them, behind which no database can be named."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args)
    lines = (call.args[0] for call in calls if ast.unparse(call.func).endswith("Error"))
    return [ast.unparse(line) for line in lines if any(map(ADVICE.search, texts_in(line)))]


def test_errors_give_what_to_type_as_their_command() -> None:
    speaking = [name for name, path in MODULES.items() if ADVICE.search(path.read_text())]
    assert "fleet.commands.fleet" in speaking
    assert found_in(speaking, commands_within_lines) == {}
    found = commands_within_lines(ast.parse('raise UsageError(f"{a}: none; begin with: tuner tune {b}")'))
    assert len(found) == 1


def old_messages(tree: ast.AST) -> list[str]:
    """Returns messages that say "found, allowed" of what is missing or cannot be combined."""
    return [text for text in texts_in(tree) if OLD_MESSAGE.search(text)]


def test_found_and_allowed_are_said_of_values_only() -> None:
    people = [name for name in MODULES if name.split(".")[0] in ("cli", "output", "tuning")]
    assert found_in(people, old_messages) == {}
    old = ("found no shape, allowed", "found both, allowed one of both", "found x, allowed without --on")
    assert [len(old_messages(ast.parse(repr(text)))) for text in old] == [1, 1, 1]
    assert old_messages(ast.parse("'format: found x, allowed table, json'")) == []


def error_titles(tree: ast.AST) -> list[str]:
    """Returns texts that begin with the title of an error or of a hint, as commands print them."""
    return [text for text in texts_in(tree) if re.match(r"(error|hint|tuner): ", text)]


def test_errors_and_hints_are_printed_in_one_place() -> None:
    assert found_in((name for name in MODULES if name != "core.errors"), error_titles) == {}
    assert len(error_titles(ast.parse("print(f'error: {line}')"))) == 1
