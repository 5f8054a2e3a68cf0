"""``tuner c-library``: files named after the exported program, or by --prefix; errors in one line."""

from pathlib import Path

import pytest

import tuner as api
from tests.cli.conftest import Tuner
from tests.support.architectures import ON_X86_64
from tuner.models.run.fused_program import FusedFunction

pytestmark = [pytest.mark.mlir, ON_X86_64]
TWICE = "func.func @twice(%x: !t) -> !t { %y = arith.addf %x, %x : !t return %y : !t }"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program = api.compile_program(f"!t = tensor<4xf32> {TWICE}", "cpu")
    assert isinstance(program, FusedFunction)
    program.export(tmp_path / "twice")
    return tmp_path / "twice"


def test_a_library_is_named_after_the_program_or_by_its_prefix(tuner: Tuner, folder: Path) -> None:
    out = folder.parent / "out"
    done = tuner.done("c-library", str(folder), "-o", str(out))
    names = ("twice.h", "twice.c", "twice_program.o")
    assert done.err.splitlines() == [f"wrote {out / name}" for name in names]
    assert done.out == ""
    as_json = tuner.done("c-library", str(folder), "-o", str(out), "--prefix", "other", "--json").json
    assert as_json == {"files": [str(out / name.replace("twice", "other")) for name in names]}
    assert "twice: a program that tuner" in (out / "other.h").read_text()


def test_a_folder_without_a_program_and_a_wrong_prefix_are_one_line(tuner: Tuner, folder: Path) -> None:
    done = tuner.done("c-library", str(folder.parent), "-o", str(folder), code=2)
    assert "program.json is missing: it is not a program that tuner has exported" in done.err
    done = tuner.done("c-library", str(folder), "-o", str(folder), "--prefix", "A-B", code=2)
    assert done.err.splitlines()[1] == "hint: --prefix a_b"
