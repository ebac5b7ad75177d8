/* SPDX-License-Identifier: Apache-2.0 */

/* Whose turn it is, with servers that are simulated: their clocks, and what they begin in a turn. */

#include "unit.h"

#include "vcuda/turns/turns.h"

enum { CONTAINERS = 3, SLOTS = 16, STEP_US = 20, BUSY = 1, CLIENT_GPU = 32 };

/* A client that launches kernels of one length, and a server that keeps to the rules unless it is said how not. */
struct client {
	unsigned container, slot;
	int64_t kernel;
	int64_t until;   /* what it has begun is done */
	bool lies;       /* says that it is not done */
	bool keeps;      /* says so for ever, and wants more */
	int64_t rests;   /* after each kernel */
	int64_t resumes; /* from a rest */
	int64_t had;     /* of the GPU's time */
	bool wants;
};

static struct start_quota quota[CONTAINERS];
static struct start_turns page[CONTAINERS];
static struct turns *turns;
static int64_t now, again;

static int begin(void **state)
{
	(void)state;
	memset(quota, 0, sizeof(quota));
	memset(page, 0, sizeof(page));
	for (unsigned i = 0; i < CONTAINERS; i++)
		for (unsigned slot = 0; slot < START_QUOTA_SLOTS; slot++)
			quota[i].rests[slot] = 1;
	turns = turns_new();
	now = 1000000;
	again = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	turns_free(turns);
	return 0;
}

static void add(unsigned container, uint32_t share)
{
	const struct turns_order order = {
		.kind = TURNS_ADD, .user = container + 1, .share = share, .gpu_count = 1, .gpus = {{1}}};

	assert_int_equal(turns_add(turns, &order, &quota[container], &page[container]), 0);
}

static void connect(struct client *client)
{
	quota[client->container].client[client->slot] = (uint64_t)BUSY << CLIENT_GPU;
	quota[client->container].rests[client->slot] = 0;
}

static bool has_rival(const struct client *client)
{
	return page[client->container].rivals[client->slot];
}

static uint32_t turn_of(const struct client *client)
{
	return page[client->container].turn[0][client->slot];
}

static void say(const struct client *client, uint32_t needs)
{
	quota[client->container].needs[0][client->slot] = needs;
}

static void step_client(struct client *client)
{
	if (now < client->until || now < client->resumes)
		return;
	if (client->until && client->rests) {
		client->resumes = now + client->rests;
		client->until = 0;
		say(client, 0);
		return;
	}
	client->until = 0;
	if (has_rival(client) && !turn_of(client)) {
		say(client, TURN_WANTED | (client->lies ? TURN_USED : 0));
		return;
	}
	say(client, TURN_USED);
	client->until = now + client->kernel;
	client->had += client->kernel;
}

static void run(struct client *clients, size_t count, int64_t microseconds)
{
	for (const int64_t until = now + microseconds; now < until; now += STEP_US) {
		for (size_t i = 0; i < count; i++)
			step_client(&clients[i]);
		if (now >= again)
			again = turns_look(turns, now);
	}
}

/* Return: percent of both that the first one had. */
static int64_t part(const struct client *clients)
{
	return clients[0].had * 100 / (clients[0].had + clients[1].had);
}

static void assert_part(const uint32_t share[2], const int64_t kernel[2], int64_t wanted)
{
	struct client clients[] = {{.container = 0, .kernel = kernel[0]}, {.container = 1, .kernel = kernel[1]}};

	add(0, share[0]);
	add(1, share[1]);
	connect(&clients[0]);
	connect(&clients[1]);
	run(clients, 2, 100000);
	clients[0].had = clients[1].had = 0;
	run(clients, 2, 2000000);
	assert_between(part(clients), wanted - 3, wanted + 3);
	assert_between(clients[0].had + clients[1].had, 1800000, 2010000);
}

static void long_kernels_have_no_more_than_short_ones(void **state)
{
	(void)state;
	assert_part((const uint32_t[]){100, 100}, (const int64_t[]){1000, 60}, 50);
}

static void kernels_that_are_longer_than_turns_are_paid_for(void **state)
{
	(void)state;
	assert_part((const uint32_t[]){100, 100}, (const int64_t[]){30000, 60}, 50);
}

