"""Every command, document, header and table that has a time or a ratio, on a disturbed and a quiet database.

The commands are those of the command table: one that is new fails here until it is listed. What divides one
time by another is found in the sources: a new place fails until it is listed, with the reason why it may.
"""

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.command_lines import LEFT_OUT, leaves
from tests.cli.conftest import Done, Tuner
from tests.cli.test_disturbed_measurements import DISTURBANCES, Disturbed, parts
from tests.default_suite import ALL
from tests.fakes import bind
from tests.results.report.test_campaign_section import PROGRAM, stored
from tests.tuning import fakes
from tests.tuning.test_fake_campaign import limits, members
from tuner.core.candidate import Candidate
from tuner.core.interfaces import Script
from tuner.core.programs import ProgramBaseline, ProgramResult
from tuner.core.queries import TrialQuery
from tuner.core.reliability import RELIABLE, unreliable
from tuner.db.store import Store
from tuner.mlir.fingerprint import PACKAGE
from tuner.models.library.c import writer
from tuner.models.library.entries import entry_of
from tuner.models.library.header import document_of, header
from tuner.models.program_times import ProgramTimes
from tuner.models.report import ProgramReport
from tuner.results.best_trials import best_results
from tuner.results.past_runs import Trials
from tuner.space.scripts.header import provenance_file
from tuner.targets.target import HostPrograms, TargetStatus
from tuner.tuning.campaign import begin_campaign
from tuner.tuning.events import Interruption
from tuner.tuning.rule import ProblemSpaces

TIMES = {
    f"{of}_s" for of in ("median", "call", "time", "total", "before", "after", "baseline", "recorded", "now")
}
RATIOS = {"ratio", "slowdown", "speedup", "efficiency", "held_out_efficiency", "share", "geomean", "worst"}
CPU = TargetStatus("cpu", True, "for tests")
DOUBT = "the reference kernel drifted by 34%: load"

# Command -> its line whose ``--json`` is read here.
DOCUMENTS: Mapping[str, str] = {
    "history --runs": "history --runs --json",
    "history": "history --json",
    "show": "show {best} --json",
    "show run": "show run:1 --json",
    "show campaign": "show campaign:1 --json",
    "show ablation": "show run:1 --ablation --json",
    "diff": "diff {best} {other} --json",
    "explain": "explain {best} --json",
    "portfolio": "portfolio 1 --configs 2 --json",
    "check --best": "check --best --json",
}
AS_TEXTS = {"report", "export"}  # commands whose pages and headers are among TEXTS
GIVEN = {"judge"}  # ratios and reliability of its documents: tests/results/regression/test_submission.py
# Commands that print no time of a kernel or a program.
NO_TIMES = {
    *("strategies", "new-strategy", "space", "targets", "apply", "lower", "completion"),
    "c-library",
    *("ptx", "bundle export", "bundle import"),
    *("fleet worker", "fleet status", "fleet drain", "fleet up", "fleet cancel"),
    *("fleet script ssh", "fleet script slurm", "fleet script kubernetes"),
    *("db info", "db upgrade", "db merge", "db backup", "db prune"),
}
# Module -> why a time is divided by another one there, although the module does not decide what may be said.
DIVISIONS: Mapping[str, str] = {
    "analysis/importance.py": "a slowdown with interval and p-value, under the reliability of its run",
    "analysis/scheduler.py": "order of the problems of a campaign; not printed",
    "analysis/ratios.py": "decides; said beyond the noise of the run alone",
    "analysis/portfolio.py": "chooses a portfolio; printed with the reliability of each problem",
    "analysis/slowdown.py": "the time that a session is expected to have",
    "analysis/selected_result.py": "width of an interval; the bootstrap that comparison asks",
    "core/roofline.py": "share of a roofline, printed of reliable times alone",
    "core/round_quality.py": "decides",
    "core/runs.py": "share of a run's seconds without work",
    "db/maintenance.py": "width of an interval",
    "elsewhere/fleet/noise_check.py": "load of a processor",
    "elsewhere/fleet/status.py": "idle share of a node",
    "results/output/campaign_tables.py": "share of a campaign's time, where all of its times are reliable",
    "results/output/progress.py": "share of a budget",
    "results/report/program_section.py": "lengths of bars, drawn of reliable times alone",
    "results/report/headline_card.py": "lengths of bars, drawn with their intervals, of reliable times alone",
    "results/report/roofline_plot.py": "flop per byte",
    "models/fusion_times.py": "shares, of reliable times alone",
    "core/programs.py": "share of scalar loops of a program's time",
    "models/speedup.py": "the gain of a tuned program, said beyond the noise of each process alone",
    "models/program_times.py": "how many kernels run at a time",
    "runtime/cpu/timing_conditions.py": "load of a processor",
    "runtime/cpu/host.py": "load of a processor",
    "runtime/workers/limits.py": "number of samples of a time limit",
    "tuning/budget.py": "how long the final re-measurement may take; not printed",
    "tuning/pretuned.py": "speeds of shipped choices, printed as a range with their number of shapes",
}
MICROSECONDS = re.compile(r"1e[369](?::[^}]*)?\} ?(?:us|ms|ns)\b")


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Disturbed]:
    """Gives a disturbed and a quiet database: a run, a campaign of three problems, a program of fusions."""
    found = {}
    for name, result in (("load throughout", doubted(PROGRAM)), ("quiet", PROGRAM)):
        disturbance = DISTURBANCES[name]
        tuner = Tuner(tmp_path_factory.mktemp("printed") / "results.db", parts(disturbance))
        tuned = tuner("tune matmul 8x8x8 --sampler exhaustive --trials 20")
        with Store.open(str(tuner.database)) as store:
            begin_campaign(limits(5), members(), tuner.backends, store, Interruption())
            stored(store, result)
        found[name] = Disturbed(disturbance, tuner, tuned)
    return found


