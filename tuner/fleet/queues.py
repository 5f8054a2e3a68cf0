"""The queue engine: Procrastinate, whose jobs are rows of the history's database.

No other file knows it but its connector. A queue is served by nodes that are equal for its jobs. A job
carries a piece of work as JSON. What is done within a transaction of ours goes through the engine's own
functions of the database, by their versions.
"""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tuner.core.address_secrets import without_secrets
from tuner.core.dataclass_json import encode
from tuner.core.errors import UsageError
from tuner.core.target_name import TargetName
from tuner.fleet.server import told_plainly
from tuner.fleet.work import FleetWork, Key, to_json, work_from_json

if TYPE_CHECKING:
    from procrastinate import App

    from tuner.fleet.server import Connection

TABLES: Final = ("procrastinate_jobs", "procrastinate_workers", "procrastinate_events")
UNLINKED: Final = "procrastinate_periodic_defers"  # a trigger updates its rows where a job is deleted
INSTALL_LOCK: Final = 0x666C656574  # advisory lock: "fleet"
TASK: Final = "work"  # the engine's name of all that is done
ATTEMPTS: Final = 3  # of a job that its node could not do, or vanished under
RETRY_S: Final = 1  # until a job that a node gave back may be taken again
POLL_S: Final = 2.0  # between two looks for work, if the server's wake-up was lost
CANCEL_POLL_S: Final = 2.0  # the same for jobs that are taken back
KEPT_S: Final = 86400.0  # that the engine remembers a worker which says nothing: its jobs name it
UNDER_WAY: Final = ("todo", "doing")


@dataclass(frozen=True)
class Service:
    """A queue that a node serves."""

    queue: str
    at_once: int  # jobs


@dataclass(frozen=True)
class Job:
    """A piece of work in a queue."""

    id: int
    work: FleetWork
    attempts: int  # that came to nothing


@dataclass(frozen=True)
class Waiting:
    """What a queue has."""

    queue: str
    todo: int
    doing_count: int
    example: FleetWork  # whose turn it is, or one that is worked at
    doing: FleetWork | None
    runs: tuple[str, ...]  # uuids of those whose jobs wait, the one whose turn it is first
    doing_s: float  # since the one that is worked at longest was begun


def install_engine(connection: "Connection") -> None:
    """Makes the engine's tables and functions where they are missing."""
    from procrastinate.schema import SchemaManager

    with told_plainly(), connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (INSTALL_LOCK,))
        found = connection.execute("SELECT to_regclass(%s)", (TABLES[0],)).fetchone()
        if found == (None,):
            connection.execute(SchemaManager.get_schema())


def defer(connection: "Connection", queue: str, work: FleetWork, priority: int, *, alone: bool) -> None:
    """Puts work into a queue; of what is to be ``alone`` one piece is done at a time, in the whole fleet."""
    connection.execute(
        "SELECT procrastinate_defer_jobs_v1(ARRAY[ROW(%s, %s, %s, %s, NULL, %s::jsonb, NULL)]"
        "::procrastinate_job_to_defer_v1[])",
        (queue, TASK, priority, queue if alone else None, json.dumps(to_json(work))),
    )


def under_way(connection: "Connection", run: str) -> set[tuple[int, str]]:
    """Returns numbers and stages of the jobs of a run that wait or are worked at."""
    rows = connection.execute(
        "SELECT (args->>'number')::bigint, args->>'stage' FROM procrastinate_jobs "
        "WHERE args->>'run' = %s AND status::text = ANY(%s)",
        (run, list(UNDER_WAY)),
    )
    return {(number, stage) for number, stage in rows}


def take_back(connection: "Connection", run: str) -> int:
    """Takes the jobs of a run out of their queues, and asks nodes to drop what they have begun."""
    with connection.transaction():
        row = connection.execute(
            "SELECT count(procrastinate_cancel_job_v1(id, true, true)) FROM procrastinate_jobs "
            "WHERE args->>'run' = %s AND status::text = ANY(%s)",
            (run, list(UNDER_WAY)),
        ).fetchone()
    return int(str(row[0])) if row else 0


def drop_waiting(connection: "Connection", key: Key) -> None:
    """Takes a job out of its queue if nobody has begun it."""
    connection.execute(
        "SELECT procrastinate_cancel_job_v1(id, false, true) FROM procrastinate_jobs WHERE args->>'run' = %s "
        "AND (args->>'number')::bigint = %s AND args->>'stage' = %s AND status = 'todo'",
        key,
    )


def lost_jobs(connection: "Connection", lease_s: float) -> tuple[Job, ...]:
    """Returns the jobs whose node has said nothing for longer than its lease, or is gone."""
    rows = connection.execute(
        "SELECT jobs.id, args, attempts FROM procrastinate_jobs AS jobs LEFT JOIN procrastinate_workers "
        "AS workers ON workers.id = worker_id WHERE status = 'doing' "
        "AND (worker_id IS NULL OR workers.last_heartbeat < now() - make_interval(secs => %s))",
        (lease_s,),
    )
    return _jobs(rows)


def given_up_jobs(connection: "Connection") -> tuple[Job, ...]:
    """Returns the jobs that nodes failed to do too often."""
    return _jobs(
        connection.execute("SELECT id, args, attempts FROM procrastinate_jobs WHERE status = 'failed'")
    )


