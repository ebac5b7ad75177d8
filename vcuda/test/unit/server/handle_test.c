/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/quota.h"

struct server server;
struct driver_api driver;

/* What another thread does right before something is held. */
static void (*meanwhile)(void);

bool __real_object_ref_take(struct object_ref hold);
bool __wrap_object_ref_take(struct object_ref hold);

bool __wrap_object_ref_take(struct object_ref hold)
{
	void (*const act)(void) = meanwhile;

	meanwhile = NULL;
	if (act)
		act();
	return __real_object_ref_take(hold);
}

static bool there(uint64_t handle, enum wire_type type)
{
	uint64_t real = 0;

	return handle_look(handle, type, &real);
}

static void what_is_known_keeps_its_handle(void **state)
{
	const uint64_t event = handle_give(WIRE_EVENT, 0x1000, 0, 0);
	uint64_t real = 0;

	(void)state;
	assert_int_equal(handle_give(WIRE_EVENT, 0x1000, 0, 0), event);
	assert_int_not_equal(handle_give(WIRE_STREAM, 0x1000, 0, 0), event);
	assert_true(handle_look(event, WIRE_EVENT, &real));
	assert_int_equal(real, 0x1000);
	assert_false(there(event, WIRE_STREAM));
	handle_drop(event);
	assert_false(there(event, WIRE_EVENT));
	/* In the same place, and another. */
	assert_int_not_equal(handle_give(WIRE_EVENT, 0x1000, 0, 0), event);
	assert_false(there(event, WIRE_EVENT));
}

/* Library, kernel, function: given in an order in which the table is not gone through once only. */
static void all_below_a_handle_goes_with_it(void **state)
{
	const uint64_t holes[] = {handle_give(WIRE_EVENT, 0x2000, 0, 0), handle_give(WIRE_EVENT, 0x2010, 0, 0)};
	const uint64_t library = handle_give(WIRE_LIBRARY, 0x2100, 0, 0);
	uint64_t kernel, function;

	(void)state;
	handle_drop(holes[0]);
	handle_drop(holes[1]);
	kernel = handle_give(WIRE_KERNEL, 0x2200, library, 0);
	function = handle_give(WIRE_FUNC, 0x2300, kernel, 0);
	assert_true(wire_handle_index(function) < wire_handle_index(kernel));
	assert_int_equal(handle_parent(function), kernel);
	handle_drop(library);
	assert_false(there(kernel, WIRE_KERNEL));
	assert_false(there(function, WIRE_FUNC));
}

static void a_context_takes_what_was_given_in_it(void **state)
{
	const uint64_t context = handle_give(WIRE_CONTEXT, 0x3000, 0, 0);
	const uint64_t graph = handle_give(WIRE_GRAPH, 0x3100, 0, context);
	const uint64_t node = handle_give(WIRE_NODE, 0x3200, graph, 0);
	const uint64_t pool = handle_give(WIRE_POOL, 0x3300, 0, 0);
	uint64_t stream;
	uint32_t place = 0;

	(void)state;
	assert_int_equal(handle_context(graph), context);
	assert_false(handle_next(WIRE_STREAM, context, &place, &stream));
	(void)handle_give(WIRE_STREAM, 0x3400, 0, context);
	place = 0;
	assert_true(handle_next(WIRE_STREAM, context, &place, &stream));
	assert_int_equal(stream, 0x3400);
	assert_false(handle_next(WIRE_STREAM, context, &place, &stream));
	handle_drop(context);
	assert_false(there(graph, WIRE_GRAPH));
	assert_false(there(node, WIRE_NODE));
	assert_true(there(pool, WIRE_POOL));
}

