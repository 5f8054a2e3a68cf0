import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.default_suite import ALL
from tuner.core.candidate import RecordedRound, TargetName
from tuner.core.errors import UsageError
from tuner.core.matmul import Matmul
from tuner.core.reliability import RELIABLE
from tuner.core.serialization import LARGEST_INTEGER
from tuner.space.scripts.header import (
    COLUMNS,
    BaselineMedian,
    ScriptProvenance,
    is_exported,
    parse_provenance,
    provenance_file,
    provenance_text,
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


def document(provenance: ScriptProvenance = PROVENANCE) -> str:
    return provenance_text(provenance)


def read_back(provenance: ScriptProvenance, script: str = SCRIPT) -> ScriptProvenance:
    return parse_provenance(document(provenance), script, "best.provenance.json")


def test_the_header_stands_above_an_untouched_script_and_a_second_export_adds_none() -> None:
    text = exported()
    assert text.endswith(SCRIPT)
    assert all(line.startswith("//") for line in text.removesuffix(SCRIPT).splitlines())
    assert (without_header(text), without_header(SCRIPT)) == (SCRIPT, SCRIPT)
    assert (is_exported(text), is_exported(SCRIPT)) == (True, False)
    assert script_with_header(text, PROVENANCE, (), "best.mlir", "best.source.mlir") == text


@pytest.mark.parametrize("name", ["best", "a_folder_of_very_long_names_of_scripts_" * 2 + "best"])
def test_no_line_of_the_header_is_longer_than_120_columns_and_its_command_is_one_for_a_shell(
    name: str,
) -> None:
    knobs = tuple((f"a_knob_with_a_name_{number}", 1024) for number in range(12))
    ops = ("tuner.pack_by_rows", "tuner.prefetch_reads", "tuner.lanes_along_k", "tuner.amx_block")
    files = (f"{name}.mlir", f"{name}.source.mlir")
    text = script_with_header(SCRIPT, replace(PROVENANCE, knobs=knobs), (), *files)
    longest_word = max(len(word) for word in text.split())
    assert max(map(len, text.splitlines())) <= max(COLUMNS, longest_word + len("//    \\"))
    header = text.removesuffix(SCRIPT).replace("\n//   ", " ")
    command = header.partition("// Run it by: ")[2].replace(" \\ ", " ").strip()
    library = f"--transform-preload-library=transform-library-paths={name}.mlir"
    assert command == f"mlir-opt {name}.source.mlir {library} --transform-interpreter"
    assert without_header(text) == SCRIPT
    own = script_with_header(SCRIPT, PROVENANCE, ops, *files)
    assert without_header(own) == SCRIPT
    assert max(map(len, own.splitlines())) <= max(COLUMNS, longest_word + len("//    \\"))


def test_the_header_reports_people_and_whether_another_alignment_is_slower() -> None:
    header = exported().removesuffix(SCRIPT).replace("\n//   ", " ")
    sensitive = exported(replace(PROVENANCE, sensitive="1.31 times as long")).replace("\n//   ", " ")
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
        ("cpu", "16", "// Operands at multiples of 16 bytes: timed 16 bytes past a multiple of 64. "),
        ("cpu", "64", "// Operands at multiples of 64 bytes. "),
        ("cpu", "any", "// Operands at any address: timed one element past a multiple of 64. "),
        ("cuda:sm_90", "16", ""),
    ],
)
def test_the_header_says_where_operands_lay(target: str, align: str, sentence: str) -> None:
    problem = replace(PROVENANCE.problem, align=align)
    provenance = replace(PROVENANCE, problem=problem, target=TargetName.parse(target))
    text = exported(provenance)
    assert sentence in text
    assert ("// Operands" in text) == bool(sentence)
    assert read_back(provenance).problem == problem


def test_a_script_says_how_mlir_opt_or_tuner_applies_it() -> None:
    command = "--transform-preload-library=transform-library-paths=best.mlir --transform-interpreter"
    assert f"mlir-opt best.source.mlir {command}" in exported()
    lines = "// Stock mlir-opt lacks tuner.prefetch.\n// Run it by:\n"
    lines += "//   tuner apply best.mlir best.source.mlir\n"
    assert lines in exported(ops=("tuner.prefetch",))


