// A CUDA runtime for tests without a GPU, for PyTorch built with CUDA 12: two devices whose memory is the host's. Copies
// run at once, and no kernel runs. nocuda.py adds the functions that are missing here. DIR/log lists calls, as it does
// for the driver's stand-in, verify/testdata/stub, which asks this library whose memory and streams it gets.
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_OF_MEMORY = 2, INVALID_VALUE = 1, INVALID_FUNCTION = 98, INVALID_DEVICE = 101, CAPTURE_UNSUPPORTED = 900 };
enum { DEVICES = 2, PINNED = -2, NOWHERE = -1, MAX_BLOCKS = 8192, MAX_STREAMS = 256, MAX_OPS = 1024 };

struct block { char *at; size_t n; int where; };
struct op { void (*run)(void *); void *data; };
struct graph { int n; struct op ops[MAX_OPS]; };
struct copy { void *dst; const void *src; size_t n; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block blocks[MAX_BLOCKS];
static size_t used[DEVICES];
static int n_streams, stream_device[MAX_STREAMS];
static struct graph *capturing;
static uintptr_t captured;  // the stream
static __thread int current;

static void note(const char *format, ...) {
  FILE *f = fopen(DIR "/log", "a");
  if (!f) return;
  va_list args;
  va_start(args, format);
  vfprintf(f, format, args);
  va_end(args);
  fputc('\n', f);
  fclose(f);
}

// waits notes a call that waits for a device, which no capture allows.
static int waits(const char *name) {
  note("%s", name);
  if (!capturing) return 0;
  note("VIOLATION %s while a graph is captured", name);
  return CAPTURE_UNSUPPORTED;
}

static size_t total(void) {
  const char *limit = getenv("DF11_TEST_GPU_BYTES");
  return limit ? strtoul(limit, 0, 10) : (size_t)1 << 30;
}

// ---- For the driver's stand-in ----

// cudart_where returns the device of memory, PINNED, or NOWHERE.
int cudart_where(const void *p, size_t n) {
  int where = NOWHERE;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MAX_BLOCKS; i++) {
    struct block *b = &blocks[i];
    if (b->at && (char *)p >= b->at && (char *)p + n <= b->at + b->n) where = b->where;
  }
  pthread_mutex_unlock(&lock);
  return where;
}

// cudart_stream returns the device of a stream; the null stream is of every device.
int cudart_stream(uintptr_t s, int device) { return s == 0 ? device : s > MAX_STREAMS ? NOWHERE : stream_device[s - 1]; }

// cudart_capture keeps work for a graph, if the stream is captured.
int cudart_capture(uintptr_t s, void (*run)(void *), void *data) {
  if (!capturing || s != captured) return 0;
  capturing->ops[capturing->n++] = (struct op){run, data};
  return 1;
}

// ---- Devices ----

int cudaGetDeviceCount(int *n) { *n = DEVICES; return 0; }
int cudaGetDevice(int *d) { *d = current; return 0; }
int cudaSetDevice(int d) { if (d < 0 || d >= DEVICES) return INVALID_DEVICE; current = d; return 0; }
int cudaDriverGetVersion(int *v) { *v = 12080; return 0; }
int cudaRuntimeGetVersion(int *v) { *v = 12080; return 0; }
int cudaDeviceCanAccessPeer(int *can, int a, int b) { *can = 0; return 0; }
int cudaDeviceGetAttribute(int *v, int a, int d) { *v = 1; return 0; }
int cudaDeviceGetStreamPriorityRange(int *least, int *greatest) { *least = 0; *greatest = -1; return 0; }
int cudaDeviceSynchronize(void) { return waits("cudaDeviceSynchronize"); }
int cudaGetLastError(void) { return 0; }
int cudaPeekAtLastError(void) { return 0; }
int cudaThreadExchangeStreamCaptureMode(int *mode) { return 0; }
int cudaMemGetInfo(size_t *free, size_t *all) { *all = total(); *free = total() - used[current]; return 0; }

// Offsets of cudaDeviceProp, as CUDA 12's headers have them.
int cudaGetDeviceProperties_v2(char *p, int d) {
  memset(p, 0, 1032);
  strcpy(p, "Stand-in");
  *(size_t *)(p + 288) = total();
  *(size_t *)(p + 296) = 49152;
  *(int *)(p + 308) = 32;
  *(int *)(p + 320) = 1024;
  *(int *)(p + 360) = 8;
  *(int *)(p + 388) = 2;
  *(int *)(p + 624) = 2048;
  return 0;
}

// ---- Memory ----

static int allocate(void **p, size_t n, int where) {
  pthread_mutex_lock(&lock);
  int i = 0, r = where >= 0 && used[where] + n > total() ? OUT_OF_MEMORY : 0;
  while (blocks[i].at) i++;
  if (!r) {
    blocks[i] = (struct block){aligned_alloc(512, (n + 511) / 512 * 512), n, where};
    memset(blocks[i].at, 0xb7, n);  // noise, never zeros
    *p = blocks[i].at;
    if (where >= 0) used[where] += n;
  }
  pthread_mutex_unlock(&lock);
  return r;
}

static int release(void *p) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < MAX_BLOCKS; i++)
    if (p && blocks[i].at == p) {
      if (blocks[i].where >= 0) used[blocks[i].where] -= blocks[i].n;
      free(p);
      blocks[i].at = 0;
    }
  pthread_mutex_unlock(&lock);
  return 0;
}

