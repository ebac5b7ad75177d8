/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one procedure that asks adapters, against calls made by this test, with both widths of a character: what is asked, in
 * which sizes, and what is made of refusals and nonsense.
 */

#include "unit.h"

#include <errno.h>
#include <stdlib.h>

#include "dxg/dxg.h"

static struct host {
	int enumerate3_result, enumerate2_result;
	unsigned overflows; /* EOVERFLOW that many times first */
	uint32_t count;     /* adapters given */
	uint32_t wddm, type;
	int query_result; /* of every question */
	uint32_t bus;
	bool silent_address;   /* answers, and leaves what was in the buffer */
	const char *store;     /* ASCII */
	uint32_t store_needed; /* told instead of what is needed */
	uint32_t store_status; /* of the second call */

	unsigned calls3, calls2, opened, closed, queries;
	uint64_t asked; /* types, as bits; 63 for a type beyond */
} host;

static void fill(uint64_t address, uint32_t *count)
{
	struct d3dkmt_adapterinfo *adapters = (struct d3dkmt_adapterinfo *)(uintptr_t)address;

	assert_int_equal(*count, D3DKMT_MAX_ADAPTERS);
	for (uint32_t i = 0; i < host.count && i < D3DKMT_MAX_ADAPTERS; i++)
		adapters[i] = (struct d3dkmt_adapterinfo){.handle = i + 1, .luid = {.low = i}};
	host.opened = host.count;
	*count = host.count;
}

static int enumerate(int result, uint64_t address, uint32_t *count)
{
	if (host.overflows > 0) {
		host.overflows--;
		return -EOVERFLOW;
	}
	if (result == 0)
		fill(address, count);
	return result;
}

static int enumerate3(const struct d3dkmt *d3dkmt, struct d3dkmt_enumadapters3 *arguments)
{
	(void)d3dkmt;
	host.calls3++;
	assert_int_equal(arguments->filter, D3DKMT_ENUM_COMPUTE_ONLY);
	return enumerate(host.enumerate3_result, arguments->adapters, &arguments->count);
}

static int enumerate2(const struct d3dkmt *d3dkmt, struct d3dkmt_enumadapters2 *arguments)
{
	(void)d3dkmt;
	host.calls2++;
	return enumerate(host.enumerate2_result, arguments->adapters, &arguments->count);
}

static void put(unsigned char *data, size_t char_size, const char *text)
{
	for (; *text; text++, data += char_size)
		*data = (unsigned char)*text;
}

/* D3DDDI_QUERYREGISTRY_INFO as both sides publish it: 552 bytes with UTF-16, 1072 with UTF-32. */
static int answer_registry(size_t char_size, unsigned char *data, size_t size)
{
	size_t layout = char_size == 2 ? 552 : 1072, tail = 8 + 260 * char_size;
	uint32_t needed = (uint32_t)((strlen(host.store) + 1) * char_size), status;
	uint32_t query_type;

	memcpy(&query_type, data, sizeof(query_type));
	assert_int_equal(query_type, 2);
	if (host.store_needed)
		needed = host.store_needed;
	status = size == layout ? D3DKMT_REGISTRY_OVERFLOW : host.store_status;
	if (size != layout) {
		assert_int_equal(size, layout + needed);
		put(data + layout - 8, char_size, host.store);
	}
	memcpy(data + tail + 8, &needed, sizeof(needed));
	memcpy(data + tail + 12, &status, sizeof(status));
	return 0;
}

