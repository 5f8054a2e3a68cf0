"""``tuner export --format library``, ``apply --strict`` and ``library merge``, with real compilers."""

from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.library.values import product
from tuner.core.problem import Matmul
from tuner.library.library import read_document, write_library
from tuner.targets.registry import real_backends

pytestmark = [pytest.mark.mlir, pytest.mark.slow]

PROBLEM, OTHER = Matmul(64, 96, 33), Matmul(32, 64, 48)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Tuner:
    """Gives a database with a real run of each problem, of a strategy whose scripts stock mlir-opt runs."""
    tuner = Tuner(tmp_path_factory.mktemp("real") / "results.db", real_backends())
    for problem in (PROBLEM, OTHER):
        phrase = ("--strategy", "matmul_cpu_direct", "--sampler", "random", "--trials", "1", "--workers", "1")
        done = tuner("tune", "matmul", problem.shape, *phrase)
        assert done.code == 0, done.err
    return tuner


@pytest.fixture(scope="module")
def exported(real: Tuner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Gives the file of a library of the second run."""
    folder = tmp_path_factory.mktemp("library")
    done = real("export", "--format", "library", "--run", "2", "-o", str(folder), "--json")
    assert done.code == 0, done.err
    assert done.json["files"] == [str(folder / "library.mlir")]
    assert [entry["problem"]["shape"] for entry in done.json["entries"]] == [[32, 64, 48]]
    assert done.err.splitlines()[-1].startswith("exported 1 problem")
    return folder / "library.mlir"


def write(folder: Path, *texts: str) -> str:
    path = folder / "program.mlir"
    path.write_text("".join(texts))
    return str(path)


def test_a_library_has_the_problems_that_fit_the_options(real: Tuner, tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("kept")
    done = real(
        "export", "matmul", "64x96x33", "--format", "library", "-o", str(tmp_path), "--for", "mlir-22"
    )
    assert done.code == 0, done.err
    text = (tmp_path / "library.mlir").read_text()
    assert [entry.problem for entry in read_document(text, "library.mlir").entries] == [PROBLEM]
    assert (tmp_path / "kept.txt").read_text() == "kept"


def test_apply_lists_each_contraction(real: Tuner, exported: Path, tmp_path: Path) -> None:
    program = write(tmp_path, product("known", OTHER).text, product("unknown", PROBLEM).text)
    done = real("apply", str(exported), program)
    assert done.code == 0
    assert done.err.splitlines() == [
        "@known: linalg.matmul 32x64x48 f32 nn: matmul_32x64x48_f32_nn",
        "@unknown: linalg.matmul 64x96x33 f32 nn: no entry: no entry has the sizes 64x96x33",
        "library.mlir: took 1 of 2 contractions",
    ]
    assert "call @tuned_matmul_32x64x48_f32_nn" in done.out
    strict = real("apply", str(exported), program, "--strict", "--json")
    assert strict.code == 1
    assert strict.json["taken"] == 1
    assert [each["entry"] for each in strict.json["contractions"]] == ["matmul_32x64x48_f32_nn", ""]


def test_strict_is_content_where_each_contraction_has_an_entry(
    real: Tuner, exported: Path, tmp_path: Path
) -> None:
    done = real("apply", str(exported), write(tmp_path, product("known", OTHER).text), "--strict")
    assert done.code == 0
    assert done.err.splitlines()[-1] == "library.mlir: took 1 of 1 contractions"


def test_a_library_that_took_nothing_says_so(real: Tuner, exported: Path, tmp_path: Path) -> None:
    done = real("apply", str(exported), write(tmp_path, product("unknown", PROBLEM).text))
    assert done.code == 0
    assert done.err.splitlines()[-1] == "library.mlir: took 0 of 1 contractions"


def test_strict_needs_a_library(real: Tuner, tmp_path: Path) -> None:
    script, program = tmp_path / "best.mlir", write(tmp_path, product("known", OTHER).text)
    assert real("export", "matmul", OTHER.shape, "--stock", "-o", str(script)).code == 0
    message = f"error: --strict: {script} is not a library\nhint: tuner export --format library -o DIR\n"
    assert real.refused("apply", str(script), program, "--strict") == message


def test_an_exported_script_names_what_it_is_for_and_what_the_payload_has(
    real: Tuner, tmp_path: Path
) -> None:
    script = tmp_path / "best.mlir"
    assert real("export", "matmul", OTHER.shape, "--stock", "-o", str(script)).code == 0
    transposed = Matmul(32, 64, 48, layout="nt")
    done = real("apply", str(script), write(tmp_path, product("f", transposed, on_buffers=True).text))
    assert done.code == 1
    assert done.err == (
        "error: best.mlir: is for linalg.matmul 32x64x48 f32 nn, "
        "the payload has linalg.matmul 32x64x48 f32 nt in @f\n"
        "hint: tuner export --format library fits any number of contractions\n"
    )
    fits = real("apply", str(script), write(tmp_path, product("f", OTHER, on_buffers=True).text))
    assert fits.code == 0
    assert "vector." in fits.out


def test_libraries_are_merged(real: Tuner, exported: Path, tmp_path: Path) -> None:
    other, output = tmp_path / "other", tmp_path / "merged.mlir"
    assert real("export", "--format", "library", "--run", "1", "-o", str(other)).code == 0
    done = real("library", "merge", str(exported), str(other / "library.mlir"), "-o", str(output), "--json")
    assert done.json == {"files": [str(output)], "entries": 2, "compared": []}
    assert done.err == f"wrote {output}: 2 entries\n"
    program = write(tmp_path, product("one", OTHER).text, product("two", PROBLEM).text)
    assert real("apply", str(output), program, "--strict").code == 0


@pytest.mark.parametrize(
    ("phrase", "message"),
    [
        (("--format", "library"), "--format library: writes several files into a folder\nhint: -o DIR"),
        (
            ("--format", "library", "--trial", "1", "-o", "x"),
            "--trial cannot be combined with --format library",
        ),
        (("--run", "1"), "--run needs a format of several problems\nhint: --trial ID exports one trial"),
        (("matmul", "8x8x8", "--for", "mlir-22"), "--for needs a format of several problems"),
        (
            ("--format", "library", "--dtype", "f64", "-o", "x"),
            "export: nothing measured that fits the options",
        ),
        (("--campaign", "1"), "--campaign needs a format of several problems"),
        (("--format", "library", "--campaign", "1", "-o", "x"), "campaign: found 1, allowed none"),
        (("--format", "library", "--run", "9", "-o", "x"), "run: found 9, allowed 1 to 2"),
        (
            ("--format", "library", "--target", "cuda", "-o", "x"),
            "a library has schedules for a CPU, not for cud",
        ),
        (("--format", "library", "--for", "mlir-21", "-o", "x"), "'mlir-21' is not one of"),
    ],
)
def test_what_cannot_be_exported_is_one_line(real: Tuner, phrase: tuple[str, ...], message: str) -> None:
    assert message in real.refused("export", *phrase)


def test_a_file_in_place_of_the_folder_is_refused(real: Tuner, exported: Path) -> None:
    phrase = ("export", "--format", "library", "--run", "2", "-o", str(exported))
    done = real(*phrase)
    assert done.code == 2
    assert "library.mlir: is a file, not a folder to write into" in done.err


def test_only_libraries_are_merged(real: Tuner, tmp_path: Path) -> None:
    path = tmp_path / "best.mlir"
    path.write_text("module {\n}\n")
    message = "best.mlir: is not a library that 'tuner export --format library' wrote"
    assert message in real.refused("library", "merge", str(path), str(path), "-o", str(tmp_path / "m.mlir"))


def test_the_writer_of_the_format_is_the_one_that_is_listed() -> None:
    from tuner.library.library import FORMATS

    assert FORMATS["library"]() is write_library
