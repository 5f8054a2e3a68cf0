"""Lines for people about compared values, and about a program of a dynamic size that ran at several sizes."""

from dataclasses import replace
from operator import attrgetter

from tuner.core.candidate import TargetName
from tuner.core.dynamic_sizes import sizes_text
from tuner.models.dynamic.checked_run import CheckedSize, SizedReport
from tuner.models.report import Comparison


def comparison_line(comparison: Comparison) -> str:
    """Returns a line about a compared value: its verdict, its name, its error and what is allowed."""
    error = f"error {comparison.max_error:.3g}, allowed {comparison.tolerance:.3g}"
    line = f"{comparison.verdict:8}{comparison.name}: {error}"
    if comparison.verdict == "unclear":
        return f"{line}, which zeros are within as well"
    return line


def sized_lines(target: TargetName, report: SizedReport) -> list[str]:
    """Returns the outcome of calls of a program at several sizes as lines."""
    separator = "; " if report.sizes.is_of_two else ", "
    compiled = separator.join(map(sizes_text, report.compiled_sizes))
    count = len(report.sizes.ladder)
    lines = [
        f"ran     @{report.entry} on {target}, {report.sizes.named_text}",
        f"sizes   of {count} static programs those of n = {compiled} were compiled and called",
    ]
    lines += [f"result  {result}" for result in report.results]
    for check in report.checks:
        lines += _check_lines(check)
    references = dict.fromkeys(map(attrgetter("reference"), report.checks))
    lines += [f"against {reference}" for reference in references]
    if report.whole:
        lines.append(f"whole   no fusions: {report.whole}")
    return lines


def _check_lines(check: CheckedSize) -> list[str]:
    lines = []
    for comparison in check.comparisons:
        sizes = f"n = {sizes_text(check.size)} in {sizes_text(check.compiled_size)}"
        name = f"{sizes}, {comparison.name}"
        lines.append(comparison_line(replace(comparison, name=name)))
    return lines
