"""Templates: how candidates become scripts, and what a broken or hostile template gives."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.default_suite import ALL
from tests.support.fuzzing.cpu_points import CpuPoints
from tuner.cli.commands.catalogue import starter_files
from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError, Stage, UsageError
from tuner.core.machine import Machine
from tuner.core.matmul import Matmul
from tuner.payload.partitions import partitions_in
from tuner.space.file.reading import load_space_file, parse_space
from tuner.space.file.shipped import STRATEGY_SCRIPT, STRATEGY_SPACE
from tuner.space.file.yaml import default_space_file
from tuner.space.scripts.strategy import Binder, Strategy, load_strategy, strategy_folder

MACHINE = Machine("any", "any", "avx512", True, 2, 2, 49152, 1 << 20, 1 << 25, 1 << 34)
SHIPPED = [entry.name for entry in load_space_file(default_space_file()).strategies]


def bind(text: str, threads: int = 1, folder: Path = Path("nowhere"), **knobs: int | str) -> str:
    strategy = Strategy("mine", folder / "mine.mlir.j2", text)
    binder = Binder((strategy,), Matmul(100, 200, 30), (("vector_bytes", 64), ("l2_bytes", 7)), threads)
    return binder.bind(Candidate.of("mine", dict(knobs))).text


def test_a_template_sees_knobs_sizes_limits_and_element_words() -> None:
    names = ("tile", "l2_bytes", "dtype", "accumulator", "lanes", "zero_in", "panels[0].m")
    text = " ".join(f"{{{{ {name} }}}}" for name in names)
    assert bind(text, tile=8) == "8 7 f32 f32 16 0.0 : f32 100\n"


def test_panels_are_whole_register_tiles_scheduled_once_per_size_and_named_in_the_first_line() -> None:
    text = "{% for panel in panels %}{{ panel.name }} {{ panel.m }}x{{ panel.n }};{% endfor %}"
    script = bind(text, threads=2, split="n", tile_n=20, tile_m=1)
    assert script.splitlines()[1] == "matmul_100x100 100x100;"
    partitions = partitions_in(script, Matmul(100, 200, 30))
    assert [(partition.row, partition.column) for partition in partitions] == [(0, 0), (0, 100)]

    for split, extents in (("n", [(100, 112), (100, 88)]), ("m", [(52, 200), (48, 200)])):
        script = bind("", threads=2, split=split, tile_n=16, tile_m=4)
        partitions = partitions_in(script, Matmul(100, 200, 30))
        assert [(partition.m, partition.n) for partition in partitions] == extents


def test_a_strategy_that_the_run_does_not_have_is_named() -> None:
    with pytest.raises(CandidateError, match=r"^no strategy 'matmul_cpu_packed' in this run$") as caught:
        Binder((), Matmul(1, 1, 1), (), 1).bind(Candidate.of("matmul_cpu_packed", {}))
    assert caught.value.stage == Stage.BIND


HOSTILE_TEMPLATES = [
    ("{{ tile_k }}", r"'tile_k' is undefined$"),
    ("{% for %}", r"Expected "),
    ("{{ 1 // 0 }}", r"zero"),
    ("{{ 'a' + 1 }}", r"can only concatenate str"),
    ("{{ [].pop() }}", r"pop from empty list$"),
    ("{{ {}.popitem() }}", r"dictionary is empty"),
    ("{{ 'x' * 10 ** 14 }}", r"not enough memory$"),
    ("{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}", r"maximum recursion depth exceeded"),
    ("{% for i in range(10 ** 9) %}{% endfor %}", r"Range too big"),
    ("{% for i in range(99999) %}" + "x" * 99 + "{% endfor %}", r"script of more than 4194304 characters"),
    ("{% include '/etc/passwd' %}", r"/etc/passwd"),
    ("{% include '../../etc/passwd' %}", r"etc/passwd"),
    ("{{ ''.__class__.__mro__ }}", r"access to attribute '__class__' of 'str' object is unsafe"),
    ("{{ cycler.__init__.__globals__ }}", r"access to attribute '__init__' of 'type' object is unsafe"),
    ("{{ self._TemplateReference__context.environment }}", r"unsafe"),
]


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize(("template", "reason"), HOSTILE_TEMPLATES)
def test_a_broken_or_hostile_template_is_a_failure_to_bind(template: str, reason: str) -> None:
    with pytest.raises(CandidateError, match=rf"^mine\.mlir\.j2: .*{reason}") as caught:
        bind(template)
    assert caught.value.stage == Stage.BIND
    assert "\n" not in caught.value.reason


def test_what_a_template_includes_is_in_its_hash_of_its_own_folder_first_then_shipped(tmp_path: Path) -> None:
    strategy, hashes = Strategy("mine", tmp_path / "mine.mlir.j2", "{% include 'part.j2' %}"), set()
    for text in ("first", "mine"):
        (tmp_path / "part.j2").write_text(text)
        hashes.add(Binder((strategy,), Matmul(100, 200, 30), (), 1).bind(Candidate.of("mine", {})).sha256)
    assert len(hashes) == 2
    assert bind("{% include 'part.j2' %}", folder=tmp_path) == "mine\n"
    assert bind("{% from '_matmul_cpu.mlir.j2' import op with context %}{{ op }}", folder=tmp_path) == "!op\n"


def test_a_script_in_the_folder_of_its_name_is_named_with_it_and_shipped_ones_share_templates() -> None:
    own = Strategy("mine", Path("any", "mine", STRATEGY_SCRIPT), "{{ tile_k }}")
    with pytest.raises(CandidateError, match=r"^mine/script\.mlir\.j2: 'tile_k' is undefined$"):
        Binder((own,), Matmul(8, 8, 8), (), 1).bind(Candidate.of("mine", {}))
    assert own.folder == Path("any", "mine")
    assert {load_strategy(name).folder for name in SHIPPED} == {strategy_folder()}


def test_an_unreadable_strategy_file_is_named_and_a_template_known_by_its_suffix(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none/script\.mlir\.j2: cannot be read .*strategy none"):
        load_strategy("none")
    binary = tmp_path / "binary.mlir"
    binary.write_bytes(b"\xff\xfe")
    message = r"binary\.mlir: not the script of strategy binary: byte 0 is not UTF-8$"
    with pytest.raises(UsageError, match=message):
        load_strategy("binary", binary)
    assert Strategy("one", Path("a.mlir.j2"), "text").is_template
    assert not Strategy("other", Path("b.mlir"), "text").is_template


def test_every_shipped_template_is_a_strategy_that_begins_with_a_description() -> None:
    for file in (STRATEGY_SCRIPT, STRATEGY_SPACE):
        assert {path.parent.name for path in strategy_folder().glob(f"*/{file}")} == set(SHIPPED)
    for name in SHIPPED:
        assert re.match(r"\{#- (\S+\s+){3}", load_strategy(name).text)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_binding_depends_on_the_candidate_alone(threads: int) -> None:
    """A binder keeps compiled templates: nothing of one rendering may reach the next."""
    points, rng = CpuPoints(MACHINE), np.random.default_rng(0)
    for kind in points.kinds(threads)[::5]:
        drawn = [points.draw(kind, rng) for _ in range(2)]
        point = drawn[0]
        candidates = [one.candidate for one in drawn if one.problem == point.problem]
        candidates += [points.draw_again(kind, point.problem, rng) for _ in range(5)]
        binder = points.binder(point.problem, threads, point.candidate.strategy)
        once = [binder.bind(candidate) for candidate in candidates]
        assert [binder.bind(candidate) for candidate in reversed(candidates)][::-1] == once
        assert points.bind(point) == once[0]  # a binder of its own
        assert not any("{{" in script.text or "{%" in script.text for script in once)


@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    "module",
    ["tuner.space.scripts.strategy", "tuner.payload.reference", "tuner.payload.cpu", "tuner.core.problem"],
)
def test_importing_a_value_or_a_template_imports_no_compiler(module: str) -> None:
    program = f"import {module}, sys; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    heavy = {"numba_cuda_mlir", "torch_mlir", "optuna", "sqlalchemy", "torch", "cuda"}
    assert not set(done.stdout.split()) & heavy


# The files that a new strategy starts with.


def test_starter_files_name_each_other_and_every_knob_and_leave_nothing_to_be_filled_in() -> None:
    template, space, test = starter_files("mine", ())
    assert (template.name, space.name, test.name) == ("script.mlir.j2", "space.yaml", "test_mine.py")
    assert "template: script.mlir.j2" in space.text
    assert 'with_name("space.yaml")' in test.text
    compile(test.text, test.name, "exec")
    assert not [file.name for file in (template, space, test) if "NAME" in file.text]
    (entry,) = parse_space(space.text.replace("extends: default\n", ""), space.name).strategies
    assert all(f"{{{{ {knob.name} }}}}" in template.text for knob in entry.knobs)


@pytest.mark.parametrize("name", ["", "my-tiles", "../mine", "7up", "a b", "shipped"])
def test_what_is_no_name_or_that_of_a_shipped_strategy_is_refused(name: str) -> None:
    found = "'shipped' is a shipped strategy; choose another name"
    message = found if name == "shipped" else "found .*, allowed letters, digits and _, no digit first"
    with pytest.raises(UsageError, match=f"^NAME: {message}$"):
        starter_files(name, ("shipped",))
