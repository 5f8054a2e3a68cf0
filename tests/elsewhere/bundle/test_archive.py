import hashlib
import json
import re
import struct
import tracemalloc
import zipfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.elsewhere.bundle.bare_machine import measure
from tests.elsewhere.bundle.numpy_gpu import candidate
from tests.elsewhere.bundle.values import NOW, PROBLEM, PROVENANCE, RESULTS, pending, program, result, timed
from tuner.core.compiled_code import KernelCode, PredictedCycles
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.records import Measurement
from tuner.core.remote_results import PendingTrial
from tuner.elsewhere.bundle import archive, results_file
from tuner.gpu.cost_model import untimed
from tuner.gpu.cost_model.untimed import predicted_first
from tuner.gpu.ptxsim.target.cycle_model import predicted

MIB = 1 << 20
TRIALS = (
    pending(0, code=program("//\n.version 8.0 // one", binary=b"\x7fELF one\xff")),
    pending(1, code=program("//\n.version 8.0 // one", binary=b"\x7fELF two")),
    pending(2, script="module {}\n// é\n"),
)


def written(folder: Path, *trials: PendingTrial) -> Path:
    path = folder / "pending.bundle"
    path.write_bytes(archive.pack(trials, 7, "0.1.0", NOW))
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path, *TRIALS)


def rewrite(path: Path, change: Any) -> None:
    """Lets ``change`` at the parts of a bundle: name -> content."""
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    change(parts)
    with zipfile.ZipFile(path, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)


def in_manifest(change: Any) -> Any:
    def changed(parts: dict[str, bytes]) -> None:
        document = json.loads(parts["manifest.json"])
        change(document)
        parts["manifest.json"] = json.dumps(document).encode()
        parts["manifest.sha256"] = hashlib.sha256(parts["manifest.json"]).hexdigest().encode()

    return changed


def test_a_bundle_comes_back_whole_with_texts_that_trials_share_once(path: Path, tmp_path: Path) -> None:
    bundle = archive.read_bundle(path)
    assert bundle.trials == TRIALS
    assert (bundle.seed, bundle.tuner, bundle.created) == (7, "0.1.0", NOW)
    assert archive.pack(TRIALS, 7, "0.1.0", NOW) == path.read_bytes()
    with zipfile.ZipFile(path) as file:
        assert sum(name.startswith("blobs/") for name in file.namelist()) == 6  # two PTX, scripts, cubins
    other = tmp_path / "other.bundle"
    other.write_bytes(archive.pack((*TRIALS[:2], pending(2)), 7, "0.1.0", NOW))
    assert archive.read_bundle(other).sha256 != bundle.sha256


@pytest.mark.parametrize("kept", [0, 1, 50, 500])
def test_a_bundle_that_was_cut_off_is_refused(path: Path, kept: int) -> None:
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(UsageError, match="is not a whole bundle"):
        archive.read_bundle(path)


def test_a_changed_byte_is_found_or_changes_nothing(path: Path) -> None:
    content, whole, refused = path.read_bytes(), archive.read_bundle(path), 0
    for place in range(0, len(content), 11):
        changed = bytearray(content)
        changed[place] ^= 0x41
        path.write_bytes(changed)
        try:
            assert archive.read_bundle(path) == whole, place
        except UsageError:
            refused += 1
    assert refused > len(content) / 11 / 2


def replaced(old: bytes, new: bytes) -> Any:
    return lambda parts: parts.update({name: part.replace(old, new) for name, part in parts.items()})


def text_of_bytes(document: Any) -> None:
    program = document["trials"][0]["program"]
    program["text"] = program["binary"]


