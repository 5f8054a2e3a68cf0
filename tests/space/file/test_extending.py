from pathlib import Path

import pytest

from tuner.core.errors import UsageError
from tuner.space.file.reading import SpaceFile, load_space_file, parse_space
from tuner.space.file.yaml import default_space_file

SHIPPED = load_space_file(default_space_file())
MINE = """
  mine:
    ops: [matmul]
    dtypes: [f32]
    template: mine.mlir.j2
    knobs: {tile_m: [4]}
"""


def read(text: str, folder: Path) -> SpaceFile:
    path = folder / "mine.yaml"
    path.write_text(text)
    return load_space_file(path)


def test_a_new_strategy_comes_before_the_shipped_ones(tmp_path: Path) -> None:
    file = read(f"extends: default\nstrategies:{MINE}", tmp_path)
    assert [entry.name for entry in file.strategies] == [
        "mine",
        *(entry.name for entry in SHIPPED.strategies),
    ]
    assert file.script("mine") == tmp_path / "mine.mlir.j2"
    shipped = file.strategy("matmul_gpu_naive")
    assert [knob.choices for knob in shipped.knobs] == [
        knob.choices for knob in SHIPPED.strategy("matmul_gpu_naive").knobs
    ]


@pytest.mark.slow
def test_of_a_known_strategy_what_is_given_takes_the_place_of_what_is_shipped(tmp_path: Path) -> None:
    change = "  matmul_cpu_packed: {dtypes: [f64], knobs: {tile_m: [2, 3]}}\n"
    changed = read(f"extends: default\nstrategies:\n{change}", tmp_path).strategy("matmul_cpu_packed")
    shipped = SHIPPED.strategy("matmul_cpu_packed")
    knobs = {knob.name: knob.choices for knob in shipped.knobs}
    assert changed.dtypes == ("f64",)
    assert {knob.name: knob.choices for knob in changed.knobs} == knobs | {"tile_m": (2, 3)}
    assert [each.text for each in changed.constraints] == [each.text for each in shipped.constraints]
    assert changed.first == shipped.first


@pytest.mark.slow
def test_derived_names_are_added_to_the_shipped_ones_or_take_their_place(tmp_path: Path) -> None:
    change = "  matmul_gpu_simt: {let: {blocks_m: m // block_m, mine: 2 * blocks_m}}\n"
    changed = read(f"extends: default\nstrategies:\n{change}", tmp_path).strategy("matmul_gpu_simt")
    shipped = {each.name: each.expression.text for each in SHIPPED.strategy("matmul_gpu_simt").let}
    assert {each.name: each.expression.text for each in changed.let} == shipped | {
        "blocks_m": "m // block_m",
        "mine": "2 * blocks_m",
    }
    (limit,) = (each for each in changed.constraints if each.text == "blocks_m <= 65535")
    assert limit.full_text == "m // block_m <= 65535"


@pytest.mark.slow
def test_the_text_of_a_run_is_whole_and_reads_back_without_the_shipped_file(tmp_path: Path) -> None:
    file = read(f"extends: default\nstrategies:{MINE}", tmp_path)
    assert "extends" not in file.text
    assert parse_space(file.text, file.name, file.folder) == file


def test_a_file_that_extends_nothing_is_kept_as_it_was_written(tmp_path: Path) -> None:
    text = f"strategies:  # mine alone{MINE}"
    assert read(text, tmp_path).text == text


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "extends: other.yaml\nstrategies: {}",
            r"^mine\.yaml: extends: found 'other\.yaml', allowed default$",
        ),
        ("extends: default", r"^mine\.yaml: strategies: is missing; it has no default$"),
        ("extends: default\nstrategies: 7", r"^mine\.yaml: strategies: found 7, allowed a mapping"),
        (
            "extends: default\nstrategies: {matmul_cpu_dot: 7}",
            r"strategies\.matmul_cpu_dot: found 7, allowed",
        ),
        (
            "extends: default\nstrategies: {matmul_cpu_dot: {knobs: 7}}",
            r"strategies\.matmul_cpu_dot\.knobs: found 7, allowed a mapping",
        ),
        (
            "extends: default\nstrategies: {matmul_cpu_dot: {let: 7}}",
            r"strategies\.matmul_cpu_dot\.let: found 7, allowed a mapping",
        ),
        (
            "extends: default\nstrategies: {matmul_cpu_dott: {knobs: {tile_m: [2]}}}",
            r"strategies: found 'matmul_cpu_dott', .*, or a new one with ops; .* matmul_cpu_dot\?$",
        ),
        (
            "extends: default\nstrategies: {matmul_cpu_packed: {knobs: {tile_mm: [2]}}}",
            r"strategies\.matmul_cpu_packed\.knobs: found 'tile_mm', .*; did you mean tile_m\?$",
        ),
    ],
)
def test_what_is_wrong_is_reported_by_its_key(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        read(text, tmp_path)
