/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Control groups of containers' servers, on files that are called as the kernel's. What the kernel makes of them,
 * vcuda/test/e2e/vcudad-unit.bats sees in a guest.
 */

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "vcuda/manager/manager.h"

#define OWN "slice/vcudad.service"
#define UUID "GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4"

struct tree {
	char directory[64], sockets[80];
	int hierarchy;
	struct manager manager;
};

static void tree_write(const struct tree *tree, const char *path, const char *text)
{
	_cleanup_close_ int fd = openat(tree->hierarchy, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static void tree_make(const struct tree *tree, const char *path)
{
	assert_int_equal(mkdirat(tree->hierarchy, path, 0700), 0);
}

static void tree_expect(const struct tree *tree, const char *path, const char *text)
{
	_cleanup_free_ char *found = NULL;

	assert_int_equal(fd_read_kernel_file(tree->hierarchy, path, 4096, &found), 0);
	assert_string_equal(found, text);
}

static bool tree_has(const struct tree *tree, const char *path)
{
	return faccessat(tree->hierarchy, path, F_OK, 0) == 0;
}

/* With a group for the manager in which it is alone, and one that a container will have. */
static int tree_open(void **state)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	char pid[16];

	assert_non_null(tree);
	(void)strcpy(tree->directory, "/tmp/ctr-gpu-group-XXXXXX");
	assert_non_null(mkdtemp(tree->directory));
	tree->hierarchy = open(tree->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(tree->hierarchy >= 0);
	(void)snprintf(tree->sockets, sizeof(tree->sockets), "%s/sockets", tree->directory);
	tree->manager =
		(struct manager){.directory = tree->sockets, .server = "/bin/true", .host_memory = 4096, .groups = -1};
	tree_make(tree, "sockets");
	tree_make(tree, "slice");
	tree_make(tree, OWN);
	tree_make(tree, OWN "/manager");
	tree_make(tree, OWN "/container-one");
	(void)snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	tree_write(tree, OWN "/cgroup.procs", pid);
	tree_write(tree, OWN "/cgroup.controllers", "cpu memory pids\n");
	tree_write(tree, OWN "/cgroup.subtree_control", "");
	tree_write(tree, OWN "/manager/cgroup.procs", "");
	tree_write(tree, OWN "/container-one/cgroup.procs", "");
	tree_write(tree, OWN "/container-one/memory.max", "");
	tree_write(tree, OWN "/container-one/memory.swap.max", "");
	tree_write(tree, OWN "/container-one/memory.current", "123456\n");
	tree_write(tree, OWN "/container-one/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n");
	tree_write(tree, OWN "/container-one/pids.max", "");
	tree_write(tree, OWN "/container-one/cpu.max", "");
	*state = tree;
	return 0;
}

static void tree_end_containers(struct tree *tree)
{
	while (tree->manager.tenants) {
		tenant_end(&tree->manager, tree->manager.tenants, "test");
		tenant_remove(&tree->manager, tree->manager.tenants);
	}
}

static int tree_close(void **state)
{
	struct tree *tree = *state;
	_cleanup_free_ char *command = NULL;

	tree_end_containers(tree);
	if (tree->manager.groups >= 0)
		(void)close(tree->manager.groups);
	if (tree->manager.has_processors)
		for (int i = 0; i < 2; i++)
			(void)close(i ? tree->manager.hierarchy : tree->manager.watch);
	(void)close(tree->hierarchy);
	assert_int_equal(str_format(&command, "rm -r %s", tree->directory), 0);
	assert_int_equal(system(command), 0);
	free(tree);
	return 0;
}

/* Return: 0 or what tenant_open() said. */
static int tree_add(struct tree *tree, uint64_t host_memory, struct tenant **ret)
{
	struct tenant *tenant = tenant_new("one");
	int r;

	assert_non_null(tenant);
	tenant->library = strdup("");
	tenant->limits.host_memory = host_memory;
	tenant->limits.max_clients = 4;
	tenant->first = 0;
	assert_int_equal(tenant_add_gpu(tenant, UUID, "", "", true), 0);
	r = tenant_open(&tree->manager, tenant, -1, -1, -1);
	if (r < 0)
		tenant_free(tenant);
	else
		*ret = tenant;
	return r;
}

static void the_managers_own_group_is_taken(void **state)
{
	struct tree *tree = *state;
	char pid[16];

	cgroup_take(&tree->manager, tree->hierarchy, "12:pids:/x\n0::/" OWN "\n");
	assert_true(tree->manager.groups >= 0);
	assert_string_equal(tree->manager.unlimited, "");
	(void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
	tree_expect(tree, OWN "/manager/cgroup.procs", pid);
	tree_expect(tree, OWN "/cgroup.subtree_control", "+cpu +memory +pids");
}

static void so_it_is_by_a_manager_that_was_started_in_its_part(void **state)
{
	struct tree *tree = *state;

	tree_write(tree, OWN "/cgroup.procs", "");
	cgroup_take(&tree->manager, tree->hierarchy, "0::/" OWN "/manager\n");
	assert_true(tree->manager.groups >= 0);
	tree_expect(tree, OWN "/cgroup.subtree_control", "+cpu +memory +pids");
}

static void one_that_is_not_its_alone_is_left(void **state)
{
	static const struct {
		const char *own, *controllers, *why;
	} cases[] = {
		{"0::/\n", "memory pids\n", "of its own"},
		{"0::/manager\n", "memory pids\n", "of its own"},
		{"4:memory:/" OWN "\n", "memory pids\n", "of its own"},
		{"", "memory pids\n", "of its own"},
		{"0::/" OWN "\n", "", "no controllers"},
		{"0::/" OWN "\n", "cpu memory\n", "no controllers"},
		{"0::/" OWN "\n", "memory2 xmemory pids\n", "no controllers"},
		{"0::/" OWN "/gone\n", "memory pids\n", "No such file"},
		{"0::/" OWN "\n", "pids memory\n", "shares"},
	};
	struct tree *tree = *state;
	char pids[32];

	(void)snprintf(pids, sizeof(pids), "%d\n%d\n", (int)getpid(), (int)getppid());
	tree_write(tree, OWN "/cgroup.procs", pids);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		tree_write(tree, OWN "/cgroup.controllers", cases[i].controllers);
		tree->manager.unlimited[0] = '\0';
		cgroup_take(&tree->manager, tree->hierarchy, cases[i].own);
		assert_int_equal(tree->manager.groups, -1);
		assert_non_null(strstr(tree->manager.unlimited, cases[i].why));
	}
	tree_expect(tree, OWN "/cgroup.subtree_control", "");
	tree_expect(tree, OWN "/manager/cgroup.procs", "");
}

static void a_containers_servers_have_a_limit(void **state)
{
	struct tree *tree = *state;
	struct tenant *one;

	cgroup_take(&tree->manager, tree->hierarchy, "0::/" OWN "\n");
	assert_int_equal(tree_add(tree, 8192, &one), 0);
	tree_expect(tree, OWN "/container-one/memory.max", "8192");
	tree_expect(tree, OWN "/container-one/memory.swap.max", "0");
	tree_expect(tree, OWN "/container-one/pids.max", "4096");
	assert_int_equal(cgroup_measure_memory(one), 123456);
	assert_int_equal(cgroup_limit_memory(one, 16384), 0);
	tree_expect(tree, OWN "/container-one/memory.max", "16384");
	/* What was before it is not its. */
	assert_false(cgroup_has_killed(one));
	tree_write(tree, OWN "/container-one/memory.events", "low 0\noom_kill 3\n");
	assert_true(cgroup_has_killed(one));
	assert_false(cgroup_has_killed(one));
	/* Two at once. */
	tree_write(tree, OWN "/container-one/memory.events", "low 0\noom_kill 5\n");
	assert_true(cgroup_has_killed(one));
	assert_true(cgroup_has_killed(one));
	assert_false(cgroup_has_killed(one));
	assert_int_equal(cgroup_enter(one->group), 0);
	tree_expect(tree, OWN "/container-one/cgroup.procs", "0");
	tree_end_containers(tree);
	/* Half of the host's memory, if nobody says otherwise. */
	assert_int_equal(tree_add(tree, 0, &one), 0);
	tree_expect(tree, OWN "/container-one/memory.max", "40964");
	assert_int_equal(one->limits.host_memory, 4096);
}

static void a_limit_that_cannot_be_set_is_no_grant(void **state)
{
	struct tree *tree = *state;
	struct tenant *one;

	cgroup_take(&tree->manager, tree->hierarchy, "0::/" OWN "\n");
	assert_int_equal(unlinkat(tree->hierarchy, OWN "/container-one/memory.swap.max", 0), 0);
	assert_int_equal(tree_add(tree, 8192, &one), 0);
	tree_end_containers(tree);
	assert_int_equal(unlinkat(tree->hierarchy, OWN "/container-one/memory.max", 0), 0);
	assert_int_equal(tree_add(tree, 8192, &one), -ENOENT);
}

/* ---- processors ---- */

static void the_least_of_a_group_and_those_above_is_what_it_may_have(void **state)
{
	static const struct {
		const char *group, *most;
	} cases[] = {
		{"/", "max"},
		{"/slice", "max"},
		{"/slice/half", "50000 100000"},
		/* Of a longer period, more time may be less. */
		{"/slice/half/fifth", "100000 500000"},
		{"/slice/half/two", "50000 100000"},
		{"/slice/half/free/inner", "50000 100000"},
		{"/slice/half/nonsense", "50000 100000"},
		{"/slice/none", "max"},
		{"/../slice/half", "max"},
	};
	struct tree *tree = *state;
	char text[CPU_LIMIT_TEXT_SIZE];
	int error;

	tree_make(tree, "slice/half");
	tree_make(tree, "slice/half/fifth");
	tree_make(tree, "slice/half/two");
	tree_make(tree, "slice/half/free");
	tree_make(tree, "slice/half/nonsense");
	tree_write(tree, "slice/cpu.max", "max 100000\n");
	tree_write(tree, "slice/half/cpu.max", "50000 100000\n");
	tree_write(tree, "slice/half/fifth/cpu.max", "100000 500000\n");
	tree_write(tree, "slice/half/two/cpu.max", "200000 100000\n");
	tree_write(tree, "slice/half/free/cpu.max", "max 100000\n");
	tree_write(tree, "slice/half/nonsense/cpu.max", "1 0\n");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cgroup_print_cpu_limit(cgroup_read_cpu_limit(tree->hierarchy, cases[i].group, -1, &error), text);
		if (!streq(text, cases[i].most))
			fail_msg("%s: %s", cases[i].group, text);
	}
}

static void servers_have_as_much_of_processors_as_their_container(void **state)
{
	static const char group[] = "3:pids:/x\n0::/slice/one\n";
	struct tree *tree = *state;
	struct tenant *one;

	tree_make(tree, "slice/one");
	tree_write(tree, "slice/one/cpu.max", "150000 100000\n");
	cgroup_take(&tree->manager, tree->hierarchy, "0::/" OWN "\n");
	assert_true(tree->manager.has_processors);
	assert_int_equal(tree_add(tree, 0, &one), 0);
	tree_expect(tree, OWN "/container-one/cpu.max", "max");
	assert_int_equal(cgroup_follow_processors(&tree->manager, one, group), 0);
	tree_expect(tree, OWN "/container-one/cpu.max", "150000 100000");
	assert_true(cgroup_count_cpus(one->processor) == 1.5);
	/* It is not written again and again. */
	tree_write(tree, OWN "/container-one/cpu.max", "");
	assert_int_equal(cgroup_follow_processors(&tree->manager, one, group), 0);
	tree_expect(tree, OWN "/container-one/cpu.max", "");
	/* Who is in no group of version 2 any more, changes nothing. */
	assert_int_equal(cgroup_follow_processors(&tree->manager, one, "3:pids:/x\n"), 0);
	assert_true(cgroup_count_cpus(one->processor) == 1.5);
	tree_write(tree, "slice/one/cpu.max", "max 100000\n");
	assert_int_equal(cgroup_follow_processors(&tree->manager, one, group), 0);
	tree_expect(tree, OWN "/container-one/cpu.max", "max");
	/* A kernel that limits nobody. */
	assert_int_equal(unlinkat(tree->hierarchy, OWN "/container-one/cpu.max", 0), 0);
	tree_end_containers(tree);
	assert_int_equal(tree_add(tree, 0, &one), 0);
}

/* Return: whether something was changed that is watched. */
static bool tree_was_changed(struct tree *tree)
{
	const bool changed = poll(&(struct pollfd){.fd = tree->manager.watch, .events = POLLIN}, 1, 0) > 0;

	cgroup_follow_changes(&tree->manager);
	return changed;
}

static void what_a_container_may_have_is_watched_until_it_ends(void **state)
{
	static const char group[] = "0::/slice/one\n";
	struct tree *tree = *state;
	struct tenant *one;

	tree_make(tree, "slice/one");
	tree_write(tree, "slice/cpu.max", "max 100000\n");
	tree_write(tree, "slice/one/cpu.max", "max 100000\n");
	cgroup_take(&tree->manager, tree->hierarchy, "0::/" OWN "\n");
	assert_int_equal(tree_add(tree, 0, &one), 0);
	tree_write(tree, "slice/one/cpu.max", "max 100000\n");
	assert_false(tree_was_changed(tree));
	assert_int_equal(cgroup_follow_processors(&tree->manager, one, group), 0);
	tree_write(tree, "slice/one/cpu.max", "150000 100000\n");
	assert_true(tree_was_changed(tree));
	assert_false(tree_was_changed(tree));
	tree_write(tree, "slice/cpu.max", "50000 100000\n");
	assert_true(tree_was_changed(tree));
	tree_end_containers(tree);
	tree_write(tree, "slice/cpu.max", "max 100000\n");
	assert_false(tree_was_changed(tree));
}

/* What they may have is looked at now and then, and watched as soon as that can be. */
static void without_watches_that_is_known(void **state)
{
	struct tree *tree = *state;
	struct rlimit before, none;

	cgroup_take(&tree->manager, tree->hierarchy, "0::/" OWN "\n");
	assert_false(tree->manager.unwatched);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){1, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	cgroup_watch(&tree->manager);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(tree->manager.watch, -1);
	assert_true(tree->manager.unwatched);
	cgroup_follow_changes(&tree->manager);
	assert_true(tree->manager.watch >= 0);
	assert_false(tree->manager.unwatched);
}

/* Return: how many files are watched. */
static size_t tree_count_watches(const struct tree *tree)
{
	_cleanup_free_ char *text = NULL;
	size_t count = 0;
	char path[48];

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", tree->manager.watch);
	assert_int_equal(fd_read_kernel_file(AT_FDCWD, path, 1 << 20, &text), 0);
	for (const char *at = text; (at = strstr(at, "inotify wd:")); at++)
		count++;
	return count;
}

/* One that makes groups, is in another one with each connection, or in a very deep one, or changes its limits all the time. */
static void a_container_with_groups_of_its_own_costs_no_more(void **state)
{
	enum { GROUPS = 1200, DEEP = 40, CHANGES = 1000 };
	struct tree *tree = *state;
	char path[512] = "slice/one", text[600];
	struct tenant *one;

	tree_make(tree, path);
	cgroup_take(&tree->manager, tree->hierarchy, "0::/" OWN "\n");
	assert_int_equal(tree_add(tree, 0, &one), 0);
	for (int i = 0; i < GROUPS; i++) {
		(void)snprintf(path, sizeof(path), "slice/one/%d", i);
		(void)snprintf(text, sizeof(text), "0::/%s\n", path);
		tree_make(tree, path);
		strcat(path, "/cpu.max");
		tree_write(tree, path, "max 100000\n");
		assert_int_equal(cgroup_follow_processors(&tree->manager, one, text), 0);
	}
	assert_true(tree_count_watches(tree) <= 2 * MANAGER_TENANTS_MAX);
	cgroup_watch(&tree->manager);
	(void)strcpy(path, "slice/one/deep");
	tree_make(tree, path);
	for (int i = 0; i < DEEP; i++) {
		(void)snprintf(text, sizeof(text), "%s/cpu.max", path);
		tree_write(tree, text, "max 100000\n");
		strcat(path, "/below");
		tree_make(tree, path);
	}
	(void)snprintf(text, sizeof(text), "0::/%s\n", path);
	tree_write(tree, "slice/one/cpu.max", "150000 100000\n");
	assert_int_equal(cgroup_follow_processors(&tree->manager, one, text), 0);
	assert_true(cgroup_count_cpus(one->processor) == 1.5);
	assert_true(tree_count_watches(tree) <= 32);
	for (int i = 0; i < CHANGES; i++)
		tree_write(tree, i % 2 ? "slice/one/cpu.max" : "slice/one/deep/cpu.max", "max 100000\n");
	cgroup_follow_changes(&tree->manager);
	assert_int_equal(poll(&(struct pollfd){.fd = tree->manager.watch, .events = POLLIN}, 1, 0), 1);
}

static void without_a_controller_of_processors_the_rest_is_limited(void **state)
{
	struct tree *tree = *state;
	struct tenant *one;

	tree_write(tree, OWN "/cgroup.controllers", "memory pids\n");
	cgroup_take(&tree->manager, tree->hierarchy, "0::/" OWN "\n");
	assert_true(tree->manager.groups >= 0);
	assert_false(tree->manager.has_processors);
	tree_expect(tree, OWN "/cgroup.subtree_control", "+memory +pids");
	assert_int_equal(tree_add(tree, 8192, &one), 0);
	tree_expect(tree, OWN "/container-one/memory.max", "8192");
	tree_expect(tree, OWN "/container-one/cpu.max", "");
}

static void without_groups_nothing_is_limited(void **state)
{
	struct tree *tree = *state;
	struct tenant *one;

	assert_int_equal(tree_add(tree, 8192, &one), 0);
	assert_int_equal(one->group, -1);
	assert_int_equal(cgroup_enter(one->group), 0);
	assert_int_equal(cgroup_measure_memory(one), 0);
	assert_false(cgroup_has_killed(one));
	tree_expect(tree, OWN "/container-one/memory.max", "");
}

static void groups_of_containers_that_are_gone_are_removed(void **state)
{
	static const char *const files[] = {"cgroup.procs",  "memory.max",     "memory.swap.max", "pids.max",
					    "memory.events", "memory.current", "cpu.max"};
	struct tree *tree = *state;
	struct tenant *one;

	cgroup_take(&tree->manager, tree->hierarchy, "0::/" OWN "\n");
	tree_make(tree, OWN "/container-gone");
	tree_make(tree, OWN "/other");
	assert_int_equal(tree_add(tree, 0, &one), 0);
	/* Where the kernel's are, nothing has to be removed first. */
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		char path[128];

		(void)snprintf(path, sizeof(path), OWN "/container-one/%s", files[i]);
		assert_int_equal(unlinkat(tree->hierarchy, path, 0), 0);
	}
	cgroup_sweep(&tree->manager);
	assert_false(tree_has(tree, OWN "/container-gone"));
	assert_true(tree_has(tree, OWN "/container-one"));
	assert_true(tree_has(tree, OWN "/other"));
	tree_end_containers(tree);
	assert_false(tree_has(tree, OWN "/container-one"));
	assert_true(tree_has(tree, OWN "/manager"));
}

