"""Kernels of other processes are checked and timed; what crashes or is wrong is a row, not the end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.race.contest import RacingKernel, build_calls, contest
from benchmarks.race.peer import PeerKernel, RaceMatmul
from benchmarks.race.timed_command import LogWatch, is_alive, run_for

CASE = RaceMatmul(4, 3, 5, "f32")
KERNELS = """
#include <stdint.h>
#include <stdlib.h>
static void product(const float *a, const float *b, float *c, float factor) {
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 3; j++) {
      c[3 * i + j] = 0;
      for (int l = 0; l < 5; l++)
        c[3 * i + j] += factor * a[5 * i + l] * b[3 * l + j];
    }
}
void right(const float *a, const float *b, float *c) { product(a, b, c, 1); }
void wrong(const float *a, const float *b, float *c) { product(a, b, c, 2); }
void aligned(const float *a, const float *b, float *c) {
  if ((uintptr_t)a % 64) abort();
  product(a, b, c, 1);
}
int sized(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k) {
  product(a, b, c, 1);
  return m == 4 && n == 3 && k == 5;
}
int untuned(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k) {
  product(a, b, c, 1);
  return m + n + k < 0;
}
"""


def a_core() -> int:
    return max(os.sched_getaffinity(0))


def test_right_kernels_have_times_at_both_offsets_and_others_a_reason(tmp_path: Path) -> None:
    source = tmp_path / "kernels.c"
    source.write_text(KERNELS)
    library = tmp_path / "kernels.so"
    subprocess.run(("cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(source)), check=True)
    kinds = {"right": "bare", "wrong": "bare", "aligned": "bare", "sized": "exported", "untuned": "exported"}
    runners = [
        RacingKernel(name, PeerKernel(kind, str(library), name), Path(sys.executable))
        for name, kind in kinds.items()
    ]
    runners.append(
        RacingKernel("missing", PeerKernel("bare", str(tmp_path / "none.so"), "f"), Path(sys.executable))
    )
    timings = contest(CASE, runners, build_calls(tmp_path), a_core(), rounds=4)
    failures = {(timing.name, timing.offset): timing.failure for timing in timings}
    for offset in (0, 16):
        assert failures["right", offset] == failures["sized", offset] == ""
        assert failures["wrong", offset].startswith("wrong: ")
        assert failures["untuned", offset] == "reports a failure"
        assert "none.so" in failures["missing", offset]
    assert (failures["aligned", 0], failures["aligned", 16]) == ("", "crashes (signal 6)")
    for timing in timings:
        assert len(timing.samples_s) == (0 if timing.failure else 4)
        assert (timing.median_s is None) == bool(timing.failure)


def test_a_command_is_stopped_at_its_limit_with_all_that_it_started(tmp_path: Path) -> None:
    words = ("sh", "-c", "echo $$ > group; sleep 60 & echo one >> log; sleep 60")
    log = tmp_path / "log"

    def count() -> int:
        return len(log.read_text().splitlines()) if log.exists() else 0

    ran = run_for(words, tmp_path, a_core(), 0.2, LogWatch(count))
    assert ran.status is None
    assert ran.failure.startswith("not finished after")
    assert all(seconds <= ran.wall_s for seconds in ran.seen_s)
    assert not is_alive(int((tmp_path / "group").read_text()))


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        ("echo fine; echo an error: no such thing; exit 3", "ends with 3: an error: no such thing"),
        ("kill -SEGV $$", "crashes (signal 11)"),
        ("exit 1", "ends with 1: it printed nothing"),
    ],
)
def test_a_command_that_fails_has_its_reason_in_one_line(script: str, failure: str, tmp_path: Path) -> None:
    ran = run_for(("sh", "-c", script), tmp_path, a_core(), 30, LogWatch())
    assert ran.failure == failure
