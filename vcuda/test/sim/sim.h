/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The simulated driver: a libcuda.so.1 with the driver API's semantics and no GPU. One lock guards everything; each stream is
 * a thread that does its work in order; device memory is mapped at its own address; kernels are C functions that are found by
 * the name of the .entry in the PTX text.
 */

#ifndef VCUDA_TEST_SIM_H
#define VCUDA_TEST_SIM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../cuda.h"

enum { SIM_GPUS_MAX = 8, SIM_ARGS_MAX = 4096, SIM_LIMITS = 10, SIM_PARAMETERS_MAX = 512 };

/* ---- configuration: environment CTR_GPU_SIM_X, else line X=… of sim.conf beside the library ---- */

const char *config_value(const char *key);
unsigned long long config_number(const char *key, unsigned long long otherwise);
/* Whether a file of that name is beside the library now. */
bool config_has_file(const char *name);

/* ---- devices ---- */

struct device {
	int ordinal;
	size_t memory, used;
	char name[64];
	unsigned char uuid[16];
	int place; /* the GPU of this machine where it is now: another one after it was brought back there */
	CUcontext primary, former; /* former: which was, and is at the same address again */
	unsigned primary_count, primary_flags;
	CUmemoryPool pool, default_pool;
	unsigned peers; /* bit per ordinal whose memory its contexts reach */
};

struct device *device_get(CUdevice device);
int device_count(void);
int device_attribute(const struct device *device, int attribute);
int device_init(void);
/* Takes memory of the device, or says that there is none left. */
CUresult device_charge(struct device *device, size_t bytes);
void device_refund(struct device *device, size_t bytes);

/* ---- faults, locks and the start of every call ---- */

extern pthread_mutex_t sim_lock;
extern pthread_cond_t sim_changed;
extern _Thread_local bool sim_own_default; /* in a twin: the default stream is the thread's own */
extern _Thread_local bool sim_in_callback;

/* Every entry: faults by name, then whether cuInit was called, and in this process. Takes the lock where it returns 0. */
CUresult call_enter(const char *name);
/* The same, and a current context without an error. */
CUresult call_enter_context(const char *name, CUcontext *ret);
CUresult call_leave(CUresult r);
CUresult call_fault(const char *name);
bool call_initialized(void);
/* Another process has locked this one: calls wait. */
extern bool sim_locked;
/* From now on it can. */
void checkpoint_begin(void);
void checkpoint_tell_places(void);
/* For other processes, not among the functions that clients know. */
CUresult cuCheckpointProcessGetState(int pid, int *ret);
CUresult cuCheckpointProcessLock(int pid, void *arguments);
CUresult cuCheckpointProcessCheckpoint(int pid, void *arguments);
CUresult cuCheckpointProcessRestore(int pid, void *arguments);
CUresult cuCheckpointProcessUnlock(int pid, void *arguments);

/* ---- objects: what a handle may point to ---- */

enum object_kind {
	OBJECT_CONTEXT = 1,
	OBJECT_MODULE,
	OBJECT_FUNCTION,
	OBJECT_LIBRARY,
	OBJECT_KERNEL,
	OBJECT_STREAM,
	OBJECT_EVENT,
	OBJECT_GRAPH,
	OBJECT_NODE,
	OBJECT_EXEC,
	OBJECT_LINK,
	OBJECT_POOL,
	OBJECT_ALLOCATION,
	OBJECT_ARRAY,
	OBJECT_MIPMAP,
	OBJECT_TEXTURE,
	OBJECT_TEXREF,
	OBJECT_SURFREF,
	OBJECT_USER,
};

struct object {
	enum object_kind kind;
	struct object *next, *previous;
	CUcontext context;
	size_t size;
	unsigned users; /* threads that wait for it, or work in it */
	struct device *device;
	size_t taken; /* of the device */
};

void *object_new(enum object_kind kind, size_t size, CUcontext context);
/* One that was unlinked is there again, empty, at its address. */
void *object_again(void *handle);
/* Of a handle that a call was given: it may not be of what is gone, if the configuration is strict. */
bool object_is(const void *handle, enum object_kind kind);
bool object_lives(const void *handle, enum object_kind kind);
/* While the lock is given up, nobody may end it. */
void object_enter(void *handle);
void object_leave(void *handle);
void object_ends(const void *handle);
void object_was_used(const void *handle);
bool object_strict(void);
void object_free(void *handle);
/* Whoever has ended something gives up the lock for a while. */
void object_tell_late(void);
/* It has so much of a device until its end. Return: whether there was as much. */
bool object_take(void *handle, struct device *device, size_t bytes);
/* No handle any more, but kept: others still point to it. */
void object_unlink(void *handle);
/* The first of a kind that belongs to a context, or NULL. */
void *object_of(enum object_kind kind, CUcontext context);
void *object_after(const void *object, enum object_kind kind);

