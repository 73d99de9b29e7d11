// A driver library for tests without a GPU. It checks how it's called and decodes on the CPU, as
// docs/format.md §9 says. Build: gcc -shared -fPIC -O2 -pthread -DDIR='"/a/folder"' -o libcuda.so.1 stub.c
//
// Queued work runs only when an event is queried for the third time, so changes that come too early show. DIR/log
// lists every call. With -DHOST, all of the host's memory counts as the device's, as the Python package df11 takes
// its memory from torch, and work runs at once. If a stand-in for CUDA's runtime is loaded, too
// (.ci/deep/readers/cudart.c), memory and streams must be the device's. cuInit reads DIR/faults:
//
//   devices N            number of devices (1)
//   maxptx N             the newest PTX version, as 82 for 8.2 (60)
//   fail CALL N CODE     the Nth CALL returns CODE
//   crash N CODE         the Nth decoding breaks the context; every call returns CODE from then on
//   flip N ELEM          the Nth decoding flips a bit of its piece's weight ELEM
//   idle N               the Nth decoding writes nothing
//   hang N               the Nth decoding never ends
//   major N              the devices' compute capability is N.5 (7)
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int32_t result;
typedef uint64_t ptr;
typedef uint8_t u8;
typedef uint32_t u32;

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_CONTEXT = 201, NEWER_PTX = 222, NOT_FOUND = 500, NOT_READY = 600 };
enum { MAX_BLOCKS = 4096, MAX_STREAMS = 64, MAX_OPS = 4096, MAX_FAULTS = 64, MAX_DEVICES = 8 };

// An allocation, on a device (really in the host's memory) or pinned.
struct block { u8 *at; size_t n; int pinned, device; };
struct op { int kind; ptr dst; ptr src; size_t n; int value; uint64_t args[13]; u32 shared, blocks; int function; struct event *event; };
struct stream { int used, device, n, hung; struct op ops[MAX_OPS]; };
struct event { struct stream *stream; int reached, asked; };
struct fault { char what[16], call[48]; long n, value; };
enum { COPY = 1, FILL, LAUNCH, RECORD };
enum { DECODE = 1, BUILD, TILES, PICKED };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block blocks[MAX_BLOCKS];
static struct stream streams[MAX_STREAMS];
static struct fault faults[MAX_FAULTS];
static struct { char name[48]; long n; } calls[64];
static int n_faults, n_devices, max_ptx, n_decoded, major = 7, broken[MAX_DEVICES], retained[MAX_DEVICES];
static __thread int current = -1, before[8], pushed;

static void note(const char *format, const char *name, long a, long b) {
  FILE *f = fopen(DIR "/log", "a");
  if (!f) return;
  fprintf(f, format, name, a, b);
  fputc('\n', f);
  fclose(f);
}

// complain logs what a real driver would fail at; the tests look for it.
static result complain(const char *what) {
  note("VIOLATION %s", what, 0, 0);
  return INVALID_VALUE;
}

static result enter(const char *name) {
  int i = 0;
  while (calls[i].name[0] && strcmp(calls[i].name, name)) i++;
  strcpy(calls[i].name, name);
  calls[i].n++;
  if (strcmp(name, "cuEventQuery")) note("%s", name, 0, 0);
  for (int k = 0; k < n_faults; k++)
    if (!strcmp(faults[k].call, name) && faults[k].n == calls[i].n) return faults[k].value;
  return 0;
}

#define ENTER(name) pthread_mutex_lock(&lock); result r = enter(name)
#define LEAVE pthread_mutex_unlock(&lock); return r
// Checks that the thread has a context.
#define ENTER_CONTEXT(name) ENTER(name); if (!r && current < 0) r = INVALID_CONTEXT; if (!r) r = broken[current < 0 ? 0 : current]

static struct block *find(ptr p, size_t n, int pinned) {
  for (int i = 0; i < MAX_BLOCKS; i++) {
    struct block *b = &blocks[i];
    if (b->at && b->pinned == pinned && (u8 *)p >= b->at && (u8 *)p + n <= b->at + b->n) return b;
  }
  return 0;
}

#ifdef HOST
// Of the stand-in for the runtime, if it's there.
__attribute__((weak)) int cudart_where(const void *p, size_t n);
__attribute__((weak)) int cudart_stream(uintptr_t s, int device);
__attribute__((weak)) int cudart_capture(uintptr_t s, void (*run)(void *), void *data);

static int inside(ptr p, size_t n) { return cudart_where ? cudart_where((void *)p, n) == current : p != 0; }
#else
static int inside(ptr p, size_t n) { return find(p, n, 0) != 0; }
#endif

