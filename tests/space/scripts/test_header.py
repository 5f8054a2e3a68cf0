import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.default_suite import ALL
from tuner.core.candidate import RecordedRound, TargetName
from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.core.reliability import RELIABLE
from tuner.core.serialization import LARGEST_INTEGER
from tuner.space.scripts.header import (
    MARK,
    BaselineMedian,
    ScriptProvenance,
    read_provenance,
    script_with_header,
    without_header,
)

WHOLE = st.integers(-LARGEST_INTEGER, LARGEST_INTEGER)
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
    baseline=BaselineMedian("OpenBLAS 0.3.30 SkylakeX", 1.3e-4),
    reliability=RELIABLE,
    ratio=1.04,
    ratio_interval=(1.03, 1.05),
    trial=42,
    run=3,
    mlir="LLVM 23",
    date="2026-01-31T12:00:00Z",
    round=RecordedRound(kernel_s=1.2e-4, noise=0.01, library_s=1.3e-4, panel_product_s=3e-4),
)


def exported(provenance: ScriptProvenance = PROVENANCE, ops: tuple[str, ...] = ()) -> str:
    return script_with_header(SCRIPT, provenance, ops, "best.mlir", "best.source.mlir")


def test_four_lines_stand_above_an_untouched_script_one_after_it_and_a_second_export_adds_none() -> None:
    lines = exported().splitlines(keepends=True)
    assert "".join(lines[4:-1]) == SCRIPT
    assert all(line.startswith("//") for line in lines[:4])
    assert lines[-1].startswith(MARK)
    assert script_with_header(exported(), PROVENANCE, (), "best.mlir", "best.source.mlir") == exported()


def test_the_header_reports_people_and_whether_another_alignment_is_slower() -> None:
    header = "".join(exported().splitlines(keepends=True)[:4])
    sensitive = exported(replace(PROVENANCE, sensitive="1.31 times as long"))
    assert " Sensitive to alignment: 1.31 times as long. " in sensitive
    for fact in (
        *("tuner 0.1.0", "matmul 512x256x128 bf16 nt bias_relu", "cpu, 2 threads", "Xeon", "tile_m=8"),
        *("125 us", "120 us .. 130 us", "GFLOP/s", "OpenBLAS 0.3.30 SkylakeX", "Reliable: yes."),
        "ratio 1.040 (95 % interval 1.030 .. 1.050)",
        *("42 of run 3", "LLVM 23", "2026-01-31T12:00:00Z", "best.source.mlir"),
    ):
        assert fact in header


@pytest.mark.parametrize(
    ("target", "align", "sentence"),
    [
        ("cpu", "16", "// Operands at multiples of 16 bytes: timed 16 bytes past one of 64. "),
        ("cpu", "64", "// Operands at multiples of 64 bytes. "),
        ("cpu", "any", "// Operands at any address: timed one element past a multiple of 64. "),
        ("cuda:sm_90", "16", ""),
    ],
)
def test_the_header_says_where_operands_lay(target: str, align: str, sentence: str) -> None:
    problem = replace(PROVENANCE.problem, align=align)
    text = exported(replace(PROVENANCE, problem=problem, target=TargetName.parse(target)))
    assert sentence in text
    assert ("// Operands" in text) == bool(sentence)
    assert read_provenance(text, "best.mlir").problem == problem


@pytest.mark.parametrize(("target", "align"), [("cpu", "64"), ("cuda:sm_90", "16")])
def test_a_script_of_before_was_timed_on_a_cache_line(target: str, align: str) -> None:
    text = exported(replace(PROVENANCE, target=TargetName.parse(target)))
    assert text.count(', "align": "16"') == 1
    found = read_provenance(text.replace(', "align": "16"', ""), "best.mlir")
    assert found.problem == replace(PROVENANCE.problem, align=align)


def test_a_script_says_how_mlir_opt_or_tuner_applies_it() -> None:
    command = "--transform-preload-library=transform-library-paths=best.mlir --transform-interpreter"
    assert f"mlir-opt best.source.mlir {command}" in exported()
    line = "// Run it by tuner apply best.mlir best.source.mlir; stock mlir-opt lacks tuner.prefetch\n"
    assert line in exported(ops=("tuner.prefetch",))


def test_a_script_says_which_instruction_sets_it_needs_and_hides_none() -> None:
    text = exported(replace(PROVENANCE, needs=("amx-bf16", "vnni")))
    assert " Needs amx-bf16, vnni. " in text
    assert read_provenance(text, "best.mlir").needs == ("amx-bf16", "vnni")
    assert "Needs" not in exported()
    text = exported(replace(PROVENANCE, needs=("vnni",)))
    text += '"tuner.pair_block"(%f) {dots = 1 : i64} : (!any) -> ()\n'
    assert read_provenance(text, "best.mlir").needs == ("avx512-bf16", "vnni")


@pytest.mark.parametrize(("dtype", "needs"), [("bf16", ("amx-bf16",)), ("i8", ("amx-int8",)), ("f32", ())])
def test_what_an_older_script_needs_is_read_from_its_ops(dtype: str, needs: tuple[str, ...]) -> None:
    text = exported(replace(PROVENANCE, problem=Matmul(512, 256, 128, dtype))).replace('"needs": [], ', "")
    text += '"tuner.amx_block"(%block) : (!transform.any_op) -> ()\n'
    assert '"needs"' not in text
    assert read_provenance(text, "best.mlir").needs == needs