/* ---- contexts ---- */

struct CUctx_st {
	struct object object;
	struct device *device;
	bool primary;
	unsigned flags, api_version;
	unsigned long long id;
	CUresult sticky;
	CUstream legacy;
	size_t limits[SIM_LIMITS];
	int cache_config, shared_config;
	unsigned attached;
	size_t taken;   /* of the device, for itself and for local memory of kernels */
	unsigned local; /* bytes of a thread */
	CUcontext peers[SIM_GPUS_MAX];
};

CUcontext context_current(void);
void context_drain(CUcontext context);
/* What a kernel needs of local memory is taken for all threads that can be there, and kept. */
CUresult context_take_local(CUcontext context, unsigned bytes);
CUcontext context_primary(struct device *device);
/* It is gone: tells those who keep something for it. */
void table_end_context(CUcontext context);

/* ---- streams ---- */

struct wait {
	CUstream stream;
	uint64_t sequence;
	struct wait *next;
};

struct work {
	struct work *next;
	uint64_t sequence;
	struct wait *waits;
	void (*run)(struct work *work, CUcontext context);
	bool always;        /* done in a context with an error, too */
	bool is_noted_late; /* a word in memory that is seen before the driver has noted that it is written */
};

struct CUstream_st {
	struct object object;
	unsigned flags;
	int priority;
	unsigned long long id;
	bool legacy, started, ending;
	pthread_t thread;
	struct work *first, **last;
	uint64_t queued, done;
	bool late; /* who asks next is told that it is not done */
	CUstreamAttrValue attributes[16];
	bool per_thread;
	pthread_t owner;
	struct capture *capture;
	CUgraphNode *captured; /* what the next captured node depends on */
	size_t captured_count;
};

/* A stream of a call: the default ones by their numbers, too. */
CUresult stream_find(CUcontext context, CUstream handle, CUstream *ret);
CUstream stream_new(CUcontext context, unsigned flags, int priority);
void stream_destroy(CUstream stream);
/* Hands work, which was made by malloc, to the stream's thread, and returns its number. */
uint64_t stream_push(CUstream stream, struct work *work);
void stream_order(struct work *work, CUstream after, uint64_t sequence);
/* Until the stream has done it; the lock is given up in between. */
CUresult stream_wait(CUstream stream, uint64_t sequence);
bool stream_is_done(CUstream stream, uint64_t sequence);

/* ---- events ---- */

/* How often an event of several processes was recorded, and how often it came to that. */
struct shared_event {
	_Atomic unsigned begun, done;
};

struct CUevent_st {
	struct object object;
	unsigned flags;
	bool recorded;
	bool taken; /* of another process */
	struct shared_event *shared;
	uint64_t shared_at;
	CUstream stream;
	uint64_t sequence;
	uint64_t nanoseconds;
	struct capture *capture;
	CUgraphNode *captured;
	size_t captured_count;
};

/* Whether an event of another process has been recorded and not been reached; waits until it was, so many times. */
bool ipc_is_pending(CUevent event);
void ipc_wait(const struct shared_event *event, unsigned begun);

void event_record(CUevent event, CUstream stream);
void event_wait(CUevent event, CUstream stream);

/* ---- memory ---- */

enum address_map_kind {
	ADDRESS_MAP_DEVICE = 1,
	ADDRESS_MAP_HOST,
	RANGE_REGISTERED,
	ADDRESS_MAP_RESERVED,
	RANGE_POOL,
	RANGE_MANAGED,
	RANGE_TAKEN /* another process's */
};

struct range {
	struct range *next;
	enum address_map_kind kind;
	uintptr_t start;
	size_t size, charged;
	CUcontext context;
	struct device *device;
	unsigned flags, page;
	unsigned long long id;
	bool freed;    /* by cuMemFreeAsync */
	bool of_graph; /* which has it again whenever it runs */
	bool sync_memops;
	CUmemoryPool pool;
	CUstream freed_on;
	uint64_t freed_at;
	struct advice *advice; /* of each page of managed memory */
	uint64_t shared;       /* where it lies in the file of all processes; 0: nowhere */
	unsigned opened;
};