/* What it began was not done for seconds, as while the driver ends another process: nothing that it had more of. */
static void who_was_held_up_does_not_wait_for_it_for_long(void **state)
{
	struct client clients[CONTAINERS];
	int64_t had;

	(void)state;
	for (unsigned i = 0; i < CONTAINERS; i++) {
		clients[i] = (struct client){.container = i, .kernel = 60};
		add(i, 100);
		connect(&clients[i]);
	}
	run(clients, CONTAINERS, 100000);
	clients[0].kernel = 6000000;
	run(clients, CONTAINERS, 200000);
	clients[0].kernel = 60;
	run(clients, CONTAINERS, clients[0].until - now);
	had = clients[0].had;
	run(clients, CONTAINERS, 2500000);
	assert_true(clients[0].had > had);
}

static void weights_are_what_containers_are_to_each_other(void **state)
{
	(void)state;
	assert_part((const uint32_t[]){300, 100}, (const int64_t[]){1000, 60}, 75);
}

static void weights_count_for_short_kernels_too(void **state)
{
	(void)state;
	assert_part((const uint32_t[]){10, 30}, (const int64_t[]){1000, 60}, 25);
}

static void a_weight_can_be_changed(void **state)
{
	struct client clients[] = {{.container = 0, .kernel = 1000}, {.container = 1, .kernel = 1000}};

	(void)state;
	add(0, 100);
	add(1, 100);
	connect(&clients[0]);
	connect(&clients[1]);
	run(clients, 2, 500000);
	turns_weigh(turns, 1, 900);
	clients[0].had = clients[1].had = 0;
	run(clients, 2, 2000000);
	assert_between(part(clients), 87, 93);
}

static void many_servers_of_a_container_are_one(void **state)
{
	struct client clients[SLOTS] = {{.container = 1, .kernel = 60}};
	int64_t others = 0;

	(void)state;
	add(0, 100);
	add(1, 100);
	for (unsigned i = 1; i < SLOTS; i++)
		clients[i] = (struct client){.container = 0, .slot = i, .kernel = 1000};
	for (unsigned i = 0; i < SLOTS; i++)
		connect(&clients[i]);
	run(clients, SLOTS, 100000);
	for (unsigned i = 0; i < SLOTS; i++)
		clients[i].had = 0;
	run(clients, SLOTS, 4000000);
	for (unsigned i = 1; i < SLOTS; i++) {
		others += clients[i].had;
		assert_between(clients[i].had, 2000000 / SLOTS / 2, 2000000 / SLOTS * 2);
	}
	assert_between(clients[0].had * 100 / (clients[0].had + others), 47, 53);
}

/* Its work never ends. The other has all turns but short ones, beside it. */
static void who_never_gives_back_keeps_nobody_waiting(void **state)
{
	struct client clients[] = {{.container = 0, .kernel = 60, .lies = true}, {.container = 1, .kernel = 60}};

	(void)state;
	add(0, 100);
	add(1, 100);
	connect(&clients[0]);
	connect(&clients[1]);
	clients[0].until = INT64_MAX;
	say(&clients[0], TURN_USED | TURN_WANTED);
	run(clients, 2, 500000);
	clients[1].had = 0;
	run(clients, 2, 2000000);
	assert_between(clients[1].had, 1600000, 2000000);
}

static void who_wants_a_turn_and_does_not_take_it_loses_it(void **state)
{
	struct client clients[] = {{.container = 0, .kernel = 60}, {.container = 1, .kernel = 60}};

	(void)state;
	add(0, 100);
	add(1, 100);
	connect(&clients[0]);
	connect(&clients[1]);
	clients[0].until = INT64_MAX;
	say(&clients[0], TURN_WANTED);
	run(clients, 2, 2000000);
	assert_between(clients[1].had, 900000, 2000000);
}

/* It was away for long, and has no claim to what it did not use then. */
static void who_was_away_saves_nothing_up(void **state)
{
	struct client clients[] = {
		{.container = 0, .kernel = 1000}, {.container = 1, .kernel = 60}, {.container = 2, .kernel = 60}};

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		add(i, 100);
	connect(&clients[1]);
	connect(&clients[2]);
	run(clients + 1, 2, 3000000);
	connect(&clients[0]);
	clients[0].had = clients[1].had = 0;
	run(clients, 3, 300000);
	assert_between(clients[0].had, 80000, 120000);
}

