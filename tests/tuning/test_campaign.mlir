// ----- forever
module {{
  llvm.func @fusion({arguments}) attributes {{llvm.emit_c_interface}} {{
    llvm.br ^again
  ^again:
    %seen = llvm.load volatile %p0 : !llvm.ptr -> i8
    llvm.br ^again
  }}
}}
