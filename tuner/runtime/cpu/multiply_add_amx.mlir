// The loop of multiply_add.mlir in AMX tiles: four independent sums of 16 x 16, to which each step adds the product of
// a tile of A (16 rows of 64 bytes) and a tile of B. INTRINSIC: llvm.x86.tdpbf16ps.internal or llvm.x86.tdpbssd.internal.
!tile = !llvm.x86_amx
module {
  llvm.func @multiply_add(%sink: !llvm.ptr, %iterations: i64) attributes {llvm.emit_c_interface} {
    %zero = llvm.mlir.constant(0 : i64) : i64
    %one = llvm.mlir.constant(1 : i64) : i64
    %rows = llvm.mlir.constant(16 : i16) : i16
    %bytes = llvm.mlir.constant(64 : i16) : i16
    %stride = llvm.mlir.constant(64 : i64) : i64
    %a = llvm.call_intrinsic "llvm.x86.tileloadd64.internal"(%rows, %bytes, %sink, %stride) : (i16, i16, !llvm.ptr, i64) -> !tile
    %b = llvm.call_intrinsic "llvm.x86.tileloadd64.internal"(%rows, %bytes, %sink, %stride) : (i16, i16, !llvm.ptr, i64) -> !tile
    %c = llvm.call_intrinsic "llvm.x86.tilezero.internal"(%rows, %bytes) : (i16, i16) -> !tile
    llvm.br ^loop(%zero, %c, %c, %c, %c : i64, !tile, !tile, !tile, !tile)
  ^loop(%iteration: i64, %s0: !tile, %s1: !tile, %s2: !tile, %s3: !tile):
    %n0 = llvm.call_intrinsic "INTRINSIC"(%rows, %bytes, %bytes, %s0, %a, %b) : (i16, i16, i16, !tile, !tile, !tile) -> !tile
    %n1 = llvm.call_intrinsic "INTRINSIC"(%rows, %bytes, %bytes, %s1, %a, %b) : (i16, i16, i16, !tile, !tile, !tile) -> !tile
    %n2 = llvm.call_intrinsic "INTRINSIC"(%rows, %bytes, %bytes, %s2, %a, %b) : (i16, i16, i16, !tile, !tile, !tile) -> !tile
    %n3 = llvm.call_intrinsic "INTRINSIC"(%rows, %bytes, %bytes, %s3, %a, %b) : (i16, i16, i16, !tile, !tile, !tile) -> !tile
    %next = llvm.add %iteration, %one : i64
    %more = llvm.icmp "slt" %next, %iterations : i64
    llvm.cond_br %more, ^loop(%next, %n0, %n1, %n2, %n3 : i64, !tile, !tile, !tile, !tile), ^end
  ^end:
    %o0 = llvm.getelementptr %sink[1024] : (!llvm.ptr) -> !llvm.ptr, i8
    llvm.call_intrinsic "llvm.x86.tilestored64.internal"(%rows, %bytes, %o0, %stride, %n0) : (i16, i16, !llvm.ptr, i64, !tile) -> ()
    %o1 = llvm.getelementptr %sink[2048] : (!llvm.ptr) -> !llvm.ptr, i8
    llvm.call_intrinsic "llvm.x86.tilestored64.internal"(%rows, %bytes, %o1, %stride, %n1) : (i16, i16, !llvm.ptr, i64, !tile) -> ()
    %o2 = llvm.getelementptr %sink[3072] : (!llvm.ptr) -> !llvm.ptr, i8
    llvm.call_intrinsic "llvm.x86.tilestored64.internal"(%rows, %bytes, %o2, %stride, %n2) : (i16, i16, !llvm.ptr, i64, !tile) -> ()
    %o3 = llvm.getelementptr %sink[4096] : (!llvm.ptr) -> !llvm.ptr, i8
    llvm.call_intrinsic "llvm.x86.tilestored64.internal"(%rows, %bytes, %o3, %stride, %n3) : (i16, i16, !llvm.ptr, i64, !tile) -> ()
    llvm.return
  }
}
