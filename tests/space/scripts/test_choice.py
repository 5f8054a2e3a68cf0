import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fakes import FakeTarget
from tests.mlir.scripts import knob, script
from tests.space.scripts.test_header import PROVENANCE, document, exported
from tests.tuning.fakes import present
from tuner.core.candidate import Candidate, TargetName, Value
from tuner.core.errors import UsageError
from tuner.core.gpu import chip_of
from tuner.core.interfaces import Script
from tuner.core.machine import Machine, gpu_machine, variables_of
from tuner.core.matmul import Matmul
from tuner.core.problem import Problem
from tuner.core.runs import ChosenStrategy
from tuner.gpu.target.compiler import GpuCompiler
from tuner.results.exported_trial import with_knob_options
from tuner.space.feasible_set import FeasibleSet
from tuner.space.file.reading import SpaceFile, load_space_file, parse_space, spaces_for
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.choice import (
    appended_bufferization,
    choose,
    default_script,
    missing_provenance,
    require_exported_for,
    spaces,
    with_seed_scripts,
)
from tuner.space.scripts.header import provenance_file, script_with_header
from tuner.space.scripts.script_text import with_constants
from tuner.space.scripts.strategy import Binder, load_strategy
from tuner.space.search_space import SearchSpace
from tuner.targets.cpu.compiler import CpuCompiler

TEXT = """
strategies:
  first: {ops: [matmul], dtypes: [f32], knobs: {x: [1, 2]}}
  mine: {ops: [matmul], dtypes: [f32], knobs: {y: [1, 2, 3]}, template: mine.mlir.j2}
"""


def test_two_scripts_of_one_name_are_refused(tmp_path: Path) -> None:
    paths = [tmp_path / name / "mm.mlir" for name in ("old", "new")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(script(knob("tile", "[2, 4]")))
    with pytest.raises(UsageError, match=r"^strategy: found two of the name mm, allowed one; rename"):
        choose(tuple(map(str, paths)), load_space_file(default_space_file()))


def test_a_script_among_seeds_is_a_strategy_of_one_configuration(tmp_path: Path) -> None:
    path = tmp_path / "bound.mlir"
    path.write_text(script(knob("tile", "[4]"), knob("order", "[1]")))
    file = load_space_file(default_space_file())
    chosen = choose(("matmul_cpu_dot",), file)
    given = Candidate.of("matmul_cpu_dot", {"x": 1})
    strategies, seeds = with_seed_scripts(chosen, (given, path, path), file)
    bound = Candidate.of("bound", {"tile": 4, "order": 1})
    assert seeds == (given, bound, bound)
    assert strategies == (*chosen, ChosenStrategy("bound", path))
    (space,) = spaces(strategies[1:], file, Matmul(64, 64, 64), "avx512", ())
    assert FeasibleSet.of((space,)).candidate(0) == bound


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        (
            "open.mlir",
            script(knob("tile", "[2, 4]")),
            r"open\.mlir: knob 'tile' is open, a seed has all choices made",
        ),
        (
            "matmul_cpu_dot.mlir",
            script(knob("tile", "[2]")),
            r"there is another strategy of the name matmul_cpu_dot",
        ),
        ("none.txt", "", r"strategy: found .*none\.txt"),
        ("empty.mlir", "", r"found no sequence @__transform_main"),
    ],
)
def test_a_seed_that_is_not_a_script_with_all_choices_made_is_refused(
    tmp_path: Path, name: str, text: str, reason: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    file = load_space_file(default_space_file())
    with pytest.raises(UsageError, match=reason):
        with_seed_scripts(choose(("matmul_cpu_dot",), file), (path,), file)


@pytest.fixture
def space_file(tmp_path: Path) -> SpaceFile:
    (tmp_path / "space.yaml").write_text(TEXT)
    (tmp_path / "mine.mlir.j2").write_text("module {}")
    return load_space_file(tmp_path / "space.yaml")


Chosen = tuple[ChosenStrategy, ...]


def spaces_of(chosen: Chosen, file: SpaceFile, dtype: str = "f32") -> tuple[SearchSpace, ...]:
    problem = Matmul(8, 8, 8, dtype)
    return spaces(chosen, file, problem, "avx2", problem.variables())


def test_no_word_chooses_all_a_name_one_and_a_path_a_script(space_file: SpaceFile, tmp_path: Path) -> None:
    first, mine = ChosenStrategy("first"), ChosenStrategy("mine", tmp_path / "mine.mlir.j2")
    path = tmp_path / "my schedule.mlir"
    path.write_text("module {}  // @__transform_main")
    template = tmp_path / "mine" / "script.mlir.j2"
    template.parent.mkdir()
    template.write_text("module {}")
    assert choose((), space_file) == (first, mine)
    assert choose((str(template),), space_file) == (ChosenStrategy("mine", template),)
    assert choose(("first", "first"), space_file) == (first,)
    assert choose((str(path),), space_file) == (ChosenStrategy("my_schedule", path),)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("{}/other.mlir.j2", r"its knobs are missing in space\.yaml; describe strategies\."),
        ("magic", r"strategy: found 'magic', allowed first, mine, or the path .*; did you mean "),
        ("{}/none.mlir", r"none\.mlir: cannot be read .*strategy none"),
    ],
    ids=["template without knobs", "neither name nor path", "no file"],
)
def test_what_is_none_is_refused(word: str, message: str, space_file: SpaceFile, tmp_path: Path) -> None:
    (tmp_path / "other.mlir.j2").write_text("module {}")
    with pytest.raises(UsageError, match=message):
        choose((word.format(tmp_path),), space_file)


