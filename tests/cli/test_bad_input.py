"""Every wrong word or file: one clear line on stderr, exit 2, nothing stored, nothing executed."""

import importlib.util
import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import click
import pytest

from docs.generators.commands import all_commands
from tests.cli.conftest import Tuner, require, require_fields
from tests.tuning import fakes
from tuner.core.candidate import Candidate
from tuner.core.fusions import QUANTIZED
from tuner.core.problem import OPERATIONS, SCALED
from tuner.db.store import Store
from tuner.models import model_files
from tuner.targets import run_plan
from tuner.targets.registry import real_backends

SPACE = """
strategies:
  matmul_cpu_packed:
    ops: [matmul]
    dtypes: [f32]
    knobs:
      tile_m: [4, 8]
"""

MNK = "allowed MxNxK such as 512x512x512"


SINCE = "allowed such as 2026-01-31"

HOSTILE = "{{ cycler.__init__.__globals__.os.system('touch owned') }}"
SEEDED = ("check x.mlir", "check --baseline x.json", "check --best", "ptx x.ptx")


@pytest.fixture
def tuner(tuner: Tuner) -> Tuner:
    tuner.backends = fakes.backends(plan=run_plan.plan, bind=run_plan.bind)
    return tuner


def refused(tuner: Tuner, *options: str) -> str:
    """Returns the line of a command that must be refused, and has stored no run."""
    line = tuner.refused(*options)
    assert tuner("db info --json").json["runs"] == 0
    return line


