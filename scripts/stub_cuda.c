// A stand-in for NVIDIA's driver on a machine without a GPU: it answers questions, moves bytes and counts, and runs no kernel.
//
//     cc -O1 -Wall -shared -fPIC -pthread -o DIR/libcuda.so scripts/stub_cuda.c
//     ln -s libcuda.so DIR/libnvidia-ml.so.1
//     LD_LIBRARY_PATH=DIR:... STUB_CUDA_COUNTS=counts.json brasa train ...
//
// Device memory is memory of the host that starts as zeros, so copies are real. The output of a kernel stays what its memory held.
// `scripts/count_launches.py` builds and uses this file. Environment variables, all of them optional:
//
//     STUB_CUDA_COUNTS      file for the counts (JSON), written when the process ends
//     STUB_CUDA_CAPABILITY  compute capability, 8.9 by default
//     STUB_CUDA_NAME        name of the card
//     STUB_CUDA_MEMORY_GIB  memory of the card, 8 by default; an allocation beyond it fails as on a card
//     STUB_CUDA_PTX         folder for the modules that were loaded
//     STUB_CUDA_NVRTC       NVIDIA's libnvrtc, for a link libnvrtc.so to this library: PTX is then kept in the folder STUB_CUDA_CACHE
//     STUB_CUDA_READ_ZEROS  if it is 1, a read-back delivers zeros instead of what no kernel has written
//
// One answer is made up: opening a device uploads 1 and 2 and reads their sum, so the read after this upload gives 3.
// A symbol that is missing here ends the program with its name: cudarc looks up each symbol at its first call.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int Result;
enum { OK = 0, OUT_OF_MEMORY = 2, INVALID = 1, NOT_FOUND = 500, NOT_SUPPORTED = 801 };

typedef struct { char *image; size_t n_bytes; } Module;
typedef struct Kernel { struct Kernel *next; char *name; uint64_t launches, captured; } Kernel;
typedef struct { Kernel *kernel; Module *module; } Function;
typedef struct { int capturing; uint64_t nodes; } Stream;
typedef struct { uint64_t nodes; } Graph;
typedef struct { uint64_t launches; } Event;
typedef struct Block { struct Block *next; void *start; size_t n_bytes; } Block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Kernel *kernels;
static Block *blocks;
static uint64_t launches, replays, replayed_kernels, loaded;
static uint64_t h2d, h2d_bytes, d2h, d2h_bytes, d2d, d2d_bytes, sets, set_bytes;
static uint64_t stream_waits, event_waits, context_waits, queued_waits, records, events, streams;
static uint64_t allocations, frees, held, peak, host_allocations, host_bytes;
static int sum_is_due;

#define COUNT(...) do { pthread_mutex_lock(&lock); __VA_ARGS__; pthread_mutex_unlock(&lock); } while (0)

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value && *value ? value : otherwise;
}

static int capability(int part) {
    int major = 8, minor = 9;
    sscanf(setting("STUB_CUDA_CAPABILITY", "8.9"), "%d.%d", &major, &minor);
    return part ? minor : major;
}

static uint64_t memory_of_card(void) { return (uint64_t)(atof(setting("STUB_CUDA_MEMORY_GIB", "8")) * (1ull << 30)); }

static int by_launches(const void *a, const void *b) {
    const Kernel *x = *(Kernel *const *)a, *y = *(Kernel *const *)b;
    return x->launches < y->launches ? 1 : x->launches > y->launches ? -1 : strcmp(x->name, y->name);
}

__attribute__((destructor)) static void write_counts(void) {
    const char *path = getenv("STUB_CUDA_COUNTS");
    if (!path || !loaded) return; // A child process or a copy that nobody used.
    FILE *file = fopen(path, "w");
    if (!file) { perror(path); return; }
    pthread_mutex_lock(&lock);
    fprintf(file, "{\"launches\": %lu, \"graph_launches\": %lu, \"kernels_in_graphs\": %lu, \"modules\": %lu,\n", launches, replays,
            replayed_kernels, loaded);
    fprintf(file, " \"h2d\": %lu, \"h2d_bytes\": %lu, \"d2h\": %lu, \"d2h_bytes\": %lu, \"d2d\": %lu, \"d2d_bytes\": %lu,\n", h2d,
            h2d_bytes, d2h, d2h_bytes, d2d, d2d_bytes);
    fprintf(file, " \"memset\": %lu, \"memset_bytes\": %lu, \"stream_waits\": %lu, \"event_waits\": %lu, \"context_waits\": %lu,\n", sets,
            set_bytes, stream_waits, event_waits, context_waits);
    fprintf(file, " \"queued_waits\": %lu, \"event_records\": %lu, \"events\": %lu, \"streams\": %lu, \"allocations\": %lu,\n", queued_waits,
            records, events, streams, allocations);
    fprintf(file, " \"frees\": %lu, \"peak_bytes\": %lu, \"host_allocations\": %lu, \"host_bytes\": %lu,\n \"kernels\": {", frees, peak,
            host_allocations, host_bytes);
    size_t n = 0;
    for (Kernel *kernel = kernels; kernel; kernel = kernel->next) n++;
    Kernel **sorted = calloc(n + 1, sizeof *sorted);
    n = 0;
    for (Kernel *kernel = kernels; kernel; kernel = kernel->next) sorted[n++] = kernel;
    qsort(sorted, n, sizeof *sorted, by_launches);
    for (size_t i = 0; i < n; i++) fprintf(file, "%s\n  \"%s\": %lu", i ? "," : "", sorted[i]->name, sorted[i]->launches);
    fprintf(file, "}}\n");
    fclose(file);
    pthread_mutex_unlock(&lock);
}

