"""The job queues of a fleet, by Procrastinate's public API, with its tables in the results database.

A job carries a piece of work as JSON. All nodes that serve a queue are equivalent for its jobs.
"""

import asyncio
import collections
import contextlib
import datetime
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tuner.core.candidate import TargetName
from tuner.core.errors import Failure, Stage, UsageError
from tuner.core.passwords import without_secrets
from tuner.core.serialization import encode
from tuner.elsewhere.fleet import tables
from tuner.elsewhere.fleet.server import plain_errors
from tuner.elsewhere.fleet.work import FleetWork, Outcome, Service, to_json, work_from_json

if TYPE_CHECKING:
    from procrastinate import App
    from procrastinate import jobs as engine
    from procrastinate.manager import JobManager

    from tuner.elsewhere.fleet.server import Connection


# Rights that Procrastinate's functions need, which run with the rights of their caller, for a node.
GRANTS: Final = (
    ("SELECT, INSERT, UPDATE, DELETE", "procrastinate_jobs"),
    ("SELECT, INSERT, UPDATE, DELETE", "procrastinate_workers"),
    ("SELECT, INSERT, UPDATE, DELETE", "procrastinate_events"),
    ("SELECT, UPDATE", "procrastinate_periodic_defers"),  # updated by a trigger on deleted jobs
)
INSTALL_LOCK: Final = 0x666C656574  # advisory lock: "fleet"
TASK: Final = "work"  # Procrastinate's name of the task of all jobs
ATTEMPTS: Final = 3  # of a job whose node vanished; retries of a job whose node raised an error
RETRY_S: Final = 1  # until a job that a node gave back may be taken again
POLL_S: Final = 2.0  # between two polls for work, if the server's notification was lost
CANCEL_POLL_S: Final = 2.0  # the same for cancelled jobs
KEPT_S: Final = 86400.0  # that Procrastinate keeps a worker without heartbeats: jobs refer to it
DOING: Final = "doing"  # job states of Procrastinate
UNDER_WAY: Final = ("todo", DOING)
FAILED: Final = "failed"
AT_ONCE: Final = datetime.datetime.fromtimestamp(0, datetime.UTC)  # whatever the server's clock says
Result = TypeVar("Result")
LOCK: Final = 0x7377656570  # advisory lock: "sweep"
KEPT_DAYS: Final = 7  # of blobs, outcomes, and nodes that are gone
SWEEPER: Final = "sweep"  # in place of a node's name, in outcomes of jobs that were given up


def seconds_since_start(connection: "Connection", jobs: list[int]) -> dict[int, float]:
    """Returns, by job id, the seconds since the latest attempt began; jobs that wait are missing."""
    rows = connection.execute(
        "SELECT job_id, extract(epoch FROM now() - max(at))::float8 FROM procrastinate_events "
        "WHERE type = 'started' AND job_id = ANY(%s) GROUP BY job_id",
        (jobs,),
    )
    return {int(job): float(seconds) for job, seconds in rows}


@dataclass(frozen=True)
class Job:
    """A job of a queue: its piece of work, and how many attempts at it have failed."""

    id: int
    work: FleetWork
    attempts: int  # that failed
    has_failed: bool  # its nodes could not do it; else a node has begun it


@dataclass(frozen=True)
class Waiting:
    """The jobs of one queue: how many wait, how many are being done, their runs (uuids), and examples."""

    queue: str
    todo: int
    doing_count: int
    example: FleetWork  # of the job with the highest priority, waiting or being done
    doing: FleetWork | None
    runs: tuple[str, ...]  # uuids of runs whose jobs wait, that of the next job first
    doing_s: float  # since the oldest job that is being done was begun


def install_queue(connection: "Connection") -> None:
    """Creates Procrastinate's tables and functions if they are missing."""
    from procrastinate.schema import SchemaManager

    with plain_errors(), connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (INSTALL_LOCK,))
        if not _manager(connection).check_connection():
            connection.execute(SchemaManager.get_schema())


def defer(connection: "Connection", queue: str, work: FleetWork, priority: int, *, alone: bool) -> int:
    """Queues a piece of work; returns the job's id. A larger ``priority`` comes first.

    ``alone``: jobs of this queue are done one at a time.
    """
    from procrastinate.jobs import Job as QueueJob

    job = QueueJob(
        queue=queue,
        task_name=TASK,
        priority=priority,
        lock=queue if alone else None,
        queueing_lock=None,
        task_kwargs=to_json(work),
    )
    return _id(_manager(connection).defer_job(job))