static void streams_are_busy_from_what_is_asked_of_them_on(void **state)
{
	const uint64_t context = handle_give(WIRE_CONTEXT, 0x8000, 0, 0);
	const uint64_t one = handle_give(WIRE_STREAM, 0x8100, 0, context),
		       other = handle_give(WIRE_STREAM, 0x8200, 0, context);
	uint32_t place = 0;
	uint64_t stream;

	(void)state;
	assert_int_equal(handle_next_busy(context, &place, &stream), 0);
	assert_true(handle_look_stream(other, &stream));
	assert_true(handle_look_stream(other, &stream));
	assert_int_equal(stream, 0x8200);
	place = 0;
	assert_int_equal(handle_next_busy(context, &place, &stream), other);
	assert_int_equal(handle_next_busy(context, &place, &stream), 0);
	handle_rest(other);
	handle_rest(one);
	place = 0;
	assert_int_equal(handle_next_busy(context, &place, &stream), 0);
	assert_true(handle_look_stream(one, &stream));
	handle_drop(one);
	assert_false(handle_look_stream(one, &stream));
	place = 0;
	assert_int_equal(handle_next_busy(context, &place, &stream), 0);
}

static void nothing_is_given_below_what_has_ended(void **state)
{
	const uint64_t context = handle_give(WIRE_CONTEXT, 0x6000, 0, 0);
	const uint64_t library = handle_give(WIRE_LIBRARY, 0x6100, 0, 0);

	(void)state;
	handle_drop(context);
	handle_drop(library);
	assert_int_equal(handle_give(WIRE_MODULE, 0x6200, 0, context), 0);
	assert_int_equal(handle_give(WIRE_KERNEL, 0x6300, library, 0), 0);
	assert_int_equal(handle_known(WIRE_MODULE, 0x6200), 0);
}

static void graphs_of_captures_go_together_and_one_that_ended_well_stays(void **state)
{
	const uint64_t stream = handle_give(WIRE_STREAM, 0x7000, 0, 0);
	const uint64_t lost = handle_give(WIRE_GRAPH, 0x7100, stream, 0),
		       kept = handle_give(WIRE_GRAPH, 0x7200, stream, 0);
	const uint64_t node = handle_give(WIRE_NODE, 0x7300, lost, 0);

	(void)state;
	handle_own(kept);
	handle_drop_captures();
	assert_false(there(lost, WIRE_GRAPH));
	assert_false(there(node, WIRE_NODE));
	assert_true(there(kept, WIRE_GRAPH));
	assert_true(there(stream, WIRE_STREAM));
}

static void handles_of_two_contexts_differ_by_their_tags(void **state)
{
	const uint64_t one = handle_give(WIRE_CONTEXT, 0x4000, 0, 0), other = handle_give(WIRE_CONTEXT, 0x4010, 0, 0);
	const uint64_t event = handle_give(WIRE_EVENT, 0x4100, 0, one),
		       stream = handle_give(WIRE_STREAM, 0x4200, 0, other);

	(void)state;
	assert_int_equal(wire_handle_tag(event), wire_handle_tag_of(one));
	assert_int_not_equal(wire_handle_tag(event), wire_handle_tag(stream));
	assert_true(there(event, WIRE_EVENT));
	assert_false(there(event ^ (uint64_t)1 << 28, WIRE_EVENT));
}

static void the_last_of_several_holders_ends_a_handle(void **state)
{
	const uint64_t memory = handle_give(WIRE_MEMORY, 0x5000, 0, 0);

	(void)state;
	handle_hold(memory);
	handle_hold(memory);
	assert_false(handle_let_go(memory));
	assert_true(there(memory, WIRE_MEMORY));
	assert_true(handle_let_go(memory));
	assert_false(there(memory, WIRE_MEMORY));
	assert_false(handle_let_go(memory));
}

static uint64_t library;
static unsigned ended;

static CUresult end(uint64_t real)
{
	ended += real == 0x9000;
	return CUDA_SUCCESS;
}

static void end_library(void)
{
	handle_hide(library);
	assert_int_equal(object_ref_end((struct object_ref){WIRE_LIBRARY, 0x9000}, 0, end), CUDA_SUCCESS);
	handle_drop(library);
}

