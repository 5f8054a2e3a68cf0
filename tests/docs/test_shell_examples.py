"""Shell lines of pages that are not commands of ours: installing, ``make``, ``python -m``, mlir-opt, files.

What fetches packages or takes minutes is not run: the tool itself reads its words, and what they name exists.
"""

import os
import re
import shlex
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.cli.real import brief_remeasurement, real_candidates
from tests.docs.guide import ROOT, blocks_of
from tests.docs.test_examples import EXAMPLES, PAGES, Example, understood
from tests.support.llvm_tools import MLIR_OPT, NEEDS_MLIR_OPT
from tests.texts import text_beside

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
NO_OPTION = "--no-such-option"
THIS = Path(__file__).name
SHELL = {  # how a line of a page's shell block begins -> the test that runs it
    r"(python -m )?tuner ": "test_examples.py",
    r"mlir-opt-22 |cd wheels |for file in .* split ": THIS,
    r"openssl ": "test_fleet_examples.py",
    r"python (use|make|layer|use_layer|mlp)\.py|ls mm|ls small": "test_guides.py",
    r"cc -O2 |\./(use|any)|mm/check": "test_guides.py",
    r"python examples/": "test_python_examples.py",
    r"python -m pytest .*(near_best|test_target_kinds)": "test_guides.py",
    r"python -m pytest .*my_strategy": "test_guides.py",
    r"python3 -m venv |\. |pip |make |python -m benchmarks|PYTHONPATH=|for file in .* unzip ": THIS,
    r"\.venv/bin/python -m pytest tests/": THIS,
    r"docker ": "../test_github_files.py",  # compared with the image's file: few machines have docker
}
MAKE = re.compile(r"(?<=[`\n])make [\w-]+(?: [A-Z]+=\w+)*(?=[`\n ])")
PIP = re.compile(r"(?<=[`\n/])pip (?:install|download) [^`\n#]+")
MODULE = re.compile(r"python[\d.]* -m (?P<words>(?:benchmarks|build|pytest)\b[^`#]*)")
# Lets each program read its words and one that it does not know, in one process.
READERS = """
import runpy, shlex, sys
for line in sys.argv[1:]:
    sys.argv = [*shlex.split(line), "--no-such-option"]
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        assert end.code, line
"""


def lines_of(page: str, first: str) -> list[str]:
    blocks = (block.text for block in blocks_of((ROOT / page).read_text()) if block.language == "sh")
    (text,) = (text for text in blocks if text.startswith(first))
    return text.splitlines()


