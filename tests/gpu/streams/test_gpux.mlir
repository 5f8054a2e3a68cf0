// ----- a_token_of_another_stream_is_an_event_after_its_work
%t0 = gpux.memcpy async %s, %d, %a : memref<16xf32>, memref<16xf32>
gpux.memcpy %s, %a, %d : memref<16xf32>, memref<16xf32>
gpux.dealloc [%t0] %r, %d : memref<16xf32>
// before what follows on the first stream is done
// CHECK: operations:
// CHECK-NEXT: "gpux.memcpy"
// CHECK-NEXT: "gpux.record_event"
// CHECK-NEXT: "gpux.memcpy"
// CHECK-NEXT: "gpux.wait_event"(%arg1, %0)
// CHECK-NEXT: "gpux.dealloc"
// CHECK-NEXT: "gpux.destroy_event"
// CHECK-NOT: gpux
// ----- a_token_of_the_same_stream_orders_nothing_more
%t0 = gpux.memcpy async %s, %d, %a : memref<16xf32>, memref<16xf32>
%t1 = gpux.dealloc async [%t0] %s, %d : memref<16xf32>
// CHECK: operations:
// CHECK-NEXT: "gpux.memcpy"
// CHECK-NEXT: "gpux.dealloc"
// CHECK-NOT: gpux
// ----- an_event_serves_all_who_take_its_token
%t0 = gpux.memcpy async %s, %d, %a : memref<16xf32>, memref<16xf32>
gpux.memcpy [%t0] %r, %a, %d : memref<16xf32>, memref<16xf32>
gpux.memcpy [%t0] %r, %a, %d : memref<16xf32>, memref<16xf32>
// CHECK: operations:
// CHECK-NEXT: "gpux.memcpy"
// CHECK-NEXT: "gpux.record_event"
// CHECK-NEXT: "gpux.wait_event"
// CHECK-NEXT: "gpux.memcpy"
// CHECK-NEXT: "gpux.wait_event"
// CHECK-NEXT: "gpux.memcpy"
// CHECK-NEXT: "gpux.destroy_event"
// CHECK-NOT: gpux
// ----- an_asynchronous_wait_for_tokens_joins_them
%t0 = gpux.memcpy async %s, %d, %a : memref<16xf32>, memref<16xf32>
%t1 = gpux.memcpy async %r, %a, %d : memref<16xf32>, memref<16xf32>
%t2 = gpu.wait async [%t0, %t1]
gpux.dealloc [%t2] %s, %d : memref<16xf32>
// CHECK: operations:
// CHECK-NEXT: "gpux.memcpy"
// CHECK-NEXT: "gpux.memcpy"
// CHECK-NEXT: "gpux.record_event"
// CHECK-NEXT: "gpux.wait_event"
// CHECK-NEXT: "gpux.dealloc"
// CHECK-NEXT: "gpux.destroy_event"
// CHECK-NOT: gpux
// ----- a_wait_for_tokens_holds_the_host
%t0 = gpux.memcpy async %s, %d, %a : memref<16xf32>, memref<16xf32>
%t1 = gpux.memcpy async %r, %a, %d : memref<16xf32>, memref<16xf32>
gpu.wait [%t0, %t1]
// CHECK: operations:
// CHECK-NEXT: "gpux.memcpy"
// CHECK-NEXT: "gpux.memcpy"
// CHECK-NEXT: "gpux.wait"(%arg0)
// CHECK-NEXT: "gpux.wait"(%arg1)
// CHECK-NOT: gpux
// ----- a_wait_of_a_stream_with_a_token_is_no_wait_of_the_host
%t0 = gpux.memcpy async %s, %d, %a : memref<16xf32>, memref<16xf32>
%t1 = gpux.wait async [%t0] %r
gpux.dealloc [%t1] %s, %d : memref<16xf32>
// CHECK: operations:
// CHECK-NEXT: "gpux.memcpy"
// CHECK-NEXT: "gpux.record_event"
// CHECK-NEXT: "gpux.wait_event"
// CHECK-NEXT: "gpux.destroy_event"
// CHECK-NEXT: "gpux.record_event"
// CHECK-NEXT: "gpux.wait_event"
// CHECK-NEXT: "gpux.dealloc"
// CHECK-NEXT: "gpux.destroy_event"
// CHECK-NOT: gpux
// ----- a_loop_that_hands_a_token_on_along_one_stream_needs_no_event
%t0 = gpux.memcpy async %s, %d, %a : memref<16xf32>, memref<16xf32>
%t1 = scf.for %i = %c0 to %c1 step %c1 iter_args(%t = %t0) -> (!gpu.async.token) {
  %u = gpux.memcpy async [%t] %s, %d, %a : memref<16xf32>, memref<16xf32>
  scf.yield %u : !gpu.async.token
}
gpux.dealloc [%t1] %s, %d : memref<16xf32>
// CHECK: operations:
// CHECK-NEXT: "gpux.memcpy"
// CHECK-NEXT: "gpux.memcpy"
// CHECK-NEXT: "gpux.dealloc"
// CHECK-NOT: gpux
// ----- a_token_that_control_flow_chooses_is_a_stream_to_wait_for
%t0 = gpux.memcpy async %s, %d, %a : memref<16xf32>, memref<16xf32>
%t1 = scf.if %x -> (!gpu.async.token) {
  scf.yield %t0 : !gpu.async.token
} else {
  %u = gpux.memcpy async %r, %d, %a : memref<16xf32>, memref<16xf32>
  scf.yield %u : !gpu.async.token
}
gpux.dealloc [%t1] %s, %d : memref<16xf32>
// CHECK: operations:
// CHECK-NEXT: "gpux.memcpy"
// CHECK-NEXT: "gpux.memcpy"
// CHECK-NEXT: "gpux.wait_stream"(%arg0, %0){{$}}
// CHECK-NEXT: "gpux.dealloc"
// CHECK-NOT: gpux
// ----- the_token_of_no_work_is_the_callers_stream
%t0 = gpux.memcpy async %s, %d, %a : memref<16xf32>, memref<16xf32>
%n = gpu.wait async
%t1 = arith.select %x, %n, %t0 : !gpu.async.token
gpux.dealloc [%t1] %s, %d : memref<16xf32>
// CHECK: operations:
// CHECK-NEXT: "gpux.create_stream"
// CHECK-NEXT: "gpux.memcpy"
// CHECK-NEXT: "gpux.wait_stream"
// CHECK-NEXT: "gpux.dealloc"
// CHECK-NOT: gpux
// ----- WHOLE
func.func @main(%x: memref<8xf32>, %z: i32) {
  %c1 = arith.constant 1 : index
  %s = gpux.create_stream
  %0 = gpux.alloc (%s) : memref<8xf32>
  gpux.memcpy %s, %0, %x : memref<8xf32>, memref<8xf32>
  gpux.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
    dynamic_shared_memory_size %z args(%s : !gpux.StreamType, %0 : memref<8xf32>)
  gpux.wait %s
  gpux.dealloc(%s, %0) : (!gpux.StreamType, memref<8xf32>) -> ()
  gpux.destroy_stream %s
  return
}
// ----- FORMS
// printed: %s = gpux.create_stream
%s = "gpux.create_stream"() : () -> (!gpux.StreamType)