static void who_is_alone_needs_no_turn(void **state)
{
	struct client clients[] = {{.container = 0, .kernel = 1000},
				   {.container = 0, .slot = 1, .kernel = 60},
				   {.container = 1, .kernel = 60}};

	(void)state;
	add(0, 100);
	add(1, 100);
	connect(&clients[0]);
	connect(&clients[1]);
	run(clients, 2, 100000);
	assert_false(has_rival(&clients[0]));
	connect(&clients[2]);
	run(clients, 3, 20000);
	assert_true(has_rival(&clients[0]));
	quota[1].rests[0] = 1;
	say(&clients[2], 0);
	clients[2].until = INT64_MAX;
	run(clients, 2, 200000);
	assert_false(has_rival(&clients[0]));
	assert_int_equal(page[0].turn[0][0], 0);
}

static void on_two_gpus_nobody_is_a_rival(void **state)
{
	const struct turns_order other = {.kind = TURNS_ADD, .user = 2, .share = 100, .gpu_count = 1, .gpus = {{2}}};
	struct client clients[] = {{.container = 0, .kernel = 1000}, {.container = 1, .kernel = 60}};

	(void)state;
	add(0, 100);
	assert_int_equal(turns_add(turns, &other, &quota[1], &page[1]), 0);
	connect(&clients[0]);
	connect(&clients[1]);
	run(clients, 2, 100000);
	assert_false(has_rival(&clients[0]));
	assert_false(has_rival(&clients[1]));
}

/* As where MIG instances are made anew each day, which have other names then. */
static void gpus_that_are_no_more_make_room_for_others(void **state)
{
	struct client clients[] = {{.container = 0, .kernel = 1000}, {.container = 1, .kernel = 60}};
	const struct start_quota *had_quota;
	struct start_turns *had_page;

	(void)state;
	for (unsigned i = 1; i < 3 * TURNS_GPUS; i++) {
		const struct turns_order order = {.kind = TURNS_ADD,
						  .user = 9,
						  .share = 100,
						  .gpu_count = 2,
						  .gpus = {{8, (uint8_t)i}, {9, (uint8_t)i}}};

		assert_int_equal(turns_add(turns, &order, &quota[2], &page[2]), 0);
		now += 10000;
		(void)turns_look(turns, now);
		assert_true(turns_drop(turns, 9, &had_quota, &had_page));
	}
	add(0, 100);
	add(1, 100);
	connect(&clients[0]);
	connect(&clients[1]);
	run(clients, 2, 100000);
	assert_true(has_rival(&clients[0]));
	assert_true(has_rival(&clients[1]));
}

static void the_last_one_of_several_has_no_rival_any_more(void **state)
{
	struct client clients[] = {{.container = 0, .kernel = 1000}, {.container = 1, .kernel = 60}};
	const struct start_quota *had_quota;
	struct start_turns *had_page;

	(void)state;
	add(0, 100);
	add(1, 100);
	connect(&clients[0]);
	connect(&clients[1]);
	run(clients, 2, 100000);
	assert_true(has_rival(&clients[0]));
	assert_true(turns_drop(turns, 2, &had_quota, &had_page));
	assert_ptr_equal(had_quota, &quota[1]);
	assert_ptr_equal(had_page, &page[1]);
	assert_false(turns_drop(turns, 2, &had_quota, &had_page));
	again = 0;
	run(clients, 1, 200000);
	assert_false(has_rival(&clients[0]));
	assert_int_equal(again, INT64_MAX);
}

/* One whose server ended while there was a rival: nobody looks any more when the next one comes into its slot. */
static void who_comes_later_has_no_rival_of_an_earlier_one(void **state)
{
	struct client clients[] = {{.container = 0, .slot = 1, .kernel = 1000}, {.container = 1, .kernel = 60}};
	const struct start_quota *had_quota;
	struct start_turns *had_page;

	(void)state;
	add(0, 100);
	add(1, 100);
	connect(&clients[0]);
	connect(&clients[1]);
	run(clients, 2, 100000);
	assert_true(has_rival(&clients[0]));
	quota[0].client[1] = 0;
	say(&clients[0], 0);
	run(&clients[1], 1, 20000);
	assert_false(has_rival(&clients[0]));
	assert_int_equal(turn_of(&clients[0]), 0);
	assert_true(turns_drop(turns, 2, &had_quota, &had_page));
	again = 0;
	run(clients, 0, 200000);
	assert_int_equal(again, INT64_MAX);
	connect(&clients[0]);
	assert_false(has_rival(&clients[0]));
}

/* Whatever servers have written there. */
static void pages_of_nonsense_harm_nobody_else(void **state)
{
	struct client clients[] = {{.container = 0, .kernel = 60}, {.container = 1, .kernel = 1000}};

	(void)state;
	add(0, 100);
	add(1, 100);
	add(2, 100);
	memset(&quota[2], 0xff, sizeof(quota[2]));
	connect(&clients[0]);
	connect(&clients[1]);
	run(clients, 2, 2000000);
	assert_between(clients[0].had, 300000, 1100000);
	assert_between(clients[1].had, 300000, 1100000);
}