static void what_another_thread_ends_first_is_not_taken(void **state)
{
	struct object_ref hold;
	uint32_t place = 0;
	uint64_t other;

	(void)state;
	library = handle_give(WIRE_LIBRARY, 0x9000, 0, 0);
	other = handle_give(WIRE_LIBRARY, 0x9100, 0, 0);
	meanwhile = end_library;
	assert_true(handle_take_next(WIRE_LIBRARY, 0, &place, &hold));
	assert_int_equal(hold.real, 0x9100);
	assert_int_equal(ended, 1);
	object_ref_let_go(hold);
	assert_false(handle_take_next(WIRE_LIBRARY, 0, &place, &hold));
	/* The driver has given the name to another. */
	library = handle_give(WIRE_LIBRARY, 0x9000, 0, 0);
	place = 0;
	assert_true(handle_take_next(WIRE_LIBRARY, 0, &place, &hold));
	assert_int_equal(hold.real, 0x9000);
	/* And what is held is ended by who holds it. */
	end_library();
	assert_int_equal(ended, 1);
	object_ref_let_go(hold);
	assert_int_equal(ended, 2);
	handle_drop(other);
}

/* What is hidden for its own end comes back, but not where its context ends before that has failed. */
static void what_does_not_end_is_shown_as_long_as_its_context_is_there(void **state)
{
	const uint64_t context = handle_give(WIRE_CONTEXT, 0xa000, 0, 0);
	const uint64_t module = handle_give(WIRE_MODULE, 0xa100, 0, context),
		       function = handle_give(WIRE_FUNC, 0xa200, module, context),
		       stream = handle_give(WIRE_STREAM, 0xa300, 0, context);

	(void)state;
	handle_hide(module);
	assert_false(there(function, WIRE_FUNC));
	handle_show(module);
	assert_true(there(module, WIRE_MODULE));
	assert_true(there(function, WIRE_FUNC));
	handle_hide(module);
	handle_hide(stream);
	handle_hide(context);
	handle_show(module);
	assert_false(there(module, WIRE_MODULE));
	assert_false(there(function, WIRE_FUNC));
	handle_drop(context);
	assert_int_equal(handle_known(WIRE_MODULE, 0xa100), 0);
	handle_show(stream);
	assert_false(there(stream, WIRE_STREAM));
	/* None has its place still. */
	handle_show(module);
	assert_false(there(module, WIRE_MODULE));
}

/* The same of what it is below: shown alone, it would be used while that ends. */
static void what_does_not_end_is_shown_as_long_as_its_parent_is_there(void **state)
{
	const uint64_t graph = handle_give(WIRE_GRAPH, 0xa400, 0, 0), child = handle_give(WIRE_GRAPH, 0xa410, graph, 0);
	const uint64_t node = handle_give(WIRE_NODE, 0xa420, child, 0), below = handle_give(WIRE_NODE, 0xa430, node, 0);

	(void)state;
	handle_hide(node);
	handle_hide(graph);
	handle_show(node);
	assert_false(there(node, WIRE_NODE));
	assert_false(there(below, WIRE_NODE));
	/* It comes back with that. */
	handle_show(graph);
	assert_true(there(child, WIRE_GRAPH));
	assert_true(there(node, WIRE_NODE));
	assert_true(there(below, WIRE_NODE));
	/* Or goes with it. */
	handle_hide(node);
	handle_hide(graph);
	handle_show(node);
	handle_drop(graph);
	assert_int_equal(handle_known(WIRE_NODE, 0xa420), 0);
	handle_show(node);
	assert_false(there(node, WIRE_NODE));
	assert_false(there(below, WIRE_NODE));
}

/* Many others: whole pages of places, all of one hash, so that no list of what ends leads to them. */
enum { OTHERS = 2048, OTHERS_REAL = 0x1000000 };
static uint8_t *others;
static size_t others_bytes;

static void protect_others(int protection)
{
	assert_int_equal(mprotect(others, others_bytes, protection), 0);
}