def doubted(result: ProgramResult) -> ProgramResult:
    """Returns the same program, as an older tuner might have stored it: with ratios of disturbed times."""
    doubt = unreliable(DOUBT)
    fusions = tuple(replace(each, reliability=doubt) for each in result.fusions)
    baselines = tuple(
        each if each.call_s is None else ProgramBaseline(each.name, each.call_s, each.speed, DOUBT, doubt)
        for each in result.baselines
    )
    unknown = replace(result, speed=None, gain_unknown=DOUBT, reliability=doubt)
    return replace(unknown, fusions=fusions, baselines=baselines)


def test_each_command_is_listed() -> None:
    commands = {" ".join(path) for path, _ in leaves()}
    listed = {name.split(" ")[0] if name.startswith("show") else name for name in DOCUMENTS}
    known = {command.partition(" -")[0] for command in (*listed, *MADE)} | AS_TEXTS | NO_TIMES | GIVEN
    assert commands ^ known == set()
    assert {"dashboard", "measure", "demo"} == LEFT_OUT  # the bundle's summary: test_summary
    assert TEXTS.keys() > AS_TEXTS


def _tuned(run: Disturbed) -> Any:
    tuner = replace(run.tuner, database=run.tuner.database.parent / "tuned.db")
    return tuner("tune", "matmul", "8x8x8", "--sampler", "exhaustive", "--trials", "20", "--json").json


def _gate(run: Disturbed, *options: str) -> Done:
    """Runs a gate whose code takes longer than the recorded one."""
    file = str(run.tuner.database.parent / "gate.json")
    run.tuner("check --baseline", file, "--record", run.best)
    slower = fakes.changed(run.tuner.backends.targets["fake"], bind=lambda *_: _slower)
    backends = fakes.changed(run.tuner.backends, targets={"fake": slower})
    return replace(run.tuner, backends=backends)("check", "--baseline", file, *options)


def _slower(chosen: Candidate) -> Script:
    return bind(Candidate.of(chosen.strategy, {**dict(chosen.choices), "x": 8}))


def _ran(run: Disturbed) -> Any:
    doubt = RELIABLE if run.disturbance.keeps_ratio else unreliable(DOUBT)
    file = run.tuner.database.parent / "program.mlir"
    file.write_text("module {}")
    report = ProgramReport("main", (), (), (), 1, times=ProgramTimes(1e-3, (), 1, reliability=doubt))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tuner.models.commands.ran.run_in_child", lambda *_: report)
        tuner = replace(run.tuner, backends=fakes.backends((CPU,), programs=HostPrograms()))
        return tuner.done("run", str(file), "--target", "cpu", "--json").json


def _distilled(run: Disturbed) -> Any:
    file = run.tuner.database.parent / "mm.rule.yaml"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProblemSpaces, "sha256", lambda *_: "0" * 64)  # the fake strategy is not shipped
        printed = run.tuner("portfolio 1 --configs 2 -o", str(file), "--json").json
    return [printed, yaml.safe_load(file.read_text())]


# Command -> its document from a database, where that takes more than one line.
MADE: Mapping[str, Callable[[Disturbed], Any]] = {
    "tune": _tuned,
    "check": lambda run: run.tuner("check", str(run.script), "--json").json,
    "check --baseline": lambda run: _gate(run, "--json").json,
    "run": _ran,
    "portfolio -o": _distilled,
}


@pytest.mark.drawn(8)
@pytest.mark.parametrize("command", [*DOCUMENTS, *MADE, "show program"])
def test_each_time_in_json_has_its_reliability(databases: Mapping[str, Disturbed], command: str) -> None:
    line = DOCUMENTS.get(command, "show campaign:2 --json")
    quiet, disturbed = (
        MADE[command](run) if command in MADE else run.ask(line.format(best=run.best, other=run.other)).json
        for run in (databases["quiet"], databases["load throughout"])
    )
    for document in (quiet, disturbed):
        assert list(_bare(document, TIMES, is_marked=False)) == []
    assert list(_bare(disturbed, RATIOS, is_marked=False)) == []
    marks = set(_reliabilities(disturbed))
    assert "reliable" not in marks
    if command != "show campaign":  # nothing of it was timed twice
        assert marks
        assert "reliable" in set(_reliabilities(quiet))


