from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.tuning import fakes
from tests.tuning.watched_target import Day, backends


@pytest.fixture
def script(tuned: Tuner, tmp_path: Path) -> Path:
    path = tmp_path / "best.mlir"
    assert tuned("export", "matmul", "8x8x8", "-o", str(path)).code == 0
    return path


@pytest.fixture
def watched(tmp_path: Path) -> Tuner:
    """Gives commands a target with a library and a reference kernel, and a script that was tuned on it."""
    tuner = Tuner(tmp_path / "results.db", backends(Day()))
    done = tuner("tune", "matmul", "8x8x8", "--sampler", "exhaustive", "--trials", "20")
    assert done.code == 0, done.err
    assert tuner("export", "matmul", "8x8x8", "-o", str(tmp_path / "watched.mlir")).code == 0
    return tuner


def edited(script: Path, old: str, new: str) -> str:
    """Changes the exported file; returns its path."""
    text = script.read_text()
    assert old in text
    script.write_text(text.replace(old, new))
    return str(script)


def test_a_script_as_fast_as_recorded_passes(tuned: Tuner, script: Path) -> None:
    done = tuned("check", str(script))
    assert done.code == 0
    assert done.out == (
        "correct; not slower relative to the baseline library\n"
        "time      1 ms, recorded 1 ms\n"
        "reliable  yes\n"
        "ratio     not distinguishable, the 99 % interval of the ratio of times is 1.000 .. 1.000, "
        "5 sessions\n"
    )
    document = tuned("check", str(script), "--json").json
    assert document.keys() >= {"correct", "median_s", "recorded_s", "ratio"}
    assert (document["correct"], document["ratio"], document["interval"]) == (True, None, [1.0, 1.0])
    assert document["ratio_unknown"].startswith("not distinguishable, the 99 % interval")
    assert (document["reliability"], document["recorded_reliability"]) == ("reliable", "reliable")


@pytest.mark.slow
def test_a_slower_script_fails_unless_that_is_allowed(watched: Tuner, tmp_path: Path) -> None:
    path = edited(tmp_path / "watched.mlir", '"kernel_s": 0.001,', '"kernel_s": 0.0009,')
    done = watched("check", path)
    assert done.code == 1
    assert "correct; slower relative to the baseline library and the reference kernel" in done.out
    assert "ratio     1.111 (99 % interval 1.111 .. 1.111), 15 sessions" in done.out
    assert watched("check", path, "--max-slowdown", "15%").code == 0
    assert watched("check", path, "--max-slowdown", "0.15").code == 0
    document = watched("check", path, "--json").json
    assert (document["correct"], document["passed"], document["finding"]) == (True, False, "slower")
    assert document["interval"] == pytest.approx([1 / 0.9, 1 / 0.9])
    assert (document["ratio"], document["reliability"]) == (pytest.approx(1 / 0.9), "reliable")


def test_a_check_that_shows_nothing_exits_with_3_and_says_what_to_type(tuned: Tuner, script: Path) -> None:
    path = edited(script, '"unreliable": ""', '"unreliable": "load"')
    done = tuned("check", path)
    assert done.code == 3
    assert done.out.startswith("correct; cannot tell if slower: the recorded time is unreliable: load\n")
    assert "tuner tune --resume 1 --retime" in done.err
    document = tuned("check", path, "--json").json
    assert (document["correct"], document["passed"], document["ratio"]) == (True, False, None)
    assert (document["finding"], document["interval"]) == ("cannot tell", None)
    assert document["reliability"].startswith("unknown: timed alone")


def test_a_wrong_script_fails(tuned: Tuner, script: Path) -> None:
    path = edited(script, '{"comment"', '{"at": "verify", "deed": "wrong", "comment"')
    done = tuned("check", path)
    assert done.code == 1
    assert "failed at stage verify: element (0, 1)" in done.out
    document = tuned("check", path, "--json").json
    assert (document["correct"], document["median_s"], document["ratio"]) == (False, None, None)


def test_a_machine_with_tiles_takes_back_a_script_that_has_its_name_of_before(
    tuned: Tuner, script: Path
) -> None:
    host = replace(fakes.MACHINE, name="Xeon (family 6 model 207, avx512 vnni amx_bf16, caches ?/?/?)")
    kind = fakes.changed_kind(tuned.backends.kinds["fake"], machine=lambda _target: host)
    tuned.backends = replace(tuned.backends, kinds={"fake": kind})
    before = "Xeon (family 6 model 207, avx512 vnni, caches ?/?/?)"
    path = edited(script, '"machine": "fake"', f'"machine": "{before}"')
    assert tuned("check", path).code == 0
    other = edited(script, before, "Xeon (family 6 model 207, avx512, caches ?/?/?)")
    assert tuned("check", other).code == 3


