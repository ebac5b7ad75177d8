/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu-guard: loads the BPF programs that hold a container's choice among the adapters behind /dev/dxg, and writes
 * choices by hand. A container's start writes its own choice without this program, once the programs are loaded.
 */

#include "guard/program/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <mntent.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/print.h"
#include "base/str.h"
#include "guard/choice.h"
#include "guard/helper.h"

/* ---- choices of cgroups that are gone, where the kernel did not announce their end ---- */

enum { FILEID_KERNFS = 0xfe }; /* include/linux/exportfs.h: a handle that is the inode's number */

/* A mount of each hierarchy, by enum guard_hierarchy; -1: there is none, and its choices stay. */
struct mounts {
	int fds[2];
};

static void expire_close(struct mounts *mounts)
{
	cleanup_closep(&mounts->fds[0]);
	cleanup_closep(&mounts->fds[1]);
}

/*
 * Something else may be mounted over a hierarchy. Asked there for a cgroup, another file system says that it is gone.
 */
static int expire_open_mount(const char *path, enum guard_hierarchy hierarchy)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && choice_hierarchy(fd) == (int)hierarchy ? steal_fd(&fd) : -1;
}

static void expire_open(struct mounts *ret)
{
	_cleanup_(cleanup_fclosep) FILE *file = setmntent("/proc/self/mounts", "re");
	const struct mntent *mount;

	while (file && (mount = getmntent(file))) {
		const bool is_v1 = streq(mount->mnt_type, "cgroup") && hasmntopt(mount, "devices");
		const enum guard_hierarchy hierarchy = is_v1 ? GUARD_DEVICES : GUARD_CGROUP2;

		if ((is_v1 || streq(mount->mnt_type, "cgroup2")) && ret->fds[hierarchy] < 0)
			ret->fds[hierarchy] = expire_open_mount(mount->mnt_dir, hierarchy);
	}
}

