"""Who may import whom: layers of packages, imports go down; inside a package no circle of modules.

The base imports no extension: it finds those by entry points (``tuner.runtime.extensions``).
"""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import tuner
from tests.source_files import MODULES, imports, tree_of

Table = Mapping[str, Iterable[str]]

# A package may import those of the lines above its own, and itself; none of its own line.
LAYERS = (
    ("core", "version"),
    ("mlir", "payload", "db"),
    ("space", "runtime"),
    ("analysis", "search"),
    ("targets",),
    ("tuning",),
    ("results",),
    ("api", "cli"),
    ("gpu",),
    ("models",),
    ("elsewhere",),
    ("torch",),
    ("__init__", "__main__"),
)
# What the base finds by entry points alone; the last layer is the distribution, which names all of its API.
EXTENSIONS = ("gpu", "models", "torch", "elsewhere")
BASE = tuple(
    package for line in LAYERS[:-1] for package in line if package not in EXTENSIONS and package != "version"
)
# What may become a distribution of its own; the rest is the base.
GROUPS: Table = {"gpu": ("gpu",), "elsewhere": ("elsewhere",), "models": ("models", "torch")}
BASE_GROUP, DISTRIBUTION = "base", "distribution"  # the latter: the API and the command, which name all jobs
# Models name a device by ports (``tuner.runtime.programs.devices``): what is left are types of annotations,
# and facts about a script.
MOST_EDGES = {("models", "gpu"): 8, ("gpu", "models"): 0}
# Of extensions, what may import the command line.
COMMANDS = (
    *("models/commands", "models/library/commands", "models/model_files"),
    *("gpu/commands", "elsewhere/commands", "elsewhere/fleet/commands"),
)
PACKAGES = tuple(package for line in LAYERS for package in line)
INSIDE_LIMIT = 122  # imports of tuner inside of functions: for start-up, or of what only some need
FACE_LIMIT = 15  # names that a package shows to others, in ``__all__`` of its ``__init__``
CORE_LIMIT = 41  # core is values: each of its modules is for everybody
PYTHON_API = ("torch", "models.torch")  # their ``__all__`` has no modules
# Part of a package -> all that it may import of others, where that is less than its layer allows.
NARROWER: Table = {
    "core": (),
    "elsewhere/bundle": (
        *("analysis", "core", "db", "gpu/cost_model", "gpu/driver", "gpu/target", "payload", "runtime"),
        *("targets", "tuning"),
    ),
    "elsewhere/fleet": ("analysis", "cli", "core", "db", "results", "runtime", "targets"),
    "gpu/cost_model": ("core", "search", "space"),
    "gpu/device_memory": ("core", "mlir"),
    "gpu/driver": ("core",),  # it runs where there is no compiler
    "gpu/fusions": ("core", "gpu/lowering", "gpu/payload", "mlir", "runtime/programs"),
    "gpu/interpreter": ("core", "mlir"),
    "gpu/interpreter/host_kernels": ("core", "mlir", "runtime/arrays", "runtime/programs"),
    "gpu/interpreter/kernels_on_host": ("core", "gpu/lowering/explicit_memory", "mlir"),
    "gpu/ir": ("core", "mlir"),
    "gpu/lowering": (
        *("core", "gpu/device_memory", "gpu/interpreter", "gpu/mlir", "gpu/payload", "gpu/streams", "mlir"),
    ),
    "gpu/mlir": ("core", "gpu/ir", "mlir"),
    "gpu/ops": ("core", "gpu/ir", "mlir"),
    "gpu/payload": ("core", "payload"),
    "gpu/ptxsim": ("core/dtypes", "core/gpu", "core/device", "core/compiled_code", "core/errors"),
    "gpu/ptxsim/target": (
        *("core", "gpu/cost_model", "gpu/target", "mlir/fingerprint", "payload", "runtime", "targets"),
    ),
    "gpu/run": ("core", "gpu/interpreter", "runtime/arrays", "runtime/process_state", "runtime/programs"),
    "gpu/run/sampled_launches": ("core", "gpu/interpreter", "gpu/ptxsim", "gpu/target"),
    "gpu/streams": ("core", "mlir"),
    "gpu/target": (
        *(
            "analysis",
            "core",
            "db",
            "gpu/cost_model",
            "gpu/driver",
            "gpu/mlir",
            "gpu/payload",
            "mlir",
            "payload",
        ),
        *("runtime", "search", "space", "targets"),
    ),
    "gpu/target/sass": ("core", "gpu/mlir", "mlir", "search", "targets"),
    "gpu/wgmma": ("core", "gpu/ir", "mlir"),
    "mlir/cpu_ops": ("core",),
    "mlir/ir": ("core",),
    "models/fusions": ("core", "mlir", "models/lowering", "models/run"),
    "models/lowering": (
        *("core", "mlir", "models/fusions", "models/payload_errors", "payload", "runtime/programs"),
        "runtime/workers",
    ),
    "models/ops": ("core", "mlir"),
    "models/run": (
        *("core", "mlir/bindings", "mlir/effects/runner_signatures", "payload/packed_weights"),
        *("runtime/arrays", "runtime/cpu", "runtime/process_state", "runtime/programs"),
    ),
    "results/output": ("analysis", "core", "search/cost_model", "space", "targets", "tuning"),
    "results/regression": (
        *("analysis", "core", "db", "mlir/cpu", "mlir/effects", "payload", "runtime", "space", "targets"),
        "tuning",
    ),
    "runtime/arrays": ("core",),
    "runtime/cpu": ("core", "payload", "mlir/bindings"),
    "runtime/workers": ("core", "payload/reference"),
    "space/file": ("core",),
    "space/recorded": ("core",),
    "space/scripts/schedule": ("core", "mlir", "payload"),
    "space/scripts/knobs": ("core", "mlir"),
    "space/scripts": ("core", "mlir/cpu/needed_instructions", "payload"),
}
# What a pure package may not import.
PURE = ("core", "payload", "space", "search/cost_model", "analysis")
READS_FILES = ("space/file", "space/recorded", "space/scripts")  # the parts of a pure package that read files
HEAVY = {"mlir", "sqlalchemy", "alembic", "optuna", "yaml", "subprocess", "os", "click", "rich"}
# Library -> the one place (a module, or all modules of a folder) that may import it.
OWNERS = {
    "numba_cuda_mlir": "mlir.bindings",
    "torch_mlir": "mlir.bindings",
    "optuna": "search",
    "sqlalchemy": "db",
    "alembic": "db",
    "iree": "models.library.iree",
    "psycopg": "elsewhere.fleet",
    "procrastinate": "elsewhere.fleet",
}
# Libraries that more places may import: the first is the one that the product is about.
SHARED = {"torch": ("models.torch", "targets.cpu.torch_onednn", "models.model_files")}