// Device

Result cuInit(unsigned flags) { (void)flags; return OK; }
Result cuDriverGetVersion(int *version) { *version = 12090; return OK; }
Result cuGetErrorName(Result error, const char **text) { (void)error; *text = "an error of the stub"; return OK; }
Result cuGetErrorString(Result error, const char **text) { return cuGetErrorName(error, text); }
Result cuDeviceGetCount(int *count) { *count = 1; return OK; }
Result cuDeviceGet(int *device, int ordinal) { *device = ordinal; return ordinal == 0 ? OK : 101; }
Result cuDeviceGetName(char *name, int size, int device) {
    (void)device;
    snprintf(name, size, "%s", setting("STUB_CUDA_NAME", "NVIDIA GeForce RTX 4060"));
    return OK;
}
Result cuDeviceTotalMem_v2(size_t *bytes, int device) { (void)device; *bytes = memory_of_card(); return OK; }
Result cuDeviceGetPCIBusId(char *id, int size, int device) { (void)device; snprintf(id, size, "0000:01:00.0"); return OK; }
Result cuDeviceGetUuid_v2(char *uuid, int device) { (void)device; memset(uuid, 7, 16); return OK; }

Result cuDeviceGetAttribute(int *value, int attribute, int device) {
    (void)device;
    int major = capability(0), minor = capability(1);
    switch (attribute) {
    case 1: *value = 1024; break;                          // threads per block
    case 2: case 3: *value = 1024; break;                  // block, x and y
    case 4: *value = 64; break;                            // block, z
    case 5: *value = 2147483647; break;                    // grid, x
    case 6: case 7: *value = 65535; break;                 // grid, y and z
    case 8: *value = 49152; break;                         // shared memory per block
    case 10: *value = 32; break;                           // warp
    case 16: *value = major == 7 ? 40 : 24; break;         // multiprocessors
    case 75: *value = major; break;
    case 76: *value = minor; break;
    case 97: *value = major == 7 && minor == 5 ? 65536     // shared memory per block on request, as NVIDIA's tables have it
                    : major == 7 ? 98304 : major == 8 && minor == 0 ? 166912 : major == 9 || major == 10 ? 232448 : 101376; break;
    case 115: *value = 1; break;                           // memory pools
    default: *value = 0; fprintf(stderr, "stub_cuda: attribute %d is answered with 0\n", attribute);
    }
    return OK;
}

static char context;
Result cuDevicePrimaryCtxRetain(void **out, int device) { (void)device; *out = &context; return OK; }
Result cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return OK; }
Result cuCtxSetCurrent(void *which) { (void)which; return OK; }
Result cuCtxGetCurrent(void **which) { *which = &context; return OK; }
Result cuCtxSynchronize(void) { COUNT(context_waits++); return OK; }
Result cuCtxGetStreamPriorityRange(int *least, int *greatest) { *least = *greatest = 0; return OK; }

// Memory

