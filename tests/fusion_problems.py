"""A small program, and its fusions as problems: a matmul with an epilogue, rows, a plain matmul."""

from functools import cache

import numpy as np

from tests.texts import text_beside
from tuner.core.interfaces import Script
from tuner.core.problem import Problem
from tuner.core.problem_classes import TextProblem
from tuner.mlir.fusions.facts import fusion_problem
from tuner.models.fusions.payload import NotFused
from tuner.models.fusions.pipeline import fuse_program
from tuner.runtime.cpu.host import describe_machine
from tuner.space.scripts.choice import first_configuration


def program_text(rows: int = 8, inner: int = 24, hidden: int = 32) -> str:
    """Returns y = softmax(relu(x W + b)) V as MLIR text, with weights as constants."""
    text = text_beside(__file__, "PROGRAM").replace("ROWS", str(rows))
    text = text.replace("INNER", str(inner)).replace("HIDDEN", str(hidden))
    return text + _resources({"w": inner * hidden, "v": inner * hidden, "b": hidden})


def _resources(sizes: dict[str, int]) -> str:
    """Returns the data of constants: 0.25, -0.5 and 0.75 again and again, as hexadecimal f32."""
    numbers = {name: np.resize(np.array([0.25, -0.5, 0.75], "<f4"), size) for name, size in sizes.items()}
    words = {name: f"0x04000000{each.tobytes().hex().upper()}" for name, each in numbers.items()}
    entries = ",\n".join(f'      {name}: "{word}"' for name, word in words.items())
    return "{-#\n  dialect_resources: {\n    builtin: {\n" + entries + "\n    }\n  }\n#-}\n"


@cache
def fusion_problems(text: str = "") -> tuple[TextProblem, ...]:
    """Returns the fusions of a program as problems, in order."""
    formed = fuse_program(text or program_text())
    assert not isinstance(formed, NotFused), formed.reason
    return tuple(fusion_problem(fusion) for fusion in formed.program.fusions)


def first_script(problem: Problem) -> Script:
    """Returns the script of a problem's initial configuration on this machine."""
    found = first_configuration(problem, describe_machine())
    assert found is not None
    return found[1]
