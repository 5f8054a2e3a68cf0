import re
from pathlib import Path

import pytest

from tuner.core.candidate import ChosenStrategy
from tuner.core.errors import UsageError
from tuner.core.gpu import chip_of
from tuner.core.machine import gpu_machine
from tuner.core.problem import Matmul, Problem
from tuner.space.file.reading import SpaceFile, load_space_file, parse_space
from tuner.space.scripts.choice import choose, default_script, spaces

TEXT = """
strategies:
  first: {ops: [matmul], dtypes: [f32], knobs: {x: [1, 2]}}
  mine: {ops: [matmul], dtypes: [f32], knobs: {y: [1, 2, 3]}, template: mine.mlir.j2}
"""


@pytest.fixture
def space_file(tmp_path: Path) -> SpaceFile:
    (tmp_path / "space.yaml").write_text(TEXT)
    (tmp_path / "mine.mlir.j2").write_text("module {}")
    return load_space_file(tmp_path / "space.yaml")


def test_no_word_chooses_the_whole_file(space_file: SpaceFile, tmp_path: Path) -> None:
    assert choose((), space_file) == (
        ChosenStrategy("first"),
        ChosenStrategy("mine", tmp_path / "mine.mlir.j2"),
    )


def test_a_name_chooses_one_and_repeating_it_changes_nothing(space_file: SpaceFile) -> None:
    assert choose(("first", "first"), space_file) == (ChosenStrategy("first"),)


def test_a_path_chooses_a_script(space_file: SpaceFile, tmp_path: Path) -> None:
    path = tmp_path / "my schedule.mlir"
    path.write_text("module {}  // @__transform_main")
    (chosen,) = choose((str(path),), space_file)
    assert chosen == ChosenStrategy("my_schedule", path)


def test_a_template_needs_knobs_in_the_file(space_file: SpaceFile, tmp_path: Path) -> None:
    path = tmp_path / "other.mlir.j2"
    path.write_text("module {}")
    with pytest.raises(UsageError, match=r"its knobs are missing in space\.yaml; describe strategies\."):
        choose((str(path),), space_file)


def test_a_word_that_is_neither_is_refused(space_file: SpaceFile) -> None:
    with pytest.raises(UsageError, match=r"strategy: found 'magic', allowed first, mine, or the path of"):
        choose(("magic",), space_file)


def test_a_script_that_is_not_there_is_refused(space_file: SpaceFile, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.mlir: cannot be read .*strategy none"):
        choose((str(tmp_path / "none.mlir"),), space_file)


def test_spaces_are_those_of_the_chosen(space_file: SpaceFile) -> None:
    problem = Matmul(8, 8, 8)
    found = spaces(
        (ChosenStrategy("mine", Path("/x.mlir.j2")),), space_file, problem, "avx2", problem.variables()
    )
    assert [(space.strategy, space.cartesian) for space in found] == [("mine", 3)]


def test_nothing_chosen_can_do_another_dtype() -> None:
    problem = Matmul(8, 8, 8, "f64")
    space_file = parse_space(TEXT, "run 3")
    with pytest.raises(UsageError, match="run 3: no strategy can do matmul 8x8x8 f64"):
        spaces((ChosenStrategy("first"),), space_file, problem, "avx2", problem.variables())


SCHEDULE = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %tile = transform.tune.knob<"tile"> options = [4, 8, 16] -> !transform.param<i64>
    transform.yield
  }
}
"""


@pytest.mark.mlir
def test_the_knobs_of_a_plain_script_are_read_from_it(space_file: SpaceFile, tmp_path: Path) -> None:
    path = tmp_path / "schedule.mlir"
    path.write_text(SCHEDULE)
    problem = Matmul(8, 8, 8)
    chosen = choose((str(path), "first"), space_file)
    found = spaces(chosen, space_file, problem, "avx2", problem.variables())
    assert {space.strategy: space.names for space in found} == {"first": ("x",), "schedule": ("tile",)}
    assert found[1].knobs[0].choices == (4, 8, 16)


@pytest.mark.mlir
def test_a_file_that_is_no_script_is_refused(space_file: SpaceFile, tmp_path: Path) -> None:
    path = tmp_path / "broken.mlir"
    path.write_text("module {  // @__transform_main")
    problem = Matmul(8, 8, 8)
    with pytest.raises(UsageError, match=r"broken\.mlir: "):
        spaces(choose((str(path),), space_file), space_file, problem, "avx2", problem.variables())


PADDED = re.compile(r'"tuner\.pad_views"\(%function\) {sizes = array<i64: ([^>]+)>}')


SIMULATOR = gpu_machine("simulator", chip_of("sm_90"), "PTX simulator")


PROBLEMS = (
    *(Matmul(64, 64, 64), Matmul(3, 5, 7), Matmul(1, 1, 1)),
    *(Matmul(64, 32, 48, "bf16", "tn"), Matmul(8, 8, 8, "f64")),
)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_size_gets_a_script_for_it(problem: Problem) -> None:
    script = default_script(problem, SIMULATOR)
    assert script is not None
    padded = PADDED.findall(script.text)
    assert padded or all(size % 8 == 0 for size in problem.sizes)  # whole tiles
    for sizes in padded:
        assert all(int(one) >= size for one, size in zip(sizes.split(", "), problem.sizes, strict=True))


def test_what_the_file_wants_tried_first_is_taken_where_it_is_allowed() -> None:
    script = default_script(Matmul(256, 256, 64), SIMULATOR)
    assert script is not None
    assert "transform.nvgpu.pipeline_shared_memory_copies" in script.text  # tiled, not the naive strategy


def test_a_problem_of_no_strategy_has_none() -> None:
    from tests.fakes import FakeTarget

    assert default_script(Matmul(8, 8, 8, "f16"), FakeTarget().machine()) is None