static void *reserve(size_t n_bytes) {
    void *start = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

static Result allocate(void **out, size_t n_bytes, int on_device) {
    Result result = OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    if (n_bytes == 0) {
        result = INVALID;
    } else if (!on_device || held + n_bytes <= memory_of_card()) {
        Block *block = malloc(sizeof *block);
        if ((*out = reserve(n_bytes))) {
            *block = (Block){blocks, *out, n_bytes};
            blocks = block;
            result = OK;
            if (on_device) {
                allocations++;
                held += n_bytes;
                if (held > peak) peak = held;
            } else {
                host_allocations++;
                host_bytes += n_bytes;
            }
        }
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static Result release(void *start, int on_device) {
    Result result = INVALID;
    pthread_mutex_lock(&lock);
    for (Block **at = &blocks; *at; at = &(*at)->next) {
        if ((*at)->start != start) continue;
        Block *block = *at;
        *at = block->next;
        munmap(block->start, block->n_bytes);
        if (on_device) { frees++; held -= block->n_bytes; }
        free(block);
        result = OK;
        break;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

Result cuMemAlloc_v2(void **out, size_t n) { return allocate(out, n, 1); }
Result cuMemAllocAsync(void **out, size_t n, Stream *stream) { (void)stream; return allocate(out, n, 1); }
Result cuMemFree_v2(void *start) { return release(start, 1); }
Result cuMemFreeAsync(void *start, Stream *stream) { (void)stream; return release(start, 1); }
Result cuMemAllocHost_v2(void **out, size_t n) { return allocate(out, n, 0); }
Result cuMemFreeHost(void *start) { return release(start, 0); }
Result cuMemGetInfo_v2(size_t *unused, size_t *total) { *total = memory_of_card(); *unused = *total - held; return OK; }

Result cuMemcpyHtoDAsync_v2(void *to, const void *from, size_t n, Stream *stream) {
    static const float asked[2] = {1.0f, 2.0f};
    (void)stream;
    memcpy(to, from, n);
    COUNT(h2d++; h2d_bytes += n; if (n == sizeof asked && memcmp(from, asked, n) == 0) sum_is_due = 1);
    return OK;
}

static int zeros(void) {
    static int on = -1;
    if (on < 0) on = strcmp(setting("STUB_CUDA_READ_ZEROS", "0"), "1") == 0;
    return on;
}

Result cuMemcpyDtoHAsync_v2(void *to, const void *from, size_t n, Stream *stream) {
    (void)stream;
    if (zeros()) memset(to, 0, n); else memcpy(to, from, n);
    pthread_mutex_lock(&lock);
    d2h++;
    d2h_bytes += n;
    if (sum_is_due && n == sizeof(float)) {
        *(float *)to = 3.0f;
        sum_is_due = 0;
    }
    pthread_mutex_unlock(&lock);
    return OK;
}

Result cuMemcpyDtoDAsync_v2(void *to, const void *from, size_t n, Stream *stream) {
    (void)stream;
    memmove(to, from, n);
    COUNT(d2d++; d2d_bytes += n);
    return OK;
}

typedef struct {
    size_t src_x, src_y; int src_type; const char *src_host; char *src_device; void *src_array; size_t src_pitch;
    size_t dst_x, dst_y; int dst_type; char *dst_host; char *dst_device; void *dst_array; size_t dst_pitch;
    size_t width, height;
} Copy2d;

Result cuMemcpy2DAsync_v2(const Copy2d *copy, Stream *stream) {
    (void)stream;
    enum { HOST = 1 };
    int up = copy->src_type == HOST, down = copy->dst_type == HOST;
    const char *from = up ? copy->src_host : copy->src_device;
    char *to = down ? copy->dst_host : copy->dst_device;
    for (size_t row = 0; row < copy->height; row++) {
        char *line = to + row * copy->dst_pitch;
        if (down && zeros()) memset(line, 0, copy->width); else memmove(line, from + row * copy->src_pitch, copy->width);
    }
    size_t n = copy->width * copy->height;
    if (up) COUNT(h2d++; h2d_bytes += n);
    else if (down) COUNT(d2h++; d2h_bytes += n);
    else COUNT(d2d++; d2d_bytes += n);
    return OK;
}

Result cuMemsetD8Async(void *to, unsigned char value, size_t n, Stream *stream) {
    (void)stream;
    memset(to, value, n);
    COUNT(sets++; set_bytes += n);
    return OK;
}

// Streams and events

Result cuStreamCreate(Stream **out, unsigned flags) { (void)flags; *out = calloc(1, sizeof **out); COUNT(streams++); return OK; }
Result cuStreamCreateWithPriority(Stream **out, unsigned flags, int priority) { (void)priority; return cuStreamCreate(out, flags); }
Result cuStreamDestroy_v2(Stream *stream) { free(stream); return OK; }
Result cuStreamSynchronize(Stream *stream) { (void)stream; COUNT(stream_waits++); return OK; }
Result cuStreamWaitEvent(Stream *stream, Event *event, unsigned flags) {
    (void)stream; (void)event; (void)flags;
    COUNT(queued_waits++);
    return OK;
}
Result cuEventCreate(Event **out, unsigned flags) { (void)flags; *out = calloc(1, sizeof **out); COUNT(events++); return OK; }
Result cuEventDestroy_v2(Event *event) { free(event); return OK; }
Result cuEventRecord(Event *event, Stream *stream) { (void)stream; COUNT(records++; event->launches = launches); return OK; }
Result cuEventQuery(Event *event) { (void)event; return OK; }
Result cuEventSynchronize(Event *event) { (void)event; COUNT(event_waits++); return OK; }
// Tuning compares times. Nothing ran, so a launch is 10 us: of two variants the one with fewer launches is taken.
Result cuEventElapsedTime_v2(float *ms, Event *start, Event *end) { *ms = 0.01f * (1 + end->launches - start->launches); return OK; }
Result cuEventElapsedTime(float *ms, Event *start, Event *end) { return cuEventElapsedTime_v2(ms, start, end); }

// Modules and launches

Result cuModuleLoadData(Module **out, const char *image) {
    *out = calloc(1, sizeof **out);
    (*out)->image = strdup(image); // NVRTC's PTX is text.
    (*out)->n_bytes = strlen(image);
    COUNT(loaded++);
    return OK;
}
Result cuModuleUnload(Module *module) { free(module->image); free(module); return OK; }

Result cuModuleGetFunction(Function **out, Module *module, const char *name) {
    if (!strstr(module->image, name)) return NOT_FOUND;
    pthread_mutex_lock(&lock);
    Kernel *kernel = kernels;
    while (kernel && strcmp(kernel->name, name)) kernel = kernel->next;
    if (!kernel) {
        kernel = calloc(1, sizeof *kernel);
        kernel->name = strdup(name);
        kernel->next = kernels;
        kernels = kernel;
    }
    const char *folder = getenv("STUB_CUDA_PTX");
    if (folder) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%lu-%.150s.ptx", folder, loaded, name);
        FILE *file = fopen(path, "w");
        if (file) { fwrite(module->image, 1, module->n_bytes, file); fclose(file); } else perror(path);
    }
    pthread_mutex_unlock(&lock);
    *out = calloc(1, sizeof **out);
    **out = (Function){kernel, module};
    return OK;
}
Result cuFuncSetAttribute(Function *function, int attribute, int value) { (void)function; (void)attribute; (void)value; return OK; }
Result cuFuncGetAttribute(int *value, int attribute, Function *function) { (void)function; (void)attribute; *value = 0; return OK; }

Result cuLaunchKernel(Function *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                      Stream *stream, void **arguments, void **extra) {
    (void)arguments; (void)extra;
    // The limits that a driver checks.
    if (!gx || !gy || !gz || gy > 65535 || gz > 65535 || !bx || !by || !bz || bz > 64 || (uint64_t)bx * by * bz > 1024) return INVALID;
    int most = 0;
    cuDeviceGetAttribute(&most, 97, 0);
    if (shared > (unsigned)most) return INVALID;
    COUNT(if (stream && stream->capturing) { stream->nodes++; function->kernel->captured++; } else { launches++; function->kernel->launches++; });
    return OK;
}

// Graphs: kernels recorded, and how often they were replayed

Result cuStreamBeginCapture_v2(Stream *stream, int mode) { (void)mode; stream->capturing = 1; stream->nodes = 0; return OK; }
Result cuStreamEndCapture(Stream *stream, Graph **out) {
    *out = calloc(1, sizeof **out);
    (*out)->nodes = stream->nodes;
    stream->capturing = 0;
    return OK;
}
Result cuGraphGetNodes(Graph *graph, void **nodes, size_t *n) { (void)graph; (void)nodes; *n = 0; return OK; }
Result cuGraphInstantiateWithFlags(Graph **out, Graph *graph, unsigned long long flags) {
    (void)flags;
    *out = calloc(1, sizeof **out);
    **out = *graph;
    return OK;
}
Result cuGraphDestroy(Graph *graph) { free(graph); return OK; }
Result cuGraphExecDestroy(Graph *graph) { free(graph); return OK; }
Result cuGraphUpload(Graph *graph, Stream *stream) { (void)graph; (void)stream; return OK; }
Result cuGraphLaunch(Graph *graph, Stream *stream) { (void)stream; COUNT(replays++; replayed_kernels += graph->nodes); return OK; }

// Descriptors of Hopper's copy engine: 128 bytes that only a kernel reads.
Result cuTensorMapEncodeTiled(void *map, ...) { memset(map, 0, 128); return OK; }
Result cuTensorMapEncodeIm2col(void *map, ...) { memset(map, 0, 128); return OK; }

// NVML, so that profiles and monitors find the card

int nvmlInit_v2(void) { return 0; }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int error) { (void)error; return "an error of the stub"; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "stub"); return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &context; return index == 0 ? 0 : 2; }
int nvmlDeviceGetName(void *device, char *name, unsigned size) { (void)device; return cuDeviceGetName(name, (int)size, 0); }
int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor) {
    (void)device;
    *major = capability(0);
    *minor = capability(1);
    return 0;
}
typedef struct { unsigned version; unsigned long long total, reserved, unused, used; } Memory;
int nvmlDeviceGetMemoryInfo_v2(void *device, Memory *memory) {
    (void)device;
    *memory = (Memory){memory->version, memory_of_card(), 0, memory_of_card() - held, held};
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *device, unsigned *rates) { (void)device; rates[0] = rates[1] = 0; return 0; }
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) { (void)device; (void)sensor; *celsius = 25; return 0; }

