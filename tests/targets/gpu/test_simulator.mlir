// ----- EXCHANGE
  mul.lo.u32 %r3, %r1, STRIDE; mov.u32 %r5, tile; add.u32 %r3, %r3, %r5;
  st.shared.u32 [%r3], %r1;
  BARRIER
  xor.b32 %r4, %r1, 63; mul.lo.u32 %r4, %r4, STRIDE; add.u32 %r4, %r4, %r5; ld.shared.u32 %r6, [%r4];
