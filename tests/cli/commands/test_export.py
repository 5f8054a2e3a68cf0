import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.db.values import time_again
from tests.tuning import fakes
from tuner.db.store import Store
from tuner.space.scripts.header import BaselineMedian, read_provenance


def best(tuner: Tuner) -> int:
    """Returns the trial that tune told to be the best."""
    found = re.search(r"best +trial (\d+)", tuner("show", "run:1").out)
    assert found is not None
    return int(found[1])


def test_the_best_of_a_shape_is_the_one_that_tune_told(tuned: Tuner) -> None:
    script = tuned("export", "matmul", "8x8x8")
    assert script.code == 0
    provenance = read_provenance(script.out, "stdout")
    assert provenance.trial == best(tuned)
    assert dict(provenance.knobs)["x"] == 7
    assert provenance.baseline == BaselineMedian("FakeBLAS 1.0", fakes.BASELINE_S)


def test_a_script_has_its_source_next_to_it(tuned: Tuner, tmp_path: Path) -> None:
    path = tmp_path / "out.mlir"
    done = tuned("export", "matmul", "8x8x8", "-o", str(path))
    assert (done.code, done.out) == (0, "")
    *wrote, given = done.err.splitlines()
    assert (
        given
        == f"note: the best is trial {best(tuned)} of run 1: 1 ms (95 % interval 1 ms .. 1 ms); reliable"
    )
    assert wrote == [f"wrote {tmp_path / 'out.source.mlir'}", f"wrote {path}"]
    assert (tmp_path / "out.source.mlir").read_text() == "// source of 8x8x8\n"
    assert "// payload   out.source.mlir" in path.read_text()


def test_source_and_payload(tuned: Tuner, tmp_path: Path) -> None:
    assert tuned("export", "matmul", "8x8x8", "--format", "source").out == "// source of 8x8x8\n"
    path = tmp_path / "payload.mlir"
    assert tuned("export", "matmul", "8x8x8", "--format", "payload", "-o", str(path)).code == 0
    assert path.read_text() == "// applied\n// source of 8x8x8\n"
    assert list(tmp_path.glob("*.source*")) == []


def test_json_is_the_trial(tuned: Tuner) -> None:
    by_flag = tuned("export", "--trial", "3", "--json").json
    assert tuned("export", "--trial", "3", "--format", "json").json == by_flag
    assert by_flag["trial"] == 3


@pytest.mark.parametrize("form", ["script", "source", "payload"])
def test_json_holds_the_text_of_the_format(tuned: Tuner, form: str) -> None:
    phrase = ("export", "--trial", "3", "--format", form)
    text = tuned(*phrase).out
    assert form != "script" or read_provenance(text, "stdout").trial == 3
    assert tuned(*phrase, "--json").json == {"trial": 3, "format": form, "text": text}


def test_json_names_the_files_written(tuned: Tuner, tmp_path: Path) -> None:
    script, source = tmp_path / "out.mlir", tmp_path / "out.source.mlir"
    phrase = ("export", "--trial", "3", "--json", "-o", str(script))
    done = tuned(*phrase, "--format", "script")
    assert done.json == {"trial": 3, "format": "script", "files": [str(source), str(script)]}
    assert read_provenance(script.read_text(), "out.mlir").trial == 3
    assert tuned(*phrase).json == {"trial": 3, "format": "json", "files": [str(script)]}
    assert json.loads(script.read_text())["trial"] == 3


