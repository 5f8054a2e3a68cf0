"""The steps of a bound script that have no result, and the script without one of them."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

SEQUENCE_END = re.compile(r"^    transform\.yield$", re.MULTILINE)
BLOCK = re.compile(
    r"^ {4,6}transform\.apply_patterns to (%\w+) \{.*?\}(?: \{apply_cse\})? : \S+\n", re.MULTILINE | re.DOTALL
)
PATTERN = re.compile(r"^ {6,8}transform\.apply_patterns\.(\S[^\n]*)\n", re.MULTILINE)
ONLY_PATTERN = re.compile(r"\{ transform\.apply_patterns\.([^\n}]*?) \}")
OPS = (
    "transform.include @simplify",
    "transform.include @clean",
    "transform.include @fold",
    "transform.apply_licm",
    "transform.apply_cse",
    "transform.apply_dce",
    "transform.bufferization.buffer_loop_hoisting",
    "transform.structured.eliminate_empty_tensors",
    "transform.memref.erase_dead_alloc_and_stores",
    "transform.loop.hoist_loop_invariant_subsets",
)
OP = re.compile(rf"^ {{4,6}}(?:{'|'.join(map(re.escape, OPS))})\b[^\n]*\n", re.MULTILINE)
OWN_OP = re.compile(r'^    "tuner\.(\w+)"[^\n]*\n(?:      [^\n]*\n)*', re.MULTILINE)
CSE = re.compile(r" \{apply_cse\}")
COPIES = re.compile(r',? ?memcpy_op = "linalg\.copy"')
NO_ATTRIBUTES = re.compile(r" \{\}| \{ *\}(?= :)")
COMMENT = re.compile(r"^ {4,6}// (\D*?)(?: of\b| \d|[.,:;]|\n)", re.MULTILINE)
SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class Step:
    """A step of a script: a part of its text that can be left out."""

    name: str  # what it is, and which of those: "buffer_loop_hoisting", "canonicalization #2"
    start: int
    end: int

    def left_out(self, script: str) -> str:
        """Returns the script without the step."""
        return NO_ATTRIBUTES.sub("", script[: self.start] + script[self.end :])


def steps_of(script: str) -> tuple[Step, ...]:
    """Returns the steps of the script's first sequence that may be left out, from first to last.

    A pattern of ``apply_patterns`` is a step, and so is each whole ``apply_patterns``. The name of a step
    begins with the first words of the comment that it stands below; equal names are numbered.
    """
    end = SEQUENCE_END.search(script)
    body = script if end is None else script[: end.start()]
    found = [
        Step(f"{_section(body, step.start)}: {step.name}", step.start, step.end)
        for step in sorted(_found(body), key=lambda step: (step.start, -step.end))
    ]
    names = Counter(step.name for step in found)
    numbers: Counter[str] = Counter()
    numbered = []
    for step in found:
        numbers[step.name] += 1
        number = f" #{numbers[step.name]}" if names[step.name] > 1 else ""
        numbered.append(Step(step.name + number, step.start, step.end))
    return tuple(numbered)


def _found(body: str) -> Iterator[Step]:
    for block in BLOCK.finditer(body):
        patterns = [*PATTERN.finditer(block[0]), *ONLY_PATTERN.finditer(block[0])]
        names = [_name(match[1]) for match in patterns]
        yield Step(f"[{' '.join(names)}]", *block.span())
        if len(patterns) > 1:
            for match, name in zip(patterns, names, strict=True):
                yield Step(name, block.start() + match.start(), block.start() + match.end())
        for match in CSE.finditer(block[0]):
            yield Step("apply_cse", block.start() + match.start(), block.start() + match.end())
    for match in OP.finditer(body):
        yield Step(_name(match[0]), *match.span())
    for match in OWN_OP.finditer(body):
        yield Step(f"tuner.{match[1]}", *match.span())
    for match in COPIES.finditer(body):
        yield Step("memcpy_op", *match.span())


def _section(body: str, place: int) -> str:
    """Returns the first words of the last comment before a place, up to a number."""
    comments = COMMENT.findall(body, 0, place)
    return comments[-1].strip() if comments else "begin"


def _name(text: str) -> str:
    """Returns the name of a pattern or an operation: its last words without handles and types."""
    words = SPACE.split(text.strip().removeprefix("transform."))
    name = words[1] if words[0] == "include" else words[0]
    return name.rpartition(".")[2] if name.startswith(("structured.", "bufferization.", "loop.")) else name
