"""A report as one self-contained HTML page: style and script are inline, nothing is fetched."""

import base64
import functools
import hashlib

import jinja2

from tuner.core.moments import utc_text
from tuner.core.printable import printable_lines
from tuner.core.time_text import interval_text, seconds_text
from tuner.output.formatting import count_text, first_points_text, knobs_text, speed_text
from tuner.output.json_documents import gflop_per_s
from tuner.output.report.badge import badge_of
from tuner.output.report.card import card_of, pass_rows
from tuner.output.report.content import Report
from tuner.output.report.drawing import number
from tuner.output.report.failures import stage_bars
from tuner.output.report.group_section import choice_rows, group_section_of, share_text
from tuner.output.report.heat_map import level_name
from tuner.output.report.importance import importance_bars, knob_rows, strategy_rows
from tuner.output.report.program_section import program_section_of
from tuner.output.report.section import section_of
from tuner.output.result import counts_text, idle_text

# The filters that templates may apply to values.
FILTERS = (
    *(
        count_text,
        first_points_text,
        interval_text,
        knobs_text,
        seconds_text,
        speed_text,
        utc_text,
        gflop_per_s,
    ),
    *(badge_of, card_of, counts_text, idle_text, level_name, pass_rows, stage_bars),
    *(importance_bars, knob_rows, strategy_rows),
    *(choice_rows, share_text),
)


def page_html(report: Report) -> str:
    """Returns a report as one self-contained HTML page. Texts from the database are escaped."""
    templates = _templates()
    style, script = _source(templates, "style.css"), _source(templates, "script.js")
    page = templates.get_template("page.html").render(
        report=report,
        many=None if report.group is None else group_section_of(report.group),
        programs=[found for each in report.groups if (found := program_section_of(each)) is not None],
        sections=[section_of(each, len(report.runs)) for each in report.runs],
        shown={each.run.id for each in report.runs},
        style=style,
        script=script,
        policy=f"default-src 'none'; style-src '{_sha256(style)}'; script-src '{_sha256(script)}'",
    )
    return printable_lines(page)


@functools.cache
def _templates() -> jinja2.Environment:
    """Returns the template environment: values are escaped, coordinates are rounded to a tenth of a unit."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: number(value) if isinstance(value, float) else value,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {each.__name__: each for each in FILTERS}
    return made


def _source(templates: jinja2.Environment, name: str) -> str:
    assert templates.loader is not None
    return templates.loader.get_source(templates, name)[0]


def _sha256(text: str) -> str:
    """Returns the source expression of an inline style or script in a content security policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