def test_words_of_tune(tuner: Tuner) -> None:
    for options, message in (
        ("tune payload.mlir", "payload.mlir: cannot be read (No such file or directory), expected MLIR text"),
        ("tune", "tune: the operation and the shape are missing"),
        ("tune conv 8x8x8", "hint: other operations are tuned in a program: tuner tune PROGRAM.mlir\n"),
        ("tune matmull 8x8x8", "hint: did you mean matmul?\n"),
        ("tune matmul", "tune: the shape is missing\nhint: tuner tune matmul 512x512x512\n"),
        ("tune 64x32x16", "tune: the operation is missing\nhint: tuner tune matmul 64x32x16\n"),
        ("tune matmul 8x8x8 --dtype f8", "dtype: found 'f8', allowed f32, f64, bf16"),
        ("tune matmul 8x8x8 --target tpu", "target: found 'tpu', allowed auto, fake, gpu"),
        ("tune matmul 8x8x8 --target gpu", "target gpu: not available here: no driver"),
        ("tune matmul 8x8x8 --strategy magic", "strategy: found 'magic', allowed one of"),
        ("tune matmul 8x8x8 --strategy none.mlir", "none.mlir: cannot be read"),
        ("tune matmul 8x8x-8", "shape: found '8x8x-8', allowed MxNxK"),
        ("tune matmul 8x8x8 --strategy ", "strategy: found '', allowed one of 25 names, or the path"),
        ("tune matmul 8x8x8 --trials -1", "trials: found -1, allowed 1 or more"),
        ("tune matmul 8x8x8 --trials many", "'many' is not a valid integer"),
        ("tune matmul 8x8x8 --budget 0s", "budget: found '0s', allowed a time such as 60s"),
        ("tune matmul 8x8x8 --fast", "No such option"),
        ("tune matmul 8x8x8 --space none.yaml", "none.yaml: cannot be read"),
        ("tune matmul 8x8x8 --space /", "cannot be read"),
        ("tune --resume 7", "run: found 7, allowed none: the database has no run"),
    ):
        assert message in refused(tuner, options), options


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("tune matmul -5x512x512", "shape: found '-5x512x512', allowed sizes of 1 or more, such as 8x8x8"),
        ("tune matmul 8x8", f"shape: found '8x8', {MNK}: K missing"),
        ("history --shape 512x512", f"shape: found '512x512', {MNK}: K missing"),
        ("history --runs --shape 8x0x8", "size n: found 0, allowed 1..2147483647"),
        (
            "history --op conv",
            f"operation: found 'conv', allowed {', '.join((*OPERATIONS, SCALED, QUANTIZED))}",
        ),
        (
            "check --best --dtype ",
            "dtype: found '', allowed f32, f64, bf16, f16, i8, e4m3, e5m2",
        ),
        ("history --runs --layout tt", "layout: found 'tt', allowed nn, nt, tn"),
        ("report --limit 0", "limit: found 0, allowed 1 or more"),
        ("history --since yesterday", f"since: found 'yesterday', {SINCE} or 2026-01-31T12:00"),
    ],
)
def test_the_line_of_every_wrong_word(tuner: Tuner, options: str, line: str) -> None:
    assert refused(tuner, options) == f"error: {line}\n"


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("tune matmul 512 512 512 --dtype f32", "tuner tune matmul 512x512x512 --dtype f32"),
        ("space batch_matmul 8 64 64 64", "tuner space batch_matmul 8x64x64x64"),
        ("history matmul 64x64x64 --best", "tuner history --op matmul --shape 64x64x64 --best"),
        ("history --shape 64x64x64 matmul", "tuner history --shape 64x64x64 --op matmul"),
        ("history --budget 3s", "tuner tune has --budget"),
        ("--db x.db history", "tuner history has --db"),
        ("--before 2026-01-01 db prune", "tuner db prune has --before"),
        ("tune matmul 8x8x8 --sort median", "tuner history has --sort"),
        ("tune --before 2026-01-01", "tuner db prune has --before"),
        ("tune matmul 8x8x8 --budgt 3s", "did you mean --budget?"),
        ("apply", "tuner apply best.mlir best.source.mlir"),
        ("space 8x8x8", "tuner space matmul 512x512x512 --dtype f32"),
        ("tune matmul 8x8x8 --strategy none.mlir", "tuner new-strategy NAME writes one"),
        ("apply none.mlir", "tuner export matmul 512x512x512 -o best.mlir"),
        ("check --baseline none.json", "tuner check --baseline none.json --record best"),
        ("tune --shapes none.yaml", "a line of such a file: - {shape: 512x512x512, count: 12}"),
    ],
)
def test_a_line_as_a_newcomer_types_it_has_a_hint_with_what_to_type(
    tuner: Tuner, here: Path, line: str, hint: str
) -> None:
    assert refused(tuner, line).splitlines()[1:] == [f"hint: {hint}"]


@pytest.mark.parametrize(
    ("file", "hint"),
    [
        ("notes.md", "a program: tuner tune FILE.mlir"),
        ("model.py", "name the function of a PyTorch model: tuner tune model.py:FUNCTION"),
        ("shapes.yaml", "tuner tune --shapes shapes.yaml"),
    ],
)
def test_a_file_that_is_no_program_is_named_as_one(tuner: Tuner, here: Path, file: str, hint: str) -> None:
    (here / file).write_text("x")
    line = f"error: operation: found the file {file}, allowed matmul, batch_matmul, grouped_matmul\n"
    assert refused(tuner, f"tune {file}") == f"{line}hint: {hint}\n"
    (here / "matmul").write_text("x")
    assert "the shape is missing" in refused(tuner, "tune matmul")


def test_an_exported_script_needs_its_payload(tuned: Tuner, here: Path) -> None:
    tuned.done("export matmul 8x8x8 -o best.mlir")
    message = "error: apply: the payload is missing: best.mlir has no function\n"
    assert tuned.refused("apply best.mlir") == f"{message}hint: tuner apply best.mlir best.source.mlir\n"


def test_a_help_shows_the_values_that_are_allowed(tuned: Tuner) -> None:
    of_history, of_space = ("status", "layout", "sort"), ("layout",)
    for command, options in (("history", of_history), ("space matmul 8x8x8", of_space)):
        text = tuned(f"{command.split()[0]} --help").out
        for option in options:
            (shown,) = re.findall(rf"--{option} \[([\w|]+)\]", text)
            assert f"found 'x', allowed {shown.replace('|', ', ')}" in tuned(f"{command} --{option} x").err