def wrong_imports(module: str, tree: ast.AST) -> list[str]:
    wrong = []
    for name in sorted(imports(tree)):
        top, _, below = name.partition(".")
        if top == "":
            wrong.append(f"{name}: relative")
        elif top == "db":
            wrong.append(f"{name}: import it as tuner.db")
        elif top == "tests":
            wrong.append(f"{name}: a product imports no test")
        elif top == "tuner":
            wrong.extend(_upward(module, module_of(below)))
        elif top in HEAVY and _is_below(module, PURE) and not _is_below(module, READS_FILES):
            wrong.append(f"{name}: too heavy for a pure package")
        elif top in SHARED and not any(f"{module}.".startswith(f"{place}.") for place in SHARED[top]):
            wrong.append(f"{name}: only {' and '.join(SHARED[top])} may import it")
        elif top in OWNERS and not f"{module}.".startswith(f"{OWNERS[top]}."):
            wrong.append(f"{name}: only {OWNERS[top]} may import it")
    return wrong


def module_of(name: str) -> str:
    """Returns the module that ``name`` below tuner is, or is defined in; of a package its ``__init__``."""
    parts = name.split(".") if name else []
    for length in range(len(parts), 0, -1):
        known = ".".join(parts[:length])
        for candidate in (known, f"{known}.__init__"):
            if candidate in MODULES:
                return candidate
    return "__init__" if len(parts) < 2 and parts != ["db"] else name


def package_of(module: str) -> str:
    """Returns the package of a module: its first part below tuner."""
    package = module.split(".")[0]
    if package not in PACKAGES:
        raise LookupError(f"tuner/{package}: name its layer in {Path(__file__).name}")
    return package


def unit_of(module: str) -> str:
    """Returns what a module belongs to: its package, or, of an extension, a folder of that."""
    parts = module.split(".")
    if parts[0] in EXTENSIONS and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0]


def layer_of(package: str) -> int:
    return next(number for number, line in enumerate(LAYERS) if package in line)


@cache
def face_of(package: str) -> tuple[str, ...]:
    """Returns the names that a package shows to other packages; () for a module that is not a package."""
    if package in PYTHON_API:
        return ()
    path = MODULES.get(f"{package}.__init__")
    assigned = [] if path is None else [each for each in tree_of(path).body if isinstance(each, ast.Assign)]
    lists = [each.value for each in assigned if isinstance(each.targets[0], ast.Name)]
    names = [each for each in lists if isinstance(each, ast.List)]
    return tuple(ast.literal_eval(names[0])) if names else ()