// ---- Decoding ----

static u32 peek(const u8 *stream, int n_bytes, int64_t bit) {
  uint64_t v = 0;
  for (int i = 0; i < 5; i++) {
    int64_t at = bit / 8 + i;
    v = v << 8 | (at < n_bytes ? stream[at] : 0);
  }
  return v >> (8 - bit % 8);
}

static int walk(const u8 *luts, int n_luts, u32 bits, int *length) {
  int v = luts[bits >> 24];
  for (int shift = 16; shift >= 0 && v >= 240; shift -= 8) {
    int row = 256 - v;
    if (row >= n_luts - 1) break;
    v = luts[row * 256 + (bits >> shift & 255)];
  }
  *length = luts[(n_luts - 1) * 256 + v];
  return v;
}

static int gap_at(const u8 *gaps, int64_t window) {
  int v = 0;
  for (int i = 0; i < 5; i++) {
    int64_t bit = window * 5 + i;
    v = v << 1 | (gaps[bit / 8] >> (7 - bit % 8) & 1);
  }
  return v;
}

// is_picked reports whether decode_picked decodes a tile.
static int is_picked(uint64_t *a, int64_t tile) {
  u32 both = ((u32 *)a[11])[tile];
  const u8 *picked = (u8 *)a[12];
  return picked[both & 0xffff] | picked[both >> 16];
}

static result decode(uint64_t *a, int n_tiles, int picks) {
  const u8 *luts = (u8 *)a[0], *stream = (u8 *)a[1], *sm = (u8 *)a[2], *gaps = (u8 *)a[4];
  const u32 *positions = (u32 *)a[3];
  uint16_t *out = (uint16_t *)a[5];
  int n_luts = (int32_t)a[6], n_bytes = (int32_t)a[7], n_elems = (int32_t)a[8];
  if (!inside(a[0], n_luts * 256) || !inside(a[1], n_bytes) || !inside(a[2], n_elems) || !inside(a[3], 4 * (n_tiles + 1)) ||
      !inside(a[4], 320 * n_tiles + 1) || !inside(a[5], 2 * (size_t)n_elems))
    return complain("decode outside its buffers");
  for (int64_t tile = 0; tile < n_tiles; tile++) {
    if (picks && !is_picked(a, tile)) continue;
    u32 at = positions[tile], end = tile + 1 < n_tiles ? positions[tile + 1] : (u32)n_elems;
    for (int64_t w = tile * 512; w < tile * 512 + 512; w++)
      for (int64_t bit = w * 64 + gap_at(gaps, w); bit < w * 64 + 64;) {
        int length, symbol = walk(luts, n_luts, peek(stream, n_bytes, bit), &length);
        if (length < 1 || length > 32) return complain("decode would hang");
        bit += length;
        if (at < end && at < (u32)n_elems) {
          out[at] = (sm[at] & 0x80) << 8 | symbol << 7 | (sm[at] & 0x7f);
          at++;
        }
      }
  }
  return 0;
}

// hangs reports whether the next decoding never ends.
static int hangs(void) {
  for (int k = 0; k < n_faults; k++)
    if (!strcmp(faults[k].what, "hang") && faults[k].n == n_decoded + 1) return 1;
  return 0;
}

// decode_faulty is the nth decoding, with its faults from DIR/faults.
static result decode_faulty(struct op *o, int device, int n_tiles) {
  int idle = 0;
  n_decoded++;
  for (int k = 0; k < n_faults; k++) {
    if (faults[k].n != n_decoded) continue;
    if (!strcmp(faults[k].what, "crash")) return broken[device] = faults[k].value;
    if (!strcmp(faults[k].what, "idle")) idle = 1;
  }
  result r = idle ? 0 : decode(o->args, n_tiles, o->function == PICKED);
  for (int k = 0; k < n_faults; k++)
    if (!strcmp(faults[k].what, "flip") && faults[k].n == n_decoded) ((uint16_t *)o->args[5])[faults[k].value] ^= 0x0010;
  return r;
}

// Stands in for the tables: words that identify the luts they were made from.
static u32 table_word(ptr luts, uint64_t n_luts) {
  u32 sum = 1;
  for (uint64_t i = 0; i < (n_luts & 0xffff) * 256; i++) sum = sum * 31 + ((u8 *)luts)[i];
  return sum;
}

