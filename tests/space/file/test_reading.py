import re
from pathlib import Path

import pytest

from tuner.core.errors import UsageError
from tuner.core.problem import Matmul
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import SpaceFile, first_rows, load_space_file, parse_space, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.space.search_space import Knob, SearchSpace

TWO = """
strategies:
  packed:
    ops: [matmul]
    dtypes: [f32, f64]
    isas: [avx512, avx2]
    knobs:
      tile_m: [4, 6, 8]
      tile_k: {divisors_of: k, min: 4, max: 64}
    constraints: ["tile_m <= m", "tile_k * input_bytes <= l1_bytes"]
    first: [{tile_m: 6, tile_k: 8}, {tile_m: 8, tile_k: 999}, {tile_m: 6, tile_k: 8}]
  bf16:
    ops: [matmul]
    dtypes: [bf16]
    layouts: [nn]
    template: mine/bf16.mlir
    knobs: {tile_m: [4]}
"""


LIMITS = (("l1_bytes", 32768),)


def spaces(
    m: int, n: int, k: int, dtype: str = "f32", isa: str = "avx512", names: tuple[str, ...] | None = None
) -> tuple[SearchSpace, ...]:
    problem = Matmul(m, n, k, dtype)
    return spaces_for(parse_space(TWO, "f.yaml"), problem, isa, problem.variables() + LIMITS, names)


def test_the_shipped_file_is_valid() -> None:
    assert load_space_file(default_space_file()).strategies


def test_a_strategy_that_can_do_the_problem_is_picked_and_its_knobs_resolved() -> None:
    (space,) = spaces(64, 64, 96)
    assert space.strategy == "packed"
    assert space.knobs == (
        Knob("tile_m", (4, 6, 8)),
        Knob("tile_k", (4, 6, 8, 12, 16, 24, 32, 48)),
    )
    assert ("l1_bytes", 32768) in space.variables


def test_what_cannot_do_the_problem_is_left_out() -> None:
    assert [space.strategy for space in spaces(8, 8, 8, "bf16", "none")] == ["bf16"]


def test_no_strategy_for_a_problem_says_why_per_strategy() -> None:
    message = (
        "f.yaml: no strategy can do matmul 8x8x8 f32 nn none with none: "
        "packed: instruction set: found none, allowed avx512, avx2; bf16: dtype: found f32, allowed bf16"
    )
    with pytest.raises(UsageError, match=re.escape(message)):
        spaces(8, 8, 8, "f32", "none")


def test_named_strategies_alone_are_looked_at() -> None:
    assert [space.strategy for space in spaces(8, 8, 8, names=("packed",))] == ["packed"]
    with pytest.raises(
        UsageError, match=r"no strategy can do matmul .*: bf16: dtype: found f32, allowed bf16$"
    ):
        spaces(8, 8, 8, names=("bf16",))


def test_an_unknown_strategy_is_reported_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"f\.yaml: strategy: found 'pakced', allowed packed, bf16"):
        spaces(8, 8, 8, names=("pakced",))


def test_a_knob_whose_choices_vanish_is_reported() -> None:
    with pytest.raises(
        UsageError,
        match=r"packed\.knobs\.tile_k\.divisors_of: k = 97 has no divisor from 4 to 64; widen",
    ):
        spaces(8, 8, 97)


def test_the_bounds_of_divisors_are_included_and_extra_is_taken_whatever_they_are() -> None:
    text = TWO.replace("min: 4, max: 64", "min: 4, max: 64, extra: [1000, 8]")
    problem = Matmul(8, 8, 256)
    (space,) = spaces_for(parse_space(text, "f"), problem, "avx2", problem.variables() + LIMITS, None)
    assert space.knobs[1].choices == (4, 8, 16, 32, 64, 1000)


def test_divisors_of_a_square_and_of_a_prime_are_all_found() -> None:
    text = TWO.replace("min: 4, max: 64", "min: 1")
    for k, divisors in ((49, (1, 7, 49)), (2**31 - 1, (1, 2**31 - 1)), (1, (1,))):
        problem = Matmul(8, 8, k)
        (space,) = spaces_for(parse_space(text, "f"), problem, "avx2", problem.variables() + LIMITS, None)
        assert space.knobs[1].choices == divisors


@pytest.mark.parametrize("of", ["layout", "k / 2", "m - m", "m * k * 4294967296"])
def test_divisors_of_no_positive_integer_are_refused(of: str) -> None:
    text = TWO.replace("divisors_of: k", f"divisors_of: {of}")
    problem = Matmul(8, 8, 7)
    with pytest.raises(UsageError, match=r"divisors_of: .*allowed an integer 1\.\.2147483647"):
        spaces_for(parse_space(text, "f"), problem, "avx2", problem.variables() + LIMITS, None)


def test_a_knob_may_not_hide_a_variable() -> None:
    problem = Matmul(8, 8, 8)
    with pytest.raises(UsageError, match=r"knobs\.m: 'm' is a variable; choose a name other than m, n, k"):
        spaces_for(
            parse_space(TWO.replace("tile_m", "m"), "f"), problem, "avx2", problem.variables() + LIMITS, None
        )


def test_a_constraint_over_an_unknown_name_is_reported_with_the_known_ones() -> None:
    problem = Matmul(8, 8, 8)
    with pytest.raises(UsageError, match=r"constraints\[1\]: .*unknown name 'l1_bytes', known: .*tile_k"):
        spaces_for(parse_space(TWO, "f"), problem, "avx2", problem.variables(), None)


def test_knobs_of_the_script_join_those_of_the_file() -> None:
    problem = Matmul(8, 8, 8)
    declared = {"packed": (Knob("tile_m", (1, 2)), Knob("unroll", (1, 2)))}
    (space,) = spaces_for(
        parse_space(TWO, "f"), problem, "avx2", problem.variables() + LIMITS, None, declared
    )
    assert space.names == ("tile_m", "tile_k", "unroll")
    assert space.knobs[0].choices == (4, 6, 8)


def test_first_points_are_rows_where_they_are_feasible() -> None:
    file = parse_space(TWO, "f")
    feasible = FeasibleSet.of(spaces(64, 64, 64))
    (row,) = first_rows(file, feasible)
    assert feasible.candidate(row) == file.strategies[0].first[0]


def test_a_script_path_is_relative_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(TWO)
    file = load_space_file(path)
    assert file.text == TWO
    assert file.script("bf16") == tmp_path / "mine" / "bf16.mlir"
    assert file.script("packed") is None


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.yaml: cannot be read \(No such file or directory\)"):
        load_space_file(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match=r"cannot be read \(Is a directory\)"):
        load_space_file(tmp_path)


def test_a_file_that_is_no_text_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"ab\xff")
    with pytest.raises(UsageError, match="byte 2 is not UTF-8"):
        load_space_file(path)


def test_a_file_far_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"#" * 4_000_001)
    with pytest.raises(UsageError, match="found more than 4000000 bytes"):
        load_space_file(path)


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