def test_every_option_of_every_help_has_a_text() -> None:
    commands = ((names, each) for names, command in all_commands() for each in command.params)
    bare = [
        (*names, each.opts[0]) for names, each in commands if isinstance(each, click.Option) and not each.help
    ]
    assert bare == []


def test_no_option_takes_the_next_one_for_its_value(tuner: Tuner) -> None:
    for (_tuner, *names), command in all_commands():
        for option in command.params:
            if isinstance(option, click.Option) and not isinstance(command, click.Group):
                for name in option.opts:
                    done = tuner(" ".join(names), name, "--debug=1", "--help")
                    said = f"error: {name} needs a value, found the option --debug=1\n"
                    assert (said in done.err) != (option.is_flag or option.count), (names, name)
    line = "error: --output-dtype needs a value, found the option --trials\nhint: tuner tune --help\n"
    assert refused(tuner, "tune matmul 64x64x64 --output-dtype --trials 4") == line
    tuner.done("history --sort -median --limit 1")  # a value that begins with - and is not an option


def test_a_script_without_a_sequence_is_refused(tuner: Tuner, tmp_path: Path) -> None:
    path = tmp_path / "mine.mlir"
    sequence = "module {\n  // transform.named_sequence @no\n  transform.named_sequence @mine() {\n  }\n}"
    for script, hint in (
        ("", "tuner new-strategy NAME"),
        ("\n", "tuner new-strategy NAME"),
        ("module { }", "tuner new-strategy NAME"),
        (sequence, "rename @mine, if the script begins there"),
    ):
        path.write_text(script)
        line = tuner.refused("tune matmul 8x8x8 --strategy", str(path))
        assert f"strategy '{path}': found no sequence @__transform_main" in line
        assert line.endswith(f"hint: {hint}\n")
        assert not tuner.database.exists()


@pytest.mark.drawn(2)
@pytest.mark.parametrize("options", ["8X8X8", "8x8x8 --dtype float32", "08x8x8"])
def test_words_that_are_understood(tuner: Tuner, options: str) -> None:
    tuner.backends = fakes.backends()
    tuner.done(f"tune matmul {options} --trials 1")
    (found,) = tuner("history --json --shape 8X8X8 --dtype float32").json
    require_fields(found["problem"], shape=[8, 8, 8], dtype="f32")


def test_space_files(tuner: Tuner, here: Path) -> None:
    for change, message in (
        ("      tile_q: {rnge: [1, 2]}\n", "tile_q"),
        ("    knobs: 3\n", "line 8: the key 'knobs' is given twice"),
        ("    constraints: ['tile_m > 99']\n", "'tile_m > 99' leaves none of"),
        ('    constraints: [\'__import__("os").system("touch owned") == 0\']\n', "__import__"),
        ("  : [\n", "YAML"),
        ("  x: !!python/object/apply:os.system ['touch owned']\n", "space.yaml"),
    ):
        (here / "space.yaml").write_text(SPACE + change)
        line = refused(tuner, "tune matmul 8x8x8 --space space.yaml")
        assert message in line
        assert line.startswith("error: space.yaml: ")
    assert not (here / "owned").exists()  # where a command that is executed would leave its mark


@pytest.mark.drawn(2)
@pytest.mark.parametrize("text", [HOSTILE, "{% for i in range(10**9) %}x{% endfor %}"])
def test_a_hostile_template_fails_candidates_and_runs_nothing(tuner: Tuner, here: Path, text: str) -> None:
    (here / "mine.mlir.j2").write_text(text)
    (here / "space.yaml").write_text(SPACE.replace("    knobs:", "    template: mine.mlir.j2\n    knobs:"))
    done = tuner.failed("tune matmul 8x8x8 --space space.yaml --trials 2")
    assert "2 x bind: mine.mlir.j2: " in done.err
    assert not (here / "owned").exists()


