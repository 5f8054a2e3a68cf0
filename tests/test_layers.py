"""Who may import whom: values < ports < adapters < composition."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VALUES = {
    *("kernel", "kernel_buffers", "chips", "occupancy", "launchable"),
    *("errors", "machine", "problem", "payload", "gpu_payload", "target_name"),
    *("reference", "sampled_reference", "bf16"),
    *("space", "expression", "evaluation", "partial", "enumeration", "feasible"),
    *("row_keys", "rule", "row_sample", "mined_conditions", "mining"),
    *("ped_anova", "ablation", "hypergeometric"),
    *("program_times", "program_run", "program_report"),
    *("record", "conditions", "runs", "answer", "device_program", "recorded_space", "run_difference"),
    *("pending", "measured_elsewhere", "promise", "plain_values"),
    *("first_point", "nearest", "nearest_row", "warm_start", "simplicity", "slowdown"),
    *("cpu_cost", "gpu_cost", "schedule_model", "seeds"),
}
PORTS = {"target", "sampler", "bench", "evaluate", "search", "device"}
ADAPTERS = {
    *("mlir", "ptx", "cuda_tools", "targets", "runtime", "samplers", "workers", "db"),
    *("config", "strategy", "export", "report", "recorded", "bundle", "text_file"),
}
COMPOSITION = {"tuning", "measuring", "api", "cli", "__main__", "__init__"}
LAYERS = (VALUES, PORTS, ADAPTERS, COMPOSITION)
# What an adapter may know of another kind of adapter.
BETWEEN_ADAPTERS = {
    # a target chooses the lowering, what assembles the code and what runs it
    "targets": {"mlir", "cuda_tools", "runtime"},
    "runtime": {"mlir", "ptx"},  # the crew of threads is compiled code; a simulated GPU runs PTX
    "strategy": {"mlir", "text_file"},  # the knobs of a plain .mlir schedule are read from its IR
    "config": {"text_file"},
}

# Who may read the environment, beside the command line.
ENVIRONMENT_READERS = {"workers.process"}  # a child gets its parent's environment, changed

HEAVY = {"mlir", "sqlalchemy", "alembic", "optuna", "yaml", "subprocess", "os", "pydantic", "click", "rich"}
BINDINGS = {"numba_cuda_mlir", "torch_mlir"}
# Package -> the one place (a file, or all files of a folder) that may import it.
OWNERS = {
    **dict.fromkeys(BINDINGS, "mlir.bindings"),
    "optuna": "samplers",
    "sqlalchemy": "db",
    "alembic": "db",
}


def modules() -> Iterator[tuple[str, Path]]:
    """Yields (name below tuner, file), the folders behind links included."""
    for folder, prefix in ((ROOT / "tuner", ""), (ROOT / "db", "db.")):
        for path in sorted(folder.rglob("*.py")):
            relative = path.relative_to(folder).with_suffix("")
            yield prefix + ".".join(relative.parts), path


MODULES = dict(modules())
PRINTERS = {"measuring.command"}  # beside the command line: it runs where click is not installed
BELOW_CLI = [name for name in MODULES if name.split(".")[0] != "cli"]


def imports(tree: ast.AST) -> set[str]:
    """Returns every module imported anywhere in the tree; ``from tuner import x`` gives ``tuner.x``."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found.update(f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            found.update(str(name.value) for name in node.args[:1] if isinstance(name, ast.Constant))
    return found


def layer_of(part: str) -> int:
    """Returns the layer of a module by its first part below tuner."""
    for number, names in enumerate(LAYERS):
        if part in names:
            return number
    raise LookupError(f"tuner/{part}: name its layer in {Path(__file__).name}")


def wrong_imports(module: str, tree: ast.AST) -> list[str]:
    """Tells what a module imports against the layers."""
    part = module.split(".")[0]
    layer = layer_of(part)
    wrong = []
    for name in sorted(imports(tree)):
        top, _, below = name.partition(".")
        if top == "":
            wrong.append(f"{name}: relative")
        elif top == "db":
            wrong.append(f"{name}: import it as tuner.db")
        elif top == "tuner":
            wrong.extend(_wrong_inside(part, layer, below.split(".")[0]))
        elif top in HEAVY and layer < LAYERS.index(ADAPTERS):
            wrong.append(f"{name}: too heavy for this layer")
        elif top in OWNERS and not f"{module}.".startswith(f"{OWNERS[top]}."):
            wrong.append(f"{name}: only {OWNERS[top]} may import it")
    return wrong