/* Its process frees what it may have given others. */
void ipc_forget(const struct range *range);
struct range *address_map_find(uintptr_t address);
/* The one that is found where these bytes begin, or else any that has one of them. */
struct range *address_map_find_in(uintptr_t address, size_t bytes);
struct range *address_map_add(enum address_map_kind kind, void *start, size_t size, CUcontext context);
void address_map_remove(struct range *range);
/* What lies at that place of the file and is another process's. */
struct range *range_shared(uint64_t offset);
struct range *range_next(struct range *after, CUcontext context);
/* Whether all of it can be reached by a kernel. */
bool range_reaches(CUcontext context, uintptr_t address, size_t size, bool write);
/* What a copy may use: in one range of the device's, of locked memory or of mapped handles. */
bool range_holds(uintptr_t address, size_t size);
bool range_is_host(const struct range *range);
bool range_is_registered(uintptr_t address);
/* What the GPU writes or reads must still be registered then, if the configuration is strict. */
void range_must_stay(uintptr_t address);
void *memory_map(size_t size);
CUresult memory_alloc(CUcontext context, size_t bytes, CUdeviceptr *ret);
CUresult managed_alloc(CUcontext context, size_t bytes, CUdeviceptr *ret);
CUresult module_managed(CUmodule module, const char *name, CUdeviceptr *ret, size_t *ret_bytes);
void memory_free_all(CUcontext context);
bool vmm_reaches(uintptr_t address, size_t size, bool write);
bool vmm_holds(uintptr_t address, size_t size, struct device **ret);
size_t vmm_range(uintptr_t address, uintptr_t *ret_start);
unsigned long long memory_next_id(void);
CUresult pool_free(CUcontext context, struct range *range, CUstream stream);
void pool_forget(struct range *range);
CUmemoryPool pool_default(struct device *device);

/* ---- code ---- */

struct launch;
typedef void kernel_fn(struct launch *launch);

struct parameter {
	size_t offset, size;
};

struct CUfunc_st {
	struct object object;
	CUmodule module;
	CUkernel kernel;
	char name[128];
	kernel_fn *run;
	unsigned parameter_count, declared_shared, declared_local;
	unsigned registers, max_threads;
	struct parameter parameters[SIM_PARAMETERS_MAX];
	size_t arguments_size;
	int max_dynamic_shared, carveout, cache_config, target;
};

struct global {
	char name[128];
	CUdeviceptr address;
	size_t size;
	bool managed;
	unsigned char initial[256];
};

struct CUmod_st {
	struct object object;
	CUlibrary library;
	CUfunction functions[64];
	unsigned function_count;
	struct global globals[16];
	unsigned global_count;
};

struct launch {
	struct work work;
	CUfunction function; /* a copy: the module may be unloaded */
	CUcontext context;
	unsigned grid[3], block[3], shared;
	unsigned char arguments[SIM_ARGS_MAX];
	CUresult error;
};

struct ptx_log {
	char *text;
	size_t size, used;
};