def under_way(connection: "Connection", run: str) -> dict[tuple[int, str], int]:
    """Returns the jobs of a run (uuid) that wait or are being done: (trial number, stage) -> job id."""
    jobs: Any = ((_id(job), job.task_kwargs) for job in _under_way(connection) if _run(job) == run)
    return {(args["number"], args["stage"]): number for number, args in jobs}


def cancel_run(connection: "Connection", run: str) -> int:
    """Deletes the waiting jobs of a run (uuid), and aborts the jobs that were begun.

    Returns how many jobs were deleted or aborted.
    """
    manager = _manager(connection)
    with connection.transaction():
        jobs = under_way(connection, run).values()
        return sum(manager.cancel_job_by_id(job, abort=True, delete_job=True) for job in jobs)


def drop_waiting(connection: "Connection", job: int) -> None:
    """Deletes a job (id) if no node has begun it; else does nothing."""
    _manager(connection).cancel_job_by_id(job, delete_job=True)


def lost_jobs(connection: "Connection", lease_s: float) -> tuple[Job, ...]:
    """Returns begun jobs whose node is gone, or has sent no heartbeat for ``lease_s`` seconds."""
    return _jobs(completed(_manager(connection).get_stalled_jobs(seconds_since_heartbeat=lease_s)))


def given_up_jobs(connection: "Connection") -> tuple[Job, ...]:
    """Returns the jobs that have failed so often that no node tries them again."""
    return _jobs(_manager(connection).list_jobs(status=FAILED))


def give_back(connection: "Connection", job: Job) -> None:
    """Puts a job back into its queue for any node; counts as a failed attempt."""
    _manager(connection).retry_job_by_id(job.id, AT_ONCE)


def delete(connection: "Connection", job: Job) -> None:
    """Deletes a job, whether it waits, is being done or was given up."""
    from procrastinate.jobs import Status

    if job.has_failed:  # Procrastinate ends no job twice
        give_back(connection, job)
    completed(_manager(connection).finish_job_by_id_async(job.id, Status.FAILED, delete_job=True))


def delete_ended(connection: "Connection") -> None:
    """Deletes the jobs that were done or cancelled; given-up jobs stay."""
    completed(_manager(connection).delete_old_jobs(nb_hours=0, include_cancelled=True, include_aborted=True))


def waiting(connection: "Connection") -> tuple[Waiting, ...]:
    """Returns, per queue, its jobs that wait or are being done, sorted by the queue's name.

    A queue whose first job is of another version of tuner is left out.
    """
    queues = collections.defaultdict(list)
    for job in _under_way(connection):
        queues[job.queue].append(job)
    doing = [_id(job) for jobs in queues.values() for job in jobs if job.status == DOING]
    begun_s = seconds_since_start(connection, doing)
    described = (_waiting(queue, jobs, begun_s) for queue, jobs in sorted(queues.items()))
    return tuple(waiting for waiting in described if waiting is not None)


def _waiting(queue: str, jobs: "list[engine.Job]", begun_s: dict[int, float]) -> Waiting | None:
    by_turn = sorted(jobs, key=lambda job: -job.priority)
    doing = [job for job in jobs if job.status == DOING]
    example = _read(by_turn[0])
    if example is None:
        return None
    return Waiting(
        queue=queue,
        todo=len(jobs) - len(doing),
        doing_count=len(doing),
        example=example,
        doing=_read(doing[0]) if doing else None,
        runs=tuple(dict.fromkeys(_run(job) for job in by_turn if job.status != DOING)),
        doing_s=max((begun_s.get(_id(job), 0.0) for job in doing), default=0.0),
    )


def runs(connection: "Connection") -> list[str]:
    """Returns the uuids of the runs that have jobs in any queue, sorted."""
    return sorted(set(map(_run, _manager(connection).list_jobs())))


def compiler_builds(connection: "Connection", target: TargetName) -> tuple[tuple[str, int], ...]:
    """Returns (compiler build, number of jobs) of the jobs for a target.

    A node does only jobs of its build.
    """
    arguments = (job.task_kwargs for job in _under_way(connection))
    wanted = [str(args.get("compiler_build")) for args in arguments if args.get("target") == encode(target)]
    return tuple(sorted(collections.Counter(wanted).items()))


