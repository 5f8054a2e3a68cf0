// ----- calls_are_inlined_and_only_the_entry_is_left
func.func @exp(%x: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %y = linalg.exp ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = call @exp(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
// CHECK-NOT: @exp
// CHECK: func.func @main(
// CHECK-NOT: func.
// CHECK: linalg.exp
// CHECK-NOT: func.
// ----- gpux_is_read_as_documents_print_it
func.func @main() {
  %s = gpux.create_stream () : () -> !gpux.StreamType
  %0 = gpux.alloc (%s) : (!gpux.StreamType) -> memref<8xf32>
  gpux.dealloc(%s, %0) : (!gpux.StreamType, memref<8xf32>) -> ()
  gpux.stream.destroy(%s) : (!gpux.StreamType) -> ()
  return
}
// CHECK: "gpux.create_stream"
// CHECK-NEXT: "gpux.alloc"
// CHECK-NEXT: "gpux.dealloc"
// CHECK-NEXT: "gpux.destroy_stream"
// CHECK-NOT: "gpux.
// ----- global_memory_as_a_number_is_the_default
func.func @f(%x: memref<4xf32, 1>) { return }
// CHECK: @f(%arg0: memref<4xf32>)
// ----- global_memory_as_a_word_is_the_default
func.func @f(%x: memref<4xf32, #gpu.address_space<global>>) { return }
// CHECK: @f(%arg0: memref<4xf32>)
// ----- memory_of_a_kernel_may_have_a_memory_space
func.func @f() {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%a, %b, %c) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%d, %e, %f) in (%tx = %c1, %ty = %c1, %tz = %c1)
             workgroup(%s : memref<4xf32, #gpu.address_space<workgroup>>) {
    gpu.barrier
    gpu.terminator
  }
  return
}
// CHECK: workgroup(%{{.*}} : memref<4xf32, #gpu.address_space<workgroup>>)
// CHECK: gpu.barrier
// ----- what_the_entry_does_not_call_may_call_anything
func.func private @print()
func.func private @g() {
  func.call @g() : () -> ()
  func.call @print() : () -> ()
  return
}
func.func @f() { return }
// CHECK-NOT: @g
// CHECK: @f()
// CHECK-NOT: @g
// ----- the_device_is_that_of_the_run_and_registration_is_an_op
func.func private @mgpuSetDefaultDevice(i32)
func.func private @mgpuMemHostRegisterFloat(memref<*xf32>)
func.func @main(%a: memref<4xf32>) {
  %device = arith.constant 0 : i32
  call @mgpuSetDefaultDevice(%device) : (i32) -> ()
  %any = memref.cast %a : memref<4xf32> to memref<*xf32>
  call @mgpuMemHostRegisterFloat(%any) : (memref<*xf32>) -> ()
  return
}
// CHECK-NOT: mgpu
// CHECK: gpu.host_register
// CHECK-NOT: mgpu
// ----- tensors_become_memrefs_and_results_stay_results
func.func @exp(%x: tensor<4xf32>) -> tensor<4xf32> {
  %empty = tensor.empty() : tensor<4xf32>
  %y = linalg.exp ins(%x : tensor<4xf32>) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
// CHECK-NOT: tensor
// CHECK: func.func @exp({{.*}}) -> memref<4xf32>
// CHECK-NOT: tensor
// ----- a_tensor_argument_is_never_written
func.func @add(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %z = linalg.add ins(%x, %y : tensor<4xf32>, tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
  return %z : tensor<4xf32>
}
// CHECK-NOT: outs(%arg
// CHECK: outs(%alloc
// CHECK-NOT: outs(%arg
// ----- a_returned_argument_is_a_copy_of_it
func.func @same(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }
// CHECK: memref.copy %arg0
// CHECK: return %alloc
// ----- arithmetic_on_tensors_becomes_an_op_on_memrefs
func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = arith.addf %x, %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
// CHECK-NOT: tensor
// CHECK: linalg.generic
// CHECK-NOT: tensor
// ----- allocations_of_a_function_that_frees_nothing_are_freed
func.func @f(%x: memref<4xf32>) {
  %a = memref.alloc() : memref<4xf32>
  memref.copy %x, %a : memref<4xf32> to memref<4xf32>
  return
}
// CHECK: memref.alloc()
// CHECK-NOT: memref.alloc()
// CHECK: memref.dealloc
// CHECK-NOT: memref.{{(de)?}}alloc
// ----- what_a_function_frees_itself_is_left_to_it
func.func @f() -> memref<4xf32> {
  %a = memref.alloc() : memref<4xf32>
  %b = memref.alloc() : memref<4xf32>
  memref.copy %a, %b : memref<4xf32> to memref<4xf32>
  memref.dealloc %a : memref<4xf32>
  return %b : memref<4xf32>
}
// CHECK: memref.dealloc
// CHECK-NOT: memref.dealloc
// ----- memory_of_outlined_kernels_is_freed_after_their_launch
module attributes {gpu.container_module} {
  gpu.module @m { gpu.func @k(%a: memref<4xf32>) kernel { gpu.return } }
  func.func @f() {
    %c1 = arith.constant 1 : index
    %a = memref.alloc() : memref<4xf32>
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<4xf32>)
    return
  }
}
// CHECK-NOT: memref.dealloc
// CHECK: gpu.launch_func
// CHECK: memref.dealloc
// ----- memory_of_kernels_with_a_barrier_is_freed_after_them
func.func @f(%p: memref<4xf32>) {
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<4xf32>
  memref.copy %p, %a : memref<4xf32> to memref<4xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
    %x = memref.load %a[%bx] : memref<4xf32>
    gpu.barrier
    memref.store %x, %p[%bx] : memref<4xf32>
    gpu.terminator
  }
  return
}
// CHECK-NOT: memref.dealloc
// CHECK: gpu.terminator
// CHECK: memref.dealloc
// ----- KINDS
func.func @f(%a: memref<2x?xbf16>, %n: index, %x: f64) -> (memref<?x4xi8>, i1) {
  %c = memref.alloc(%n) : memref<?x4xi8>
  %yes = arith.constant true
  return %c, %yes : memref<?x4xi8>, i1
}
// ----- WRITTEN
func.func @f(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>, %i: index) {
  memref.copy %a, %b : memref<4xf32> to memref<4xf32>
  %view = memref.subview %c[%i] [1] [1] : memref<4xf32> to memref<1xf32, strided<[1], offset: ?>>
  %x = memref.load %a[%i] : memref<4xf32>
  linalg.fill ins(%x : f32) outs(%view : memref<1xf32, strided<[1], offset: ?>>)
  return
}
// ----- GATHER

#map = affine_map<(d0) -> (d0)>
func.func @main(%table: tensor<ROWSx4xf32>, %at: tensor<5xi64>) -> tensor<5xf32> {
  %e = tensor.empty() : tensor<5xf32>
  %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]}
    ins(%at : tensor<5xi64>) outs(%e : tensor<5xf32>) {
  ^bb0(%i: i64, %out: f32):
    %row = arith.index_cast %i : i64 to index
    %c4 = arith.constant 4 : index
    %n = linalg.index 0 : index
    %column = arith.remsi %n, %c4 : index
    %x = tensor.extract %table[%row, %column] : tensor<ROWSx4xf32>
    linalg.yield %x : f32
  } -> tensor<5xf32>
  return %r : tensor<5xf32>
}
// ----- LOOP

