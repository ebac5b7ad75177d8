/* SPDX-License-Identifier: Apache-2.0 */

/* What vCUDA's manager decides: which GPU is first, who may connect, what is counted, and what its ledger says. */

#include "scratch.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fuse.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "model/adapter.h"
#include "model/device_name.h"
#include "process/privilege.h"
#include "vcuda/manager/manager.h"
#include "vcuda/manager/page.h"
#include "vcuda/protocol/checkpoint.h"
#include "vcuda/protocol/control.h"
#include "vcuda/protocol/descriptors.h"
#include "vcuda/protocol/pidref.h"
#include "vcuda/protocol/wire.h"
#include "vcuda_rpc.h"

#define UUID_A "GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4"
#define UUID_B "GPU-7b10aa04-0041-0000-0000-000084ef55fb"
#define UUID_C "GPU-9c10aa04-0041-0000-0000-000084ef55fb"

struct world {
	char directory[64], ledger[80], server[80];
	struct manager manager;
};

static bool before_6_16, no_process;

static int world_open(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	before_6_16 = no_process = false;
	(void)strcpy(world->directory, "/tmp/ctr-gpu-manager-XXXXXX");
	assert_non_null(mkdtemp(world->directory));
	(void)snprintf(world->ledger, sizeof(world->ledger), "%s.json", world->directory);
	(void)snprintf(world->server, sizeof(world->server), "%s/none", world->directory);
	world->manager = (struct manager){
		.directory = world->directory, .ledger = world->ledger, .server = world->server, .groups = -1};
	*state = world;
	return 0;
}

static void world_end(struct manager *manager)
{
	while (manager->tenants) {
		tenant_end(manager, manager->tenants, "test");
		while (manager->workers)
			server_process_remove(manager, manager->workers);
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

static struct tenant *add_tenant(struct manager *manager, const char *id, const char *const *uuids, uint64_t memory)
{
	struct tenant *tenant = tenant_new(id);

	assert_non_null(tenant);
	tenant->limits.memory = memory;
	tenant->limits.max_clients = 4;
	tenant->library = strdup("");
	tenant->pid = getpid();
	tenant->kept = true;
	assert_int_equal(pidref_open(getpid(), 0, &tenant->pidfd, &tenant->started), 0);
	for (; *uuids; uuids++)
		assert_int_equal(tenant_add_gpu(tenant, *uuids, "", "name", true), 0);
	assert_int_equal(tenant_open(manager, tenant, -1, -1, -1), 0);
	return tenant;
}

static const char *const both_gpus[] = {UUID_A, UUID_B, NULL}, *const second_gpu[] = {UUID_B, NULL};

static void uuids_are_read_or_refused(void **state)
{
	static const char *const none[] = {"",
					   "GPU-",
					   "MIG-5a3f1c2b-0001-0000-0000-0000a5c0e3d4",
					   "GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d",
					   UUID_A "0",
					   "GPU-5a3f1c2b00001-0000-0000-0000a5c0e3d4",
					   "GPU-5a3f1c2g-0001-0000-0000-0000a5c0e3d4"};
	uint8_t bytes[16] = {0};

	(void)state;
	assert_true(adapter_read_uuid(UUID_A, bytes));
	assert_memory_equal(bytes, "\x5a\x3f\x1c\x2b\x00\x01\x00\x00\x00\x00\x00\x00\xa5\xc0\xe3\xd4", 16);
	assert_true(adapter_read_uuid("GPU-ABCDEF01-0001-0000-0000-0000a5c0e3d4", bytes));
	assert_int_equal(bytes[0], 0xab);
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		if (adapter_read_uuid(none[i], bytes))
			fail_msg("%s", none[i]);
}

/* With a spare of the same model, and one of another. */
static struct tenant *add_movable(struct manager *manager, const char *id)
{
	struct tenant *tenant = tenant_new(id);

	assert_non_null(tenant);
	tenant->limits.max_clients = 4;
	tenant->library = strdup("");
	tenant->pid = getpid();
	tenant->kept = true;
	assert_int_equal(pidref_open(getpid(), 0, &tenant->pidfd, &tenant->started), 0);
	assert_int_equal(tenant_add_gpu(tenant, UUID_A, "0000:01:00.0", "model", true), 0);
	assert_int_equal(tenant_add_gpu(tenant, UUID_B, "0000:02:00.0", "model", false), 0);
	assert_int_equal(tenant_add_gpu(tenant, UUID_C, "0000:03:00.0", "other", false), 0);
	assert_int_equal(tenant_open(manager, tenant, -1, -1, -1), 0);
	return tenant;
}

static void gpus_are_exchanged_and_each_stays_one(void **state)
{
	const uint64_t once = start_exchange(0, 0, 2), twice = start_exchange(once, 0, 15);

	(void)state;
	for (unsigned i = 0; i < START_GPUS; i++)
		assert_int_equal(start_place(0, i), i);
	assert_int_equal(start_place(once, 0), 2);
	assert_int_equal(start_place(once, 2), 0);
	assert_int_equal(start_place(twice, 0), 15);
	assert_int_equal(start_place(twice, 15), 2);
	assert_int_equal(start_place(twice, 2), 0);
	assert_int_equal(start_exchange(start_exchange(twice, 0, 15), 0, 2), 0);
}

static void a_container_moves_where_it_may(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_movable(&world->manager, "one");
	struct start start = {0};
	uint64_t places = 0;
	const char *why;

	assert_int_equal(gpu_assign_move(one, "", UUID_A, &places, &why), -EALREADY);
	assert_int_equal(gpu_assign_move(one, "", UUID_C, &places, &why), -EXDEV);
	assert_non_null(strstr(why, "another model"));
	assert_int_equal(gpu_assign_move(one, "", "GPU-00000000-0041-0000-0000-000084ef55fb", &places, &why), -EXDEV);
	assert_int_equal(gpu_assign_move(one, UUID_B, UUID_C, &places, &why), -ENOENT);
	assert_int_equal(gpu_assign_move(one, "", UUID_B, &places, &why), 0);
	/* Without programs, at once. */
	assert_int_equal(suspension_move(&world->manager, one, places, &why), 0);
	assert_string_equal(manager_find_gpu(one, one->places, 0)->uuid, UUID_B);
	/* Its programs go on to see the first. */
	gpu_assign_list(&world->manager, one, &start);
	assert_int_equal(start.gpu_count, 1);
	assert_int_equal(start.reach, 3);
	assert_int_equal(start.gpus[0].uuid[0], 0x5a);
	assert_int_equal(start.gpus[1].uuid[0], 0x7b);
	assert_int_equal(gpu_assign_move(one, UUID_B, UUID_A, &places, &why), 0);
	assert_int_equal(places, 0);
}

/* Its programs would wait for what is away: so it is ended, however long that takes, and before others begin. */
static void a_move_that_a_program_has_begun_is_ended(void **state)
{
	struct world *world = *state;
	struct manager *manager = &world->manager;
	struct tenant *one = add_movable(manager, "one"), *two = add_tenant(manager, "two", second_gpu, 0);
	const uint64_t places = start_exchange(0, 0, 1);
	struct worker server = {.tenant = one, .pid = getpid()};
	const int64_t late = manager_now() + 3600 * 1000;
	char *const programs[] = {(char *)"/nonexistent/program", (char *)"/proc/self/exe", (char *)"/bin/true"};

	suspension_take_over(manager, one, "moving", places, true);
	manager->workers = &server;
	one->clients = 1;
	/* It comes back there, and then waits for room. */
	two->suspension.state = SUSPENSION_RESUMING;
	suspension_look(manager, one, late);
	assert_int_equal(one->suspension.state, SUSPENSION_PARKING);
	two->suspension.state = SUSPENSION_SUSPENDED;
	two->suspension.by_hand = two->suspension.wanted = true;
	two->suspension.queued = 1;
	suspension_look(manager, two, manager_now());
	assert_int_equal(two->suspension.state, SUSPENSION_SUSPENDED);
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		manager->checkpoint = programs[i];
		suspension_look(manager, one, late + (int64_t)i * 2000);
		assert_true(suspension_has_begun(&one->suspension));
		if (i == 0)
			continue;
		assert_int_equal(one->suspension.state, SUSPENSION_MOVING);
		assert_int_equal(
			poll(&(struct pollfd){.fd = one->suspension.program_pidfd, .events = POLLIN}, 1, 10000), 1);
		suspension_look(manager, one, manager_now());
		assert_int_equal(suspension_has_begun(&one->suspension), i + 1 < ARRAY_SIZE(programs));
	}
	assert_int_equal(one->suspension.state, SUSPENSION_NONE);
	assert_true(one->places == places);
	assert_false(suspension_has_begun(&one->suspension));
	manager->workers = NULL;
	one->clients = 0;
}

/* What counts is where something is, and not where it was granted. */
static void a_lost_gpu_is_of_who_is_there(void **state)
{
	struct world *world = *state;
	struct manager *manager = &world->manager;
	struct tenant *one = add_movable(manager, "one"), *two = add_tenant(manager, "two", both_gpus, 8);
	struct start start = {0};
	const char *why;

	assert_int_equal(gpu_assign_move(one, "", UUID_B, &one->places, &why), 0);
	two->first = 0;
	assert_int_equal(gpu_assign_move(two, UUID_A, UUID_B, &two->places, &why), 0);
	gpu_trouble_state(gpu_trouble_note(manager, one->gpus[0].bytes), true, "test");
	assert_int_equal(gpu_assign_choose(manager, one), 0);
	gpu_assign_list(manager, one, &start);
	assert_int_equal(start.gpu_count, 1);
	/* Its programs see the first, and for that the second has to be known. */
	assert_int_equal(gpu_assign_choose(manager, two), 0);
	gpu_assign_list(manager, two, &start);
	assert_int_equal(start.gpu_count, 1);
	assert_int_equal(start.reach, 2);
	assert_int_equal(start.gpus[0].number, 0);
	assert_int_equal(start.gpus[1].number, 1);
	assert_int_equal(gpu_trouble_clear(manager, UUID_A), 0);
	gpu_trouble_state(gpu_trouble_note(manager, one->gpus[1].bytes), true, "test");
	assert_int_equal(gpu_assign_choose(manager, one), 1);
	assert_int_equal(gpu_assign_choose(manager, two), 1);
}

static void nothing_begins_on_a_drained_gpu(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_movable(&world->manager, "one"),
		      *two = add_tenant(&world->manager, "two", both_gpus, 0);
	const char *why;

	assert_int_equal(drain_begin(&world->manager, "nonsense", &why), -EINVAL);
	assert_int_equal(drain_begin(&world->manager, UUID_A, &why), 0);
	assert_int_equal(drain_begin(&world->manager, UUID_A, &why), 0);
	assert_int_equal(world->manager.drained_count, 1);
	assert_int_equal(drain_avoid(&world->manager, one), 0);
	assert_string_equal(manager_find_gpu(one, one->places, 0)->uuid, UUID_B);
	/* It has both, and so the other alone. */
	assert_int_equal(drain_avoid(&world->manager, two), 0);
	assert_int_equal(two->gpu_count, 1);
	assert_string_equal(two->gpus[0].uuid, UUID_B);
	assert_int_equal(drain_begin(&world->manager, UUID_B, &why), 0);
	assert_int_equal(drain_avoid(&world->manager, two), -EHOSTDOWN);
	assert_int_equal(drain_end(&world->manager, UUID_A, &why), 0);
	assert_int_equal(drain_end(&world->manager, UUID_A, &why), -EALREADY);
	assert_int_equal(drain_end(&world->manager, UUID_B, &why), 0);
	/* Nothing comes to a GPU that something is known against. */
	one->places = 0;
	assert_int_equal(drain_begin(&world->manager, UUID_A, &why), 0);
	assert_non_null(gpu_trouble_note(&world->manager, one->gpus[1].bytes));
	assert_int_equal(drain_avoid(&world->manager, one), -EHOSTDOWN);
	assert_int_equal(gpu_trouble_clear(&world->manager, UUID_B), 0);
	assert_int_equal(drain_avoid(&world->manager, one), 0);
}

/* As the hook asks. Return: an errno of the manager's; 0. */
static int ask_for(struct manager *manager, struct vcudad_request *wish)
{
	struct control_client *peers = calloc(1, sizeof(*peers));
	struct vcudad_granted granted = {0};
	int pair[2], error, wait_status;
	pid_t hook;

	assert_non_null(peers);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	peers->fd = pair[0];
	peers->in = malloc(CONTROL_MARK + CONTROL_CALL_MAX);
	hook = fork();
	if (hook == 0)
		_exit(control_ask(pair[1], VCUDAD_GRANT, wish, &granted) == 0 ? granted.error : 255);
	assert_int_equal(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
	while (!peers->granted[0] && waitpid(hook, &wait_status, WNOHANG) == 0) {
		(void)poll(&(struct pollfd){.fd = pair[0], .events = POLLIN}, 1, 20);
		assert_true(control_client_serve(manager, peers));
	}
	error = peers->granted[0] ? 0 : WEXITSTATUS(wait_status);
	if (peers->granted[0])
		assert_int_equal(waitpid(hook, &wait_status, 0), hook);
	if (tenant_find(manager, wish->id))
		tenant_find(manager, wish->id)->kept = true;
	control_client_close(manager, &peers, peers);
	(void)close(pair[1]);
	return error;
}

static void what_is_asked_for_again_is_the_same_whatever_became_of_it(void **state)
{
	struct world *world = *state;
	struct manager *manager = &world->manager, next = *manager;
	char empty[] = "", name[] = "one", first[] = UUID_A, second[] = UUID_B;
	struct vcudad_gpu gpus[] = {{first, empty, empty}, {second, empty, empty}};
	struct vcudad_request wish = {.id = name,
				      .pid = getpid(),
				      .gpus = {ARRAY_SIZE(gpus), gpus},
				      .library = empty,
				      .limits = {.memory = 1 << 30, .max_clients = 4}};
	const char *why;

	assert_int_equal(drain_begin(manager, UUID_A, &why), 0);
	assert_int_equal(ask_for(manager, &wish), 0);
	assert_int_equal(tenant_find(manager, "one")->gpu_count, 1);
	tenant_set_memory(tenant_find(manager, "one"), 1 << 20);
	assert_int_equal(ask_for(manager, &wish), 0);
	/* So it is for a manager that was started again. */
	assert_int_equal(state_file_write(manager), 0);
	assert_int_equal(state_file_read(&next), 0);
	assert_int_equal(ask_for(&next, &wish), 0);
	assert_int_equal(next.tenant_count, 1);
	wish.limits.memory++;
	assert_int_equal(ask_for(&next, &wish), EEXIST);
	world_end(&next);
	assert_int_equal(drain_end(&next, UUID_A, &why), 0);
	assert_int_equal(drain_end(manager, UUID_A, &why), 0);
}

static void a_drain_tells_why_what_stays_stays(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_movable(&world->manager, "one"),
		      *two = add_tenant(&world->manager, "two", both_gpus, 0);
	const char *why;

	assert_int_equal(drain_next(&world->manager, 5), INT64_MAX);
	assert_int_equal(drain_begin(&world->manager, UUID_A, &why), 0);
	assert_int_equal(drain_next(&world->manager, 5), 5);
	drain_look(&world->manager, 5);
	assert_string_equal(manager_find_gpu(one, one->places, 0)->uuid, UUID_B);
	assert_string_equal(one->suspension.trouble, "");
	assert_non_null(strstr(two->suspension.trouble, "it may be moved to no other GPU"));
	assert_true(drain_next(&world->manager, 6) > 6);
	assert_int_equal(drain_end(&world->manager, UUID_A, &why), 0);
}

/* A name that only a look at the host decides counts as one that means it. */
static void exclusive_gpus_take_nothing(void **state)
{
	static const struct {
		const char *name;
		bool exclusive;
	} cases[] = {{UUID_B, true},
		     {UUID_C, false},
		     {"0000:02:00.0", true},
		     {"0000:03:00.0", false},
		     {"all", true},
		     {"1", true},
		     {"GPU-7b10", true},
		     {"luid:0x1:0x2", true},
		     {"MIG-" UUID_B, false},
		     {"GPU-0123456789abcdef", false},
		     {"npu:0", false},
		     {"GPU-7b11", false},
		     {"npu:all", false},
		     {"amd.com/gpu=all", false},
		     {"amd.com/gpu=0", false},
		     {"amd.com/npu=all", false},
		     {"nvidia.com/gpu=all", true},
		     {"nvidia.com/gpu=1", true}};
	struct world *world = *state;
	struct tenant *one = add_movable(&world->manager, "one");

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_device_names_ struct device_names names = {0};

		assert_int_equal(device_names_add(&names, cases[i].name), 0);
		if (gpu_assign_is_exclusive(&names, one, 1) != cases[i].exclusive)
			fail_msg("%s", cases[i].name);
		assert_int_equal(drain_may_take(&world->manager, &names, one, 0, 1), !cases[i].exclusive);
		/* It was granted this one. */
		assert_false(gpu_assign_is_exclusive(&names, one, 0));
	}
}

static void the_least_loaded_gpu_is_first(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", both_gpus, 8), *two, *three;
	struct start start = {0};

	assert_int_equal(gpu_assign_choose(&world->manager, one), 0);
	one->first = 0;
	two = add_tenant(&world->manager, "two", both_gpus, 4);
	assert_int_equal(gpu_assign_choose(&world->manager, two), 1);
	two->first = 1;
	/* Less memory was granted on the second. */
	three = add_tenant(&world->manager, "three", both_gpus, 8);
	assert_int_equal(gpu_assign_choose(&world->manager, three), 1);
	three->first = 1;
	gpu_assign_list(&world->manager, three, &start);
	assert_int_equal(start.gpu_count, 2);
	assert_int_equal(start.gpus[0].uuid[0], 0x7b);
	assert_int_equal(start.gpus[1].uuid[0], 0x5a);
	/* Whichever is first, servers and the decider count by the grant. */
	assert_int_equal(start.gpus[0].number, 1);
	assert_int_equal(start.gpus[1].number, 0);
	/* Of the same memory, the one with fewer programs; whoever may take all counts most. */
	one->limits.memory = 12;
	one->clients = 2;
	two->clients = three->clients = 0;
	assert_int_equal(gpu_assign_choose(&world->manager, one), 1);
	one->clients = 0;
	assert_int_equal(gpu_assign_choose(&world->manager, one), 0);
	three->limits.memory = 0;
	assert_int_equal(gpu_assign_choose(&world->manager, one), 0);
	one->limits.memory = 0;
	two->limits.memory = 0;
	assert_int_equal(gpu_assign_choose(&world->manager, one), 0);
}

/* What a server says of its GPU, while none watches. */
static void hear_server(struct manager *manager, const struct tenant *tenant, unsigned result, unsigned gpu)
{
	const struct start_event event = {
		.kind = START_EVENT_STICKY,
		.number = result | (uint64_t)(gpu + 1) << START_EVENT_GPU_BIT,
	};

	gpu_trouble_receive(manager, tenant, &event);
}

static void a_gpu_that_is_lost_is_nobodys(void **state)
{
	struct world *world = *state;
	struct manager *manager = &world->manager;
	struct tenant *one = add_tenant(manager, "one", both_gpus, 8), *two = add_tenant(manager, "two", second_gpu, 8);
	struct tenant *movable;
	struct start start = {0};

	/* Errors of programs, and GPUs that the container has not, say nothing. */
	hear_server(manager, one, 719, 0);
	hear_server(manager, one, 700, 0);
	hear_server(manager, two, 214, 1);
	hear_server(manager, two, 214, UINT32_MAX);
	movable = add_movable(manager, "three");
	hear_server(manager, movable, 214, 1);
	/* While one watches, it is asked. */
	manager->watcher.watches = true;
	hear_server(manager, one, 700, 0);
	assert_false(manager->watcher.asked);
	hear_server(manager, one, 214, 0);
	assert_true(manager->watcher.asked);
	manager->watcher.watches = manager->watcher.asked = false;
	assert_int_equal(manager->trouble_count, 0);
	tenant_end(manager, movable, "test");
	hear_server(manager, one, 214, 0);
	assert_int_equal(manager->trouble_count, 1);
	assert_false(gpu_trouble_is_lost(manager, &one->gpus[0]));
	assert_int_equal(gpu_assign_choose(manager, one), 1);
	/* Where there is no other, it is taken. */
	hear_server(manager, one, 220, 1);
	assert_int_equal(gpu_assign_choose(manager, one), 0);
	assert_int_equal(gpu_assign_choose(manager, two), 0);
	manager->troubles[0].lost = true;
	assert_int_equal(gpu_assign_choose(manager, one), 1);
	gpu_assign_list(manager, one, &start);
	assert_int_equal(start.gpu_count, 1);
	assert_int_equal(start.gpus[0].number, 1);
	manager->troubles[1].lost = true;
	assert_int_equal(gpu_trouble_count_lost(manager, one), 2);
	assert_int_equal(gpu_assign_choose(manager, one), 2);
	assert_int_equal(gpu_assign_choose(manager, two), 1);
	assert_int_equal(gpu_trouble_clear(manager, ""), -ENOENT);
	assert_int_equal(gpu_trouble_clear(manager, "GPU-"), -ENOTUNIQ);
	assert_int_equal(gpu_trouble_clear(manager, UUID_A), 0);
	assert_int_equal(gpu_trouble_clear(manager, UUID_A), -ENOENT);
	assert_true(gpu_trouble_is_lost(manager, &two->gpus[0]));
	assert_int_equal(gpu_trouble_clear(manager, "GPU-7b"), 0);
	assert_int_equal(gpu_assign_choose(manager, two), 0);
}

/* Any container's server could have made it up. */
static void what_a_server_says_against_a_gpu_is_forgotten(void **state)
{
	struct world *world = *state;
	struct manager *manager = &world->manager;
	struct tenant *one = add_tenant(manager, "one", both_gpus, 8);
	int64_t ends_at;

	assert_true(gpu_trouble_next(manager) == INT64_MAX);
	hear_server(manager, one, 214, 0);
	ends_at = gpu_trouble_next(manager);
	assert_true(ends_at > manager_now() + 60 * 1000 && ends_at < manager_now() + 3600 * 1000);
	gpu_trouble_look(manager, ends_at - 1);
	assert_int_equal(manager->trouble_count, 1);
	/* Whoever says it once more says it from now on. */
	manager->troubles[0].ends_at = 5;
	hear_server(manager, one, 220, 0);
	gpu_trouble_look(manager, ends_at - 1);
	assert_int_equal(manager->trouble_count, 1);
	ends_at = gpu_trouble_next(manager);
	gpu_trouble_look(manager, ends_at);
	assert_int_equal(manager->trouble_count, 0);
	/* What the driver says stays, and so does what it says of one that was suspected. */
	hear_server(manager, one, 214, 1);
	gpu_trouble_suspect(manager, one->gpus[0].bytes, "Xid 94", 0);
	gpu_trouble_suspect(manager, one->gpus[1].bytes, "Xid 48", 0);
	hear_server(manager, one, 214, 0);
	gpu_trouble_look(manager, INT64_MAX);
	assert_int_equal(manager->trouble_count, 2);
	assert_string_equal(manager->troubles[0].why, "Xid 48");
	assert_string_equal(manager->troubles[1].why, "Xid 94");
}

static void connections_wait_above_a_rate(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0);
	int64_t now = one->filled;
	int wait_ms;

	for (int i = 0; i < MANAGER_BURST; i++) {
		assert_true(tenant_may_connect(one, now, &wait_ms));
		one->tokens--;
	}
	assert_false(tenant_may_connect(one, now, &wait_ms));
	assert_between(wait_ms, 1, 1000 / MANAGER_RATE);
	assert_false(tenant_may_connect(one, now + wait_ms - 1, &wait_ms));
	assert_true(tenant_may_connect(one, now + 1000 / MANAGER_RATE, &wait_ms));
	one->tokens = 0;
	assert_true(tenant_may_connect(one, now + 1000, &wait_ms));
	assert_between(one->tokens, MANAGER_RATE - 2, MANAGER_RATE);
	assert_true(tenant_may_connect(one, now + 3600 * 1000LL, &wait_ms));
	assert_int_equal(one->tokens, MANAGER_BURST);
}

