/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the conformance checks share. A check says what it does in its title and writes down what it got; each line of the
 * output is the same on every driver that behaves the same, so that outputs can be compared line by line.
 */

#ifndef VCUDA_CONFORM_CHECK_H
#define VCUDA_CONFORM_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "../cuda.h"

struct check {
	const char *title;
	void (*run)(void);
	bool alone; /* in a process of its own: it leaves the context with an error, or worse */
};

struct group {
	const char *name;
	const struct check *checks;
	bool bare; /* without cuInit and a context */
};

#define END                       \
	{                         \
		NULL, NULL, false \
	}

/* The driver's functions by their symbols; what it lacks returns -1. */
extern struct driver {
#define CHECK_MEMBER(name, symbol, version, parameters) CUresult(*symbol) parameters;
#define CHECK_MEMBER_TWIN(name, symbol, version, suffix, parameters, arguments) \
	CUresult(*symbol) parameters;                                           \
	CUresult(*symbol##_##suffix) parameters;
	CUDA_FUNCTIONS(CHECK_MEMBER, CHECK_MEMBER_TWIN)
#undef CHECK_MEMBER
#undef CHECK_MEMBER_TWIN
} cu;

extern CUcontext context; /* the primary one of device 0, which is current */
extern CUmodule module;
extern char kernels_ptx[];

/* Writes a number down, and whether it is the one that is right. */
void got(long long value);
void want(long long value, long long right);
void got_text(const char *text);

#define IS(right, call) want(call, right)
#define OK(call) want(call, 0)
#define TRUE(condition) want((condition) ? 1 : 0, 1)
#define NOTE(value) got((long long)(value))

/* Has the context above, as groups have that are not bare. */
CUresult check_begin(void);
void check_load(void);
CUfunction check_function(const char *name);
CUdeviceptr check_alloc(size_t bytes);
/* Device memory with these words, and the words of device memory. */
CUdeviceptr check_words(const uint32_t *words, size_t count);
uint32_t check_word(CUdeviceptr address);
/* One block of threads. */
CUresult check_launch(const char *name, unsigned threads, CUstream stream, void **parameters);
#define PARAMETERS(...) ((void *[]){__VA_ARGS__})
/* Memory of the host that the device reads at its own address. */
uint32_t *check_pinned(size_t bytes);
/* A stream that waits until *gate is set. */
void check_gate(volatile uint32_t *gate, CUstream stream);
void *check_symbol(const char *name);

extern const struct check init_checks[], device_checks[], context_checks[], memory_checks[], pointer_checks[],
	pool_checks[], vmm_checks[], copy_checks[], fill_checks[], code_checks[], link_checks[], library_checks[],
	launch_checks[], occupancy_checks[], stream_checks[], event_checks[], word_checks[], graph_checks[],
	capture_checks[], error_checks[], entry_checks[], thread_checks[], pair_checks[], table_checks[],
	array_checks[], reference_checks[], print_checks[], condition_checks[];
extern const struct check managed_checks[], variable_checks[], share_checks[];

#endif
