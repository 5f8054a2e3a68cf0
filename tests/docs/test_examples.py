"""Every command of README, pages, Makefile and ``--help`` is understood; those that tune, ask and export run.

They run in the order of their page, on fakes in place of compiler and clock, beside a database of seven runs.
What needs a page's files, a server, another machine or MLIR runs, as printed too, in the tests that
RUN_BY_OTHER_TESTS and PAGES_RUN_BY_OTHER_TESTS name.
"""

import contextlib
import importlib
import itertools
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from tests.cli.conftest import Tuner
from tests.cli.test_main import help_of
from tests.docs.guide import ROOT, blocks_of
from tests.tuning import fakes
from tuner.cli import main
from tuner.cli.main import Commands
from tuner.core.candidate import Value
from tuner.models.library.format_names import library_formats
from tuner.targets.backends import Backends
from tuner.targets.registry import real_backends
from tuner.targets.target import TargetStatus

PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md")),
    # command-line.md repeats the help
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != "command-line.md"),
)
SIMULATOR = TargetStatus("simulator", True, "for tests")
CPU = TargetStatus("cpu", True, "for tests")  # with the processors of other machines
COMMAND = re.compile(r"(?:python -m )?tuner (.*)")
NEXT_EXAMPLE = re.compile(r", (?:or|then in CI:) tuner ")
PROGRAM = "examples/async_matmul.mlir"
TRIALS = (7, 7, 20, 7, 7, 7)  # of runs before run 7: pages name trial 42, an ablation of run 3
KNOBS: dict[str, tuple[Value, ...]] = {"x": (4, 6, 7, 8), "comment": ("a",)}  # of what pages tune and resume
RUN_BY_OTHER_TESTS = {  # command -> the test that runs it
    "fleet": "tests/docs/test_fleet_examples.py",  # with real PostgreSQL; the demo: test_fleet.py
    "c-library": "tests/cli/commands/test_c_library.py",  # of an exported program
    "bundle": "tests/cli/commands/test_bundle.py",  # real kernels, on a stand-in for the GPU
    "measure": "tests/cli/commands/test_bundle.py",
    "judge": "tests/cli/commands/test_judge.py",  # by real compilers
    "run": "tests/docs/test_program_examples.py",
    "lower": "tests/docs/test_program_examples.py",
    "ptx": "tests/docs/test_shell_examples.py",
    "portfolio": "tests/cli/commands/test_campaigns.py",  # of campaigns
    "dashboard": "tests/cli/commands/test_report.py",  # it serves until Ctrl-C
}
PAGES_HERE = (
    *("README.md", "install.md", "first-kernel.md", "tuning.md", "history.md", "own-schedules.md", "gate.md"),
    *("troubleshooting.md", "search.md", "aarch64.md", "make demo", "help"),
)
PAGES_RUN_BY_OTHER_TESTS = {
    "bundle.md",  # by tests/cli/commands/test_bundle.py
    "fleet.md",  # by tests/docs/test_fleet_examples.py
    # by tests/docs/test_guides.py, with the files of the page, its model and the real compiler
    *("extending.md", "new-strategy.md", "your-kernel.md", "model-shapes.md", "c-library.md", "pytorch.md"),
    *("quantized.md", "language-model.md"),  # tests/docs/test_guides.py
}
STANDING_IN = tuple(  # tests that name their examples
    f"tests/cli/commands/test_{name}.py" for name in ("bundle", "report", "fleet", "tune_program")
)


GETTING_STARTED = ("install.md", "first-kernel.md", "first-program.md")  # in the order of the index
OF_CUDA = re.compile(r"--target (?:simulator|cuda)|--to async")  # what needs the extra


def test_the_pages_of_getting_started_install_what_their_commands_need() -> None:
    folder = ROOT / "docs" / "getting-started"
    index = (ROOT / "docs" / "README.md").read_text()
    assert sorted(GETTING_STARTED, key=index.index) == list(GETTING_STARTED)
    has_tuner = False
    has_cuda = False
    for page in GETTING_STARTED:
        for block in blocks_of((folder / page).read_text()):
            for line in block.text.splitlines() if block.language == "sh" else ():
                has_tuner = has_tuner or line.startswith("pip install -e .")
                has_cuda = has_cuda or line.startswith("pip install -e '.[cuda]'")
                assert has_tuner or not line.startswith("tuner "), f"{page}: {line}"
                assert has_cuda or not OF_CUDA.search(line), f"{page}: {line}"


@dataclass(frozen=True)
class Example:
    place: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.place}: {shlex.join(self.words)}"


def examples_of_pages() -> Iterator[Example]:
    for page in PAGES:
        for block in blocks_of(page.read_text()):
            for line in block.text.replace("\\\n", " ").splitlines() if block.language == "sh" else ():
                for command in line.split(" | "):
                    if found := COMMAND.match(command):
                        yield Example(page.name, tuple(shlex.split(found[1], comments=True)))


def examples_of_help(group: Commands = main, names: tuple[str, ...] = ()) -> Iterator[Example]:
    """Yields the commands behind 'Example:' of each command's help."""
    for name, command in group.all_commands().items():
        place = " ".join((*names, name, "--help"))
        (text,) = re.findall(r"Example: tuner (.*)", " ".join((command.help or "").split()))
        for example in NEXT_EXAMPLE.split(text):
            yield Example(place, tuple(shlex.split(example)))
        if isinstance(command, Commands):
            yield from examples_of_help(command, (*names, name))


