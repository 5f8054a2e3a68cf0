// ----- TEXT
module {
  llvm.mlir.global private constant @table(dense<[1, 20, 300, 4000]> : tensor<4xi64>) : !llvm.array<4 x i64>
  llvm.mlir.global internal @count(0 : i64) : i64
  llvm.func @FUNCTION(i64) -> i64
  llvm.func @add(%to: !llvm.ptr, %index: i64) attributes {passthrough = ["no-builtins"]} {
    %table = llvm.mlir.addressof @table : !llvm.ptr
    %at = llvm.getelementptr %table[%index] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %element = llvm.load %at : !llvm.ptr -> i64
    %count = llvm.mlir.addressof @count : !llvm.ptr
    %before = llvm.load %count : !llvm.ptr -> i64
    %sum = llvm.add %before, %element : i64
    llvm.store %sum, %count : i64, !llvm.ptr
    %zero = llvm.mlir.constant(0 : i64) : i64
    %negative = llvm.sub %zero, %sum : i64
    %result = llvm.call @FUNCTION(%negative) : (i64) -> i64
    llvm.store %result, %to : i64, !llvm.ptr
    llvm.return
  }
}
// ----- CALLING
module {
  llvm.func @first_add(!llvm.ptr, i64)
  llvm.func @second_add(!llvm.ptr, i64)
  llvm.func @both(%to: !llvm.ptr, %index: i64) attributes {passthrough = ["no-builtins"]} {
    %after = llvm.getelementptr %to[1] : (!llvm.ptr) -> !llvm.ptr, i64
    llvm.call @first_add(%to, %index) : (!llvm.ptr, i64) -> ()
    llvm.call @second_add(%after, %index) : (!llvm.ptr, i64) -> ()
    llvm.return
  }
}