// NVRTC with a memory on disk: every process compiles the same kernels again

typedef struct { void *program; char *source, *ptx; uint64_t hash; } Program;

static void *nvrtc(const char *name) {
    static void *library;
    if (!library) library = dlopen(setting("STUB_CUDA_NVRTC", "libnvrtc.so.12"), RTLD_NOW);
    void *symbol = library ? dlsym(library, name) : NULL;
    if (!symbol) { fprintf(stderr, "stub_cuda: no %s: %s\n", name, dlerror()); abort(); }
    return symbol;
}

static uint64_t hashed(uint64_t hash, const char *text) {
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 1099511628211ull;
    return hash;
}

static void path_of(const Program *program, char *path, size_t n) {
    snprintf(path, n, "%s/%016lx.ptx", setting("STUB_CUDA_CACHE", "/tmp"), program->hash);
}

const char *nvrtcGetErrorString(int error) { return ((const char *(*)(int))nvrtc("nvrtcGetErrorString"))(error); }

int nvrtcCreateProgram(Program **out, const char *source, const char *name, int n, const char **headers, const char **names) {
    (void)name; (void)n; (void)headers; (void)names;
    *out = calloc(1, sizeof **out);
    (*out)->source = strdup(source);
    return 0;
}

int nvrtcCompileProgram(Program *program, int n, const char **options) {
    program->hash = hashed(14695981039346656037ull, program->source);
    for (int i = 0; i < n; i++) if (!strstr(options[i], "--include-path")) program->hash = hashed(program->hash, options[i]);
    char path[4096], fresh[4200];
    path_of(program, path, sizeof path);
    FILE *file = fopen(path, "r");
    if (file) {
        fseek(file, 0, SEEK_END);
        size_t size = ftell(file);
        rewind(file);
        program->ptx = calloc(1, size + 1);
        size_t got = fread(program->ptx, 1, size, file);
        fclose(file);
        if (got == size) return 0;
    }
    int result = ((int (*)(void **, const char *, const char *, int, const char **, const char **))nvrtc("nvrtcCreateProgram"))(
        &program->program, program->source, "kernel.cu", 0, NULL, NULL);
    if (!result) result = ((int (*)(void *, int, const char **))nvrtc("nvrtcCompileProgram"))(program->program, n, options);
    if (result) return result;
    size_t size = 0;
    ((int (*)(void *, size_t *))nvrtc("nvrtcGetPTXSize"))(program->program, &size);
    program->ptx = calloc(1, size + 1);
    ((int (*)(void *, char *))nvrtc("nvrtcGetPTX"))(program->program, program->ptx);
    snprintf(fresh, sizeof fresh, "%s.%d", path, getpid());
    file = getenv("STUB_CUDA_CACHE") ? fopen(fresh, "w") : NULL;
    if (file) {
        fputs(program->ptx, file);
        fclose(file);
        rename(fresh, path);
    }
    return 0;
}

int nvrtcGetPTXSize(Program *program, size_t *size) { *size = strlen(program->ptx) + 1; return 0; }
int nvrtcGetPTX(Program *program, char *ptx) { strcpy(ptx, program->ptx); return 0; }
int nvrtcGetProgramLogSize(Program *program, size_t *size) {
    return ((int (*)(void *, size_t *))nvrtc("nvrtcGetProgramLogSize"))(program->program, size);
}
int nvrtcGetProgramLog(Program *program, char *log) { return ((int (*)(void *, char *))nvrtc("nvrtcGetProgramLog"))(program->program, log); }
int nvrtcDestroyProgram(Program **program) {
    if ((*program)->program) ((int (*)(void **))nvrtc("nvrtcDestroyProgram"))(&(*program)->program);
    free((*program)->source);
    free((*program)->ptx);
    free(*program);
    *program = NULL;
    return 0;
}
