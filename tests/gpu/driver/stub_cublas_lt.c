// cuBLASLt on host memory: 8-bit floats in TN, three algorithms of which the second is refused when it is called.
#include <stdint.h>
#include <string.h>
enum { F32, F16 = 2, BF16 = 14, E4M3 = 28, COMPUTE_32F = 68, TRANSA = 3, TRANSB, FAST_ACCUM = 25 };
typedef struct { int compute, scale, op_a, op_b; int8_t fast; } Matmul;
typedef struct { int type; uint64_t rows, columns; int64_t ld; } Layout;
typedef struct { uint64_t data[8]; } Algorithm;
typedef struct { Algorithm algorithm; size_t workspace; int status; float waves; int reserved[4]; } Result;
int stub_lt_found = 3, stub_lt_calls[2], stub_lt_result;
uint64_t stub_lt_workspace_limit, stub_lt_algorithm;
static Matmul matmuls[16];
static Layout layouts[48];
static int used_matmuls, used_layouts, handle, preference;
const char *cublasLtGetStatusString(int status) { return status == 1 ? "not initialized" : "not supported"; }
size_t cublasLtGetVersion(void) { return 130102; }
int cublasLtCreate(void **out) { *out = &handle; return stub_lt_result; }
int cublasLtDestroy(void *at) { return at != &handle; }
int cublasLtMatmulDescCreate(void **out, int compute, int scale) {
  Matmul *new = &matmuls[used_matmuls++ % 16];
  memset(new, 0, sizeof *new);
  new->compute = compute;
  new->scale = scale;
  *out = new;
  return 0;
}
int cublasLtMatmulDescSetAttribute(Matmul *at, int attribute, const void *value, size_t bytes) {
  if (attribute == FAST_ACCUM && bytes == 1) at->fast = *(const int8_t *)value;
  else if (attribute == TRANSA && bytes == 4) at->op_a = *(const int *)value;
  else if (attribute == TRANSB && bytes == 4) at->op_b = *(const int *)value;
  else return 7;
  return 0;
}
int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  Layout *new = &layouts[used_layouts++ % 48];
  *new = (Layout){type, rows, columns, ld};
  *out = new;
  return (uint64_t)ld < rows;
}
int cublasLtMatmulPreferenceCreate(void **out) { *out = &preference; return 0; }
int cublasLtMatmulPreferenceDestroy(void *at) { return at != &preference; }
int cublasLtMatmulPreferenceSetAttribute(void *at, int attribute, const void *value, size_t bytes) {
  memcpy(&stub_lt_workspace_limit, value, 8);
  return at != &preference || attribute != 1 || bytes != 8;
}
int cublasLtMatmulAlgoGetHeuristic(void *at, const Matmul *matmul, const Layout *a, const Layout *b, const Layout *c,
                                   const Layout *d, void *preferred, int asked, Result *results, int *count) {
  int is_tn = matmul->op_a == 1 && matmul->op_b == 0, rows = a->columns % 16 || b->columns % 16 || a->rows % 16;
  if (at != &handle || preferred != &preference || c != d) return 7;
  if (!is_tn || rows || a->type != E4M3 || b->type != E4M3 || matmul->compute != COMPUTE_32F) return 15;
  *count = stub_lt_found < asked ? stub_lt_found : asked;
  for (int i = 0; i < *count; i++) results[i] = (Result){{{i + 1}}, 0, 0, 1.0f};
  return 0;
}
static double decoded(uint8_t bits) {
  int exponent = bits >> 3 & 15, mantissa = bits & 7;
  double value = exponent ? 1 + mantissa / 8.0 : mantissa / 8.0;
  if (exponent == 15 && mantissa == 7) return __builtin_nan("");
  for (int e = exponent ? exponent : 1; e < 7; e++) value /= 2;
  for (int e = 7; e < exponent; e++) value *= 2;
  return bits >> 7 ? -value : value;
}
static void put(char *at, int type, long i, double value) {
  float f = (float)value;
  uint32_t bits;
  if (type == F32) ((float *)at)[i] = f;
  if (type == F16) ((_Float16 *)at)[i] = (_Float16)f;
  if (type != BF16) return;
  memcpy(&bits, &f, 4);
  ((uint16_t *)at)[i] = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
int cublasLtMatmul(void *at, const Matmul *matmul, const float *alpha, const uint8_t *a, const Layout *of_a,
                   const uint8_t *b, const Layout *of_b, const float *beta, const char *c, const Layout *of_c, char *d,
                   const Layout *of_d, const Algorithm *algorithm, void *workspace, size_t bytes, void *stream) {
  (void)stream;
  if (at != &handle || c != d || of_c != of_d || *beta != 0 || !workspace || bytes != stub_lt_workspace_limit) return 7;
  if (algorithm->data[0] == 2) return 15;
  stub_lt_algorithm = algorithm->data[0];
  stub_lt_calls[matmul->fast]++;
  for (uint64_t j = 0; j < of_b->columns; j++)
    for (uint64_t i = 0; i < of_a->columns; i++) {
      double sum = 0;
      for (uint64_t p = 0; p < of_a->rows; p++) sum += decoded(a[i * of_a->ld + p]) * decoded(b[j * of_b->ld + p]);
      put(d, of_d->type, j * of_d->ld + i, *alpha * sum);
    }
  return 0;
}
