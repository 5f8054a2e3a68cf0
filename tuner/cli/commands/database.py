"""``tuner db``, which maintains the results database."""

from pathlib import Path

import click

from tuner.cli.main import Commands
from tuner.cli.options import (
    database_option,
    json_option,
    open_existing_store,
    open_known_store,
    open_store,
    print_found,
)
from tuner.core.passwords import masked
from tuner.core.serialization import count_text, encode, parse_moment
from tuner.results.output.json_documents import database_document


@click.group(cls=Commands)
def db() -> None:
    """Maintains the results database.

    Example: tuner db info
    """


@db.command()
@database_option
@json_option
def upgrade(database: str | None, as_json: bool) -> None:
    """Upgrades the tables to this version of tuner, as every command does that opens the database.

    Example: tuner db upgrade --db results.db
    """
    with open_store(database) as store:
        now = store.info()
    document = {"url": now.url, "revision": now.revision}
    print_found(as_json, document, f"{now.url}: revision {now.revision}")


@db.command()
@database_option
@json_option
def info(database: str | None, as_json: bool) -> None:
    """Prints the database's address and revision, and how many runs and trials it holds.

    Example: tuner db info --json
    """
    with open_known_store(database) as store:
        database_info = store.info()
    print_found(
        as_json,
        database_document(database_info),
        f"{database_info.url}: revision {database_info.revision}",
        f"{count_text(database_info.runs, 'run')}, {count_text(database_info.trials, 'trial')}",
        *(f"  {problem}" for problem in database_info.problems),
    )


@db.command()
@click.argument("other", metavar="FILE")
@database_option
@json_option
def merge(other: str, database: str | None, as_json: bool) -> None:
    """Adds the runs of another database, with their trials; completes runs that both databases have.

    Of a run in both, missing trials, rounds and times are added; of two outcomes of a trial the earlier one
    is kept, of two timings the one with the narrower interval. A repeated merge adds nothing.

    Example: tuner db merge laptop.db
    """
    with open_store(database) as store:
        runs, trials = store.merge(other)
    added = f"added {count_text(runs, 'run')} and {count_text(trials, 'trial')} of {masked(other)}"
    print_found(as_json, {"runs": runs, "trials": trials}, added)


@db.command()
@click.option("--before", metavar="DATE", help="Only of runs begun before then, UTC: 2026-01-31.")
@database_option
@json_option
def prune(before: str | None, database: str | None, as_json: bool) -> None:
    """Deletes those trials of finished runs that no result needs, with their scripts and programs.

    Kept are the trials that were measured again and the fastest of each run, verified trials where nothing is
    timed, and trials whose results others reuse: every best trial stays. Later runs try failures again.

    Example: tuner db prune --before 2026-01-01
    """
    moment = None if before is None else parse_moment(before, "before")
    with open_existing_store(database) as store:
        pruned = store.prune(moment)
    parts = (count_text(pruned.scripts, "script"), count_text(pruned.programs, "program"))
    deleted = f"deleted {count_text(pruned.trials, 'trial')}, {' and '.join(parts)}"
    print_found(as_json, encode(pruned), deleted)


@db.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@database_option
@json_option
def backup(file: Path, database: str | None, as_json: bool) -> None:
    """Copies the database to a new SQLite file; runs may use the database meanwhile.

    Example: tuner db backup results.backup.db
    """
    with open_existing_store(database) as store:
        store.backup(file)
        url = store.info().url
    print_found(as_json, {"file": str(file), "url": url}, f"wrote {file}, a copy of {url}")