def test_spaces_are_those_of_the_chosen_and_none_can_do_another_dtype(space_file: SpaceFile) -> None:
    (found,) = spaces_of((ChosenStrategy("mine", Path("/x.mlir.j2")),), space_file)
    assert (found.strategy, found.cartesian) == ("mine", 3)
    with pytest.raises(UsageError, match="run 3: no strategy can do matmul 8x8x8 f64"):
        spaces_of((ChosenStrategy("first"),), parse_space(TEXT, "run 3"), "f64")


@pytest.mark.mlir
def test_the_knobs_of_a_plain_script_are_read_from_it(space_file: SpaceFile, tmp_path: Path) -> None:
    path, broken = tmp_path / "schedule.mlir", tmp_path / "broken.mlir"
    path.write_text(script(knob("tile", "[4, 8, 16]")))
    broken.write_text("module {  // @__transform_main")
    found = spaces_of(choose((str(path), "first"), space_file), space_file)
    assert {space.strategy: space.names for space in found} == {"first": ("x",), "schedule": ("tile",)}
    assert found[1].knobs[0].choices == (4, 8, 16)
    with pytest.raises(UsageError, match=r"broken\.mlir:1:30: "):
        spaces_of(choose((str(broken),), space_file), space_file)


PADDED = re.compile(r'"tuner\.pad_views"\(%function\) {sizes = array<i64: ([^>]+)>}')
SIMULATOR = gpu_machine("simulator", chip_of("sm_90"), "PTX simulator")
PROBLEMS = (
    *(Matmul(64, 64, 64), Matmul(3, 5, 7), Matmul(1, 1, 1)),
    *(Matmul(64, 32, 48, "bf16", "tn"), Matmul(8, 8, 8, "f64")),
)


@pytest.mark.drawn(2)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_size_gets_a_script_for_it(problem: Problem) -> None:
    padded = PADDED.findall(present(default_script(problem, SIMULATOR)).text)
    assert padded or all(size % 8 == 0 for size in problem.sizes)  # whole tiles
    for sizes in padded:
        assert all(int(one) >= size for one, size in zip(sizes.split(", "), problem.sizes, strict=True))


def test_what_is_tried_first_is_taken_and_a_problem_of_no_strategy_has_no_script() -> None:
    text = present(default_script(Matmul(256, 256, 64), SIMULATOR)).text
    assert "transform.nvgpu.pipeline_shared_memory_copies" in text  # tiled, not the naive strategy
    assert default_script(Matmul(8, 8, 8, "tf32"), FakeTarget().machine()) is None


# The knobs of exported scripts: their options, opened again, and as constants.

