/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What kind of host this is, and why it has no GPU if it has none; its kernel, SELinux and AppArmor; what it lets users
 * other than root do.
 */

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/doctor/doctor.h"
#include "engines/daemon.h"
#include "lib/context.h"
#include "system/trusted_file.h"

#define CHECKS_DECLARE(name) extern const struct backend_checks checks_##name;
#define CHECKS_ADDRESS(name) &checks_##name,
BACKENDS(CHECKS_DECLARE)
static const struct backend_checks *const kinds[] = {BACKENDS(CHECKS_ADDRESS)};
_Static_assert(ARRAY_SIZE(kinds) < CHECKS_KINDS_MAX, "a host can have every kind, and NULL behind them");

/* Processors tell programs of a hypervisor (x86: CPUID's leaf 1, ECX's bit 31); firmware names the machine's maker. */
static bool machine_is_virtual(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/cpuinfo", "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0)
		if (str_has_prefix(line, "flags"))
			return strstr(line, " hypervisor") != NULL;
	return file_exists("/sys/firmware/devicetree/base/hypervisor") || file_exists("/sys/hypervisor/type");
}

static const char *machine_advise_none(void)
{
	_cleanup_free_ char *maker = file_text("/sys/class/dmi/id/sys_vendor");

	if (!machine_is_virtual())
		return "See that the GPU, if there is one, has power and a seat, and is on in the firmware's setup: "
		       "lspci shows it then.";
	if (maker && str_has_prefix(maker, "Microsoft"))
		return "Assign a GPU to this virtual machine on its Hyper-V host: Add-VMGpuPartitionAdapter, or DDA.";
	return "Pass a GPU through to this virtual machine on its host (Hyper-V: Add-VMGpuPartitionAdapter, or DDA).";
}

static void machine_add_none(struct findings *findings)
{
	_cleanup_strv_ struct strv devices = {0};
	_cleanup_free_ char *names = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(kinds) && findings->count == 0; i++)
		kinds[i]->explain(findings);
	if (findings->count > 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		(void)strv_add(&devices, kinds[i]->backend->device);
	(void)strv_join(&devices, ", no ", &names);
	findings_add(findings, "host.no-gpu", SEVERITY_PROBLEM,
		     "no GPU here: no %s, none on the PCI bus\n"
		     "%s To see ctr-gpu without a GPU: sudo make demo, in its source.",
		     names ? names : "device", machine_advise_none());
}

static void machine_add_kinds(struct doctor_context *examination)
{
	_cleanup_strv_ struct strv texts = {0};
	_cleanup_free_ char *text = NULL;
	struct utsname name = {0};
	const char *id = NULL;

	(void)uname(&name);
	for (size_t i = 0; examination->here[i]; i++)
		(void)strv_add(&texts, examination->here[i]->describe(&id));
	(void)strv_join(&texts, "; ", &text);
	findings_add(&examination->findings, examination->here[1] ? "host.both" : id, SEVERITY_OK, "%s, Linux %s",
		     text ? text : "", name.release);
}

/* Which program made the container that this is. To systemd, WSL is one. */
static void machine_add_container(struct findings *findings)
{
	_cleanup_free_ char *text = file_text("/run/systemd/container");
	const char *manager = text && !str_has_prefix(text, "wsl") ? text
			      : file_exists("/.dockerenv")         ? "docker"
			      : file_exists("/run/.containerenv")  ? "podman"
								   : NULL;

	if (manager)
		findings_add(findings, "host.container", SEVERITY_NOTE,
			     "this is the inside of a container (%.*s): what it got was decided at its creation\n"
			     "Run ctr-gpu doctor on the host of this container.",
			     (int)strcspn(manager, "\n"), manager);
}

void machine_take_kinds(struct doctor_context *examination)
{
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		for (size_t j = 0; j < examination->host->present_count; j++)
			if (examination->host->present[j] == kinds[i]->backend)
				examination->here[count++] = kinds[i];
}

void check_machine(struct doctor_context *examination)
{
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i]->is_here ? kinds[i]->is_here() : file_is_device(kinds[i]->backend->device))
			examination->here[count++] = kinds[i];
	if (count > 0)
		machine_add_kinds(examination);
	else
		machine_add_none(&examination->findings);
	machine_add_container(&examination->findings);
}

/* ---- kernel ---- */

/* The kernel's system calls that the hook uses. */

/* Makes the call with arguments that every kernel refuses, so that it has no effect. */
static bool kernel_has_call(long number)
{
	return syscall(number, -1, NULL, -1, NULL, 0) == 0 || errno != ENOSYS;
}

