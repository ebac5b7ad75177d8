/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a client and its server share: one sealed memfd, which the manager makes for both and the server sends, and the
 * frames in it. All come from one package; WIRE_MAGIC and the number of operations tell a client of another one.
 *
 *   ring     struct wire, with the commands and the replies
 *   staging  chunks through which copies from and to ordinary memory pass
 *   arena    page-locked memory, at the same address on both sides. The client gets the descriptor once more for each
 *            piece that it may map, and keeps none
 *
 * The manager frees all of it when server and client have ended, whoever else keeps it.
 */

#include <stdint.h>

#include "vcuda/protocol/ring.h"

enum {
	WIRE_MAGIC = 0x76437708,
	WIRE_SLOTS = 1024,   /* threads of a client */
	WIRE_REPLY = 4032,   /* bytes of a reply; more is fetched by WIRE_DOWNLOAD */
	WIRE_INLINE = 65536, /* bytes of an entry behind its header */
	WIRE_SMALL = 64,     /* small chunks of the staging memory, then large ones */
	WIRE_SMALL_BYTES = 65536,
	WIRE_LARGE = 8,
	WIRE_LARGE_BYTES = 4 << 20,
	WIRE_CHUNKS = WIRE_SMALL + WIRE_LARGE,
	WIRE_CALLBACKS = 256,
	WIRE_HANDLES = 1 << 20, /* of a server, at most */
	WIRE_ATTRIBUTES = 256,  /* of a device, from number 0 */
	WIRE_ARENAS = 4,        /* addresses that the server offers for page-locked memory */
	WIRE_NVLINKS = 64,      /* of a GPU, at most */
	WIRE_FAILED = 64,       /* contexts that have failed, of which clients know at once */
};

/* No slot: nobody waits for a reply. Not above, where it would make all of them unsigned for gcc 13 and later. */
#define WIRE_SCRATCH UINT32_MAX

/* Beside flags of cuMemHostAlloc(): of no use where the device has no address of it. */
#define WIRE_ARENA_REACHED 256

#define WIRE_STAGING_BYTES ((uint64_t)WIRE_SMALL * WIRE_SMALL_BYTES + (uint64_t)WIRE_LARGE * WIRE_LARGE_BYTES)
#define WIRE_ARENA_BYTES ((uint64_t)1 << 40)
/* The image of a module, and all that a client has sent and not used yet. */
#define WIRE_UPLOAD_MAX ((uint64_t)1 << 30)

static inline uint64_t wire_chunk_offset(uint32_t chunk)
{
	return chunk < WIRE_SMALL
		       ? (uint64_t)chunk * WIRE_SMALL_BYTES
		       : (uint64_t)WIRE_SMALL * WIRE_SMALL_BYTES + (uint64_t)(chunk - WIRE_SMALL) * WIRE_LARGE_BYTES;
}

static inline uint64_t wire_chunk_bytes(uint32_t chunk)
{
	return chunk < WIRE_SMALL ? WIRE_SMALL_BYTES : WIRE_LARGE_BYTES;
}

/* An entry never wraps: one of operation 0 fills what is left at the end. Arguments are words, bytes stand behind. */
struct wire_entry {
	uint16_t op;
	uint16_t words;    /* how many arguments of 8 bytes stand behind this */
	uint32_t bytes;    /* all that stands behind this, arguments included */
	uint32_t slot;     /* whose reply is waited for; WIRE_SCRATCH: nobody's */
	uint32_t sequence; /* what the slot's bell is set to */
	uint64_t context;  /* the calling thread's; 0: none */
	uint32_t thread;   /* the calling thread's slot */
	uint32_t sleeps;   /* the context is one whose waits sleep (CU_CTX_SCHED_BLOCKING_SYNC) */
};
/* So that a call with up to four arguments moves one line of the cache from the client to the server. */
_Static_assert(sizeof(struct wire_entry) == RING_UNIT / 2, "half of a unit is left for arguments");

/* How many units an entry with so many bytes behind its header takes. */
static inline uint64_t wire_units(uint64_t bytes)
{
	return (sizeof(struct wire_entry) + bytes + RING_UNIT - 1) / RING_UNIT;
}

/* The arguments, right behind it. */
static inline uint64_t *wire_arguments(struct wire_entry *entry)
{
	return (uint64_t *)(entry + 1);
}