// printed: %s = gpux.create_stream () : () -> !gpux.StreamType
%s = "gpux.create_stream"() : () -> (!gpux.StreamType)

// printed: %s = gpux.create_stream %d, %c : (!gpux.DeviceType, !gpux.ContextType) -> !gpux.StreamType
%s = "gpux.create_stream"(%d, %c) : (!gpux.DeviceType, !gpux.ContextType) -> (!gpux.StreamType)

// printed: gpux.stream.destroy(%s) : (!gpux.StreamType) -> ()
"gpux.destroy_stream"(%s) : (!gpux.StreamType) -> ()

// printed: gpux.destroy_stream %s
"gpux.destroy_stream"(%s) : (!gpux.StreamType) -> ()

// printed: gpux.wait %s
"gpux.wait"(%s) : (!gpux.StreamType) -> ()

// printed: %t = gpux.wait async [%u] (%s) : !gpux.StreamType
%t = "gpux.wait"(%u, %s) : (!gpu.async.token, !gpux.StreamType) -> (!gpu.async.token)

// printed: %0 = gpux.alloc (%s) : (!gpux.StreamType) -> memref<8xf32>
%0 = "gpux.alloc"(%s) {operandSegmentSizes = array<i32: 0, 1, 0, 0>} : (!gpux.StreamType) -> (memref<8xf32>)