static result run_launch(struct op *o, int device) {
  if (o->function == BUILD) {
    if (!inside(o->args[0], (o->args[1] & 0xffff) * 256) || !inside(o->args[2], 4352)) return complain("tables outside their buffer");
    u32 word = table_word(o->args[0], o->args[1]);
    for (int i = 0; i < 4352 / 4; i++) ((u32 *)o->args[2])[i] = word;
    note("tables were built", "", 0, 0);
    return 0;
  }
  if (o->function == DECODE) return decode_faulty(o, device, o->blocks);
  u32 want = table_word(o->args[0], o->args[6]);
  for (int i = 0; i < 4352 / 4; i++)
    if (((u32 *)o->args[9])[i] != want) return complain("tables were not built, or overwritten");
  return decode_faulty(o, device, (int32_t)o->args[10]);
}

// run runs a stream's work up to an event.
static void run(struct stream *s, struct event *until) {
  int i = 0, done = 0;
  for (; i < s->n && !done && !s->hung; i++) {
    struct op *o = &s->ops[i];
    if (o->kind == LAUNCH && o->function != BUILD && hangs()) {
      s->hung = 1, n_decoded++;
      break;
    }
    if (o->kind == RECORD) {
      o->event->reached = 1;
      done = o->event == until;
    } else if (broken[s->device]) {
      continue;
    } else if (o->kind == LAUNCH) {
      run_launch(o, s->device);
    } else if (!find(o->dst, o->n, 0) && !find(o->dst, o->n, 1)) {
      complain("memory was freed before its work was done");
    } else if (o->kind == FILL) {
      memset((void *)o->dst, o->value, o->n);
    } else {
      memcpy((void *)o->dst, (void *)o->src, o->n);
    }
  }
  memmove(s->ops, s->ops + i, (s->n - i) * sizeof s->ops[0]);
  s->n -= i;
}

static result push(struct stream *s, struct op o) {
  if (!s || !s->used || s->device != current) return complain("no such stream here");
  if (s->n == MAX_OPS) return complain("too much queued");
  s->ops[s->n++] = o;
  return 0;
}

// ---- The driver's functions ----

result cuInit(u32 flags) {
  pthread_mutex_lock(&lock);
  memset(calls, 0, sizeof calls);
  memset(broken, 0, sizeof broken);
  memset(retained, 0, sizeof retained);
  for (int i = 0; i < MAX_STREAMS; i++) streams[i].used = streams[i].hung = streams[i].n = 0; // left by abandoned devices
  n_faults = n_decoded = 0, n_devices = 1, max_ptx = 60, major = 7;
  FILE *f = fopen(DIR "/faults", "r");
  char line[128];
  while (f && fgets(line, sizeof line, f) && n_faults < MAX_FAULTS) {
    struct fault *t = &faults[n_faults];
    memset(t, 0, sizeof *t);
    if (sscanf(line, "fail %47s %ld %ld", t->call, &t->n, &t->value) == 3) strcpy(t->what, "fail"), n_faults++;
    else if (t->call[0] = 0, sscanf(line, "%15s %ld %ld", t->what, &t->n, &t->value) >= 2) n_faults++;
    if (!strcmp(t->what, "devices")) n_devices = t->n;
    if (!strcmp(t->what, "maxptx")) max_ptx = t->n;
    if (!strcmp(t->what, "major")) major = t->n;
  }
  if (f) fclose(f);
  result r = enter("cuInit");
  if (!r && flags) r = complain("flags");
  LEAVE;
}


result cuGetErrorName(result code, const char **s) {
  switch (code) {
  case 2: *s = "CUDA_ERROR_OUT_OF_MEMORY"; return 0;
  case 100: *s = "CUDA_ERROR_NO_DEVICE"; return 0;
  case 221: *s = "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"; return 0;
  case 222: *s = "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"; return 0;
  case 803: *s = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"; return 0;
  case 700: *s = "CUDA_ERROR_ILLEGAL_ADDRESS"; return 0;
  case 719: *s = "CUDA_ERROR_LAUNCH_FAILED"; return 0;
  }
  *s = 0;
  return INVALID_VALUE;
}

result cuGetErrorString(result code, const char **s) {
  switch (code) {
  case 2: *s = "out of memory"; return 0;
  case 100: *s = "no CUDA-capable device is detected"; return 0;
  case 221: *s = "PTX JIT compiler library not found"; return 0;
  case 803: *s = "system has unsupported display driver / cuda driver combination"; return 0;
  case 222: *s = "the provided PTX was compiled with an unsupported toolchain."; return 0;
  case 700: *s = "an illegal memory access was encountered"; return 0;
  case 719: *s = "unspecified launch failure"; return 0;
  }
  *s = 0;
  return INVALID_VALUE;
}

