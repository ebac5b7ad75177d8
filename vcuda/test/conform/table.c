/* SPDX-License-Identifier: Apache-2.0 */

/* The tables that cuGetExportTable() gives, by whose slots NVIDIA's CUDA runtime calls the driver. */

#include <string.h>

#include "check.h"

typedef void end_fn(CUcontext context, const void *key, void *value);

/* Bytes of UUIDs that are publicly known. */
static const CUuuid runtime = {{'\x6b', '\xd5', '\xfb', '\x6c', '\x5b', '\xf4', '\xe7', '\x4a', '\x89', '\x87', '\xd9',
				'\x39', '\x12', '\xfd', '\x9d', '\xf9'}};
static const CUuuid callbacks = {{'\xa0', '\x94', '\x79', '\x8c', '\x2e', '\x74', '\x2e', '\x74', '\x93', '\xf2',
				  '\x08', '\x00', '\x20', '\x0c', '\x0a', '\x66'}};
static const CUuuid threads = {{'\x42', '\xd8', '\x5a', '\x81', '\x23', '\xf6', '\xcb', '\x47', '\x82', '\x98', '\xf6',
				'\xe7', '\x8a', '\x3a', '\xec', '\xdc'}};
static const CUuuid storage = {{'\xc6', '\x93', '\x33', '\x6e', '\x11', '\x21', '\xdf', '\x11', '\xa8', '\xc3', '\x68',
				'\xf3', '\x55', '\xd8', '\x95', '\x93'}};
static const CUuuid checks = {{'\x26', '\x3e', '\x88', '\x60', '\x7c', '\xd2', '\x61', '\x43', '\x92', '\xf6', '\xbb',
			       '\xd5', '\x00', '\x6d', '\xfa', '\x7e'}};
static const CUuuid integrity = {{'\xd4', '\x08', '\x20', '\x55', '\xbd', '\xe6', '\x70', '\x4b', '\x8d', '\x34',
				  '\xba', '\x12', '\x3c', '\x66', '\xe1', '\xf2'}};
static const CUuuid contexts = {{'\x21', '\x31', '\x8c', '\x60', '\x97', '\x14', '\x32', '\x48', '\x8c', '\xa6', '\x41',
				 '\xff', '\x73', '\x24', '\xc8', '\xf2'}};

/* A slot of a table, of which @type is the function's. */
#define SLOT(type, uuid, number) ((type *)table_slot(uuid, number))

static void *table_slot(const CUuuid *uuid, int number)
{
	const void *table = NULL;

	if (cu.cuGetExportTable(&table, uuid) || !table)
		return NULL;
	return ((void *const *)table)[number];
}

static CUcontext table_begin(void)
{
	CUcontext primary = NULL;

	OK(cu.cuInit(0));
	OK(cu.cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cu.cuCtxSetCurrent(primary));
	return primary;
}

static void table_found(void)
{
	const CUuuid *const known[] = {&runtime, &callbacks, &threads, &checks, &contexts};
	const void *table = NULL;

	OK(cu.cuInit(0));
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		OK(cu.cuGetExportTable(&table, known[i]));
		NOTE(table && *(const size_t *)table >= 3 * sizeof(void *) &&
		     *(const size_t *)table % sizeof(void *) == 0);
	}
	OK(cu.cuGetExportTable(&table, &storage));
	TRUE(table != NULL);
	IS(1, cu.cuGetExportTable(NULL, &storage));
	IS(1, cu.cuGetExportTable(&table, NULL));
}

/* A program may want them before it has called anything. */
static void table_early(void)
{
	const void *table = NULL;

	OK(cu.cuGetExportTable(&table, &runtime));
	TRUE(table != NULL);
}

static void table_runtime(void)
{
	typedef CUresult retain_fn(CUcontext *, CUdevice);
	CUcontext primary = table_begin(), again = NULL;
	retain_fn *retain = SLOT(retain_fn, &runtime, 2);

	OK(retain(&again, 0));
	TRUE(again == primary);
	OK(cu.cuDevicePrimaryCtxRelease_v2(0));
	NOTE(retain(&again, 99));
}

static void table_callbacks(void)
{
	typedef void give_fn(void **, size_t *);
	const int slots[] = {2, 6};

	OK(cu.cuInit(0));
	for (int i = 0; i < 2; i++) {
		void *marks = NULL;
		size_t count = 0;

		SLOT(give_fn, &callbacks, slots[i])(&marks, &count);
		TRUE(marks != NULL);
		TRUE(count > 0);
	}
}

static void table_current(void)
{
	typedef CUresult current_fn(CUcontext *);
	CUcontext primary = table_begin(), got_one = NULL;
	current_fn *current = SLOT(current_fn, &threads, 2);

	OK(current(&got_one));
	TRUE(got_one == primary);
	OK(cu.cuCtxSetCurrent(NULL));
	NOTE(current(&got_one));
	TRUE(got_one == NULL);
}

static void table_special(void)
{
	typedef CUresult check_fn(CUcontext, uint32_t *, const void **);
	typedef uint32_t ask_fn(void);
	CUcontext primary = table_begin();
	const void *more = NULL;
	uint32_t special = 77;

	OK(SLOT(check_fn, &checks, 2)(primary, &special, &more));
	IS(0, special);
	IS(0, SLOT(ask_fn, &checks, 3)());
}