static void a_place_is_kept_for_each_container_without_a_server(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0),
		      *two = add_tenant(&world->manager, "two", second_gpu, 0),
		      *three = add_tenant(&world->manager, "three", second_gpu, 0);

	one->limits.max_clients = MANAGER_CLIENTS_MAX;
	one->clients = MANAGER_WORKERS_MAX - 3;
	world->manager.worker_count = MANAGER_WORKERS_MAX - 3;
	assert_true(tenant_has_place(&world->manager, one));
	world->manager.worker_count = ++one->clients;
	assert_false(tenant_has_place(&world->manager, one));
	assert_true(tenant_has_place(&world->manager, two));
	two->clients = 1;
	world->manager.worker_count++;
	assert_false(tenant_has_place(&world->manager, two));
	assert_true(tenant_has_place(&world->manager, three));
	/* One that has ended needs none. */
	three->ending = true;
	assert_true(tenant_has_place(&world->manager, one));
	world->manager.worker_count++;
	assert_false(tenant_has_place(&world->manager, one));
	three->ending = false;
	two->limits.max_clients = 1;
	world->manager.worker_count = 2;
	assert_false(tenant_has_place(&world->manager, two));
	/* Containers that came when one place was left: the first that asks has it. */
	two->clients = 0;
	world->manager.worker_count = MANAGER_WORKERS_MAX - 1;
	assert_true(tenant_has_place(&world->manager, two));
	world->manager.worker_count = MANAGER_WORKERS_MAX;
	assert_false(tenant_has_place(&world->manager, two));
	one->clients = two->clients = 0;
	world->manager.worker_count = 0;
}

static void what_servers_have_is_added_up(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 4096);

	assert_int_equal(one->orders->limit, 4096);
	assert_int_equal(tenant_sum_memory(one), 0);
	one->quota->used[0] = 1000;
	one->quota->used[START_QUOTA_SLOTS - 1] = 24;
	assert_int_equal(tenant_sum_memory(one), 1024);
	one->quota->shares.used = 1;
	one->quota->shares.place[0].bytes = 76;
	assert_int_equal(tenant_sum_memory(one), 1100);
	/* Whatever a server writes there. */
	one->quota->used[1] = UINT64_MAX;
	assert_true(tenant_sum_memory(one) == UINT64_MAX);
	tenant_set_memory(one, 0);
	assert_true(one->orders->limit == UINT64_MAX);
}

/* Others wait meanwhile. */
static void the_driver_has_no_longer_than_the_hosts_memory_takes(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_movable(&world->manager, "one");
	const int64_t least = suspension_patience(&world->manager, one);

	one->quota->used[1] = (uint64_t)1 << 30;
	assert_int_equal(suspension_patience(&world->manager, one), least + 8192);
	one->suspension.moves = true;
	assert_int_equal(suspension_patience(&world->manager, one), least + 16384);
	one->suspension.moves = false;
	one->quota->used[1] = (uint64_t)1 << 62;
	assert_true(suspension_patience(&world->manager, one) <= least + (int64_t)(pinned_memory_measure_host() >> 16));
	world->manager.groups = STDERR_FILENO;
	one->limits.host_memory = (uint64_t)1 << 29;
	assert_int_equal(suspension_patience(&world->manager, one), least + 4096);
	world->manager.groups = -1;
}

