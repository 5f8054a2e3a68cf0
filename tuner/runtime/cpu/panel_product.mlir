// A product of small packed panels, see panel_product.py, which puts the definition of !vector before this text and
// inserts the masks of broadcasts. 4 panels of A with 6 floats per step, 4 panels of B with 2 vectors per step; 256
// steps.
!a_row = !llvm.array<6 x f32>
!b_row = !llvm.array<2 x !vector>
module {
  llvm.func @panel_product(%a: !llvm.ptr, %b: !llvm.ptr, %c: !llvm.ptr, %iterations: i64)
      attributes {llvm.emit_c_interface} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %inner = llvm.mlir.constant(256 : i64) : i64
    %panels_of_a = llvm.mlir.constant(4 : i64) : i64
    %panels_of_b = llvm.mlir.constant(4 : i64) : i64
    %none = llvm.mlir.constant(dense<0.0> : !vector) : !vector
    %unset = llvm.mlir.poison : !vector
    llvm.br ^iteration(%zero : i64)
  ^iteration(%t: i64):
    llvm.br ^panel_of_b(%zero : i64)
  ^panel_of_b(%j: i64):
    %b_begin = llvm.mul %j, %inner : i64
    llvm.br ^panel_of_a(%zero : i64)
  ^panel_of_a(%i: i64):
    %a_begin = llvm.mul %i, %inner : i64
    llvm.br ^step(%zero, %none, %none, %none, %none, %none, %none, %none, %none, %none, %none, %none,
          %none : i64, !vector, !vector, !vector, !vector, !vector, !vector, !vector, !vector, !vector,
          !vector, !vector, !vector)
  ^step(%k: i64, %s0_0: !vector, %s0_1: !vector, %s1_0: !vector, %s1_1: !vector, %s2_0: !vector,
          %s2_1: !vector, %s3_0: !vector, %s3_1: !vector, %s4_0: !vector, %s4_1: !vector, %s5_0: !vector,
          %s5_1: !vector):
    %a_row = llvm.add %a_begin, %k : i64
    %b_row = llvm.add %b_begin, %k : i64
    %b0_at = llvm.getelementptr %b[%b_row, 0] : (!llvm.ptr, i64) -> !llvm.ptr, !b_row
    %b0 = llvm.load %b0_at : !llvm.ptr -> !vector
    %b1_at = llvm.getelementptr %b[%b_row, 1] : (!llvm.ptr, i64) -> !llvm.ptr, !b_row
    %b1 = llvm.load %b1_at : !llvm.ptr -> !vector
    %x0_at = llvm.getelementptr %a[%a_row, 0] : (!llvm.ptr, i64) -> !llvm.ptr, !a_row
    %x0 = llvm.load %x0_at : !llvm.ptr -> f32
    %f0 = llvm.insertelement %x0, %unset[%zero : i64] : !vector
    %a0 = llvm.shufflevector %f0, %unset FIRST : !vector
    %x1_at = llvm.getelementptr %a[%a_row, 1] : (!llvm.ptr, i64) -> !llvm.ptr, !a_row
    %x1 = llvm.load %x1_at : !llvm.ptr -> f32
    %f1 = llvm.insertelement %x1, %unset[%zero : i64] : !vector
    %a1 = llvm.shufflevector %f1, %unset FIRST : !vector
    %x2_at = llvm.getelementptr %a[%a_row, 2] : (!llvm.ptr, i64) -> !llvm.ptr, !a_row
    %x2 = llvm.load %x2_at : !llvm.ptr -> f32
    %f2 = llvm.insertelement %x2, %unset[%zero : i64] : !vector
    %a2 = llvm.shufflevector %f2, %unset FIRST : !vector
    %x3_at = llvm.getelementptr %a[%a_row, 3] : (!llvm.ptr, i64) -> !llvm.ptr, !a_row
    %x3 = llvm.load %x3_at : !llvm.ptr -> f32
    %f3 = llvm.insertelement %x3, %unset[%zero : i64] : !vector
    %a3 = llvm.shufflevector %f3, %unset FIRST : !vector
    %x4_at = llvm.getelementptr %a[%a_row, 4] : (!llvm.ptr, i64) -> !llvm.ptr, !a_row
    %x4 = llvm.load %x4_at : !llvm.ptr -> f32
    %f4 = llvm.insertelement %x4, %unset[%zero : i64] : !vector
    %a4 = llvm.shufflevector %f4, %unset FIRST : !vector
    %x5_at = llvm.getelementptr %a[%a_row, 5] : (!llvm.ptr, i64) -> !llvm.ptr, !a_row
    %x5 = llvm.load %x5_at : !llvm.ptr -> f32
    %f5 = llvm.insertelement %x5, %unset[%zero : i64] : !vector
    %a5 = llvm.shufflevector %f5, %unset FIRST : !vector
    %n0_0 = llvm.intr.fma(%a0, %b0, %s0_0) : (!vector, !vector, !vector) -> !vector
    %n0_1 = llvm.intr.fma(%a0, %b1, %s0_1) : (!vector, !vector, !vector) -> !vector
    %n1_0 = llvm.intr.fma(%a1, %b0, %s1_0) : (!vector, !vector, !vector) -> !vector
    %n1_1 = llvm.intr.fma(%a1, %b1, %s1_1) : (!vector, !vector, !vector) -> !vector
    %n2_0 = llvm.intr.fma(%a2, %b0, %s2_0) : (!vector, !vector, !vector) -> !vector
    %n2_1 = llvm.intr.fma(%a2, %b1, %s2_1) : (!vector, !vector, !vector) -> !vector
    %n3_0 = llvm.intr.fma(%a3, %b0, %s3_0) : (!vector, !vector, !vector) -> !vector
    %n3_1 = llvm.intr.fma(%a3, %b1, %s3_1) : (!vector, !vector, !vector) -> !vector
    %n4_0 = llvm.intr.fma(%a4, %b0, %s4_0) : (!vector, !vector, !vector) -> !vector
    %n4_1 = llvm.intr.fma(%a4, %b1, %s4_1) : (!vector, !vector, !vector) -> !vector
    %n5_0 = llvm.intr.fma(%a5, %b0, %s5_0) : (!vector, !vector, !vector) -> !vector
    %n5_1 = llvm.intr.fma(%a5, %b1, %s5_1) : (!vector, !vector, !vector) -> !vector
    %next_k = llvm.add %k, %one : i64
    %more_k = llvm.icmp "slt" %next_k, %inner : i64
    llvm.cond_br %more_k, ^step(%next_k, %n0_0, %n0_1, %n1_0, %n1_1, %n2_0, %n2_1, %n3_0, %n3_1, %n4_0,
          %n4_1, %n5_0, %n5_1 : i64, !vector, !vector, !vector, !vector, !vector, !vector, !vector,
          !vector, !vector, !vector, !vector, !vector), ^store
  ^store:
    %c0_0 = llvm.getelementptr %c[0] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %n0_0, %c0_0 : !vector, !llvm.ptr
    %c0_1 = llvm.getelementptr %c[1] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %n0_1, %c0_1 : !vector, !llvm.ptr
    %c1_0 = llvm.getelementptr %c[2] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %n1_0, %c1_0 : !vector, !llvm.ptr
    %c1_1 = llvm.getelementptr %c[3] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %n1_1, %c1_1 : !vector, !llvm.ptr
    %c2_0 = llvm.getelementptr %c[4] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %n2_0, %c2_0 : !vector, !llvm.ptr
    %c2_1 = llvm.getelementptr %c[5] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %n2_1, %c2_1 : !vector, !llvm.ptr
    %c3_0 = llvm.getelementptr %c[6] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %n3_0, %c3_0 : !vector, !llvm.ptr
    %c3_1 = llvm.getelementptr %c[7] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %n3_1, %c3_1 : !vector, !llvm.ptr
    %c4_0 = llvm.getelementptr %c[8] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %n4_0, %c4_0 : !vector, !llvm.ptr
    %c4_1 = llvm.getelementptr %c[9] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %n4_1, %c4_1 : !vector, !llvm.ptr
    %c5_0 = llvm.getelementptr %c[10] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %n5_0, %c5_0 : !vector, !llvm.ptr
    %c5_1 = llvm.getelementptr %c[11] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %n5_1, %c5_1 : !vector, !llvm.ptr
    %next_i = llvm.add %i, %one : i64
    %more_i = llvm.icmp "slt" %next_i, %panels_of_a : i64
    llvm.cond_br %more_i, ^panel_of_a(%next_i : i64), ^end_of_a
  ^end_of_a:
    %next_j = llvm.add %j, %one : i64
    %more_j = llvm.icmp "slt" %next_j, %panels_of_b : i64
    llvm.cond_br %more_j, ^panel_of_b(%next_j : i64), ^end_of_b
  ^end_of_b:
    %next_t = llvm.add %t, %one : i64
    %more_t = llvm.icmp "slt" %next_t, %iterations : i64
    llvm.cond_br %more_t, ^iteration(%next_t : i64), ^end
  ^end:
    llvm.return
  }
}