func.func @main(%table: tensor<8xi64>, %first: index) -> i64 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0 : i64
  %sum, %last = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero, %at = %first) -> (i64, index) {
    %x = tensor.extract %table[%i] : tensor<8xi64>
    %y = tensor.extract %table[%at] : tensor<8xi64>
    %next = arith.index_cast %y : i64 to index
    %t = arith.addi %s, %x : i64
    scf.yield %t, %next : i64, index
  }
  return %sum : i64
}
// ----- REFUSED
// refused: payload: .*
def f(): pass

// refused: .*unregistered dialect.*
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = "own.op"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// refused: payload: error: line 3:3: found foo\.bar of dialect foo, allowed dialects that MLIR or GPUX has
func.func @f() {
  foo.bar
  return
}

// refused: payload: public functions: found f, g, allowed one, or one that is named as the entry or main
func.func @f() { return } func.func @g() { return }

// refused: payload: entry: found 'matmul', allowed exp
// entry: matmul
func.func @exp() { return }

// refused: payload: public functions: found none.*

// refused: payload: func\.call at line 3:36: found a call of @g, which has no body, allowed calls that can be inlined, and MLIR's runner functions, such as @printMemrefF32
func.func private @g(memref<4xf32>)
func.func @f(%x: memref<4xf32>) {  func.call @g(%x) : (memref<4xf32>) -> () return }

// refused: payload: func\.call at line 2:36: found a call of @f, which calls itself, or is between functions that do, allowed calls that can be inlined, and MLIR's runner functions, such as @printMemrefF32
func.func @f(%x: memref<4xf32>) {  func.call @f(%x) : (memref<4xf32>) -> () return }

