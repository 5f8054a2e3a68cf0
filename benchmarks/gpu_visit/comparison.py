"""The comparison of a whole result on the GPU: one kernel, max |c - reference| in tolerances.

Nothing is downloaded but the largest error, four bytes. The bits of numbers that are not negative are ordered
as integers, infinity above all numbers and NaN above infinity: an unsigned maximum keeps what is wrong.
"""

from tuner.core.compiled_code import KernelBuffer, KernelCode, Launch

THREADS, BLOCKS = 256, 528  # four blocks for each multiprocessor of an H200; each goes on from where it is
TERMS_BYTES = 16  # count (u64), 1 / tolerance (f32), unused
LARGEST_BYTES = 4
CONVERSIONS = {"f32": "mov.b32 %value, %bits;", "i32": "cvt.rn.f32.s32 %value, %bits;"}  # of results

TEXT = """.version 8.0
.target {chip}
.address_size 64
.visible .entry {name}(.param .u64 c, .param .u64 reference, .param .u64 terms, .param .u64 largest)
{{
  .reg .pred %done, %more;
  .reg .b32 %index, %step, %block, %threads, %bits, %worst, %other;
  .reg .b64 %c, %reference, %terms, %largest, %at, %count, %jump, %a, %b;
  .reg .f32 %value, %expected, %scale;
  ld.param.u64 %c, [c];
  ld.param.u64 %reference, [reference];
  ld.param.u64 %terms, [terms];
  ld.param.u64 %largest, [largest];
  ld.global.u64 %count, [%terms];
  ld.global.f32 %scale, [%terms+8];
  mov.u32 %index, %tid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %threads, %ntid.x;
  mad.lo.u32 %index, %block, %threads, %index;
  mov.u32 %step, %nctaid.x;
  mul.lo.u32 %step, %step, %threads;
  cvt.u64.u32 %at, %index;
  cvt.u64.u32 %jump, %step;
  mov.u32 %worst, 0;
next:
  setp.ge.u64 %done, %at, %count;
  @%done bra finish;
  shl.b64 %a, %at, 2;
  add.u64 %b, %reference, %a;
  add.u64 %a, %c, %a;
  ld.global.b32 %bits, [%a];
  ld.global.f32 %expected, [%b];
  {conversion}
  sub.f32 %value, %value, %expected;
  mul.f32 %value, %value, %scale;
  mov.b32 %other, %value;
  and.b32 %other, %other, 0x7fffffff;
  max.u32 %worst, %worst, %other;
  add.u64 %at, %at, %jump;
  bra next;
finish:
  atom.global.max.u32 %bits, [%largest], %worst;
  ret;
}}
"""


def comparison(chip: str, result: str, elements: int = 1) -> KernelCode:
    """Returns the kernel for results of a type, "f32" or "i32", with the buffers of so many elements."""
    name = f"largest_error_{result}"
    text = TEXT.format(chip=chip, name=name, conversion=CONVERSIONS[result])
    buffers = (
        KernelBuffer("c", 4 * elements, "input"),
        KernelBuffer("reference", 4 * elements, "input"),
        KernelBuffer("terms", TERMS_BYTES, "input"),
        KernelBuffer("largest", LARGEST_BYTES, "output", is_zeroed=True),
    )
    launch = Launch(name, (BLOCKS, 1, 1), (THREADS, 1, 1), 0, tuple(buffer.name for buffer in buffers))
    return KernelCode(chip, text, b"", (launch,), buffers)