def test_a_database_refuses(tuned: Tuner, here: Path) -> None:
    for options, line in (
        ("export matmul 8x8x8 --trial 1", "export: --trial 1 cannot be combined with matmul"),
        ("export --trial 1 -o /", "/: is a folder, not a file to write"),
        ("history --run 99", "run: found 99, allowed 1 to 1"),
        ("history --format csv --json", "--format csv and --json cannot be combined"),
        ("tune matmul 8x8x8 --sampler=", "sampler: found ''"),
        ("show", "show: give one of: a trial ID (42), run:3, campaign:1, --run 3"),
        ("show 1 --run 1", "show: give one of: a trial ID (42), run:3, campaign:1, --run 3"),
        ("show one", "ID: found 'one', allowed the number of a trial"),
        ("show run:", "ID: found '', allowed the number of a run"),
        (f"show {'9' * 30}", "ID: found '999"),
        ("show 999", "trial: found 999, allowed 1 to 20"),
        ("show run:2", "run: found 2, allowed 1 to 1"),
        ("explain 1 2", "explain: found 2 arguments, allowed 1 or 3\nhint: "),
        ("diff 1 one", "ID: found 'one', allowed the number of a trial"),
        ("diff 1 99", "trial: found 99, allowed 1 to 20"),
        ("diff run:9 1", "run: found 9, allowed 1 to 1"),
        ("history --runs --since yesterday", f"since: found 'yesterday', {SINCE}"),
        ("report --json", "report: --json describes the file written, so it needs -o FILE"),
        ("report --run 9", "run: found 9, allowed 1 to 1"),
        ("report -o /nowhere/r.html", "/nowhere/r.html: cannot be written: No such file or directory"),
        ("report -o -", "-: the name of a file cannot begin with '-'"),
        ("dashboard --limit 0", "limit: found 0, allowed 1 or more"),
        ("dashboard --port 70000", "port: found 70000, allowed 0 to 65535"),
        ("new-strategy my-tiles", "NAME: found 'my-tiles', allowed letters, digits and _"),
        ("new-strategy matmul_cpu_dot", "NAME: 'matmul_cpu_dot' is a shipped strategy"),
        ("new-strategy mine --folder /nowhere/at/all", "--folder: no such folder: /nowhere/at/all"),
        ("db merge none.db", "database sqlite:///{folder}/none.db: "),
        ("bundle export -o x --limit 0", "limit: found 0, allowed 1 or more"),
        ("bundle export -o x --seed -1", "seed: found -1, allowed 0 or more"),
        ("bundle export -o x --since soon", "since: found 'soon', allowed such as"),
        ("bundle import /none", "/none: cannot be read (No such file or directory), expected"),
        ("check none.mlir", "none.mlir: cannot be read (No such file"),
        ("check /", "/: cannot be read (Is a directory)"),
        ("fleet status --watch 2 --check", "--watch cannot be combined with --check"),
        ("check x.mlir --max-slowdown little", "max-slowdown: found 'little', allowed a percentage"),
        ("apply none.mlir -", "none.mlir: cannot be read (No such file"),
        ("apply - -", "apply: only one of SCRIPT and PAYLOAD can be"),
        ("space matmul 8x8x8 --suggest --min-support 0", "min-support: found 0, allowed 1 or more"),
        ("space matmul 8x8x8 --min-support 5", "space: --min-support needs --suggest"),
        ("space matmul 8x8x8 --since 2026-01-31", "space: --since needs --suggest"),
        ("space matmul 8x8x8 --suggest --target replay:f", "space --suggest: target replay:f runs no cand"),
        *((f"{command} --seed -1", "seed: found -1, allowed 0 or more") for command in SEEDED),
        ("db prune --before soon", f"before: found 'soon', {SINCE}"),
    ):
        refused = tuned.refused(options.replace("=", " "))
        assert refused.startswith(f"error: {line.replace('{folder}', str(here))}"), options