@pytest.mark.parametrize(
    "changes",
    [
        *({}, {"baseline": None}, {"round": None}, {"round": RecordedRound(1.2e-4, 0.0)}),
        {"round": RecordedRound(1.2e-4, 0.5, panel_product_s=3e-4)},
    ],
)
def test_provenance_reads_back_with_the_references_that_it_has(changes: dict[str, Any]) -> None:
    some = replace(PROVENANCE, **changes)
    assert read_provenance(exported(some), "best.mlir") == some


@given(machine=st.text(), strategy=st.text(), median_s=st.floats(1e-9, 1e3), value=WHOLE | st.text())
def test_any_provenance_reads_back(machine: str, strategy: str, median_s: float, value: int | str) -> None:
    odd = replace(PROVENANCE, machine=machine, strategy=strategy, median_s=median_s, knobs=(("x", value),))
    text = exported(odd)
    assert (read_provenance(text, "best.mlir"), without_header(text)) == (odd, SCRIPT)
    assert text.count("\n") == SCRIPT.count("\n") + 5


def test_the_header_of_an_older_tuner_is_read_without_a_round_and_left_out() -> None:
    head, _, rest = exported().partition(MARK)
    line = json.loads(rest.partition("\n")[0])
    del line["round"]
    older = f"{head}{MARK}{json.dumps(line)}\n{SCRIPT}"
    assert read_provenance(older, "best.mlir") == replace(PROVENANCE, round=None)
    older = f"// Transform script of it\n{exported().splitlines()[-1]}\n{SCRIPT}"
    assert (read_provenance(older, "best.mlir"), without_header(older)) == (PROVENANCE, SCRIPT)


def test_a_script_that_was_not_exported_is_refused() -> None:
    message = r"mine\.mlir: is not a script that 'tuner export' wrote: found 0 lines that begin"
    with pytest.raises(UsageError, match=message):
        read_provenance(SCRIPT, "mine.mlir")


@pytest.mark.parametrize("line", ["{", "[]", "{}", json.dumps({"problem": 1}), '{"a": ' * 100_000])
def test_a_damaged_line_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match=r"best\.mlir: its line '// tuner:' is damaged"):
        read_provenance(f"{MARK}{line}\n{SCRIPT}", "best.mlir")


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(
    ("was", "value", "found"),
    [
        ('"median_s": 0.000125', '"median_s": Infinity', "median_s: found inf, allowed seconds"),
        ('"median_s": 0.000125', '"median_s": NaN', "median_s: found nan, allowed seconds"),
        ('"median_s": 0.000125', '"median_s": -1', "median_s: found -1, allowed seconds"),
        ('"median_s": 0.000125', '"median_s": true', "median_s: found True, allowed seconds"),
        ('"median_s": 0.000125', '"median_s": 1e999', "median_s: found inf, allowed seconds"),
        ('"median_s": 0.000125', f'"median_s": 1{"0" * 400}', "median_s: found 1000"),
        ('"median_s": 0.000125', '"median_s": null', "median_s and interval_s: one of them is missing"),
        ('"interval_s": [', '"interval_s": [1, ', r"interval_s: found \[1, .*, allowed a list of 2"),
        ('"interval_s": [0.00012', '"interval_s": [NaN', r"interval_s\[0\]: found nan, allowed seconds"),
        ('"threads": 2', '"threads": 100000', "threads: found 100000, allowed a whole number from 0 to 4096"),
        ('"threads": 2', '"threads": true', "threads: found True, allowed a whole number"),
        ('"threads": 2', '"threads": "2"', "threads: found '2', allowed a whole number"),
        ('"threads": 2', '"threads": -2', "threads: found -2, allowed a whole number"),
        ("[512, 256", "[Infinity, 256", r"problem\.shape\[0\]: found inf, allowed a whole number"),
        ("[512, 256, 128]", "[512, 256]", r"sizes: found \(512, 256\), allowed three numbers"),
        ("[512, 256, 128]", "[true, 256, 128]", r"problem\.shape\[0\]: found True, allowed a whole number"),
        ('"tile_m": 8', '"tile_m": [8]', r"knobs\.tile_m: found \[8\], allowed a whole number or text"),
        ('"median_s": 0.00013}', '"median_s": Infinity}', r"baseline\.median_s: found inf, allowed seconds"),
        ('"target": "cpu"', '"target": null', "target: found None, allowed text"),
        ('"run": 3', '"ran": 3', "run: missing"),
        ('"noise": 0.01', '"noise": -0.01', r"round\.noise: found -0.01, allowed a number from 0 to"),
        ('"noise": 0.01', '"noise": "low"', r"round\.noise: found 'low', allowed a number"),
        ('"library_s": 0.00013', '"library_s": 0', r"round\.library_s: found 0, allowed seconds"),
        ('"problem": {', '"problem": 7, "p": {', "problem: found 7, allowed an object"),
        ('"dtype": "bf16"', '"dtype": "i4"', "dtype: found 'i4'"),
    ],
)
def test_a_value_of_another_kind_is_refused_by_its_key(was: str, value: str, found: str) -> None:
    text = exported()
    assert was in text
    with pytest.raises(UsageError, match=rf"^best\.mlir: its line '// tuner:' is damaged: .*{found}"):
        read_provenance(text.replace(was, value), "best.mlir")
