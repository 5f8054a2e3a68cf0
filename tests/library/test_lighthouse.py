"""Libraries as lighthouse finds and applies them, by a reading of its conventions of our own.

Its wheel cannot be installed from PyPI, where its name is another project's.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from tests.library.c.c_programs import entry_of, write
from tests.texts import text_beside
from tuner.core.candidate import Candidate
from tuner.core.problem import BatchMatmul, Matmul
from tuner.core.processors import PROCESSORS
from tuner.library.entries import LibraryEntry
from tuner.library.library import lighthouse_files
from tuner.mlir import transform
from tuner.mlir.bindings import interpreter as transform_interpreter
from tuner.mlir.bindings import ir
from tuner.runtime.cpu.host import describe_machine

pytestmark = pytest.mark.mlir
ARCH = "x86_64"
STAGES = {"transform", "pass", "include", "bundle"}
SMALL, BATCH = Matmul(64, 128, 64), BatchMatmul(2, 64, 96, 32)
PAYLOAD = text_beside(__file__, "PAYLOAD")


def found(base: Path, operation: str, dtype: str) -> Path:
    """Returns the descriptor as lighthouse looks it up, without folders of features."""
    return base / ARCH / operation / f"{dtype}.yaml"


def transform_of(descriptor: Path) -> Path:
    """Returns the file of the only stage, which has to be next to the descriptor or found from there."""
    (stage,) = yaml.safe_load(descriptor.read_text())["Pipeline"]
    ((kind, name),) = stage.items()
    assert kind in STAGES
    assert not set(name) & set("[]{}$")  # which lighthouse takes for arguments, options and variables
    path: Path = descriptor.parent / name
    assert path.exists()
    assert path.suffix == ".mlir"
    return path


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    elsewhere = replace(describe_machine(), name="another machine")  # so that nothing is timed here
    direct = (entry_of(problem, "matmul_cpu_direct") for problem in (SMALL, BATCH))
    entries = tuple(replace(each, machine=elsewhere) for each in direct)
    folder = tmp_path_factory.mktemp("lighthouse")
    for file in lighthouse_files(entries):
        (folder / file.name).parent.mkdir(parents=True, exist_ok=True)
        write((file,), folder)
    return folder


def test_a_descriptor_per_operation_and_type_is_found_and_names_the_library(base: Path) -> None:
    for operation in ("matmul", "batch_matmul"):
        assert transform_of(found(base, operation, "f32")).resolve() == base / "library.mlir"


def test_the_first_op_of_the_module_applied_to_a_module_gives_a_tuned_function(base: Path) -> None:
    path = transform_of(found(base, "matmul", "f32"))
    with transform.new_context(), ir.Location.unknown():
        script, payload = ir.Module.parse(path.read_text()), ir.Module.parse(PAYLOAD)
        assert "transform.with_named_sequence" in script.operation.attributes
        first = script.body.operations[0].operation
        assert first.name == "transform.named_sequence"
        transform_interpreter.apply_named_sequence(payload, first, script)
        text = str(payload)
    assert text.count("linalg.matmul") == 1  # of sizes that no entry has
    assert "vector.fma" in text or "vector.outerproduct" in text


def test_the_parameters_are_a_list_of_flat_objects(base: Path) -> None:
    listed = json.loads((base / "schedule_parameters.json").read_text())
    sizes = [(each["layer_kind"], each["m"], each["n"], each["k"]) for each in listed]
    assert sizes == [("matmul", 64, 128, 64), ("batch_matmul", 64, 96, 32)]
    for each in listed:
        assert all(isinstance(value, int | str | list) for value in each.values())
        assert len(each["block_factors"]) == 3
        assert min(each["block_factors"]) > 0
        assert {"reg_tile_m", "reg_tile_n", "reg_tile_k"} <= set(each)


def test_tiles_that_a_strategy_does_not_have_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuner.library.library.write_library", lambda _entries: ())
    candidate = Candidate.of("matmul_cpu_dot", {"block_m": 16, "split": "none"})
    haswell = PROCESSORS["haswell"].machine
    entry = LibraryEntry(Matmul(64, 96, 32), candidate, "", haswell, 1, 1e-3, "", None, 1)
    (parameters,) = json.loads(lighthouse_files((entry,))[-1].content)
    sizes = {"layer_kind": "matmul", "m": 64, "n": 96, "k": 32, "dtype": "f32", "layout": "nn"}
    assert parameters == sizes | {"block_factors": [16, 96, 32]}