def _upward(module: str, other: str) -> Iterator[str]:
    own, imported = package_of(module), package_of(other)
    if unit_of(module) == unit_of(other):
        return
    if own != imported and layer_of(own) <= layer_of(imported):
        yield f"tuner.{other}: {own} is in layer {layer_of(own)}, {imported} in {layer_of(imported)}"
    if imported == "cli" and own in EXTENSIONS and not _is_below(module, COMMANDS):
        yield f"tuner.{other}: only {', '.join(COMMANDS)} use the command line"
    if own != imported:
        yield from _hidden(other)
    if imported == "version":
        return
    narrow = next((NARROWER[part] for part in _prefixes(module) if part in NARROWER), None)
    if narrow is not None and not set(narrow) & set(_prefixes(other)):
        yield f"tuner.{other}: {module} may import {', '.join(narrow) or 'nothing'} only"


def _hidden(module: str) -> Iterator[str]:
    """Yields why another package may not import a module: its package, or a folder, does not show it."""
    parts = module.removesuffix(".__init__").split(".")
    for length in range(1, len(parts)):
        folder = ".".join(parts[:length])
        if parts[length] not in face_of(folder):
            yield f"tuner.{module}: {folder} shows {', '.join(face_of(folder))} only"
            return


def _is_below(module: str, parts: Iterable[str]) -> bool:
    return bool(set(parts) & set(_prefixes(module)))


def _prefixes(module: str) -> list[str]:
    parts = module.split(".")
    return ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]


@cache
def module_table() -> dict[str, tuple[str, ...]]:
    """Returns what each module imports of tuner; ``__init__`` of packages aside."""
    table = {}
    for module, path in MODULES.items():
        names = {name for name in imports(tree_of(path)) if name.split(".")[0] == "tuner"}
        table[module] = tuple(sorted({module_of(name.partition(".")[2]) for name in names} - {module}))
    return table


def test_imports_go_down_the_layers_and_a_module_of_no_package_is_refused() -> None:
    found = {name: wrong_imports(name, tree_of(path)) for name, path in MODULES.items()}
    assert {name: complaints for name, complaints in found.items() if complaints} == {}
    TopologicalSorter(module_table()).prepare()  # CycleError names the modules of a circle
    assert set(tuner.__all__) & set(PACKAGES) == set()
    parts = {"/".join(name.split(".")[:length]) for name in MODULES for length in range(1, 5)}
    named = {part for others in NARROWER.values() for part in others}
    assert set(PACKAGES) == {package_of(name) for name in MODULES}
    assert {*NARROWER, *named, *PURE, *READS_FILES} <= parts
    with pytest.raises(LookupError, match=r"tuner/util: name its layer in test_layers\.py"):
        wrong_imports("util.text", ast.parse("import tuner.core.errors"))


def test_the_base_imports_no_extension() -> None:
    edges = {
        (module, other)
        for module, others in module_table().items()
        for other in others
        if package_of(module) in BASE and package_of(other) in EXTENSIONS
    }
    assert edges == set()


def group_of(module: str) -> str:
    """Returns the group of a module: "gpu", "models", "elsewhere", "base" or "distribution"."""
    if module in LAYERS[-1]:
        return DISTRIBUTION
    return next((name for name, parts in GROUPS.items() if _is_below(module, parts)), BASE_GROUP)


def group_edges(table: Table) -> dict[tuple[str, str], set[tuple[str, str]]]:
    """Returns (group, other group) -> the imports (module, other module) of a table that cross."""
    edges: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for module, others in table.items():
        for other in others:
            pair = (group_of(module), group_of(other))
            if pair[0] != pair[1]:
                edges.setdefault(pair, set()).add((module, other))
    return edges


def wrong_edges(table: Table) -> set[tuple[str, str]]:
    """Returns the imports of a table from the base into another group."""
    edges = group_edges(table)
    return set().union(*(found for (own, _), found in edges.items() if own == BASE_GROUP))


def test_the_base_imports_neither_models_nor_gpus_nor_what_works_elsewhere() -> None:
    assert wrong_edges(module_table()) == set()
    edges = group_edges(module_table())
    assert {pair: count for pair, count in MOST_EDGES.items() if len(edges.get(pair, ())) > count} == {}
    parts = {"/".join(name.split(".")[:length]) for name in MODULES for length in range(1, 5)}
    assert {part for group in GROUPS.values() for part in group} <= parts


@pytest.mark.parametrize(
    ("module", "other", "is_wrong"),
    [
        ("mlir.transform", "gpu.ops.grid", True),
        ("targets.registry", "gpu.target.target", True),
        ("targets.cpu.baseline", "models.quantized.quantized_baselines", True),
        ("cli.tuned", "elsewhere.fleet.runner", True),
        ("mlir.effects.aliases", "gpu.ir.launches", True),
        ("mlir.effects.aliases", "mlir.effects.launches", False),
        ("gpu.target.target", "mlir.transform", False),
        ("models.compile", "gpu.run.device_function", False),
    ],
)
def test_a_new_import_of_the_base_into_another_group_is_found(
    module: str, other: str, is_wrong: bool
) -> None:
    assert wrong_edges({module: (other,)}) == ({(module, other)} if is_wrong else set())