static void move_to(struct world *world, struct tenant *one, const char *gpu)
{
	uint64_t places;
	const char *why;

	assert_int_equal(gpu_assign_move(one, "", gpu, &places, &why), 0);
	assert_int_equal(suspension_move(&world->manager, one, places, &why), 0);
}

/* And not what it was that its programs call so. */
static void time_is_of_the_gpu_that_gave_it(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_movable(&world->manager, "one");

	one->quota->busy[0][3] = 1000;
	one->busy[0] = 500;
	assert_int_equal(tenant_sum_time(one, 0), 1500);
	move_to(world, one, UUID_B);
	assert_int_equal(tenant_sum_time(one, 0), 1500);
	assert_int_equal(tenant_sum_time(one, 1), 0);
	one->quota->busy[0][3] = 1700;
	assert_int_equal(tenant_sum_time(one, 0), 1500);
	assert_int_equal(tenant_sum_time(one, 1), 700);
	/* A server that has ended, and one that writes what it likes. */
	one->busy[0] += 1700;
	one->quota->busy[0][3] = 0;
	assert_int_equal(tenant_sum_time(one, 1), 700);
	one->busy[0] = 0;
	assert_int_equal(tenant_sum_time(one, 1), 0);
	move_to(world, one, UUID_A);
	one->quota->busy[0][3] = 30;
	assert_int_equal(tenant_sum_time(one, 0), 1530);
}

/* Where it was, and where it is: also what a server had that has ended, or ends while there is no manager. */
static void a_new_manager_counts_on(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_movable(&world->manager, "one");
	struct manager next = {
		.directory = world->directory, .ledger = world->ledger, .server = world->server, .groups = -1};

	one->busy[0] = 1500;
	move_to(world, one, UUID_B);
	one->busy[0] = 2200;
	one->refused_memory = 3;
	one->refused_functions = 5;
	assert_int_equal(state_file_write(&world->manager), 0);
	assert_int_equal(state_file_read(&next), 0);
	assert_int_equal(next.tenant_count, 1);
	assert_int_equal(tenant_sum_time(next.tenants, 0), 1500);
	assert_int_equal(tenant_sum_time(next.tenants, 1), 700);
	assert_int_equal(next.tenants->refused_memory, 3);
	assert_int_equal(next.tenants->refused_functions, 5);
	world_end(&next);
}

/* What was counted of a server that ended while there was no manager is not awaited of the next one. */
static void what_ended_without_a_manager_was_counted_once(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_movable(&world->manager, "one");
	struct manager next = {
		.directory = world->directory, .ledger = world->ledger, .server = world->server, .groups = -1};

	one->quota->busy[0][3] = 1500;
	move_to(world, one, UUID_B);
	assert_int_equal(state_file_write(&world->manager), 0);
	assert_int_equal(state_file_read(&next), 0);
	assert_int_equal(next.tenant_count, 1);
	assert_int_equal(tenant_sum_time(next.tenants, 0), 1500);
	next.tenants->quota->busy[0][3] = 100;
	assert_int_equal(tenant_sum_time(next.tenants, 1), 100);
	world_end(&next);
}

/* Of which the driver had saved some servers and not others: also the next manager knows, and tries to before it sleeps. */
static void what_was_not_saved_whole_is_saved_before_the_host_sleeps(void **state)
{
	struct world *world = *state;
	struct suspension *suspension = &add_movable(&world->manager, "one")->suspension;
	struct manager next = {
		.directory = world->directory, .ledger = world->ledger, .server = world->server, .groups = -1};

	suspension->state = SUSPENSION_SUSPENDED;
	suspension->wanted = true;
	suspension->queued = 1;
	suspension->partly = true;
	(void)strcpy(suspension->trouble, "why");
	assert_int_equal(state_file_write(&world->manager), 0);
	assert_int_equal(state_file_read(&next), 0);
	assert_int_equal(next.tenant_count, 1);
	suspension = &next.tenants->suspension;
	assert_true(suspension->partly);
	assert_string_equal(suspension_name(suspension), "waiting");
	assert_string_equal(suspension->trouble, "why");
	suspension_sleep(&next);
	assert_string_equal(suspension_name(suspension), "suspending");
	assert_string_equal(suspension->trouble, "");
	assert_true(suspension_has_begun(suspension));
	assert_true(suspension->for_sleep);
	world_end(&next);
}

/* Looks, unless the driver's program runs already, and once more when this has ended. */
static void look_until_it_ends(struct manager *manager, struct tenant *tenant)
{
	/* Later than whatever is to be tried again. */
	const int64_t now = manager_now() + 3600 * 1000;

	if (!tenant->suspension.program)
		suspension_look(manager, tenant, now);
	if (!tenant->suspension.program)
		return;
	assert_int_equal(poll(&(struct pollfd){.fd = tenant->suspension.program_pidfd, .events = POLLIN}, 1, 10000), 1);
	suspension_look(manager, tenant, manager_now());
}

/* Whoever has all suspended waits until it is done or there is a reason. */
static void what_can_be_neither_begun_nor_left_says_why(void **state)
{
	struct world *world = *state;
	struct manager *manager = &world->manager;
	struct tenant *one = add_movable(manager, "one");
	struct worker server = {.tenant = one, .pid = getpid()};
	char *const programs[] = {(char *)"/proc/self/exe", (char *)"/nonexistent/program"};

	manager->workers = &server;
	one->clients = 1;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		suspension_take_over(manager, one, "suspending", 0, true);
		one->suspension.trouble[0] = '\0';
		manager->checkpoint = programs[i];
		look_until_it_ends(manager, one);
		assert_string_equal(suspension_name(&one->suspension), "suspending");
		assert_true(suspension_has_begun(&one->suspension));
		assert_string_not_equal(one->suspension.trouble, "");
	}
	/* It is tried again, and what it says is over with it. */
	manager->checkpoint = (char *)"/bin/true";
	look_until_it_ends(manager, one);
	assert_string_equal(suspension_name(&one->suspension), "suspended");
	assert_string_equal(one->suspension.trouble, "");
	manager->workers = NULL;
	one->clients = 0;
}

/* A server is saved, and another one is not. */
static void suspend_partly(struct manager *manager, struct tenant *tenant)
{
	suspension_take_over(manager, tenant, "suspending", 0, true);
	manager->checkpoint = (char *)"/proc/self/exe";
	tenant->library[0] = 'a';
	look_until_it_ends(manager, tenant);
	assert_string_equal(suspension_name(&tenant->suspension), "waiting");
	assert_string_not_equal(tenant->suspension.trouble, "");
}

/* Return: whether it is saved now that all are to sleep. */
static bool is_saved_asleep(struct manager *manager, struct tenant *tenant)
{
	manager->checkpoint = (char *)"/bin/true";
	if (!suspension_has_begun(&tenant->suspension))
		return false;
	look_until_it_ends(manager, tenant);
	return streq(suspension_name(&tenant->suspension), "suspended") && !tenant->suspension.partly;
}

/* Whatever has been tried since then, and whoever takes its reason for read. */
static void what_was_not_saved_whole_stays_so_until_it_is(void **state)
{
	struct world *world = *state;
	struct manager *manager = &world->manager;
	struct tenant *one = add_movable(manager, "one");
	struct worker server = {.tenant = one, .pid = getpid()};

	manager->workers = &server;
	one->clients = 1;
	free(one->library);
	one->library = strdup("-");
	suspend_partly(manager, one);
	suspension_sleep(manager);
	suspension_wake(manager);
	/* Before the driver could do it, all wake, and sleep again. */
	suspend_partly(manager, one);
	suspension_wake(manager);
	suspension_sleep(manager);
	assert_true(is_saved_asleep(manager, one));
	suspension_wake(manager);
	suspend_partly(manager, one);
	assert_int_equal(suspension_resume(manager, one), 0);
	suspension_sleep(manager);
	assert_true(is_saved_asleep(manager, one));
	assert_true(one->suspension.for_sleep);
	suspension_wake(manager);
	/* All are to sleep while it is tried to resume it, for which there is no room. */
	suspend_partly(manager, one);
	suspension_look(manager, one, manager_now() + 3600 * 1000);
	assert_int_equal(one->suspension.state, SUSPENSION_RESUMING);
	suspension_sleep(manager);
	assert_string_equal(suspension_name(&one->suspension), "resuming");
	look_until_it_ends(manager, one);
	assert_true(is_saved_asleep(manager, one));
	/* What cannot be saved is tried again, and says why meanwhile. */
	suspend_partly(manager, one);
	assert_true(suspension_next(manager, one, manager_now()) < INT64_MAX);
	suspension_look(manager, one, manager_now() + 3600 * 1000);
	assert_string_not_equal(one->suspension.trouble, "");
	assert_true(is_saved_asleep(manager, one));
	assert_int_equal(suspension_next(manager, one, manager_now()), INT64_MAX);
	suspension_wake(manager);
	manager->workers = NULL;
	one->clients = 0;
}

/* It has nothing on a GPU: why it could not be resumed is no matter while all sleep. */
static void what_was_saved_whole_sleeps_though_it_could_not_be_resumed(void **state)
{
	struct world *world = *state;
	struct manager *manager = &world->manager;
	struct tenant *one = add_movable(manager, "one");

	suspension_take_over(manager, one, "waiting", 0, false);
	(void)strcpy(one->suspension.trouble, "why");
	suspension_sleep(manager);
	assert_string_equal(suspension_name(&one->suspension), "waiting");
	assert_string_equal(one->suspension.trouble, "");
	assert_false(suspension_has_begun(&one->suspension));
}

