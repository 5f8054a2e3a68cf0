// ----- HOG
%true = arith.constant true
    %mib = arith.constant 16777216 : i64
    %low = arith.constant 0 : index
    %high = arith.constant 16777216 : index
    %page = arith.constant 4096 : index
    scf.while : () -> () {
      %block = llvm.call @malloc(%mib) : (i64) -> !llvm.ptr
      scf.for %at = %low to %high step %page {
        %offset = arith.index_cast %at : index to i64
        %place = llvm.getelementptr %block[%offset] : (!llvm.ptr, i64) -> !llvm.ptr, i8
        llvm.store volatile %one, %place : i64, !llvm.ptr
      }
      scf.condition(%true)
    } do {
      scf.yield
    }
