// ----- MODULE
module {
  llvm.func @malloc(i64) -> !llvm.ptr
  llvm.mlir.global private constant @table(42 : i64) {addr_space = 0 : i32} : i64
  llvm.func @matmul(%a: !llvm.ptr) attributes {llvm.emit_c_interface, passthrough = ["no-builtins"]} {
    %size = llvm.mlir.constant(8 : i64) : i64
    %memory = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
    %table = llvm.mlir.addressof @table : !llvm.ptr
    %entry = llvm.load %table : !llvm.ptr -> i64
    llvm.store %entry, %a : i64, !llvm.ptr
    llvm.return
  }
  llvm.func @matmul_x2(%a: !llvm.ptr) attributes {llvm.emit_c_interface} {
    llvm.call @matmul(%a) : (!llvm.ptr) -> ()
    llvm.return
  }
}