def _wrong_inside(part: str, layer: int, other: str) -> Iterator[str]:
    if other in ("", "__version__", part):
        return
    if layer_of(other) > layer:
        yield f"tuner.{other}: a higher layer"
    is_between = layer == layer_of(other) == LAYERS.index(ADAPTERS)
    if is_between and other not in BETWEEN_ADAPTERS.get(part, set()):
        yield f"tuner.{other}: another kind of adapter"


def environment_reads(tree: ast.AST) -> list[str]:
    """Tells where a module reads or changes the environment."""
    names = ("os.environ", "os.environb", "os.getenv", "environ", "getenv")
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute | ast.Name))
    return [f"line {node.lineno}" for node in nodes if ast.unparse(node) in names]


def prints(tree: ast.AST) -> list[str]:
    """Tells where a module prints."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [f"line {node.lineno}" for node in calls if ast.unparse(node.func) == "print"]


def swallowed(tree: ast.AST) -> list[str]:
    """Tells where any exception at all is caught and forgotten: neither raised again nor looked at."""
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


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_down(module: str) -> None:
    assert wrong_imports(module, ast.parse(MODULES[module].read_text())) == []


@pytest.mark.parametrize("module", [name for name in BELOW_CLI if name not in PRINTERS])
def test_only_the_command_line_prints(module: str) -> None:
    assert prints(ast.parse(MODULES[module].read_text())) == []


@pytest.mark.parametrize("module", [name for name in BELOW_CLI if name not in ENVIRONMENT_READERS])
def test_only_the_command_line_reads_the_environment(module: str) -> None:
    assert environment_reads(ast.parse(MODULES[module].read_text())) == []


@pytest.mark.parametrize("module", MODULES)
def test_no_exception_is_swallowed(module: str) -> None:
    assert swallowed(ast.parse(MODULES[module].read_text())) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("space", "from tuner.sampler import AbstractSampler"),
        ("space", "from tuner import search"),
        ("record", "import subprocess"),
        ("search", "def f():\n    from optuna import Study"),
        ("config", "from tuner.db.store import Store"),
        ("db.store", "import tuner.samplers.tpe"),
        ("samplers.tpe", "from .random import Random"),
        ("tuning", "import db"),
        ("tuning", "import sqlalchemy.orm"),
        ("mlir.lowering", "import numba_cuda_mlir._mlir.ir"),
        ("cli.tune", "import importlib\nimportlib.import_module('torch_mlir.ir')"),
        ("export", "from tuner.tuning import tune"),
    ],
)
def test_an_import_against_the_layers_is_found(module: str, source: str) -> None:
    assert len(wrong_imports(module, ast.parse(source))) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("mlir.bindings", "import numba_cuda_mlir"),
        ("samplers.tpe", "from optuna.samplers import BaseSampler"),
        ("db.migrations.env", "from alembic import context\nfrom tuner.db.models import Base"),
        ("targets.cpu", "from tuner.mlir.lowering import lower\nfrom tuner import __version__"),
        ("cli.tune", "from tuner.db.store import Store\nfrom tuner.samplers import SAMPLERS"),
    ],
)
def test_an_import_within_the_layers_passes(module: str, source: str) -> None:
    assert wrong_imports(module, ast.parse(source)) == []


def test_a_module_of_no_layer_is_refused() -> None:
    with pytest.raises(LookupError, match=r"tuner/util: name its layer in test_layers\.py"):
        layer_of("util")


@pytest.mark.parametrize("source", ["os.environ['A']", "os.getenv('A')", "environ['A'] = '1'"])
def test_a_look_at_the_environment_is_found(source: str) -> None:
    assert environment_reads(ast.parse(source)) == ["line 1"]


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