void check_kernel(struct doctor_context *examination)
{
	bool mounts =
		kernel_has_call(SYS_open_tree) && kernel_has_call(SYS_move_mount) && kernel_has_call(SYS_mount_setattr);
	const char *cgroup = file_exists("/sys/fs/cgroup/cgroup.controllers") ? "cgroup v2"
			     : file_exists("/sys/fs/cgroup/devices")          ? "cgroup v1"
									      : "no device cgroup";

	if (!kernel_has_call(SYS_openat2))
		findings_add(&examination->findings, "kernel.too-old", SEVERITY_PROBLEM,
			     "the kernel lacks openat2: no container gets a GPU\n"
			     "Linux 5.6 or later has it; on WSL: wsl --update.");
	else if (mounts)
		findings_add(&examination->findings, "kernel.new", SEVERITY_OK,
			     "mounts by descriptor, paths resolved in the root, %s", cgroup);
	else
		findings_add(&examination->findings, "kernel.old", SEVERITY_NOTE,
			     "no open_tree, move_mount or mount_setattr: the slower ways of older kernels are taken, "
			     "%s\n"
			     "Linux 5.12 or later has them; on WSL: wsl --update.",
			     cgroup);
}

/* ---- security ---- */

/* SELinux and AppArmor, where they stand between a container and the device. */

#define SELINUX "/sys/fs/selinux"

/* What loads our module into the policy. */
#define SELINUX_LOAD CTR_GPU_DATADIR "/selinux"

/*
 * Booleans that let containers use devices, of these types or of every type: our module's; those of the targeted policy
 * (Fedora, RHEL, openSUSE); the reference policy's (Debian, Gentoo).
 */
static const struct policy {
	const char *boolean, *types[3], *remedy;
} policies[] = {
	{"ctr_gpu_containers",
	 {"dri_device_t", "xserver_misc_device_t", "hsa_device_t"},
	 "sudo restorecon on it and sudo setsebool -P ctr_gpu_containers 1; or "},
	{"container_use_devices", {NULL}, "sudo setsebool -P container_use_devices 1; or "},
	{"container_use_dri_devices", {"dri_device_t"}, NULL},
	{"container_use_xserver_devices", {"xserver_misc_device_t"}, NULL},
	{"container_use_dri",
	 {"dri_device_t"},
	 "sudo chcon -t dri_device_t on it and sudo setsebool -P container_use_dri 1; or "},
};

/* A boolean's file has the current and the pending value: "1 1". Return: -1 where the policy lacks the boolean. */
static int security_read_boolean(const char *name)
{
	_cleanup_free_ char *path = NULL;

	return str_format(&path, SELINUX "/booleans/%s", name) < 0 ? -1 : (int)file_number(path, -1);
}

static bool security_policy_allows(const struct policy *policy, const char *label)
{
	bool typed = !policy->types[0];

	for (size_t i = 0; i < ARRAY_SIZE(policy->types) && policy->types[i]; i++)
		typed = typed || strstr(label, policy->types[i]);
	return typed && security_read_boolean(policy->boolean) == 1;
}

/* Return: what to do about a device that containers may not use, or nothing. */
static const char *security_find_remedy(void)
{
	if (security_read_boolean(policies[0].boolean) < 0 && access(SELINUX_LOAD, X_OK) == 0)
		return "sudo " SELINUX_LOAD " load; or ";
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		if (policies[i].remedy && security_read_boolean(policies[i].boolean) >= 0)
			return policies[i].remedy;
	return "";
}

static void security_check_selinux(struct findings *findings, const char *node)
{
	char label[128] = "";

	if (getxattr(node, "security.selinux", label, sizeof(label) - 1) <= 0)
		(void)snprintf(label, sizeof(label), "unknown");
	for (size_t i = 0; i < ARRAY_SIZE(policies); i++)
		if (security_policy_allows(&policies[i], label)) {
			findings_add(findings, "security.selinux", SEVERITY_OK,
				     "SELinux is enforcing; containers may use %s: %s is on", node,
				     policies[i].boolean);
			return;
		}
	findings_add(findings, "security.selinux", SEVERITY_WARNING,
		     "SELinux is enforcing and keeps containers from %s (label %s)\n"
		     "%sper container: --security-opt label=disable",
		     node, label, security_find_remedy());
}

void check_security(struct doctor_context *examination)
{
	_cleanup_free_ char *apparmor = file_text("/sys/module/apparmor/parameters/enabled");

	if (file_number(SELINUX "/enforce", 0) == 1)
		for (size_t i = 0; examination->here[i]; i++)
			security_check_selinux(&examination->findings, examination->here[i]->backend->device);
	else if (apparmor && apparmor[0] == 'Y')
		findings_add(&examination->findings, "security.apparmor", SEVERITY_OK,
			     "AppArmor is on; engines' own profiles let containers use devices they were given");
	else
		findings_add(&examination->findings, "security.none", SEVERITY_OK,
			     "neither SELinux nor AppArmor is in the way");
}

