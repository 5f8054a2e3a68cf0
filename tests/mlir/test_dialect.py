"""Transform ops of tuner: listed by their packages, imported and registered when a text names them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.source_files import MODULES
from tests.targets.evaluation import fails
from tuner.core.errors import CandidateError, Stage
from tuner.mlir import dialect, transform
from tuner.mlir.bindings import ir
from tuner.mlir.dialect import OP_PACKAGES, all_ops, op_places

SCRIPT = """
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%f: !transform.any_op) {{
    "tuner.{}"(%f) : (!transform.any_op) -> ()
    transform.yield
  }}
}}
"""
NEW_OP = """
from tuner.mlir.dialect import InPlaceOp
OPS = {"rename": "package_of_test:RenameOp"}
class RenameOp(InPlaceOp, name="rename"):
    def change(self, module):
        module.attributes["sym_name"] = module.attributes["t.old"]
"""
NAMES_ONE = """
import sys
from tuner.mlir import transform
from tuner.mlir.bindings import ir
PACKAGES = ("tuner.mlir.cpu_ops.", "tuner.gpu.ops.")
ops = lambda: {name for name in sys.modules if name.startswith(PACKAGES)}
with transform.new_context() as context, ir.Location.unknown():
    assert ops() == set(), ops()
    transform.parse(sys.argv[1], "script")
    print(*sorted(ops()))
    print(*(context.is_registered_operation(f"tuner.{name}") for name in ("split_k", "swizzle_blocks")))
"""


def test_packages_list_each_op_by_its_name() -> None:
    assert [op.OPERATION_NAME for op in all_ops()] == [f"tuner.{name}" for name in sorted(op_places())]
    listed = set(op_places().values())
    texts = {
        name: path.read_text()
        for name, path in MODULES.items()
        if name.startswith(("mlir.", "gpu.", "models.ops."))
    }
    defined = {
        f"tuner.{name}:{line.split('(')[0].removeprefix('class ')}"
        for name, text in texts.items()
        for line in text.splitlines()
        if line.startswith("class ") and "(InPlaceOp, name=" in line
    }
    assert listed == defined


def test_a_process_imports_the_ops_that_a_script_names_and_no_other() -> None:
    program = [sys.executable, "-c", NAMES_ONE, SCRIPT.format("split_k")]
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["tuner.gpu.ops.grid", "True False"]


def test_a_context_takes_further_ops_after_it_has_parsed() -> None:
    with transform.new_context(), ir.Location.unknown():
        for name in sorted(op_places()):
            module = transform.parse(SCRIPT.format(name), "script")
            op = transform.entry_sequence(module).regions[0].blocks[0].operations[0]
            assert f"{type(op).__module__}:{type(op).__qualname__}" == op_places()[name]
        with fails(Stage.BIND, "op without interface"):
            transform.parse(SCRIPT.format("no_such_op"), "script")


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ('"tuner.split_k"() : () -> ()', "script:4:5: op expects exactly 1 operands, but got 0"),
        ('"tuner.prefetch_fragments"() : () -> ()', "script:4:5: op expects exactly 1 operands, but got 0"),
        ("tuner.split_k %f", r'script:4:5: found tuner.split_k in a short form, allowed "tuner.split_k"\(%h'),
        (
            'tuner.split_k %f\n"tuner.split_k"() : () -> ()',
            'script:4:5: found tuner.split_k in a short form, allowed "tuner.split_k"',
        ),
    ],
)
def test_an_op_without_its_operand_or_in_a_short_form_is_one_line(op: str, message: str) -> None:
    script = SCRIPT.format("split_k").replace('"tuner.split_k"(%f) : (!transform.any_op) -> ()', op)
    with (
        transform.new_context(),
        ir.Location.unknown(),
        pytest.raises(CandidateError, match=message) as caught,
    ):
        transform.parse(script, "script")
    assert caught.value.stage == Stage.BIND


def test_another_package_adds_ops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package_of_test.py").write_text(NEW_OP)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(dialect, "OP_PACKAGES", (*OP_PACKAGES, "package_of_test"))
    with transform.new_context(), ir.Location.unknown():
        payload = transform.parse('module attributes {t.old = "new"} {}', "payload")
        transform.apply_script(payload, transform.parse(SCRIPT.format("rename"), "script"))
        assert str(payload).startswith("module @new attributes ")
