/* The one timer of the race: calls a kernel some times and returns the seconds per call.
 *
 * A kernel is a pointer and a convention of calling it; the arrays are contiguous and row-major,
 * A (m x k), B (k x n), C (m x n).
 */
#include <stdint.h>
#include <time.h>

enum convention {
  SIZED,    /* int f(a, b, c, m, n, k): exported by tuner */
  BARE,     /* void f(a, b, c): XTC */
  CBLAS,    /* void cblas_sgemm(...), with integers of 64 bits: OpenBLAS */
  TVM_FFI,  /* int f(self, arguments, count, result): a packed function of TVM */
  CALLABLE, /* PyObject *PyObject_CallNoArgs(object): what has no C function, arrays are bound before */
};

/* TVM's C ABI: dlpack.h and tvm/ffi/c_api.h. */
enum { DL_CPU = 1, FFI_DL_TENSOR = 7 };
typedef struct {
  void *data;
  int32_t device_type, device_id;
  int32_t dimensions;
  uint8_t type_code, type_bits;
  uint16_t type_lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} Tensor;
typedef struct {
  int32_t type, padding;
  union {
    int64_t integer;
    void *pointer;
  } value;
} Any;

typedef int (*Sized)(const void *, const void *, void *, int64_t, int64_t, int64_t);
typedef void (*Bare)(const void *, const void *, void *);
typedef void (*Cblas)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, float, const float *, int64_t,
                      const float *, int64_t, float, float *, int64_t);
typedef int (*Packed)(void *, const Any *, int32_t, Any *);
typedef void *(*CallNoArgs)(void *);
typedef void (*Release)(void *);
enum { ROW_MAJOR = 101, NOT_TRANSPOSED = 111 };

typedef struct {
  int64_t convention;
  void *function; /* of a CALLABLE: PyObject_CallNoArgs */
  void *object;   /* of a CALLABLE: what is called */
  void *release;  /* of a CALLABLE: Py_DecRef, for what it returns */
  void *a, *b, *c;
  int64_t m, n, k;
  int64_t input_code, input_bits, output_code, output_bits; /* DLPack's types, for TVM_FFI */
} Call;

static double now_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

static Tensor tensor(void *data, int64_t *shape, int64_t *strides, int64_t code, int64_t bits) {
  Tensor made = {data, DL_CPU, 0, 2, (uint8_t)code, (uint8_t)bits, 1, shape, strides, 0};
  return made;
}

/* Returns the seconds per call of `calls` calls; *status: nonzero where a call reports a failure. */
double time_calls(const Call *call, int64_t calls, int64_t *status) {
  const int64_t m = call->m, n = call->n, k = call->k;
  int64_t shape_a[2] = {m, k}, shape_b[2] = {k, n}, shape_c[2] = {m, n};
  int64_t strides_a[2] = {k, 1}, strides_bc[2] = {n, 1};
  Tensor tensors[3] = {
      tensor(call->a, shape_a, strides_a, call->input_code, call->input_bits),
      tensor(call->b, shape_b, strides_bc, call->input_code, call->input_bits),
      tensor(call->c, shape_c, strides_bc, call->output_code, call->output_bits),
  };
  Any arguments[3], result;
  for (int i = 0; i < 3; i++) {
    arguments[i].type = FFI_DL_TENSOR;
    arguments[i].padding = 0;
    arguments[i].value.pointer = &tensors[i];
  }
  *status = 0;
  const double start_s = now_s();
  for (int64_t i = 0; i < calls; i++) {
    switch (call->convention) {
    case SIZED: /* 1: a tuned kernel ran; 0: the portable loop */
      *status |= ((Sized)call->function)(call->a, call->b, call->c, m, n, k) != 1;
      break;
    case BARE:
      ((Bare)call->function)(call->a, call->b, call->c);
      break;
    case CBLAS:
      ((Cblas)call->function)(ROW_MAJOR, NOT_TRANSPOSED, NOT_TRANSPOSED, m, n, k, 1.0f, call->a, k, call->b, n,
                              0.0f, call->c, n);
      break;
    case TVM_FFI:
      result.type = 0;
      result.padding = 0;
      result.value.integer = 0;
      *status |= ((Packed)call->function)(0, arguments, 3, &result) != 0;
      break;
    case CALLABLE: {
      void *returned = ((CallNoArgs)call->function)(call->object);
      *status |= returned == 0;
      if (returned)
        ((Release)call->release)(returned);
      break;
    }
    default:
      *status |= 1;
    }
  }
  return (now_s() - start_s) / calls;
}
