"""The documents of exported programs: their text is that of stored ones, which are read."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tuner.core.dynamic_sizes import LinearSize, SizeRange
from tuner.core.errors import UsageError
from tuner.core.fusions import TensorType
from tuner.core.programs import CompiledFusion
from tuner.models.run.exported import (
    DOCUMENT,
    FORMAT,
    WEIGHTS,
    read_document,
    read_program,
    save_program,
)
from tuner.models.run.exported_sizes import SIZED_FORMAT, SizedCode, SizedImage, read_sizes, save_sizes
from tuner.models.run.fused_code import Fill, FusedCode
from tuner.models.run.sized_types import MASK, NUMBER, SizeArgument, SizedSignature, SizedType

STORED = Path(__file__).with_name("exported_documents")
OF_THE_DAY = ("tuner", "files", "sha256")  # version and hashes
SIZE_N = LinearSize(1, 0)
MATRIX = TensorType((2, 3), "f32")
KNOBS = (("panel", 32), ("order", "ji"))
FUSION = CompiledFusion(
    "contraction", ("linalg.matmul", "math.exp"), "packed", KNOBS, "tuned", "", "f32", 8, 64, True, ("slow",)
)
CODE = FusedCode(
    entry="main",
    arguments=(MATRIX, MATRIX),
    results=(TensorType((), "bf16"),),
    arena_bytes=128,
    fills=(Fill(64, MATRIX, float("-inf")), Fill(0, MATRIX, 0.1)),
    weight_bytes=(100,),
    needs=("avx2",),
    compiler="a fingerprint",
    threads=2,
    asserts=True,
    changed=(1,),
    fusions=(FUSION, replace(FUSION, strategy="", knobs=(), reason="of many ranks", given_up=())),
    object_code=b"\x7fELF\xff",
)
WEIGHT = np.arange(100, dtype=np.uint8)
SIGNATURE = SizedSignature(
    "main",
    (SizedType((SIZE_N, LinearSize(0, 4)), "f32"),),
    (SizedType((LinearSize(2, -1),), "f32"),),
    (0,),
    (0,),
)
ADDED = (SizeArgument(MASK, SIZE_N, (8,), "i1"), SizeArgument(NUMBER, SIZE_N, (), "i64"))


def sized_image() -> SizedImage:
    programs = tuple(SizedCode(size, ADDED, CODE, (WEIGHT,)) for size in (4, 8))
    return SizedImage(SIGNATURE, SizeRange(1, 8), programs)


def written(folder: Path) -> str:
    """Returns the text of an exported document without what changes from version to version."""
    document = json.loads((folder / DOCUMENT).read_text())
    for key in OF_THE_DAY:
        del document[key]
    return json.dumps(document, indent=1) + "\n"


def test_the_document_of_a_program_is_the_stored_one_and_has_all_of_it(tmp_path: Path) -> None:
    save_program(CODE, [WEIGHT], tmp_path)
    assert written(tmp_path) == (STORED / "static.json").read_text()
    assert read_program(tmp_path, read_document(tmp_path, (FORMAT,))).code == CODE


def test_the_document_of_a_dynamic_size_is_the_stored_one_and_has_all_of_it(tmp_path: Path) -> None:
    save_sizes(sized_image(), tmp_path)
    assert written(tmp_path) == (STORED / "sized.json").read_text()
    found = read_sizes(tmp_path, read_document(tmp_path, (SIZED_FORMAT,)))
    assert (found.signature, found.sizes) == (SIGNATURE, SizeRange(1, 8))
    for program, size in zip(found.programs, (4, 8), strict=True):
        assert (program.size, program.added, program.code) == (size, ADDED, CODE)
        np.testing.assert_array_equal(program.weights[0], WEIGHT)


OTHER = np.arange(1, 101, dtype=np.uint8)
TWO = replace(CODE, weight_bytes=(100, 100))


def two_exports(tmp_path: Path) -> tuple[Path, Path]:
    """Returns the folders of a program, and of one that reads a weight of it and has one of its own."""
    first, second = tmp_path / "prompt", tmp_path / "step"
    save_program(TWO, (OTHER, WEIGHT), first)
    save_program(TWO, (WEIGHT, WEIGHT[::-1].copy()), second, first)
    return first, second


def test_a_program_reads_equal_weights_from_the_file_of_another_one(tmp_path: Path) -> None:
    first, second = two_exports(tmp_path)
    assert (second / WEIGHTS).stat().st_size < (first / WEIGHTS).stat().st_size
    both = tmp_path / "moved"
    both.mkdir()
    first.rename(both / first.name)
    folder = second.rename(both / second.name)
    found = read_program(folder, read_document(folder, (FORMAT,))).weights
    np.testing.assert_array_equal(found[0], WEIGHT)
    np.testing.assert_array_equal(found[1], WEIGHT[::-1])
    with pytest.raises(UsageError, match="shares weights itself"):
        save_program(CODE, (WEIGHT,), tmp_path / "third", folder)
    with pytest.raises(UsageError, match="weights_of: found the folder of the export"):
        save_program(CODE, (WEIGHT,), folder, folder)


def test_a_program_is_refused_where_the_one_that_has_its_weights_is_another_or_missing(
    tmp_path: Path,
) -> None:
    first, second = two_exports(tmp_path)
    save_program(TWO, (WEIGHT, OTHER), first)
    document = read_document(second, (FORMAT,))
    with pytest.raises(UsageError, match="prompt: has other weights") as refused:
        read_program(second, document)
    assert "export both again" in str(refused.value.hint)
    shutil.rmtree(first)
    with pytest.raises(UsageError, match=r"prompt: program\.json is missing"):
        read_program(second, document)