static void table_number(void)
{
	typedef CUresult number_fn(CUcontext, unsigned long long *);
	CUcontext primary = table_begin();
	unsigned long long number = 0, id = 1;

	OK(SLOT(number_fn, &contexts, 4)(primary, &number));
	OK(cu.cuCtxGetId(primary, &id));
	TRUE(number == id);
	OK(cu.cuCtxGetId(NULL, &id));
	TRUE(number == id);
}

/* Whose value depends on where and when it is asked for. A build of vCUDA may be without it. */
static void table_integrity(void)
{
	const void *table = NULL;

	OK(cu.cuInit(0));
	NOTE(cu.cuGetExportTable(&table, &integrity));
	NOTE(table && *(const size_t *)table == 3 * sizeof(void *));
}

/* ---- what is kept for a context ---- */

typedef CUresult put_fn(CUcontext, const void *key, void *value, end_fn *);
typedef CUresult delete_fn(CUcontext, const void *key);
typedef CUresult get_fn(void **, CUcontext, const void *key);

static int ends;
static CUcontext end_context;
static const void *end_key;
static void *end_value;

static void table_end(CUcontext of, const void *key, void *value)
{
	ends++;
	end_context = of;
	end_key = key;
	end_value = value;
}

static void table_storage(void)
{
	static int keys[2], values[3];
	CUcontext primary = table_begin();
	put_fn *put = SLOT(put_fn, &storage, 0);
	delete_fn *delete = SLOT(delete_fn, &storage, 1);
	get_fn *get = SLOT(get_fn, &storage, 2);
	void *value = &keys;

	IS(400, get(&value, primary, &keys[0]));
	OK(put(primary, &keys[0], &values[0], NULL));
	OK(put(NULL, &keys[1], &values[1], NULL));
	OK(get(&value, NULL, &keys[0]));
	TRUE(value == &values[0]);
	OK(get(&value, primary, &keys[1]));
	TRUE(value == &values[1]);
	NOTE(put(primary, &keys[0], &values[2], NULL));
	OK(get(&value, primary, &keys[0]));
	NOTE(value == &values[2]);
	NOTE(delete (primary, &keys[0]));
	NOTE(get(&value, primary, &keys[0]));
	NOTE(delete (primary, &keys[0]));
	OK(get(&value, primary, &keys[1]));
	OK(cu.cuCtxSetCurrent(NULL));
	NOTE(get(&value, NULL, &keys[1]));
	NOTE(put(NULL, &keys[0], &values[0], NULL));
	OK(get(&value, primary, &keys[1]));
}

static void table_ended(CUcontext of, const void *key, const void *value)
{
	NOTE(ends);
	TRUE(end_context == of);
	TRUE(end_key == key);
	TRUE(end_value == value);
}

static void table_destroyed(void)
{
	static int key, value;
	CUcontext created = NULL;

	OK(cu.cuInit(0));
	OK(cu.cuCtxCreate_v2(&created, 0, 0));
	OK(SLOT(put_fn, &storage, 0)(created, &key, &value, table_end));
	IS(0, ends);
	OK(cu.cuCtxDestroy_v2(created));
	table_ended(created, &key, &value);
}

static void table_reset(void)
{
	static int key, value;
	CUcontext primary = table_begin(), again = NULL;
	void *got_value = NULL;
	get_fn *get = SLOT(get_fn, &storage, 2);

	OK(SLOT(put_fn, &storage, 0)(primary, &key, &value, table_end));
	OK(cu.cuDevicePrimaryCtxReset_v2(0));
	table_ended(primary, &key, &value);
	NOTE(get(&got_value, NULL, &key));
	NOTE(get(&got_value, primary, &key));
	OK(cu.cuDevicePrimaryCtxRetain(&again, 0));
	NOTE(again == primary);
	OK(cu.cuCtxGetCurrent(&again));
	NOTE(again == primary);
	IS(400, get(&got_value, primary, &key));
	(void)check_alloc(4096);
}

static void table_released(void)
{
	static int key, value;
	CUcontext primary = table_begin(), again = NULL;

	OK(SLOT(put_fn, &storage, 0)(primary, &key, &value, table_end));
	OK(cu.cuDevicePrimaryCtxRelease_v2(0));
	table_ended(primary, &key, &value);
	OK(cu.cuDevicePrimaryCtxRetain(&again, 0));
	NOTE(again == primary);
	(void)check_alloc(4096);
}

const struct check table_checks[] = {
	{"known ones are found", table_found, true},
	{"before cuInit", table_early, true},
	{"retaining by it", table_runtime, true},
	{"marks of tools", table_callbacks, true},
	{"the current context", table_current, true},
	{"whether a context is special", table_special, true},
	{"a context's number", table_number, true},
	{"the one with the check value", table_integrity, true},
	{"keeping something for a context", table_storage, true},
	{"what is kept, when the context is destroyed", table_destroyed, true},
	{"what is kept, when the primary one is reset", table_reset, true},
	{"what is kept, when the primary one is released", table_released, true},
	END,
};