def test_a_script_says_which_instruction_sets_it_needs_and_hides_none() -> None:
    some = replace(PROVENANCE, needs=("amx-bf16", "vnni"))
    assert " Needs amx-bf16, vnni. " in exported(some)
    assert read_back(some).needs == ("amx-bf16", "vnni")
    assert "Needs" not in exported()
    script = SCRIPT + '"tuner.pair_block"(%f) {dots = 1 : i64} : (!any) -> ()\n'
    assert read_back(replace(PROVENANCE, needs=("vnni",)), script).needs == ("avx512-bf16", "vnni")


@pytest.mark.parametrize(
    ("dtype", "needs"), [("bf16", ("amx-bf16",)), ("i8", ("amx-int8",)), ("bf16x6", ("amx-bf16",))]
)
def test_what_a_script_needs_is_also_read_from_its_ops(dtype: str, needs: tuple[str, ...]) -> None:
    written = json.loads(document(replace(PROVENANCE, problem=Matmul(512, 256, 128, dtype))))
    assert written.pop("needs") == []
    script = SCRIPT + '"tuner.amx_block"(%block) : (!transform.any_op) -> ()\n'
    assert parse_provenance(json.dumps(written), script, "best.provenance.json").needs == needs


@pytest.mark.parametrize(
    "changes",
    [
        *({}, {"baseline": None}, {"round": None}, {"round": RecordedRound(1.2e-4, 0.0)}),
        {"round": RecordedRound(1.2e-4, 0.5, panel_product_s=3e-4)},
    ],
)
def test_provenance_reads_back_with_the_references_that_it_has(changes: dict[str, Any]) -> None:
    some = replace(PROVENANCE, **changes)
    assert read_back(some) == some


@given(machine=st.text(), strategy=st.text(), median_s=st.floats(1e-9, 1e3), value=WHOLE | st.text())
def test_any_provenance_reads_back(machine: str, strategy: str, median_s: float, value: int | str) -> None:
    odd = replace(PROVENANCE, machine=machine, strategy=strategy, median_s=median_s, knobs=(("x", value),))
    assert (read_back(odd), without_header(exported(odd))) == (odd, SCRIPT)


def test_provenance_is_read_from_the_file_next_to_the_script_and_its_absence_is_one_line(
    tmp_path: Path,
) -> None:
    script = tmp_path / "best.mlir"
    message = r"^best\.mlir: found no best\.provenance\.json next to it, which says what the script is for;"
    with pytest.raises(UsageError, match=message):
        read_provenance(script, SCRIPT)
    assert provenance_file(script) == tmp_path / "best.provenance.json"
    provenance_file(script).write_text(document())
    assert read_provenance(script, SCRIPT) == PROVENANCE


@pytest.mark.parametrize("text", ["{", "[]", "{}", json.dumps({"problem": 1}), '{"a": ' * 100_000])
def test_a_damaged_file_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"best\.provenance\.json: is damaged"):
        parse_provenance(text, SCRIPT, "best.provenance.json")


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
        ('"target": "cpu"', '"target": null', "target: found nothing, allowed text"),
        ('"run": 3', '"ran": 3', "run: is missing"),
        ('"noise": 0.01', '"noise": -0.01', r"round\.noise: found -0.01, allowed a number from 0 to"),
        ('"noise": 0.01', '"noise": "low"', r"round\.noise: found 'low', allowed a number"),
        ('"library_s": 0.00013', '"library_s": 0', r"round\.library_s: found 0, allowed seconds"),
        ('"problem": {', '"problem": 7, "p": {', "problem: found 7, allowed a mapping"),
        ('"dtype": "bf16"', '"dtype": "i4"', "dtype: found 'i4'"),
    ],
)
def test_a_value_of_another_kind_is_refused_by_its_key(was: str, value: str, found: str) -> None:
    text = json.dumps(json.loads(document()))
    assert was in text
    with pytest.raises(UsageError, match=rf"^best\.provenance\.json: is damaged: .*{found}"):
        parse_provenance(text.replace(was, value), SCRIPT, "best.provenance.json")