// printed: %0, %t = gpux.alloc async [%u] host_shared (%s, %n)[%m] {x = 1} : memref<?xf32, #m>
%0, %t = "gpux.alloc"(%u, %s, %n, %m) {hostShared, x = 1, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (!gpu.async.token, !gpux.StreamType, index, index) -> (memref<?xf32, #m>, !gpu.async.token)

// printed: gpux.dealloc(%s, %0) : (!gpux.StreamType, memref<8xf32>) -> ()
"gpux.dealloc"(%s, %0) : (!gpux.StreamType, memref<8xf32>) -> ()

// printed: gpux.dealloc (%s, %0) : memref<8xf32>
"gpux.dealloc"(%s, %0) : (!gpux.StreamType, memref<8xf32>) -> ()

// printed: gpux.memcpy %s, %0, %1 : memref<8xf32>, memref<8xf32>
"gpux.memcpy"(%s, %0, %1) : (!gpux.StreamType, memref<8xf32>, memref<8xf32>) -> ()

// printed: gpux.memset(%s, %0, %v) : memref<8xf32>, f32
"gpux.memset"(%s, %0, %v) : (!gpux.StreamType, memref<8xf32>, f32) -> ()

// printed: gpux.launch_func @m::@k blocks in (%a, %b, %c) threads in (%d, %e, %f) args(%s : !gpux.StreamType, %0 : memref<8xf32>)
"gpux.launch_func"(%s, %a, %b, %c, %d, %e, %f, %0) {kernel = @m::@k, operandSegmentSizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 1, 0, 1>} : (!gpux.StreamType, index, index, index, index, index, index, memref<8xf32>) -> ()

// printed: %t = gpux.launch_func async [%u] %s, @m::@k, blocks in (%a, %b, %c) threads in (%d, %e, %f) dynamic_shared_memory_size %z
%t = "gpux.launch_func"(%u, %s, %a, %b, %c, %d, %e, %f, %z) {kernel = @m::@k, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 0>} : (!gpu.async.token, !gpux.StreamType, index, index, index, index, index, index, i32) -> (!gpu.async.token)
// ----- REFUSED
// refused: gpux\.fly at .*: found gpux\.fly, allowed gpux\.alloc, 
"gpux.fly"() : () -> ()

// refused: gpux\.create_stream at .*: found an operand of type index, allowed !gpux\.DeviceType and 
// arguments: %x: index
%s = "gpux.create_stream"(%x) : (index) -> !gpux.StreamType

// refused: found no stream as first operand
// arguments: %a: memref<16xf32>
"gpux.wait"(%a) : (memref<16xf32>) -> ()

// refused: gpux\.memcpy at .*: found 1 operands after the stream, allowed those of gpu\.memcpy
// arguments: %a: memref<16xf32>
%s = "gpux.create_stream"() : () -> !gpux.StreamType
"gpux.memcpy"(%s, %a) : (!gpux.StreamType, memref<16xf32>) -> ()

// refused: found operandSegmentSizes = \[1, 1, .*\], allowed 0, 1 and 8 more
%s = "gpux.create_stream"() : () -> !gpux.StreamType
%d = memref.alloc() : memref<16xf32>
"gpux.launch_func"(%s, %c1, %c1, %c1, %c16, %c1, %c1, %d) {kernel = @m::@inc, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 0, 1>} : (!gpux.StreamType, index, index, index, index, index, index, memref<16xf32>) -> ()

// refused: found no operandSegmentSizes, allowed 0, 1 and 8 more
%s = "gpux.create_stream"() : () -> !gpux.StreamType
%d = memref.alloc() : memref<16xf32>
"gpux.launch_func"(%s, %c1, %c1, %c1, %c16, %c1, %c1, %d) {kernel = @m::@inc, sizes = array<i32: 0, 1, 1, 1, 1, 1, 1, 1, 0, 1>} : (!gpux.StreamType, index, index, index, index, index, index, memref<16xf32>) -> ()

// refused: gpux\.memset at .*: found a fill of memref<16xi8>, allowed whole memory of 16 or 32 bits
// arguments: %s: !gpux.StreamType, %b: memref<16xi8>, %x: i8
gpux.memset %s, %b, %x : memref<16xi8>, i8

// refused: test\.stream at .*: found a stream that it gives, allowed streams of gpux\.create_stream
%s = "test.stream"() : () -> !gpux.StreamType
"gpux.wait"(%s) : (!gpux.StreamType) -> ()

// refused: gpux\.wait at .*: found a stream that is destroyed before, allowed one that is still there
%s = "gpux.create_stream"() : () -> !gpux.StreamType
"gpux.destroy_stream"(%s) : (!gpux.StreamType) -> ()
"gpux.wait"(%s) : (!gpux.StreamType) -> ()
// ----- OTHER_TOKENS
// refused: gpu\.memcpy at .*: found a token next to GPUX, allowed those of gpux
%t = gpu.memcpy async %d, %a : memref<16xf32>, memref<16xf32>
gpux.dealloc [%t] %s, %d : memref<16xf32>

// refused: func\.func at .*: found a token as argument, allowed those of gpux operations
// arguments: , %t: !gpu.async.token
gpux.dealloc [%t] %s, %d : memref<16xf32>
// ----- BREAKS_OFF
// refused: line 2:15: GPUX: found the end, allowed '\)'
gpux.alloc (%s

// refused: line 2:16: GPUX: found the end, allowed ':' and the type of the memref
gpux.alloc (%s)

// refused: line 2:20: GPUX: found 'k', allowed @module::@kernel
  gpux.launch_func k

// refused: GPUX: found '\(%a\)', allowed 'in'
gpux.launch_func @m::@k blocks (%a)

// refused: allowed three sizes of blocks, not 1
gpux.launch_func @m::@k blocks in (%a)

// refused: allowed 2 types, one for each operand
gpux.dealloc(%s, %0) : (!gpux.StreamType) -> ()

// refused: found the end, allowed '}'
gpux.wait %s {a

// refused: found '\?', allowed a type
gpux.dealloc %s, %0 : ?
// ----- PROGRAM
module attributes {gpu.container_module} {
  func.func @main(ARGUMENTS) {
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
TEXT
    return
  }
KERNELS}
// ----- OF_TOKENS
module attributes {gpu.container_module} {
              func.func @main(STREAMS) {
                %c0 = arith.constant 0 : index
                %c1 = arith.constant 1 : index
                TEXT
                return
              }
            KERNELS}