CHANGES = (
    (replaced(b"ELF one", b"ELF 0ne"), r"trials\[0\]: blobs/\w{12}\.\.\. was altered after the export"),
    (lambda parts: parts.pop([*parts][-1]), r"blobs/\w+ is missing: not a file of"),
    (replaced(b'"seed": 7', b'"seed": 8'), r"manifest\.json: was altered after the export"),
    (lambda parts: parts.pop("manifest.sha256"), r"manifest\.sha256 is missing: not a file of tuner-bundle"),
    (lambda parts: parts.pop("manifest.json"), r"manifest\.json is missing: not a file of tuner-bundle"),
    (lambda parts: parts.update({"manifest.json": b"{"}), r"manifest\.json: is not JSON"),
    (in_manifest(lambda it: it.update(version=9)), "found version 9 of tuner-bundle, allowed 3"),
    (in_manifest(lambda it: it.update(format="zip")), "found format 'zip', allowed 'tuner-bundle'"),
    (in_manifest(lambda it: it.update(trials=3)), "trials: is empty"),
    (in_manifest(lambda it: it.update(seed="x")), "seed: found 'x', allowed a whole number"),
    (in_manifest(lambda it: it.update(seed=-1)), "seed: found -1, allowed 0 or more"),
    (
        in_manifest(lambda it: it["trials"][2].update(script_sha256="00")),
        r"trials\[2\]: found a script of another hash than 00",
    ),
    (in_manifest(text_of_bytes), r"trials\[0\]: found code or a script that is not text"),
)


def test_what_is_wrong_with_a_bundle_is_one_line(path: Path) -> None:
    whole = path.read_bytes()
    for change, message in CHANGES:
        path.write_bytes(whole)
        rewrite(path, change)
        with pytest.raises(UsageError, match=message):
            archive.read_bundle(path)


def test_a_part_is_not_unpacked_beyond_its_claim(path: Path) -> None:
    bomb, claimed = b"module {}" + bytes(64 * MIB), 9
    rewrite(path, lambda parts: parts.pop("manifest.json"))
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as file:
        file.writestr("manifest.json", bomb)
    content = path.read_bytes()
    path.write_bytes(content.replace(struct.pack("<I", len(bomb)), struct.pack("<I", claimed)))
    tracemalloc.start()
    with pytest.raises(UsageError, match="is not a whole bundle"):
        archive.read_bundle(path)
    assert tracemalloc.get_traced_memory()[1] < 4 * MIB
    tracemalloc.stop()


