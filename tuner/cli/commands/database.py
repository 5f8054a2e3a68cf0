"""``tuner db``: the results database itself."""

import click

from tuner.cli.options import database_option, debug_option, json_option, open_store, print_json
from tuner.cli.output.formatting import count_text


@click.group()
def db() -> None:
    """Looks after the results database.

    Example: tuner db info
    """


@db.command()
@database_option
@json_option
@debug_option
def upgrade(database: str | None, as_json: bool) -> None:
    """Brings the tables up to date; every command does so when it opens the database.

    Example: tuner db upgrade --db results.db
    """
    with open_store(database) as store:
        found = store.info()
    if as_json:
        print_json({"url": found.url, "revision": found.revision})
    else:
        print(f"{found.url}: revision {found.revision}")


@db.command()
@database_option
@json_option
@debug_option
def info(database: str | None, as_json: bool) -> None:
    """Tells where the database is and what it holds.

    Example: tuner db info --json
    """
    from tuner.cli.output.json_documents import database_document

    with open_store(database) as store:
        found = store.info()
    if as_json:
        print_json(database_document(found))
        return
    print(f"{found.url}: revision {found.revision}")
    print(f"{count_text(found.runs, 'run')}, {count_text(found.trials, 'trial')}")
    for problem in found.problems:
        print(f"  {problem}")


@db.command()
@click.argument("other", metavar="FILE")
@database_option
@json_option
@debug_option
def merge(other: str, database: str | None, as_json: bool) -> None:
    """Adds the runs of another database that are not here yet.

    Example: tuner db merge laptop.db
    """
    with open_store(database) as store:
        runs, trials = store.merge(other)
    if as_json:
        print_json({"runs": runs, "trials": trials})
    else:
        print(f"added {count_text(runs, 'run')} and {count_text(trials, 'trial')} of {other}")