// refused: payload: func\.call at line 4:18: found a call of @g, which calls itself, or is between functions that do, allowed calls that can be inlined, and MLIR's runner functions, such as @printMemrefF32
func.func private @g() { func.call @h() : () -> () return }
func.func private @h() { func.call @g() : () -> () return }
func.func @f() { func.call @g() : () -> () return }

// refused: payload: func\.call at line 4:26: found a call of @c, which calls itself, or is between functions that do, allowed calls that can be inlined, and MLIR's runner functions, such as @printMemrefF32
func.func private @a() { func.call @b() : () -> () return }
func.func private @b() { func.call @c() : () -> () return }
func.func private @c() { func.call @c() : () -> () return }
func.func @f() { func.call @a() : () -> () return }

// refused: payload: gpu\.func at line 3:19: found the name 'a b', allowed letters, digits, _ \. \$
module attributes {gpu.container_module} {
  gpu.module @m { gpu.func @"a b"(%x: memref<4xf32>) kernel { gpu.return } }
  func.func @f() { return }
}

// refused: payload: func\.func at line 2:1: found memref<4xf32, .*> outside of kernels, allowed the default memory space
func.func @f(%x: memref<4xf32, 3>) { return }

// refused: payload: func\.func at line 2:1: found memref<4xf32, .*> outside of kernels, allowed the default memory space
func.func @f(%x: memref<4xf32, 5>) { return }