async def serve(
    url: str,
    services: tuple[Service, ...],
    do: Callable[[FleetWork], Awaitable[None]],  # CancelledError: the job was taken back
    beat_s: float,
    ending: asyncio.Event,  # no further job is begun
) -> None:
    """Does jobs of some queues until ``ending`` is set, then finishes the jobs that were begun.

    ``do`` does a piece of work; it gets a CancelledError if the job is cancelled. ``beat_s``: seconds between
    heartbeats. Raises OSError if no server answers.
    """
    import procrastinate
    import psycopg

    from tuner.elsewhere.fleet.connectors import QueueConnector, require_server  # loads psycopg

    app = procrastinate.App(connector=QueueConnector(url, 1 + len(services), ending))

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
    """Runs until one worker ends or ``ending`` is set; a worker that is cancelled finishes its job."""
    tasks = list(map(asyncio.create_task, works))
    end = asyncio.create_task(ending.wait())
    await asyncio.wait([*tasks, end], return_when=asyncio.FIRST_COMPLETED)
    for task in (*tasks, end):
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    with contextlib.suppress(asyncio.CancelledError):
        await end
    for problem in results:
        if isinstance(problem, Exception):
            raise problem


def _manager(connection: "Connection") -> "JobManager":
    from procrastinate.manager import JobManager

    from tuner.elsewhere.fleet.connectors import SessionConnector  # loads psycopg

    return JobManager(SessionConnector(connection))


def _under_way(connection: "Connection") -> "list[engine.Job]":
    return [job for job in _manager(connection).list_jobs() if job.status in UNDER_WAY]


def _jobs(jobs: "Iterable[engine.Job]") -> tuple[Job, ...]:
    read = ((job, _read(job)) for job in jobs)
    return tuple(
        Job(_id(job), work, job.attempts, job.status == FAILED) for job, work in read if work is not None
    )


def _read(job: "engine.Job") -> FleetWork | None:
    """Returns the work of a job; None for a job of another version of the tuner."""
    try:
        return work_from_json(job.task_kwargs)
    except UsageError:
        return None


def _id(job: "engine.Job") -> int:
    assert job.id is not None
    return job.id


def _run(job: "engine.Job") -> str:
    return str(job.task_kwargs.get("run"))


def completed(call: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine that never suspends, without an event loop; returns its result.

    Raises RuntimeError if the coroutine suspends.
    """
    try:
        call.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise RuntimeError("a call on a SessionConnector waits for something")


# Looks after work that no node would finish: requeues the jobs of lost nodes, fails given-up jobs.


def sweep(connection: "Connection", lease_s: float) -> int:
    """Requeues jobs of lost nodes, and stores a failure for jobs that failed too often.

    ``lease_s``: seconds without a heartbeat after which a node is lost. Returns the number of jobs; 0 also
    while another process sweeps.
    """
    with connection.transaction():
        row = connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (LOCK,)).fetchone()
        if row != (True,):
            return 0
        lost = lost_jobs(connection, lease_s)
        for job in lost:
            if job.attempts + 1 < ATTEMPTS:
                give_back(connection, job)
                continue
            _give_up(connection, job, f"took {ATTEMPTS} machines with it")
        failed = given_up_jobs(connection)
        for job in failed:
            _give_up(connection, job, f"{job.attempts} nodes could not do it")
    return len(lost) + len(failed)


def _give_up(connection: "Connection", job: Job, why: str) -> None:
    reason = f"{job.work.stage}: {why}"
    tables.store_outcome(connection, job.work.key, Outcome(Failure(Stage.RUN, reason), 0.0), SWEEPER)
    delete(connection, job)


def delete_old(connection: "Connection") -> None:
    """Deletes what is older than KEPT_DAYS days (blobs, outcomes, attempts, silent nodes), and ended jobs."""
    for statement in (
        "DELETE FROM fleet_blob WHERE stored < now() - make_interval(days => %s)",
        "DELETE FROM fleet_outcome WHERE told < now() - make_interval(days => %s)",
        "DELETE FROM fleet_work WHERE ended < now() - make_interval(days => %s)",
        "DELETE FROM fleet_node WHERE seen < now() - make_interval(days => %s)",
    ):
        connection.execute(statement, (KEPT_DAYS,))
    delete_ended(connection)
