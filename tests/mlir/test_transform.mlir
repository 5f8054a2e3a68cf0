// ----- PAYLOAD

module {
  func.func @f(%m: memref<8xf32>) {
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c1 = arith.constant 1 : index
    %z = arith.constant 0.0 : f32
    scf.for %i = %c0 to %c8 step %c1 {
      memref.store %z, %m[%i] : memref<8xf32>
    }
    return
  }
}
// ----- OLD
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%x: f32, %offset: i32, %width: i32) kernel {
      %n = "gpu.block_dim"() {dimension = "x"} : () -> (index)
      %t = "gpu.thread_id"() { dimension = "y" } : () -> index
      %s = "gpu.all_reduce"(%x) ({}) {op = "add"} : (f32) -> (f32)
      %r = "gpu.all_reduce"(%x) ({
      ^bb(%a: f32, %b: f32):
        %sum = arith.addf %a, %b : f32
        "gpu.yield"(%sum) : (f32) -> ()
      }) {op = "mul"} : (f32) -> (f32)
      %v, %p = "gpu.shuffle"(%x, %offset, %width) {mode = "xor"} : (f32, i32, i32) -> (f32, i1)
      %own = gpu.dynamic_shared_memory : memref<?xi8, 3>
      gpu.return
    }
    "gpu.module_end"() : () -> ()
  }
}
// ----- BOUND
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op,
      %product: !transform.op<"linalg.matmul">, %sizes: !transform.param<i64>,
      %results: !transform.any_value) {
    %count = transform.num_associations %sizes : (!transform.param<i64>) -> !transform.param<i64>
    transform.annotate %product "count" = %count : !transform.op<"linalg.matmul">, !transform.param<i64>
    %found = transform.get_defining_op %results : (!transform.any_value) -> !transform.any_op
    transform.annotate %found "found" : !transform.any_op
    transform.yield
  }
}
// ----- DECLARED
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(!transform.any_op {transform.readonly})
}
// ----- CONVERTED
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%root: !transform.any_op) {
    %function = transform.structured.match ops{["func.func"]} in %root
        : (!transform.any_op) -> !transform.any_op
    transform.apply_conversion_patterns to %function {
      transform.apply_conversion_patterns.func.func_to_llvm
    } with type_converter {
      transform.apply_conversion_patterns.memref.memref_to_llvm_type_converter {use_bare_ptr_call_conv = true}
    } {legal_dialects = ["llvm"], partial_conversion} : !transform.any_op
    transform.yield
  }
}
// ----- RETURNED
func.func @main(%x: memref<?xi8>) -> memref<?xi8> {
  return %x : memref<?xi8>
}