def test_parts_that_claim_to_be_huge_alone_or_together_are_not_unpacked(path: Path) -> None:
    assert archive.MANIFEST_LIMIT_BYTES == 64 << 20
    for limit, bytes_, message in (
        ("BUNDLE_LIMIT_BYTES", 100, r"pending\.bundle: found \d+ bytes once unpacked, allowed 100$"),
        ("LIMIT_BYTES", 1, r"blobs/\w+: found \d+ bytes, allowed 1$"),
        ("MANIFEST_LIMIT_BYTES", 100, r"manifest\.json: found \d+ bytes, allowed 100$"),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(archive, limit, bytes_)
            with pytest.raises(UsageError, match=message):
                archive.read_bundle(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_compression_that_is_not_ours_is_refused(path: Path, compression: int) -> None:
    manifest = zipfile.ZipFile(path).read("manifest.json")
    with zipfile.ZipFile(path, "w", compression) as file:
        file.writestr("manifest.json", manifest)
    message = rf"manifest\.json: found compression {compression}, allowed 0 and 8"
    with pytest.raises(UsageError, match=message):
        archive.read_bundle(path)


def test_a_file_that_cannot_be_read_or_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written: Is a directory"):
        results_file.ResultsFile(tmp_path, PROVENANCE)
    with pytest.raises(UsageError, match=r"none\.bundle: cannot be read \(No such file"):
        archive.read_bundle(tmp_path / "none.bundle")


# The whole command where nothing but Python, numpy and a stand-in for the CUDA driver can be imported.

F32, BF16 = Matmul(48, 32, 16), Matmul(16, 8, 24, dtype="bf16")


@pytest.mark.slow
def test_candidates_are_verified_and_timed_and_no_bad_one_takes_another_with_it(tmp_path: Path) -> None:
    trials = (
        *(candidate(number, F32, deed) for number, deed in enumerate(("right", "wrong", "lost", "crash"))),
        *(candidate(4, F32, binary=b"refused"), candidate(5, BF16), candidate(6, BF16, "wrong")),
    )
    done = measure(tmp_path, "--pending", "--bundle", str(written(tmp_path, *trials)), "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["counts"] == {"measured": 3, "failed": 4, "left": 0, "other_chips": 0}
    assert [best["problem"] for best in document["best"]] == [F32.key, BF16.key]
    results = results_file.read_results(tmp_path / "pending.bundle.results.jsonl")
    assert results.provenance.machine.name == "stub GPU 0"
    found = {trial.origin.number: trial for trial in results.trials}
    assert {number for number, trial in found.items() if isinstance(trial.outcome, Measurement)} == {0, 4, 5}
    assert found[4].code == "text"  # the driver did not take its machine code
    failures = {n: trial.outcome for n, trial in found.items() if isinstance(trial.outcome, Failure)}
    stages = {number: failure.stage for number, failure in failures.items()}
    assert stages == {1: Stage.VERIFY, 2: Stage.RUN, 3: Stage.RUN, 6: Stage.VERIFY}
    assert "1 of 1536 elements are wrong; worst at [24, 10]" in failures[1].reason
    assert "CUDA_ERROR_LAUNCH_FAILED" in failures[2].reason
    assert "SIGABRT" in failures[3].reason
    assert found[0].verdict is not None
    assert found[0].verdict.elements == 48 * 32
    assert {final.origin.number for final in results.final_times} == {0, 4}
    assert [floor.problem for floor in results.noises] == [F32]
    assert "no baseline" in done.stderr


@pytest.mark.slow
def test_a_second_call_goes_on_with_what_is_left(tmp_path: Path) -> None:
    path = str(written(tmp_path, candidate(0, F32), candidate(1, F32, "wrong")))
    first = measure(tmp_path, "--bundle", path, "--json")
    second = measure(tmp_path, "--bundle", path, "--json")
    assert json.loads(first.stdout)["counts"]["measured"] == 1
    assert second.returncode == 0
    assert json.loads(second.stdout)["counts"] == {"measured": 0, "failed": 0, "left": 0, "other_chips": 0}
    assert json.loads(second.stdout)["best"] == json.loads(first.stdout)["best"]


@pytest.mark.slow
def test_a_kernel_that_hangs_is_ended_with_the_time_and_stays_pending(tmp_path: Path) -> None:
    others = [candidate(number, Matmul(8 * number, 8, 24, dtype="bf16")) for number in range(1, 6)]
    path = str(written(tmp_path, candidate(0, F32, "hang"), *others))
    done = measure(tmp_path, "--bundle", path, "--seconds", "60", "--json")  # 10 each, and what is left over
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"] == {"measured": 5, "failed": 0, "left": 1, "other_chips": 0}


@pytest.mark.slow
def test_only_wrong_candidates_is_exit_1(tmp_path: Path) -> None:
    done = measure(tmp_path, "--bundle", str(written(tmp_path, candidate(0, F32, "wrong"))))
    assert done.returncode == 1
    assert "0 measured, 1 failed, 0 left" in done.stdout


def test_without_a_driver_one_line_says_what_is_missing_and_the_help_is_shown(tmp_path: Path) -> None:
    done = measure(tmp_path, "--bundle", str(written(tmp_path, candidate(0, F32))), has_driver=False)
    assert (done.returncode, done.stdout) == (1, "")
    error = "error: no CUDA driver: libcuda.so.1 cannot be loaded; it comes with the NVIDIA driver"
    assert done.stderr == f"{error}; nvidia-smi shows what is there\n"
    done = measure(tmp_path, "--help", has_driver=False)
    assert done.returncode == 0
    assert "Example: tuner measure --bundle pending.bundle" in done.stdout


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pending",), "measure: --bundle FILE is missing; a full installation of tuner"),
        (("--bundle", "none"), "none: cannot be read (No such file or directory), expected a bundle"),
        (("--bundle", "x", "--seconds", "0"), "seconds: found 0, allowed more than 0"),
        (("--bundle", "x", "--fast"), "measure: unrecognized arguments: --fast"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_2(tmp_path: Path, options: Any, message: str) -> None:
    done = measure(tmp_path, *options, has_driver=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {message}")
    assert done.stderr.count("\n") == 1


# Which pending trials come first: what promises most, what is predicted to cost least.


def numbers(trials: tuple[PendingTrial, ...]) -> list[int]:
    return [trial.origin.number for trial in trials]


LARGE = Matmul(4096, 4096, 4096)
SLOW = "(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to ..."
HALF = Matmul(4096, 4096, 4096, dtype="f16")


def test_more_promise_comes_first() -> None:
    for problem, better, worse in (
        (HALF, program("mma.sync.aligned", blocks=4096), program("fma.rn.f32", blocks=264)),
        (HALF, program("wgmma.mma_async.sync", blocks=4096), program("fma.rn.f32", blocks=264)),
        (HALF, program("wgmma.mma_async", blocks=4096), program("wgmma.mma_async", blocks=264, note=SLOW)),
        (LARGE, program(blocks=4096), program(blocks=264, spills=4)),
        (LARGE, program(blocks=4096, spills=8), program(blocks=264, spills=400)),
        (LARGE, program(blocks=264), program(blocks=528)),  # whole waves both: larger tiles read less
        (LARGE, program(blocks=528), program(blocks=265)),  # a wave for one block
        (LARGE, program(blocks=1024), program(blocks=4)),  # four blocks leave most of the GPU idle
    ):
        assert untimed.promise(problem, better, 132) < untimed.promise(problem, worse, 132), better
        trials = (pending(0, problem, worse), pending(1, problem, better))
        assert numbers(untimed.best_first(trials)) == [1, 0]


def test_the_order_keeps_problems_together_depends_on_the_gpu_and_is_said_in_words() -> None:
    trials = (pending(0, LARGE), pending(1, PROBLEM), pending(2, LARGE), pending(3, PROBLEM))
    assert numbers(untimed.best_first(trials)) == [0, 2, 1, 3]
    assert numbers(untimed.best_first((pending(5), pending(3)))) == [3, 5]
    facts = untimed.deciding_facts(pending(0, HALF, program("fma.rn.f32", blocks=264, spills=4)), 132)
    assert facts.startswith("tensor cores idle, 4 bytes spilled, 264 blocks, of which 132 x ")
    assert re.search(r" run at once, [\d.]+ bytes read per flop, occupancy \d+%$", facts)
    predicted = untimed.deciding_facts(replace(pending(0), predicted_cycles=1234.4), 132)
    assert " run at once, 1234 predicted cycles" in predicted
    many, few = program(blocks=264), program(blocks=200)
    assert untimed.promise(LARGE, many, 132) < untimed.promise(LARGE, few, 132)
    assert untimed.promise(LARGE, few, 100) < untimed.promise(LARGE, many, 100)


def test_what_is_predicted_to_cost_least_comes_first_then_the_rest() -> None:
    looked_at: list[KernelCode] = []

    def cheaper_than_before(_problem: Problem, program: KernelCode) -> PredictedCycles:
        looked_at.append(program)
        return PredictedCycles(100.0 - len(looked_at), None)

    found = predicted_first((pending(0), pending(1), pending(2)), cheaper_than_before)
    assert numbers(found) == [2, 1, 0]
    assert [trial.predicted_cycles for trial in found] == [97.0, 98.0, 99.0]
    assert len(looked_at) == 3
    trials = (pending(number) for number in range(4))
    assert numbers(predicted_first(trials, cheaper_than_before, looked_at=2)) == [1, 0, 2, 3]
    assert len(looked_at) == 5


def test_what_cannot_be_looked_at_is_not_left_out() -> None:
    found = predicted_first((pending(1), pending(0)), predicted)  # their cubin is none
    assert numbers(found) == [0, 1]
    assert [trial.predicted_cycles for trial in found] == [None, None]


# Files of results.


@pytest.fixture
def results(tmp_path: Path) -> Path:
    lines: list[results_file.Line] = [
        *RESULTS.trials,
        *RESULTS.final_times,
        *RESULTS.noises,
        *RESULTS.baselines,
    ]
    with closing(results_file.ResultsFile(tmp_path / "results.jsonl", PROVENANCE)) as file:
        for line in lines:
            file.append(line)
    return tmp_path / "results.jsonl"


def test_results_come_back_equal_each_line_when_append_returns(results: Path, tmp_path: Path) -> None:
    assert results_file.read_results(results) == RESULTS
    with closing(results_file.ResultsFile(tmp_path / "other.jsonl", PROVENANCE)) as file:
        for number, trial in enumerate(RESULTS.trials, 1):
            file.append(trial)
            assert len(results_file.read_results(tmp_path / "other.jsonl").trials) == number


def test_a_last_line_that_was_cut_off_is_left_out_and_gone_on_with(results: Path) -> None:
    results.write_bytes(results.read_bytes()[:-20])
    assert results_file.read_results(results) == replace(RESULTS, baselines=())
    with closing(results_file.ResultsFile(results, PROVENANCE)) as file:
        file.append(RESULTS.baselines[0])
    assert results_file.read_results(results) == RESULTS


def test_what_is_wrong_is_reported_by_its_line(results: Path) -> None:
    whole = results.read_text()
    for old, new, message in (
        ("tuner-results", "other", r"line 1: found format 'other', allowed 'tuner-results'"),
        ('"version": 5', '"version": 9', r"line 1: found version 9 of tuner-results, allowed 5"),
        ('{"final"', '{"finale"', r"line 4: found 'finale', allowed trial, final, noise, baseline"),
        ('{"final"', "{", r"line 4: is not JSON"),
        ('"median_s": 0.001', '"median_s": 0', r"line 2: found a time of 0 s, allowed 1e-10 s to"),
        (f'"samples_s": {[0.001] * 6}', '"samples_s": []', r"line 2: found 0 samples, allowed 1 to"),
        ('"median_s": 0.001', '"median_s": 1e-30', r"line 2: found a time of 1e-30 s, allowed 1e-10 s to"),
        ('"elements": 128', '"elements": -7', r"line 2: found -7 compared elements, allowed 0 to 128"),
        ('"noise": 0.01', '"noise": -1.0', r"line 5: found a noise of -1, allowed 0 or more"),
        ('"median_s": 0.001', '"median_s": NaN', r"line 2: .*median_s: found nan, allowed a finite number"),
        ('"median_s": 0.001', '"median_s": 1e999', r"median_s: found inf, allowed a finite number"),
        ('{"final"', "[" * 100000, r"line 4: is not JSON"),
        ('mber": 1', 'mber": null', r"line 3: trial\.origin\.number: found nothing, allowed a whole number"),
    ):
        results.write_text(whole.replace(old, new, 1))
        with pytest.raises(UsageError, match=message):
            results_file.read_results(results)


def test_a_time_above_the_peak_of_the_gpu_is_refused(tmp_path: Path) -> None:
    large = result(pending(problem=Matmul(4096, 4096, 4096, "f16")), timed(1e-6))
    with closing(results_file.ResultsFile(tmp_path / "fast", PROVENANCE)) as file:
        file.append(large)
    with pytest.raises(UsageError, match=r"line 2: found a time of 1e-06 s, .* at most .* on such a machine"):
        results_file.read_results(tmp_path / "fast")


def test_an_empty_file_or_one_of_bytes_has_no_results(tmp_path: Path) -> None:
    for content, fault in ((b"", "is empty"), (b"\xff\xfe\n", "is not text")):
        (tmp_path / "wrong").write_bytes(content)
        with pytest.raises(UsageError, match=f"{fault}; it must be a file of tuner-results"):
            results_file.read_results(tmp_path / "wrong")