def _bare(document: Any, keys: set[str], *, is_marked: bool) -> Iterator[str]:
    """Yields the keys of ``keys`` with a value that neither their object nor one around it marks."""
    if isinstance(document, dict):
        is_marked = is_marked or isinstance(document.get("reliability"), str)
        numbers = {key for key, value in document.items() if isinstance(value, int | float)}
        yield from () if is_marked else numbers & keys
    for value in _inside(document):
        yield from _bare(value, keys, is_marked=is_marked)


def _reliabilities(document: Any) -> Iterator[str]:
    if isinstance(document, dict) and document.get("reliability") is not None:
        yield document["reliability"].partition(":")[0]
    for value in _inside(document):
        yield from _reliabilities(value)


def _inside(document: Any) -> Iterable[Any]:
    return document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()


# Table or header -> its text from a database.
TEXTS: Mapping[str, Callable[[Disturbed], str]] = {
    "history": lambda run: run.asked("history --run 1"),
    "history --runs": lambda run: run.asked("history --runs"),
    "show campaign": lambda run: run.asked("show campaign:2"),
    "portfolio": lambda run: run.asked("portfolio 1 --configs 2"),
    "report": Disturbed.page,
    "report of a campaign": lambda run: run.page("--campaign", "1"),
    "explain": lambda run: run.asked(f"explain {run.best}"),
    "export": lambda run: run.script.read_text() + provenance_file(run.script).read_text(),
    "tune": lambda run: run.tuned.out + run.tuned.err,
    "check": lambda run: run.tuner("check", str(run.script)).out,
    "check --baseline": lambda run: _gate(run).out,
    "C header": lambda run: ", ".join(writer.times(_entry(run))),
    "library": lambda run: header(document_of((_entry(run),), (None,)), "models.library.mlir", "MLIR 23"),
    "repr": lambda run: repr(_trials(run)[0]),
    "to_frame": lambda run: str([row["reliability"] for row in _trials(run).rows()]),
}


def _entry(run: Disturbed) -> Any:
    with Store.open(str(run.tuner.database)) as store:
        (found,) = best_results(store, TrialQuery(run=1)).values()
        return entry_of(found)


def _trials(run: Disturbed) -> Trials:
    with Store.open(str(run.tuner.database)) as store:
        return Trials(store.trials(TrialQuery(run=1, sort="median")))


@pytest.mark.drawn(ALL)
@pytest.mark.parametrize("output", TEXTS)
def test_each_text_is_marked_on_a_disturbed_machine(databases: Mapping[str, Disturbed], output: str) -> None:
    disturbed, quiet = (TEXTS[output](databases[name]) for name in ("load throughout", "quiet"))
    assert re.search(r"unreliable|no reliable time|reliable  no:", disturbed)
    assert not re.search(r"\d x \w|\d times as fast|\d\.\d\dx |\d% (of the best|in sample)", disturbed)
    assert re.search(r"\breliable\b|reliable  yes|noise (floor )?0|geometric mean", quiet)


def test_each_time_in_the_lists_of_a_report_is_marked(databases: Mapping[str, Disturbed]) -> None:
    lines = [line.strip() for line in databases["load throughout"].page().splitlines()]
    navigation = lines[: lines.index("Best per problem")]
    in_navigation = [line for line in navigation if re.search(r"\d [mun]?s\b", line)]
    in_lists = [line for line in lines if re.fullmatch(r"\d+ \| .*GFLOP/s \|.*", line)]
    for timed in (in_navigation, in_lists):
        assert timed
        assert [line for line in timed if "unreliable" not in line] == []


def test_all_trials_of_a_disturbed_search_are_marked(databases: Mapping[str, Disturbed]) -> None:
    trials = [each for each in _trials(databases["load throughout"]) if each.best_s is not None]
    assert any(each.final is None for each in trials)
    assert {each.reliability.word for each in trials if each.early_stopped is None} == {"unreliable"}


@pytest.mark.slow
def test_only_listed_modules_divide_one_time_by_another() -> None:
    found = {
        str(path.relative_to(PACKAGE))
        for path in _package_files()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        if _is_time(node.left) and _is_time(node.right)
    }
    assert found == DIVISIONS.keys()


def _package_files() -> list[Path]:
    """Returns the modules of the package and of its linked folders, which a wheel has as its own."""
    walked = os.walk(PACKAGE, followlinks=True)
    return [Path(folder, name) for folder, _, names in walked for name in names if name.endswith(".py")]


def _is_time(node: ast.expr) -> bool:
    """True for a name that ends in _s, and for a sum, a multiple, an element or the like of such times."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name.endswith("_s")
        case ast.Call(func=ast.Name(id="min" | "max" | "sum" | "abs" | "float"), args=[first, *_]):
            return _is_time(first)
        case ast.Subscript(value=inner) | ast.Call(func=inner) | ast.UnaryOp(operand=inner):
            return _is_time(inner)
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _is_time(left) and not _is_time(right)
        case ast.BinOp(left=left, right=right):
            return _is_time(left) or _is_time(right)
    return False


def test_times_are_written_by_one_function_with_their_digits() -> None:
    found = {path.name for path in _package_files() if MICROSECONDS.search(path.read_text())}
    assert found == {"tuning.py"}  # an example of a docstring
