from collections.abc import Iterator
from pathlib import Path

import pytest

from tuner.core.errors import CandidateError, Stage
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.mlir.transform import require_no_effects

pytestmark = pytest.mark.mlir

PAYLOAD = "module { func.func @f() { return } }"
SCRIPT = """module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%root: !transform.any_op) {{
    %done = transform.apply_registered_pass {words} to %root : (!transform.any_op) -> !transform.any_op
    transform.yield
  }}
}}"""


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with transform.new_context(), ir.Location.unknown():
        yield


def script_of(words: str) -> ir.Module:
    return transform.parse(SCRIPT.format(words=words), "script")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ('"snapshot-op-locations" with options = {filename = "x"}', "snapshot-op-locations"),
        ('"gpu-module-to-binary" with options = {toolkit = "x"}', "gpu-module-to-binary"),
        ('"gpu-lower-to-nvvm-pipeline"', "gpu-lower-to-nvvm-pipeline"),
        ('"print-ir"', "print-ir"),
        ('"print-op-stats"', "print-op-stats"),
        ('"view-op-graph"', "view-op-graph"),
        ('"transform-interpreter"', "transform-interpreter"),
        ('"inline" with options = {"default-pipeline" = "canonicalize,print-ir"}', "print-ir"),
        ('"composite-fixed-point-pass" with options = {pipeline = "any(\\70rint-ir)"}', "print-ir"),
    ],
)
def test_a_pass_with_effects_is_refused_wherever_it_is_named(words: str, name: str) -> None:
    reason = f"^script: found pass {name}, which writes files, starts programs or prints; allowed with "
    with pytest.raises(CandidateError, match=reason) as caught:
        require_no_effects(script_of(words))
    assert caught.value.stage == Stage.BIND


@pytest.mark.parametrize("words", ['"canonicalize"', '"cse"', '"convert-linalg-to-loops"', '"sccp"'])
def test_other_passes_are_not(words: str) -> None:
    require_no_effects(script_of(words))


def test_a_file_is_written_only_where_effects_are_allowed(tmp_path: Path) -> None:
    file = tmp_path / "written.mlir"
    script = script_of(f'"snapshot-op-locations" with options = {{filename = "{file}"}}')
    payload = transform.parse(PAYLOAD, "payload")
    with pytest.raises(CandidateError, match="found pass snapshot-op-locations"):
        transform.apply_script(payload, script)
    assert not file.exists()
    transform.apply_script(payload, script, allows_effects=True)
    assert file.exists()
