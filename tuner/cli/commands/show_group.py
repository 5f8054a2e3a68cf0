"""``tuner show group:N``: a group of runs, and the program that it tuned."""

from tuner.cli.options import open_known_store, print_found
from tuner.cli.screen import screen_columns


def show_group(group: int, database: str | None, as_json: bool) -> None:
    """Prints a group of runs, and the program whose groups of operations it tuned."""
    from tuner.output.group_result import group_lines
    from tuner.output.stored_program import shown_group_document, stored_program_lines
    from tuner.run_history.which_database import database_text
    from tuner.tuning.many_shapes.tuned_group import tuned_group

    with open_known_store(database) as store:
        tuned = tuned_group(store, group)
    result = tuned.group.result
    lines = group_lines(tuned, screen_columns(), database_text(database))
    program = [] if result is None else ["", *stored_program_lines(result, screen_columns())]
    print_found(as_json, shown_group_document(tuned), *lines, *program)