static void names_are_those_of_directories(void **state)
{
	static const char *const good[] = {"a", "box_1.2-3+x", "0123456789abcdef"};
	static const char *const bad[] = {"", ".", "..", ".x", "a/b", "a b", "a\n", "\xc3\xa4", "a\"b"};
	char longest[MANAGER_ID_MAX + 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_true(tenant_is_name(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(tenant_is_name(bad[i]));
	memset(longest, 'a', sizeof(longest));
	longest[MANAGER_ID_MAX + 1] = '\0';
	assert_false(tenant_is_name(longest));
	longest[MANAGER_ID_MAX] = '\0';
	assert_true(tenant_is_name(longest));
}

static void each_container_has_a_user_and_a_socket_of_its_own(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0),
		      *two = add_tenant(&world->manager, "two", second_gpu, 0);
	_cleanup_free_ char *path = NULL;
	struct stat st;

	const uid_t first = one->uid;

	assert_between(first, PRIVATE_UID_FIRST, PRIVATE_UID_FIRST + PRIVATE_UIDS - 1);
	assert_between(two->uid, PRIVATE_UID_FIRST, PRIVATE_UID_FIRST + PRIVATE_UIDS - 1);
	/* By chance, so that nobody knows a neighbour's by his own; that they are as far apart fails once in 10,000 runs. */
	assert_true(first > two->uid + 1000 || two->uid > first + 1000);
	assert_int_equal(str_format(&path, "%s/one/socket", world->directory), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode) && (st.st_mode & 0777) == 0666);
	tenant_end(&world->manager, one, "test");
	assert_int_equal(stat(path, &st), -1);
	/* Its servers may still run as that user. */
	assert_null(tenant_find(&world->manager, "one"));
	assert_false(tenant_may_use_uid(&world->manager, first));
	tenant_remove(&world->manager, one);
	assert_true(tenant_may_use_uid(&world->manager, first));
}

static void a_ledger_brings_back_what_lives(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", both_gpus, 8192), *gone, *loose, *moving;
	const struct tenant *taken;
	const char *why;
	struct manager next = {
		.directory = world->directory, .ledger = world->ledger, .server = world->server, .groups = -1};

	assert_int_equal(drain_begin(&world->manager, UUID_C, &why), 0);
	moving = add_movable(&world->manager, "moving");
	moving->places = start_exchange(0, 0, 1);
	moving->suspension.moves = true;
	moving->suspension.target = start_exchange(0, 0, 2);
	world->manager.asleep = true;
	one->suspension.for_sleep = true;
	one->first = 1;
	one->connects = 7;
	one->limits.host_memory = 1 << 20;
	gone = add_tenant(&world->manager, "gone", second_gpu, 1);
	gone->started++;
	loose = add_tenant(&world->manager, "loose", second_gpu, 1);
	loose->kept = false;
	assert_int_equal(state_file_write(&world->manager), 0);
	assert_int_equal(state_file_read(&next), 0);
	assert_int_equal(next.tenant_count, 2);
	assert_int_equal(next.drained_count, 1);
	assert_string_equal(next.drained[0], UUID_C);
	assert_true(next.asleep);
	assert_true(tenant_find(&next, "one")->suspension.for_sleep);
	assert_int_equal(drain_end(&next, UUID_C, &why), 0);
	assert_int_equal(drain_end(&world->manager, UUID_C, &why), 0);
	taken = tenant_find(&next, "moving");
	assert_non_null(taken);
	assert_int_equal(taken->gpu_count, 1);
	assert_int_equal(taken->reach, 3);
	assert_int_equal(taken->places, moving->places);
	assert_true(taken->suspension.moves);
	assert_int_equal(taken->suspension.state, SUSPENSION_PARKING);
	assert_int_equal(taken->suspension.target, moving->suspension.target);
	tenant_remove(&next, tenant_find(&next, "moving"));
	assert_string_equal(next.tenants->id, "one");
	assert_int_equal(next.tenants->limits.memory, 8192);
	assert_int_equal(next.tenants->limits.host_memory, 1 << 20);
	assert_int_equal(next.tenants->orders->limit, 8192);
	assert_int_equal(next.tenants->first, 1);
	assert_int_equal(next.tenants->uid, one->uid);
	assert_int_equal(next.tenants->connects, 7);
	assert_string_equal(next.tenants->gpus[0].uuid, UUID_A);
	tenant_sweep(&next);
	assert_int_equal(access(world->directory, F_OK), 0);
	world_end(&next);
}

/* A process that has this in the place of a server's quota, or of its orders. */
static pid_t start_server_with(int fd, int place)
{
	pid_t server;
	int pair[2];
	char byte;

	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	server = fork();
	if (server == 0) {
		const int high = fcntl(pair[1], F_DUPFD, 64);

		if (dup2(fd, place) == place)
			(void)!write(high, "", 1);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(pair[0], &byte, 1), 1);
	(void)close(pair[0]);
	(void)close(pair[1]);
	return server;
}

/* Return: what the next manager believes that the server's place has, of a container whose server has @fd. */
static uint64_t take_over_with(struct world *world, struct tenant *tenant, int fd)
{
	struct manager next = {
		.directory = world->directory, .ledger = world->ledger, .server = world->server, .groups = -1};
	struct worker server = {.slot = 3, .pid = start_server_with(fd, START_QUOTA)};
	_cleanup_close_ int pidfd = -1;
	uint64_t used;

	assert_int_equal(pidref_open(server.pid, 0, &pidfd, &server.started), 0);
	assert_int_equal(server_process_reattach(&world->manager, tenant, &server), 0);
	assert_int_equal(state_file_write(&world->manager), 0);
	/* What it has shared goes with it. */
	tenant->quota->shares.used = 1;
	tenant->quota->shares.place[0].bytes = 5;
	tenant->quota->shares.place[0].state = SHARE_READY;
	share_hold(&tenant->quota->shares.place[0], 3);
	server_process_remove(&world->manager, world->manager.workers);
	assert_int_equal(tenant_sum_memory(tenant), 0);
	tenant->quota->used[3] = 777;
	assert_int_equal(state_file_read(&next), 0);
	assert_int_equal(next.tenant_count, 1);
	assert_int_equal(next.worker_count, 1);
	assert_int_equal(next.tenants->orders->limit, 8192);
	used = next.tenants->quota->used[3];
	world_end(&next);
	(void)kill(server.pid, SIGKILL);
	(void)waitpid(server.pid, NULL, 0);
	return used;
}

static int make_memory(size_t bytes, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* The manager is root, and the descriptor may be of what the server itself could not open. */
static void a_servers_quota_is_taken_over_and_nothing_else(void **state)
{
	enum { ALL = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 8192);
	_cleanup_close_ int file = -1, path = -1, device = open("/dev/zero", O_PATH | O_CLOEXEC);
	_cleanup_close_ int loose = make_memory(sizeof(struct start_quota), F_SEAL_SHRINK);
	_cleanup_close_ int shorter = make_memory(sizeof(struct start_quota) - 8, ALL);
	char content[sizeof(struct start_quota)], now[sizeof(content)];

	assert_int_equal(take_over_with(world, one, one->quota_fd), 777);
	memset(content, 'x', sizeof(content));
	file = open(world->server, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(file, content, sizeof(content)), sizeof(content));
	path = open(world->server, O_PATH | O_CLOEXEC);
	assert_int_equal(take_over_with(world, one, path), 0);
	assert_int_equal(pread(file, now, sizeof(now), 0), sizeof(now));
	assert_memory_equal(now, content, sizeof(now));
	assert_int_equal(unlink(world->server), 0);
	assert_int_equal(take_over_with(world, one, device), 0);
	assert_int_equal(take_over_with(world, one, loose), 0);
	assert_int_equal(take_over_with(world, one, shorter), 0);
}

/* Whoever is another user, as servers are. */
static bool others_can_write(int fd)
{
	const pid_t other = fork();
	int wait_status = 0, again;

	if (other == 0) {
		if (setresuid(PRIVATE_UID_FIRST, PRIVATE_UID_FIRST, PRIVATE_UID_FIRST) < 0)
			_exit(2);
		again = page_open_again(fd, O_RDWR);
		_exit(again != -EACCES ||
		      mmap(NULL, sizeof(struct start_orders), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED);
	}
	assert_int_equal(waitpid(other, &wait_status, 0), other);
	assert_true(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) < 2);
	return WEXITSTATUS(wait_status);
}

static void servers_read_their_orders_and_do_not_write_them(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 8192);
	void *memory = mmap(NULL, sizeof(*one->orders), PROT_READ, MAP_SHARED, one->orders_fd, 0);
	const struct start_orders *seen = memory;

	assert_true(memory != MAP_FAILED);
	assert_int_equal(seen->limit, 8192);
	tenant_set_memory(one, 4096);
	assert_int_equal(seen->limit, 4096);
	assert_true(mmap(NULL, sizeof(*one->orders), PROT_READ | PROT_WRITE, MAP_SHARED, one->orders_fd, 0) ==
		    MAP_FAILED);
	assert_int_equal(mprotect(memory, sizeof(*one->orders), PROT_READ | PROT_WRITE), -1);
	if (geteuid() == 0)
		assert_false(others_can_write(one->orders_fd));
	(void)munmap(memory, sizeof(*one->orders));
}

/* Return: whether what the next manager says to a container whose server has @fd is what is seen there. */
static bool orders_arrive_by(struct world *world, struct tenant *tenant, int fd)
{
	struct manager next = {
		.directory = world->directory, .ledger = world->ledger, .server = world->server, .groups = -1};
	struct worker server = {.slot = 3, .pid = start_server_with(fd, START_ORDERS)};
	const uint64_t before = tenant->orders->limit;
	_cleanup_close_ int pidfd = -1;
	bool arrive;

	assert_int_equal(pidref_open(server.pid, 0, &pidfd, &server.started), 0);
	assert_int_equal(server_process_reattach(&world->manager, tenant, &server), 0);
	assert_int_equal(state_file_write(&world->manager), 0);
	server_process_remove(&world->manager, world->manager.workers);
	assert_int_equal(state_file_read(&next), 0);
	assert_int_equal(next.tenant_count, 1);
	tenant_set_memory(next.tenants, before + 1);
	assert_true(next.tenants->orders->limit == before + 1);
	arrive = tenant->orders->limit == before + 1;
	world_end(&next);
	(void)kill(server.pid, SIGKILL);
	(void)waitpid(server.pid, NULL, 0);
	return arrive;
}

/* A page that servers could write themselves is none of orders. */
static void a_new_manager_speaks_to_the_servers_of_the_one_before(void **state)
{
	enum { ALL = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 8192);
	_cleanup_close_ int own = make_memory(sizeof(struct start_orders), ALL), shorter = page_make(64, 0600);
	_cleanup_close_ int others = page_make(sizeof(struct start_orders), PAGE_OF_MANAGER);

	assert_true(orders_arrive_by(world, one, one->orders_fd));
	assert_false(orders_arrive_by(world, one, own));
	assert_false(orders_arrive_by(world, one, shorter));
	if (geteuid() == 0) {
		assert_int_equal(fchown(others, PRIVATE_UID_FIRST, PRIVATE_UID_FIRST), 0);
		assert_int_equal(page_take(getpid(), others, sizeof(struct start_orders), PAGE_OF_MANAGER), -EBADF);
	}
}

static void containers_are_named_by_how_their_names_begin(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "4f2a90", second_gpu, 1);
	struct tenant *two = add_tenant(&world->manager, "4f2b17", second_gpu, 1);
	struct tenant *whole = add_tenant(&world->manager, "4f2", second_gpu, 1);
	bool several;

	assert_ptr_equal(tenant_match(&world->manager, "4f2a", &several), one);
	assert_ptr_equal(tenant_match(&world->manager, "4f2b17", &several), two);
	assert_ptr_equal(tenant_match(&world->manager, "4f2", &several), whole);
	assert_false(several);
	assert_null(tenant_match(&world->manager, "4f", &several));
	assert_true(several);
	assert_null(tenant_match(&world->manager, "", &several));
	assert_null(tenant_match(&world->manager, "4f2a901", &several));
	assert_false(several);
	tenant_end(&world->manager, two, "test");
	tenant_end(&world->manager, whole, "test");
	assert_ptr_equal(tenant_match(&world->manager, "4", &several), one);
}

static void write_ledger(const struct world *world, const char *text, mode_t mode)
{
	_cleanup_close_ int fd = open(world->ledger, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static void a_damaged_ledger_brings_nothing(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"{\"version\": 2, \"containers\": []}",
		"{\"version\": 1}",
		"{\"version\": 1, \"containers\": [1, {}, {\"id\": \"../x\"}, {\"id\": \"a\", \"pid\": 1}]}",
		"{\"version\": 1, \"containers\": [{\"id\": \"a\", \"pid\": 1, \"started\": 1, \"gpus\": [{\"uuid\": \"" UUID_A
		"\"}]}]}",
	};
	struct world *world = *state;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		write_ledger(world, texts[i], 0600);
		(void)state_file_read(&world->manager);
		if (world->manager.tenant_count > 0)
			fail_msg("%s", texts[i]);
	}
	/* Others could have written it. */
	write_ledger(world, "{\"version\": 1, \"containers\": []}", 0622);
	assert_int_equal(state_file_read(&world->manager), -EPERM);
}

/* Return: how often the audit, which was written to @file, has @word. */
static size_t count_in_file(int file, const char *word)
{
	_cleanup_free_ char *text = NULL;
	size_t count = 0;

	assert_true(lseek(file, 0, SEEK_SET) == 0);
	assert_int_equal(fd_read_all(file, 1 << 20, &text, NULL), 0);
	for (const char *at = text; (at = strstr(at, word)); at++)
		count++;
	return count;
}

static void servers_write_so_many_lines(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0);
	const struct start_event event = {.kind = START_EVENT_TABLE, .text = "word"};
	_cleanup_close_ int file = memfd_create("audit", MFD_CLOEXEC), old = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	const int64_t now = 5000;

	assert_true(file >= 0 && old >= 0 && dup2(file, STDERR_FILENO) == STDERR_FILENO);
	for (int i = 0; i < MANAGER_LINES + 7; i++)
		audit_server(one, &event, now + i % 1000);
	assert_int_equal(one->omitted, 7);
	audit_server(one, &event, now + 999);
	audit_server(one, &event, now + 1000);
	for (int i = 0; i < 2 * MANAGER_LINES_RATE; i++)
		audit_server(one, &event, now + 2001);
	/* Who was quiet for long enough may tell as much as at first. */
	for (int i = 0; i < MANAGER_LINES + 1; i++)
		audit_server(one, &event, now + 100000);
	tenant_end(&world->manager, one, "test");
	assert_true(dup2(old, STDERR_FILENO) == STDERR_FILENO);
	assert_int_equal(count_in_file(file, "hidden-table"), 2 * MANAGER_LINES + 2 * MANAGER_LINES_RATE);
	assert_int_equal(count_in_file(file, "\"omitted\""), 3);
	assert_int_equal(count_in_file(file, "\"lines\":8}"), 1);
	assert_int_equal(count_in_file(file, "\"lines\":1}"), 2);
}

static void memory_that_kernels_reach_is_written_down(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0);
	const struct start_event event = {.kind = START_EVENT_REACHED, .number = 3, .text = "HMM"};
	_cleanup_close_ int file = memfd_create("audit", MFD_CLOEXEC), old = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

	assert_true(file >= 0 && old >= 0 && dup2(file, STDERR_FILENO) == STDERR_FILENO);
	audit_server(one, &event, 5000);
	assert_true(dup2(old, STDERR_FILENO) == STDERR_FILENO);
	assert_int_equal(
		count_in_file(file, "\"event\":\"reached\",\"container\":\"one\",\"what\":\"HMM\",\"number\":3}"), 1);
	tenant_end(&world->manager, one, "test");
}

/* ---- the host's memory ---- */

static void containers_share_the_hosts_memory(void **state)
{
	struct world *world = *state;
	struct tenant *one, *two, *three;

	world->manager.host_memory = 1200;
	one = add_tenant(&world->manager, "one", second_gpu, 0);
	/* Half of what it may have of the host's memory. */
	assert_int_equal(one->orders->locked_limit, 600);
	/* Who says that it has more than servers take, does not make others have less. */
	one->quota->locked[3] = 1000;
	two = add_tenant(&world->manager, "two", second_gpu, 0);
	assert_int_equal(one->orders->locked_limit, 600);
	assert_int_equal(two->orders->locked_limit, 600);
	one->quota->locked[3] = 550;
	three = add_tenant(&world->manager, "three", second_gpu, 0);
	/* Who has more than its share keeps that, and no more. */
	assert_int_equal(one->orders->locked_limit, 550);
	assert_int_equal(two->orders->locked_limit, 325);
	assert_int_equal(three->orders->locked_limit, 325);
	/* Nor who says that it has more than it may have. */
	two->quota->locked[0] = two->quota->locked[1] = UINT64_MAX - 5;
	pinned_memory_host_memory(&world->manager);
	assert_int_equal(two->orders->locked_limit, 325);
	assert_int_equal(three->orders->locked_limit, 325);
	two->quota->locked[0] = two->quota->locked[1] = one->quota->locked[3] = 0;
	tenant_end(&world->manager, two, "test");
	tenant_remove(&world->manager, two);
	assert_int_equal(one->orders->locked_limit, 600);
	assert_int_equal(three->orders->locked_limit, 600);
}

