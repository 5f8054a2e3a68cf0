"""``python -m benchmarks.op_samples`` goes on where it was stopped, and its table says what must not be."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("expecttest", reason="needs expecttest, which PyTorch's samples import")
op_samples = pytest.importorskip("benchmarks.op_samples")


def run(monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    monkeypatch.setattr(sys, "argv", ["op_samples", *options])
    with pytest.raises(SystemExit) as ended:
        op_samples.main()
    return int(ended.value.code or 0)


def test_a_stopped_command_goes_on_and_what_is_wrong_is_its_status(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, table = tmp_path / "kept.jsonl", tmp_path / "table.json"
    options = ("--kept", str(kept), "--ops", "abs", "--dtypes", "f32", "i64", "--samples", "1")
    assert run(monkeypatch, *options, "--limit-s", "0") == 0
    assert "0 samples are kept, 2 are left" in capsys.readouterr().err
    with kept.open("a") as file:
        for dtype, kind in (("f32", "right"), ("i64", "crash")):
            sample = {"op": "abs", "dtype": dtype, "number": 0, "seed": 0}
            file.write(json.dumps(sample | {"kind": kind, "reason": "SIGSEGV"}) + "\n")
        file.write('{"op": "abs", "dty')  # where it was killed
    assert run(monkeypatch, *options, "--output", str(table)) == 1
    assert "2 samples are kept, 0 are left" in capsys.readouterr().err
    document = json.loads(table.read_text())
    assert document["rows"] == [{"op": "abs", "f32": "=", "i64": "(crash)"}]
    assert document["summary"]["right_share"] == {"f32": 1.0, "i64": 0.0}


def test_a_file_of_another_seed_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    assert run(monkeypatch, "--kept", str(kept), "--ops", "abs", "--limit-s", "0") == 0
    monkeypatch.setattr(sys, "argv", ["op_samples", "--kept", str(kept), "--seed", "1"])
    with pytest.raises(SystemExit, match="allowed those of"):
        op_samples.main()


def test_samples_are_one_module_by_operator_floats_apart_then_their_parts() -> None:
    pairs = [("abs", "f32"), ("abs", "i64"), ("add", "f32"), ("add", "f64")]
    names = [op_samples.OpSampleName(*pair, number) for pair in pairs for number in range(2)]
    modules = op_samples._modules(names)  # noqa: SLF001 - the order of the work
    assert [len(each) for each in modules] == [2, 2, 4]
    assert op_samples._parts(modules[2]) == [modules[2][:2], modules[2][2:]]  # noqa: SLF001
    assert op_samples._parts(modules[0]) == [(names[0],), (names[1],)]  # noqa: SLF001
