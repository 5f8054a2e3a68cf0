import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.core.target_name import TargetName
from tuner.scripts.header import (
    MARK,
    ScriptProvenance,
    own_ops,
    read_provenance,
    script_with_header,
    without_header,
)

SCRIPT = "// panels: matmul 0 0 8 8\nmodule attributes {transform.with_named_sequence} {\n}\n"
PROVENANCE = ScriptProvenance(
    tuner="0.1.0",
    problem=Matmul(512, 256, 128, "bf16", "nt", "bias_relu"),
    target=TargetName("cpu"),
    threads=2,
    machine="Xeon (family 6 model 143, avx512)",
    strategy="matmul_cpu_packed",
    knobs=(("order", "ji"), ("tile_m", 8)),
    median_s=1.25e-4,
    interval_s=(1.2e-4, 1.3e-4),
    baseline=("OpenBLAS 0.3.30 SkylakeX", 1.3e-4),
    trial=42,
    run=3,
    mlir="LLVM 23",
    date="2026-01-31T12:00:00Z",
)


def exported(provenance: ScriptProvenance = PROVENANCE, ops: tuple[str, ...] = ()) -> str:
    return script_with_header(SCRIPT, provenance, ops, "best.mlir", "best.source.mlir")


def test_the_header_is_comments_above_an_untouched_script() -> None:
    header, script = exported()[: -len(SCRIPT)], exported()[-len(SCRIPT) :]
    assert script == SCRIPT
    assert all(line.startswith("//") for line in header.splitlines())


@pytest.mark.parametrize(
    "fact",
    [
        *("tuner 0.1.0", "matmul 512x256x128 bf16 nt bias_relu", "cpu, 2 threads", "Xeon", "tile_m=8"),
        *("125.00 us", "120.00 .. 130.00 us", "GFLOP/s", "OpenBLAS 0.3.30 SkylakeX", "ratio 1.040"),
        *("42 of run 3", "LLVM 23", "2026-01-31T12:00:00Z", "best.source.mlir"),
    ],
)
def test_the_header_tells_people(fact: str) -> None:
    readable = "\n".join(line for line in exported().splitlines() if not line.startswith(MARK))
    assert fact in readable


def test_a_stock_script_says_how_mlir_opt_applies_it() -> None:
    command = "--transform-preload-library=transform-library-paths=best.mlir --transform-interpreter"
    assert f"mlir-opt best.source.mlir {command}" in exported()


def test_a_script_with_own_ops_names_them_and_tuner_apply() -> None:
    text = exported(ops=("tuner.prefetch",))
    assert "own transform ops (tuner.prefetch): run with tuner apply best.mlir best.source.mlir" in text
    assert "mlir-opt" not in text


def test_own_ops_are_found_in_code_and_not_in_comments() -> None:
    script = '// "tuner.a"(%x)\n"tuner.prefetch"(%x) : (!a) -> ()\n %y = "tuner.dot"(%x)\n"transform.b"(%x)\n'
    assert own_ops(script, "tuner.") == ("tuner.dot", "tuner.prefetch")
    assert own_ops(SCRIPT, "tuner.") == ()


def test_provenance_reads_back() -> None:
    assert read_provenance(exported(), "best.mlir") == PROVENANCE


def test_a_baseline_under_its_earlier_name_is_read() -> None:
    text = exported().replace('"baseline": {', '"vendor": {')
    assert read_provenance(text, "best.mlir") == PROVENANCE


def test_provenance_without_a_baseline_reads_back() -> None:
    alone = replace(PROVENANCE, baseline=None)
    assert read_provenance(exported(alone), "best.mlir") == alone


@given(machine=st.text(), strategy=st.text(), median_s=st.floats(1e-9, 1e3), value=st.integers() | st.text())
def test_any_provenance_reads_back(machine: str, strategy: str, median_s: float, value: int | str) -> None:
    odd = replace(PROVENANCE, machine=machine, strategy=strategy, median_s=median_s, knobs=(("x", value),))
    text = exported(odd)
    assert read_provenance(text, "best.mlir") == odd
    assert without_header(text) == SCRIPT
    assert all(line.startswith("//") for line in text[: -len(SCRIPT)].splitlines())


def test_exporting_an_export_keeps_one_header() -> None:
    again = script_with_header(exported(), PROVENANCE, (), "best.mlir", "best.source.mlir")
    assert again == exported()


def test_a_script_that_was_not_exported_is_refused() -> None:
    with pytest.raises(UsageError, match=r"mine\.mlir: found 0 lines that begin with '// tuner:', needs one"):
        read_provenance(SCRIPT, "mine.mlir")


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "{}",
        json.dumps({"problem": 1}),
        exported().split(MARK)[1].splitlines()[0].replace('"median_s": 0.000125', '"median_s": -1'),
        exported().split(MARK)[1].splitlines()[0].replace('"interval_s": [', '"interval_s": [1, '),
    ],
)
def test_a_damaged_line_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match=r"best\.mlir: its line '// tuner:' is damaged"):
        read_provenance(f"{MARK}{line}\n{SCRIPT}", "best.mlir")


def test_a_line_with_an_unknown_problem_is_refused() -> None:
    text = exported().replace('"dtype": "bf16"', '"dtype": "i4"')
    with pytest.raises(UsageError, match="dtype: found 'i4'"):
        read_provenance(text, "best.mlir")