/* ---- rootless ---- */

/* Whether users other than root can make containers with a GPU. */

enum {
	ROOTLESS_FILE_MAX = 16 * 1024 * 1024, /* a line for each of the machine's users */
	ROOTLESS_IDS = 65536,
	ROOTLESS_FIRST = 100000, /* SUB_UID_MIN of login.defs(5) */
};

#define ROOTLESS_LAST 0xfffffffeULL /* the next one stands for no id */

static char *rootless_read_file(const char *path)
{
	char *text = NULL;

	return fd_read_file_at(AT_FDCWD, path, ROOTLESS_FILE_MAX, &text, NULL) == 0 ? text : NULL;
}

/* Lines `user:first:count`, the user by name or number. */
static bool rootless_has_subordinates(const char *path, const char *name, uid_t uid)
{
	_cleanup_free_ char *text = rootless_read_file(path);
	char number[24];

	(void)snprintf(number, sizeof(number), "%u", (unsigned)uid);
	for (const char *line = text; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t length = strcspn(line, ":\n");

		if (line[length] == ':' && ((length == strlen(name) && strncmp(line, name, length) == 0) ||
					    (length == strlen(number) && strncmp(line, number, length) == 0)))
			return true;
	}
	return false;
}

/* The ids from @first to before @end. */
struct rootless_range {
	unsigned long long first, end;
};

struct rootless_ranges {
	struct rootless_range *items;
	size_t count;
};

static int rootless_compare(const void *a, const void *b)
{
	const struct rootless_range *one = a, *other = b;

	return one->first < other->first ? -1 : one->first > other->first;
}

/* Adds those that a file gives. Return: 0 or -ENOMEM. */
static int rootless_add_ranges(const char *path, struct rootless_ranges *ranges)
{
	_cleanup_free_ char *text = rootless_read_file(path);

	for (const char *line = text; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *ids = line + strcspn(line, ":\n");
		struct rootless_range *items;
		unsigned long long first, count;
		char *next;

		if (*ids != ':' || ids[1] < '0' || ids[1] > '9')
			continue;
		first = strtoul(ids + 1, &next, 10);
		if (*next != ':' || next[1] < '0' || next[1] > '9' || first > ROOTLESS_LAST)
			continue;
		count = strtoul(next + 1, NULL, 10);
		if (count > ROOTLESS_LAST)
			count = ROOTLESS_LAST;
		items = array_grow(ranges->items, ranges->count, sizeof(*items));
		if (!items)
			return -ENOMEM;
		ranges->items = items;
		items[ranges->count++] = (struct rootless_range){first, first + count};
	}
	return 0;
}

/*
 * Ids that no file gives to anyone: users who share some could reach each other's containers. @ret: the first of them.
 * Return: whether there are enough.
 */
static bool rootless_find_free(unsigned long long *ret)
{
	struct rootless_ranges ranges = {0};
	unsigned long long first = ROOTLESS_FIRST;
	int r = rootless_add_ranges("/etc/subuid", &ranges);

	if (r == 0)
		r = rootless_add_ranges("/etc/subgid", &ranges);
	if (ranges.count)
		qsort(ranges.items, ranges.count, sizeof(*ranges.items), rootless_compare);
	for (size_t i = 0; i < ranges.count && ranges.items[i].first < first + ROOTLESS_IDS; i++)
		if (ranges.items[i].end > first)
			first = ranges.items[i].end;
	free(ranges.items);
	*ret = first;
	return r == 0 && first + ROOTLESS_IDS - 1 <= ROOTLESS_LAST;
}

/* With nsswitch.conf(5), line "subid:", they come from a directory service alone. */
static bool rootless_has_service(void)
{
	_cleanup_free_ char *text = rootless_read_file("/etc/nsswitch.conf");

	for (const char *line = text; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *word = str_has_prefix(line, "subid:") ? line + strlen("subid:") : NULL;

		if (word && !str_has_prefix(word + strspn(word, " \t"), "files"))
			return true;
	}
	return false;
}

/* By the setuid bit, or by capabilities, which an image of a system loses that was unpacked without attributes. */
static bool rootless_may_map(const char *program)
{
	struct stat st;
	char value[64];

	if (stat(program, &st) < 0 || !(st.st_mode & S_IXOTH))
		return false;
	return (st.st_uid == 0 && (st.st_mode & S_ISUID)) ||
	       getxattr(program, "security.capability", value, sizeof(value)) > 0;
}

