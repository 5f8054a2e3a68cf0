"""A plain ``.mlir`` schedule as a strategy: its knobs read from the IR, a candidate written into it.

A knob is a ``transform.tune.knob``, or the choice of a region of ``transform.tune.alternatives``; ops of the
same name are one knob. What the script selects already is a knob with that one choice.
"""

from tuner.errors import CandidateError, Stage, UsageError
from tuner.expression import LENGTH_LIMIT, Expression, parse
from tuner.mlir import constraints, interpreter, sites
from tuner.mlir.bindings import ir
from tuner.mlir.sites import Site
from tuner.payload import PANELS_COMMENT
from tuner.space import Candidate, Knob, Value


class Schedule:
    """One script, parsed once: that takes some 20 ms, binding a candidate then less than one."""

    def __init__(self, text: str, name: str = "script") -> None:
        """Reads the text; ``name`` is for messages. Raises UsageError with MLIR's first complaint."""
        self._panels = "".join(f"{line}\n" for line in text.splitlines() if line.startswith(PANELS_COMMENT))
        self._context = interpreter.new_context()
        with self._context, ir.Location.unknown():
            try:
                self._module = interpreter.parse(text, name)
            except CandidateError as error:
                raise UsageError(error.reason) from error
            self._sites = sites.read_sites(self._module.operation, name)
            self.knobs = sites.knobs_of(self._sites)
            self._constrained = constraints.read_constraints(self._module.operation, self.knobs, name)

    @property
    def constraints(self) -> tuple[Expression, ...]:
        """Returns what the script asserts of its knobs."""
        return tuple(each for op in self._constrained for each in op.assertions)

    @property
    def idle(self) -> tuple[Expression, ...]:
        """Returns constraints that keep a knob at its first choice where no region that is run has it.

        Without them, candidates would differ in nothing but knobs that mean nothing.
        """
        texts = ((knob, _runs_or_first(knob, self._sites)) for knob in self.knobs)
        return tuple(
            parse(text, f"knob {knob.name}") for knob, text in texts if text and len(text) <= LENGTH_LIMIT
        )

    def select(self, candidate: Candidate) -> str:
        """Returns the script with every choice made. Raises CandidateError(BIND) for an illegal one."""
        values = dict(candidate.choices)
        self._require(values)
        with self._context, ir.Location.unknown():
            bound = self._module.operation.clone()
            root = bound.operation
            for site, op in zip(self._sites, sites.decided(root), strict=True):
                op.attributes[site.attribute] = site.option(values[site.name])
            constraints.fold(root, self._constrained, values)
            return f"{self._panels}{root}"

    def _require(self, values: dict[str, Value]) -> None:
        for knob in self.knobs:
            if values.get(knob.name) not in knob.choices:
                found = repr(values[knob.name]) if knob.name in values else "no value"
                allowed = ", ".join(str(choice) for choice in knob.choices[:20])
                raise CandidateError(Stage.BIND, f"knob {knob.name!r}: found {found}, allowed {allowed}")
        known = [knob.name for knob in self.knobs]
        for name in values:
            if name not in known:
                allowed = ", ".join(known) or "none: the script has no knobs"
                raise CandidateError(Stage.BIND, f"knob: found {name!r}, allowed {allowed}")
        for each in self.constraints:
            if not each.evaluate(values):
                raise CandidateError(Stage.BIND, f"{each.where}: {each.text!r} does not hold")


def _runs_or_first(knob: Knob, all_sites: tuple[Site, ...]) -> str | None:
    """Returns the expression; None for a knob that always means something or has one choice."""
    uses = [site.conditions for site in all_sites if site.name == knob.name]
    if len(knob.choices) == 1 or not all(uses) or not sites.is_word(knob.name):
        return None
    runs = " or ".join(
        f"({' and '.join(each)})" if len(each) > 1 else each[0] for each in dict.fromkeys(uses)
    )
    return f"{runs} or {knob.name} == {knob.choices[0]!r}"