/* From now on, a look at one of them is a fault. */
static void make_others(void)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	const uint32_t first = handle_count;
	uintptr_t begin, end;

	/* Places that were used before are given first. */
	while (handle_count < first + OTHERS)
		assert_true(handle_make(WIRE_ARRAY, OTHERS_REAL, 0, 0));
	begin = ((uintptr_t)&handle_table[first] + page - 1) & ~(page - 1);
	end = (uintptr_t)&handle_table[handle_count] & ~(page - 1);
	others = (uint8_t *)begin;
	others_bytes = end - begin;
	/* It ends the program: the next test would wait for the lock. */
	(void)signal(SIGSEGV, SIG_DFL);
	protect_others(PROT_NONE);
}

static void drop_others(void)
{
	uint64_t other;

	protect_others(PROT_READ | PROT_WRITE);
	while ((other = handle_known(WIRE_ARRAY, OTHERS_REAL)))
		handle_drop(other);
}

/* Each was looked for what ends with it in the whole table: 50,000 arrays took 45 seconds to end. */
static void what_nothing_is_below_ends_without_a_look_at_all_others(void **state)
{
	const uint64_t graph = handle_give(WIRE_GRAPH, 0xc000, 0, 0), node = handle_give(WIRE_NODE, 0xc100, graph, 0),
		       kept = handle_give(WIRE_GRAPH, 0xc200, graph, 0), array = handle_give(WIRE_ARRAY, 0xc300, 0, 0);

	(void)state;
	make_others();
	handle_hide(array);
	handle_drop(array);
	drop_others();
	assert_false(there(array, WIRE_ARRAY));
	/* And what had something below it goes with what has still. */
	handle_own(kept);
	handle_drop(graph);
	assert_false(there(node, WIRE_NODE));
	assert_true(there(kept, WIRE_GRAPH));
	handle_drop(kept);
}

/* The table was gone through several times for each graph, and for each context. */
static void what_has_something_below_it_ends_without_a_look_at_all_others(void **state)
{
	enum { GRAPHS = 200, CONTEXTS = 20 };
	static uint64_t graphs[GRAPHS], nodes[GRAPHS], contexts[CONTEXTS], streams[CONTEXTS];

	(void)state;
	for (uint64_t i = 0; i < CONTEXTS; i++)
		contexts[i] = handle_give(WIRE_CONTEXT, 0x2000000 + i * 0x100, 0, 0);
	for (uint64_t i = 0; i < GRAPHS; i++) {
		graphs[i] = handle_give(WIRE_GRAPH, 0x3000000 + i * 0x100, 0, contexts[i % CONTEXTS]);
		nodes[i] = handle_give(WIRE_NODE, 0x6000000 + i * 0x100, graphs[i], contexts[i % CONTEXTS]);
	}
	for (uint64_t i = 0; i < CONTEXTS; i++)
		streams[i] = handle_give(WIRE_STREAM, 0x9000000 + i * 0x100, 0, contexts[i]);
	make_others();
	for (uint64_t i = 0; i < GRAPHS; i += 2) {
		handle_hide(graphs[i]);
		handle_drop(graphs[i]);
		assert_false(there(nodes[i], WIRE_NODE));
	}
	for (uint64_t i = 0; i < CONTEXTS; i++) {
		assert_true(there(streams[i], WIRE_STREAM));
		handle_hide(contexts[i]);
		assert_false(there(streams[i], WIRE_STREAM));
		handle_drop(contexts[i]);
	}
	for (uint64_t i = 0; i < GRAPHS; i++)
		assert_false(there(graphs[i], WIRE_GRAPH) || there(nodes[i], WIRE_NODE));
	drop_others();
}

