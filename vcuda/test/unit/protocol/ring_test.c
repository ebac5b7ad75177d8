/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The bells of vcuda/protocol/ring.h, step by step: two threads, of which one waits for what the other writes, in every order of
 * their steps, with stores that reach memory later than they were made, as a processor of the x86 kind does it. A
 * wake-up that is lost shows as an end in which somebody still sleeps. Without either fence there is such an end, which
 * shows that this would be seen.
 */

#include <stdbool.h>
#include <string.h>
#include <ucontext.h>

#include "unit.h"

static uint32_t model_load(void *word);
static void model_store(void *word, uint32_t value);
static void model_fence(void);
static void model_sleep(void *word, uint32_t old);
static void model_wake(void *word);

#define BELL_LOAD(word) model_load(word)
#define BELL_STORE(word, value) model_store(word, value)
#define BELL_FENCE() model_fence()
#define BELL_SLEEP(word, old, time) ((void)(time), model_sleep(word, old))
#define BELL_WAKE(word) model_wake(word)

#include "vcuda/protocol/ring.h"

enum { THREADS = 2, STORES = 8, CHOICES = 400, STACK = 65536, RINGS = 2, STATES = 1 << 20 };

static struct {
	ucontext_t context;
	char stack[STACK];
	bool done;
	void *sleeps_on;
	struct {
		void *word;
		uint32_t value;
	} stores[STORES]; /* not yet in memory, the oldest first */
	int store_count;
	uint64_t past; /* of all that it has read: with it, where it is and what it knows */
} threads[THREADS];
static ucontext_t scheduler;
static int current;
static bool with_fences;
static struct bell bell;

/* The decisions of this run, and among how many each was. */
static int choice[CHOICES], options[CHOICES], choices;
static int choices_given;       /* those that repeat an earlier run */
static uint64_t states[STATES]; /* that were seen; what follows from them has been tried */
static long state_count;

static uint64_t model_mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0xff51afd7ed558ccd;
	return hash ^ hash >> 29;
}

/* Return: whether it is the first time that everything is as it is now. */
static bool model_is_new(void)
{
	uint64_t hash = model_mix(bell.value + 1, bell.sleeps);

	for (int i = 0; i < THREADS; i++) {
		hash = model_mix(hash, threads[i].past);
		hash = model_mix(hash, (uint64_t)threads[i].done | (uint64_t)(threads[i].sleeps_on != NULL) << 1);
		for (int k = 0; k < threads[i].store_count; k++)
			hash = model_mix(hash, threads[i].stores[k].value * 2 +
						       (threads[i].stores[k].word == (void *)&bell.value));
	}
	for (uint64_t at = hash % STATES;; at = (at + 1) % STATES) {
		if (states[at] == hash)
			return false;
		if (states[at])
			continue;
		states[at] = hash;
		assert_true(++state_count < STATES / 2);
		return true;
	}
}

static void model_step(void)
{
	threads[current].past = model_mix(threads[current].past, 1);
	swapcontext(&threads[current].context, &scheduler);
}

static void model_write_oldest(int thread)
{
	*(uint32_t *)threads[thread].stores[0].word = threads[thread].stores[0].value;
	memmove(threads[thread].stores, threads[thread].stores + 1, sizeof(threads[0].stores[0]) * (STORES - 1));
	threads[thread].store_count--;
}

static void model_write_all(void)
{
	while (threads[current].store_count > 0)
		model_write_oldest(current);
}

static uint32_t model_load(void *word)
{
	uint32_t value;
	int i;

	model_step();
	for (i = threads[current].store_count; i > 0 && threads[current].stores[i - 1].word != word; i--)
		;
	value = i > 0 ? threads[current].stores[i - 1].value : *(uint32_t *)word;
	threads[current].past = model_mix(threads[current].past, value + 2);
	return value;
}

static void model_store(void *word, uint32_t value)
{
	model_step();
	assert_true(threads[current].store_count < STORES);
	threads[current].stores[threads[current].store_count].word = word;
	threads[current].stores[threads[current].store_count].value = value;
	threads[current].store_count++;
}

static void model_fence(void)
{
	model_step();
	if (with_fences)
		model_write_all();
}

/* In the kernel, comparing and falling asleep are one step. */
static void model_sleep(void *word, uint32_t old)
{
	model_step();
	model_write_all();
	if (*(uint32_t *)word != old)
		return;
	threads[current].sleeps_on = word;
	model_step();
}

static void model_wake(void *word)
{
	model_step();
	model_write_all();
	for (int i = 0; i < THREADS; i++)
		if (threads[i].sleeps_on == word)
			threads[i].sleeps_on = NULL;
}

static void model_ring(void)
{
	for (uint32_t i = 1; i <= RINGS; i++)
		bell_ring(&bell, i);
	threads[current].done = true;
	model_step();
}

