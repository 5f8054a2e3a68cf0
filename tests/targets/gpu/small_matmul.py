"""A product of 4x4x4 in f32 as PTX, one thread for each element of C; variants spare themselves work."""


def small_matmul(before: str = "") -> str:
    """Returns the kernel ``small(a, b, c, calls)`` for 16 threads.

    ``before`` is PTX that runs once %element and %call are known, the addresses of the thread's element of C
    and of its word of ``calls``, scratch memory of 64 bytes; it may jump to DONE.
    """
    products = "\n".join(
        f"ld.global.f32 %x, [%row + {4 * k}]; ld.global.f32 %y, [%column + {16 * k}]; "
        "fma.rn.f32 %sum, %x, %y, %sum;"
        for k in range(4)
    )
    return f"""
.visible .entry small(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 calls) {{
.reg .u32 %t, %i, %j, %n; .reg .u64 %row, %column, %element, %call, %o; .reg .f32 %x, %y, %sum; .reg .pred %p;
mov.u32 %t, %tid.x; shr.u32 %i, %t, 2; and.b32 %j, %t, 3;
ld.param.u64 %row, [a]; mul.wide.u32 %o, %i, 16; add.u64 %row, %row, %o;
ld.param.u64 %column, [b]; mul.wide.u32 %o, %j, 4; add.u64 %column, %column, %o;
ld.param.u64 %element, [c]; mul.wide.u32 %o, %t, 4; add.u64 %element, %element, %o;
ld.param.u64 %call, [calls]; add.u64 %call, %call, %o;
{before}
mov.f32 %sum, 0f00000000;
{products}
st.global.f32 [%element], %sum;
DONE: ret;
}}"""