/* As those of a user, which have parts of what the user may have. */
static void many_small_containers_take_nothing_from_a_large_one(void **state)
{
	struct world *world = *state;
	struct tenant *large, *small[10];
	char id[8];

	world->manager.host_memory = 1200;
	large = add_tenant(&world->manager, "large", second_gpu, 0);
	for (int i = 0; i < 10; i++) {
		(void)snprintf(id, sizeof(id), "small%d", i);
		small[i] = add_tenant(&world->manager, id, second_gpu, 0);
		small[i]->limits.host_memory = 100;
	}
	pinned_memory_host_memory(&world->manager);
	assert_int_equal(large->orders->locked_limit, 600);
	for (int i = 0; i < 10; i++)
		assert_int_equal(small[i]->orders->locked_limit, 50);
	/* All may have no more than there is. */
	large->limits.host_memory = 4000;
	pinned_memory_host_memory(&world->manager);
	assert_int_equal(large->orders->locked_limit, 700);
}

/* Whichever comes first, nobody is given what another's servers have already. */
static void a_new_manager_shares_what_is_left(void **state)
{
	struct world *world = *state;
	struct manager next = {
		.directory = world->directory, .ledger = world->ledger, .server = world->server, .groups = -1};
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0), *two = tenant_new("two"), *three;

	next.host_memory = 1200;
	one->quota->locked[3] = 500;
	assert_non_null(two);
	two->library = strdup("");
	two->pidfd = fcntl(one->pidfd, F_DUPFD_CLOEXEC, 0);
	assert_int_equal(tenant_add_gpu(two, UUID_B, "", "", true), 0);
	three = add_tenant(&next, "three", second_gpu, 0);
	add_tenant(&next, "four", second_gpu, 0);
	assert_int_equal(tenant_open(&next, two, fcntl(one->quota_fd, F_DUPFD_CLOEXEC, 0), -1, -1), 0);
	assert_int_equal(two->orders->locked_limit, 500);
	assert_int_equal(three->orders->locked_limit, 350);
	world_end(&next);
}

/* ---- what servers leave ---- */

enum { LEFT_BYTES = 1 << 20 };

/* Return: a process that waits. @ret: it */
static pid_t start_client(int *ret)
{
	const pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)pause();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(pidref_open(pid, 0, ret, NULL), 0);
	return pid;
}

/* A server that was killed, and had shared this much with its client. Return: what a process of its container keeps. */
static int leave(struct manager *manager, struct tenant *tenant, int client, size_t bytes)
{
	struct worker worker = {.tenant = tenant, .client = client};
	_cleanup_free_ char *data = malloc(bytes);
	int kept;

	worker.shared = remnant_make();
	assert_true(worker.shared >= 0);
	assert_non_null(data);
	memset(data, 'x', bytes);
	assert_int_equal(pwrite(worker.shared, data, 4096, 0), 4096);
	assert_int_equal(pwrite(worker.shared, data, bytes, (off_t)WIRE_ARENA_OFFSET + 65536), bytes);
	kept = fcntl(worker.shared, F_DUPFD_CLOEXEC, 0);
	remnant_leave(manager, &worker);
	pinned_memory_host_memory(manager);
	assert_int_equal(worker.shared, -1);
	assert_int_equal(worker.client, -1);
	return kept;
}

/* As long as there is something to be done. Return: how often it was looked */
static int free_remnants(struct manager *manager, int64_t now)
{
	int looks = 0;

	do {
		(void)remnant_look(manager, now);
		looks++;
	} while (remnant_next(manager, now) == now);
	return looks;
}

static size_t count_bytes(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (size_t)st.st_blocks * 512;
}

static void what_a_server_leaves_counts_until_its_client_ends(void **state)
{
	struct world *world = *state;
	struct tenant *one;
	int client, kept;
	const pid_t pid = start_client(&client);
	char byte = 0;

	world->manager.host_memory = 6 * LEFT_BYTES;
	one = add_tenant(&world->manager, "one", second_gpu, 0);
	one->limits.host_memory = 16 * LEFT_BYTES;
	kept = leave(&world->manager, one, client, LEFT_BYTES);
	assert_int_equal(remnant_measure(&world->manager, one), LEFT_BYTES);
	assert_int_equal(count_bytes(kept), LEFT_BYTES);
	assert_int_equal(one->orders->locked_limit, 5 * LEFT_BYTES);
	/* Also as others see it. */
	one->quota->locked[3] = LEFT_BYTES * 3 / 2;
	(void)add_tenant(&world->manager, "two", second_gpu, 0);
	assert_int_equal(add_tenant(&world->manager, "three", second_gpu, 0)->orders->locked_limit, LEFT_BYTES * 7 / 4);
	assert_int_equal(one->orders->locked_limit, LEFT_BYTES * 3 / 2);
	one->quota->locked[3] = 0;
	(void)remnant_look(&world->manager, manager_now() + 10000);
	assert_int_equal(pread(kept, &byte, 1, (off_t)WIRE_ARENA_OFFSET + 65536), 1);
	assert_int_equal(byte, 'x');
	tenant_end(&world->manager, one, "test");
	assert_false(tenant_is_over(&world->manager, one));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(free_remnants(&world->manager, manager_now()), 2);
	assert_null(world->manager.remnants);
	assert_true(tenant_is_over(&world->manager, one));
	/* Whoever keeps it has zeros. */
	assert_int_equal(count_bytes(kept), 0);
	assert_int_equal(pread(kept, &byte, 1, (off_t)WIRE_ARENA_OFFSET + 65536), 1);
	assert_int_equal(byte, '\0');
	(void)close(kept);
}

static void what_nobody_has_any_more_does_not_count(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0);
	int64_t now = manager_now();
	int client, kept;
	const pid_t pid = start_client(&client);
	void *memory;

	kept = leave(&world->manager, one, client, LEFT_BYTES);
	memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, kept, 0);
	assert_true(memory != MAP_FAILED);
	(void)remnant_look(&world->manager, now += 2000);
	assert_non_null(world->manager.remnants);
	/* A mapping is as good as a descriptor. */
	(void)close(kept);
	(void)remnant_look(&world->manager, now += 2000);
	assert_int_equal(remnant_measure(&world->manager, one), LEFT_BYTES);
	assert_int_equal(munmap(memory, 4096), 0);
	assert_int_equal(free_remnants(&world->manager, now + 2000), 2);
	assert_null(world->manager.remnants);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

/* A gigabyte is some hundred thousand pages, and the manager has others to serve. */
static void much_is_freed_in_parts(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0);
	int kept = leave(&world->manager, one, -1, (size_t)150 << 20);

	/* The first is freed already, and the last is nothing. */
	assert_int_equal(free_remnants(&world->manager, manager_now()), 3);
	assert_null(world->manager.remnants);
	assert_int_equal(count_bytes(kept), 0);
	(void)close(kept);
}

/* As when the manager has no descriptor left. */
static void what_could_not_be_freed_is_freed_later(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0);
	const int64_t now = manager_now();
	struct rlimit before, none;
	int client, kept;
	const pid_t pid = start_client(&client);

	kept = leave(&world->manager, one, client, LEFT_BYTES);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){1, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	(void)free_remnants(&world->manager, now);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_non_null(world->manager.remnants);
	assert_true(remnant_next(&world->manager, now) > now);
	assert_int_equal(count_bytes(kept), LEFT_BYTES);
	(void)free_remnants(&world->manager, now + 2000);
	assert_null(world->manager.remnants);
	assert_int_equal(count_bytes(kept), 0);
	(void)close(kept);
}

/* With a client of which is written down who it is. Return: what a process of the container keeps. */
static int leave_with_keeper(struct manager *manager, struct tenant *tenant, pid_t *ret_client)
{
	int client, kept;

	*ret_client = start_client(&client);
	kept = leave(manager, tenant, client, LEFT_BYTES);
	manager->remnants->client_pid = *ret_client;
	assert_int_equal(pidref_open(*ret_client, 0, &manager->remnants->client, &manager->remnants->client_started),
			 0);
	(void)close(client);
	keeper_look(manager);
	assert_true(manager->keeper.pid > 0);
	return kept;
}

/* As it is when a manager was killed. */
static void forget_remnants(struct manager *manager)
{
	while (manager->remnants) {
		struct remnant *next = manager->remnants->next;

		(void)close(manager->remnants->fd);
		(void)close(manager->remnants->client);
		free(manager->remnants);
		manager->remnants = next;
	}
}

static void a_new_manager_knows_what_servers_had_left(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0);
	struct manager next = world->manager;
	const struct keeper *keeper = &world->manager.keeper;
	pid_t client, second;
	int kept, wait_status;

	one->limits.host_memory = 16 * LEFT_BYTES;
	kept = leave_with_keeper(&world->manager, one, &client);
	forget_remnants(&world->manager);
	next.tenants = NULL;
	next.tenant_count = 0;
	next.host_memory = 6 * LEFT_BYTES;
	assert_int_equal(state_file_read(&next), 0);
	assert_int_equal(next.keeper.pid, keeper->pid);
	assert_int_equal(remnant_measure(&next, next.tenants), LEFT_BYTES);
	/* Where it can start none of its own, the file goes on to say what the one before has. */
	no_process = true;
	keeper_look(&next);
	no_process = false;
	assert_int_equal(state_file_write(&next), 0);
	forget_remnants(&next);
	world_end(&next);
	assert_int_equal(state_file_read(&next), 0);
	assert_int_equal(remnant_measure(&next, next.tenants), LEFT_BYTES);
	/* It has one of its own, and the one before has no more to do. */
	keeper_look(&next);
	second = next.keeper.pid;
	assert_true(second > 0 && second != keeper->pid);
	assert_int_equal(waitpid(keeper->pid, &wait_status, 0), keeper->pid);
	assert_true(WIFSIGNALED(wait_status));
	assert_true(remnant_look(&next, manager_now()));
	pinned_memory_host_memory(&next);
	assert_int_equal(next.tenants->orders->locked_limit, 5 * LEFT_BYTES);
	assert_int_equal(count_bytes(kept), LEFT_BYTES);
	/* And when there is nothing left, there is none. */
	assert_int_equal(kill(client, SIGKILL), 0);
	assert_int_equal(waitpid(client, NULL, 0), client);
	(void)free_remnants(&next, manager_now());
	assert_null(next.remnants);
	assert_int_equal(count_bytes(kept), 0);
	keeper_look(&next);
	assert_int_equal(next.keeper.pid, 0);
	assert_int_equal(kill(second, 0), -1);
	(void)close(kept);
	world_end(&next);
	world->manager.keeper = world->manager.keeper_written = (struct keeper){0};
}

/* Whose servers are killed all the time goes on losing the oldest first (remnant.c). */
static void a_new_manager_knows_which_was_left_last(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0);
	struct manager next = world->manager;
	pid_t client, last;
	int kept = leave_with_keeper(&world->manager, one, &client),
	    also = leave_with_keeper(&world->manager, one, &last);

	forget_remnants(&world->manager);
	next.tenants = NULL;
	next.tenant_count = 0;
	assert_int_equal(state_file_read(&next), 0);
	assert_int_equal(next.remnants->client_pid, last);
	assert_int_equal(next.remnants->next->client_pid, client);
	assert_int_equal(kill(client, SIGKILL), 0);
	assert_int_equal(kill(last, SIGKILL), 0);
	assert_int_equal(waitpid(client, NULL, 0), client);
	assert_int_equal(waitpid(last, NULL, 0), last);
	(void)free_remnants(&next, manager_now());
	keeper_look(&next);
	assert_int_equal(waitpid(world->manager.keeper.pid, NULL, 0), world->manager.keeper.pid);
	(void)close(kept);
	(void)close(also);
	world_end(&next);
	world->manager.keeper = world->manager.keeper_written = (struct keeper){0};
}

/* Other children may be there: with a kernel before Linux 6.16, those of pidref.c. */
static void end_client_and_keeper(struct manager *manager, pid_t client)
{
	const pid_t last = manager->keeper.pid;

	assert_true(last > 0);
	assert_int_equal(kill(client, SIGKILL), 0);
	assert_int_equal(waitpid(client, NULL, 0), client);
	(void)free_remnants(manager, manager_now());
	keeper_look(manager);
	assert_int_equal(manager->keeper.pid, 0);
	assert_int_equal(waitpid(last, NULL, WNOHANG), -1);
}

static void a_keeper_stays_while_no_other_can_be_started(void **state)
{
	struct world *world = *state;
	struct manager *manager = &world->manager;
	struct tenant *one = add_tenant(manager, "one", second_gpu, 0);
	struct rlimit before, none;
	pid_t client, first, second;
	int kept = leave_with_keeper(manager, one, &client), also;
	int64_t next;

	first = manager->keeper.pid;
	also = leave(manager, one, fcntl(manager->remnants->client, F_DUPFD_CLOEXEC, 0), 4096);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){1, before.rlim_max};
	for (int i = 0; i < 2; i++) {
		no_process = i == 0;
		manager->remnants_changed = true;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, i == 0 ? &before : &none), 0);
		keeper_look(manager);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		no_process = false;
		assert_int_equal(manager->keeper.pid, first);
		assert_int_equal(waitpid(first, NULL, WNOHANG), 0);
		/* The file says nothing of what that one has not. */
		assert_true(manager->remnants->next->fd_kept);
		assert_false(manager->remnants->fd_kept);
		assert_true(keeper_wait_for(manager, manager_now(), &next) >= 0 && next <= manager_now() + 2000);
	}
	/* There is another as soon as there may be. */
	keeper_look(manager);
	second = manager->keeper.pid;
	assert_true(second > 0 && second != first && manager->remnants->fd_kept);
	end_client_and_keeper(manager, client);
	(void)close(kept);
	(void)close(also);
}