static bool expire_is_gone(const struct mounts *mounts, const struct guard_key *key)
{
	union {
		struct file_handle handle;
		char bytes[sizeof(struct file_handle) + sizeof(uint64_t)];
	} place = {.handle = {.handle_bytes = sizeof(uint64_t), .handle_type = FILEID_KERNFS}};
	uint64_t id = key->cgroup;
	int fd;

	if (key->hierarchy > GUARD_DEVICES || mounts->fds[key->hierarchy] < 0)
		return false;
	memcpy(place.handle.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(mounts->fds[key->hierarchy], &place.handle, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return errno == ESTALE || errno == ENOENT;
	(void)close(fd);
	return false;
}

/* Removes them. Return: 0, with how many there were and are; negative errno with @err set. */
static int expire(const struct choices *choices, size_t *ret_removed, size_t *ret_left, struct err *err)
{
	_cleanup_(expire_close) struct mounts mounts = {{-1, -1}};
	struct guard_key key, next;
	size_t removed = 0, left = 0;
	int r;

	expire_open(&mounts);
	r = choice_next(choices, NULL, &next);
	while (r == 0) {
		key = next;
		/* Before it is removed, or the map would begin anew. */
		r = choice_next(choices, &key, &next);
		if (expire_is_gone(&mounts, &key) && choice_remove(choices, &key) == 0)
			removed++;
		else
			left++;
	}
	if (r != -ENOENT)
		return err_set(err, r, "cannot read the guard's choices: %m");
	*ret_removed = removed;
	*ret_left = left;
	return 0;
}

/* ---- verbs ---- */

enum { STATUS_USAGE = 2 };

struct command {
	const char *name, *arguments, *text;
	int (*run)(char **arguments, struct err *err);
	const char *option; /* the only one that it has, or NULL */
	int operands;       /* how many at most */
};

static int main_load(char **arguments, struct err *err)
{
	return attach_do(arguments[0] && streq(arguments[0], "--verbose"), err);
}

static int main_unload(char **arguments, struct err *err)
{
	(void)arguments;
	return attach_undo(err);
}

static int main_check(char **arguments, struct err *err)
{
	_cleanup_strv_ struct strv missing = {0};
	_cleanup_free_ char *weakness = NULL;
	struct btf_facts facts;
	int r = btf_check_check(&facts, &missing);

	(void)arguments;
	for (size_t i = 0; i < missing.count; i++)
		(void)printf("%s\n", missing.items[i]);
	if (r == 0 && missing.count == 0 && tracing_is_off())
		return err_set(err, -EOPNOTSUPP, TRACING_OFF);
	if (r == 0)
		r = preempt_check(&weakness);
	if (weakness)
		(void)printf("%s: " PREEMPT_EFFECT "\n", weakness);
	return r == 0 && missing.count > 0 ? err_set(err, CTR_GPU_E_GUARD, "this kernel or driver cannot be guarded")
					   : r;
}

static int main_open(struct choices *ret, struct err *err)
{
	int r = choices_open(ret);

	if (r == -ENOENT)
		return err_set_advised(err, CTR_GPU_E_GUARD, ("the guard is not loaded"),
				       ("sudo " CTR_GPU_LIBEXECDIR "/ctr-gpu-guard load"));
	return r < 0 ? err_set(err, r, "cannot open the guard's choices: %m") : 0;
}

/* A cgroup by its directory, and the maps. */
static int main_open_cgroup(const char *directory, struct choices *ret_choices, struct guard_key *ret, struct err *err)
{
	_cleanup_close_ int fd = -1;
	int r;

	if (!directory)
		return err_set(err, CTR_GPU_E_BAD_ARGUMENT, "which cgroup? name its directory below /sys/fs/cgroup");
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = fd < 0 ? -errno : choice_key(fd, ret);
	if (r < 0)
		return err_set_advised(
			err, r, ("%s is no cgroup that can have a choice: %m", directory),
			("Name a directory below /sys/fs/cgroup, with cgroup version 1 one of the controller "
			 "devices."));
	return main_open(ret_choices, err);
}

/* "LUID-" and 16 digits, as ctr-gpu info shows it, or the digits alone; high part first. */
static bool main_read_luid(const char *text, uint64_t *ret)
{
	char *end;

	if (strncasecmp(text, "LUID-", strlen("LUID-")) == 0)
		text += strlen("LUID-");
	if (str_has_prefix(text, "0x"))
		text += 2;
	*ret = strtoull(text, &end, 16);
	return end != text && !*end && text[0] != '-' && strlen(text) <= 16;
}

static int main_read_luids(char **texts, uint64_t luids[GUARD_ADAPTERS_MAX], size_t *ret_count, struct err *err)
{
	bool none = texts[0] && streq(texts[0], "none") && !texts[1];
	size_t count = 0;

	if (!texts[0])
		return err_set(err, CTR_GPU_E_BAD_ARGUMENT,
			       "which adapters? name their LUIDs, as ctr-gpu info shows them, or none for no adapter");
	for (; texts[count] && !none; count++)
		if (count == GUARD_ADAPTERS_MAX || !main_read_luid(texts[count], &luids[count]))
			return err_set(err, CTR_GPU_E_BAD_ARGUMENT, "%.64s is not a LUID, or one too many",
				       texts[count]);
	*ret_count = count;
	return 0;
}

static int main_allow(char **arguments, struct err *err)
{
	_cleanup_choices_ struct choices choices = CHOICES_NONE;
	uint64_t luids[GUARD_ADAPTERS_MAX];
	struct guard_key key;
	size_t count = 0;
	int r = arguments[0] ? main_read_luids(arguments + 1, luids, &count, err) : 0;

	if (r == 0)
		r = main_open_cgroup(arguments[0], &choices, &key, err);
	if (r != 0)
		return r;
	r = choice_set(&choices, &key, luids, count);
	return r < 0 ? err_set(err, r, "cannot write the choice: %m") : 0;
}

static int main_forget(char **arguments, struct err *err)
{
	_cleanup_choices_ struct choices choices = CHOICES_NONE;
	struct guard_key key;
	int r = main_open_cgroup(arguments[0], &choices, &key, err);

	if (r == 0 && (r = choice_remove(&choices, &key)) < 0)
		return err_set(err, r, "cannot remove the choice: %m");
	return r;
}

static int main_sweep(char **arguments, struct err *err)
{
	_cleanup_choices_ struct choices choices = CHOICES_NONE;
	size_t removed = 0, left = 0;
	int r = choices_open(&choices);

	(void)arguments;
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_set(err, r, "cannot open the guard's choices: %m");
	r = expire(&choices, &removed, &left, err);
	if (r == 0)
		(void)printf("%zu removed, %zu left\n", removed, left);
	return r;
}

/* ---- status ---- */

static json_t *main_choice_json(const struct guard_key *key, const struct guard_choice *choice)
{
	return json_pack("{s:I, s:s, s:b, s:o}", "cgroup", (json_int_t)key->cgroup, "hierarchy",
			 key->hierarchy == GUARD_CGROUP2 ? "cgroup2" : "devices", "raced", choice->state & GUARD_RACED,
			 "luids",
			 print_array(i, choice->count, json_sprintf("LUID-%016" PRIx64, (uint64_t)choice->luids[i])));
}

static json_t *main_choices_json(const struct choices *choices)
{
	json_t *list = json_array();
	struct guard_key key;
	int r = choice_next(choices, NULL, &key);

	while (r == 0) {
		struct guard_choice choice;

		if (choice_get(choices, &key, &choice) == 0 && choice.count <= GUARD_ADAPTERS_MAX)
			(void)json_array_append_new(list, main_choice_json(&key, &choice));
		r = choice_next(choices, &key, &key);
	}
	return list;
}

static void main_print_status(const json_t *status)
{
	const json_t *choices = json_object_get(status, "choices"), *choice, *luid;
	const json_t *links = json_object_get(status, "links"), *link;
	const char *weakness = json_string_value(json_object_get(status, "weakness"));
	size_t i, j;

	(void)printf("loaded      %s\n", json_is_true(json_object_get(status, "loaded")) ? "yes" : "no");
	if (json_array_size(links) > 0)
		(void)printf("attached    %zu programs, by the kernel's links", json_array_size(links));
	json_array_foreach ((json_t *)links, i, link)
		(void)printf(" %" JSON_INTEGER_FORMAT "%s", json_integer_value(link),
			     i + 1 == json_array_size(links) ? "\n" : "");
	if (weakness)
		(void)printf("weakness    %s\n", weakness);
	json_array_foreach ((json_t *)choices, i, choice) {
		(void)printf("%-11s %" JSON_INTEGER_FORMAT, json_string_value(json_object_get(choice, "hierarchy")),
			     json_integer_value(json_object_get(choice, "cgroup")));
		json_array_foreach (json_object_get(choice, "luids"), j, luid)
			(void)printf(" %s", json_string_value(luid));
		if (j == 0)
			(void)printf(" none");
		(void)printf("%s\n", json_is_true(json_object_get(choice, "raced"))
					     ? " raced with the guard, and makes no further call"
					     : "");
	}
}

/* The kernel's own numbers of what is attached. */
static json_t *main_links_json(void)
{
	_cleanup_close_ int pins = pins_open(NULL);
	struct links links = {0};

	if (pins >= 0)
		(void)links_read(pins, &links);
	return print_array(i, links.count, json_integer(links.ids[i]));
}

/* Whether the programs have no choice to look for. */
static bool main_is_idle(int counts)
{
	unsigned total = 0;

	for (unsigned i = 0; counts >= 0 && i < GUARD_HIERARCHIES; i++) {
		unsigned count = 1;

		(void)choice_read_count(counts, i, &count);
		total |= count;
	}
	return counts >= 0 && total == 0;
}

/* Why the programs that are loaded do not hold against all. */
static int main_find_weakness(char **ret)
{
	_cleanup_free_ char *why = NULL;
	int r;

	if (tracing_is_off())
		return str_format(ret, TRACING_OFF ": nothing is held");
	r = preempt_check(&why);
	return r == 0 && why ? str_format(ret, "%s: " PREEMPT_EFFECT, why) : r;
}

static int main_status(char **arguments, struct err *err)
{
	_cleanup_choices_ struct choices choices = CHOICES_NONE;
	_cleanup_free_ char *weakness = NULL;
	bool other = false, loaded = attach_is_done(&other);
	int r = choices_open(&choices);
	json_t *status;

	if ((loaded || other) && main_find_weakness(&weakness) < 0)
		return -ENOMEM;
	status = json_pack("{s:b, s:b, s:b, s:s?, s:o, s:o}", "loaded", loaded || other, "otherVersion", other, "idle",
			   main_is_idle(choices.counts), "weakness", weakness, "links", main_links_json(), "choices",
			   main_choices_json(&choices));

	if (r < 0 && r != -ENOENT) {
		json_decref(status);
		return err_set(err, r, "cannot open the guard's choices: %m");
	}
	if (arguments[0] && streq(arguments[0], "--json"))
		return print_write_json(status, stdout);
	main_print_status(status);
	json_decref(status);
	return 0;
}

static const struct command commands[] = {
	{"load", " [--verbose]", "load and attach the programs, unless they are", main_load, "--verbose", 0},
	{"unload", "", "take them away: nothing is guarded any more", main_unload, NULL, 0},
	{"check", "", "say what this kernel and driver lack for it", main_check, NULL, 0},
	{"allow", " CGROUP LUID...|none", "let the processes of a cgroup use these adapters alone", main_allow, NULL,
	 INT_MAX},
	{"forget", " CGROUP", "let them use all again", main_forget, NULL, 1},
	{"sweep", "", "forget cgroups that are gone", main_sweep, NULL, 0},
	{"status", " [--json]", "show what is loaded, and every choice", main_status, "--json", 0},
};

static void main_usage(FILE *file)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		(void)fprintf(file, "%s ctr-gpu-guard %s%-*s %s\n", i == 0 ? "usage:" : "      ", commands[i].name,
			      (int)(24 - strlen(commands[i].name)), commands[i].arguments, commands[i].text);
}

/* Return: an argument that the command does not know; NULL if there is none. */
static const char *main_find_unknown(const struct command *command, char **arguments)
{
	for (int i = 0; arguments[i]; i++)
		if (arguments[i][0] == '-' ? !command->option || !streq(arguments[i], command->option)
					   : i >= command->operands)
			return arguments[i];
	return NULL;
}

static int main_run(const struct command *command, char **arguments)
{
	const char *unknown = main_find_unknown(command, arguments);
	char message[ERR_MESSAGE_MAX];
	struct err err = {0};
	int r;

	if (unknown) {
		(void)fprintf(stderr, "ctr-gpu-guard %s: '%s' is unknown, or one argument too many\n", command->name,
			      unknown);
		return STATUS_USAGE;
	}
	r = command->run(arguments, &err);
	(void)fflush(stdout);
	if (r != 0)
		(void)fprintf(stderr, "ctr-gpu-guard: [%s] %s\n", err_name(r),
			      err.text[0] ? err_message(&err, message) : strerror(r < 0 ? -r : 0));
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int main_refuse(const char *name)
{
	const char *names[ARRAY_SIZE(commands)];
	char suggestion[SUGGESTION_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		names[i] = commands[i].name;
	(void)fprintf(stderr, "ctr-gpu-guard: unknown command '%s'%s\n", name,
		      str_suggest(names, ARRAY_SIZE(names), name, suggestion));
	main_usage(stderr);
	return STATUS_USAGE;
}

int main(int argc, char **argv)
{
	if (argc == 2 && streq(argv[1], "--version")) {
		(void)printf("ctr-gpu-guard " CTR_GPU_VERSION "\n");
		return EXIT_SUCCESS;
	}
	if (argc > 1 && streq(argv[argc - 1], "--help")) {
		main_usage(stdout);
		return EXIT_SUCCESS;
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands) && argc > 1; i++)
		if (streq(commands[i].name, argv[1]))
			return main_run(&commands[i], argv + 2);
	if (argc > 1)
		return main_refuse(argv[1]);
	main_usage(stderr);
	return STATUS_USAGE;
}