def examples_of_make() -> Iterator[Example]:
    """Yields the commands that ``make demo`` types."""
    typed = subprocess.run(["make", "-n", "demo"], cwd=ROOT, capture_output=True, text=True, check=True)
    for line in typed.stdout.splitlines():
        program, _, words = line.partition(" ")
        if program.endswith("/tuner"):
            yield Example("make demo", tuple(shlex.split(words)))


# What a distribution adds that a guide builds: tests/docs/test_guides.py, which installs it
OF_ANOTHER_DISTRIBUTION = (
    ("flop", "64", "64", "64"),
    ("tune", "square", "32", "--sampler", "last_first", "--trials", "1"),
    ("export", "--format", "times", "-o", "times"),
    ("tune", "matmul", "16x16x16", "--target", "first_core", "--trials", "1"),
)
EVERY_EXAMPLE = (*examples_of_pages(), *examples_of_help(), *examples_of_make())
EXAMPLES = tuple(each for each in EVERY_EXAMPLE if each.words not in OF_ANOTHER_DISTRIBUTION)


def understood(example: Example) -> None:
    """Parses the words as the command line does, without doing anything. Raises for those that are wrong."""
    command: click.Command = main
    words = list(itertools.takewhile(lambda word: word != "<", example.words))  # no standard input
    while isinstance(command, Commands):
        command = command.all_commands()[words.pop(0)]
    with contextlib.redirect_stdout(None), contextlib.suppress(click.exceptions.Exit):  # of --help
        command.make_context(command.name, words)


def is_run(example: Example) -> bool:
    """Returns whether the test doubles can run it: they cannot compile a candidate of a shipped strategy."""
    return not (
        example.words[0] in RUN_BY_OTHER_TESTS
        or example.words[:2] == ("explain", "matmul")
        or example.words == ("show", "campaign:1")  # tests/cli/commands/test_history.py
        or PROGRAM in example.words  # tests/cli/commands/test_tune_program.py
        or "shapes.yaml" in example.words  # tests/docs/test_guides.py, which writes it
        or {*library_formats(), "mm/library.mlir"} & {*example.words}  # test_export.py, tests/models/library
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_is_understood(example: Example) -> None:
    understood(example)


@pytest.mark.parametrize("words", [("history", "--shap", "8x8x8"), ("histoire",), ("db", "inform")])
def test_a_mistyped_example_is_found(words: tuple[str, ...]) -> None:
    with pytest.raises((click.UsageError, KeyError)):
        understood(Example("here", words))


def small_backends() -> Backends:
    return fakes.backends((*fakes.STATUSES, SIMULATOR, CPU), plan=fakes.plan(KNOBS))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tuner = Tuner(tmp_path_factory.mktemp("examples") / "results.db", fakes.backends())
    for seed, trials in enumerate(TRIALS):
        tuner.done(f"tune matmul 512x512x512 --trials {trials} --sampler random --seed {seed}")
    tuner.backends = small_backends()
    tuner.done("tune matmul 512x512x512 --trials 2 --sampler random")
    return tuner.database


@pytest.mark.drawn(len(PAGES_HERE))
@pytest.mark.parametrize("place", PAGES_HERE)
def test_the_examples_of_a_page_run_one_after_another(place: str, results: Path, here: Path) -> None:
    (here / "examples").symlink_to(ROOT / "examples")
    for name in ("results.db", "laptop.db"):  # the other one is merged
        shutil.copy(results, here / name)
    tuner = Tuner(here / "results.db", small_backends())
    run = [example for example in EXAMPLES if example.place.endswith(place) and is_run(example)]
    assert run
    for example in run:
        done = tuner(*example.words)
        assert done.code == 0, f"{example}\n{done.err}"


def test_a_combination_of_a_shipped_strategy_is_explained(tmp_path: Path) -> None:
    (example,) = (each for each in EXAMPLES if each.words[:2] == ("explain", "matmul"))
    done = Tuner(tmp_path / "results.db", real_backends())(*example.words)
    assert (done.code, "feasible" in done.out) == (0, True)


def test_every_example_is_run_here_or_on_another_machine_that_has_tests() -> None:
    for given, test in RUN_BY_OTHER_TESTS.items():
        assert re.search(rf'"{given}[ "]', (ROOT / test).read_text()), given
    left = {str(each) for each in EXAMPLES if is_run(each) and each.place not in PAGES_RUN_BY_OTHER_TESTS}
    assert {each for each in left if not each.partition(":")[0].endswith(PAGES_HERE)} == set()


def test_examples_of_help_are_lines_to_copy_and_those_of_other_tests_are_printed() -> None:
    modules = (importlib.import_module(test.removesuffix(".py").replace("/", ".")) for test in STANDING_IN)
    run = {words for module in modules for words in module.PRINTED}
    assert run <= {each.words for each in EXAMPLES}
    commands = [command for command, test in RUN_BY_OTHER_TESTS.items() if test in STANDING_IN]
    assert {each.words for each in EXAMPLES if each.words[0] in commands} <= run
    programs = (each for each in EXAMPLES if PROGRAM in each.words)
    assert {each.words for each in programs if each.words[0] not in RUN_BY_OTHER_TESTS} <= run
    assert {each.words for each in EXAMPLES if each.place == "bundle.md"} <= run
    assert {each.words for each in EXAMPLES if each.words[:2] == ("fleet", "demo")} <= run
    examples = [each for each in EXAMPLES if each.place.endswith(" --help")]
    assert len(examples) > len(main.all_commands())
    for example in examples:
        text = (
            help_of(tuple(example.place.split()[:-1])).replace("\\\n", " ").replace("'", "").replace('"', "")
        )
        lines = [" ".join(line.split()).removeprefix("Example: ") for line in text.splitlines()]
        assert f"tuner {' '.join(example.words)}" in lines, example
