// ----- CAST
llvm.func @f(%a: i64) -> !llvm.ptr {
  %p = builtin.unrealized_conversion_cast %a : i64 to !llvm.ptr
  llvm.return %p : !llvm.ptr
}