result cuDeviceGetCount(int32_t *n) { ENTER("cuDeviceGetCount"); *n = n_devices; LEAVE; }
result cuDeviceGet(int32_t *d, int32_t i) { ENTER("cuDeviceGet"); *d = i; if (!r && i >= n_devices) r = 101; LEAVE; }

result cuDeviceGetName(char *name, int32_t n, int32_t d) {
  ENTER("cuDeviceGetName");
  snprintf(name, n, "Stub %d", d);
  LEAVE;
}

result cuDeviceGetAttribute(int32_t *v, int32_t a, int32_t d) {
  ENTER("cuDeviceGetAttribute");
  *v = a == 16 ? 2 : a == 75 ? major : a == 76 ? 5 : -1;
  if (!r && *v < 0) r = complain("unknown attribute");
  LEAVE;
}

result cuDevicePrimaryCtxRetain(ptr *c, int32_t d) { ENTER("cuDevicePrimaryCtxRetain"); *c = d + 1; if (!r) retained[d]++; LEAVE; }
result cuDevicePrimaryCtxGetState(int32_t d, u32 *flags, int32_t *active) { *flags = 0; *active = retained[d] > 0; return 0; }
result cuCtxSetCurrent(ptr c) { ENTER("cuCtxSetCurrent"); current = (int)c - 1; LEAVE; }
result cuCtxPushCurrent_v2(ptr c) {
  ENTER("cuCtxPushCurrent");
  if (!r && pushed == 8) r = complain("contexts are pushed and not popped");
  if (!r) before[pushed++] = current, current = (int)c - 1;
  LEAVE;
}
result cuCtxPopCurrent_v2(ptr *c) {
  ENTER("cuCtxPopCurrent");
  if (!r && !pushed) r = INVALID_CONTEXT;
  if (!r) *c = current + 1, current = before[--pushed];
  LEAVE;
}

// A context's resources are freed with it, as the driver's manual says.
result cuDevicePrimaryCtxRelease_v2(int32_t d) {
  ENTER("cuDevicePrimaryCtxRelease");
  if (--retained[d] > 0) { LEAVE; }
  for (int i = 0; i < MAX_BLOCKS; i++)
    if (blocks[i].at && blocks[i].device == d) free(blocks[i].at), blocks[i].at = 0;
  for (int i = 0; i < MAX_STREAMS; i++)
    if (streams[i].used && streams[i].device == d) {
      if (streams[i].hung || (streams[i].n && !broken[d])) r = complain("a context was released that something still runs on");
      streams[i].used = streams[i].hung = streams[i].n = 0;
    }
  LEAVE;
}

result cuModuleLoadData(ptr *m, const char *image) {
  ENTER_CONTEXT("cuModuleLoadData");
  int major = 0, minor = 0;
  const char *version = strstr(image, ".version");
  if (!r && (!version || sscanf(version, ".version %d.%d", &major, &minor) != 2)) r = 218;
  if (!r && major * 10 + minor > max_ptx) r = NEWER_PTX;
  *m = 77;
  LEAVE;
}


result cuModuleGetFunction(ptr *f, ptr m, const char *name) {
  ENTER_CONTEXT("cuModuleGetFunction");
  *f = !strcmp(name, "decode") ? DECODE : !strcmp(name, "build_tables") ? BUILD : !strcmp(name, "decode_tiles") ? TILES : !strcmp(name, "decode_picked") ? PICKED : 0;
  if (!r && !*f) r = NOT_FOUND;
  LEAVE;
}

result cuFuncSetAttribute(ptr f, int32_t a, int32_t v) {
  ENTER_CONTEXT("cuFuncSetAttribute");
  if (a != 9 || v < 0 || v > 100) r = complain("function attribute");
  LEAVE;
}

result cuOccupancyMaxActiveBlocksPerMultiprocessor(int32_t *n, ptr f, int32_t threads, size_t shared) {
  ENTER_CONTEXT("cuOccupancyMaxActiveBlocksPerMultiprocessor");
  *n = 65536 / (shared + 1024) < 1024 / threads ? 65536 / (shared + 1024) : 1024 / threads;
  LEAVE;
}


// New memory holds noise, never zeros.
static result allocate(void **p, size_t n, int pinned) {
  if (n == 0) return complain("empty allocation");
  for (int i = 0; i < MAX_BLOCKS; i++) {
    struct block *b = &blocks[i];
    if (b->at) continue;
    *b = (struct block){aligned_alloc(256, (n + 255) / 256 * 256), n, pinned, current};
    memset(b->at, 0xb7, n);
    *p = b->at;
    return 0;
  }
  return OUT_OF_MEMORY;
}