PROBLEM = Matmul(96, 192, 64)
MACHINE = Machine("any", "any", "avx512", True, 2, 2, 49152, 1 << 20, 1 << 25, 1 << 34)
VARIABLES = variables_of(PROBLEM, MACHINE, threads=1)
CHOICES: dict[str, Value] = {"loop_order": "ji", "split": "none", "tile_m": 4, "tile_n": 32, "unroll_k": 4}
CHOICES |= dict.fromkeys(("block_k", "block_m", "block_n", "prefetch", "lanes_along_k"), 0)
CANDIDATE = Candidate.of("matmul_cpu_direct", CHOICES)
CHOICES = {"block_m": 32, "block_n": 128, "block_k": 64, "warps_m": 1, "warps_n": 1, "shared": "swizzle"}
CHOICES |= {"depth": 1, "group": 1, "splits": 1, "split_by": "atomic", "exchange": 1}
CHOICES |= {"prefetch": 0, "pack": 0, "promote": 0}
ON_GPU = Candidate.of("matmul_gpu_mma_sync", CHOICES)


def with_options(
    candidate: Candidate = CANDIDATE, problem: Problem = PROBLEM, machine: Machine = MACHINE
) -> str:
    variables = variables_of(problem, machine, threads=1)
    binder = Binder((load_strategy(candidate.strategy),), problem, variables, 1)
    space_file = load_space_file(default_space_file())
    (space,) = spaces_for(space_file, problem, machine.isa, variables, (candidate.strategy,))
    return with_knob_options(binder.bind(candidate).text, candidate, binder, space)


def test_a_knob_lists_the_values_that_leave_the_rest_of_the_script_as_it_is() -> None:
    text = with_options()
    assert '%tile_m = transform.tune.knob<"tile_m"> = 4 from options = [4, 6, 8, 12] -> !size' in text
    assert '%unroll_k = transform.tune.knob<"unroll_k"> = 4 from options = [1, 2, 4, 8] -> !size' in text
    assert "%tile_m = transform.param.constant 4 : i64 -> !size" in with_constants(text)
    assert "transform.tune" not in with_constants(text)


def test_there_is_a_script_to_reopen() -> None:
    with pytest.raises(UsageError, match="--reopen: there is no script whose knobs it reopens") as caught:
        choose((), load_space_file(default_space_file()), reopens=True)
    assert caught.value.hint == "--strategy FILE.mlir"


def test_every_configuration_of_a_reopened_script_compiles(tmp_path: Path) -> None:
    path = tmp_path / "best.mlir"
    path.write_text(with_options())
    space_file = load_space_file(default_space_file())
    (chosen,) = choose((str(path),), space_file, reopens=True)
    assert ChosenStrategy.parse(chosen.text) == chosen
    (space,) = spaces((chosen,), space_file, PROBLEM, MACHINE.isa, VARIABLES)
    feasible = FeasibleSet.of((space,))
    assert feasible.rows == 4 * 4 * len(next(knob for knob in space.knobs if knob.name == "tile_n").choices)
    binder = Binder((load_strategy(chosen.name, path, reopens=True),), PROBLEM, VARIABLES, 1)
    for row in range(feasible.rows):
        assert CpuCompiler().compile(PROBLEM, binder.bind(feasible.candidate(row))).code


def test_a_reopened_export_keeps_comments_but_for_numbers_that_other_values_make_wrong(
    tmp_path: Path,
) -> None:
    path, provenance = tmp_path / "best.mlir", replace(PROVENANCE, problem=PROBLEM)
    text = with_options()
    path.write_text(script_with_header(text, provenance, (), "best.mlir", "best.source.mlir"))
    binder = Binder((load_strategy("best", path, reopens=True),), PROBLEM, VARIABLES, 1)
    selected: dict[str, Value] = {"tile_m": 8, "tile_n": 32, "unroll_k": 2}
    bound = binder.bind(Candidate.of("best", selected)).text
    assert '%tile_m = transform.tune.knob<"tile_m"> = 8 from options = [4, 6, 8, 12] -> !size' in bound
    assert "// Sizes of tiles and blocks, with those that the other steps allow as well." in bound
    assert "// Register tiles of 4 x 32" in text
    comments = [line for line in bound.splitlines() if "//" in line]
    assert len(comments) > 4
    assert not re.search(r"\d", "".join(comments))
    wanted = dict(CANDIDATE.choices) | selected
    shipped = Binder((load_strategy(CANDIDATE.strategy),), PROBLEM, VARIABLES, 1)
    same = shipped.bind(Candidate.of(CANDIDATE.strategy, wanted))
    compiler = CpuCompiler()
    assert compiler.compile(PROBLEM, Script.of(bound)).code == compiler.compile(PROBLEM, same).code


