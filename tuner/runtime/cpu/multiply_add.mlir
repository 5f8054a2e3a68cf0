// The loop that measures flop/s, see roofline.py, which puts the definition of !vector (one register) before this
// text. 10 independent sums, loaded from memory and stored to memory, so that LLVM removes no operation.
module {
  llvm.func @multiply_add(%sink: !llvm.ptr, %iterations: i64) attributes {llvm.emit_c_interface} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %a = llvm.load %sink : !llvm.ptr -> !vector
    llvm.br ^loop(%zero, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a :
             i64, !vector, !vector, !vector, !vector, !vector,
             !vector, !vector, !vector, !vector, !vector)
  ^loop(%iteration: i64, %s0: !vector, %s1: !vector, %s2: !vector, %s3: !vector,
        %s4: !vector, %s5: !vector, %s6: !vector, %s7: !vector,
        %s8: !vector, %s9: !vector):
    %n0 = llvm.intr.fma(%s0, %a, %a) : (!vector, !vector, !vector) -> !vector
    %n1 = llvm.intr.fma(%s1, %a, %a) : (!vector, !vector, !vector) -> !vector
    %n2 = llvm.intr.fma(%s2, %a, %a) : (!vector, !vector, !vector) -> !vector
    %n3 = llvm.intr.fma(%s3, %a, %a) : (!vector, !vector, !vector) -> !vector
    %n4 = llvm.intr.fma(%s4, %a, %a) : (!vector, !vector, !vector) -> !vector
    %n5 = llvm.intr.fma(%s5, %a, %a) : (!vector, !vector, !vector) -> !vector
    %n6 = llvm.intr.fma(%s6, %a, %a) : (!vector, !vector, !vector) -> !vector
    %n7 = llvm.intr.fma(%s7, %a, %a) : (!vector, !vector, !vector) -> !vector
    %n8 = llvm.intr.fma(%s8, %a, %a) : (!vector, !vector, !vector) -> !vector
    %n9 = llvm.intr.fma(%s9, %a, %a) : (!vector, !vector, !vector) -> !vector
    %next = llvm.add %iteration, %one : i64
    %more = llvm.icmp "slt" %next, %iterations : i64
    llvm.cond_br %more, ^loop(%next, %n0, %n1, %n2, %n3, %n4, %n5, %n6, %n7, %n8, %n9 :
             i64, !vector, !vector, !vector, !vector, !vector,
             !vector, !vector, !vector, !vector, !vector), ^end
  ^end:
    %o0 = llvm.getelementptr %sink[0] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %s0, %o0 : !vector, !llvm.ptr
    %o1 = llvm.getelementptr %sink[1] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %s1, %o1 : !vector, !llvm.ptr
    %o2 = llvm.getelementptr %sink[2] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %s2, %o2 : !vector, !llvm.ptr
    %o3 = llvm.getelementptr %sink[3] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %s3, %o3 : !vector, !llvm.ptr
    %o4 = llvm.getelementptr %sink[4] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %s4, %o4 : !vector, !llvm.ptr
    %o5 = llvm.getelementptr %sink[5] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %s5, %o5 : !vector, !llvm.ptr
    %o6 = llvm.getelementptr %sink[6] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %s6, %o6 : !vector, !llvm.ptr
    %o7 = llvm.getelementptr %sink[7] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %s7, %o7 : !vector, !llvm.ptr
    %o8 = llvm.getelementptr %sink[8] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %s8, %o8 : !vector, !llvm.ptr
    %o9 = llvm.getelementptr %sink[9] : (!llvm.ptr) -> !llvm.ptr, !vector
    llvm.store %s9, %o9 : !vector, !llvm.ptr
    llvm.return
  }
}