/* Return: whether a server of that container ran. One that ends at once may be gone before it is looked at. */
static bool tree_start_server(struct tree *tree, struct tenant *tenant)
{
	const uint64_t before = tenant->crashes;
	struct pollfd end = {.events = POLLIN};
	int pair[2], r;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	r = server_process_start(&tree->manager, tenant, pair[1]);
	(void)close(pair[0]);
	(void)close(pair[1]);
	if (r < 0)
		return false;
	end.fd = tree->manager.workers->pidfd;
	assert_int_equal(poll(&end, 1, 30000), 1);
	server_process_remove(&tree->manager, tree->manager.workers);
	return tenant->crashes == before;
}

/* This program is the server, too: until its client ends. */
static int be_server(void)
{
	char byte;

	return recv(START_CLIENT, &byte, 1, 0) == 0 ? 0 : 1;
}

static void a_server_that_cannot_go_there_does_not_start(void **state)
{
	struct tree *tree = *state;
	struct tenant *one;

	if (geteuid() != 0)
		skip("needs root");
	cgroup_take(&tree->manager, tree->hierarchy, "0::/" OWN "\n");
	assert_int_equal(tree_add(tree, 0, &one), 0);
	tree->manager.server = "/proc/self/exe";
	assert_true(tree_start_server(tree, one));
	tree_expect(tree, OWN "/container-one/cgroup.procs", "0");
	assert_int_equal(unlinkat(tree->hierarchy, OWN "/container-one/cgroup.procs", 0), 0);
	assert_false(tree_start_server(tree, one));
}

