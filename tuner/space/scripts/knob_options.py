"""The knobs of an exported script: constants, or options, values that change nothing else in the script.

Some values also decide other steps: which loops are peeled, how often a loop is unrolled. So a value is an
option only where the strategy, bound with that value, gives the same text except for the knob's line.
"""

import re

from tuner.core.candidate import Candidate
from tuner.core.errors import CandidateError
from tuner.space.scripts.strategy import Binder
from tuner.space.search_space import SearchSpace

KNOB_LINE = re.compile(
    r"^(?P<begin>(?P<handle> *%\w+) = "
    r'transform\.tune\.knob<"(?P<name>\w+)"> = (?P<value>\d+) from options = )\[[\d, ]+\]',
    re.MULTILINE,
)


def with_constants(script: str) -> str:
    """Returns a bound script with plain constants in place of knobs, for tools without ``transform.tune``."""
    return KNOB_LINE.sub(r"\g<handle> = transform.param.constant \g<value> : i64", script)


def with_knob_options(script: str, candidate: Candidate, binder: Binder, space: SearchSpace) -> str:
    """Returns a candidate's bound script in which each knob lists the values that change nothing else.

    ``binder`` and ``space`` are those of the candidate's strategy. A value that breaks a constraint or a
    preference of the space is not listed. A script that the binder does not write today is returned as it is.
    """
    if _bound(candidate, candidate, binder, space) != script:
        return script
    choices, chosen = {knob.name: knob.choices for knob in space.knobs}, dict(candidate.choices)

    def listed(knob: re.Match[str]) -> str:
        name, kept = knob["name"], []
        # a line whose value the strategy computed, such as the step of wgmma's remainder loop along K, stays
        for value in choices.get(name, ()) if str(chosen.get(name)) == knob["value"] else ():
            changed = Candidate.of(candidate.strategy, {**chosen, name: value})
            if _rest(_bound(changed, candidate, binder, space), name) == _rest(script, name):
                kept.append(str(value))
        return f"{knob['begin']}[{', '.join(kept)}]" if kept else knob[0]

    return KNOB_LINE.sub(listed, script)


def _bound(changed: Candidate, candidate: Candidate, binder: Binder, space: SearchSpace) -> str:
    if changed != candidate and (space.violated(changed) or space.demoted_by(changed)):
        return ""
    try:
        return binder.bind(changed).text
    except CandidateError:
        return ""


def _rest(script: str, knob: str) -> list[str]:
    lines = (line.strip() for line in script.splitlines())
    return [line for line in lines if not line.startswith("//") and f'knob<"{knob}">' not in line]
