"""What no file does: print, read the environment, swallow an exception, name a test, repeat a class name.

Every cache of the package has its key: a new one belongs into the table, with a test of its parts.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.source_files import MODULES, ROOT, found_in, imports, last_name, nodes_of, tree_of
from tuner.core import epilogues, fusions, problem
from tuner.core.dtypes import NUMBER_TYPES
from tuner.core.epilogues import EPILOGUES
from tuner.core.fusions import ROWS

PRINTERS = {
    "elsewhere.bundle.command",  # it runs where click is not installed
    "results.output.progress",  # of a run and of a campaign, for the command line and for the Python API
}
# Who may read the environment, beside the command line.
ENVIRONMENT_READERS = {
    "runtime.timing_lock",  # TUNER_LOCK_FOLDER: processes of tests share no lock
    "runtime.workers.child_process",  # a child gets its parent's environment, changed
    "results.database_name",  # TUNER_DB means the same on the command line and in the Python API
    "runtime.cpu.host",  # TUNER_CPU: the processor that code counts on, as /proc/cpuinfo
    "runtime.workers.processes",  # TUNER_TIME_LIMIT_FACTOR: of each child, whoever starts it
}
PTX = ("gpu.ptxsim.", "gpu.commands.ptx")  # whose types have their own names
# Who may list types beside tuner.core.dtypes: an instruction, a library or a chip names those that it takes.
TYPE_LISTS = {
    "core.gpu": "flop of each type, by the documents of a chip",
    "mlir.effects.runner_signatures": "names of functions of MLIR's runner library",
    "gpu.mlir.tensor_maps": "numbers of CUtensorMapDataType",
    "mlir.fusions.operations": "elements that the schedules of elementwise operations take",
    "runtime.programs.runner_functions": "C types of the arguments of MLIR's runner functions",
    "gpu.driver.cublas": "numbers of cudaDataType, and what cublasGemmEx takes",
    "gpu.driver.cublas_lt": "numbers of cudaDataType, and what cublasLtMatmul stores",
    "targets.cpu.baseline_libraries": "what each library multiplies",
    "targets.cpu.blas": "names of functions of cblas",
    "targets.cpu.fusion_draws": "large numbers whose fourth powers are in range",
    "targets.cpu.onednn": "numbers of dnnl_data_type_t",
    "models.quantized.quantized_baselines": "errors of libraries, by how they round A",
}
LISTED_TYPES = 3  # names in one literal that are a list of types
ADVICE = re.compile(r"(?::|;|, with:?|by) tuner [a-z]")  # a command as the end of a message begins
OLD_ALLOWED = r"\ballowed (with|without|none|one of (both|them))\b"
OLD_MESSAGE = re.compile(rf"\bfound (no|none|neither|both)\b.*\ballowed\b|{OLD_ALLOWED}")
Check = Callable[[ast.AST], list[str]]
COMMANDS = (
    *("cli.", "elsewhere.commands.", "elsewhere.fleet.commands.", "gpu.commands."),
    *("models.commands.", "models.library.commands."),
)
BELOW_CLI = [name for name in MODULES if not name.startswith(COMMANDS)]


def texts_in(tree: ast.AST) -> Iterator[str]:
    for node in nodes_of(tree):
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
    paths = (*MODULES.values(), *sorted((ROOT / "benchmarks").rglob("*.py")))
    return {str(path.relative_to(ROOT)): tree_of(path) for path in paths}


def environment_reads(tree: ast.AST) -> list[str]:
    names = ("os.environ", "os.environb", "os.getenv", "environ", "getenv")
    nodes = (node for node in nodes_of(tree) if isinstance(node, ast.Attribute | ast.Name))
    likely = (node for node in nodes if last_name(node).startswith(("environ", "getenv")))
    return [f"line {node.lineno}" for node in likely if ast.unparse(node) in names]


def prints(tree: ast.AST) -> list[str]:
    called = (node.func for node in nodes_of(tree) if isinstance(node, ast.Call))
    return [f"line {each.lineno}" for each in called if isinstance(each, ast.Name) and each.id == "print"]


def simulator_questions(tree: ast.AST) -> list[str]:
    calls = (node for node in nodes_of(tree) if isinstance(node, ast.Call))
    asked = (node for node in calls if last_name(node.func) == "isinstance")
    return [f"line {node.lineno}" for node in asked if "SimulatedDevice" in ast.unparse(node.args[1])]


def element_tables(tree: ast.AST) -> list[str]:
    tables = (node for node in nodes_of(tree) if isinstance(node, ast.Dict))
    return [f"line {table.lineno}" for table in tables if sum(map(_is_of_table, *_items(table))) > 1]


def type_lists(tree: ast.AST) -> list[str]:
    """Returns literals with several names of types: tuples, lists, sets, keys or values of a dict."""
    found = []
    for node in nodes_of(tree):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            sides = [node.elts]
        elif isinstance(node, ast.Dict):
            sides = [[key for key in node.keys if key is not None], node.values]
        else:
            continue
        if any(len({*map(_type_named, side)} - {""}) >= LISTED_TYPES for side in sides):
            found.append(f"line {node.lineno}")
    return found


def _type_named(node: ast.expr) -> str:
    value = node.value if isinstance(node, ast.Constant) else ""
    return value if isinstance(value, str) and value in {*ROWS, *NUMBER_TYPES} else ""


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
    handlers = (node for node in nodes_of(tree) if isinstance(node, ast.ExceptHandler))
    return [f"line {each.lineno}" for each in handlers if _is_broad(each) and not _is_used(each)]


def _is_broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(ast.unparse(kind) in ("Exception", "BaseException") for kind in kinds)


def _is_used(handler: ast.ExceptHandler) -> bool:
    nodes = [node for statement in handler.body for node in ast.walk(statement)]
    names = [node.id for node in nodes if isinstance(node, ast.Name)]
    return handler.name in names or any(isinstance(node, ast.Raise) for node in nodes)


def test_the_product_names_no_test_and_benchmarks_name_only_what_they_share_with_tests() -> None:
    found = {}
    for file, tree in trees_besides_tests().items():
        shared = "tests.support." if file.startswith("benchmarks/") else "none"
        names = [name for name in named_tests(tree) if not name.startswith(shared)]
        if names:
            found[file] = names
    assert found == {}


def test_no_public_class_is_named_twice() -> None:
    assert used_twice(trees_besides_tests()) == {}
    sources = {"a": "class Table: ...", "b": "class _Row: ...", "c": "class Table: ...\nclass _Row: ..."}
    found = used_twice({file: ast.parse(source) for file, source in sources.items()})
    assert found == {"Table": ["a", "c"]}


def commands_within_lines(tree: ast.AST) -> list[str]:
    """Returns lines of errors that have a command in them, behind which no database can be named."""
    calls = (node for node in nodes_of(tree) if isinstance(node, ast.Call) and node.args)
    lines = (call.args[0] for call in calls if ast.unparse(call.func).endswith("Error"))
    return [ast.unparse(line) for line in lines if any(map(ADVICE.search, texts_in(line)))]


def old_messages(tree: ast.AST) -> list[str]:
    return [text for text in texts_in(tree) if OLD_MESSAGE.search(text)]


def refusals_as_text(tree: ast.AST) -> list[str]:
    """Returns functions that return a value or a text that says why there is none, which is a ``Refusal``."""
    functions = (node for node in nodes_of(tree) if isinstance(node, ast.FunctionDef) and node.returns)
    return [function.name for function in functions if _is_refused_as_text(function)]


def _is_refused_as_text(function: ast.FunctionDef) -> bool:
    assert function.returns is not None
    returned = ast.unparse(function.returns).strip("'\"").split(" | ")
    values = [name for name in returned if re.match(r"[A-Z]|list", name) and name != "None"]
    says_why = function.name.lstrip("_").startswith(("why_not", "why_no_", "refusal"))
    return "str" in returned and (bool(values) or (says_why and "None" in returned))


def error_titles(tree: ast.AST) -> list[str]:
    return [text for text in texts_in(tree) if re.match(r"(error|hint|tuner): ", text)]


PEOPLE = ("cli.", "output.", "tuning.")


@pytest.mark.parametrize(
    ("modules", "check"),
    [
        ([name for name in BELOW_CLI if name not in PRINTERS], prints),
        ([name for name in BELOW_CLI if name not in ENVIRONMENT_READERS], environment_reads),
        ([name for name in MODULES if not name.startswith("gpu.ptxsim.")], simulator_questions),
        ([name for name in MODULES if not name.startswith(PTX)], element_tables),
        ([name for name in MODULES if name not in TYPE_LISTS and not name.startswith(PTX)], type_lists),
        (list(MODULES), swallowed),
        ([name for name, path in MODULES.items() if ADVICE.search(path.read_text())], commands_within_lines),
        ([name for name in MODULES if name.startswith(PEOPLE)], old_messages),
        ([name for name in MODULES if name != "core.errors"], error_titles),
        (list(MODULES), refusals_as_text),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_no_module_does_what_one_place_does(modules: list[str], check: Check) -> None:
    assert modules
    assert found_in(modules, check) == {}


@pytest.mark.parametrize(
    ("check", "source", "count"),
    [
        (named_tests, "def f():\n    from tests.fakes import FakeTarget", 1),
        (named_tests, "Factory('tests.fakes:FakeTarget')", 1),
        (named_tests, "'the largest that tests/mlir/test_jit.py allows, as in all tests.'", 0),
        (environment_reads, "os.environ['A']\nos.getenv('A')\nenviron['A'] = '1'", 3),
        (element_tables, "{'f32': 4, 'f64': 8}", 1),
        (element_tables, "{'f16': 16, 'bf16': 16, 'tf32': 32}", 1),
        (element_tables, "{'f32': np.dtype(np.float32), 'i8': np.dtype(np.int8), **more}", 1),
        (element_tables, "{'f16': 'float16', 'f64': 'float64'}", 1),
        (element_tables, "{'i64': c_int64, 'i32': c_int32}", 0),
        (element_tables, "{'f32': 0, 'f64': 1, 'f16': 2, 'bf16': 14}", 0),
        (element_tables, "{'f32': 4}", 0),
        (type_lists, "DTYPES = ('f32', 'bf16', 'i8')", 1),
        (type_lists, "{'f32', 'f16', 'i8', *more}", 1),
        (type_lists, "{'f32': 's', 'f64': 'd', 'f8E5M2': 'x'}", 1),
        (type_lists, "{'tf32': 'f32', 'e4m3': 'f8E4M3FN', 'e5m2': 'f8E5M2'}", 1),
        (type_lists, "('bf16', 'bf16', 'f32')", 0),
        (type_lists, "('f32', 'f64', 'double')", 0),
        (simulator_questions, "isinstance(device, SimulatedDevice)", 1),
        (simulator_questions, "isinstance(device, (A, device.SimulatedDevice))", 1),
        (simulator_questions, "isinstance(device, A | SimulatedDevice)", 1),
        (prints, "def f():\n    print()", 1),
        (swallowed, "try:\n    work()\nexcept Exception:\n    result = ()", 1),
        (swallowed, "try:\n    work()\nexcept:\n    pass", 1),
        (swallowed, "try:\n    work()\nexcept (ValueError, BaseException) as error:\n    pass", 1),
        (swallowed, "try:\n    work()\nexcept Exception as error:\n    result = str(error)", 0),
        (swallowed, "try:\n    work()\nexcept BaseException:\n    stop()\n    raise", 0),
        (swallowed, "try:\n    work()\nexcept ValueError:\n    pass", 0),
        (commands_within_lines, 'raise UsageError(f"{a}: none; begin with: tuner tune {b}")', 1),
        (old_messages, "'found no shape, allowed'", 1),
        (old_messages, "'found both, allowed one of both'", 1),
        (old_messages, "'found x, allowed without --on'", 1),
        (old_messages, "'format: found x, allowed table, json'", 0),
        (error_titles, "print(f'error: {line}')", 1),
        (refusals_as_text, "def plan_of(op: Op) -> Plan | str: ...", 1),
        (refusals_as_text, "def plan_of(op: Op) -> 'Plan | str': ...", 1),
        (refusals_as_text, "def why_not(op: Op) -> str | None: ...", 1),
        (refusals_as_text, "def why_not(op: Op) -> Refusal | None: ...", 0),
        (refusals_as_text, "def name_of(op: Op) -> str | None: ...", 0),
    ],
)
def test_what_is_planted_is_found(check: Check, source: str, count: int) -> None:
    assert len(check(ast.parse(source))) == count


def test_each_exception_from_one_table_of_types_is_needed() -> None:
    assert [name for name in TYPE_LISTS if not type_lists(tree_of(MODULES[name]))] == []


# Cache -> what it is keyed by, and the test that changes one component at a time where results depend on it.
CACHES = {
    "runtime.extensions.entry_points": "nothing: what is installed when the process begins",
    "runtime.timing_lock.cores_of_mask": "the affinity mask",
    "tuning.pretuned._rule": "the file, which is part of the package",
    "core.serialization._hints": "the class",
    "core.fusions.text_hash": "the whole text",
    "core.typed_arguments.annotation": "the function and the name of its argument",
    "db.queries.run_select": "nothing: a select without values",
    "db.queries.trial_select": "nothing: a select without values",
    "models.library.c.writer._templates": "nothing: files of the package",
    "runtime.compiled_files._compilers": "nothing: the sources and versions of the process",
    "mlir.passes.single_passes": "the pipeline's text",
    "mlir.fingerprint.sources_sha256": "the list of files; they are read once in a process, as the code is",
    "runtime.cpu.host.may_use_tiles": "nothing: a permission that a forked process inherits",
    "results.report.page._templates": "nothing: files of the package",
    "gpu.interpreter.memory._numbers": "the type",
    "models.torch.packed_nibbles._places": "the sizes",
    "models.torch.operations._function": "Product: tests/models/torch/test_cache_keys.py",
    "models.torch.compiled_products.compiled_product": "Product: tests/models/torch/test_cache_keys.py",
    "models.torch.operations.PACKED": "the parameter, what it contains, Product: the same",
    "runtime.cpu.jit._has_slow_masks": "nothing: the processor of this process",
    "runtime.cpu.jit.host_features": "nothing: the processor of this process",
    "models.run.program_weights._known": "size and checksum; what is found is compared as a whole",
    "models.run.program_weights._by_source": "code, packing, type, shape, hash and checksum of each input",
    "runtime.cpu.jit.shipped_module": "nothing: files of the package",
    "space.scripts.strategy._environment": "the folder; its files are read again when they change",
    "space.scripts.strategy._template": "the folder and the whole text",
    "gpu.ptxsim.device.kernels._parsed": "the whole image",
    "gpu.ptxsim.device.memory._numbered": "the number in a device address: an index of the regions that live",
    "space.file.reading._parsed": "the whole text and its name",
    "gpu.target.compiler.find_ptxas": "nothing: one ptxas in a process, whose version is stored",
    "targets.replay._read": "path, place on the disk, size and time of the file",
}
# On disk: FirstUseKey, tests/models/library/dispatch/test_first_use.py; ReuseKey, tests/db/test_queries.py;
# exported programs, by hashes of their files, tests/models/run/test_fused_program.py.
DECORATORS = ("cache", "lru_cache")
WEAK = ("WeakIdKeyDictionary", "WeakKeyDictionary", "WeakValueDictionary")


def caches_in(name: str, tree: ast.Module) -> set[str]:
    """Returns the functions of a module that keep results, and its dictionaries of weak references."""
    found = set()
    for node in nodes_of(tree):
        if isinstance(node, ast.FunctionDef):
            called = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
            if any(last_name(each) in DECORATORS for each in called):
                found.add(f"{name}.{node.name}")
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if last_name(node.value.func) in WEAK:
                found.add(f"{name}.{last_name(target)}")
    return found


def test_each_cache_is_in_the_table() -> None:
    texts = {name: path.read_text() for name, path in MODULES.items()}
    names = [name for name, text in texts.items() if any(each in text for each in (*DECORATORS, *WEAK))]
    found = {each for name in names for each in caches_in(name, tree_of(MODULES[name]))}
    assert found == set(CACHES)


# What follows a product, and which operation a problem is, says its class or the table of epilogues.

OPERATIONS_AND_KINDS = {*problem.OPERATIONS, *problem.FUSION_OPERATIONS}
NAMED = {*EPILOGUES, *OPERATIONS_AND_KINDS}
ASKING = {"operation", "epilogue", "op"}  # attributes, variables and keys of documents that hold such a name
CONSTANTS = {
    name
    for module in (epilogues, fusions, problem)
    for name, value in vars(module).items()
    if name.isupper() and isinstance(value, str) and value in NAMED
}


def _asks(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value in ASKING
    return isinstance(node, ast.Attribute | ast.Name) and last_name(node) in ASKING


def _is_named(node: ast.AST) -> bool:
    if isinstance(node, ast.Tuple | ast.Set | ast.List):
        return any(map(_is_named, node.elts))
    if isinstance(node, ast.Constant):
        return node.value in NAMED
    return isinstance(node, ast.Attribute | ast.Name) and last_name(node) in CONSTANTS


def comparisons_with_names(tree: ast.AST) -> list[str]:
    """Returns the comparisons of an operation or epilogue with a name of one."""
    found = []
    for node in nodes_of(tree):
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            if any(map(_asks, sides)) and any(map(_is_named, sides)):
                found.append(ast.unparse(node))
        if isinstance(node, ast.Match) and _asks(node.subject):
            found.append(ast.unparse(node.subject))
    return found


def test_no_module_but_core_and_payload_asks_which_operation_or_epilogue_a_problem_has() -> None:
    asking = {
        name: tests
        for name, path in MODULES.items()
        if not name.startswith(("core.", "payload.")) and (tests := comparisons_with_names(tree_of(path)))
    }
    assert asking == {}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ('problem.epilogue == "bias_relu"', 1),
        ("entry.problem.operation != QUANTIZED", 1),
        ('task.problem.operation in ("rows", other)', 1),
        ('document["op"] == "batch_matmul"', 1),
        ("match problem.epilogue:\n  case _: pass", 1),
        ("ours.operation == theirs.operation", 0),
        ('op.name == "matmul" or problem.layout == "nt"', 0),
    ],
)
def test_a_test_of_a_name_is_found(source: str, count: int) -> None:
    assert len(comparisons_with_names(ast.parse(source))) == count


# Core reads no MLIR: what schedules need of a fusion comes with it.

OF_CORE = [name for name in MODULES if name.startswith("core.")]
EXPRESSIONS = {  # modules of core that use regular expressions -> on what
    "core.dynamic_sizes": "ranges of the command line",
    "core.errors": "messages of MLIR, for their places and numbers",
    "core.passwords": "addresses of databases",
    "core.problem_text": "shapes of the command line",
    "core.serialization": "durations, control characters",
}
OF_MLIR = re.compile(r"tuner\\?\.|memref|tensor<|array<|dense<|func\\?\.|linalg")


def test_core_has_no_regular_expression_over_the_text_of_a_fusion() -> None:
    using = {name for name in OF_CORE if "re" in imports(tree_of(MODULES[name]))}
    assert using == EXPRESSIONS.keys()
    calls = [
        (name, text)
        for name in using
        for node in nodes_of(tree_of(MODULES[name]))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
        for text in texts_in(node)
        if OF_MLIR.search(text)
    ]
    assert calls == []