/* What most replies are, result and a word or two, is in the line of the bell. */
struct wire_reply {
	_Alignas(64) struct bell done; /* its value: the sequence that was answered */
	int32_t result;
	uint32_t bytes; /* of the reply; what is beyond WIRE_REPLY waits to be fetched */
	/* The error of a command of the thread's that had no reply; the call that reports it clears it. */
	_Atomic int32_t deferred;
	uint32_t prints; /* what kernels have printed waits to be fetched: a bit for each enum wire_print */
	uint64_t word[WIRE_REPLY / 8];
};

/* A context in which every call fails from now on. */
struct wire_failed {
	_Atomic uint64_t context; /* its handle; 0: none */
	_Atomic int32_t result;
};

/* A host function that a stream has reached. Its bell is rung by the client when it has run. */
struct wire_callback {
	_Alignas(64) struct bell done;
	uint64_t cookie;
	int32_t status;
	uint32_t kind;
};

/*
 * The client's word of the thread that called last. Times are CLOCK_REALTIME's: a container may have a monotonic clock
 * of its own.
 */
struct wire_caller {
	_Atomic uint32_t processor;
	_Atomic int64_t woke; /* nanoseconds: when it last woke the server */
};

enum wire_state { WIRE_STARTING, WIRE_READY, WIRE_SUSPENDED, WIRE_DEAD };

struct wire {
	/* Written by the server before it greets. */
	uint32_t magic, ops;
	uint64_t arena[WIRE_ARENAS]; /* addresses where it has WIRE_ARENA_BYTES free; 0: none */
	uint32_t spin;               /* nanoseconds that the client may spin; 0: it sleeps at once */
	uint32_t wait_spin;          /* the same where it waits for the GPU: there, the driver itself spins */
	uint32_t copy_threads;       /* that may help with large copies */
	_Alignas(BELL_APART) _Atomic uint32_t state; /* enum wire_state */
	_Atomic uint32_t near; /* the server runs on its caller's processor: who waits for it lets it have that */
	_Alignas(BELL_APART) struct wire_caller caller;
	struct ring ring;
	_Alignas(BELL_APART) struct wire_failed failed[WIRE_FAILED]; /* each at wire_failed_of() */
	_Alignas(BELL_APART) struct bell calls;                      /* its value: how many callbacks were given out */
	struct wire_callback callback[WIRE_CALLBACKS];
	_Alignas(4096) uint8_t command[RING_UNITS * RING_UNIT];
	struct wire_reply reply[WIRE_SLOTS];
};

/* Where they are in the memfd. */
enum { WIRE_STAGING_OFFSET = (sizeof(struct wire) + 65535) & ~(size_t)65535 };
#define WIRE_ARENA_OFFSET (WIRE_STAGING_OFFSET + WIRE_STAGING_BYTES)
#define WIRE_SHARED_BYTES (WIRE_ARENA_OFFSET + WIRE_ARENA_BYTES)

/* The greeting: one datagram, with the descriptor, or without and why not. */
struct wire_greeting {
	uint32_t magic;
	int32_t result; /* 0, or what cuInit() returns */
};

/* Operations of our own; those of the driver's functions follow them, in the order of cuda.def. */
enum wire_op {
	WIRE_FILLER,
	WIRE_HELLO,      /* which address, process id; reply: struct wire_host */
	WIRE_DEVICE,     /* ordinal; reply: struct wire_device */
	WIRE_CHOOSE,     /* bytes; numbers of devices, a byte each: these are the client's from now on, in this order */
	WIRE_UPLOAD,     /* bytes to be appended to the thread's upload; all of 0 bytes: forget it */
	WIRE_DOWNLOAD,   /* offset; reply: what the thread's last reply had there */
	WIRE_FUNCTION,   /* function or kernel; reply: struct wire_function */
	WIRE_COPY_IN,    /* to, stream, bytes; bytes */
	WIRE_STAGE_IN,   /* to, stream, chunk, bytes */
	WIRE_STAGE_OUT,  /* from, stream, chunk, bytes */
	WIRE_STAGE_BOX,  /* stream, chunk, struct; CUDA_MEMCPY3D: one of its sides is the chunk, the other an array */
	WIRE_STAGE_WAIT, /* chunk: until the last copy through it is done */
	WIRE_PROBE,      /* device memory, bytes: whether the driver would copy them */
	WIRE_ARENA_ADD,  /* offset, bytes, flags; reply: address on the device; the descriptor comes by the socket */
	WIRE_ARENA_DROP, /* offset */
	WIRE_REFUSED,    /* kind, text */
	WIRE_PRINT,      /* enum wire_print; reply: what kernels have printed there, as much as fits */
	WIRE_USAGE,      /* ordinal; reply: struct wire_usage */
	WIRE_SENSOR,     /* ordinal, enum wire_sensor, number of the link; reply: its number, 4 bytes */
	WIRE_REGISTER,   /* address, bytes, offset in the file that came by the socket; reply: address on the device */
	WIRE_UNREGISTER, /* that address */
	WIRE_SHARE_END,  /* token's two words: a descriptor of what it names is closed */
	WIRE_THREAD,     /* the slot is another thread's from now on */
	WIRE_OPS,
};

