/* SPDX-License-Identifier: Apache-2.0 */

/* Which container moves by itself, when, and that none goes to and fro. */

#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "vcuda/manager/balance.h"
#include "vcuda/manager/manager.h"
#include "vcuda/protocol/pidref.h"

static const char *const uuids[] = {"GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4",
				    "GPU-7b10aa04-0041-0000-0000-000084ef55fb"};

/* ---- what is decided ---- */

enum { NOWHERE = 99 };

static void what_is_gained_decides(void **state)
{
	static const struct {
		unsigned loads[3], load;
		uint64_t reach;
		unsigned to, gain;
	} cases[] = {
		/* Two share a GPU, and another one has nothing to do. */
		{{1000, 0, 0}, 500, 7, 1, 500},
		{{1000, 600, 100}, 500, 7, 2, 400},
		{{1000, 0, 0}, 300, 4, 2, 300},
		/* Alone, it has as much afterwards. */
		{{1000, 0, 0}, 1000, 7, NOWHERE, 0},
		{{500, 0, 0}, 500, 7, NOWHERE, 0},
		/* It would be the others' neighbour instead. */
		{{1000, 1000, 1000}, 500, 7, NOWHERE, 0},
		{{1000, 500, 400}, 450, 2, NOWHERE, 0},
		{{200, 900, 900}, 100, 7, NOWHERE, 0},
		/* A fifth of a GPU's time at least. */
		{{1000, 300, 0}, 500, 2, 1, 200},
		{{1000, 301, 0}, 500, 2, NOWHERE, 0},
		{{199, 0, 0}, 100, 7, NOWHERE, 0},
		/* Without work there is nothing to be gained, nor where it may not go. */
		{{1000, 0, 0}, 0, 7, NOWHERE, 0},
		{{1000, 0, 0}, 500, 0, NOWHERE, 0},
		{{1000, 0, 0}, 500, 1, NOWHERE, 0},
		/* What cannot be. */
		{{300, 0, 0}, 1000, 7, NOWHERE, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		unsigned loads[BALANCE_GPUS] = {cases[i].loads[0], cases[i].loads[1], cases[i].loads[2]};
		const struct balance_part part = {.load = cases[i].load, .reach = cases[i].reach};
		const struct balance_gain gain = balance_measure(loads, &part);

		if (gain.gain != cases[i].gain || (cases[i].to != NOWHERE && gain.to != cases[i].to))
			fail_msg("case %zu: %u to %u", i, gain.gain, gain.to);
	}
}

static void of_two_the_one_with_more_gain_or_less_memory_goes(void **state)
{
	const struct balance_part small = {.memory = 1}, large = {.memory = 2};

	(void)state;
	assert_true(balance_is_better(&large, 300, &small, 200));
	assert_false(balance_is_better(&small, 200, &large, 300));
	assert_true(balance_is_better(&small, 300, &large, 300));
	assert_false(balance_is_better(&large, 300, &small, 300));
	assert_false(balance_is_better(&large, 300, &large, 300));
}

/* ---- when ---- */

enum { STEP_MS = 500, SECONDS = 2, WORKS = 500, HEAVY = 1000, STAYS = 20 };

struct world {
	char directory[64], ledger[80];
	struct manager manager;
	int64_t now;
};

static int world_open(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	(void)strcpy(world->directory, "/tmp/ctr-gpu-balance-XXXXXX");
	assert_non_null(mkdtemp(world->directory));
	(void)snprintf(world->ledger, sizeof(world->ledger), "%s.json", world->directory);
	world->manager = (struct manager){.directory = world->directory, .ledger = world->ledger, .groups = -1};
	world->now = 1000;
	*state = world;
	return 0;
}

static void world_end(struct manager *manager)
{
	while (manager->tenants) {
		tenant_end(manager, manager->tenants, "test");
		tenant_remove(manager, manager->tenants);
	}
}

static int world_close(void **state)
{
	struct world *world = *state;

	world_end(&world->manager);
	(void)unlink(world->ledger);
	(void)rmdir(world->directory);
	free(world);
	return 0;
}

/* With a GPU, and another one of a model as a spare. */
static struct tenant *add(struct world *world, const char *id, const char *model)
{
	struct tenant *tenant = tenant_new(id);

	assert_non_null(tenant);
	tenant->library = strdup("");
	tenant->pid = getpid();
	tenant->kept = true;
	tenant->limits.balance = SECONDS;
	assert_int_equal(pidref_open(getpid(), 0, &tenant->pidfd, &tenant->started), 0);
	assert_int_equal(tenant_add_gpu(tenant, uuids[0], "", "model", true), 0);
	assert_int_equal(tenant_add_gpu(tenant, uuids[1], "", model, false), 0);
	assert_int_equal(tenant_open(&world->manager, tenant, -1, -1, -1), 0);
	tenant->first = 0;
	tenant->clients = 1;
	return tenant;
}

/* In each step, for so many thousandths of it. */
static void work(struct tenant *tenant, unsigned load)
{
	tenant->quota->busy[0][0] += (uint64_t)STEP_MS * 1000 * load;
}

static void step(struct world *world)
{
	balance_look(&world->manager, world->now);
	world->now += STEP_MS;
}

static bool is_moving(const struct tenant *tenant)
{
	return tenant->suspension.moves;
}

/* What servers would do, and the driver. Nothing is there for it to move. */
static void end_move(struct world *world, struct tenant *tenant)
{
	for (int i = 0; i < 3 && is_moving(tenant); i++)
		suspension_look(&world->manager, tenant, world->now);
	assert_false(is_moving(tenant));
	assert_string_equal(manager_find_gpu(tenant, tenant->places, 0)->uuid, uuids[1]);
}

/* Return: after how many steps one of them moves; @most: none did. */
static int step_until_one_moves(struct world *world, struct tenant *one, struct tenant *two, int most)
{
	for (int steps = 0; steps < most; steps++) {
		step(world);
		if (is_moving(one) || is_moving(two))
			return steps;
		work(one, WORKS);
		work(two, WORKS);
	}
	return most;
}

static void a_container_moves_after_its_time_and_stays(void **state)
{
	struct world *world = *state;
	struct tenant *one = add(world, "one", "model"), *two = add(world, "two", "model"), *three;
	const char *why;

	one->quota->used[0] = 2;
	two->quota->used[0] = 1;
	/* In the first step there is nothing to compare, in the second it is unlike for the first time. */
	assert_int_equal(step_until_one_moves(world, one, two, 20), 1 + SECONDS * 1000 / STEP_MS);
	assert_true(is_moving(two));
	assert_false(is_moving(one));
	end_move(world, two);
	assert_true(balance_stays(two, manager_now()) > 590);
	assert_int_equal(balance_stays(one, world->now), 0);
	/* Both have a GPU for themselves now, and as much work as it can do. */
	for (int i = 0; i < 20; i++) {
		work(one, HEAVY);
		work(two, HEAVY);
		step(world);
		assert_false(is_moving(one) || is_moving(two));
	}
	/* Where another comes to it and the first GPU is free, it would go back: not yet. */
	three = add(world, "three", "model");
	three->limits.balance = 0;
	assert_int_equal(gpu_assign_move(three, "", uuids[1], &three->places, &why), 0);
	two->moved_at = world->now + STAYS * STEP_MS - BALANCE_STAY_LEAST_MS;
	assert_int_equal(step_until_one_moves(world, two, three, STAYS), STAYS);
	assert_int_equal(step_until_one_moves(world, two, three, STAYS), 0);
	assert_true(is_moving(two));
}

static void one_that_is_alone_is_not_even_looked_at(void **state)
{
	struct world *world = *state;
	struct tenant *one = add(world, "one", "model"), *two;

	for (int i = 0; i < 20; i++) {
		work(one, HEAVY);
		step(world);
	}
	assert_false(is_moving(one));
	assert_int_equal(balance_next(&world->manager), INT64_MAX);
	assert_int_equal(world->manager.measured_until, 0);
	/* Nor beside one that rests, with which it is measured. */
	two = add(world, "two", "model");
	for (int i = 0; i < 20; i++) {
		work(one, HEAVY);
		step(world);
	}
	assert_false(is_moving(one) || is_moving(two));
	assert_true(world->manager.measured_until > 0);
}

static void a_moment_of_likeness_begins_anew(void **state)
{
	struct world *world = *state;
	struct tenant *one = add(world, "one", "model"), *two = add(world, "two", "model");

	for (int i = 0; i < 40; i++) {
		step(world);
		assert_false(is_moving(one) || is_moving(two));
		work(one, i % 4 ? WORKS : 0);
		work(two, i % 4 ? WORKS : 0);
	}
}

static void nothing_moves_unless_it_may(void **state)
{
	struct world *world = *state;
	struct tenant *one = add(world, "one", "other"), *two = add(world, "two", "model");
	const char *why;

	/* Its only other GPU is another model, and nobody said that this one be moved. */
	two->limits.balance = 0;
	assert_int_equal(step_until_one_moves(world, one, two, 20), 20);
	two->limits.balance = SECONDS;
	assert_int_equal(drain_begin(&world->manager, uuids[1], &why), 0);
	assert_int_equal(step_until_one_moves(world, one, two, 20), 20);
	assert_int_equal(drain_end(&world->manager, uuids[1], &why), 0);
	gpu_trouble_state(gpu_trouble_note(&world->manager, two->gpus[1].bytes), false, "test");
	assert_int_equal(step_until_one_moves(world, one, two, 20), 20);
	assert_int_equal(gpu_trouble_clear(&world->manager, uuids[1]), 0);
	world->manager.asleep = true;
	assert_int_equal(step_until_one_moves(world, one, two, 20), 20);
	world->manager.asleep = false;
	assert_true(step_until_one_moves(world, one, two, 20) < 20);
	assert_true(is_moving(two));
}

static void one_moves_at_a_time(void **state)
{
	struct world *world = *state;
	struct tenant *one = add(world, "one", "model"), *two = add(world, "two", "model");

	one->suspension.moves = true;
	one->suspension.state = SUSPENSION_MOVING;
	for (int i = 0; i < 20; i++) {
		step(world);
		assert_false(is_moving(two));
		work(one, WORKS);
		work(two, WORKS);
	}
	one->suspension.moves = false;
	step(world);
	assert_true(is_moving(two));
}

static void a_new_manager_knows_how_long_one_stays(void **state)
{
	struct world *world = *state;
	struct tenant *one = add(world, "one", "model");
	struct manager next = world->manager;

	one->moved_at = 5000;
	assert_int_equal(balance_stays(one, 5000), 600);
	one->limits.balance = 3600;
	assert_int_equal(balance_stays(one, 5000), 36000);
	one->clients = 0;
	assert_int_equal(state_file_write(&world->manager), 0);
	next.tenants = NULL;
	next.tenant_count = 0;
	assert_int_equal(state_file_read(&next), 0);
	assert_non_null(next.tenants);
	assert_int_equal(balance_stays(next.tenants, 5000), 36000);
	assert_int_equal(next.tenants->limits.balance, 3600);
	world_end(&next);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, world_open, world_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_gained_decides),
		cmocka_unit_test(of_two_the_one_with_more_gain_or_less_memory_goes),
		WITH_WORLD(a_container_moves_after_its_time_and_stays),
		WITH_WORLD(one_that_is_alone_is_not_even_looked_at),
		WITH_WORLD(a_moment_of_likeness_begins_anew),
		WITH_WORLD(nothing_moves_unless_it_may),
		WITH_WORLD(one_moves_at_a_time),
		WITH_WORLD(a_new_manager_knows_how_long_one_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
