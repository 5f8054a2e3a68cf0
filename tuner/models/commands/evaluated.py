"""The work of ``tuner judge``: scripts are evaluated, one or a stream of them, and answered by JSON."""

import contextlib
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuner.cli.options import SUFFIX, open_store, print_json
from tuner.core.candidate import TargetName
from tuner.core.errors import TunerError, UsageError, unknown_value
from tuner.core.problem import WEIGHTS_COLD, Problem
from tuner.core.problem_text import tune_command
from tuner.core.queries import TaskQuery
from tuner.core.serialization import parsed
from tuner.core.text_files import read_text
from tuner.models.commands.evaluated_problem import problem_of_words, required_problem
from tuner.models.commands.payload_text import read_payload_text
from tuner.models.fusion_tuning import child_fusion_steps
from tuner.models.payload_errors import named_in_errors
from tuner.models.request import ProgramRequest
from tuner.results.regression.reevaluation import EvaluationCase
from tuner.results.regression.submission import Submission, SubmissionRun
from tuner.results.regression.submission_document import submission_document
from tuner.targets.backends import require_runs_here
from tuner.tuning.request import require_threads

if TYPE_CHECKING:
    from tuner.db.store import Store
    from tuner.targets.backends import Backends


UNUSUAL = re.compile("[\x00\ud800-\udfff]")  # NUL, and halves of characters, which are not UTF-8
LINE_FORM = '{"script": TEXT or FILE, "problem": "matmul 512x512x512 f32", "name": TEXT, "id": TEXT}'
KEYS = ("script", "problem", "name", "id")


def evaluate_script(
    backends: "Backends",
    target: TargetName,
    problem: str | None,
    database: str | None,
    settings: dict[str, Any],
    script: tuple[Path, str],
) -> bool:
    """Evaluates a script; prints the result as JSON; returns whether the script is correct.

    ``script``: the path of its file, and its text.
    """
    cases = _Cases(backends, problem, target, settings)
    file, text = script
    with open_store(database) as store, contextlib.closing(_Evaluators(backends, store)) as evaluators:
        submission = Submission(text, file.name.removesuffix(SUFFIX))
        result = evaluators.of(cases.case(None)).evaluated(submission)
    document = submission_document(result)
    print_json(document)
    return bool(document["correct"])


def evaluate_lines(
    backends: "Backends",
    target: TargetName,
    problem: str | None,
    database: str | None,
    settings: dict[str, Any],
) -> None:
    """Evaluates the script of each line of standard input; prints one line of JSON per line."""
    cases = _Cases(backends, problem, target, settings)
    with open_store(database) as store, contextlib.closing(_Evaluators(backends, store)) as evaluators:
        _answer_lines(cases, evaluators)


class _Cases:
    """Makes the ``EvaluationCase`` of a problem, given as text, with the settings of the command.

    Keeps the last case. The problem of --problem, if any, is checked when the object is made.
    """

    def __init__(
        self,
        backends: "Backends",
        default: str | None,  # the problem of --problem
        target: TargetName,
        settings: dict[str, Any],  # of EvaluationCase: threads, baseline, seed, limits
    ) -> None:
        self.backends = backends
        self._default = default
        self._target = target
        self._settings = settings
        self._known: dict[str, EvaluationCase] = {}  # by the problem's text
        if default is not None:
            self.case(None)  # a wrong one is reported before the first line is read

    def case(self, text: str | None) -> EvaluationCase:
        """Returns the case of the problem that ``text`` names; None: the problem of --problem.

        Raises UsageError for a text that is not a problem, and for a problem that the target cannot compute.
        """
        text = required_problem(text or self._default)
        if text not in self._known:
            self._known = {text: self._new_case(text)}
        return self._known[text]

    def _new_case(self, text: str) -> EvaluationCase:
        problem = self._problem(text)
        case = EvaluationCase(problem, self._target, **self._settings)
        target = self.backends.target(case.target)
        require_runs_here(case.target, self.backends, tune_command(TaskQuery.of(problem)))
        require_threads(case.threads, target.machine(case.target), self.backends.processors())
        target.require_types(problem, case.target)
        target.require_baseline(case.baseline, problem)
        return case

    def _problem(self, text: str) -> Problem:
        if text.endswith(SUFFIX):
            return self._problem_of_payload(text)
        return problem_of_words(text)

    def _problem_of_payload(self, file: str) -> Problem:
        text = read_payload_text(Path(file)).text
        request = ProgramRequest(text=text, target=self._target)
        with named_in_errors(file, text):
            found = child_fusion_steps().fusions(request, WEIGHTS_COLD)
        if len(found.problems) == 1:
            return found.problems[0].problem
        why = found.why_none or "; ".join(found.left_out) or f"found {len(found.problems)} operations"
        raise UsageError(f"problem: {file}: allowed is one operation that can be tuned: {why}")


class _Evaluators:
    """Gives the evaluator of a case; its processes stay warm while the case is the same."""

    def __init__(self, backends: "Backends", store: "Store") -> None:
        self._backends = backends
        self._store = store
        self._case: EvaluationCase | None = None
        self._run: SubmissionRun | None = None

    def of(self, case: EvaluationCase) -> SubmissionRun:
        """Returns the evaluator of ``case``; ends the evaluator of another case."""
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