/* Return: a program that is missing or without rights; NULL. */
static const char *rootless_find_powerless(void)
{
	static const char *const programs[] = {"/usr/bin/newuidmap", "/usr/bin/newgidmap"};

	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		if (!rootless_may_map(programs[i]))
			return programs[i];
	return NULL;
}

/*
 * The name of a user. getpwuid(3) is not used, since in a static program it would load the libraries that
 * /etc/nsswitch.conf names. For users of other databases the environment has the name.
 *
 * Return: valid until the next call; "" for an unknown user.
 */
static const char *rootless_user_name(uid_t uid)
{
	_cleanup_fclose_ FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *entry = NULL;
	const char *name = getenv(geteuid() == 0 ? "SUDO_USER" : "USER");

	while (file && (entry = fgetpwent(file)))
		if (entry->pw_uid == uid)
			return entry->pw_name;
	return name ? name : "";
}

/* A machine without an engine that users can run lacks nothing. */
static enum severity rootless_severity(void)
{
	return path_lookup_is_here("podman") || path_lookup_is_here("dockerd-rootless.sh") ? SEVERITY_WARNING
											   : SEVERITY_NOTE;
}

static void rootless_add_no_ids(struct findings *findings, const char *name)
{
	const char *user = name[0] ? name : "this user";
	unsigned long long first, last;

	if (!rootless_find_free(&first)) {
		findings_add(findings, "rootless.no-ids", rootless_severity(),
			     "%s has no subordinate ids in /etc/subuid and /etc/subgid, and no %d are free\n"
			     "See who has them, and give some to this user: subuid(5).",
			     user, ROOTLESS_IDS);
		return;
	}
	last = first + ROOTLESS_IDS - 1;
	findings_add(findings, "rootless.no-ids", rootless_severity(),
		     "%s has no subordinate ids in /etc/subuid and /etc/subgid\n"
		     "sudo usermod --add-subuids %llu-%llu --add-subgids %llu-%llu %s",
		     user, first, last, first, last, name[0] ? name : "$USER");
}

static void rootless_check_user(struct findings *findings, uid_t uid)
{
	const char *name = rootless_user_name(uid), *powerless = rootless_find_powerless();
	const bool listed = rootless_has_subordinates("/etc/subuid", name, uid) &&
			    rootless_has_subordinates("/etc/subgid", name, uid);

	if (!listed && rootless_has_service())
		findings_add(findings, "rootless.service", SEVERITY_NOTE,
			     "a service gives users their subordinate ids (/etc/nsswitch.conf, subid)\n"
			     "getsubids %s",
			     name[0] ? name : "$USER");
	else if (!listed)
		rootless_add_no_ids(findings, name);
	else if (powerless)
		findings_add(findings, "rootless.no-newuidmap", rootless_severity(),
			     "%s is missing or has no right to give users their subordinate ids\n"
			     "Install newuidmap again: package uidmap or shadow-utils.",
			     powerless);
	else
		findings_add(findings, "rootless.ready", SEVERITY_OK,
			     "user namespaces are allowed, and %s has subordinate ids", name);
}

void check_rootless(struct doctor_context *examination)
{
	const char *caller = getenv("SUDO_UID");
	/* The user who called sudo, if any, makes rootless containers; root does not. */
	uid_t uid = geteuid() == 0 && caller ? (uid_t)strtoul(caller, NULL, 10) : geteuid();
	bool clone = file_number("/proc/sys/kernel/unprivileged_userns_clone", 1) != 0;

	if (!clone || file_number("/proc/sys/user/max_user_namespaces", 1) == 0)
		findings_add(&examination->findings, "rootless.forbidden", SEVERITY_NOTE,
			     "only root may make user namespaces: no rootless containers\n"
			     "sudo sysctl -w %s",
			     clone ? "user.max_user_namespaces=28633" : "kernel.unprivileged_userns_clone=1");
	else if (file_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) == 1)
		findings_add(&examination->findings, "rootless.apparmor", SEVERITY_NOTE,
			     "AppArmor lets only programs with a profile make user namespaces (sysctl "
			     "apparmor_restrict_unprivileged_userns)\n"
			     "The distribution's podman and docker have one; for other programs write a profile with "
			     "'userns,'.");
	else if (uid == 0)
		findings_add(&examination->findings, "rootless.allowed", SEVERITY_OK,
			     "user namespaces are allowed; run doctor as the user to see more");
	else
		rootless_check_user(&examination->findings, uid);
}
