"""Times that come after the trials, of finalists and of the baseline: each replaces an earlier one."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from tuner.core.record import Measurement
from tuner.core.runs import Baseline
from tuner.db.models import BASELINE, FINAL, MeasurementRow, RunRow, TrialRow
from tuner.db.ranking import ranked_s
from tuner.db.rows import write_measurement


def put_final(session: Session, trial_id: int, measurement: Measurement) -> None:
    """Stores a finalist's second timing."""
    _put(session, MeasurementRow(trial_id=trial_id, kind=FINAL), measurement)
    trial = session.get_one(TrialRow, trial_id)
    if trial.stale is None:
        trial.ranked_s = ranked_s(FINAL, measurement)


def put_baseline(session: Session, run: RunRow, baseline: Baseline) -> None:
    """Stores the baseline's time beside a run."""
    run.baseline_name, run.baseline_threads = baseline.name, baseline.threads
    _put(session, MeasurementRow(run_id=run.id, kind=BASELINE), baseline.measurement)


def _put(session: Session, new: MeasurementRow, measurement: Measurement) -> None:
    same = select(MeasurementRow).filter_by(trial_id=new.trial_id, run_id=new.run_id, kind=new.kind)
    row = session.scalar(same) or new
    write_measurement(row, measurement)
    session.add(row)