/* Options of the compiler whose value is a number and no address, a bit each, by CUjit_option. */
#define WIRE_JIT_NUMBERS (3ULL | 0xffULL << 7 | 1ULL << 16 | 0x1fULL << 20 | 1ULL << 29 | 1ULL << 30 | 0xfULL << 31)

static inline bool wire_is_jit_number(uint64_t option)
{
	return option < 64 && WIRE_JIT_NUMBERS >> option & 1;
}

/* Where kernels print. */
enum wire_print { WIRE_PRINT_OUT, WIRE_PRINT_ERROR, WIRE_PRINTS };

struct wire_host {
	int32_t driver_version, device_count, arena, can_register;
};

struct wire_device {
	uint64_t total;
	uint8_t uuid[16];
	char name[256];
	char bus[32];
	int32_t attribute[WIRE_ATTRIBUTES]; /* those that the driver does not know, are */
	uint8_t known[WIRE_ATTRIBUTES];     /* not known */
};

/* Places and sizes of parameters, and attributes from number 0. */
enum { WIRE_PARAMETERS = 960, WIRE_FUNCTION_ATTRIBUTES = 16 };
struct wire_function {
	int32_t attribute[WIRE_FUNCTION_ATTRIBUTES];
	uint32_t parameters, bytes;
	struct {
		uint16_t offset, size;
	} parameter[WIRE_PARAMETERS];
};

/* Of the border of a texture: four fractions, as they lie in memory. */
struct wire_color {
	uint32_t bits[4];
};

/* What a container has of a GPU, for NVML. */
enum { WIRE_PROCESSES = 240 };
struct wire_usage {
	uint64_t total, used; /* by the container's quota */
	char driver[32];      /* its version; "": not known */
	uint32_t count, reserved;
	struct wire_process {
		uint32_t id;   /* as the process itself said */
		uint32_t gpus; /* a bit for each of the container's on which it has had a context */
		uint64_t used; /* on all of them */
	} process[WIRE_PROCESSES];
};

/* What NVML says of a GPU, in NVML's units. */
enum wire_sensor {
	WIRE_SENSOR_UTILIZATION, /* percent */
	WIRE_SENSOR_MEMORY_UTILIZATION,
	WIRE_SENSOR_TEMPERATURE, /* degrees Celsius */
	WIRE_SENSOR_SHUTDOWN,
	WIRE_SENSOR_SLOWDOWN,
	WIRE_SENSOR_POWER, /* milliwatts */
	WIRE_SENSOR_POWER_LIMIT,
	WIRE_SENSOR_POWER_DEFAULT,
	WIRE_SENSOR_CLOCK_GRAPHICS, /* MHz */
	WIRE_SENSOR_CLOCK_SM,
	WIRE_SENSOR_CLOCK_MEMORY,
	WIRE_SENSOR_CLOCK_VIDEO,
	WIRE_SENSOR_PERFORMANCE,
	WIRE_SENSOR_PERSISTENCE,
	WIRE_SENSOR_FAN, /* percent */
	WIRE_SENSOR_BRAND,
	WIRE_SENSOR_LINK, /* generations of PCI Express, lanes */
	WIRE_SENSOR_LINK_WIDTH,
	WIRE_SENSOR_LINK_MOST,
	WIRE_SENSOR_LINK_WIDTH_MOST,
	WIRE_SENSOR_PCI_DEVICE, /* numbers of device and vendor */
	WIRE_SENSOR_PCI_SUBSYSTEM,
	WIRE_SENSOR_NVLINK_STATE, /* from here on of a link between GPUs, NVLink */
	WIRE_SENSOR_NVLINK_VERSION,
	WIRE_SENSOR_NVLINK_P2P, /* the first of what it may be capable of, in NVML's order */
	WIRE_SENSOR_NVLINK_SYSTEM,
	WIRE_SENSOR_NVLINK_P2P_ATOMICS,
	WIRE_SENSOR_NVLINK_SYSTEM_ATOMICS,
	WIRE_SENSOR_NVLINK_SLI,
	WIRE_SENSOR_NVLINK_VALID,
	WIRE_SENSOR_NVLINK_REMOTE_TYPE,
	WIRE_SENSOR_NVLINK_REMOTE_DOMAIN, /* where on the bus its other end is */
	WIRE_SENSOR_NVLINK_REMOTE_BUS,
	WIRE_SENSOR_NVLINK_REMOTE_DEVICE,
	WIRE_SENSOR_NVLINK_REMOTE_ID,
	WIRE_SENSOR_NVLINK_PEER, /* the ordinal of another GPU in place of the link: how far NVLink leads there */
	WIRE_SENSORS,
};

