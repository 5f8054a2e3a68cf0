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