def test_a_file_that_is_missing_names_the_file_that_was_meant(
    tuned: Tuner, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_files, "call_in_child", pytest.fail)  # a child imports torch first: 4 s
    tuned.backends = real_backends()
    for name in ("kernel.x", "kernel.pt2"):
        (here / name).write_text("")
    for options in (
        *("check kernl.x", "apply kernl.x -", "run ./kernl.x", "lower kernl.x --to ptx", "ptx kernl.x"),
        *("check --baseline kernl.x", "tune ./kernl.x", "bundle import kernl.x"),
        *("export --merge kernl.x -o x", "space matmul 8x8x8 --space kernl.x", "tune ./kernl.x --target cpu"),
        "tune matmul 8x8x8 --target replay:kernl.x",
        *(("run kernl.pt2",) if importlib.util.find_spec("torch") else ()),
    ):
        assert re.search(r"did you mean (/.*/)?kernel\.(x|pt2)\?\n$", tuned.refused(options)), options


@pytest.mark.parametrize(
    ("knobs", "line"),
    [
        ("[1, 2]", "database: found knobs [1, 2], allowed names with numbers or texts; it is damaged"),
        ('{"x": [1]}', 'database: found knobs {"x": [1]}, allowed names with numbers'),
        ("nonsense", "found a damaged database; restore a copy, or choose another file with --db"),
    ],
)
@pytest.mark.parametrize("command", ["show 1", "history", "export --trial 1"])
def test_knobs_of_a_wrong_shape(tuned: Tuner, command: str, knobs: str, line: str) -> None:
    with closing(sqlite3.connect(tuned.database)) as connection, connection:
        connection.execute("update trial set knobs = ? where id = 1", (knobs,))
    assert line in tuned.refused(command)