static void measuring_makes_no_rivals(void **state)
{
	const struct start_quota *had_quota;
	struct client client = {.container = 0, .kernel = 1000};
	struct start_turns *had_page;

	(void)state;
	add(0, 100);
	connect(&client);
	turns_measure(turns, true);
	add(1, 100);
	assert_int_equal(page[0].rivals[0], TURN_MEASURED);
	assert_int_equal(page[1].rivals[START_QUOTA_SLOTS - 1], TURN_MEASURED);
	run(&client, 1, 100000);
	assert_int_equal(page[0].rivals[0], TURN_MEASURED);
	assert_true(turns_drop(turns, 2, &had_quota, &had_page));
	assert_int_equal(page[1].rivals[0], 0);
	turns_measure(turns, false);
	assert_int_equal(page[0].rivals[0], 0);
}

/* Another process is in the slot, as the manager empties it: it has no turn, and wants nothing yet. */
static void reconnect(struct client *client)
{
	const struct client new = {.container = client->container, .slot = client->slot, .kernel = client->kernel};

	quota[client->container].client[client->slot] = 0;
	say(client, 0);
	*client = new;
	connect(client);
}

/*
 * A program that forks 1,000 times, in all slots that its container has: its children launch and are killed with what
 * they have begun, so that there are always others that had nothing.
 */
static void who_forks_a_thousand_times_has_one_containers_part(void **state)
{
	enum { CHILDREN = 255, FORKS = 1000, EACH_US = 4000 };
	static struct client clients[1 + CHILDREN];

	(void)state;
	add(0, 100);
	add(1, 100);
	clients[0] = (struct client){.container = 0, .kernel = 60};
	connect(&clients[0]);
	for (unsigned i = 1; i <= CHILDREN; i++) {
		clients[i] = (struct client){.container = 1, .slot = i, .kernel = 1000};
		reconnect(&clients[i]);
	}
	for (unsigned i = 0; i < FORKS; i++) {
		run(clients, ARRAY_SIZE(clients), EACH_US);
		reconnect(&clients[1 + i % CHILDREN]);
	}
	assert_between(clients[0].had, FORKS * EACH_US * 4 / 10, FORKS * EACH_US * 6 / 10);
}

/* Its servers say that all slots of its page are in use, and have work for as long as they say. */
static void one_with_all_servers_leaves_others_their_turns(void **state)
{
	const int64_t millisecond = 1000;
	struct client clients[] = {{.container = 1, .kernel = millisecond}, {.container = 0, .kernel = millisecond}};

	(void)state;
	add(0, 100);
	add(1, 100);
	for (unsigned slot = 0; slot < START_QUOTA_SLOTS; slot++)
		connect(&(struct client){.container = 0, .slot = slot});
	connect(&clients[0]);
	run(clients, ARRAY_SIZE(clients), 100 * millisecond);
	assert_true(has_rival(&clients[0]));
	assert_true(has_rival(&clients[1]));
	assert_between(part(clients), 40, 60);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	static const struct CMUnitTest tests[] = {
		TEST(long_kernels_have_no_more_than_short_ones),
		TEST(kernels_that_are_longer_than_turns_are_paid_for),
		TEST(who_was_held_up_does_not_wait_for_it_for_long),
		TEST(weights_are_what_containers_are_to_each_other),
		TEST(weights_count_for_short_kernels_too),
		TEST(a_weight_can_be_changed),
		TEST(many_servers_of_a_container_are_one),
		TEST(who_never_gives_back_keeps_nobody_waiting),
		TEST(who_wants_a_turn_and_does_not_take_it_loses_it),
		TEST(who_was_away_saves_nothing_up),
		TEST(who_is_alone_needs_no_turn),
		TEST(on_two_gpus_nobody_is_a_rival),
		TEST(gpus_that_are_no_more_make_room_for_others),
		TEST(the_last_one_of_several_has_no_rival_any_more),
		TEST(who_comes_later_has_no_rival_of_an_earlier_one),
		TEST(pages_of_nonsense_harm_nobody_else),
		TEST(measuring_makes_no_rivals),
		TEST(who_forks_a_thousand_times_has_one_containers_part),
		TEST(one_with_all_servers_leaves_others_their_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
