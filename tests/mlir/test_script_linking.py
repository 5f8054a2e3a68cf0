"""Scripts of several files or modules: sequences that one declares come from another."""

import itertools
from pathlib import Path

import pytest

from tests.texts import text_beside
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, UsageError
from tuner.core.interfaces import Script
from tuner.core.matmul import Matmul
from tuner.core.runs import ChosenStrategy
from tuner.mlir import transform
from tuner.mlir.bindings import ir
from tuner.space.file.reading import load_space_file
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.choice import choose
from tuner.space.scripts.schedule import Schedule
from tuner.space.scripts.strategy import linked_text, load_chosen
from tuner.targets.cpu.compiler import CpuCompiler

pytestmark = pytest.mark.mlir
MAIN, LIBRARY, PAYLOAD, KNOBS, TILED = (
    text_beside(__file__, name) for name in ("MAIN", "LIBRARY", "PAYLOAD", "KNOBS", "TILED")
)


def applied(script: str) -> str:
    """Returns the payload after a script."""
    with transform.new_context(), ir.Location.unknown():
        payload = transform.parse(PAYLOAD, "payload")
        transform.apply_script(payload, transform.parse(script, "script"))
        return str(payload)


def file_of(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_script_gets_what_it_declares_from_files_and_private_names_stay_apart(tmp_path: Path) -> None:
    library = file_of(tmp_path, "library.mlir", LIBRARY)
    own = file_of(tmp_path, "main.mlir", MAIN)
    for text in (
        linked_text(MAIN, "main.mlir", (library,)),
        linked_text(MAIN, "main.mlir", (library, tmp_path / "." / "library.mlir")),
        linked_text(LIBRARY, "library.mlir", (own,)),
    ):
        found = applied(text)
        assert "linalg.matmul {of_main}" in found
        assert "linalg.fill {of_main}" not in found
    assert linked_text(MAIN, "main.mlir", ()) == MAIN


def test_modules_of_one_file_are_linked_in_any_order() -> None:
    for texts in itertools.permutations((MAIN, LIBRARY)):
        assert "linalg.matmul {of_main}" in applied("".join(texts))


def test_what_no_file_defines_names_the_option() -> None:
    with pytest.raises(CandidateError, match=r"@is_product; --library FILE names a script that defines it"):
        applied(MAIN)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            LIBRARY.replace("private @helper", "@note").replace("@helper", "@note"),
            "sequence @note: other.mlir defines it, and so does",
        ),
        (
            LIBRARY.replace("-> !transform.any_op {", "{").replace("yield %op : !transform.any_op", "yield"),
            r"sequence @is_product: is .* -> !transform\.any_op in the script, but .* in other",
        ),
        (MAIN, "sequence @note: other.mlir defines it"),
        ("module { bogus }", "other.mlir:1:10: "),
        (MAIN + LIBRARY, "sequence @note: other.mlir defines it"),
    ],
)
def test_files_that_do_not_fit_are_refused_with_the_sequence(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        linked_text(MAIN, "main.mlir", (file_of(tmp_path, "other.mlir", text),))


def test_a_strategy_with_libraries_is_stored_with_them_and_binds_to_self_contained_scripts(
    tmp_path: Path,
) -> None:
    script = file_of(tmp_path, "knobs.mlir", KNOBS)
    library = file_of(tmp_path, "tiled.mlir", TILED)
    space_file = load_space_file(default_space_file())
    (chosen,) = choose((str(script),), space_file, libraries=(library,))
    assert ChosenStrategy.parse(chosen.text) == chosen
    schedule = Schedule(load_chosen(chosen).text)
    assert {knob.name: knob.choices for knob in schedule.knobs} == {"tm": (4, 8), "tn": (16, 32)}
    bound = schedule.select(Candidate.of("knobs", {"tm": 8, "tn": 16}))
    library.unlink()
    assert CpuCompiler().compile(Matmul(64, 64, 64), Script.of(bound)).code.text
    with pytest.raises(UsageError, match=r"--library: there is no script that uses it"):
        choose((), space_file, libraries=(library,))
    with pytest.raises(UsageError, match=r"tiled\.mlir: .*MLIR text of a library"):
        choose((str(script),), space_file, libraries=(library,))
