"""Every cache of the package with its key: a new one belongs into the table, with a test of its parts."""

import ast

from tests.source_files import MODULES, last_name, tree_of

# Cache -> what it is keyed by, and the test that changes one component at a time where results depend on it.
CACHES = {
    "api.dispatched_matmul": "one object: tests/library/dispatch/test_dispatched_matmul.py for its entries",
    "core.serialization._hints": "the class",
    "core.fusions.facts_of": "the whole text",
    "core.fusions.text_hash": "the whole text",
    "core.typed_arguments.annotation": "the function and the name of its argument",
    "library.c.writer._templates": "nothing: files of the package",
    "mlir.fingerprint.sources_sha256": "the list of files; they are read once in a process, as the code is",
    "runtime.cpu.host.may_use_tiles": "nothing: a permission that a forked process inherits",
    "results.report.page._templates": "nothing: files of the package",
    "programs.interpreter.memory._numbers": "the type",
    "torch.operations._function": "Product: tests/torch/test_cache_keys.py",
    "torch.operations._image": "Product: tests/torch/test_cache_keys.py",
    "torch.operations.PACKED": "the parameter, what it contains, Product: the same",
    "runtime.cpu.jit.shipped_module": "nothing: files of the package",
    "space.scripts.strategy._environment": "the folder; its files are read again when they change",
    "space.scripts.strategy._template": "the folder and the whole text",
    "simulator.device.kernels._parsed": "the whole image",
    "simulator.device.memory._numbered": "the number in a device address: an index of the regions that live",
    "space.file.reading.parse_space": "the whole text, its name and its folder",
    "targets.gpu.compiler.find_ptxas": "nothing: one ptxas in a process, whose version is stored",
    "targets.replay._read": "path, place on the disk, size and time of the file",
}
# On disk: FirstUseKey, tests/library/dispatch/test_first_use.py; ReuseKey, tests/db/test_queries.py;
# exported programs, by hashes of their files, tests/programs/run/test_fused_program.py.
DECORATORS = ("cache", "lru_cache")
WEAK = ("WeakIdKeyDictionary", "WeakKeyDictionary", "WeakValueDictionary")


def caches_in(name: str, tree: ast.Module) -> set[str]:
    """Returns the functions of a module that keep results, and its dictionaries of weak references."""
    found = set()
    for node in ast.walk(tree):
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