def test_a_reopened_gpu_script_gives_the_ptx_of_the_strategy(tmp_path: Path) -> None:
    problem, machine = Matmul(128, 128, 128, "i8", "nt"), gpu_machine("simulator", chip_of("sm_80"), "any")
    variables, path = variables_of(problem, machine, threads=1), tmp_path / "best.mlir"
    path.write_text(with_options(ON_GPU, problem, machine))
    assert '%block_n = transform.tune.knob<"block_n"> = 128 from options = [32, 64, 128]' in path.read_text()
    reopened, shipped = (
        Binder((strategy,), problem, variables, 1)
        for strategy in (load_strategy("best", path, reopens=True), load_strategy(ON_GPU.strategy))
    )
    smaller = {"block_m": 32, "block_n": 32}
    script = reopened.bind(Candidate.of("best", {**smaller, "block_k": 64}))
    wanted = shipped.bind(Candidate.of(ON_GPU.strategy, {**dict(ON_GPU.choices), **smaller}))
    compiler = GpuCompiler(chip_of("sm_80"), lambda: None)
    assert compiler.compile(problem, script).code == compiler.compile(problem, wanted).code


def test_a_strategy_without_selected_knobs_cannot_be_reopened(tmp_path: Path) -> None:
    space_file = load_space_file(default_space_file())
    with pytest.raises(UsageError, match="--reopen: matmul_cpu_direct is not a script with selected knobs"):
        choose(("matmul_cpu_direct",), space_file, reopens=True)
    path = tmp_path / "plain.mlir"
    path.write_text(with_constants(with_options()))
    with pytest.raises(UsageError, match="--reopen: plain: no knob of the script has more than one option"):
        choose((str(path),), space_file, reopens=True)


@pytest.mark.parametrize(
    ("problem", "target"),
    [
        (Matmul(512, 256, 64, "bf16", "nt", "bias_relu"), "cpu"),
        (Matmul(512, 256, 128, "bf16", "nn", "bias_relu"), "cpu"),
        (PROVENANCE.problem, "cuda:sm_90"),
    ],
    ids=["size", "layout", "target"],
)
def test_a_script_that_was_exported_for_something_else_is_refused(
    problem: Problem, target: str, tmp_path: Path
) -> None:
    path = tmp_path / "best.mlir"
    path.write_text(exported())
    chosen = (ChosenStrategy("best", path),)
    require_exported_for(chosen, problem, TargetName.parse(target))  # without its provenance nobody knows
    (note,) = missing_provenance(chosen)
    assert note.startswith("best.mlir: found no best.provenance.json next to it: ")
    provenance_file(path).write_text(document())
    assert missing_provenance(chosen) == ()
    aligned = replace(PROVENANCE.problem, align="64", cache="cold")  # how it is measured, not what it is for
    require_exported_for(chosen, aligned, TargetName("cpu"))
    wanted = r"best\.mlir: was exported for matmul 512x256x128 bf16 nt bias_relu on cpu, the run is for"
    with pytest.raises(UsageError, match=wanted):
        require_exported_for(chosen, problem, TargetName.parse(target))


def test_a_script_that_leaves_tensors_is_noted(tmp_path: Path) -> None:
    tiles, whole = (ChosenStrategy(name, tmp_path / f"{name}.mlir") for name in ("tiles", "whole"))
    (tmp_path / "tiles.mlir").write_text("module {}  // does not bufferize")
    (tmp_path / "whole.mlir").write_text("transform.bufferization.one_shot_bufferize %root")
    (note,) = appended_bufferization((tiles, whole, ChosenStrategy("matmul_cpu")))
    assert note == "tiles.mlir leaves tensors: upstream's one-shot-bufferize is appended to it"
