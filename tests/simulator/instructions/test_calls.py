"""vprintf: what a kernel prints, in C's format; __assertfail: the error of a failing assertion."""

import struct

import numpy as np
import pytest

from tests.simulator.ptx.snippets import HEADER
from tuner.simulator.launch import simulate
from tuner.simulator.ptx.defects import Defect, SimulationError, UnsupportedInstruction

CASES = [
    ("plain\n", b"", "plain\n"),
    ("%d and %i\n", struct.pack("<ii", -7, 8), "-7 and 8\n"),
    ("%u %x %o %c", struct.pack("<IIII", 2**32 - 1, 255, 8, 65), "4294967295 ff 10 A"),
    ("%lld|%5d|%-5d|%05d", struct.pack("<qiii", -(2**40), 42, 42, 42), "-1099511627776|   42|42   |00042"),
    ("%f %.2f %e %g", struct.pack("<dddd", 1.5, 2.25, 1000.0, 0.5), "1.500000 2.25 1.000000e+03 0.5"),
    ("%d %f %d", struct.pack("<ixxxxdi", 1, 2.0, 3), "1 2.000000 3"),  # each value at its alignment
    ("%zu%% %p", struct.pack("<QQ", 9, 0xABC), "9% 0xabc"),
    ("%f %f", struct.pack("<dd", np.inf, np.nan), "inf nan"),
]


def kernel(text: str, values: bytes, guard: str = "") -> str:
    format_ = ", ".join(str(byte) for byte in (*text.encode(), 0))
    stores = "\n".join(f"st.local.b8 [buffer+{place}], {byte};" for place, byte in enumerate(values))
    return f"""{HEADER}
.extern .func (.param .b32 func_retval0) vprintf (.param .b64 a, .param .b64 b);
.global .align 1 .b8 format[{len(text.encode()) + 1}] = {{{format_}}};
.visible .entry k(.param .u64 out) {{
  .local .align 8 .b8 buffer[64];
  .reg .b64 %rd<5>; .reg .b32 %r<3>; .reg .pred %p;
  mov.u32 %r2, %tid.x;
  setp.lt.u32 %p, %r2, 2;
  {stores}
  mov.b64 %rd1, buffer;
  cvta.local.u64 %rd2, %rd1;
  {guard}
  {{
    .param .b64 param0;
    .param .b64 param1;
    .param .b32 retval0;
    st.param.b64 [param1], %rd2;
    mov.b64 %rd3, format;
    cvta.global.u64 %rd4, %rd3;
    st.param.b64 [param0], %rd4;
    call.uni (retval0), vprintf, (param0, param1);
    ld.param.b32 %r1, [retval0];
  }}
END:
  ret;
}}"""


def printed(text: str, values: bytes, threads: int = 1, guard: str = "") -> str:
    out = np.zeros(1, np.int32)
    return simulate(kernel(text, values, guard), "k", (1, 1, 1), (threads, 1, 1), (out,)).printed


@pytest.mark.parametrize(("text", "values", "expected"), CASES)
def test_each_conversion(text: str, values: bytes, expected: str) -> None:
    assert printed(text, values) == expected


def test_threads_print_in_their_order_and_only_those_that_call() -> None:
    assert printed("x\n", b"", threads=5) == "x\n" * 5
    assert printed("x\n", b"", threads=5, guard="@!%p bra END;") == "x\n" * 2


def test_no_other_function_is_known() -> None:
    text = kernel("x", b"").replace("vprintf, (", "helper, (")
    with pytest.raises(UnsupportedInstruction, match="does not know a call of helper; only vprintf"):
        simulate(text, "k", (1, 1, 1), (1, 1, 1), (np.zeros(1, np.int32),))


FAILING = f"""{HEADER}
.extern .func __assertfail
  (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e) .noreturn;
.global .align 1 .b8 message[6] = {{119, 114, 111, 110, 103, 0}};
.visible .entry k(.param .u64 out) {{
  .reg .b64 %rd<3>; .reg .b32 %r<2>; .reg .pred %p;
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p, %r1, LIMIT;
  @%p bra END;
  {{
    .param .b64 param0; .param .b64 param1; .param .b32 param2; .param .b64 param3; .param .b64 param4;
    mov.b64 %rd1, message;
    cvta.global.u64 %rd2, %rd1;
    st.param.b64 [param0], %rd2;
    st.param.b64 [param1], %rd2;
    st.param.b32 [param2], 7;
    st.param.b64 [param3], %rd2;
    st.param.b64 [param4], 1;
    call.uni __assertfail, (param0, param1, param2, param3, param4);
  }}
END:
  ret;
}}"""


def test_an_assertion_fails_with_its_text_and_the_first_thread() -> None:
    said = r"assertion fails: 'wrong', in thread \(3, 0, 0\) of block \(0, 0, 0\)"
    with pytest.raises(SimulationError, match=said) as caught:
        simulate(FAILING.replace("LIMIT", "3"), "k", (1, 1, 1), (5, 1, 1), (np.zeros(1, np.int32),))
    assert caught.value.kind is Defect.ASSERTION


def test_an_assertion_that_no_thread_reaches_is_nothing() -> None:
    simulate(FAILING.replace("LIMIT", "5"), "k", (1, 1, 1), (5, 1, 1), (np.zeros(1, np.int32),))
