// The loop of multiply_add.mlir in pairs of bf16 (AVX512_BF16): each lane adds two products to its f32 sum.
!vector = vector<16xf32>
!pairs = vector<32xbf16>
module {
  llvm.func @multiply_add(%sink: !llvm.ptr, %iterations: i64) attributes {llvm.emit_c_interface} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %a = llvm.load %sink : !llvm.ptr -> !vector
    %p = llvm.bitcast %a : !vector to !pairs
    llvm.br ^loop(%zero, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a :
             i64, !vector, !vector, !vector, !vector, !vector,
             !vector, !vector, !vector, !vector, !vector)
  ^loop(%iteration: i64, %s0: !vector, %s1: !vector, %s2: !vector, %s3: !vector,
        %s4: !vector, %s5: !vector, %s6: !vector, %s7: !vector,
        %s8: !vector, %s9: !vector):
    %n0 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%s0, %p, %p) : (!vector, !pairs, !pairs) -> !vector
    %n1 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%s1, %p, %p) : (!vector, !pairs, !pairs) -> !vector
    %n2 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%s2, %p, %p) : (!vector, !pairs, !pairs) -> !vector
    %n3 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%s3, %p, %p) : (!vector, !pairs, !pairs) -> !vector
    %n4 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%s4, %p, %p) : (!vector, !pairs, !pairs) -> !vector
    %n5 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%s5, %p, %p) : (!vector, !pairs, !pairs) -> !vector
    %n6 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%s6, %p, %p) : (!vector, !pairs, !pairs) -> !vector
    %n7 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%s7, %p, %p) : (!vector, !pairs, !pairs) -> !vector
    %n8 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%s8, %p, %p) : (!vector, !pairs, !pairs) -> !vector
    %n9 = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%s9, %p, %p) : (!vector, !pairs, !pairs) -> !vector
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
