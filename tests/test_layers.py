"""Who may import whom: the table of rooms. Imports go down it, and no circle exists."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import tuner
from tests.source_files import MODULES, imports, tree_of

Table = Mapping[str, Iterable[str]]

PURE = ("core", "payload", "space", "cost_model", "analysis")
READS_FILES = ("space/file", "space/recorded")  # the parts of a pure room that read files
ENTRIES = ("__init__", "__main__", "torch")  # files of the room "tuner": what starts all others
REST = "*"  # all parts of a room that its table does not name; they may import one another
BELOW_TUNING = (*PURE, *("samplers", "scripts", "mlir", "runtime", "targets", "workers", "db"))
BELOW_HISTORY = (*BELOW_TUNING, "tuning")
BELOW_PROGRAMS = (*BELOW_HISTORY, "run_history")
# Room -> the rooms, or parts of rooms, that its files may import beside their own.
PACKAGES: Table = {
    "core": (),
    "payload": ("core",),
    "space": ("core",),
    "mlir": ("core",),
    "simulator": ("core",),
    "workers": ("core",),
    "db": ("core",),
    "cost_model": ("core", "space"),
    "analysis": ("core", "space"),
    "samplers": ("core", "space"),
    "scripts": ("core", "payload", "space", "mlir"),
    "runtime": ("core", "payload", "mlir"),
    "targets": ("core", "payload", "space", "cost_model", "mlir", "runtime", "simulator", "workers"),
    "tuning": (*BELOW_TUNING, "simulator/device"),
    "run_history": BELOW_HISTORY,
    "bundle": BELOW_HISTORY,
    "regression": BELOW_PROGRAMS,
    "library": BELOW_PROGRAMS,
    "programs": (*BELOW_PROGRAMS, "simulator"),
    "fleet": BELOW_PROGRAMS,
    "output": BELOW_PROGRAMS,
    "api": (*BELOW_PROGRAMS, "library", "output"),
    "cli": (
        *BELOW_PROGRAMS,
        "simulator/ptx",
        "bundle",
        "fleet",
        "library",
        "output",
        "programs",
        "regression",
    ),
    "tuner": ("core", "runtime/process_locks", "api", "bundle", "cli", "library", "output", "programs"),
}
# The same inside of a room that has rooms or layers of its own; a file is named like a room.
INSIDE: Mapping[str, Table] = {
    "mlir": {
        "bindings": (),
        "fingerprint": (),
        "op_place": (),
        "wheels": (),
        "tile_permission": (),
        "jit": ("bindings", "tile_permission"),
        "rewrite": ("bindings",),
        "ops": ("bindings", "rewrite"),
        "interpreter": ("bindings", "rewrite", "ops"),
        "failing_op": ("bindings", "interpreter", "op_place"),
        "pass_timing": ("bindings",),
        "lowering_stages": ("bindings",),
        "pipeline": ("bindings", "interpreter", "pass_timing"),
        "effects": ("bindings", "rewrite"),
        "math": ("bindings", "rewrite"),
        "group_form": ("bindings", "interpreter", "pipeline", "rewrite"),
        "group_problem": ("bindings", "group_form", "rewrite"),
        "group_arguments": ("bindings", "group_form", "rewrite"),
        "reference": ("bindings", "group_form", "rewrite"),
        "cpu": (
            *("bindings", "rewrite", "fingerprint", "group_form", "interpreter", "lowering_stages"),
            *("math", "pipeline", "wheels"),
        ),
        "gpu": ("bindings", "rewrite", "effects", "interpreter", "lowering_stages", "math", "pipeline"),
    },
    "space": {REST: (), "file": (REST,), "recorded": (REST,)},
    "scripts": {"schedule": (), REST: ("schedule",)},
    "programs": {
        "interpret": (),
        "lower": ("interpret",),
        "run": ("interpret", "lower/on_host"),
        "op_groups": ("lower", "run"),
        "device_groups": ("lower", "op_groups"),
        "torch_models": (REST, "run"),
        REST: ("device_groups", "interpret", "lower", "op_groups", "run"),
    },
    "programs/lower": {
        "bounds_assertions": (),
        "copies_in_rows": ("streams",),
        "copies_with_offset": (),
        "host_parallel_loops": (),
        "copy_shared_fills": (),
        "crop_negative_padding": (),
        "copy_yields": (),
        "indirect_indices": (),
        "device_options": (),
        "launch_parallel_loops": (),
        "launch_stack": (),
        "signature": (),
        "unconverted": (),
        "streams": (),
        "device_memory": ("device_options",),
        "entry": (),
        "resources": (),
        "payload_checks": ("entry", "resources"),
        "explicit_memory": ("streams",),
        "last_use": (),
        "deallocation": ("entry", "last_use"),
        "bufferize": (
            *("copy_shared_fills", "copy_yields", "crop_negative_padding"),
            *("deallocation", "entry"),
        ),
        "runtime_calls": (),
        "read_program": (
            *("bufferize", "deallocation", "entry", "indirect_indices"),
            *("payload_checks", "runtime_calls", "streams"),
        ),
        "on_host": ("explicit_memory", "payload_checks", "streams"),
        "tensor_map_arguments": (),
        "matmuls": ("read_program", "tensor_map_arguments"),
        "work_to_kernels": (
            "copies_in_rows",
            "host_parallel_loops",
            "launch_parallel_loops",
            "matmuls",
            "payload_checks",
            "read_program",
        ),
        "device_lowering": (
            *(
                "bounds_assertions",
                "copies_with_offset",
                "device_memory",
                "device_options",
                "explicit_memory",
                "launch_stack",
                "on_host",
            ),
            *("signature", "streams", "tensor_map_arguments", "unconverted"),
        ),
        "lowering_steps": (),
        "lower_to": (
            "device_lowering",
            "device_options",
            "lowering_steps",
            "on_host",
            "read_program",
            "streams",
        ),
        "host_lowering": (
            *("bounds_assertions", "matmuls", "on_host"),
            *("payload_checks", "read_program", "signature", "streams"),
        ),
    },
    "simulator": {"block_sample": (), "written_tiles": (), "ptx": (), "device": ("ptx",)},
    "simulator/ptx": {
        "instruction": (),
        "dtypes": (),
        "defects": ("instruction",),
        "geometry": ("dtypes",),
        "numbers": ("dtypes",),
        "parse": ("defects", "dtypes", "instruction"),
        "races": ("defects", "dtypes", "geometry", "instruction"),
        "simulation": ("defects", "geometry", "memory", "races"),
        "memory": ("defects", "dtypes", "geometry", "numbers", "races"),
        "matrices": ("defects", "dtypes", "geometry", "memory", "numbers", "races"),
        "state": (
            *("defects", "dtypes", "geometry", "instruction"),
            *("matrices", "memory", "parse", "races"),
        ),
        "decode": (
            *("defects", "dtypes", "geometry", "instruction", "state"),
            *("matrices", "memory", "numbers", "parse"),
        ),
        "engine": ("decode", "defects", "dtypes", "geometry", "instruction", "state"),
        "launch": (
            *("decode", "defects", "dtypes", "engine", "geometry", "instruction"),
            *("memory", "parse", "races", "simulation", "state"),
        ),
        "__init__": (),
    },
    "cli": {
        "fleet_options": (),
        "fleet_tables": (),
        "gate_summary": (),
        "help_text": (),
        "local_server": (),
        "completion": (),
        "options": (),
        "library_apply": ("options",),
        "library_export": ("options",),
        "program_documents": (),
        "ptx_arguments": (),
        "screen": (),
        "script_check": (),
        "signals": (),
        "t4_export": ("options", "run_session"),
        "main": ("help_text", "completion"),
        "run_session": ("signals",),
        "commands": (
            *("fleet_options", "fleet_tables", "gate_summary", "library_apply", "library_export"),
            *("local_server", "main", "options"),
            *("program_documents", "ptx_arguments", "run_session", "screen", "script_check", "signals"),
            "t4_export",
        ),
        "__init__": ("commands", "main"),
    },
    "bundle": {
        "archive": (),
        "static_ranking": (),
        "predicted_order": ("static_ranking",),
        "results": ("archive",),
        "pack_and_import": ("archive", "results", "predicted_order"),
        "measure": ("archive", "results", "static_ranking"),
    },
}
# Part of a room -> all that it may import of other rooms, where that is less than its room may.
NARROWER: Table = {
    "bundle/archive": ("core",),
    "bundle/results": ("core",),
    "bundle/static_ranking": ("core",),
    "bundle/measure": (
        *("analysis/comparison", "core", "payload", "runtime/cuda", "targets/gpu", "tuning"),
        "workers",
    ),
    "cli/fleet_tables": ("core", "fleet", "output"),
    "cli/gate_summary": ("analysis/comparison", "core/time_text", "output", "regression"),
    "cli/help_text": (),
    "cli/program_documents": ("analysis", "core", "output", "programs"),
    "cli/script_check": (
        *("analysis/comparison", "core/reliability", "core/time_text", "output", "regression"),
    ),
    "mlir/ops": (),
    "mlir/rewrite": ("core",),
    "output/report_pages": ("core", "db", "run_history", "tuning"),
    "output": (
        *("analysis", "core", "run_history", "scripts/portability", "targets/gpu/machine_code"),
        "tuning",
    ),
    "programs/interpret": ("core", "mlir"),
    "programs/lower": ("core", "mlir", "payload"),
    "programs/device_groups": ("core", "mlir", "payload"),
    "programs/op_groups": ("core", "mlir", "payload/packed_weights"),
    "programs/run/sampled": ("core", "payload", "simulator"),
    "programs/run": (
        *("core", "mlir/bindings", "mlir/effects/runner_names", "payload/packed_weights"),
        *("mlir/tile_permission", "runtime/arrays", "runtime/loaded_code", "runtime/process_locks"),
        *("runtime/cpu/loaded_object", "runtime/cpu/processor_flags", "runtime/cpu/program_team"),
    ),
    "runtime/arrays": ("core",),
    "runtime/cpu": ("core", "payload", "mlir/jit", "mlir/tile_permission"),
    "runtime/cuda": ("core",),  # it runs where there is no compiler
    "scripts/schedule": ("core", "mlir", "payload", "space"),
    "scripts": ("core", "payload", "space"),
    "simulator/ptx/numbers": (),
    "simulator/ptx/parse": (),
    "simulator/ptx/races": (),
    "simulator/ptx/decode": (),
    "targets/gpu/machine_code": ("core", "cost_model", "simulator/ptx"),
}
LAYERS_LIMIT = 9  # rooms in the longest chain of imports
PACKAGES_LIMIT = 24


# What a pure room may not import.
HEAVY = {"mlir", "sqlalchemy", "alembic", "optuna", "yaml", "subprocess", "os", "pydantic", "click", "rich"}
BINDINGS = {"numba_cuda_mlir", "torch_mlir"}
# Package -> the one place (a file, or all files of a folder) that may import it.
OWNERS = {
    **dict.fromkeys(BINDINGS, "mlir.bindings"),
    "optuna": "samplers",
    "sqlalchemy": "db",
    "alembic": "db",
    "iree": "library.iree",
    "psycopg": "fleet",
    "procrastinate": "fleet",
}
# Packages that two places may import: the first is the one that the product is about.
SHARED = {"torch": ("programs.torch_models", "targets.cpu.onednn_torch")}


def wrong_imports(module: str, tree: ast.AST) -> list[str]:
    """Returns the imports of a module that the table forbids."""
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
            wrong.extend(_against_the_table(module, module_of(below)))
        elif (
            top in HEAVY
            and package_of(module) in PURE
            and not any(_is_in(module, part) for part in READS_FILES)
        ):
            wrong.append(f"{name}: too heavy for a pure room")
        elif top in SHARED and not any(_is_in(module, place.replace(".", "/")) for place in SHARED[top]):
            wrong.append(f"{name}: only {' and '.join(SHARED[top])} may import it")
        elif top in OWNERS and not f"{module}.".startswith(f"{OWNERS[top]}."):
            wrong.append(f"{name}: only {OWNERS[top]} may import it")
    return wrong


def module_of(name: str) -> str:
    """Returns the module that ``name`` below tuner is, or is defined in; of a room its ``__init__``."""
    parts = name.split(".") if name else []
    for length in range(len(parts), 0, -1):
        known = ".".join(parts[:length])
        for candidate in (known, f"{known}.__init__"):
            if candidate in MODULES:
                return candidate
    return "__init__" if len(parts) < 2 and parts != ["db"] else name


def package_of(module: str) -> str:
    """Returns the room of a module: its first part below tuner, and "tuner" of what starts the others."""
    storage = module.split(".")[0]
    if storage in ENTRIES:
        return "tuner"
    if storage not in PACKAGES:
        raise LookupError(f"tuner/{storage}: name its room in {Path(__file__).name}")
    return storage


def _against_the_table(module: str, other: str) -> Iterator[str]:
    own, others = module.split("."), other.split(".")
    common = _common(own[:-1], others[:-1])
    folder = "/".join(own[:common])
    allowed = _allowed(folder, own[common], own)
    part = _part(folder, own[common])
    parts = (_part(folder, others[common]), *_prefixes(others[common:]))
    if part != parts[0] and allowed is not None and not set(allowed) & set(parts):
        yield f"tuner.{other}: {own[common]} may import {', '.join(allowed) or 'nothing'} only"
    narrow = next((NARROWER[part] for part in _prefixes(own) if part in NARROWER), None)
    if not folder and narrow is not None and not set(narrow) & set(_prefixes(others)):
        yield f"tuner.{other}: {'/'.join(own)} may import {', '.join(narrow) or 'nothing'} only"


def _allowed(folder: str, part: str, own: list[str]) -> tuple[str, ...] | None:
    """Returns what a part of a folder may import of its neighbours; None where the folder has no table."""
    if not folder:
        return tuple(PACKAGES[package_of(".".join(own))])
    if folder not in INSIDE:
        return None
    if _part(folder, part) not in INSIDE[folder]:
        raise LookupError(f"tuner/{folder}/{part}: name it in {Path(__file__).name}")
    return tuple(INSIDE[folder][_part(folder, part)])


def _part(folder: str, part: str) -> str:
    table = INSIDE.get(folder, {})
    return REST if REST in table and part not in table else part


def _is_in(module: str, part: str) -> bool:
    return part in _prefixes(module.split("."))


def _common(own: list[str], others: list[str]) -> int:
    pairs = zip(own, others, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(own), len(others)))


def _prefixes(parts: list[str]) -> list[str]:
    """Returns a/b/c, a/b, a."""
    return ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]


def longest_chain(table: Table) -> list[str]:
    """Returns the longest chain of imports that a table allows. Raises ValueError for a circle."""
    chains: dict[str, list[str]] = {}

    def chain_of(part: str, above: tuple[str, ...]) -> list[str]:
        if part in above:
            raise ValueError(f"circle: {' -> '.join((*above[above.index(part) :], part))}")
        if part not in chains:
            others = dict.fromkeys(other.partition("/")[0] for other in table[part])
            below = [chain_of(other, (*above, part)) for other in others]
            chains[part] = [part, *max(below, key=len, default=[])]
        return chains[part]

    return max((chain_of(part, ()) for part in table), key=len)


@cache
def file_table() -> dict[str, tuple[str, ...]]:
    """Returns what each file imports of this package, wherever in the file."""
    table = {}
    for module, path in MODULES.items():
        names = {name for name in imports(tree_of(path)) if name.split(".")[0] == "tuner"}
        found = {module_of(name.partition(".")[2]) for name in names}
        table[module] = tuple(sorted(found - {module}))
    return table


def test_imports_follow_the_table() -> None:
    found = {name: wrong_imports(name, tree_of(path)) for name, path in MODULES.items()}
    assert {name: complaints for name, complaints in found.items() if complaints} == {}


@pytest.mark.parametrize("table", [PACKAGES, *INSIDE.values()], ids=["top", *INSIDE])
def test_no_table_allows_a_circle_or_too_many_layer(table: Table) -> None:
    assert len(longest_chain(table)) <= LAYERS_LIMIT


def test_there_are_no_more_packages_than_one_can_keep_in_mind() -> None:
    assert len(PACKAGES) <= PACKAGES_LIMIT


def test_no_package_hides_a_name_of_the_python_api() -> None:
    assert set(tuner.__all__) & set(PACKAGES) == set()


def test_no_circle_of_files() -> None:
    longest_chain(file_table())


def _named(table: Table) -> set[str]:
    return {part for others in table.values() for part in others}


def test_every_package_of_the_table_exists() -> None:
    packages = {package_of(name) for name in MODULES}
    parts = {"/".join(name.split(".")[:length]) for name in MODULES for length in range(1, 5)}
    assert set(PACKAGES) == packages
    assert {f"{folder}/{part}" for folder, table in INSIDE.items() for part in {*table} - {REST}} <= parts
    assert {
        f"{folder}/{part}" for folder, table in INSIDE.items() for part in _named(table) - {REST}
    } <= parts
    assert _named(PACKAGES) <= parts
    assert set(NARROWER) <= parts


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("space.search_space", "from tuner.mlir.jit import Jit"),
        ("core.record", "from tuner.space.search_space import SearchSpace"),
        ("core.record", "import subprocess"),
        ("analysis.selected_result", "def f():\n    from optuna import Study"),
        ("space.file.reading", "from tuner.db.store import Store"),
        ("db.store", "import tuner.samplers.tpe"),
        ("samplers.tpe", "from .random import Random"),
        ("tuning.run", "import db"),
        ("tuning.run", "import sqlalchemy.orm"),
        ("tuning.run", "from tuner import tune"),
        ("mlir.cpu.lowering", "import numba_cuda_mlir._mlir.ir"),
        ("mlir.cpu.lowering", "from tuner.mlir.gpu import lowering"),
        ("mlir.gpu.lowering", "from tuner.space.search_space import SearchSpace"),
        ("runtime.cuda.driver", "from tuner.mlir.jit import Jit"),
        ("scripts.strategy", "from tuner.mlir.gpu.lowering import lower_to_program"),
        ("cli.commands.tune", "import importlib\nimportlib.import_module('torch_mlir.ir')"),
        ("scripts.header", "from tuner.tuning.run import begin"),
        ("programs.support", "from tests.fakes import FakeTarget"),
        ("programs.run.mgpu", "from tuner.programs.lower.read_program import read_program"),
        ("api", "from tuner.cli.options import json_option"),
        ("__main__", "import tuner.tuning.run"),
        ("space.search_space", "import yaml"),
        ("space.search_space", "from tuner.space.file.reading import SpaceFile"),
        ("tuning.parts.simulator", "from tuner.simulator.ptx.launch import simulate"),
    ],
)
def test_an_import_against_the_table_is_found(module: str, source: str) -> None:
    assert wrong_imports(module, ast.parse(source)) != []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("mlir.bindings", "import numba_cuda_mlir"),
        ("space.file.strict_yaml", "import yaml"),
        ("space.file.reading", "from tuner.space.search_space import SearchSpace"),
        ("space.feasible_set", "from tuner.space.search_space import SearchSpace"),
        ("tuning.parts.simulator", "from tuner.simulator.device.lazy_streams import ORDERS"),
        ("samplers.tpe", "from optuna.samplers import BaseSampler"),
        ("db.migrations.env", "from alembic import context\nfrom tuner.db.models import Base"),
        (
            "targets.cpu.evaluator",
            "from tuner.mlir.cpu.lowering import lower\nfrom tuner.core.record import Record",
        ),
        ("cli.commands.tune", "from tuner.db.store import Store\nfrom tuner.samplers import SAMPLERS"),
        ("scripts.strategy", "from tuner.scripts.schedule.schedule import Schedule"),
    ],
)
def test_an_import_within_the_table_passes(module: str, source: str) -> None:
    assert wrong_imports(module, ast.parse(source)) == []


def test_a_circle_is_found_and_told() -> None:
    with pytest.raises(ValueError, match="circle: b -> c -> b"):
        longest_chain({"a": ("b",), "b": ("c",), "c": ("b",)})


@pytest.mark.parametrize(
    ("module", "name"),
    [("util.text", "tuner/util: name its room"), ("mlir.util", "tuner/mlir/util: name it")],
)
def test_a_module_of_no_package_is_refused(module: str, name: str) -> None:
    with pytest.raises(LookupError, match=rf"{name} in test_layers\.py"):
        wrong_imports(module, ast.parse("import tuner.mlir.jit"))