int main(int argc, char **argv)
{
#define WITH_TREE(test) cmocka_unit_test_setup_teardown(test, tree_open, tree_close)
	const struct CMUnitTest tests[] = {
		WITH_TREE(the_managers_own_group_is_taken),
		WITH_TREE(so_it_is_by_a_manager_that_was_started_in_its_part),
		WITH_TREE(one_that_is_not_its_alone_is_left),
		WITH_TREE(a_containers_servers_have_a_limit),
		WITH_TREE(a_limit_that_cannot_be_set_is_no_grant),
		WITH_TREE(the_least_of_a_group_and_those_above_is_what_it_may_have),
		WITH_TREE(servers_have_as_much_of_processors_as_their_container),
		WITH_TREE(what_a_container_may_have_is_watched_until_it_ends),
		WITH_TREE(without_watches_that_is_known),
		WITH_TREE(a_container_with_groups_of_its_own_costs_no_more),
		WITH_TREE(without_a_controller_of_processors_the_rest_is_limited),
		WITH_TREE(without_groups_nothing_is_limited),
		WITH_TREE(groups_of_containers_that_are_gone_are_removed),
		WITH_TREE(a_server_that_cannot_go_there_does_not_start),
	};

	if (argc == 1 && streq(argv[0], "ctr-gpu-vcuda"))
		return be_server();
	return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