/* In whatever order those of a list go. */
static void what_is_left_of_a_list_goes_with_its_owner(void **state)
{
	enum { NODES = 5 };
	static const int orders[][NODES - 2] = {{0, 1, 2}, {2, 1, 0}, {4, 0, 2}, {1, 3, 4}};
	uint64_t nodes[NODES], context, graph;

	(void)state;
	for (size_t order = 0; order < sizeof(orders) / sizeof(orders[0]); order++) {
		context = handle_give(WIRE_CONTEXT, 0xd000, 0, 0);
		graph = handle_give(WIRE_GRAPH, 0xd010, 0, context);
		for (uint64_t i = 0; i < NODES; i++)
			nodes[i] = handle_give(WIRE_NODE, 0xd100 + i * 0x10, graph, context);
		for (int i = 0; i < NODES - 2; i++)
			handle_drop(nodes[orders[order][i]]);
		/* The last two, in places of others, too. */
		nodes[orders[order][0]] = handle_give(WIRE_NODE, 0xd200, graph, context);
		handle_drop(order % 2 ? graph : context);
		for (int i = 0; i < NODES; i++)
			assert_false(there(nodes[i], WIRE_NODE));
		handle_drop(context);
	}
}

/* One that ends by itself while what it is below goes is in no list of another's that gets the place. */
static void what_ends_while_its_owner_goes_is_of_none_that_comes_after(void **state)
{
	const uint64_t graph = handle_give(WIRE_GRAPH, 0xe000, 0, 0);
	const uint64_t nodes[] = {handle_give(WIRE_NODE, 0xe010, graph, 0), handle_give(WIRE_NODE, 0xe020, graph, 0)};
	uint64_t next, node;

	(void)state;
	handle_hide(nodes[0]);
	handle_hide(nodes[1]);
	handle_drop(graph);
	next = handle_give(WIRE_GRAPH, 0xe030, 0, 0);
	assert_int_equal(wire_handle_index(next), wire_handle_index(graph));
	node = handle_give(WIRE_NODE, 0xe040, next, 0);
	handle_drop(nodes[1]);
	handle_show(nodes[0]);
	assert_false(there(nodes[0], WIRE_NODE));
	assert_true(there(node, WIRE_NODE));
	handle_drop(next);
	assert_false(there(node, WIRE_NODE));
}

static void what_is_made_hidden_is_not_to_be_guessed(void **state)
{
	const uint64_t context = handle_make_hidden(WIRE_CONTEXT, 0xf000),
		       lost = handle_make_hidden(WIRE_CONTEXT, 0xf010);

	(void)state;
	assert_true(context && lost);
	assert_false(there(context, WIRE_CONTEXT));
	assert_int_equal(handle_known(WIRE_CONTEXT, 0xf000), 0);
	assert_int_equal(handle_give(WIRE_STREAM, 0xf100, 0, context), 0);
	handle_show(context);
	assert_true(there(context, WIRE_CONTEXT));
	assert_int_equal(handle_known(WIRE_CONTEXT, 0xf000), context);
	handle_drop(lost);
	handle_show(lost);
	assert_false(there(lost, WIRE_CONTEXT));
	handle_drop(context);
}

static uint64_t streams_made;
static bool ends_object;
static uint64_t object;

/* As a driver that ends a graph's object while it makes a stream: that takes its handle from the client. */
static void *drop_object(void *nothing)
{
	handle_drop(object);
	return nothing;
}

