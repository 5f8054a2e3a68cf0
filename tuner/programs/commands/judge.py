"""``tuner judge``: verifies and times scripts that somebody else wrote, one or a stream of them."""

import contextlib
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.cli.forms import ProblemOptions, named_target
from tuner.cli.main import DONE, FAILED
from tuner.cli.options import (
    SUFFIX,
    backends_of,
    database_option,
    open_store,
    print_json,
    seed_option,
    target_options,
)
from tuner.core.errors import TunerError, UsageError, unknown_value
from tuner.core.problem import WEIGHTS_COLD, Problem
from tuner.core.problem_text import tune_command
from tuner.core.queries import TaskQuery
from tuner.core.requests import require_number
from tuner.core.serialization import parse_seconds, parsed
from tuner.core.text_files import read_text
from tuner.programs.commands.payload_text import read_payload_text
from tuner.programs.fusion_tuning import child_fusion_steps
from tuner.programs.payload_errors import named_in_errors
from tuner.programs.request import ProgramRequest
from tuner.results.regression.audit import EvaluationCase
from tuner.results.regression.submission import Submission, SubmissionRun
from tuner.results.regression.submission_document import submission_document
from tuner.targets.backends import require_runs_here, resolve_target
from tuner.tuning.request import require_threads

if TYPE_CHECKING:
    from tuner.db.store import Store
    from tuner.targets.backends import Backends


MIB = 1 << 20
LEAST_MIB = 512  # a compile worker has 192 MiB before it compiles
STDIN = "-"
LEAST_WORDS = 2  # of a problem: operation and shape
FURTHER_WORDS = ("dtype", "layout", "epilogue")
PROBLEM_FORM = "OPERATION SHAPE [DTYPE [LAYOUT [EPILOGUE]]] or FILE.mlir"
PROBLEM_EXAMPLE = "matmul 512x512x512 f32"
UNUSUAL = re.compile("[\x00\ud800-\udfff]")  # NUL, and halves of characters, which are not UTF-8
LINE_FORM = '{"script": TEXT or FILE, "problem": "matmul 512x512x512 f32", "name": TEXT, "id": TEXT}'
KEYS = ("script", "problem", "name", "id")


@click.command()
@click.argument("script", metavar="SCRIPT | -")
@click.option(
    "--problem", metavar="PROBLEM", help=f"Such as '{PROBLEM_EXAMPLE}', or a .mlir file with one operation."
)
@target_options
@click.option("--threads", type=int, default=1, show_default=True, help="Threads of the kernel.")
@click.option("--baseline", default="", help="Library to compare with, or 'best'. Default: the target's.")
@click.option("--timeout", metavar="TIME", help="To compile a script, and to load and run it: 20s.")
@click.option("--memory", type=int, metavar="MIB", help="Of the process that compiles, or runs, a script.")
@seed_option("Of the random inputs.")
@database_option
@click.option("--json", is_flag=True, expose_value=False, help="Without it, too: an answer is always JSON.")
@click.pass_context
def judge(
    context: click.Context,
    /,
    script: str,
    problem: str | None,
    database: str | None,
    **options: Any,
) -> None:
    """Verifies and times a script that somebody else wrote; prints one JSON document.

    SCRIPT is a transform script in plain MLIR without open knobs. It is compiled, verified and timed in child
    processes under limits, as a trial of 'tuner tune' is; then timed again, interleaved with the best trial
    of the problem so far and the baseline, and verified on NaN, infinity and subnormal numbers. The document
    says whether it is correct; where it failed (stage, reason, line and op of the script); its time with
    interval and reliability, next to the baseline and the best; what differs from the best, op by op; and
    which of its steps changed nothing. It is stored as a trial of a run 'judged'.

    With - each line of standard input is a JSON object with a script, as text or as the name of a file, and
    its problem if it is not that of --problem; name and id are optional. Each is answered by a line, with the
    id, by processes that stay warm. A line that is wrong gets the key "error", and the next one is read.

    Exits with 0 where the script is correct, with 1 where it is not; with - at the end of the input with 0.

    Example: tuner judge mine.mlir --problem "matmul 512x512x512 f32", or tuner judge - < scripts.jsonl
    """
    limits = _limits(options.pop("timeout"), options.pop("memory"))
    cases = _Cases(backends_of(context), problem, limits=limits, **options)
    with open_store(database) as store, contextlib.closing(_Evaluators(cases.backends, store)) as evaluators:
        if script == STDIN:
            _answer_lines(cases, evaluators)
            context.exit(DONE)
        path = Path(script)
        submission = Submission(read_text(path, "MLIR text"), path.name.removesuffix(SUFFIX))
        result = evaluators.of(cases.case(None)).evaluated(submission)
    document = submission_document(result)
    print_json(document)
    if document["correct"]:
        context.exit(DONE)
    context.exit(FAILED)


def _limits(timeout: str | None, memory: int | None) -> dict[str, Any]:
    if memory is not None and memory < LEAST_MIB:
        raise UsageError(f"memory: found {memory}, allowed {LEAST_MIB} MiB or more: the compiler needs it")
    return {
        "timeout_s": None if timeout is None else parse_seconds(timeout),
        "memory_bytes": None if memory is None else memory * MIB,
    }


