/* A stand-in for libcuda: host memory, one queue that is always done, kernels handed to the test.
 *
 * Everything runs at its call, or is collected while its stream is captured. Calls are counted by name and can
 * be made to fail. Built by stub_driver.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define LIMIT 512
#define PARAMETERS 64
#define PARAMETER_BYTES 128
enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_DEVICE = 101,
       INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719,
       CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901, CAPTURE_UNMATCHED = 903, CAPTURE_ISOLATION = 905 };

typedef uint64_t address_t;
typedef int (*describe_t)(const char *image, const char *name, int *sizes);
typedef int (*launch_t)(const char *image, const char *name, const unsigned *sizes, void **parameters);

typedef struct { char *image; int is_live; } module_t;
typedef struct { module_t *module; char name[256]; int count, sizes[PARAMETERS]; int shared_limit; } function_t;
typedef struct capture_s capture_t;
typedef struct { int is_live; capture_t *capture; } stream_t;
typedef struct { int is_live, is_timed; double at_s; capture_t *capture; } event_t;
enum { COPY, FILL, LAUNCH, FREE, POISON };
typedef struct {
  int kind;
  address_t target, source;
  size_t bytes;
  unsigned value, item_bytes, sizes[7];
  function_t *function;
  uint8_t parameters[PARAMETERS][PARAMETER_BYTES];
} step_t;
struct capture_s { step_t *steps; int count, is_broken, is_over; stream_t *origin; };
typedef struct { address_t start; size_t bytes; int is_live, is_host; } block_t;

static struct { char name[48]; int calls, fail_result, fail_after; } calls[LIMIT];
static block_t blocks[4096];
static int block_count, is_initialized, sticky;
static __thread void *current_context;
static describe_t describe;
static launch_t run;
static stream_t default_stream = {1, NULL}, *streams[LIMIT];
static int stream_count;
static struct { int gpus, has_pools; } machine = {1, 1};

static int slot_of(const char *name) {
  int i = 0;
  while (calls[i].name[0] && strcmp(calls[i].name, name)) i++;
  strncpy(calls[i].name, name, sizeof calls[i].name - 1);
  return i;
}

static int enter(const char *name, int needs_context) {
  int i = slot_of(name);
  calls[i].calls++;
  if (calls[i].fail_result && calls[i].fail_after-- <= 0) {
    int result = calls[i].fail_result;
    calls[i].fail_result = 0;
    if (result == ILLEGAL_ADDRESS || result == LAUNCH_FAILED) sticky = result;
    return result;
  }
  if (sticky) return sticky;
  if (!is_initialized && strcmp(name, "cuInit") && strcmp(name, "cuDriverGetVersion")) return NOT_INITIALIZED;
  return needs_context && !current_context ? INVALID_CONTEXT : SUCCESS;
}
#define ENTER(name, needs_context) \
  do { int result_ = enter(name, needs_context); if (result_) return result_; } while (0)
#define REFUSE_UNLESS(condition, result) do { if (!(condition)) return (result); } while (0)

/* What tests call */
EXPORT void stub_reset(void) {
  for (int i = 0; i < block_count; i++)
    if (blocks[i].is_live) free((void *)blocks[i].start);
  memset(calls, 0, sizeof calls);
  block_count = is_initialized = sticky = 0;
  current_context = NULL;
  machine.gpus = machine.has_pools = 1;
  default_stream.capture = NULL;
  stream_count = 0;
}
EXPORT void stub_on_launch(describe_t tell, launch_t launch) { describe = tell; run = launch; }
EXPORT void stub_machine(int gpus, int has_pools) { machine.gpus = gpus; machine.has_pools = has_pools; }
EXPORT int stub_calls(const char *name) { return calls[slot_of(name)].calls; }
EXPORT void stub_fail(const char *name, int result, int after) {
  int i = slot_of(name);
  calls[i].fail_result = result;
  calls[i].fail_after = after;
}
EXPORT int stub_live_blocks(void) {
  int count = 0;
  for (int i = 0; i < block_count; i++) count += blocks[i].is_live;
  return count;
}
EXPORT int stub_find(address_t address, address_t *start, size_t *bytes) {
  for (int i = block_count - 1; i >= 0; i--)
    if (blocks[i].is_live && blocks[i].start <= address && address < blocks[i].start + blocks[i].bytes) {
      *start = blocks[i].start;
      *bytes = blocks[i].bytes;
      return 1;
    }
  return 0;
}

