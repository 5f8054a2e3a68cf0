// The loop that measures flop/s, see roofline.py, which puts the definition of !vector (one register) and of @step (it
// adds products to a register of sums) before this text, and the sums into it. They are loaded from memory and stored to
// memory, so that LLVM removes no operation.
llvm.func @$NAME(%sink: !llvm.ptr, %iterations: i64) attributes {llvm.emit_c_interface} {
  %zero = llvm.mlir.constant(0 : i64) : i64
  %one = llvm.mlir.constant(1 : i64) : i64
  %a = llvm.load %sink : !llvm.ptr -> !vector
  llvm.br ^loop(%zero, $FIRST : i64, $TYPES)
^loop(%iteration: i64, $SUMS):
  $STEPS
  %next = llvm.add %iteration, %one : i64
  %more = llvm.icmp "slt" %next, %iterations : i64
  llvm.cond_br %more, ^loop(%next, $MORE : i64, $TYPES), ^end
^end:
  $STORES
  llvm.return
}
