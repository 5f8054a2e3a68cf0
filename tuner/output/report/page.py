"""A report as one HTML page that stands alone: style and script are in it, nothing is fetched."""

import base64
import hashlib
from importlib.resources import files

from tuner.core.moments import utc_text
from tuner.output.formatting import count_text
from tuner.output.report.card import card, verified_card
from tuner.output.report.content import Report, shown_trials
from tuner.output.report.element import Markup, element
from tuner.output.report.section import index_line, section

NOTHING = "Nothing was tuned yet: tuner tune matmul 512x512x512"
NOTHING_TIMED = "Nothing was timed."


def page_html(report: Report) -> str:
    """Returns the page. Every text is escaped, whatever a database holds."""
    return "<!doctype html>\n" + element("html", _head(), _body(report), lang="en") + "\n"


def _head() -> Markup:
    style, script = _asset("style.css"), _asset("script.js")
    policy = f"default-src 'none'; style-src '{_sha256(style)}'; script-src '{_sha256(script)}'"
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="color-scheme", content="light dark"),
        element("title", "tuner report"),
        element("style", style),
        element("script", script, type="module"),
    )


def _body(report: Report) -> Markup:
    sections = (section(each, shown_trials(each, len(report.runs))) for each in report.runs)
    left_out = report.runs_left_out
    words = f"{count_text(left_out, 'earlier run')} left out (--limit, or --run for one of them)."
    main = element(
        "main",
        _header(report),
        element("h2", "Best per problem", id="best"),
        _cards(report),
        *sections,
        element("p", words, class_="faint") if left_out else None,
    )
    return element("body", _index(report), main)


def _header(report: Report) -> Markup:
    told = (
        f"Made {utc_text(report.moment)} by tuner {report.version}. "
        "Times are medians of measured calls; intervals are 95 % of the median."
    )
    if report.database_words:
        told += f" Commands need{report.database_words} after them."
    return element("header", element("h1", "tuner report"), element("p", told, class_="faint"))


def _index(report: Report) -> Markup:
    lines = (index_line(each) for each in report.runs)
    return element("nav", element("a", element("b", "Best"), href="#best"), *lines, aria_label="Runs")


def _cards(report: Report) -> Markup:
    runs = frozenset(each.run.id for each in report.runs)
    cards = [card(each, runs) for each in report.best]
    untimed = (each for each in report.runs if each.counts.verified and not each.counts.measured)
    cards += [verified_card(each) for each in untimed]
    if cards:
        return element("div", *cards, class_="deck")
    return element("p", NOTHING_TIMED if report.runs else f"{NOTHING}{report.database_words}")


def _asset(name: str) -> Markup:
    return Markup(files(__package__).joinpath(name).read_text())


def _sha256(text: str) -> str:
    """Returns what a content security policy calls a style or a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
