"""``tuner lower`` in child processes as for users: text, files, documents, and one line for errors."""

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.texts import text_beside
from tuner.targets.registry import real_backends

pytestmark = pytest.mark.mlir

pytest.importorskip("tuner.programs.lowering.device")

OWN_STREAM = str(Path(__file__).parents[3] / "examples" / "gpux_own_streams.mlir")
COPY = text_beside(__file__, "COPY")


@pytest.fixture
def run(tmp_path: Path) -> Tuner:
    return Tuner(tmp_path / "results.db", real_backends())


@pytest.mark.slow
def test_the_text_and_nothing_else_is_printed(run: Tuner) -> None:
    done = run("lower", "-", "--to", "device-memory", stdin=COPY)
    assert done.code == 0, done.err
    assert done.out.startswith("module")
    assert done.out.endswith("}\n")
    assert "gpu.memcpy" in done.out
    assert done.err == ""


@pytest.mark.slow
def test_a_file_and_a_document(run: Tuner, tmp_path: Path) -> None:
    file = tmp_path / "out.ptx"
    done = run("lower", "-", "--to", "ptx", "--chip", "sm_80", "-o", str(file), "--json", stdin=COPY)
    assert done.code == 0, done.err
    assert done.json == {"entry": "f", "chip": "sm_80", "to": "ptx", "file": str(file)}
    assert ".target sm_80" in file.read_text()


@pytest.mark.slow
def test_a_document_holds_the_text(run: Tuner) -> None:
    done = run("lower", "-", "--to", "gpux", "--json", stdin=COPY)
    assert done.code == 0, done.err
    assert '"gpux.create_stream"' in done.json["text"]
    assert (done.json["to"], done.json["chip"]) == ("gpux", "sm_90")


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            ("--to", "async", "--form", "sync"),
            "--form cannot be combined with --to async, only with llvm, ptx",
        ),
        (("--to", "llvm", "--form", "graph"), "form: found 'graph', allowed streams, tokens, sync"),
        (("--to", "nvvm"), "'nvvm' is not one of"),
        (("--to", "ptx", "--chip", "sm_1"), "chip: found 'sm_1', allowed sm_80"),
        (("--to", "async", "--entry", "g"), "entry: found 'g', allowed f"),
    ],
)
def test_a_wrong_word_is_one_line(run: Tuner, options: tuple[str, ...], line: str) -> None:
    done = run("lower", "-", *options, stdin=COPY)
    assert done.code == 2
    assert line in done.err
    assert re.fullmatch(r"error: .+\n(hint: .+\n)?", done.err)
    assert done.out == ""


@pytest.mark.slow
def test_a_form_without_meaning_is_refused(run: Tuner) -> None:
    assert "form='tokens' cannot be combined with a program that names its streams (GPUX)" in run.refused(
        "lower", OWN_STREAM, "--to", "llvm", "--form", "tokens"
    )


@pytest.mark.slow
def test_a_place_that_cannot_be_written_is_named(run: Tuner, tmp_path: Path) -> None:
    assert "out.mlir: cannot be written: No such file or directory" in run.refused(
        "lower", "-", "--to", "device-memory", "-o", str(tmp_path / "none" / "out.mlir"), stdin=COPY
    )
