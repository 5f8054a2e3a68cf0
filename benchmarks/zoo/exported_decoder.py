"""Tokens that the two programs of ``examples/exported_language_model.py`` make: by numpy alone, and in C."""

import subprocess
import sys
from pathlib import Path

import tuner
from tuner.models.run.exported import FORMAT, read_document, read_program

STEP, PROMPT = "step", "prompt"  # folders of the programs
BY_NUMPY = """
import sys

for name in ("torch", "torch_mlir", "mlir", "jinja2", "sqlalchemy"):
    sys.modules[name] = None  # cannot be imported
import numpy as np
import tuner

folder, count, *tokens = sys.argv[1:]
prompt, step = (tuner.load(f"{folder}/{name}") for name in ("prompt", "step"))
caches = [np.zeros(argument.shape, argument.dtype) for argument in step.arguments[1:]]
logits = prompt(np.array([tokens]).astype(np.int64), *caches)
for _ in range(int(count)):
    token = logits.reshape(-1).astype(np.float32).argmax()
    print(token)
    logits = step(token.reshape(1, 1), *caches)
"""
IN_C = """
#include "prompt.h"
#include "step.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float number(const void *logits, long at) {{
  if ({size} == 4) return ((const float *)logits)[at];
  unsigned bits = (unsigned)((const unsigned short *)logits)[at] << 16;  /* of bf16 */
  float value;
  memcpy(&value, &bits, 4);
  return value;
}}

int main(int count, char **words) {{
  struct prompt_object *prompt;
  struct step_object *step;
  if (prompt_create(&prompt) != PROMPT_OK || step_create(&step) != STEP_OK) return 1;
  int64_t tokens[{prompt}], token = 0;
  for (int at = 0; at < {prompt}; at++) tokens[at] = atoll(words[2 + at]);
  void *logits = malloc({vocabulary} * {size});
  {caches}
  if (count != 2 + {prompt} || prompt_run(prompt, tokens, {names}, logits) != PROMPT_OK) return 2;
  for (int left = atoi(words[1]); left; left--) {{
    token = 0;
    for (long at = 1; at < {vocabulary}; at++)
      if (number(logits, at) > number(logits, token)) token = at;
    printf("%lld\\n", (long long)token);
    if (step_run(step, &token, {names}, logits) != STEP_OK) return 3;
  }}
}}
"""


def tokens_by_numpy(folder: Path, prompt: list[int], count: int) -> list[int]:
    """Returns the tokens that the exported programs make in a process without PyTorch."""
    command = [sys.executable, "-c", BY_NUMPY, str(folder), str(count), *map(str, prompt)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return list(map(int, printed.split()))


def tokens_in_c(folder: Path, prompt: list[int], count: int) -> list[int]:
    """Returns the tokens that a C program makes by the libraries of the exported programs."""
    library = folder / "c"
    for name in (PROMPT, STEP):
        tuner.c_library(folder / name, library, prefix=name)
    document = read_document(folder / STEP, (FORMAT,))
    code = read_program(folder / STEP, document).code
    *_, vocabulary = code.results[0].shape
    numbers = range(len(code.arguments) - 1)
    types = code.arguments[1:]
    caches = [
        f"void *cache_{at} = calloc({type_.bytes}, 1);" for at, type_ in zip(numbers, types, strict=True)
    ]
    source = IN_C.format(
        prompt=len(prompt),
        size=code.results[0].bytes // vocabulary,
        vocabulary=vocabulary,
        caches="\n  ".join(caches),
        names=", ".join(f"cache_{at}" for at in numbers),
    )
    (library / "main.c").write_text(source)
    objects = [f"{name}{end}" for name in (PROMPT, STEP) for end in (".c", "_program.o")]
    subprocess.run(["cc", "-O2", "main.c", *objects, "-o", "main"], cwd=library, check=True)
    command = [str(library / "main"), str(count), *map(str, prompt)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return list(map(int, printed.split()))