/* With /run full, say: the file has the one before, whose descriptors are those that it has. */
static void a_keeper_stays_until_the_next_one_is_in_the_file(void **state)
{
	struct world *world = *state;
	struct manager *manager = &world->manager;
	struct tenant *one = add_tenant(manager, "one", second_gpu, 0);
	const char *ledger = manager->ledger;
	pid_t client, first, second;
	int kept = leave_with_keeper(manager, one, &client);

	first = manager->keeper.pid;
	manager->ledger = "/nonexistent/ledger";
	for (int i = 0; i < 2; i++) {
		manager->remnants_changed = true;
		keeper_look(manager);
		assert_int_equal(waitpid(first, NULL, WNOHANG), 0);
	}
	second = manager->keeper.pid;
	assert_true(second > 0 && second != first);
	manager->ledger = ledger;
	keeper_look(manager);
	assert_int_equal(manager->keeper.pid, second);
	assert_int_equal(waitpid(first, NULL, 0), -1);
	end_client_and_keeper(manager, client);
	(void)close(kept);
}

static void a_keeper_that_was_killed_has_a_successor(void **state)
{
	struct world *world = *state;
	struct manager *manager = &world->manager;
	struct tenant *one = add_tenant(manager, "one", second_gpu, 0);
	pid_t client, first;
	int64_t next;
	int kept = leave_with_keeper(manager, one, &client);
	const int pidfd = keeper_wait_for(manager, manager_now(), &next);

	first = manager->keeper.pid;
	assert_true(next == INT64_MAX);
	assert_int_equal(kill(first, SIGKILL), 0);
	assert_int_equal(poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, 10000), 1);
	/* Not all the time, and nothing is waited for that is there already. */
	keeper_look(manager);
	assert_int_equal(manager->keeper.pid, first);
	assert_int_equal(keeper_wait_for(manager, manager_now(), &next), -1);
	assert_true(next > manager_now() && next < manager_now() + 2000);
	manager->keeper.began -= 2000;
	keeper_look(manager);
	assert_true(manager->keeper.pid > 0 && manager->keeper.pid != first);
	assert_int_equal(manager->keeper_written.pid, manager->keeper.pid);
	end_client_and_keeper(manager, client);
	(void)close(kept);
}

static void what_is_left_is_freed_where_no_manager_comes(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0);
	pid_t client, other;
	int kept = leave_with_keeper(&world->manager, one, &client),
	    also = leave_with_keeper(&world->manager, one, &other), wait_status;

	forget_remnants(&world->manager);
	assert_int_equal(kill(client, SIGKILL), 0);
	assert_int_equal(waitpid(client, NULL, 0), client);
	for (int i = 0; i < 3000 && count_bytes(kept) > 0; i++)
		(void)usleep(10000);
	assert_int_equal(count_bytes(kept), 0);
	assert_int_equal(count_bytes(also), LEFT_BYTES);
	assert_int_equal(kill(other, SIGKILL), 0);
	assert_int_equal(waitpid(other, NULL, 0), other);
	assert_int_equal(waitpid(world->manager.keeper.pid, &wait_status, 0), world->manager.keeper.pid);
	assert_true(WIFEXITED(wait_status));
	assert_int_equal(count_bytes(also), 0);
	(void)close(kept);
	(void)close(also);
	world->manager.keeper = world->manager.keeper_written = (struct keeper){0};
}

static void a_container_has_so_many_remnants(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0),
		      *two = add_tenant(&world->manager, "two", second_gpu, 0);
	int client, first, kept[MANAGER_REMNANTS_MAX], others;
	const pid_t pid = start_client(&client);

	others = leave(&world->manager, two, fcntl(client, F_DUPFD_CLOEXEC, 0), 4096);
	first = leave(&world->manager, one, fcntl(client, F_DUPFD_CLOEXEC, 0), 4096);
	for (int i = 0; i < MANAGER_REMNANTS_MAX - 1; i++)
		kept[i] = leave(&world->manager, one, fcntl(client, F_DUPFD_CLOEXEC, 0), 4096);
	(void)free_remnants(&world->manager, manager_now());
	assert_int_equal(count_bytes(first), 0);
	assert_int_equal(count_bytes(kept[0]), 4096);
	assert_int_equal(count_bytes(others), 4096);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)free_remnants(&world->manager, manager_now());
	assert_null(world->manager.remnants);
	for (int i = 0; i < MANAGER_REMNANTS_MAX - 1; i++)
		(void)close(kept[i]);
	(void)close(first);
	(void)close(others);
	(void)close(client);
}

enum { LINGERS = 20, AT_ONCE_MS = 8000 };

/* Of whatever size its datagrams are, so that it cannot keep the manager from others. */
static void a_server_is_heard_so_often(void **state)
{
	struct world *world = *state;
	struct worker worker = {.tenant = add_tenant(&world->manager, "one", second_gpu, 0)};
	int pair[2], sent = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	worker.events = pair[0];
	while (worker.events >= 0 && sent < 1000) {
		assert_int_equal(send(pair[1], "x", 1, MSG_NOSIGNAL), 1);
		sent++;
		server_process_receive_reply(&(struct manager){0}, &worker);
		/* A minute later. */
		if (sent == 200)
			worker.told_at -= 60000;
	}
	assert_int_equal(sent, 256 + 120);
	/* Another process closes it, where the kernel cannot refuse descriptors. */
	assert_int_equal(poll(&(struct pollfd){.fd = pair[1]}, 1, AT_ONCE_MS), 1);
	assert_int_equal(send(pair[1], "x", 1, MSG_NOSIGNAL), -1);
	(void)close(pair[1]);
}

static void what_a_server_said_before_its_end_is_heard(void **state)
{
	enum { SAID = 100 };
	struct world *world = *state;
	struct start_event event = {.kind = START_EVENT_REFUSED};
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0);
	struct worker *worker = calloc(1, sizeof(*worker));
	int pair[2];

	assert_non_null(worker);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	*worker = (struct worker){
		.tenant = one, .events = pair[0], .pidfd = -1, .client = -1, .shared = -1, .adopted = true};
	world->manager.workers = worker;
	world->manager.worker_count = one->clients = 1;
	for (int i = 0; i < SAID; i++) {
		(void)snprintf(event.text, sizeof(event.text), "cuNothing%d", i);
		assert_int_equal(send(pair[1], &event, sizeof(event), MSG_NOSIGNAL), sizeof(event));
	}
	(void)close(pair[1]);
	server_process_remove(&world->manager, worker);
	assert_int_equal(one->refused_functions, SAID);
	assert_null(world->manager.workers);
}

/* ---- a file whose file system does not answer ---- */

/* Where servers have what they give, for which the daemon raises the limit, too. */
static int have_high(int fd)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	return fcntl(fd, F_DUPFD_CLOEXEC, SHARE_FD);
}

/* Who has one open, and has it in @pair, too, in a datagram for the manager; and who owns the file system. */
struct silent {
	pid_t giver, owner;
	int pidfd, number, pair[2];
};

/* All is answered but FUSE_FLUSH, for which the kernel waits at each close(2). It ends by itself should a test hang. */
static _Noreturn void own_silent_file(int fuse)
{
	static char request[1 << 16];
	const struct fuse_in_header *in = (const struct fuse_in_header *)(const void *)request;
	const struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096};
	const struct fuse_attr_out attr = {.attr = {.ino = 1, .mode = S_IFREG | 0666, .nlink = 1, .blksize = 4096}};
	const struct fuse_open_out opened = {.fh = 1};

	(void)alarm(20);
	while (read(fuse, request, sizeof(request)) > 0 || errno == EINTR || errno == ENOENT) {
		struct fuse_out_header out = {.len = sizeof(out), .unique = in->unique};
		struct iovec parts[] = {{&out, sizeof(out)}, {NULL, 0}};

		if (in->opcode == FUSE_FLUSH)
			continue;
		if (in->opcode == FUSE_INIT)
			parts[1] = (struct iovec){(void *)(uintptr_t)&init, sizeof(init)};
		else if (in->opcode == FUSE_GETATTR)
			parts[1] = (struct iovec){(void *)(uintptr_t)&attr, sizeof(attr)};
		else if (in->opcode == FUSE_OPEN)
			parts[1] = (struct iovec){(void *)(uintptr_t)&opened, sizeof(opened)};
		else
			out.error = -ENOSYS;
		out.len += (uint32_t)parts[1].iov_len;
		(void)!writev(fuse, parts, 2);
	}
	_exit(0);
}

/* The mount is in the child's namespace alone. */
static _Noreturn void give_silent_file(struct silent *silent, const char *path, int tell)
{
	const struct start_event event = {.kind = START_EVENT_READY};
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC), fd;
	char options[96];

	(void)alarm(20);
	(void)snprintf(options, sizeof(options), "fd=%d,rootmode=100000,user_id=0,group_id=0", fuse);
	if (fuse < 0 || unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("silent", path, "fuse", 0, options) < 0)
		_exit(1);
	silent->giver = getpid();
	silent->owner = fork();
	if (silent->owner == 0)
		own_silent_file(fuse);
	(void)close(fuse);
	fd = open(path, O_RDWR | O_CLOEXEC);
	silent->number = fcntl(fd, F_DUPFD_CLOEXEC, SHARE_FD);
	if (fd < 0 || silent->number < 0 ||
	    descriptors_send(silent->pair[1], &event, sizeof(event), &fd, 1, 0) != sizeof(event) ||
	    write(tell, silent, sizeof(*silent)) != sizeof(*silent))
		_exit(1);
	for (;;)
		(void)pause();
}

/* Return: whether such a file can be had here. */
static bool open_silent_file(const struct world *world, struct silent *ret)
{
	_cleanup_close_ int file = open(world->server, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int told[2], wait_status;
	bool there;
	pid_t pid;

	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret->pair), 0);
	(void)close(have_high(file));
	pid = fork();
	if (pid == 0)
		give_silent_file(ret, world->server, told[1]);
	(void)close(told[1]);
	there = read(told[0], ret, sizeof(*ret)) == sizeof(*ret);
	(void)close(told[0]);
	(void)unlink(world->server);
	ret->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (!there)
		assert_int_equal(waitpid(pid, &wait_status, 0), pid);
	return there;
}

/* Whoever waited for it goes on. */
static void close_silent_file(const struct silent *silent)
{
	(void)kill(silent->owner, SIGKILL);
	(void)kill(silent->giver, SIGKILL);
	assert_int_equal(waitpid(silent->giver, NULL, 0), silent->giver);
}

/* ---- what one server has for another ---- */

static bool nobody_answers;

int __real_fstat(int fd, struct stat *ret);
int __wrap_fstat(int fd, struct stat *ret);
int __wrap_fstat(int fd, struct stat *ret)
{
	if (nobody_answers)
		fail_msg("a file of a container's file system is asked for");
	return __real_fstat(fd, ret);
}

int __real_statx(int folder, const char *path, int flags, unsigned mask, struct statx *ret);
int __wrap_statx(int folder, const char *path, int flags, unsigned mask, struct statx *ret);
int __wrap_statx(int folder, const char *path, int flags, unsigned mask, struct statx *ret)
{
	if (nobody_answers && !(flags & AT_STATX_DONT_SYNC))
		fail_msg("a file of a container's file system is asked for");
	return __real_statx(folder, path, flags, mask, ret);
}

static void wait_for_lender(struct worker *worker)
{
	if (server_process_is_lent_to(worker))
		assert_int_equal(poll(&(struct pollfd){.fd = worker->lender_pidfd, .events = POLLIN}, 1, 10000), 1);
	assert_false(server_process_is_lent_to(worker));
}

/* Return: the descriptor that came; -1: none did; -2: no answer. */
static int want(struct manager *manager, struct worker *worker, int end, uint64_t slot, int fd)
{
	struct start_event event = {.kind = START_EVENT_WANT, .number = slot << 32 | (uint32_t)fd}, answer = {0};
	struct iovec data = {&answer, sizeof(answer)};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int got = -1;

	assert_int_equal(send(end, &event, sizeof(event), MSG_NOSIGNAL), sizeof(event));
	server_process_receive_reply(manager, worker);
	wait_for_lender(worker);
	if (recvmsg(end, &message, MSG_DONTWAIT) != sizeof(answer))
		return -2;
	assert_true(answer.kind == START_EVENT_WANT && answer.number == event.number);
	if (message.msg_controllen > 0)
		memcpy(&got, CMSG_DATA(&control.header), sizeof(got));
	return got;
}