int cudaMalloc(void **p, size_t n) { note("cudaMalloc %d", current); return allocate(p, n, current); }
int cudaHostAlloc(void **p, size_t n, unsigned flags) { note("cudaHostAlloc"); return allocate(p, n, PINNED); }
int cudaFree(void *p) { note("cudaFree"); return release(p); }
int cudaFreeHost(void *p) { note("cudaFreeHost"); return release(p); }

struct attributes { int type, device; void *at, *host; };
int cudaPointerGetAttributes(struct attributes *a, void *p) {
  int where = cudart_where(p, 1);
  *a = (struct attributes){where >= 0 ? 2 : where == PINNED ? 1 : 0, where >= 0 ? where : 0, p, p};
  return 0;
}

static void run_copy(void *data) {
  struct copy *c = data;
  memcpy(c->dst, c->src, c->n);
}

static int copy(const char *name, void *dst, const void *src, size_t n, uintptr_t s) {
  int from = cudart_where(src, n), to = cudart_where(dst, n);
  struct copy c = {dst, src, n}, *kept;
  note("%s %d to %d on stream %ld", name, from, to, (long)s);
  if (cudart_stream(s, current) != (to >= 0 ? to : from) && from >= 0 && to >= 0 && from == to) note("VIOLATION copy on a stream of another device");
  if (capturing && s == captured) {
    if (from == NOWHERE || to == NOWHERE) note("VIOLATION a graph copies memory that may go away");
    kept = malloc(sizeof c);
    *kept = c;
    return cudart_capture(s, run_copy, kept) ? 0 : INVALID_VALUE;
  }
  run_copy(&c);
  return 0;
}

int cudaMemcpyAsync(void *dst, const void *src, size_t n, int kind, uintptr_t s) { return copy("cudaMemcpyAsync", dst, src, n, s); }
int cudaMemcpyPeerAsync(void *dst, int a, const void *src, int b, size_t n, uintptr_t s) { return copy("cudaMemcpyPeerAsync", dst, src, n, s); }
int cudaMemcpy(void *dst, const void *src, size_t n, int kind) { int r = waits("cudaMemcpy"); return r ? r : copy("copy", dst, src, n, 0); }
int cudaMemsetAsync(void *p, int v, size_t n, uintptr_t s) { memset(p, v, n); return 0; }
int cudaMemset(void *p, int v, size_t n) { memset(p, v, n); return 0; }

// ---- Streams, events, graphs ----

int cudaStreamCreateWithPriority(uintptr_t *s, unsigned flags, int priority) {
  stream_device[n_streams] = current;
  *s = ++n_streams;
  return 0;
}
int cudaStreamDestroy(uintptr_t s) { return 0; }
int cudaStreamGetPriority(uintptr_t s, int *priority) { *priority = 0; return 0; }
int cudaStreamQuery(uintptr_t s) { return waits("cudaStreamQuery"); }
int cudaStreamSynchronize(uintptr_t s) { return waits("cudaStreamSynchronize"); }
int cudaStreamWaitEvent(uintptr_t s, void *e, unsigned flags) { note("stream %ld waits", (long)s); return 0; }
int cudaStreamIsCapturing(uintptr_t s, int *status) { *status = capturing && s == captured; return 0; }
int cudaStreamGetCaptureInfo_v2(uintptr_t s, int *status, unsigned long long *id, void **graph, void **deps, size_t *n) {
  *status = capturing && s == captured;
  if (id) *id = 1;
  if (graph) *graph = capturing;
  if (n) *n = 0;
  return 0;
}
int cudaStreamBeginCapture(uintptr_t s, int mode) { capturing = calloc(1, sizeof *capturing); captured = s; note("capture"); return 0; }
int cudaStreamEndCapture(uintptr_t s, void **graph) { *graph = capturing; capturing = 0; note("captured"); return 0; }
int cudaGraphGetNodes(struct graph *g, void **nodes, size_t *n) { *n = g->n; return 0; }
int cudaGraphInstantiate(void **exec, void *graph, unsigned long long flags) { *exec = graph; return 0; }
int cudaGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags) { *exec = graph; return 0; }
int cudaGraphDestroy(void *graph) { return 0; }
int cudaGraphExecDestroy(void *exec) { return 0; }
int cudaGraphLaunch(struct graph *g, uintptr_t s) {
  note("cudaGraphLaunch");
  for (int i = 0; i < g->n; i++) g->ops[i].run(g->ops[i].data);
  return 0;
}

int cudaEventCreate(void **e) { *e = malloc(1); return 0; }
int cudaEventCreateWithFlags(void **e, unsigned flags) { *e = malloc(1); return 0; }
int cudaEventDestroy(void *e) { free(e); return 0; }
int cudaEventRecord(void *e, uintptr_t s) { return 0; }
int cudaEventRecordWithFlags(void *e, uintptr_t s, unsigned flags) { return 0; }
int cudaEventQuery(void *e) { return 0; }
int cudaEventSynchronize(void *e) { return waits("cudaEventSynchronize"); }
int cudaEventElapsedTime(float *ms, void *a, void *b) { *ms = 1; return 0; }

static int kernel(void) { note("VIOLATION a kernel of torch's was launched"); return INVALID_FUNCTION; }
int cudaLaunchKernel(void) { return kernel(); }
int cudaLaunchKernelExC(void) { return kernel(); }