def test_packages_and_their_folders_have_faces_that_one_can_keep_in_mind_and_that_others_import() -> None:
    packages = [name.removesuffix(".__init__") for name in MODULES if name.endswith(".__init__")]
    without = {name for name in packages if "." not in name and not face_of(name)}
    assert without <= set(EXTENSIONS)  # entry points alone name their modules
    limits = {name: CORE_LIMIT if name == "core" else FACE_LIMIT for name in packages}
    assert {name: len(face_of(name)) for name in packages if len(face_of(name)) > limits[name]} == {}
    used: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        for name in imports(tree_of(path)):
            other = module_of(name.partition(".")[2]).removesuffix(".__init__").split(".")
            if not name.startswith("tuner.") or other[0] in ("", package_of(module)):
                continue
            for length in range(1, len(other)):
                used.setdefault(".".join(other[:length]), set()).add(other[length])
    unused = {(name, shown) for name in packages for shown in set(face_of(name)) - used.get(name, set())}
    assert {(name, shown) for name, shown in unused} == set()


WITHIN = (
    ("mlir.bindings", "import torch_mlir"),
    ("space.file.yaml", "import yaml"),
    ("space.file.reading", "from tuner.space.search_space import SearchSpace"),
    ("gpu.run.sampled_launches", "from tuner.gpu.ptxsim.device.kernels import Near"),
    ("search.optuna_samplers", "from optuna.samplers import BaseSampler"),
    ("db.migrations.env", "from alembic import context\nfrom tuner.db.models import Base"),
    ("cli.commands.tune", "from tuner.db.store import Store\nfrom tuner.search.samplers import SAMPLERS"),
    ("space.scripts.strategy", "from tuner.space.scripts.schedule import Schedule"),
)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("space.search_space", "from tuner.targets.registry import real_backends"),
        ("core.records", "from tuner.space.search_space import SearchSpace"),
        ("core.records", "import subprocess"),
        ("analysis.selected_result", "def f():\n    from optuna import Study"),
        ("space.file.reading", "from tuner.db.store import Store"),
        ("db.store", "import tuner.search.surrogates"),
        ("search.method", "from .samplers import SAMPLERS"),
        ("tuning.run", "import db"),
        ("tuning.run", "import sqlalchemy.orm"),
        ("tuning.run", "from tuner import tune"),
        ("mlir.cpu.lowering", "import torch_mlir.ir"),
        ("gpu.mlir.lowering", "from tuner.space.search_space import SearchSpace"),
        ("gpu.driver.driver", "from tuner.mlir.bindings import ir"),
        ("space.scripts.strategy", "from tuner.gpu.mlir.lowering import lower_to_program"),
        ("cli.commands.tune", "import importlib\nimportlib.import_module('torch_mlir.ir')"),
        ("space.scripts.header", "from tuner.tuning.run import begin"),
        ("models.compile", "from tests.fakes import FakeTarget"),
        ("gpu.run.mgpu", "from tuner.models.fusion_tuning import tune_text\nimport tuner.db.store"),
        ("api.tuning", "from tuner.cli.options import json_option"),
        ("space.search_space", "import yaml"),
        ("results.best_trials", "from tuner.elsewhere.fleet.driver import FleetDriver"),
        ("gpu.ptxsim.launch", "from tuner.core.problem import Problem"),
        ("models.compile", "from tuner.gpu.ops.grid import SplitKOp"),
        ("models.compile", "from tuner.mlir.math.float64 import x"),
        ("models.compile", "from tuner.cli.options import json_option"),
        ("gpu.target.evaluator", "from tuner.gpu.ptxsim.launch import simulate"),
        ("cli.commands.tune", "from tuner.models.library.commands.export import export"),
        ("tuning.run", "from tuner.db.writes import add"),
        *WITHIN,
    ],
)
def test_an_import_against_the_tables_is_found(module: str, source: str) -> None:
    assert (wrong_imports(module, ast.parse(source)) != []) == ((module, source) not in WITHIN)


def test_few_imports_stand_inside_of_functions_and_each_says_why() -> None:
    inside, silent = 0, []
    for module, path in MODULES.items():
        lines = path.read_text().splitlines()
        for function in (each for each in ast.walk(tree_of(path)) if isinstance(each, ast.FunctionDef)):
            for node in (each for each in ast.walk(function) if isinstance(each, ast.ImportFrom)):
                if not (node.module or "").startswith("tuner") or function.name == "__getattr__":
                    continue
                inside += 1
                text = lines[node.lineno - 2 : node.end_lineno]
                if not any("#" in line for line in text):
                    silent.append(f"{module}:{node.lineno}")
    assert silent == []
    assert inside <= INSIDE_LIMIT