// refused: payload: func\.func at line 2:1: found memref<4xf32, .*> outside of kernels, allowed the default memory space
func.func @f(%x: memref<4xf32, #gpu.address_space<private>>) { return }

// refused: payload: @mgpuSetDefaultDevice \(at line .*\): a program runs on one device, number 0
func.func private @mgpuSetDefaultDevice(i32)
func.func private @mgpuMemHostRegisterFloat(memref<*xf32>)
func.func @main(%a: memref<4xf32>) {
  %device = arith.constant 1 : i32
  call @mgpuSetDefaultDevice(%device) : (i32) -> ()
  %any = memref.cast %a : memref<4xf32> to memref<*xf32>
  call @mgpuMemHostRegisterFloat(%any) : (memref<*xf32>) -> ()
  return
}

// refused: .*found memory on several streams that nobody frees, allowed gpux\.dealloc of it.*
// stage: COMPILE
func.func @f(%a: memref<4xf32>) {
  %s = "gpux.create_stream"() : () -> !gpux.StreamType
  %t = "gpux.create_stream"() : () -> !gpux.StreamType
  %d = "gpux.alloc"(%s) : (!gpux.StreamType) -> memref<4xf32>
  "gpux.memcpy"(%t, %d, %a) : (!gpux.StreamType, memref<4xf32>, memref<4xf32>) -> ()
  return
}

// refused: .*found memory that leaves its branch, of a size that is computed there.*
// stage: COMPILE
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

// refused: .*found memory that leaves scf\.for and that nobody frees, allowed memory that is freed.*
// stage: COMPILE
func.func @f(%i: index, %m: index, %box: memref<index>, %o: memref<f32>) {
  %r = scf.for %j = %i to %m step %i iter_args(%k = %i) -> (index) {
    %x = gpu.alloc () : memref<4xf32>
    %n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
    scf.yield %n : index
  }
  %w = arith.index_cast %r : index to i64
  %p = llvm.inttoptr %w : i64 to !llvm.ptr
  %v = llvm.load %p : !llvm.ptr -> f32
  memref.store %v, %o[] : memref<f32>
  return
}

// refused: .*found memory that leaves scf\.for and that nobody frees, allowed memory that is freed.*
// stage: COMPILE
func.func @f(%i: index, %m: index, %box: memref<index>, %o: memref<f32>) {
  %r = scf.for %j = %i to %m step %i iter_args(%k = %i) -> (index) {
    %x = gpu.alloc () : memref<4xf32>
    %n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
    memref.store %n, %box[] : memref<index>
    scf.yield %k : index
  }
  %w = arith.index_cast %r : index to i64
  %p = llvm.inttoptr %w : i64 to !llvm.ptr
  %v = llvm.load %p : !llvm.ptr -> f32
  memref.store %v, %o[] : memref<f32>
  return
}

// refused: memref\.alloc at line 11:12: found memory that several blocks use and that nobody frees, allowed memory that is freed, or memory from outside
// stage: COMPILE
func.func @f(%a: memref<4xf32>, %go: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %d = gpu.alloc() : memref<4xf32>
  gpu.memcpy %d, %a : memref<4xf32>, memref<4xf32>
  scf.for %i = %c0 to %c2 step %c1 {
    scf.execute_region {
      %x = memref.alloc() : memref<4xf32>
      memref.copy %a, %x : memref<4xf32> to memref<4xf32>
      cf.cond_br %go, ^next, ^end
    ^next:
      memref.copy %x, %a : memref<4xf32> to memref<4xf32>
      cf.br ^end
    ^end:
      scf.yield
    }
  }
  gpu.memcpy %a, %d : memref<4xf32>, memref<4xf32>
  return
}
// ----- TEXT
module {
}

{-#
  dialect_resources: {
    builtin: {
      plain_torch.float32: "0x040000000000803F00000040",
      "odd, with } and : and #-}": "0x0400000001FF"
    }
  }
#-}
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
// ----- SWAPS
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
// ----- memory_of_a_stream_is_freed_in_front_of_its_end
func.func @f(%a: memref<4xf32>) {
  %s = "gpux.create_stream"() : () -> !gpux.StreamType
  %d = "gpux.alloc"(%s) : (!gpux.StreamType) -> memref<4xf32>
  "gpux.memcpy"(%s, %d, %a) : (!gpux.StreamType, memref<4xf32>, memref<4xf32>) -> ()
  "gpux.wait"(%s) : (!gpux.StreamType) -> ()
  "gpux.destroy_stream"(%s) : (!gpux.StreamType) -> ()
  return
}
// CHECK: func.func @f
// CHECK-NEXT: "gpux.create_stream"
// CHECK-NEXT: "gpux.alloc"
// CHECK-NEXT: "gpux.memcpy"
// CHECK-NEXT: "gpux.wait"
// CHECK-NEXT: "gpux.dealloc"
// CHECK-NEXT: "gpux.destroy_stream"
// CHECK-NEXT: return
// ----- memory_whose_address_is_taken_is_freed_at_the_end
func.func @f(%a: memref<4xf32>, %p: memref<index>) {
  %d = gpu.alloc () : memref<4xf32>
  gpu.memcpy %d, %a : memref<4xf32>, memref<4xf32>
  %n = memref.extract_aligned_pointer_as_index %d : memref<4xf32> -> index
  memref.store %n, %p[] : memref<index>
  return
}
// CHECK: memref.store
// CHECK-NEXT: gpu.dealloc
// CHECK-NEXT: return
// ----- memory_that_a_branch_hands_on_is_made_in_front_of_it_and_freed_behind
func.func @f(%a: memref<4xf32>, %flag: i1) {
  %r = scf.if %flag -> (memref<4xf32>) {
    %x = gpu.alloc () : memref<4xf32>
    scf.yield %x : memref<4xf32>
  } else {
    scf.yield %a : memref<4xf32>
  }
  gpu.memcpy %a, %r : memref<4xf32>, memref<4xf32>
  return
}
// CHECK: func.func @f
// CHECK-NEXT: gpu.alloc
// CHECK: gpu.memcpy
// CHECK-NEXT: gpu.dealloc
// CHECK-NEXT: return
// ----- memory_of_a_descriptor_is_freed_after_the_kernel
func.func @f(%i: index) {
  %x = gpu.alloc () : memref<4x4xf32>
  %y = memref.cast %x : memref<4x4xf32> to memref<?x4xf32>
  %any = memref.cast %y : memref<?x4xf32> to memref<*xf32>
  %map = nvgpu.tma.create.descriptor %any box[%i, %i] : memref<*xf32> -> !nvgpu.tensormap.descriptor<tensor = memref<4x4xf32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
  gpu.launch blocks(%b0, %b1, %b2) in (%g0 = %i, %g1 = %i, %g2 = %i)
            threads(%t0, %t1, %t2) in (%s0 = %i, %s1 = %i, %s2 = %i) {
    nvgpu.tma.prefetch.descriptor %map : !nvgpu.tensormap.descriptor<tensor = memref<4x4xf32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
    gpu.terminator
  }
  return
}
// CHECK: gpu.terminator
// CHECK-NEXT: }
// CHECK-NEXT: gpu.dealloc
// CHECK-NEXT: return
// ----- LEAVES_A_BRANCH
func.func @f(%i: index, %flag: i1, %o: memref<f32>) {
  %r = BRANCH -> INDEX {
    %x = ALLOCATES() : memref<4xf32>
    %n = memref.extract_aligned_pointer_as_index %x : memref<4xf32> -> index
    END %n : index
  CLOSE
  %w = arith.index_cast %r : index to i64
  %p = llvm.inttoptr %w : i64 to !llvm.ptr
  %v = llvm.load %p : !llvm.ptr -> f32
  memref.store %v, %o[] : memref<f32>
  return
}
// CHECK: func.func @f
// CHECK-NEXT: ALLOCATES{{ *}}(
// CHECK: llvm.load
// CHECK-NEXT: FREES
// CHECK-NEXT: memref.store
// CHECK-NEXT: return
// ----- PADDED
func.func @main(%x: tensor<5x8xf32>) -> tensor<ROWSxCOLUMNSxf32> {
      %c = arith.constant 7.0 : f32
      %y = tensor.pad %x lowLOW highHIGH {
      ^bb0(%i: index, %j: index):
        tensor.yield %c : f32
      } : tensor<5x8xf32> to tensor<ROWSxCOLUMNSxf32>
      return %y : tensor<ROWSxCOLUMNSxf32>
    }
// ----- GROWING_LOOP
func.func @f(%a: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 7.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a) -> (tensor<?xf32>) {
    %y = tensor.pad %x low[0] high[%c1] {
    ^bb0(%k: index):
      tensor.yield %z : f32
    } : tensor<?xf32> to tensor<?xf32>
    scf.yield %y : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}
// ----- GLOBAL_IN_A_KERNEL
memref.global @state : memref<4xf32> = dense<1.0>
func.func @main(%a: memref<4xf32>, %x: f32) {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  gpu.launch blocks(%b0, %b1, %b2) in (%g0 = %c1, %g1 = %c1, %g2 = %c1) threads(%t0, %t1, %t2) in (%s0 = %c4, %s1 = %c1, %s2 = %c1) {
    %h = memref.get_global @state : memref<4xf32>
    memref.store %x, %h[%t0] : memref<4xf32>
    gpu.terminator
  }
  %g = memref.get_global @state : memref<4xf32>
  memref.copy %g, %a : memref<4xf32> to memref<4xf32>
  return
}
// ----- GLOBALS_OF_KERNELS
module attributes {gpu.container_module} {
  gpu.module @m {
    memref.global @state : memref<4xf32> = dense<0.0>
    memref.global constant @table : memref<4xf32> = dense<2.0>
    gpu.func @writes(%a: memref<4xf32>) kernel {
      %c0 = arith.constant 0 : index
      %x = memref.load %a[%c0] : memref<4xf32>
      %s = memref.get_global @state : memref<4xf32>
      memref.store %x, %s[%c0] : memref<4xf32>
      gpu.return
    }
    gpu.func @looks_up(%a: memref<4xf32>) kernel {
      %c0 = arith.constant 0 : index
      %s = memref.get_global @table : memref<4xf32>
      %x = memref.load %s[%c0] : memref<4xf32>
      memref.store %x, %a[%c0] : memref<4xf32>
      gpu.return
    }
  }
  func.func @main(%a: memref<4xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@writes blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<4xf32>)
    gpu.launch_func @m::@looks_up blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<4xf32>)
    return
  }
}
// ----- FORWARDED_BY_A_CONDITION
func.func @main(%a: memref<2xf32>) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%b0, %b1, %b2) in (%g0 = %c1, %g1 = %c1, %g2 = %c1) threads(%t0, %t1, %t2) in (%s0 = %c1, %s1 = %c1, %s2 = %c1) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : index
    %three = arith.constant 3 : index
    %first = memref.alloc() : memref<1xf32>
    %x = memref.load %a[%c0] : memref<2xf32>
    memref.store %x, %first[%c0] : memref<1xf32>
    %r:2 = scf.while (%before = %first, %i = %c0) : (memref<1xf32>, index) -> (memref<1xf32>, index) {
      %t = memref.alloc() : memref<1xf32>
      %y = memref.load %a[%one] : memref<2xf32>
      memref.store %y, %t[%c0] : memref<1xf32>
      %z = memref.load %before[%c0] : memref<1xf32>
      memref.store %z, %a[%one] : memref<2xf32>
      %more = arith.cmpi slt, %i, %three : index
      scf.condition(%more) %t, %i : memref<1xf32>, index
    } do {
    ^bb0(%z: memref<1xf32>, %i: index):
      %j = arith.addi %i, %one : index
      scf.yield %z, %j : memref<1xf32>, index
    }
    %v = memref.load %r#0[%c0] : memref<1xf32>
    memref.store %v, %a[%c0] : memref<2xf32>
    gpu.terminator
  }
  return
}