_Static_assert(sizeof(struct wire_usage) <= WIRE_REPLY, "replies fit");
_Static_assert(sizeof(struct wire_device) <= WIRE_REPLY && sizeof(struct wire_function) <= WIRE_REPLY, "replies fit");

/*
 * Handles: what an application holds in place of the driver's pointers. No address, so a program that takes one for a
 * pointer faults at once. Small values are the driver's own names of streams.
 */
enum wire_type {
	WIRE_NULL,
	WIRE_CONTEXT,
	WIRE_MODULE,
	WIRE_FUNC,
	WIRE_KERNEL,
	WIRE_LIBRARY,
	WIRE_STREAM,
	WIRE_EVENT,
	WIRE_GRAPH,
	WIRE_NODE,
	WIRE_EXEC,
	WIRE_POOL,
	WIRE_MEMORY,
	WIRE_LINKER,
	WIRE_ARRAY,
	WIRE_MIPMAP,
	WIRE_TEXREF,
	WIRE_SURFREF,
	WIRE_OBJECT,
	WIRE_TYPES,
};

/* Streams without a handle: the null stream, the same by name, and the calling thread's. */
enum { WIRE_STREAM_NULL, WIRE_STREAM_LEGACY, WIRE_STREAM_THREAD, WIRE_STREAM_NAMES };

/* From the left: type, generation, tag, index, 0. The tag is one of 16, of the context that the object belongs to. */
enum { WIRE_TAGS = 16 };

static inline uint64_t wire_handle(enum wire_type type, uint32_t generation, uint32_t index, uint32_t tag)
{
	return (uint64_t)type << 56 | (uint64_t)(generation & 0xffffff) << 32 | (uint64_t)(tag % WIRE_TAGS) << 28 |
	       (uint64_t)(index & 0xffffff) << 4;
}

static inline enum wire_type wire_handle_type(uint64_t handle)
{
	return (enum wire_type)(handle >> 56);
}

/* Whether it may be a stream's. */
static inline bool wire_is_stream(uint64_t handle)
{
	return handle < WIRE_STREAM_NAMES || wire_handle_type(handle) == WIRE_STREAM;
}

static inline uint32_t wire_handle_index(uint64_t handle)
{
	return (uint32_t)(handle >> 4) & 0xffffff;
}

/* Where a context is among those that have failed. Of two with one place, clients hear of the second by their calls. */
static inline uint32_t wire_failed_of(uint64_t context)
{
	return wire_handle_index(context) % WIRE_FAILED;
}

/* Two objects with different tags are of different contexts. */
static inline uint32_t wire_handle_tag(uint64_t handle)
{
	return (uint32_t)(handle >> 28) % WIRE_TAGS;
}

static inline uint32_t wire_handle_tag_of(uint64_t context)
{
	return wire_handle_index(context) % WIRE_TAGS;
}

/* The words in which a client sends what a map of a tensor is made of. */

enum {
	TENSOR_RANKS = 5,
	TENSOR_TYPE = 0,
	TENSOR_RANK,
	TENSOR_ADDRESS,
	TENSOR_INTERLEAVE,
	TENSOR_SWIZZLE,
	TENSOR_PROMOTION,
	TENSOR_FILL,
	TENSOR_DIMENSIONS,
	TENSOR_STRIDES = TENSOR_DIMENSIONS + TENSOR_RANKS,
	TENSOR_ELEMENT = TENSOR_STRIDES + TENSOR_RANKS,
	/* Then those of the kind: the box; or channels, pixels and corners. */
	TENSOR_OWN = TENSOR_ELEMENT + TENSOR_RANKS,
};
