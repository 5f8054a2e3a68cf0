// The loop of multiply_add.mlir in integers: @step multiplies narrow integers and adds the products to a register of
// sums. roofline.py puts !vector (the register) and @step (dot_4_bytes.mlir or dot_2_words.mlir) before this text.
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
  %n0 = llvm.call @step(%s0, %a) : (!vector, !vector) -> !vector
  %n1 = llvm.call @step(%s1, %a) : (!vector, !vector) -> !vector
  %n2 = llvm.call @step(%s2, %a) : (!vector, !vector) -> !vector
  %n3 = llvm.call @step(%s3, %a) : (!vector, !vector) -> !vector
  %n4 = llvm.call @step(%s4, %a) : (!vector, !vector) -> !vector
  %n5 = llvm.call @step(%s5, %a) : (!vector, !vector) -> !vector
  %n6 = llvm.call @step(%s6, %a) : (!vector, !vector) -> !vector
  %n7 = llvm.call @step(%s7, %a) : (!vector, !vector) -> !vector
  %n8 = llvm.call @step(%s8, %a) : (!vector, !vector) -> !vector
  %n9 = llvm.call @step(%s9, %a) : (!vector, !vector) -> !vector
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