/* Reads PTX text, or what cuLinkComplete() made of several. */
enum { PTX_UNRESOLVED = 300 }; /* all is well but for functions that are nowhere */
CUresult ptx_parse(const char *text, CUmodule module, struct ptx_log *log);
void ptx_say(struct ptx_log *log, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Text that several make together, as a file that looks like an ELF of a GPU; and the text in one. */
void *link_image(const char *text, size_t *ret_size);
const char *link_text(const void *image);
void jit_options(unsigned count, const int *options, void **values, struct ptx_log *info, struct ptx_log *error);
void jit_report(unsigned count, const int *options, void **values, const struct ptx_log *info,
		const struct ptx_log *error);
kernel_fn *kernel_find(const char *name);
void module_compile(CUcontext context);
/* The text in an image; NULL: there is none. */
const char *module_text(const void *image);
CUresult module_new(CUcontext context, const void *image, struct ptx_log *log, CUmodule *ret);
void module_free(CUmodule module);
CUresult module_global(CUmodule module, const char *name, CUdeviceptr *ret, size_t *ret_bytes);
CUresult module_read_file(const char *path, void **ret, size_t *ret_size);
/* A function of a call: kernels serve as functions, too. */
CUresult library_function(CUcontext context, CUfunction handle, CUfunction *ret);

/* Checks a launch and makes work of it. */
CUresult launch_prepare(CUcontext context, const CUlaunchConfig *config, CUfunction function, void **parameters,
			void **extra, struct launch **ret);
void launch_run(struct work *work, CUcontext context);

/* ---- arrays and what is made of them ---- */

struct CUarray_st {
	struct object object;
	CUDA_ARRAY3D_DESCRIPTOR what;
	uintptr_t memory; /* rows and planes without gaps */
	size_t element, pitch, slice, rows, planes;
	CUmipmappedArray levels; /* it is one of */
};

/* Where a box in the array begins, if it lies in it. */
CUresult array_box(CUarray array, const size_t corner[3], const size_t extent[3], uintptr_t *ret);
void array_free_all(CUcontext context);
/* Bytes of an element; 0: there is no such format. */
size_t array_element(int format, unsigned channels);
/* An element, as kernels see it: its first channel. What a surface writes must be in it. */
bool array_fetch(CUcontext context, CUtexObject texture, long x, long y, uint32_t *ret);
bool array_store(CUcontext context, CUsurfObject surface, long x, long y, uint32_t value);

/* Textures and surfaces that a module names. */
struct CUtexref_st {
	struct object object;
	CUmodule module; /* NULL: the program made it */
	char name[128];
	bool bound;
	CUDA_RESOURCE_DESC resource;
	CUdeviceptr at;
	int format, channels, address[3], filter, level_filter;
	unsigned flags, anisotropy;
	float bias, least, most, border[4];
};

enum { ARRAY_SURFACE = 2 };

struct CUtexref_st *reference_new(CUcontext context, CUmodule module, const char *name, bool surface);
void reference_free_of(CUmodule module);
void reference_free_all(CUcontext context);
/* What it is bound to; NULL: nothing. */
const CUDA_RESOURCE_DESC *reference_resource(CUmodule module, const char *name, bool surface);
/* An element of a texture or surface reference, as array_fetch() and array_store(). */
bool array_fetch_named(const struct launch *launch, const char *name, long x, long y, uint32_t *ret);
bool array_store_named(const struct launch *launch, const char *name, long x, long y, uint32_t value);

/* ---- what kernels print; with the lock ---- */

void print_add(bool error, const char *text);
void print_flush(void);

/* ---- copies and sets ---- */

struct copy {
	struct work work;
	uintptr_t to, from;
	size_t to_pitch, to_slice, from_pitch, from_slice;
	size_t width, height, depth;
	void *staged;                /* freed after it */
	bool locked_from, locked_to; /* memory of the host that is registered */
	CUcontext context;
};

struct fill {
	struct work work;
	uintptr_t to;
	size_t pitch, width, height;
	unsigned value, element;
};

CUresult copy_prepare(CUcontext context, const CUDA_MEMCPY3D *copy, struct copy **ret);
void copy_run(struct work *work, CUcontext context);
CUresult fill_prepare(CUcontext context, const CUDA_MEMSET_NODE_PARAMS *parameters, struct fill **ret);
void fill_run(struct work *work, CUcontext context);

struct host_call {
	struct work work;
	CUhostFn function;
	CUstreamCallback callback;
	CUstream stream;
	void *data;
};

void host_call_run(struct work *work, CUcontext context);

/* ---- graphs and capture ---- */

enum node_type {
	NODE_KERNEL = 0,
	NODE_COPY = 1,
	NODE_FILL = 2,
	NODE_HOST = 3,
	NODE_CHILD = 4,
	NODE_EMPTY = 5,
	NODE_WAIT = 6,
	NODE_RECORD = 7,
	NODE_ALLOC = 10,
	NODE_FREE = 11,
	NODE_CONDITION = 13
};

/* Where the stream is being captured: the work becomes a node instead, which owns it. */
bool capture_takes(CUstream stream, enum node_type type, struct work *work, size_t size, CUresult *ret);
/* What a call that cannot be captured returns while a stream is: 0 where none is. */
CUresult capture_forbids(CUstream stream);
CUresult capture_forbids_any(void);
CUresult capture_record(CUevent event, CUstream stream);
CUresult capture_wait(CUevent event, CUstream stream);
/* Whether the event is one of a capture, which asking for it invalidates. */
bool capture_asked(CUevent event);
bool capture_concerns(CUevent event, CUstream stream);

#define CALL(name)                              \
	do {                                    \
		CUresult r_ = call_enter(name); \
		if (r_)                         \
			return r_;              \
	} while (0)
#define CALL_CONTEXT(context)                                         \
	do {                                                          \
		CUresult r_ = call_enter_context(__func__, &context); \
		if (r_)                                               \
			return r_;                                    \
	} while (0)
#define LEAVE(result) return call_leave(result)
#define LEAVE_IF(condition, result)                \
	do {                                       \
		if (condition)                     \
			return call_leave(result); \
	} while (0)

#endif