static CUresult make_stream(CUstream *ret, unsigned flags)
{
	pthread_t thread;

	(void)flags;
	*ret = 0xb100 + 0x100 * streams_made++;
	if (ends_object) {
		assert_int_equal(pthread_create(&thread, NULL, drop_object, NULL), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	return CUDA_SUCCESS;
}

static bool is_too_much;
static uint64_t destroyed, counted; /* counted: what was destroyed then */

bool driver_memory_fits(void)
{
	return !is_too_much;
}

bool driver_memory_count(void)
{
	counted = destroyed;
	return true;
}

static CUresult destroy_stream(CUstream stream)
{
	destroyed = stream;
	return CUDA_SUCCESS;
}

/* As one that the client asks for. */
static void a_stream_of_a_threads_own_is_counted_before_it_is_used(void **state)
{
	enum { THREAD = 5 };
	const uint64_t context = handle_give(WIRE_CONTEXT, 0xb400, 0, 0);
	CUstream stream = 0, last;

	(void)state;
	driver.cuStreamCreate = make_stream;
	driver.cuStreamDestroy_v2 = destroy_stream;
	is_too_much = true;
	assert_int_equal(handle_find_stream(WIRE_STREAM_THREAD, THREAD, context, &stream), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(stream, 0);
	assert_true(destroyed);
	/* Else it would count as there until the next count, which refuses others meanwhile. */
	assert_int_equal(counted, destroyed);
	is_too_much = false;
	last = destroyed;
	assert_int_equal(handle_find_stream(WIRE_STREAM_THREAD, THREAD, context, &stream), CUDA_SUCCESS);
	assert_true(stream && stream != last && destroyed == last);
	handle_drop(context);
}

static void a_thread_has_a_stream_of_its_own_in_each_context(void **state)
{
	enum { THREAD = 3 };
	const uint64_t one = handle_give(WIRE_CONTEXT, 0xb000, 0, 0), other = handle_give(WIRE_CONTEXT, 0xb010, 0, 0);
	CUstream first, second, stream;

	(void)state;
	driver.cuStreamCreate = make_stream;
	object = handle_give(WIRE_OBJECT, 0xb020, 0, 0);
	ends_object = true;
	assert_int_equal(handle_find_stream(WIRE_STREAM_THREAD, THREAD, one, &first), CUDA_SUCCESS);
	assert_false(there(object, WIRE_OBJECT));
	ends_object = false;
	assert_int_equal(handle_find_stream(WIRE_STREAM_THREAD, THREAD, other, &second), CUDA_SUCCESS);
	assert_int_not_equal(first, second);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(handle_find_stream(WIRE_STREAM_THREAD, THREAD, i % 2 ? other : one, &stream),
				 CUDA_SUCCESS);
		assert_int_equal(stream, i % 2 ? second : first);
	}
	assert_int_equal(handle_find_stream(WIRE_STREAM_THREAD, THREAD + 1, one, &stream), CUDA_SUCCESS);
	assert_int_not_equal(stream, first);
	assert_int_equal(streams_made, 3);
	/* They end with their contexts. */
	handle_drop(one);
	assert_int_equal(handle_find_stream(WIRE_STREAM_THREAD, THREAD, other, &stream), CUDA_SUCCESS);
	assert_int_equal(stream, second);
	handle_drop(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_known_keeps_its_handle),
		cmocka_unit_test(all_below_a_handle_goes_with_it),
		cmocka_unit_test(a_context_takes_what_was_given_in_it),
		cmocka_unit_test(streams_are_busy_from_what_is_asked_of_them_on),
		cmocka_unit_test(nothing_is_given_below_what_has_ended),
		cmocka_unit_test(graphs_of_captures_go_together_and_one_that_ended_well_stays),
		cmocka_unit_test(handles_of_two_contexts_differ_by_their_tags),
		cmocka_unit_test(the_last_of_several_holders_ends_a_handle),
		cmocka_unit_test(what_another_thread_ends_first_is_not_taken),
		cmocka_unit_test(a_thread_has_a_stream_of_its_own_in_each_context),
		cmocka_unit_test(a_stream_of_a_threads_own_is_counted_before_it_is_used),
		cmocka_unit_test(what_nothing_is_below_ends_without_a_look_at_all_others),
		cmocka_unit_test(what_has_something_below_it_ends_without_a_look_at_all_others),
		cmocka_unit_test(what_is_left_of_a_list_goes_with_its_owner),
		cmocka_unit_test(what_ends_while_its_owner_goes_is_of_none_that_comes_after),
		cmocka_unit_test(what_is_made_hidden_is_not_to_be_guessed),
		cmocka_unit_test(what_does_not_end_is_shown_as_long_as_its_context_is_there),
		cmocka_unit_test(what_does_not_end_is_shown_as_long_as_its_parent_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