def test_a_time_of_another_machine_is_not_compared_with(tuned: Tuner, script: Path) -> None:
    done = tuned("check", edited(script, '"machine": "fake"', '"machine": "yours"'))
    assert done.code == 3
    assert "it was recorded on another machine, yours" in done.out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("// tuner: ", "// other: ", "found 0 lines that begin with '// tuner:'"),
        ('"run": 1', '"run": "one"', "its line '// tuner:' is damaged"),
        ('"target": "fake"', '"target": "tpu"', "target 'tpu': not known here"),
        ('"shape": [8, 8, 8]', '"shape": [99999, 99999, 99999]', "GiB, available 1.0 GiB"),
    ],
)
def test_a_file_that_cannot_be_checked_exits_with_2(
    tuned: Tuner, script: Path, old: str, new: str, message: str
) -> None:
    assert message in tuned.refused("check", edited(script, old, new))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("check", "none.mlir"), "none.mlir: cannot be read (No such file"),
        (("check", "/"), "/: cannot be read (Is a directory)"),
        (
            ("check", "x.mlir", "--max-slowdown", "little"),
            "max-slowdown: found 'little', allowed a percentage",
        ),
        (("apply", "none.mlir", "-"), "none.mlir: cannot be read (No such file"),
        (("apply", "-", "-"), "apply: only one of SCRIPT and PAYLOAD can be"),
        (("apply", "x.mlir"), "Missing argument 'PAYLOAD'"),
    ],
)
def test_files_that_cannot_be_read_exit_with_2(tuner: Tuner, options: tuple[str, ...], message: str) -> None:
    assert message in tuner.refused(*options)


def test_bytes_that_are_no_text_are_refused(tuner: Tuner, tmp_path: Path) -> None:
    path = tmp_path / "binary"
    path.write_bytes(b"\xff\xfe")
    assert f"{path}: not MLIR text: byte 0 is not UTF-8" in tuner("check", str(path)).err


NEEDS_VNNI = '"tuner.vnni_block"(%block) {lanes = 8 : i64} : (!transform.any_op) -> ()\n'


def test_a_script_that_needs_more_than_this_machine_has_is_refused_in_one_line(
    tuned: Tuner, script: Path, tmp_path: Path
) -> None:
    script.write_text(script.read_text() + NEEDS_VNNI)
    payload = tmp_path / "p.mlir"
    payload.write_text("payload\n")
    for words, what in (
        (("check", str(script)), "the script"),
        (("apply", str(script), str(payload)), script.name),
    ):
        done = tuned(*words)
        assert (done.code, done.out) == (2, "")
        assert done.err == (
            f"error: {what}: needs vnni, which none does not offer\n"
            "hint: tuner targets shows what this machine has\n"
        )


def test_apply_takes_a_script_for_a_processor_that_has_what_it_needs(tuner: Tuner, tmp_path: Path) -> None:
    script, payload = tmp_path / "s.mlir", tmp_path / "p.mlir"
    script.write_text(NEEDS_VNNI)
    payload.write_text("payload\n")
    assert tuner("apply", str(script), str(payload), "--cpu", "znver4").out == "// applied\npayload\n"
    refused = tuner("apply", str(script), str(payload), "--cpu", "znver3")
    assert refused.err.startswith("error: s.mlir: needs vnni, which znver3, as EPYC 7763 does not offer\n")
    unknown = tuner("apply", str(script), str(payload), "--cpu", "zen4")
    assert (unknown.code, unknown.err.count("\n")) == (2, 1)
    assert unknown.err.startswith("error: cpu: found 'zen4', allowed haswell, skylake-avx512, ")


def test_apply_prints_the_payload(tuner: Tuner, tmp_path: Path) -> None:
    script, payload = tmp_path / "s.mlir", tmp_path / "p.mlir"
    script.write_text("script\n")
    payload.write_text("payload\n")
    assert tuner("apply", str(script), str(payload)).out == "// applied\npayload\n"
    allowed = tuner("apply", str(script), str(payload), "--allow-effects").out
    assert allowed == "// applied with effects\npayload\n"
    assert tuner("apply", str(script), "-", stdin="from stdin\n").out == "// applied\nfrom stdin\n"
    document = tuner("apply", str(script), str(payload), "--json").json
    assert document == {"payload": "// applied\npayload\n"}