@pytest.mark.parametrize(
    ("phrase", "message"),
    [
        ((), "export: the problem is missing\nhint: give matmul 512x512x512, or --trial ID\n"),
        (("matmul",), "export: the problem is missing\nhint: give matmul 512x512x512, or --trial ID\n"),
        (
            ("matmul", "9x9x9"),
            "9x9x9 f32 nn none fake: nothing measured yet\nhint: tuner tune matmul 9x9x9",
        ),
        (
            ("matmul", "8x8x8", "--machine", "mine"),
            "nothing measured on 'mine', only on fake\nhint: choose with --machine, in Python with machine=",
        ),
        (("matmul", "8x8x8", "--threads", "4"), "nothing measured yet"),
        (("--trial", "99"), "trial: found 99, allowed 1 to 20"),
        (("matmul", "8x8x8", "-o", "/proc/none/best.mlir"), "/proc/none/best.source.mlir: cannot be written"),
        (("matmul", "8x8x8", "-o", "/dev/full"), "/dev/full: cannot be written: No space left on device"),
        (("matmul", "8x8x8", "--format", "ptx"), "trial 15: has no GPU program: it was not compiled"),
        (("matmul", "8x8x8", "--format", "sass"), "'sass' is not one of"),
    ],
)
def test_what_cannot_be_exported_is_one_line(tuned: Tuner, phrase: tuple[str, ...], message: str) -> None:
    assert message in tuned.refused("export", *phrase)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Tuner:
    """Gives a database whose fastest script calls an op of our own."""
    backends = fakes.backends(bind=lambda *_: fakes.bind_with_custom_op)
    tuner = Tuner(tmp_path_factory.mktemp("own") / "results.db", backends)
    done = tuner("tune", "matmul", "8x8x8", "--sampler", "exhaustive", "--trials", "20")
    assert "portable  no: its script calls tuner.fast; the best one without:\n" in done.out
    return tuner


def test_the_best_for_stock_mlir_opt_is_exported_with_its_slowdown(own: Tuner) -> None:
    winner, stock = own("export", "matmul", "8x8x8"), own("export", "matmul", "8x8x8", "--stock")
    assert "tuner.fast" in winner.out
    assert "tuner.fast" not in stock.out
    assert "// apply     mlir-opt " in stock.out
    trial = read_provenance(stock.out, "stdout").trial
    (line,) = stock.err.splitlines()
    assert line.startswith(
        f"note: trial {trial}, the best that stock mlir-opt runs, takes +100.0% time (95 % interval "
    )
    assert own("export", "--trial", str(best(own)), "--stock").out == stock.out


def test_the_command_that_tune_prints_for_stock_mlir_opt_runs(own: Tuner, tmp_path: Path) -> None:
    (phrase,) = re.findall(r"tuner (export --trial \d+ --stock -o) stock\.mlir", own("show", "run:1").out)
    assert own(*phrase.split(), str(tmp_path / "stock.mlir")).code == 0
    assert "tuner.fast" not in (tmp_path / "stock.mlir").read_text()


def test_a_portable_winner_is_reported_to_be_one(tuned: Tuner) -> None:
    assert "portable  yes: stock mlir-opt runs its script" in tuned("show", "run:1").out
    done = tuned("export", "matmul", "8x8x8", "--stock")
    assert done.err == f"note: trial {best(tuned)}: stock mlir-opt runs its script as it is\n"
    assert done.out == tuned("export", "matmul", "8x8x8").out


def test_a_failed_trial_has_no_time_to_export(tuner: Tuner) -> None:
    tuner.backends = fakes.backends(bind=lambda *_: fakes.failing_bind)
    tuner("tune", "matmul", "8x8x8", "--trials", "1")
    assert "trial 1: failed, and has no time" in tuner("export", "--trial", "1").err
    assert tuner("export", "--trial", "1", "--format", "source").code == 0


def test_the_export_of_a_shape_says_that_its_time_is_unreliable(tuned: Tuner) -> None:
    trial, why = best(tuned), "two timings of the same code differ by 30%"
    with Store.open(str(tuned.database)) as store:
        stored = store.trial(trial)
        assert stored.final is not None
        store.propose(1, 20, 0, stored.record.candidate)  # so the round is of more trials, and answers
        time_again(store, 1, (trial, stored.final), noise=0.3, unreliable=why)
    said = tuned("export", "matmul", "8x8x8", "--format", "source").err
    time = "1 ms (95 % interval 1 ms .. 1 ms)"
    assert said == f"note: the best is trial {trial} of run 1: {time}; unreliable: {why}\n"
    assert tuned("export", "--trial", str(trial), "--format", "source").err == ""
