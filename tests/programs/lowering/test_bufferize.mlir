// ----- CHOICE
func.func @f(%a: tensor<3x4xf32>, %b: tensor<3x4xf32>, %p: i1) -> tensor<3x4xf32> {
  %x = arith.addf %a, %b : tensor<3x4xf32>
  %y = arith.mulf %a, %b : tensor<3x4xf32>
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %r = scf.if %p -> tensor<3x4xf32> {
    scf.yield %x : tensor<3x4xf32>
  } else {
    %z = tensor.insert %one into %y[%c1, %c1] : tensor<3x4xf32>
    scf.yield %z : tensor<3x4xf32>
  }
  %s = arith.addf %r, %a : tensor<3x4xf32>
  return %s : tensor<3x4xf32>
}
// ----- LOOP
func.func @f(%a: KIND, %b: KIND, %n: index) -> (KIND, KIND) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> (KIND, KIND) {
    BODY
    scf.yield YIELDS : KIND, KIND
  }
  return %r#0, %r#1 : KIND, KIND
}
// ----- BRANCH
func.func @f(%a: KIND, %p: i1) -> KIND {
  %r = scf.if %p -> KIND {
    %s = arith.addf %a, %a : KIND
    scf.yield %s : KIND
  } else {
    %s = arith.mulf %a, %a : KIND
    scf.yield %s : KIND
  }
  return %r : KIND
}
// ----- WHILE_LOOP
func.func @f(%a: KIND, %b: KIND, %n: index) -> (KIND, KIND) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:3 = scf.while (%x = %a, %y = %b, %i = %c0) : (KIND, KIND, index) -> (KIND, KIND, index) {
    %go = arith.cmpi slt, %i, %n : index
    CONDITION
  } do {
  ^bb0(%x: KIND, %y: KIND, %i: index):
    BODY
    %j = arith.addi %i, %c1 : index
    scf.yield YIELDS, %j : KIND, KIND, index
  }
  return %r#0, %r#1 : KIND, KIND
}
// ----- LOOP_IN_A_LOOP
func.func @f(%a: KIND, %b: KIND, %n: index) -> KIND {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.while (%x = %b, %i = %c0) : (KIND, index) -> (KIND, index) {
    %go = arith.cmpi slt, %i, %n : index
    scf.condition(%go) %x, %i : KIND, index
  } do {
  ^bb0(%x: KIND, %i: index):
    %s:2 = scf.for %k = %c0 to %n step %c1 iter_args(%p = %a, %q = %x) -> (KIND, KIND) {
      %t = arith.addf %q, %b : KIND
      scf.yield %t, %p : KIND, KIND
    }
    %j = arith.addi %i, %c1 : index
    scf.yield %s#1, %j : KIND, index
  }
  return %r#0 : KIND
}
// ----- two_matmuls_from_one_fill_get_one_each
func.func @f(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x8xf32>
  %clear = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  %x = linalg.matmul ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%clear : tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = linalg.matmul ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%clear : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %x, %y : tensor<8x8xf32>, tensor<8x8xf32>
}
// CHECK-NOT: memref.copy
// CHECK: linalg.fill
// CHECK-NOT: memref.copy
// CHECK: linalg.fill
// CHECK-NOT: {{memref\.copy|linalg\.fill}}
// ----- a_fill_of_one_user_stays_one
func.func @f(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> (tensor<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<8x8xf32>
  %clear = linalg.fill ins(%zero : f32) outs(%empty : tensor<8x8xf32>) -> tensor<8x8xf32>
  %x = linalg.matmul ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%clear : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %x : tensor<8x8xf32>
}
// CHECK: linalg.fill
// CHECK-NOT: linalg.fill
// ----- a_fill_of_an_argument_is_left_alone
func.func @f(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %clear = linalg.fill ins(%zero : f32) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  %x = linalg.matmul ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%clear : tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = linalg.matmul ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%clear : tensor<8x8xf32>) -> tensor<8x8xf32>
  return %x, %y : tensor<8x8xf32>, tensor<8x8xf32>
}
// CHECK: linalg.fill
// CHECK-NOT: linalg.fill
// ----- TWO_STREAMS
func.func @f(%a: memref<4xf32>) {
  %s = "gpux.create_stream"() : () -> !gpux.StreamType
  %t = "gpux.create_stream"() : () -> !gpux.StreamType
  %d = "gpux.alloc"(%s) : (!gpux.StreamType) -> memref<4xf32>
  "gpux.memcpy"(%t, %d, %a) : (!gpux.StreamType, memref<4xf32>, memref<4xf32>) -> ()
  return
}
// ----- SIZE_OF_THE_BRANCH
func.func @f(%a: memref<?xf32>, %flag: i1, %n: index) {
  %c1 = arith.constant 1 : index
  %r = scf.if %flag -> (memref<?xf32>) {
    %m = arith.addi %n, %c1 : index
    %x = gpu.alloc (%m) : memref<?xf32>
    scf.yield %x : memref<?xf32>
  } else {
    scf.yield %a : memref<?xf32>
  }
  gpu.memcpy %a, %r : memref<?xf32>, memref<?xf32>
  return
}
// ----- OF_A_STREAM
%s = "gpux.create_stream"() : () -> !gpux.StreamType
%d = "gpux.alloc"(%s) : (!gpux.StreamType) -> memref<4xf32>
"gpux.memcpy"(%s, %d, %a) : (!gpux.StreamType, memref<4xf32>, memref<4xf32>) -> ()
"gpux.wait"(%s) : (!gpux.StreamType) -> ()
"gpux.destroy_stream"(%s) : (!gpux.StreamType) -> ()
// ----- ADDRESS_TAKEN
%d = gpu.alloc () : memref<4xf32>
gpu.memcpy %d, %a : memref<4xf32>, memref<4xf32>
%n = memref.extract_aligned_pointer_as_index %d : memref<4xf32> -> index
memref.store %n, %p[] : memref<index>
// ----- HANDED_ON
%r = scf.if %flag -> (memref<4xf32>) {
  %x = gpu.alloc () : memref<4xf32>
  scf.yield %x : memref<4xf32>
} else {
  scf.yield %a : memref<4xf32>
}
gpu.memcpy %a, %r : memref<4xf32>, memref<4xf32>
// ----- OF_A_DESCRIPTOR
%x = gpu.alloc () : memref<4x4xf32>
%y = memref.cast %x : memref<4x4xf32> to memref<?x4xf32>
%any = memref.cast %y : memref<?x4xf32> to memref<*xf32>
%map = nvgpu.tma.create.descriptor %any box[%i, %i] : memref<*xf32> -> !nvgpu.tensormap.descriptor<tensor = memref<4x4xf32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
gpu.launch blocks(%b0, %b1, %b2) in (%g0 = %i, %g1 = %i, %g2 = %i)
          threads(%t0, %t1, %t2) in (%s0 = %i, %s1 = %i, %s2 = %i) {
  nvgpu.tma.prefetch.descriptor %map : !nvgpu.tensormap.descriptor<tensor = memref<4x4xf32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
  gpu.terminator
}
// ----- PADDED
func.func @main(%x: tensor<5x8xf32>) -> tensor<ROWSxCOLUMNSxf32> {
      %c = arith.constant 7.0 : f32
      %y = tensor.pad %x lowLOW highHIGH {
      ^bb0(%i: index, %j: index):
        tensor.yield %c : f32
      } : tensor<5x8xf32> to tensor<ROWSxCOLUMNSxf32>
      return %y : tensor<ROWSxCOLUMNSxf32>
    }
// ----- LEAVES_AN_ITERATION
func.func @f(%i: index, %m: index, %box: memref<index>, %o: memref<f32>) {
      %r = scf.for %j = %i to %m step %i iter_args(%k = %i) -> (index) {
        %x = gpu.alloc () : KIND
        ADDRESS
        END
      }
      LOADED
      return
    }
