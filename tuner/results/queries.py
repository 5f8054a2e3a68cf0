"""Queries for past runs and trials, from the conditions that a user names."""

import datetime
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from tuner.core.dtypes import IEEE, INPUT_DTYPES, MATH, OUTPUTS, SUM_DTYPES, dtype_name, dtype_of_math
from tuner.core.epilogues import EPILOGUES
from tuner.core.errors import unknown_value
from tuner.core.fusions import QUANTIZED
from tuner.core.problem import ALIGNMENTS, CACHES, LAYOUTS, OPERATIONS, SCALED, require_choice
from tuner.core.problem_text import shape_text
from tuner.core.queries import RunQuery, TaskQuery, TrialQuery
from tuner.core.serialization import parse_moment, with_zone
from tuner.core.typed_arguments import typed

PROBLEM_OPTIONS = {  # condition -> allowed values
    "operation": (*OPERATIONS, SCALED, QUANTIZED),
    "dtype": tuple(INPUT_DTYPES),
    "layout": LAYOUTS,
    "epilogue": tuple(EPILOGUES),
    "output": ("", *OUTPUTS),
    "align": ALIGNMENTS,
    "cache": CACHES,
}
ASKED_TYPES: Mapping[str, Any] = {  # of conditions that have more forms than the fields of a query
    "shape": str | tuple[int, ...] | None,
    "dtype": object,  # numpy's types as well
    "output": object,
    "math": str | None,  # how f32 is multiplied: decides the dtype
    "since": datetime.datetime | str | None,
}


def trial_query(**conditions: Any) -> TrialQuery:
    """Returns the query for trials with these conditions: ``trial_query(dtype="f32", since="2026-01-31")``.

    Names are ``op`` and the fields of TrialQuery and TaskQuery. Raises UsageError for other names and for
    values of a wrong type or form.
    """
    return TrialQuery(**_conditions("history", TrialQuery, conditions))


def run_query(**conditions: Any) -> RunQuery:
    """Returns the query for runs with these conditions: ``run_query(op="matmul", status="done", limit=5)``.

    Names are ``op`` and the fields of RunQuery and TaskQuery. Raises UsageError for other names and for
    values of a wrong type or form.
    """
    return RunQuery(**_conditions("runs", RunQuery, conditions))


def _conditions(asker: str, query: type[TrialQuery | RunQuery], conditions: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of ``query``: its TaskQuery as ``task``, and the other conditions.

    Changes ``conditions``. ``asker`` begins the message of a UsageError for an unknown name.
    """
    if "op" in conditions:  # as on the command line
        conditions["operation"] = conditions.pop("op")
    types = _types_of_conditions(query)
    for name, value in conditions.items():
        if name not in types:
            raise unknown_value(asker, name, tuple(types))
        conditions[name] = typed(name, value, types[name])
    if isinstance(conditions.get("shape"), tuple | list):
        conditions["shape"] = "x".join(map(str, conditions["shape"]))
    _choose_dtype(conditions)
    conditions |= problem_conditions(conditions)
    _make_moment(conditions)
    names = [field.name for field in fields(TaskQuery) if field.name in conditions]
    task = TaskQuery(**{name: conditions.pop(name) for name in names})
    return {"task": task, **conditions}


def _types_of_conditions(query: type[TrialQuery | RunQuery]) -> dict[str, Any]:
    types: dict[str, Any] = {}
    for field in (*fields(TaskQuery), *fields(query)):
        types[field.name] = ASKED_TYPES.get(field.name, field.type)
    # a user names the fields of the task, not the task; ``math`` is no field: it decides the dtype
    del types["task"]
    types["math"] = ASKED_TYPES["math"]
    return types


def _choose_dtype(conditions: dict[str, Any]) -> None:
    """Replaces the condition ``math`` by the dtype that it means, in place."""
    math = conditions.pop("math", None)
    if math is not None:
        conditions["dtype"] = dtype_of_math(dtype_name(conditions.get("dtype") or MATH[IEEE]), math)


def _make_moment(conditions: dict[str, Any]) -> None:
    """Makes ``since`` a time with its zone, in place."""
    match conditions.get("since"):
        case str(text):
            conditions["since"] = parse_moment(text)
        case datetime.datetime() as moment:
            conditions["since"] = with_zone(moment)


def problem_conditions(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the conditions on the problem that are not None, with values as ``Problem`` writes them.

    Raises UsageError for a value that no problem has.
    """
    options = {name: conditions[name] for name in PROBLEM_OPTIONS if conditions.get(name) is not None}
    for name in {"dtype", "output"} & options.keys():
        options[name] = dtype_name(options[name])
    if options.get("output") in SUM_DTYPES:
        options["output"] = ""  # a Problem has "" where C has the type of the sums
    for name, value in options.items():
        require_choice(name, value, PROBLEM_OPTIONS[name])
    if conditions.get("shape") is not None:
        options["shape"] = shape_text(options.get("operation"), conditions["shape"])
    return options