def run(script: str, folder: Path) -> str:
    done = subprocess.run(["bash", "-ec", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{script}\n{done.stderr}"
    return done.stdout


def shell_lines() -> Iterator[str]:
    for page in PAGES:
        for block in blocks_of(page.read_text()):
            lines = block.text.replace("\\\n", " ").splitlines() if block.language == "sh" else []
            yield from (line for line in lines if line and not line.startswith("#"))


def recipes() -> dict[str, list[str]]:
    """Returns what each ``make`` that a page or ``make help`` names would run, where nothing is installed."""
    texts = (*(page.read_text() for page in PAGES), f"\n{made('make help')}")
    named = {found for text in texts for found in MAKE.findall(text)}
    typed = {arguments: made(f"{arguments} -n VENV=none") for arguments in sorted(named)}
    return {arguments: text.replace("\\\n", "").splitlines() for arguments, text in typed.items()}


def made(arguments: str) -> str:
    """Returns what make prints where no other make has called it: it is told of its folders and options."""
    of_another = {"MAKEFLAGS", "MAKELEVEL", "PYTEST_OPTIONS"}
    alone = {name: value for name, value in os.environ.items() if name not in of_another}
    done = subprocess.run(arguments.split(), cwd=ROOT, env=alone, capture_output=True, text=True, check=True)
    return done.stdout


RECIPES = recipes()
TYPED = tuple(dict.fromkeys(line for lines in RECIPES.values() for line in lines))
PIP_TEXTS = (*(page.read_text() for page in PAGES), "\n".join(TYPED))
PIP_LINES = sorted({found.strip() for text in PIP_TEXTS for found in PIP.findall(text)})


def test_every_line_of_a_shell_block_is_run_by_some_test_and_make_has_what_pages_name() -> None:
    assert [line for line in shell_lines() if not any(re.match(begins, line) for begins in SHELL)] == []
    assert all((Path(__file__).parent / test).exists() for test in SHELL.values())
    named = {arguments.split()[1] for arguments in RECIPES}
    assert named >= {"demo", "test", "check", "bench", "gpu-check", "wheel", "clean"}
    tools = (
        r"none/bin/(tuner|pip|ruff|mypy)\b|(\w+=\S* )*none/bin/python -m |python3 -m venv |(PYTHON=.+)?\.ci/"
    )
    left = [line for line in TYPED if not re.match(rf"{tools}|touch none/|rm -rf ", line)]
    assert all("sys.version_info" in line for line in left)  # one that is too old is refused
    for line in TYPED:
        if line.startswith("none/bin/tuner "):
            understood(Example("make", tuple(shlex.split(line)[1:])))


def test_an_environment_is_made_and_entered(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As printed, but for the copy of pip that venv puts into it."""
    make, enter, *_ = lines_of("README.md", "python3 -m venv")
    monkeypatch.setattr(venv.EnvBuilder, "_setup_pip", lambda *_: None)
    program, _, module, *arguments = shlex.split(make, comments=True)
    assert (program, module) == ("python3", "venv")
    venv.main(arguments)
    assert Path(run(f"{enter}\ncommand -v python", here).strip()) == here / ".venv" / "bin" / "python"


@pytest.mark.parametrize("line", PIP_LINES)
def test_pip_takes_the_options_and_the_extras_are_there(line: str) -> None:
    commands = pytest.importorskip("pip._internal.commands")
    _, command, *arguments = shlex.split(line)
    options, others = commands.create_command(command).parse_args(arguments)
    wanted = [*others, *getattr(options, "editables", [])]
    assert wanted
    for extras in (re.fullmatch(r"\.\[(.+)\]", each) for each in wanted):
        assert extras is None or set(extras[1].split(",")) <= EXTRAS.keys()


@pytest.mark.slow
def test_programs_of_the_repository_take_the_options(tmp_path: Path) -> None:
    lines = (*shell_lines(), *TYPED)
    asked = dict.fromkeys(found["words"].strip() for found in map(MODULE.search, lines) if found)
    test = "pytest -n 2 --dist worksteal -m"
    assert asked.keys() >= {"benchmarks.gpu_check", "benchmarks.overhead", "build"}
    assert asked.keys() >= {f'{test} "not slow"', f"{test} slow"}
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)  # which some write to
    command, variables = [sys.executable, "-c", READERS, *asked], {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # by argparse, by click
    refusal = f"(?:unrecognized arguments: {NO_OPTION}|No such option '{NO_OPTION}'.)$"
    assert len(re.findall(refusal, done.stderr, re.MULTILINE)) == len(asked)


def test_wheels_are_unpacked_where_python_finds_them(tmp_path: Path) -> None:
    unpack, check = lines_of("docs/guides/gpu-check.md", "for file in wheels/*.whl; do unzip")
    (tmp_path / "wheels").mkdir()
    for name in ("one", "two"):
        with zipfile.ZipFile(tmp_path / "wheels" / f"{name}-1.whl", "w") as wheel:
            wheel.writestr(f"{name}.py", "")
    run(unpack, tmp_path)
    variables, _, arguments = check.partition(" ")
    run(f"{variables} {shlex.quote(sys.executable)} -c 'import one, two'", tmp_path)
    assert re.fullmatch(r"python3\.\d+ -m benchmarks\.gpu_check", arguments)  # which the test above reads


# mlir-opt, files cut and joined, the kernel of the help.

LARGE_BYTES = 41 << 20  # the page cuts files above 40 MiB


@pytest.mark.slow
@pytest.mark.mlir
@NEEDS_MLIR_OPT
def test_what_export_and_the_pages_print_runs_the_script_that_was_exported(here: Path) -> None:
    tuner = Tuner(here / "results.db", real_candidates())
    with brief_remeasurement():
        tuner.done("tune matmul 512x512x512 --trials 3")
    by_apply, *_ = lines_of("README.md", "tuner apply best.mlir best.source.mlir")
    export = next(
        line for line in lines_of("README.md", "python3 -m venv") if line.startswith("tuner export ")
    )
    of_stock, by_mlir_opt, *_ = lines_of("docs/guides/tuning.md", "tuner export matmul 512x512x512 --stock")

    def applied(command: str) -> str:
        first, *options = shlex.split(command, comments=True)
        if first == "tuner":
            return tuner.done(*options).out
        return run(shlex.join((str(MLIR_OPT), *options)), here)

    printed = tuner.done(*shlex.split(export, comments=True)[1:]).err
    tuner.done(*shlex.split(of_stock, comments=True)[1:])
    commands = re.findall(r"^run \S+ by:\n  (.+)$", printed, re.MULTILINE)
    assert any(command.startswith("mlir-opt") for command in commands)
    for command in (*commands, by_apply, by_mlir_opt):
        assert "linalg.matmul" not in applied(command)


@pytest.mark.slow
def test_large_files_are_cut_and_joined(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with (wheels / "large.whl").open("wb") as large:
        large.truncate(LARGE_BYTES)
    (wheels / "small.whl").write_bytes(b"small")
    here, there = "\n".join(lines_of("docs/guides/gpu-check.md", "cd wheels && sha256sum")).split("# there\n")
    run(here, tmp_path)
    cut = sorted(path.name for path in wheels.glob("*.whl*"))
    assert cut == ["large.whl.aa", "large.whl.ab", "small.whl"]
    run(there, tmp_path)
    assert (wheels / "large.whl").stat().st_size == LARGE_BYTES


def test_the_kernel_of_the_help_runs(tuner: Tuner, here: Path) -> None:
    given = (each.words for each in EXAMPLES if each.words[:1] == ("ptx",))
    (options,) = {words for words in given if "--help" not in words}
    (here / "axpy.ptx").write_text(text_beside(__file__, "AXPY"))
    done = tuner(*options)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("axpy: 8 blocks, ")