static void a_server_gets_memory_of_its_containers_alone(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0),
		      *two = add_tenant(&world->manager, "two", second_gpu, 0);
	const int self = (int)syscall(SYS_pidfd_open, getpid(), 0), low = memfd_create("test", MFD_CLOEXEC),
		  memory = have_high(low), null = open("/dev/null", O_RDWR | O_CLOEXEC), device = have_high(null);
	int pair[2];
	struct worker stranger = {.tenant = two, .pidfd = self, .slot = 4, .events = -1},
		      giver = {.next = &stranger, .tenant = one, .pidfd = self, .slot = 3, .events = -1},
		      taker = {.next = &giver, .tenant = one, .pidfd = self, .slot = 2};
	struct manager manager = {.workers = &taker};
	struct stat a, b;
	int got, count = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	taker.events = pair[0];
	got = want(&manager, &taker, pair[1], 3, memory);
	assert_true(got >= 0 && fstat(got, &a) == 0 && fstat(memory, &b) == 0 && a.st_ino == b.st_ino);
	(void)close(got);
	/* Where the server has its own; no memory; not there; of another container; of a slot without a server. */
	assert_true(memory >= SHARE_FD && device >= SHARE_FD);
	assert_int_equal(want(&manager, &taker, pair[1], 3, low), -1);
	nobody_answers = true;
	assert_int_equal(want(&manager, &taker, pair[1], 3, device), -1);
	nobody_answers = false;
	assert_int_equal(want(&manager, &taker, pair[1], 3, 9999), -1);
	assert_int_equal(want(&manager, &taker, pair[1], 4, memory), -1);
	assert_int_equal(want(&manager, &taker, pair[1], 5, memory), -1);
	/* While an answer is not read, there is no other. */
	for (int i = 0; i < 3; i++) {
		const struct start_event event = {.kind = START_EVENT_WANT, .number = 3ULL << 32 | (unsigned)memory};

		assert_int_equal(send(pair[1], &event, sizeof(event), MSG_NOSIGNAL), sizeof(event));
	}
	for (int i = 0; i < 3; i++) {
		server_process_receive_reply(&manager, &taker);
		wait_for_lender(&taker);
	}
	assert_int_equal(recv(pair[1], &(struct start_event){0}, sizeof(struct start_event), MSG_DONTWAIT),
			 sizeof(struct start_event));
	assert_int_equal(recv(pair[1], &(struct start_event){0}, sizeof(struct start_event), MSG_DONTWAIT), -1);
	/* Nor does one get so many that the manager does nothing else: 512, here without those of each second. */
	taker.asked = 500;
	taker.asked_at = manager_now() + 3600 * 1000;
	while (count < 100 && (got = want(&manager, &taker, pair[1], 3, memory)) >= 0) {
		(void)close(got);
		count++;
	}
	assert_int_equal(count, 12);
	cleanup_closep(&taker.events);
	(void)close(pair[1]);
	(void)close(memory);
	(void)close(low);
	(void)close(device);
	(void)close(null);
	(void)close(self);
}

/* SIGKILL does not end who closes it, so the manager is never to have it. */
static void a_file_that_never_closes_keeps_no_manager(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0);
	const int64_t began = manager_now();
	struct start_event event = {.kind = START_EVENT_WANT}, answer;
	struct silent silent;
	struct worker giver = {.tenant = one, .slot = 3}, taker = {.next = &giver, .tenant = one, .slot = 2};
	struct manager manager = {.workers = &taker};
	int pair[2];

	if (!open_silent_file(world, &silent))
		skip("needs root and FUSE");
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	giver.pidfd = silent.pidfd;
	taker.pidfd = one->pidfd;
	giver.events = silent.pair[0];
	taker.events = pair[0];
	event.number = 3ULL << 32 | (unsigned)silent.number;
	for (int i = 0; i < 2; i++)
		assert_int_equal(send(pair[1], &event, sizeof(event), MSG_NOSIGNAL), sizeof(event));
	server_process_receive_reply(&manager, &taker);
	assert_int_equal(poll(&(struct pollfd){.fd = pair[1], .events = POLLIN}, 1, 10000), 1);
	assert_int_equal(recv(pair[1], &answer, sizeof(answer), MSG_DONTWAIT), sizeof(answer));
	/* What took it ends with the file system, and until then there is no other for that server. */
	assert_true(server_process_is_lent_to(&taker));
	server_process_receive_reply(&manager, &taker);
	assert_int_equal(poll(&(struct pollfd){.fd = pair[1], .events = POLLIN}, 1, 100), 0);
	/* One that is sent, where the kernel cannot refuse that. */
	server_process_receive_reply(&manager, &giver);
	assert_int_equal(giver.events, -1);
	assert_between(manager_now() - began, 0, AT_ONCE_MS);
	close_silent_file(&silent);
	wait_for_lender(&taker);
	server_process_receive_reply(&manager, &taker);
	wait_for_lender(&taker);
	assert_int_equal(recv(pair[1], &answer, sizeof(answer), MSG_DONTWAIT), sizeof(answer));
	(void)close(pair[0]);
	(void)close(pair[1]);
	(void)close(silent.pair[1]);
	(void)close(silent.pidfd);
}

/* ---- what nobody reads ---- */

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
pid_t __real_fork(void);
pid_t __wrap_fork(void);
pid_t __wrap_fork(void)
{
	if (!no_process)
		return __real_fork();
	errno = EAGAIN;
	return -1;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	enum { PASSRIGHTS = 83 };

	if (before_6_16 && level == SOL_SOCKET && name == PASSRIGHTS) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return __real_setsockopt(fd, level, name, value, size);
}

/* Whoever closes this last, waits for the other end, which reads nothing. */
static int open_lingering(int *ret_other)
{
	static const char data[65536];
	const struct linger linger = {.l_onoff = 1, .l_linger = LINGERS};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	_cleanup_close_ int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = sizeof(address);

	assert_int_equal(bind(listener, (const struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, size), 0);
	*ret_other = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(*ret_other >= 0);
	while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return fd;
}

/* Sends such a descriptor, which nobody else has then, if the kernel lets it. Return: its other end. */
static int send_lingering(int to)
{
	struct start_event event = {.kind = START_EVENT_READY};
	const struct linger none = {.l_onoff = 1};
	int other, fd = open_lingering(&other);
	ssize_t sent;

	sent = descriptors_send(to, &event, sizeof(event), &fd, 1, 0);
	assert_true(sent > 0 || (!before_6_16 && errno == EPERM));
	if (sent < 0)
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)), 0);
	(void)close(fd);
	return other;
}

static int connect_to(const struct world *world, const char *id)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s/socket", world->directory, id);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void let_container_send(struct world *world)
{
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0);
	struct worker server = {.tenant = one};
	int fds[5], others[5], pair[2];
	const int64_t began = manager_now();

	/* Refused; accepted for a server that does not start; never accepted. */
	for (int i = 0; i < 3; i++) {
		fds[i] = connect_to(world, "one");
		others[i] = send_lingering(fds[i]);
	}
	one->limits.max_clients = 0;
	tenant_accept(&world->manager, one);
	assert_int_equal(one->denied, 1);
	one->limits.max_clients = 4;
	tenant_accept(&world->manager, one);
	assert_int_equal(one->connects, 1);
	tenant_end(&world->manager, one, "test");
	/* A server that was taken over: read, and not read. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	server.events = pair[0];
	for (int i = 3; i < 5; i++) {
		fds[i] = i == 3 ? pair[1] : -1;
		others[i] = send_lingering(pair[1]);
	}
	server_process_receive_reply(&(struct manager){0}, &server);
	assert_int_equal(server.events, -1);
	assert_between(manager_now() - began, 0, AT_ONCE_MS);
	for (int i = 0; i < 5; i++) {
		(void)close(others[i]);
		cleanup_closep(&fds[i]);
	}
	world_end(&world->manager);
}

static void what_a_container_sends_keeps_nobody_waiting(void **state)
{
	before_6_16 = true;
	let_container_send(*state);
	no_process = true;
	let_container_send(*state);
	before_6_16 = no_process = false;
	let_container_send(*state);
}

/* The numbers are others' by then. */
static void what_a_move_had_open_is_closed_once(void **state)
{
	struct world *world = *state;
	struct tenant *one = add_movable(&world->manager, "one");
	int others[2];

	one->suspension.program_pidfd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	one->suspension.program_out = open("/dev/null", O_RDONLY | O_CLOEXEC);
	suspension_close(&one->suspension);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		others[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	world_end(&world->manager);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_equal(close(others[i]), 0);
}

/* A process that nobody knows is left of an earlier manager. */
static void a_user_with_a_process_is_nobodys(void **state)
{
	struct world *world = *state;
	pid_t left;
	int pair[2];
	char byte;

	if (geteuid() != 0)
		skip("needs root");
	assert_int_equal(pipe(pair), 0);
	left = fork();
	if (left == 0) {
		if (setresuid(PRIVATE_UID_FIRST, PRIVATE_UID_FIRST, PRIVATE_UID_FIRST) == 0)
			(void)!write(pair[1], "", 1);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(pair[0], &byte, 1), 1);
	assert_false(tenant_may_use_uid(&world->manager, PRIVATE_UID_FIRST));
	(void)kill(left, SIGKILL);
	(void)waitpid(left, NULL, 0);
	(void)close(pair[0]);
	(void)close(pair[1]);
	assert_true(tenant_may_use_uid(&world->manager, PRIVATE_UID_FIRST));
}

/* ---- what a server finds ---- */

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

struct found {
	uid_t uid;
	rlim_t threads;
	int variables;
	int refused; /* errno of descriptors for the manager; 0: it gets them */
	char mps[64];
};

/* Return: 0; negative errno. */
static int send_descriptor(int socket_fd, int fd)
{
	return descriptors_send(socket_fd, "", 1, &fd, 1, 0) < 0 ? -errno : 0;
}

/* This program is the server, too. */
static int be_server(void)
{
	struct found found = {.uid = getuid()};
	const char *mps = getenv("CUDA_MPS_PIPE_DIRECTORY");
	struct rlimit threads = {0};
	char byte;

	(void)getrlimit(RLIMIT_NPROC, &threads);
	found.threads = threads.rlim_max;
	found.refused = -send_descriptor(START_MANAGER, STDIN_FILENO);
	while (environ[found.variables])
		found.variables++;
	(void)snprintf(found.mps, sizeof(found.mps), "%s", mps ? mps : "");
	/* It lives until its client ends: the manager looks for it when it has started it. */
	return send(START_CLIENT, &found, sizeof(found), 0) == sizeof(found) && recv(START_CLIENT, &byte, 1, 0) == 0
		       ? 0
		       : 1;
}

/* Starts this program as a server of a container, with a client, and hears what it has found. */
static struct tenant *start_finder(struct world *world, int pair[static 2], struct found *ret)
{
	struct tenant *one = add_tenant(&world->manager, "one", second_gpu, 0);
	struct pollfd answer;

	one->first = 0;
	world->manager.server = "/proc/self/exe";
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(server_process_start(&world->manager, one, pair[1]), 0);
	answer = (struct pollfd){.fd = pair[0], .events = POLLIN};
	assert_int_equal(poll(&answer, 1, 30000), 1);
	assert_int_equal(recv(pair[0], ret, sizeof(*ret), 0), sizeof(*ret));
	(void)close(pair[0]);
	return one;
}

static void a_server_is_a_limited_user_that_asks_no_mps_daemon(void **state)
{
	struct world *world = *state;
	struct tenant *one;
	struct found found = {0};
	struct pollfd end;
	int pair[2];

	if (geteuid() != 0)
		skip("needs root");
	one = start_finder(world, pair, &found);
	assert_int_equal(found.uid, one->uid);
	assert_between(found.threads, 1, 4096);
	assert_int_equal(found.variables, 2);
	assert_string_equal(found.mps, "/nonexistent");
	if (setsockopt(pair[1], SOL_SOCKET, SO_PASSRIGHTS, &(int){0}, sizeof(int)) == 0)
		assert_int_equal(found.refused, EPERM);
	(void)close(pair[1]);
	end = (struct pollfd){.fd = world->manager.workers->pidfd, .events = POLLIN};
	assert_int_equal(poll(&end, 1, 30000), 1);
	server_process_remove(&world->manager, world->manager.workers);
	assert_int_equal(one->crashes, 0);
}

/* Before Linux 5.11 the call has no flag that marks descriptors for execve(2), and before 5.9 there is none. */
static void a_server_starts_without_close_range(void **state)
{
	struct found found = {0};
	int pair[2], status;
	pid_t pid;

	if (geteuid() != 0)
		skip("needs root");
	pid = fork();
	if (pid == 0) {
		forget_calls((const int[]){SYS_close_range}, 1);
		(void)start_finder(*state, pair, &found);
		_exit(found.variables == 2 ? 0 : 1);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static struct tenant *add_owned(struct manager *manager, const char *id, struct owner owner, uint64_t memory)
{
	struct tenant *tenant = add_tenant(manager, id, both_gpus, memory);

	tenant->owner = owner;
	return tenant;
}

/* Return: of owner_admit(), of one that is not the manager's. @memory: what it asks for, and what it gets */
static int admit(struct manager *manager, struct owner owner, uint64_t *memory)
{
	struct tenant tenant = {.owner = owner, .limits = {.memory = *memory}};
	const char *why = NULL;
	int r = owner_admit(manager, &tenant, &why);

	assert_true((r == -EDQUOT || r == -EAGAIN) == (why != NULL));
	*memory = tenant.limits.memory;
	return r;
}

static void a_users_containers_share_its_memory(void **state)
{
	struct manager *manager = &((struct world *)*state)->manager;
	const uint64_t gib = 1ULL << 30;
	struct owner one = {.uid = 1000,
			    .limits = {.memory = 4 * gib, .share = 100, .max_clients = 4},
			    .containers = 8},
		     other = {.uid = 1001,
			      .limits = {.memory = STR_SHARE(50), .share = 100, .max_clients = 4},
			      .containers = 8};
	struct tenant *first = add_owned(manager, "1000+first", one, 3 * gib);
	const struct tenant *second;
	uint64_t memory = 0;

	assert_int_equal(admit(manager, one, &memory), 0);
	assert_int_equal(memory, gib);
	memory = 2 * gib;
	assert_int_equal(admit(manager, one, &memory), 0);
	assert_int_equal(memory, gib);
	memory = gib / 2 | STR_SHARE(30);
	assert_int_equal(admit(manager, one, &memory), 0);
	assert_true(memory == (gib / 2 | STR_SHARE(30)));
	(void)add_owned(manager, "1000+second", one, gib);
	memory = 1;
	assert_int_equal(admit(manager, one, &memory), -EDQUOT);
	/* What others have is another matter, and a percentage is counted as one. */
	(void)add_owned(manager, "1001+first", other, STR_SHARE(30));
	memory = 0;
	assert_int_equal(admit(manager, other, &memory), 0);
	assert_true(memory == STR_SHARE(20));
	memory = STR_SHARE(50) | 6 * gib;
	assert_int_equal(admit(manager, other, &memory), 0);
	assert_true(memory == (STR_SHARE(20) | 6 * gib));
	/* What is less by an amount is counted so, once it is known of what. */
	second = add_owned(manager, "1001+second", other, STR_SHARE(20) | gib);
	memory = gib;
	assert_int_equal(admit(manager, other, &memory), -EAGAIN);
	(void)memcpy(manager->watcher.gpus[1], second->gpus[1].bytes, sizeof(second->gpus[1].bytes));
	(void)memcpy(manager->watcher.gpus[0], second->gpus[0].bytes, sizeof(second->gpus[0].bytes));
	manager->watcher.gpu_count = 2;
	for (uint64_t gpu = 0; gpu < 2; gpu++)
		gpu_watch_serve(manager,
				&(struct start_event){.kind = START_EVENT_MEMORY,
						      .number = gpu << START_EVENT_GPU_BIT | (gpu ? 20U : 40U) << 10});
	memory = gib;
	assert_int_equal(admit(manager, other, &memory), 0);
	assert_true(memory == (STR_SHARE(15) | gib));
	/* One that has ended has it as long as a server lives. */
	tenant_end(manager, first, "test");
	first->clients = 1;
	memory = 1;
	assert_int_equal(admit(manager, one, &memory), -EAGAIN);
	first->clients = 0;
	memory = 0;
	assert_int_equal(admit(manager, one, &memory), 0);
	assert_int_equal(memory, 3 * gib);
	/* Without a limit of its own. */
	one.limits.memory = 0;
	memory = 0;
	assert_int_equal(admit(manager, one, &memory), 0);
	assert_int_equal(memory, 0);
}

/* Those are watched where containers are now, and not the ones that they were given. */
static void a_container_that_was_moved_is_counted_where_it_is(void **state)
{
	struct manager *manager = &((struct world *)*state)->manager;
	const uint64_t gib = 1ULL << 30;
	const struct owner one = {
		.uid = 1000, .limits = {.memory = STR_SHARE(50), .share = 100, .max_clients = 4}, .containers = 8};
	struct tenant *moved = add_movable(manager, "1000+moved");
	uint64_t memory = gib;

	moved->owner = one;
	moved->limits.memory = STR_SHARE(50) | gib;
	moved->places = start_exchange(0, 0, 1);
	assert_int_equal(admit(manager, one, &memory), -EAGAIN);
	(void)memcpy(manager->watcher.gpus[0], moved->gpus[1].bytes, sizeof(moved->gpus[1].bytes));
	manager->watcher.gpu_count = 1;
	gpu_watch_serve(manager, &(struct start_event){.kind = START_EVENT_MEMORY, .number = 20U << 10});
	memory = gib;
	assert_int_equal(admit(manager, one, &memory), 0);
	assert_true(memory == (STR_SHARE(45) | gib));
}

/* Of the bytes that a user may have nothing is left, whatever its containers' percentages come to. */
static void what_is_not_known_keeps_nobody_waiting_for_bytes(void **state)
{
	struct manager *manager = &((struct world *)*state)->manager;
	const uint64_t gib = 1ULL << 30;
	const struct owner one = {
		.uid = 1000, .limits = {.memory = gib, .share = 100, .max_clients = 4}, .containers = 8};
	uint64_t memory = gib;

	(void)add_owned(manager, "1000+first", one, STR_SHARE(50) | gib);
	assert_int_equal(admit(manager, one, &memory), -EDQUOT);
}

static void a_users_containers_share_places_and_time(void **state)
{
	struct manager *manager = &((struct world *)*state)->manager;
	struct owner one = {.uid = 1000, .limits = {.share = 60, .max_clients = 3}, .containers = 2};
	struct tenant *roots = add_tenant(manager, "roots", both_gpus, 0),
		      *first = add_owned(manager, "1000+first", one, 0),
		      *second = add_owned(manager, "1000+second", one, 0);
	uint64_t memory = 0;

	assert_int_equal(admit(manager, one, &memory), -EDQUOT);
	one.containers = 3;
	assert_int_equal(admit(manager, one, &memory), 0);
	/* What the settings say now counts for those that are there. */
	assert_int_equal(first->owner.containers, 3);
	first->clients = 2;
	assert_true(owner_has_place(manager, second));
	second->clients = 1;
	assert_false(owner_has_place(manager, second));
	assert_false(tenant_has_place(manager, first));
	assert_true(tenant_has_place(manager, roots));
	assert_int_equal(owner_share(manager, roots), 100);
	assert_int_equal(owner_share(manager, first), 30);
	second->wanted_share = 50;
	assert_int_equal(owner_share(manager, first), 40);
	assert_int_equal(owner_share(manager, second), 20);
	first->wanted_share = 10;
	assert_int_equal(owner_share(manager, first), 10);
	assert_int_equal(owner_share(manager, second), 50);
	decider_divide(manager);
	assert_int_equal(second->limits.share, 50);
	first->clients = second->clients = 0;
}

/* As the manager's without CAP_SYS_RESOURCE. @ret_before: what to give back */
static void drop_capabilities(struct __user_cap_data_struct ret_before[static _LINUX_CAPABILITY_U32S_3])
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

	assert_int_equal(syscall(SYS_capget, &header, ret_before), 0);
	memcpy(none, ret_before, sizeof(none));
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		none[i].effective = 0;
	assert_int_equal(syscall(SYS_capset, &header, none), 0);
}

static void regain_capabilities(const struct __user_cap_data_struct before[static _LINUX_CAPABILITY_U32S_3])
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	assert_int_equal(syscall(SYS_capset, &header, before), 0);
}

/* Any process of the same user may have put them there; the kernel counts them together. */
static void while_too_many_descriptors_are_on_their_way_the_decider_stays(void **state)
{
	enum { MOST = 64 };
	struct manager *manager = &((struct world *)*state)->manager;
	struct __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3];
	struct tenant *one = add_tenant(manager, "one", second_gpu, 0);
	struct rlimit before, few;
	struct turns_order order;
	int pair[2], way[2], fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, way), 0);
	manager->decider.pid = getpid();
	manager->decider.fd = pair[0];
	for (int i = 0; i <= MOST; i++)
		assert_int_equal(descriptors_send(way[0], "", 1, &way[0], 1, 0), 1);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){MOST, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	drop_capabilities(capabilities);
	decider_add(manager, one);
	regain_capabilities(capabilities);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(recv(pair[1], &order, sizeof(order), 0), -1);
	assert_int_equal(errno, EAGAIN);
	/* It is told of it later. */
	assert_int_equal(decider_next(manager), one->decide_at);
	decider_look(manager, false);
	assert_int_equal(recv(pair[1], &order, sizeof(order), 0), -1);
	one->decide_at = 1;
	decider_look(manager, false);
	assert_int_equal(descriptors_receive(pair[1], &order, sizeof(order), fds, 2, 0), sizeof(order));
	assert_int_equal(order.user, one->uid);
	assert_true(fds[0] >= 0 && fds[1] >= 0);
	assert_int_equal(decider_next(manager), INT64_MAX);
	manager->decider.pid = 0;
	for (size_t i = 0; i < 2; i++) {
		(void)close(fds[i]);
		(void)close(pair[i]);
		(void)close(way[i]);
	}
}