result cuMemAlloc_v2(ptr *p, size_t n) { ENTER_CONTEXT("cuMemAlloc"); if (!r) r = allocate((void **)p, n, 0); LEAVE; }
result cuMemAllocHost_v2(void **p, size_t n) { ENTER_CONTEXT("cuMemAllocHost"); if (!r) r = allocate(p, n, 1); LEAVE; }

static result copy(ptr dst, int dst_pinned, ptr src, int src_pinned, size_t n, struct stream *s) {
  if (!find(dst, n, dst_pinned) || !find(src, n, src_pinned)) return complain("copy outside what was allocated");
  return push(s, (struct op){.kind = COPY, .dst = dst, .src = src, .n = n});
}

result cuMemcpyHtoDAsync_v2(ptr d, void *h, size_t n, struct stream *s) {
  ENTER_CONTEXT("cuMemcpyHtoDAsync"); if (!r) r = copy(d, 0, (ptr)h, 1, n, s); LEAVE;
}
result cuMemcpyDtoHAsync_v2(void *h, ptr d, size_t n, struct stream *s) {
  ENTER_CONTEXT("cuMemcpyDtoHAsync"); if (!r) r = copy((ptr)h, 1, d, 0, n, s); LEAVE;
}
result cuMemsetD8Async(ptr d, u8 v, size_t n, struct stream *s) {
  ENTER_CONTEXT("cuMemsetD8Async");
  if (!r && !find(d, n, 0)) r = complain("fill outside what was allocated");
  if (!r) r = push(s, (struct op){.kind = FILL, .dst = d, .value = v, .n = n});
  LEAVE;
}

result cuStreamCreate(struct stream **s, u32 flags) {
  ENTER_CONTEXT("cuStreamCreate");
  int i = 0;
  while (streams[i].used) i++;
  if (!r) streams[i].used = 1, streams[i].hung = 0, streams[i].device = current, streams[i].n = 0, *s = &streams[i];
  LEAVE;
}

result cuEventCreate(struct event **e, u32 flags) {
  ENTER_CONTEXT("cuEventCreate");
  if (!r) *e = calloc(1, sizeof **e);
  LEAVE;
}
result cuEventRecord(struct event *e, struct stream *s) {
  ENTER_CONTEXT("cuEventRecord");
  if (!r) *e = (struct event){s, 0, 0}, r = push(s, (struct op){.kind = RECORD, .event = e});
  LEAVE;
}
result cuEventQuery(struct event *e) {
  ENTER_CONTEXT("cuEventQuery");
  if (!r && !e->reached) {
    if (++e->asked < 3) r = NOT_READY;
    else run(e->stream, e), r = broken[current] ? broken[current] : e->reached ? 0 : NOT_READY;
  }
  LEAVE;
}

#ifdef HOST
struct captured { struct op op; int device; };

static void run_captured(void *data) {
  struct captured *c = data;
  int before = current;
  current = c->device;
  run_launch(&c->op, current);
  current = before;
}
#endif

result cuLaunchKernel(ptr f, u32 gx, u32 gy, u32 gz, u32 bx, u32 by, u32 bz, u32 shared, struct stream *s, void **args, void **extra) {
  static const int n_args[] = {0, 9, 3, 11, 13};
  ENTER_CONTEXT("cuLaunchKernel");
  if (!r && (f < DECODE || f > PICKED || gx < 1 || gy != 1 || gz != 1 || bx != 512 || by != 1 || bz != 1 || extra)) r = complain("launch");
  if (!r && shared > 49152) r = complain("more shared memory than allowed");
  note("launch %s%ld: %ld blocks", "", f, gx);
  struct op o = {.kind = LAUNCH, .function = f, .shared = shared, .blocks = gx};
  for (int i = 0; !r && i < n_args[f]; i++) o.args[i] = *(uint64_t *)args[i];
#ifdef HOST
  if (cudart_stream) {
    note("on stream %s%ld of device %ld", "", (long)s, current);
    if (!r && cudart_stream((uintptr_t)s, current) != current) r = complain("a stream of another device");
    struct captured *kept = malloc(sizeof *kept);
    *kept = (struct captured){o, current};
    if (!r && cudart_capture((uintptr_t)s, run_captured, kept)) { LEAVE; }
    free(kept);
  }
  if (!r) r = run_launch(&o, current);
#else
  if (!r) r = push(s, o);
#endif
  LEAVE;
}