def give_back(connection: "Connection", job: Job) -> None:
    """Lets another node do a job, and wakes those that can: the engine wakes them for new jobs only."""
    connection.execute("SELECT procrastinate_retry_job_v2(%s, now(), NULL, NULL, NULL)", (job.id,))
    connection.execute(
        "SELECT pg_notify('procrastinate_queue_v1#' || queue_name, json_build_object('type', 'job_inserted', "
        "'job_id', id)::text) FROM procrastinate_jobs WHERE id = %s",
        (job.id,),
    )


def delete(connection: "Connection", job: Job) -> None:
    """Deletes a job, whatever became of it."""
    connection.execute("DELETE FROM procrastinate_jobs WHERE id = %s", (job.id,))


def delete_ended(connection: "Connection") -> None:
    """Deletes the jobs that were taken back while a node was at them."""
    connection.execute("DELETE FROM procrastinate_jobs WHERE status IN ('aborted', 'cancelled', 'succeeded')")


def waiting(connection: "Connection") -> tuple[Waiting, ...]:
    """Returns what each queue has, by name; a queue of another tuner's version is not told of."""
    rows = connection.execute(
        "SELECT queue_name, count(*) FILTER (WHERE status = 'todo'), "
        "count(*) FILTER (WHERE status = 'doing'), (array_agg(args ORDER BY priority DESC, id))[1], "
        "(array_agg(args ORDER BY id) FILTER (WHERE status = 'doing'))[1], "
        "array_agg(args->>'run' ORDER BY priority DESC, id) FILTER (WHERE status = 'todo'), "
        "coalesce(max(extract(epoch FROM now() - begun))::float8, 0) FROM procrastinate_jobs AS jobs "
        "LEFT JOIN LATERAL (SELECT max(at) AS begun FROM procrastinate_events WHERE job_id = jobs.id "
        "AND type = 'started' AND jobs.status = 'doing') AS started ON true "
        "WHERE status::text = ANY(%s) GROUP BY queue_name ORDER BY queue_name",
        (list(UNDER_WAY),),
    )
    return tuple(
        Waiting(
            queue=queue,
            todo=todo,
            doing_count=doing_count,
            example=work,
            doing=None if doing is None else _read(doing),
            runs=tuple(dict.fromkeys(runs or ())),
            doing_s=doing_s,
        )
        for queue, todo, doing_count, example, doing, runs, doing_s in rows
        if (work := _read(example)) is not None
    )


def makers(connection: "Connection", target: TargetName) -> tuple[tuple[str, int], ...]:
    """Returns what is to make the code of the jobs for a target, and how many jobs those are."""
    rows = connection.execute(
        "SELECT args->>'maker', count(*) FROM procrastinate_jobs WHERE status::text = ANY(%s) "
        "AND args->'target' = %s::jsonb GROUP BY 1 ORDER BY 1",
        (list(UNDER_WAY), json.dumps(encode(target))),
    )
    return tuple((maker, count) for maker, count in rows)


async def serve(
    url: str,
    services: tuple[Service, ...],
    do: Callable[[FleetWork], Awaitable[None]],  # CancelledError: the job was taken back
    beat_s: float,
    ending: asyncio.Event,  # nothing more is begun
) -> None:
    """Works at jobs until it is to end; what is begun is done. Raises OSError where no server answers."""
    import procrastinate
    import psycopg

    from tuner.fleet.engine_connector import EngineConnector, require_server

    app = procrastinate.App(connector=EngineConnector(url, 1 + len(services), ending))

    @app.task(name=TASK, retry=procrastinate.RetryStrategy(max_attempts=ATTEMPTS, wait=RETRY_S))
    async def task(**arguments: Any) -> None:
        await do(work_from_json(arguments))

    try:
        await require_server(url)
        async with app.open_async():
            await _until(ending, [_served(app, service, beat_s) for service in services])
    except* (procrastinate.exceptions.ConnectorException, psycopg.Error) as group:
        line = str(group.exceptions[0]).partition("\n")[0]
        raise ConnectionError(without_secrets(line, url)) from group


async def _served(app: "App", service: Service, beat_s: float) -> None:
    await app.run_worker_async(
        queues=[service.queue],
        concurrency=service.at_once,
        fetch_job_polling_interval=POLL_S,
        abort_job_polling_interval=CANCEL_POLL_S,
        listen_notify=True,
        delete_jobs="successful",
        update_heartbeat_interval=beat_s,
        stalled_worker_timeout=KEPT_S,
        install_signal_handlers=False,
    )


async def _until(ending: asyncio.Event, works: list[Any]) -> None:
    """Runs until one ends or all are to end; a worker that is cancelled finishes what it has."""
    tasks = [asyncio.create_task(work) for work in works]
    end = asyncio.create_task(ending.wait())
    await asyncio.wait([*tasks, end], return_when=asyncio.FIRST_COMPLETED)
    for task in (*tasks, end):
        task.cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    with contextlib.suppress(asyncio.CancelledError):
        await end
    for problem in found:
        if isinstance(problem, Exception):
            raise problem


def _jobs(rows: Any) -> tuple[Job, ...]:
    found = ((number, _read(args), attempts) for number, args, attempts in rows)
    return tuple(Job(number, work, attempts) for number, work, attempts in found if work is not None)


def _read(args: Any) -> FleetWork | None:
    """Returns a piece of work; None for one of another tuner's version, which its own drivers look after."""
    try:
        return work_from_json(args)
    except UsageError:
        return None