static void the_decider_is_told_of_all_containers_before_it_reads(void **state)
{
	struct manager *manager = &((struct world *)*state)->manager;
	struct tenant *one = add_tenant(manager, "one", second_gpu, 0);
	struct pollfd wait = {.events = POLLIN};

	if (geteuid() != 0)
		skip("only root can start it");
	(void)add_tenant(manager, "two", second_gpu, 0);
	/* It writes to /dev/null, and reads nothing. */
	manager->decider.path = "/usr/bin/yes";
	decider_look(manager, false);
	assert_true(manager->decider.pid > 0);
	for (int i = 2; i < MANAGER_TENANTS_MAX; i++)
		decider_add(manager, one);
	wait.fd = manager->decider.fd;
	assert_int_equal(poll(&wait, 1, 0), 0);
	assert_int_equal(one->decide_at, 0);
	(void)kill(manager->decider.pid, SIGKILL);
	(void)waitpid(manager->decider.pid, NULL, 0);
	(void)close(manager->decider.fd);
	manager->decider.pid = 0;
}

/* A manager that was started before an update knows no other status of a program that has done nothing. */
_Static_assert(CHECKPOINT_NOT_BEGUN == 127, "as what could not be executed ends");

/* As the driver's program would end, of a container whose library is called so. */
static enum checkpoint_end be_checkpoint(char *const *argv)
{
	if (streq(argv[1], "resume"))
		return CHECKPOINT_NO_ROOM;
	return argv[2][0] == 'a' ? CHECKPOINT_AWAY : CHECKPOINT_NOT_BEGUN;
}

int main(int argc, char **argv)
{
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, world_open, world_close)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uuids_are_read_or_refused),
		WITH_WORLD(a_users_containers_share_its_memory),
		WITH_WORLD(a_container_that_was_moved_is_counted_where_it_is),
		WITH_WORLD(what_is_not_known_keeps_nobody_waiting_for_bytes),
		WITH_WORLD(a_users_containers_share_places_and_time),
		WITH_WORLD(while_too_many_descriptors_are_on_their_way_the_decider_stays),
		WITH_WORLD(the_decider_is_told_of_all_containers_before_it_reads),
		cmocka_unit_test(names_are_those_of_directories),
		WITH_WORLD(a_server_gets_memory_of_its_containers_alone),
		WITH_WORLD(a_file_that_never_closes_keeps_no_manager),
		cmocka_unit_test(gpus_are_exchanged_and_each_stays_one),
		WITH_WORLD(a_container_moves_where_it_may),
		WITH_WORLD(a_move_that_a_program_has_begun_is_ended),
		WITH_WORLD(a_lost_gpu_is_of_who_is_there),
		WITH_WORLD(nothing_begins_on_a_drained_gpu),
		WITH_WORLD(what_is_asked_for_again_is_the_same_whatever_became_of_it),
		WITH_WORLD(a_drain_tells_why_what_stays_stays),
		WITH_WORLD(exclusive_gpus_take_nothing),
		WITH_WORLD(the_least_loaded_gpu_is_first),
		WITH_WORLD(a_gpu_that_is_lost_is_nobodys),
		WITH_WORLD(what_a_server_says_against_a_gpu_is_forgotten),
		WITH_WORLD(connections_wait_above_a_rate),
		WITH_WORLD(a_place_is_kept_for_each_container_without_a_server),
		WITH_WORLD(what_servers_have_is_added_up),
		WITH_WORLD(the_driver_has_no_longer_than_the_hosts_memory_takes),
		WITH_WORLD(time_is_of_the_gpu_that_gave_it),
		WITH_WORLD(a_new_manager_counts_on),
		WITH_WORLD(what_ended_without_a_manager_was_counted_once),
		WITH_WORLD(what_was_not_saved_whole_is_saved_before_the_host_sleeps),
		WITH_WORLD(what_can_be_neither_begun_nor_left_says_why),
		WITH_WORLD(what_was_not_saved_whole_stays_so_until_it_is),
		WITH_WORLD(what_was_saved_whole_sleeps_though_it_could_not_be_resumed),
		WITH_WORLD(each_container_has_a_user_and_a_socket_of_its_own),
		WITH_WORLD(a_ledger_brings_back_what_lives),
		WITH_WORLD(a_servers_quota_is_taken_over_and_nothing_else),
		WITH_WORLD(servers_read_their_orders_and_do_not_write_them),
		WITH_WORLD(a_new_manager_speaks_to_the_servers_of_the_one_before),
		WITH_WORLD(containers_are_named_by_how_their_names_begin),
		WITH_WORLD(a_damaged_ledger_brings_nothing),
		WITH_WORLD(servers_write_so_many_lines),
		WITH_WORLD(memory_that_kernels_reach_is_written_down),
		WITH_WORLD(containers_share_the_hosts_memory),
		WITH_WORLD(many_small_containers_take_nothing_from_a_large_one),
		WITH_WORLD(a_new_manager_shares_what_is_left),
		WITH_WORLD(what_a_server_leaves_counts_until_its_client_ends),
		WITH_WORLD(what_nobody_has_any_more_does_not_count),
		WITH_WORLD(much_is_freed_in_parts),
		WITH_WORLD(what_could_not_be_freed_is_freed_later),
		WITH_WORLD(a_container_has_so_many_remnants),
		WITH_WORLD(a_new_manager_knows_what_servers_had_left),
		WITH_WORLD(a_new_manager_knows_which_was_left_last),
		WITH_WORLD(a_keeper_stays_while_no_other_can_be_started),
		WITH_WORLD(a_keeper_stays_until_the_next_one_is_in_the_file),
		WITH_WORLD(a_keeper_that_was_killed_has_a_successor),
		WITH_WORLD(what_is_left_is_freed_where_no_manager_comes),
		WITH_WORLD(what_a_server_said_before_its_end_is_heard),
		WITH_WORLD(a_server_is_heard_so_often),
		WITH_WORLD(what_a_container_sends_keeps_nobody_waiting),
		WITH_WORLD(what_a_move_had_open_is_closed_once),
		WITH_WORLD(a_user_with_a_process_is_nobodys),
		WITH_WORLD(a_server_is_a_limited_user_that_asks_no_mps_daemon),
		WITH_WORLD(a_server_starts_without_close_range),
	};

	if (argc == 1 && streq(argv[0], "ctr-gpu-vcuda"))
		return be_server();
	if (argc > 2 && streq(argv[0], "ctr-gpu-vcuda-checkpoint"))
		return (int)be_checkpoint(argv);
	return cmocka_run_group_tests_name("manager", tests, NULL, NULL);
}
