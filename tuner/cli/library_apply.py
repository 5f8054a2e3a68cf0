"""``tuner apply`` of scripts and libraries that tuner exported: what fits the payload, and what does not."""

import sys
from functools import partial
from typing import TYPE_CHECKING

from tuner.cli.options import print_found
from tuner.core.errors import TunerError
from tuner.tuning.parts.child_call import call_in_child

if TYPE_CHECKING:
    from tuner.library.contraction_report import ContractionReport
    from tuner.tuning.composition import Composition

TIMEOUT_S = 60.0
SHOWN = 3  # contractions of a payload in a message, which is one line


def applied(composition: "Composition", script: str, payload: str, name: str, *, allows_effects: bool) -> str:
    """Returns a payload after a script; both are MLIR text, ``name`` is the script's name for messages.

    Raises TunerError where the script fails; of an exported script that is for another contraction than the
    payload has, the error names both.
    """
    try:
        return composition.apply(script, payload, allows_effects)
    except TunerError as error:
        misfit = _misfit(script, payload, name)
        if misfit:
            raise TunerError(
                misfit, "tuner export --format library fits any number of contractions"
            ) from error
        raise


def applied_library(
    composition: "Composition", library: str, payload: str, name: str, *, as_json: bool
) -> "tuple[ContractionReport, ...]":
    """Applies a library to a payload, prints the result and what each contraction got; returns the latter.

    Both are MLIR text, ``name`` is the library's name for messages. Raises TunerError where one fails.
    """
    from tuner.core.dataclass_json import encode
    from tuner.library.contraction_report import contraction_reports
    from tuner.library.library_document import read_document

    problems = tuple(entry.problem for entry in read_document(library, name).entries)
    reports = call_in_child("apply", partial(contraction_reports, library, payload, problems), TIMEOUT_S)
    text = composition.apply(library, payload)
    for report in reports:
        print(report.text, file=sys.stderr)
    taken = sum(bool(report.entry) for report in reports)
    print(f"{name}: took {taken} of {len(reports)} contractions", file=sys.stderr)
    print_found(
        as_json,
        {"payload": text, "taken": taken, "contractions": [encode(report) for report in reports]},
        text.rstrip("\n"),
    )
    return reports


def _misfit(script: str, payload: str, name: str) -> str:
    """Returns one line that names the problem of an exported CPU script and what a payload has instead.

    "" for a script without a header, and where a contraction of the payload fits.
    """
    from tuner.library.contraction_report import payload_contractions
    from tuner.scripts.header import MARK, read_provenance

    if MARK not in script:
        return ""
    provenance = read_provenance(script, name)
    problem = provenance.problem.one
    if not provenance.target.is_on_cpu or provenance.threads > 1:
        return ""
    wanted = f"linalg.matmul {problem.shape} {problem.stored_dtype} {problem.layout}"
    found = call_in_child("apply", partial(payload_contractions, payload), TIMEOUT_S)
    if any(report.op == wanted and not report.reason for report in found):
        return ""
    listed = ", ".join(f"{report.op} in @{report.function}" for report in found[:SHOWN])
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{name}: is for {wanted}, the payload has {listed or 'no contraction'}{more}"
