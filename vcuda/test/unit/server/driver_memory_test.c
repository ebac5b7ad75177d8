/* SPDX-License-Identifier: Apache-2.0 */

/* How much the driver has taken besides, as NVML says it. */

#include "unit.h"

#include <string.h>
#include <unistd.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/server.h"
#include "vcuda/server/share.h"

#define MIB ((uint64_t)1 << 20)

struct server server;
struct driver_api driver;

static struct start_quota quota;
static struct start_orders orders;
static uint64_t has;         /* this process, of the GPU; 0: NVML does not list it */
static int nvml, told_times; /* nvml: its address stands for the library */

struct process {
	unsigned pid;
	unsigned long long used;
	unsigned instances[2];
};

void server_tell(enum start_event_kind kind, uint64_t number, const char *text)
{
	(void)kind, (void)number, (void)text;
}

void server_tell_once(enum start_event_kind kind, const char *text)
{
	(void)text;
	told_times += kind == START_EVENT_ESTIMATED;
}

uint64_t server_places(void)
{
	return 0;
}

unsigned server_find_name(unsigned number)
{
	return number;
}

void pool_settle(void)
{
}

uint64_t share_held_given(void)
{
	return 0;
}

void *driver_load_beside(const char *name)
{
	assert_string_equal(name, "libnvidia-ml.so.1");
	return &nvml;
}

static int nvml_begin(void)
{
	return 0;
}

static int nvml_find(const char *address, void **ret)
{
	(void)address;
	*ret = &nvml;
	return 0;
}

static int nvml_list(void *gpu, unsigned *count, struct process *list)
{
	(void)gpu;
	*count = has > 0;
	list[0] = (struct process){.pid = (unsigned)getpid(), .used = has};
	return 0;
}

void *__wrap_dlsym(void *library, const char *name);

void *__wrap_dlsym(void *library, const char *name)
{
	assert_ptr_equal(library, &nvml);
	if (strcmp(name, "nvmlInit_v2") == 0)
		return (void *)nvml_begin;
	return strcmp(name, "nvmlDeviceGetHandleByPciBusId_v2") == 0 ? (void *)nvml_find : (void *)nvml_list;
}

/*
 * Of a request that is refused, and of code that is loaded, too: what is counted before the first context is no reason
 * to take NVML for one that does not know this process.
 */
static void what_is_counted_before_the_first_context_says_nothing(void **state)
{
	(void)state;
	orders.limit = 1024 * MIB;
	server = (struct server){.quota = &quota, .orders = &orders, .start = {.gpu_count = 1}};
	driver_memory_begin();
	driver_memory_open();
	assert_true(driver_memory_count());
	assert_true(driver_memory_fits());
	assert_int_equal(quota_counted(), 0);
	has = 300 * MIB;
	driver_memory_add_context();
	assert_true(driver_memory_fits());
	assert_true(driver_memory_is_known());
	assert_int_equal(quota_counted(), 300 * MIB);
	has = 8192 * MIB;
	assert_false(driver_memory_fits());
	assert_int_equal(quota_left(), 0);
	/* After its last context, it is not there either. */
	has = 0;
	assert_true(driver_memory_fits());
	assert_true(driver_memory_is_known());
	assert_int_equal(quota_counted(), 0);
	assert_int_equal(told_times, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_counted_before_the_first_context_says_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