static int answer(const struct d3dkmt *d3dkmt, struct d3dkmt_queryadapterinfo *arguments)
{
	unsigned char *data = (unsigned char *)(uintptr_t)arguments->data;

	switch (arguments->type) {
	case 13:
		assert_int_equal(arguments->size, 4);
		memcpy(data, &host.wddm, 4);
		return 0;
	case 15:
		assert_int_equal(arguments->size, 4);
		memcpy(data, &host.type, 4);
		return 0;
	case 31:
		assert_int_equal(arguments->size, 28);
		((struct d3dkmt_device_ids *)(void *)data)->vendor = 0x8086;
		return 0;
	case 6:
		assert_int_equal(arguments->size, 12);
		if (!host.silent_address)
			((struct d3dkmt_adapteraddress *)(void *)data)->bus = host.bus;
		return 0;
	case 8:
		assert_int_equal(arguments->size, 2080);
		put(data, 2, "Arc");
		return 0;
	case 48:
		return answer_registry(d3dkmt->char_size, data, arguments->size);
	default:
		return -EINVAL;
	}
}

static int query(const struct d3dkmt *d3dkmt, struct d3dkmt_queryadapterinfo *arguments)
{
	assert_true(arguments->handle >= 1 && arguments->handle <= host.count);
	host.queries++;
	host.asked |= UINT64_C(1) << (arguments->type < 63 ? arguments->type : 63);
	return host.query_result < 0 ? host.query_result : answer(d3dkmt, arguments);
}

static void close_adapter(const struct d3dkmt *d3dkmt, struct d3dkmt_closeadapter *arguments)
{
	(void)d3dkmt;
	assert_int_equal(arguments->handle, ++host.closed);
}

static struct d3dkmt calls = {
	.enumerate3 = enumerate3,
	.enumerate2 = enumerate2,
	.query = query,
	.close = close_adapter,
	.char_size = 2,
};

static struct dxg_facts *facts;
static size_t count;

static int ask(void)
{
	facts = NULL;
	count = 0;
	return d3dkmt_describe_adapters(&calls, &facts, &count);
}

static int reset(void **state)
{
	(void)state;
	host = (struct host){
		.count = 1, .wddm = 3100, .type = D3DKMT_TYPE_RENDER, .bus = 3, .store = "C:\\FileRepository\\x"};
	calls.char_size = 2;
	return 0;
}

static int forget(void **state)
{
	(void)state;
	facts = dxg_facts_free(facts, count);
	return 0;
}

static void asks_in_either_width(void **state)
{
	(void)state;
	for (size_t char_size = 2; char_size <= 4; char_size += 2) {
		(void)reset(NULL);
		calls.char_size = char_size;
		assert_int_equal(ask(), 0);
		assert_int_equal(count, 1);
		assert_int_equal(facts->wddm_version, 3100);
		assert_int_equal(facts->vendor_id, 0x8086);
		assert_true(facts->has_address);
		assert_int_equal(facts->address.bus, 3);
		assert_string_equal(facts->name, "Arc");
		assert_string_equal(facts->store, "C:\\FileRepository\\x");
		assert_int_equal(host.closed, 1);
		(void)forget(NULL);
	}
}

static void falls_back_to_the_second_enumeration(void **state)
{
	static const int refusals[] = {-ENOTTY, -EINVAL, -ENOSYS};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		(void)reset(NULL);
		host.enumerate3_result = refusals[i];
		assert_int_equal(ask(), 0);
		assert_int_equal(count, 1);
		assert_int_equal(host.calls2, 1);
		(void)forget(NULL);
	}
}

static void asks_again_when_adapters_came(void **state)
{
	(void)state;
	host.overflows = 2;
	assert_int_equal(ask(), 0);
	assert_int_equal(host.calls3, 3);
	assert_int_equal(host.calls2, 0);
}

static void gives_up_in_the_end(void **state)
{
	(void)state;
	host.overflows = 1000;
	assert_int_equal(ask(), -EOVERFLOW);
	assert_true(host.calls3 + host.calls2 >= 2 && host.calls3 + host.calls2 <= 10);
	host = (struct host){.enumerate3_result = -EBADF, .enumerate2_result = -EBADF};
	assert_int_equal(ask(), -EBADF);
}

static void takes_no_adapters_for_an_answer(void **state)
{
	(void)state;
	host.count = 0;
	assert_int_equal(ask(), 0);
	assert_int_equal(count, 0);
}