def test_a_missing_database_of_the_environment_is_an_error(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere" / "x.db"
    tuner = Tuner(tmp_path / "own.db", fakes.backends(), url=str(missing))
    for command in ("history", "history --runs", "show 1", "report"):
        assert f"error: database sqlite:///{missing}: no such file\nhint: " in tuner.refused(command)
    assert not missing.parent.exists()


ASKING = [  # commands that create no database: they ask one, or need what it has
    *("history", "history --runs", "show 1", "show run:1", "show 1 --ablation", "show 1 --passes"),
    *("diff 1 2", "explain 1", "export --trial 1", "report", "check --best", "tune --resume 1"),
    *("db info", "db prune", "db backup copy.db", "bundle export -o x.bundle", "bundle import x.jsonl"),
    *("space matmul 8x8x8 --suggest", "check --baseline g.json --record best"),
]


@pytest.mark.parametrize("options", ASKING)
def test_a_missing_database_is_named_and_not_created(tuner: Tuner, here: Path, options: str) -> None:
    url = "sqlite:////nowhere/missing.db"
    line, hint = f"database {url}: no such file", f"tuner tune matmul 512x512x512 --db {url}"
    assert tuner.refused(options, "--db", url) == f"error: {line}\nhint: {hint}\n"
    tuner(options)  # on the default database, which is not there yet
    assert not Path("/nowhere").exists()
    assert not any(path.suffix == ".db" for path in here.iterdir())


@pytest.mark.parametrize(
    ("exported", "tuned"),
    [
        ("matmul 77x78x79", "matmul 77x78x79"),
        ("matmul 8x8x8 --dtype f64", "matmul 8x8x8 --dtype f64"),
        ("matmul 1x64x64 --weights i4-g32-f16", "matmul 1x64x64 --weights i4-g32-f16"),
        ("own.mlir", "own.mlir"),
        ("model.py:block", "model.py:block"),
    ],
)
def test_export_from_a_missing_database_names_the_command_that_tunes_it(
    tuner: Tuner, exported: str, tuned: str
) -> None:
    url = "sqlite:////nowhere/missing.db"
    line, hint = f"database {url}: no such file", f"tuner tune {tuned} --db {url}"
    assert tuner.refused(f"export {exported}", "--db", url) == f"error: {line}\nhint: {hint}\n"


def test_before_the_first_run_there_is_no_history(tuner: Tuner) -> None:
    line = f"no history yet in sqlite:///{tuner.database}\nhint: tuner tune matmul 512x512x512\n"
    for command in ("history", "history --runs"):
        assert tuner.done(command).out == line
        assert tuner(command, "--json").json == []
    assert not tuner.database.exists()


def test_unknown_commands_are_refused_and_debug_shows_the_traceback(tuner: Tuner) -> None:
    for options in ("tunne", "--what", "db drop"):
        refused(tuner, options)
    done = tuner("tune conv 8x8x8 --debug")
    assert done.code == 2
    require(done.err, "Traceback", "UsageError: operation: found 'conv'")


# What errors and empty results advise to type names this command's problem, target, options and database.

PROBLEM = "--dtype f64 --layout nt --epilogue bias_relu"
FOR_GPU = "tuner tune matmul 9x9x9 --dtype f16 --target simulator:sm_80"


@pytest.fixture
def named(tuned: Tuner, here: Path) -> Tuner:
    """Gives a database with a run and a proposal whose outcome never arrived, in this folder."""
    with Store.open(str(tuned.database)) as store:
        store.propose(1, 20, 0, Candidate.of("fake", {"x": 1}))
    return tuned


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (f"export matmul 9x9x9 {PROBLEM}", f"tuner tune matmul 9x9x9 {PROBLEM} --target fake"),
        ("export matmul 9x9x9 --threads 2", "tuner tune matmul 9x9x9 --threads 2 --target fake"),
        ("bundle export matmul 9x9x9 --dtype f16 --chip sm_80 -o x", FOR_GPU),
        (f"tune {PROBLEM} --fresh", f"tuner tune matmul 512x512x512 {PROBLEM} --fresh"),
        ("tune batch_matmul --target fake", "tuner tune batch_matmul 8x512x512x512 --target fake"),
        ("tune matmul 9x9x9 --arg 0=7 --dtype f64", "tuner tune payload.mlir --arg 0=7"),
        ("show 21", "tuner tune --resume 1"),
        ("explain 21", "tuner tune --resume 1"),
        ("diff 21 1", "tuner tune --resume 1"),
        ("diff run:x 1", "tuner history --runs"),
        ("show x", "tuner history"),
    ],
)
def test_an_error_ends_with_the_command_for_this_problem_and_database(
    named: Tuner, options: str, advice: str
) -> None:
    for database in ("", " --db results.db"):
        done = named(*shlex.split(f"{options}{database}"))
        assert done.code in (1, 2)
        assert done.err.splitlines()[-1].endswith(f"{advice}{database}")


def test_no_match_names_the_unconditional_query(named: Tuner) -> None:
    for query, conditions in (("history", "--shape 9x9x9"), ("history --runs", "--dtype f64")):
        said = named(f"{query} {conditions} --db results.db").out
        assert said.endswith(f" without conditions\nhint: tuner {query} --db results.db\n")


def test_an_empty_database_names_the_run_that_would_answer(tuner: Tuner, here: Path) -> None:
    Store.open("new.db").close()
    for command in ("history", "history --runs"):
        said = tuner(f"{command} --shape 9x9x9 --dtype f64 --db new.db").out
        assert said.startswith(f"no history yet in sqlite:///{here / 'new.db'}\n")
        assert said.endswith("\nhint: tuner tune matmul 9x9x9 --dtype f64 --db new.db\n")
    tune = "tuner tune matmul 512x512x512 --db new.db"
    assert tune in tuner("report --db new.db").out
    assert tuner("check --baseline g.json --record best --db new.db").err.endswith(f"\nhint: {tune}\n")