static void model_wait(void)
{
	for (uint32_t seen = 0; seen != RINGS;) {
		seen = BELL_LOAD(&bell.value);
		if (seen != RINGS)
			bell_sleep(&bell, seen, NULL);
	}
	threads[current].done = true;
	model_step();
}

static void model_begin(int thread, void (*run)(void))
{
	memset(&threads[thread], 0, sizeof(threads[thread]));
	(void)getcontext(&threads[thread].context);
	threads[thread].context.uc_stack.ss_sp = threads[thread].stack;
	threads[thread].context.uc_stack.ss_size = STACK;
	makecontext(&threads[thread].context, run, 0);
}

static int model_choose(int count)
{
	assert_true(choices < CHOICES);
	options[choices] = count;
	return choice[choices++];
}

/* One run. Return: whether all came to their end. */
static bool model_run(void)
{
	memset(&bell, 0, sizeof(bell));
	model_begin(0, model_ring);
	model_begin(1, model_wait);
	for (choices = 0;;) {
		int possible[2 * THREADS], count = 0, taken;

		for (int i = 0; i < THREADS; i++) {
			if (!threads[i].done && !threads[i].sleeps_on)
				possible[count++] = i;
			if (threads[i].store_count > 0)
				possible[count++] = THREADS + i;
		}
		if (count == 0)
			return threads[0].done && threads[1].done;
		if (choices >= choices_given && !model_is_new())
			return true;
		taken = possible[count > 1 ? model_choose(count) : 0];
		if (taken >= THREADS) {
			model_write_oldest(taken - THREADS);
			continue;
		}
		current = taken;
		swapcontext(&scheduler, &threads[taken].context);
	}
}

/* The next run's decisions: the last one that has another option takes it. Return: false if there is none. */
static bool model_next(void)
{
	while (choices > 0 && choice[choices - 1] + 1 >= options[choices - 1])
		choices--;
	if (choices == 0)
		return false;
	choice[choices - 1]++;
	choices_given = choices;
	memset(&choice[choices], 0, sizeof(choice) - (size_t)choices * sizeof(choice[0]));
	return true;
}

/* Return: how many runs end with somebody asleep; stops at the first. */
static int model_explore(bool fences, long *ret_runs)
{
	with_fences = fences;
	memset(choice, 0, sizeof(choice));
	memset(states, 0, sizeof(states));
	choices_given = 0;
	state_count = 0;
	*ret_runs = 0;
	do {
		++*ret_runs;
		if (!model_run())
			return 1;
	} while (model_next());
	return 0;
}

static void test_no_wake_up_is_lost(void **state)
{
	long runs;

	(void)state;
	assert_int_equal(model_explore(true, &runs), 0);
	assert_true(state_count > 500);
	print_message("%ld states, %ld runs\n", state_count, runs);
}

static void test_without_fences_one_is(void **state)
{
	long runs;

	(void)state;
	assert_int_equal(model_explore(false, &runs), 1);
}

/* Whoever may not spin never does; others spin for longer only while that would have spared them the sleep. */
/* On a processor that others want, too. */
static void test_who_comes_to_itself_late_spins_shortly(void **state)
{
	const long long_time = 1000000000;
	struct spin spin = spin_begin(0);
	int64_t before;

	(void)state;
	assert_false(spin_goes_on(&spin));
	assert_int_equal(spin_crowded, 0);
	spin = spin_begin(long_time);
	assert_int_equal(spin.until - spin.began, long_time);
	spin.last -= SPIN_LATE + 1;
	before = clock_now_ns();
	assert_false(spin_goes_on(&spin));
	assert_true(spin_crowded >= before + SPIN_CROWDED);
	spin_crowded = before + 100 * (int64_t)long_time;
	spin = spin_begin(long_time);
	assert_int_equal(spin.until - spin.began, SPIN_SHORT);
	spin = spin_begin(1);
	assert_int_equal(spin.until - spin.began, 1);
	spin_crowded = clock_now_ns();
	spin = spin_begin(long_time);
	assert_int_equal(spin.until - spin.began, long_time);
}

static void test_spinning_adapts(void **state)
{
	(void)state;
	assert_int_equal(bell_learn(1, 0, 0), 0);
	assert_int_equal(bell_learn(60000, 50000, 50000), 50000);
	assert_int_equal(bell_learn(60000, 50000, 500000), 500000);
	assert_int_equal(bell_learn(500000, 50000, 500000), 50000);
	assert_int_equal(bell_learn(5000000, 50000, 500000), 50000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spinning_adapts),
		cmocka_unit_test(test_who_comes_to_itself_late_spins_shortly),
		cmocka_unit_test(test_no_wake_up_is_lost),
		cmocka_unit_test(test_without_fences_one_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