class _Cases:
    """Returns how a problem's submissions are evaluated, by the options of the command and its text."""

    def __init__(
        self,
        backends: "Backends",
        default: str | None,  # the problem of --problem
        *,
        target: str,
        chip: str,
        cpu: str,
        limits: dict[str, Any],
        **options: Any,  # threads, baseline, seed
    ) -> None:
        self.backends = backends
        self._default = default
        self._target = resolve_target(named_target(target, cpu), backends, chip)
        self._options = {**options, **limits}
        self._known: dict[str, EvaluationCase] = {}  # by the problem's text
        require_number("threads", options["threads"], 1)
        if default is not None:
            self.case(None)  # a wrong one is reported before the first line is read

    def case(self, text: str | None) -> EvaluationCase:
        """Returns the case of a problem's text; None: that of --problem.

        Raises UsageError for a text that is not a problem, and for a problem that the target cannot compute.
        """
        text = text or self._default
        if text is None:
            raise UsageError("the problem is missing", f'--problem "{PROBLEM_EXAMPLE}"')
        if text not in self._known:
            self._known = {text: self._new_case(text)}
        return self._known[text]

    def _new_case(self, text: str) -> EvaluationCase:
        problem = self._problem(text)
        case = EvaluationCase(problem, self._target, **self._options)
        target = self.backends.target(case.target)
        require_runs_here(case.target, self.backends, tune_command(TaskQuery.of(problem)))
        require_threads(case.threads, target.machine(case.target), self.backends.processors())
        target.require_types(problem, case.target)
        target.require_baseline(case.baseline, problem)
        return case

    def _problem(self, text: str) -> Problem:
        if text.endswith(SUFFIX):
            return self._problem_of_payload(text)
        words = text.split()
        if not LEAST_WORDS <= len(words) <= LEAST_WORDS + len(FURTHER_WORDS):
            raise UsageError(f"problem: found {text[:80]!r}, allowed {PROBLEM_FORM}", f'"{PROBLEM_EXAMPLE}"')
        return ProblemOptions(words[0], words[1], **_options_of(words)).problem

    def _problem_of_payload(self, file: str) -> Problem:
        text = read_payload_text(Path(file)).text
        request = ProgramRequest(text=text, target=self._target)
        with named_in_errors(file, text):
            found = child_fusion_steps().fusions(request, WEIGHTS_COLD)
        if len(found.problems) == 1:
            return found.problems[0].problem
        why = found.why_none or "; ".join(found.left_out) or f"found {len(found.problems)} operations"
        raise UsageError(f"problem: {file}: allowed is one operation that can be tuned: {why}")


def _options_of(words: list[str]) -> dict[str, Any]:
    return dict(zip(FURTHER_WORDS, words[LEAST_WORDS:], strict=False))


class _Evaluators:
    """Gives the evaluator of a case; its processes stay warm while the case is the same."""

    def __init__(self, backends: "Backends", store: "Store") -> None:
        self._backends = backends
        self._store = store
        self._case: EvaluationCase | None = None
        self._run: SubmissionRun | None = None

    def of(self, case: EvaluationCase) -> SubmissionRun:
        """Returns the evaluator of ``case``; ends that of another one."""
        if self._run is None or case != self._case:
            self.close()
            self._run = SubmissionRun(self._backends, self._store, case)
            self._case = case
        return self._run

    def close(self) -> None:
        if self._run is not None:
            self._run.close()
        self._run = None


def _answer_lines(cases: _Cases, evaluators: _Evaluators) -> None:
    """Answers each line of standard input by a line; a line that is wrong by its error."""
    for number, raw in enumerate(sys.stdin.buffer, 1):
        line = raw.decode(errors="replace")
        if not line.strip():
            continue
        identity = None
        try:
            document = _parsed_line(line, f"line {number}")
            identity = document.get("id")
            case = cases.case(document.get("problem"))
            result = evaluators.of(case).evaluated(_submission(document))
            answer = submission_document(result)
        except TunerError as error:
            if not isinstance(error, UsageError):  # a child process did not start, or a disk is full
                evaluators.close()
            answer = {"error": error.message, "hint": error.hint or None}
        except OSError as error:  # of a name that no file can have
            answer = {"error": f"line {number}: {error.strerror}", "hint": None}
        print(json.dumps({"id": identity, **answer}, allow_nan=False), flush=True)


def _parsed_line(line: str, place: str) -> dict[str, Any]:
    document = parsed(line, place)
    if not isinstance(document, dict) or not isinstance(document.get("script"), str):
        raise UsageError(f"{place}: found another form, allowed {LINE_FORM}")
    for key in document:
        if key not in KEYS:
            raise unknown_value(f"{place}: key", key, KEYS)
    if not isinstance(document.get("id"), str | int | None):
        raise UsageError(f"{place}: id: allowed are a text and a whole number")
    for key in ("script", "problem", "name"):
        text = document.get(key, "")
        if not isinstance(text, str):
            raise UsageError(f"{place}: {key}: found {text!r}, allowed a text")
        if UNUSUAL.search(text):
            raise UsageError(f"{place}: {key}: has a character that no text has, such as NUL")
    return document


def _submission(document: dict[str, Any]) -> Submission:
    script = document["script"]
    if "{" in script:  # MLIR text, and no usual name of a file
        return Submission(script, document.get("name") or Submission.name)
    path = Path(script)
    return Submission(read_text(path, "MLIR text"), document.get("name") or path.name.removesuffix(SUFFIX))
