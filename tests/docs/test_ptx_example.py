"""The help's kernel runs as printed."""

from pathlib import Path

import pytest

from tests.cli.conftest import Tuner
from tests.docs.test_examples import EXAMPLES
from tests.tuning import fakes

AXPY = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry axpy(.param .u64 x, .param .u64 y)
{
  .reg .b32 %r<4>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<6>;
  ld.param.b64 %rd1, [x];
  ld.param.b64 %rd2, [y];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.u32 %r3, %r1, 128, %r2;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  ld.global.f32 %f2, [%rd5];
  fma.rn.f32 %f3, %f1, 0f40000000, %f2;
  st.global.f32 [%rd5], %f3;
  ret;
}
"""


def test_the_kernel_of_the_help_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (options,) = {
        each.words for each in EXAMPLES if each.words[:2] == ("ptx", "run") and "--help" not in each.words
    }
    monkeypatch.chdir(tmp_path)
    (tmp_path / "axpy.ptx").write_text(AXPY)
    done = Tuner(tmp_path / "results.db", fakes.composition())(*options)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("axpy: 8 blocks, ")