/* Steps */
static int drop(address_t start, int is_host) {
  for (int i = block_count - 1; i >= 0; i--)
    if (blocks[i].is_live && blocks[i].start == start && blocks[i].is_host == is_host) {
      blocks[i].is_live = 0;
      free((void *)start);
      return SUCCESS;
    }
  return INVALID_VALUE;
}
static int make(address_t *start, size_t bytes, int is_host) {
  REFUSE_UNLESS(bytes > 0, INVALID_VALUE);
  REFUSE_UNLESS(bytes < ((size_t)1 << 40) && block_count < 4096, OUT_OF_MEMORY);
  *start = (address_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
  memset((void *)*start, 0xFF, bytes);
  blocks[block_count++] = (block_t){*start, bytes, 1, is_host};
  return SUCCESS;
}
static int perform(step_t *step) {
  void *pointers[PARAMETERS];
  switch (step->kind) {
    case COPY: memmove((void *)step->target, (void *)step->source, step->bytes); break;
    case FILL:
      for (size_t i = 0; i < step->bytes; i++)
        memcpy((char *)step->target + i * step->item_bytes, &step->value, step->item_bytes);
      break;
    case POISON: memset((void *)step->target, 0xFF, step->bytes); break;
    case FREE: return step->bytes ? SUCCESS : drop(step->target, 0);
    case LAUNCH:
      for (int i = 0; i < step->function->count; i++) pointers[i] = step->parameters[i];
      if (run && run(step->function->module->image, step->function->name, step->sizes, pointers))
        return sticky = LAUNCH_FAILED;
  }
  return SUCCESS;
}
static stream_t *stream_of(void *handle) { return handle ? handle : &default_stream; }
static int enqueue(void *handle, step_t step) {
  stream_t *stream = stream_of(handle);
  REFUSE_UNLESS(stream->is_live, INVALID_HANDLE);
  capture_t *capture = stream->capture;
  if (!capture) return perform(&step);
  capture->steps = realloc(capture->steps, (capture->count + 1) * sizeof step);
  capture->steps[capture->count++] = step;
  return SUCCESS;
}

/* Start, devices, contexts */
EXPORT int cuInit(unsigned flags) { ENTER("cuInit", 0); is_initialized = 1; return flags ? INVALID_VALUE : SUCCESS; }
EXPORT int cuDriverGetVersion(int *version) { ENTER("cuDriverGetVersion", 0); *version = 13000; return SUCCESS; }
static const struct { int code; const char *name, *text; } ERRORS[] = {
  {SUCCESS, "CUDA_SUCCESS", "no error"}, {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
  {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
  {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
  {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
  {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
  {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
  {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
  {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
  {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
  {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
  {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
  {CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
  {CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not initiated in this stream"},
  {CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency created on uncaptured work in another stream"},
};
static int error_text(int code, const char **text, int is_name) {
  for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
    if (ERRORS[i].code == code) {
      *text = is_name ? ERRORS[i].name : ERRORS[i].text;
      return SUCCESS;
    }
  *text = NULL;
  return INVALID_VALUE;
}
EXPORT int cuGetErrorName(int code, const char **text) { return error_text(code, text, 1); }
EXPORT int cuGetErrorString(int code, const char **text) { return error_text(code, text, 0); }
EXPORT int cuDeviceGetCount(int *count) { ENTER("cuDeviceGetCount", 0); *count = machine.gpus; return SUCCESS; }
EXPORT int cuDeviceGet(int *device, int ordinal) {
  ENTER("cuDeviceGet", 0);
  *device = ordinal;
  return ordinal < machine.gpus ? SUCCESS : INVALID_DEVICE;
}
EXPORT int cuDeviceGetName(char *name, int bytes, int device) {
  ENTER("cuDeviceGetName", 0);
  snprintf(name, bytes, "stub GPU %d", device);
  return SUCCESS;
}
EXPORT int cuDeviceGetPCIBusId(char *name, int bytes, int device) {
  ENTER("cuDeviceGetPCIBusId", 0);
  snprintf(name, bytes, "0000:%02x:00.0", device);
  return SUCCESS;
}
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  (void)device;
  ENTER("cuDeviceTotalMem", 0);
  *bytes = (size_t)8 << 30;
  return SUCCESS;
}
EXPORT int cuDeviceGetAttribute(int *value, int which, int device) {
  ENTER("cuDeviceGetAttribute", 0);
  REFUSE_UNLESS(device < machine.gpus, INVALID_DEVICE);
  static const int VALUES[][2] = {{13, 1755000}, {16, 132}, {36, 2619000}, {38, 50 << 20}, {75, 9}, {76, 0},
                                  {97, 227 * 1024}};
  *value = which == 115 ? machine.has_pools : 0;
  for (size_t i = 0; i < sizeof VALUES / sizeof *VALUES; i++)
    if (VALUES[i][0] == which) *value = VALUES[i][1];
  return SUCCESS;
}
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) {
  ENTER("cuDevicePrimaryCtxRetain", 0);
  *context = (void *)(uintptr_t)(0xC0 + device);
  return SUCCESS;
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  (void)device;
  ENTER("cuDevicePrimaryCtxRelease", 0);
  current_context = NULL;
  return SUCCESS;
}
EXPORT int cuCtxGetCurrent(void **context) { ENTER("cuCtxGetCurrent", 0); *context = current_context; return SUCCESS; }
EXPORT int cuCtxGetDevice(int *device) {
  ENTER("cuCtxGetDevice", 1);
  *device = (int)((uintptr_t)current_context - 0xC0);
  return SUCCESS;
}
EXPORT int cuCtxSetCurrent(void *context) { ENTER("cuCtxSetCurrent", 0); current_context = context; return SUCCESS; }

/* Modules and launches */
EXPORT int cuModuleLoadData(void **module, const char *image) {
  ENTER("cuModuleLoadData", 1);
  module_t *made = malloc(sizeof *made);
  *made = (module_t){strdup(image), 1};
  *module = made;
  return SUCCESS;
}
EXPORT int cuModuleUnload(module_t *module) {
  ENTER("cuModuleUnload", 1);
  REFUSE_UNLESS(module->is_live, INVALID_HANDLE);
  module->is_live = 0;
  return SUCCESS;
}
EXPORT int cuModuleGetFunction(void **function, module_t *module, const char *name) {
  ENTER("cuModuleGetFunction", 1);
  REFUSE_UNLESS(module->is_live, INVALID_HANDLE);
  function_t *made = calloc(1, sizeof *made);
  made->module = module;
  made->shared_limit = 48 * 1024;
  strncpy(made->name, name, sizeof made->name - 1);
  made->count = describe ? describe(module->image, name, made->sizes) : 0;
  REFUSE_UNLESS(made->count >= 0, NOT_FOUND);
  *function = made;
  return SUCCESS;
}
EXPORT int cuFuncSetAttribute(function_t *function, int which, int value) {
  ENTER("cuFuncSetAttribute", 1);
  REFUSE_UNLESS(which == 14 || value <= 227 * 1024, INVALID_VALUE);
  if (which == 8) function->shared_limit = value;
  return SUCCESS;
}
static int launch(void *stream, function_t *function, const unsigned *sizes, void **parameters) {
  REFUSE_UNLESS(function->module->is_live, INVALID_HANDLE);
  REFUSE_UNLESS(sizes[6] <= (unsigned)function->shared_limit, INVALID_VALUE);
  REFUSE_UNLESS(sizes[3] * sizes[4] * sizes[5] <= 1024 && sizes[0] * sizes[3] > 0, INVALID_VALUE);
  step_t step = {.kind = LAUNCH, .function = function};
  memcpy(step.sizes, sizes, sizeof step.sizes);
  for (int i = 0; i < function->count; i++) memcpy(step.parameters[i], parameters[i], function->sizes[i]);
  return enqueue(stream, step);
}
EXPORT int cuLaunchKernel(function_t *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared_bytes, void *stream, void **parameters, void **extra) {
  (void)extra;
  ENTER("cuLaunchKernel", 1);
  return launch(stream, function, (unsigned[]){gx, gy, gz, bx, by, bz, shared_bytes}, parameters);
}
typedef struct { int id, padding; unsigned cluster[3]; uint8_t rest[52]; } attribute_t;
typedef struct { unsigned grid[3], block[3], shared_bytes; void *stream; attribute_t *attributes; unsigned count; } config_t;
EXPORT unsigned stub_cluster[3];
EXPORT int cuLaunchKernelEx(const config_t *config, function_t *function, void **parameters, void **extra) {
  (void)extra;
  ENTER("cuLaunchKernelEx", 1);
  REFUSE_UNLESS(config->count == 1 && config->attributes[0].id == 4, INVALID_VALUE);
  memcpy(stub_cluster, config->attributes[0].cluster, sizeof stub_cluster);
  unsigned sizes[7] = {config->grid[0], config->grid[1], config->grid[2], config->block[0],
                       config->block[1], config->block[2], config->shared_bytes};
  return launch(config->stream, function, sizes, parameters);
}

/* Streams and events */
EXPORT int cuStreamCreate(void **stream, unsigned flags) {
  ENTER("cuStreamCreate", 1);
  REFUSE_UNLESS(flags <= 1, INVALID_VALUE);
  stream_t *made = calloc(1, sizeof *made);
  made->is_live = 1;
  streams[stream_count++ % LIMIT] = made;
  *stream = made;
  return SUCCESS;
}
EXPORT int cuStreamDestroy_v2(stream_t *stream) {
  ENTER("cuStreamDestroy", 1);
  REFUSE_UNLESS(stream && stream->is_live, INVALID_HANDLE);
  stream->is_live = 0;
  return SUCCESS;
}
EXPORT int cuStreamSynchronize(void *handle) {
  ENTER("cuStreamSynchronize", 1);
  stream_t *stream = stream_of(handle);
  REFUSE_UNLESS(stream->is_live, INVALID_HANDLE);
  if (stream->capture) {
    stream->capture->is_broken = 1;
    return CAPTURE_UNSUPPORTED;
  }
  return SUCCESS;
}
EXPORT int cuEventCreate(void **event, unsigned flags) {
  ENTER("cuEventCreate", 1);
  event_t *made = calloc(1, sizeof *made);
  made->is_live = 1;
  made->is_timed = !(flags & 2);
  *event = made;
  return SUCCESS;
}
EXPORT int cuEventDestroy_v2(event_t *event) {
  ENTER("cuEventDestroy", 1);
  REFUSE_UNLESS(event && event->is_live, INVALID_HANDLE);
  event->is_live = 0;
  return SUCCESS;
}
EXPORT int cuEventRecord(event_t *event, void *handle) {
  ENTER("cuEventRecord", 1);
  REFUSE_UNLESS(event->is_live && stream_of(handle)->is_live, INVALID_HANDLE);
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  event->at_s = now.tv_sec + now.tv_nsec * 1e-9;
  event->capture = stream_of(handle)->capture;
  return SUCCESS;
}
EXPORT int cuStreamWaitEvent(void *handle, event_t *event, unsigned flags) {
  ENTER("cuStreamWaitEvent", 1);
  stream_t *stream = stream_of(handle);
  REFUSE_UNLESS(event->is_live && stream->is_live && !flags, INVALID_HANDLE);
  REFUSE_UNLESS(!stream->capture || stream->capture == event->capture, CAPTURE_ISOLATION);
  if (event->capture && !event->capture->is_over) stream->capture = event->capture;
  return SUCCESS;
}
EXPORT int cuEventSynchronize(event_t *event) {
  ENTER("cuEventSynchronize", 1);
  return event->is_live ? SUCCESS : INVALID_HANDLE;
}
EXPORT int cuEventElapsedTime(float *ms, event_t *start, event_t *stop) {
  ENTER("cuEventElapsedTime", 1);
  REFUSE_UNLESS(start->is_timed && stop->is_timed && start->at_s > 0 && stop->at_s > 0, INVALID_HANDLE);
  *ms = (float)((stop->at_s - start->at_s) * 1e3);
  return SUCCESS;
}
EXPORT int cuEventElapsedTime_v2(float *ms, event_t *start, event_t *stop) { return cuEventElapsedTime(ms, start, stop); }

/* Memory */
EXPORT int cuMemAlloc_v2(address_t *address, size_t bytes) { ENTER("cuMemAlloc", 1); return make(address, bytes, 0); }
EXPORT int cuMemFree_v2(address_t address) { ENTER("cuMemFree", 1); return address ? drop(address, 0) : SUCCESS; }
EXPORT int cuMemAllocAsync(address_t *address, size_t bytes, void *stream) {
  ENTER("cuMemAllocAsync", 1);
  REFUSE_UNLESS(machine.has_pools, INVALID_VALUE);
  int result = make(address, bytes, 0);
  return result ? result : enqueue(stream, (step_t){.kind = POISON, .target = *address, .bytes = bytes});
}
EXPORT int cuMemFreeAsync(address_t address, void *stream) {
  ENTER("cuMemFreeAsync", 1);
  address_t start;
  size_t bytes;
  REFUSE_UNLESS(stub_find(address, &start, &bytes) && start == address, INVALID_VALUE);
  /* a graph frees and allocates the same memory at every launch: its blocks stay */
  int is_kept = stream_of(stream)->capture != NULL;
  return enqueue(stream, (step_t){.kind = FREE, .target = address, .bytes = is_kept});
}
EXPORT int cuDeviceGetDefaultMemPool(void **pool, int device) {
  ENTER("cuDeviceGetDefaultMemPool", 0);
  *pool = (void *)(uintptr_t)(0xB0 + device);
  return SUCCESS;
}
EXPORT uint64_t stub_pool_threshold;
EXPORT int cuMemPoolSetAttribute(void *pool, int which, void *value) {
  ENTER("cuMemPoolSetAttribute", 0);
  REFUSE_UNLESS(pool && which == 4, INVALID_VALUE);
  stub_pool_threshold = *(uint64_t *)value;
  return SUCCESS;
}
EXPORT int cuMemAllocHost_v2(void **address, size_t bytes) {
  ENTER("cuMemAllocHost", 1);
  return make((address_t *)address, bytes, 1);
}
EXPORT int cuMemFreeHost(void *address) { ENTER("cuMemFreeHost", 1); return drop((address_t)address, 1); }
EXPORT int cuMemHostRegister_v2(void *address, size_t bytes, unsigned flags) {
  ENTER("cuMemHostRegister", 1);
  return address && bytes && !flags ? SUCCESS : INVALID_VALUE;
}
EXPORT int cuMemHostUnregister(void *address) { ENTER("cuMemHostUnregister", 1); return address ? SUCCESS : INVALID_VALUE; }
EXPORT int cuMemcpyAsync(address_t target, address_t source, size_t bytes, void *stream) {
  ENTER("cuMemcpyAsync", 1);
  return enqueue(stream, (step_t){.kind = COPY, .target = target, .source = source, .bytes = bytes});
}
static int fill(const char *name, address_t address, unsigned value, unsigned item_bytes, size_t count, void *stream) {
  ENTER(name, 1);
  return enqueue(stream, (step_t){.kind = FILL, .target = address, .value = value, .item_bytes = item_bytes, .bytes = count});
}
EXPORT int cuMemsetD8Async(address_t a, uint8_t v, size_t n, void *s) { return fill("cuMemsetD8Async", a, v, 1, n, s); }
EXPORT int cuMemsetD16Async(address_t a, uint16_t v, size_t n, void *s) { return fill("cuMemsetD16Async", a, v, 2, n, s); }
EXPORT int cuMemsetD32Async(address_t a, unsigned v, size_t n, void *s) { return fill("cuMemsetD32Async", a, v, 4, n, s); }

/* Graphs */
EXPORT int cuStreamBeginCapture_v2(void *handle, int mode) {
  ENTER("cuStreamBeginCapture", 1);
  stream_t *stream = stream_of(handle);
  REFUSE_UNLESS(handle && !stream->capture && mode <= 2, CAPTURE_UNSUPPORTED);
  stream->capture = calloc(1, sizeof *stream->capture);
  stream->capture->origin = stream;
  return SUCCESS;
}
EXPORT int cuStreamEndCapture(void *handle, void **graph) {
  ENTER("cuStreamEndCapture", 1);
  stream_t *stream = stream_of(handle);
  capture_t *capture = stream->capture;
  *graph = NULL;
  REFUSE_UNLESS(capture && capture->origin == stream, CAPTURE_UNMATCHED);
  stream->capture = NULL;
  capture->is_over = 1;
  for (int i = 0; i < stream_count && i < LIMIT; i++)
    if (streams[i]->capture == capture) streams[i]->capture = NULL;
  REFUSE_UNLESS(!capture->is_broken, CAPTURE_INVALIDATED);
  *graph = capture;
  return SUCCESS;
}
EXPORT int cuGraphInstantiateWithFlags(void **exec, capture_t *graph, uint64_t flags) {
  ENTER("cuGraphInstantiate", 1);
  REFUSE_UNLESS(flags <= 1, INVALID_VALUE);
  capture_t *made = malloc(sizeof *made);
  *made = *graph;
  made->steps = malloc((graph->count + 1) * sizeof *graph->steps);
  memcpy(made->steps, graph->steps, graph->count * sizeof *graph->steps);
  *exec = made;
  return SUCCESS;
}
EXPORT int cuGraphLaunch(capture_t *exec, void *stream) {
  ENTER("cuGraphLaunch", 1);
  REFUSE_UNLESS(stream_of(stream)->is_live, INVALID_HANDLE);
  for (int i = 0; i < exec->count; i++) {
    int result = perform(&exec->steps[i]);
    if (result) return result;
  }
  return SUCCESS;
}
static void give_back(capture_t *graph) { /* the rest stays: events may name it */
  free(graph->steps);
  graph->steps = NULL;
}
EXPORT int cuGraphExecDestroy(capture_t *exec) { ENTER("cuGraphExecDestroy", 1); give_back(exec); return SUCCESS; }
EXPORT int cuGraphDestroy(capture_t *graph) { ENTER("cuGraphDestroy", 1); give_back(graph); return SUCCESS; }

/* Tensor maps: what was passed, word by word */
EXPORT int cuTensorMapEncodeTiled(uint32_t *map, int dtype, unsigned rank, void *address, const uint64_t *sizes,
                                  const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                                  int interleave, int swizzle, int l2, int fill_) {
  ENTER("cuTensorMapEncodeTiled", 0);
  REFUSE_UNLESS(rank >= 1 && rank <= 5 && !((uintptr_t)address & 15), INVALID_VALUE);
  uint32_t words[32] = {dtype, rank, (uint32_t)(uintptr_t)address, interleave, swizzle, l2, fill_};
  for (unsigned i = 0; i < rank; i++) {
    words[7 + i] = (uint32_t)sizes[i];
    words[12 + i] = i + 1 < rank ? (uint32_t)strides[i] : 0;
    words[17 + i] = box[i];
    words[22 + i] = steps[i];
  }
  memcpy(map, words, sizeof words);
  return SUCCESS;
}

/* How cuda-bindings finds functions: by plain names, the newest version of each */
EXPORT int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status) {
  (void)version, (void)flags;
  char versioned[128];
  Dl_info here;
  dladdr((void *)stub_reset, &here);
  void *self = dlopen(here.dli_fname, RTLD_NOW);
  static const char *SUFFIXES[] = {"_v2", "WithFlags", ""};
  *function = NULL;
  for (int i = 0; i < 3 && !*function; i++) {
    snprintf(versioned, sizeof versioned, "%s%s", name, SUFFIXES[i]);
    *function = dlsym(self, versioned);
  }
  if (status) *status = *function ? 0 : 1;
  return *function ? SUCCESS : NOT_FOUND;
}