static void closes_every_adapter(void **state)
{
	(void)state;
	host.count = D3DKMT_MAX_ADAPTERS;
	assert_int_equal(ask(), 0);
	assert_int_equal(count, D3DKMT_MAX_ADAPTERS);
	assert_int_equal(host.closed, D3DKMT_MAX_ADAPTERS);
	assert_int_equal(facts[63].luid.low, 63);
}

static void refuses_more_than_there_was_room_for(void **state)
{
	(void)state;
	host.count = D3DKMT_MAX_ADAPTERS + 1;
	assert_int_equal(ask(), -EPROTO);
}

/* Each refused question is a line in the kernel's log. */
static void asks_unusable_adapters_little(void **state)
{
	const uint64_t little = UINT64_C(1) << 13 | UINT64_C(1) << 15 | UINT64_C(1) << 31 | UINT64_C(1) << 8;

	(void)state;
	host.wddm = 2600;
	assert_int_equal(ask(), 0);
	assert_int_equal(host.asked, little);
	assert_null(facts->store);
	(void)forget(NULL);
	(void)reset(NULL);
	host.type = D3DKMT_TYPE_RENDER | D3DKMT_TYPE_SOFTWARE;
	assert_int_equal(ask(), 0);
	assert_int_equal(host.asked, little);
}

static void lives_with_refusals(void **state)
{
	(void)state;
	host.query_result = -EINVAL;
	assert_int_equal(ask(), 0);
	assert_int_equal(count, 1);
	assert_int_equal(facts->wddm_version, 0);
	assert_null(facts->name);
	assert_null(facts->store);
	assert_false(facts->has_address);
	assert_int_equal(host.closed, 1);
}

static void takes_no_address_for_none(void **state)
{
	(void)state;
	host.bus = 0xffffffff;
	assert_int_equal(ask(), 0);
	assert_false(facts->has_address);
	(void)forget(NULL);
	(void)reset(NULL);
	host.silent_address = true;
	assert_int_equal(ask(), 0);
	assert_false(facts->has_address);
}

static void believes_no_absurd_store(void **state)
{
	static const uint32_t sizes[] = {521, 0x80000000, 0xffffffff};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		(void)reset(NULL);
		host.store_needed = sizes[i];
		assert_int_equal(ask(), 0);
		assert_null(facts->store);
		(void)forget(NULL);
	}
	(void)reset(NULL);
	host.store_status = 2;
	assert_int_equal(ask(), 0);
	assert_null(facts->store);
}

/* libdxcore tells the size of the Windows path and gives a shorter one, with a NUL. */
static void ends_a_store_at_its_nul(void **state)
{
	(void)state;
	host.store_needed = 520;
	assert_int_equal(ask(), 0);
	assert_string_equal(facts->store, "C:\\FileRepository\\x");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(asks_in_either_width, reset, forget),
		cmocka_unit_test_setup_teardown(falls_back_to_the_second_enumeration, reset, forget),
		cmocka_unit_test_setup_teardown(asks_again_when_adapters_came, reset, forget),
		cmocka_unit_test_setup_teardown(gives_up_in_the_end, reset, forget),
		cmocka_unit_test_setup_teardown(takes_no_adapters_for_an_answer, reset, forget),
		cmocka_unit_test_setup_teardown(closes_every_adapter, reset, forget),
		cmocka_unit_test_setup_teardown(refuses_more_than_there_was_room_for, reset, forget),
		cmocka_unit_test_setup_teardown(asks_unusable_adapters_little, reset, forget),
		cmocka_unit_test_setup_teardown(lives_with_refusals, reset, forget),
		cmocka_unit_test_setup_teardown(takes_no_address_for_none, reset, forget),
		cmocka_unit_test_setup_teardown(believes_no_absurd_store, reset, forget),
		cmocka_unit_test_setup_teardown(ends_a_store_at_its_nul, reset, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
