/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu under the name nvidia-container-cli, for the programs that call NVIDIA's: containerd's ctr, NVIDIA's own
 * hook, LXC, enroot, Apptainer. Options, error classes, exit statuses and output are NVIDIA's. Decisions and changes
 * are ctr-gpu's.
 */

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/print.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "lib/context.h"
#include "model/adapter.h"
#include "process/sanitise.h"

/* Those of request_argp are below. */
enum {
	KEY_CSV = 0x200,
	KEY_COMPAT32,
	KEY_IMEX_CHANNEL,
	KEY_MIG_CONFIG,
	KEY_MIG_MONITOR,
	KEY_NO_PERSISTENCED,
	KEY_NO_FABRICMANAGER,
	KEY_NO_GSP_FIRMWARE,
	KEY_NO_CGROUPS,
	KEY_NO_DEVBIND,
	KEY_DRY_RUN,
	KEY_CUDA_COMPAT_MODE,
	KEY_IGNORED,
	KEY_NO_CREATE_IMEX_CHANNELS,
};

/* The options before the command's name. */
struct nvidia {
	struct global_options globals;
	bool load_kmods;
	const char *ignored[4]; /* options that are accepted and ignored; ends with NULL */
};

/* ---- errors ---- */

/*
 * The first words of a message are the step that failed, and that is what people search logs for; NVIDIA's program has
 * them from where it is, this one from the error. "ldcache error" does not occur, as ldconfig is not run.
 */
static const struct {
	int code;
	const char *class;
} classes[] = {
	{CTR_GPU_E_NO_DEVICE, "initialization error"},      {CTR_GPU_E_NO_ADAPTER, "initialization error"},
	{CTR_GPU_E_DRIVER_TOO_OLD, "initialization error"}, {CTR_GPU_E_NO_DRIVER_STORE, "initialization error"},
	{CTR_GPU_E_DRIVER_LIBRARY, "initialization error"}, {CTR_GPU_E_DRIVER_TIMEOUT, "initialization error"},
	{CTR_GPU_E_BAD_CONFIG, "initialization error"},     {CTR_GPU_E_UNKNOWN_DEVICE, "device error"},
	{CTR_GPU_E_UNKNOWN_CAPABILITY, "input error"},      {CTR_GPU_E_BAD_ARGUMENT, "input error"},
	{CTR_GPU_E_REQUIREMENT, "requirement error"},       {CTR_GPU_E_BAD_REQUIREMENT, "requirement error"},
	{CTR_GPU_E_CONTAINER_RUNNING, "container error"},   {CTR_GPU_E_BAD_ROOTFS, "container error"},
	{CTR_GPU_E_NO_CGROUP, "container error"},           {CTR_GPU_E_NO_PERMISSION, "permission error"},
	{CTR_GPU_E_ROOTFS_READ_ONLY, "mount error"},        {CTR_GPU_E_KERNEL_TOO_OLD, "mount error"},
};

static const char *now_failing = "initialization error";

/* Sets the error class of an errno from now on: "mount error". */
static void nvidia_begin(const char *class)
{
	now_failing = class;
}

/* Return: the first words of the message of a result, static: "mount error". */
static const char *nvidia_class_of(int r)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (classes[i].code == r)
			return classes[i].class;
	return now_failing;
}

/* Ends the process: an argument is wrong. */
static __attribute__((format(printf, 1, 2), noreturn)) void nvidia_input_error(const char *format, ...)
{
	va_list arguments;

	(void)fputs(NVIDIA_CLI_NAME ": input error: ", stderr);
	va_start(arguments, format);
	(void)vfprintf(stderr, format, arguments);
	va_end(arguments);
	(void)fputc('\n', stderr);
	exit(EXIT_STATUS_FAILURE);
}

/* ---- how a command begins ---- */

/* Parses the options of a command; invalid ones end the process. */
static void nvidia_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	error_t error = argp_parse(argp, argc, argv, 0, NULL, input);

	if (error)
		nvidia_input_error("cannot read the command line: %s", strerror(error));
}

/* Has "all" as the value of --mig-config and --mig-monitor set @right. */
static void nvidia_take_mig(const char *option, const char *value, unsigned right, unsigned *rights)
{
	if (strcmp(value, "all") != 0)
		nvidia_input_error("--%s is 'all', not '%s'", option, value);
	*rights |= right;
}

/* session_open() for these programs: warnings go to the log and nowhere else. Then does what --load-kmods asks for. */
static int nvidia_open(struct session *session, const struct nvidia *nvidia)
{
	_cleanup_load_ struct load load = {0};
	int r;

	session->mute = true;
	r = session_open(session, &nvidia->globals);
	if (r)
		return r;
	for (size_t i = 0; nvidia->ignored[i]; i++)
		session_log(session, "%s is not needed", nvidia->ignored[i]);
	/*
	 * A failure is not an error: in a user namespace no process can load modules, and the later steps report what
	 * is missing.
	 */
	if (nvidia->load_kmods && (r = load_run(session, (struct load_options){0}, false, &load)))
		session_log(session, "--load-kmods: [%s] %s", ctr_gpu_error_name(r), session->context->err.text);
	return 0;
}

/* request_plan(), with errnos as "detection error". */
static int nvidia_plan(struct session *session, const struct request_options *request)
{
	struct request_options words = *request;

	nvidia_begin("detection error");
	words.domain = DOMAIN_NVIDIA;
	return request_plan(session, &words);
}

/* ---- info: the driver and its GPUs, in the layout of NVIDIA's program, as scripts expect it ---- */

enum {
	BUS_LENGTH = sizeof("00000000:3B:00.0") - 1,
	BUS_SIZE = BUS_LENGTH + 1,
};

/* What nvidia-smi says of what is not known. */
static const char unknown[] = "N/A";

static const struct argp_option info_options[] = {
	{"csv", KEY_CSV, NULL, 0, "Print CSV", 0},
	{0},
};

static error_t nvidia_info_parse(int key, char *argument, struct argp_state *state)
{
	bool *csv = state->input;

	switch (key) {
	case KEY_CSV:
		*csv = true;
		return 0;
	case ARGP_KEY_ARG:
		nvidia_input_error("'%s' is one argument too many", argument);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Names are the driver's, and not to be trusted with a terminal. */
static void nvidia_info_print_value(const char *value)
{
	print_write_text(value ? value : unknown, stdout);
}

static void nvidia_info_print_gpu(const struct ctr_gpu_adapter *adapter, const struct ctr_gpu_driver *driver, bool csv)
{
	const char *address = adapter->pci_address ? adapter->pci_address : "";
	char index[16], minor[16], bus[BUS_SIZE];
	const struct {
		const char *label, *value;
	} fields[] = {
		{"Device Index:", index},
		{"Device Minor:", driver->minor < 0 ? NULL : minor},
		{"Model:", adapter->name},
		{"Brand:", driver->brand},
		{"GPU UUID:", adapter->uuid},
		{"Bus Location:", *address && strlen(address) <= BUS_LENGTH ? bus : NULL},
		{"Architecture:", driver->architecture},
	};

	(void)snprintf(index, sizeof(index), "%d", adapter->index);
	(void)snprintf(minor, sizeof(minor), "%d", driver->minor);
	/* "00000000:3B:00.0", as NVML writes addresses: eight digits of the domain. */
	(void)snprintf(bus, sizeof(bus), "%.*s%s", BUS_LENGTH - (int)strnlen(address, BUS_LENGTH), "00000000", address);
	for (char *c = bus; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	(void)fputs(csv ? "" : "\n", stdout);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (csv)
			(void)fputs(i > 0 ? "," : "", stdout);
		else
			print_safe(stdout, "%-15s ", fields[i].label);
		nvidia_info_print_value(fields[i].value);
		(void)fputs(csv ? "" : "\n", stdout);
	}
	(void)fputs(csv ? "\n" : "", stdout);
}

static void nvidia_info_print_driver(const char *version, const char *cuda, bool csv)
{
	if (csv) {
		(void)fputs("NVRM version,CUDA version\n", stdout);
		print_safe(stdout, "%s,%s\n", version, cuda);
		(void)fputs("\nDevice Index,Device Minor,Model,Brand,GPU UUID,Bus Location,Architecture\n", stdout);
		return;
	}
	print_safe(stdout, "NVRM version:   %s\n", version);
	print_safe(stdout, "CUDA version:   %s\n", cuda);
}

/*
 * Usable adapters come first. The heading is of the first one's driver; on hosts with several that is the one numbered
 * first.
 */
static int nvidia_info_print_host(const struct ctr_gpu_host *host, bool csv)
{
	struct ctr_gpu_adapter adapter;
	int r = 0;

	for (size_t i = 0; ctr_gpu_host_adapter(host, i, &adapter) == 0 && adapter.index >= 0; i++) {
		struct ctr_gpu_driver driver;
		char cuda[32];

		/* Behind NVIDIA's are those of others, for which this program does nothing. */
		if (adapter.vendor_id != PCI_VENDOR_NVIDIA && !adapter.luid)
			continue;
		r = ctr_gpu_host_driver(host, i, &driver);
		if (r)
			return r;
		(void)snprintf(cuda, sizeof(cuda), "%d.%d", driver.cuda_major, driver.cuda_minor);
		if (i == 0)
			nvidia_info_print_driver(driver.version ? driver.version : unknown,
						 driver.cuda_major ? cuda : unknown, csv);
		nvidia_info_print_gpu(&adapter, &driver, csv);
		ctr_gpu_driver_clear(&driver);
	}
	return 0;
}

static int nvidia_info(struct nvidia *nvidia, int argc, char **argv)
{
	static const struct argp argp = {
		.options = info_options,
		.parser = nvidia_info_parse,
		.doc = "Show the driver and the GPUs that a container can get.",
	};
	_cleanup_session_ struct session session = {0};
	const struct request_options all = {0};
	bool csv = false;
	int r;

	nvidia_parse(&argp, argc, argv, &csv);
	r = nvidia_open(&session, nvidia);
	/* A host without a usable GPU is an error: the plan for all GPUs has its message. */
	if (!r)
		r = nvidia_plan(&session, &all);
	/* What cannot be had is "N/A". */
	if (!r)
		(void)ctr_gpu_host_identify(session.context, session.host);
	return r ? r : session_check(&session, nvidia_info_print_host(session.host, csv));
}

/* ---- list: the devices and files that a container would get, by kind, one path of the host per line ---- */

struct nvidia_list {
	struct request_options request;
	unsigned kinds; /* enum ctr_gpu_files */
	bool compat32, no_firmware;
};

static const struct argp_option list_options[] = {
	{"device", 'd', "ID", 0, "Device nodes of these GPUs: all, indexes, UUIDs, PCI addresses", 0},
	{"libraries", 'l', NULL, 0, "Libraries of the driver", 0},
	{"binaries", 'b', NULL, 0, "Programs of the driver", 0},
	{"ipcs", 'i', NULL, 0, "Sockets of the driver's daemons", 0},
	{"firmwares", 'f', NULL, 0, "Firmware of the GPUs", 0},
	{"compat32", KEY_COMPAT32, NULL, 0, "32-bit libraries, too", 0},
	{"mig-config", KEY_MIG_CONFIG, "all", 0, "Nodes for making parts of GPUs (MIG)", 0},
	{"mig-monitor", KEY_MIG_MONITOR, "all", 0, "Nodes for seeing everybody's parts of GPUs (MIG)", 0},
	{"imex-channel", KEY_IMEX_CHANNEL, "CHANNEL", 0, "Nodes of IMEX channels", 0},
	{"no-persistenced", KEY_NO_PERSISTENCED, NULL, OPTION_HIDDEN, NULL, 0},
	{"no-fabricmanager", KEY_NO_FABRICMANAGER, NULL, OPTION_HIDDEN, NULL, 0},
	{"no-gsp-firmware", KEY_NO_GSP_FIRMWARE, NULL, 0, "No firmware", 0},
	{0},
};

/* Which option lists what; of the last two, what they leave out is never listed. */
static const struct {
	int key;
	unsigned kind;
} kinds[] = {
	{'d', CTR_GPU_FILES_DEVICES},
	{'l', CTR_GPU_FILES_LIBRARIES},
	{'b', CTR_GPU_FILES_PROGRAMS},
	{'i', CTR_GPU_FILES_SOCKETS},
	{'f', CTR_GPU_FILES_FIRMWARE},
	{KEY_IMEX_CHANNEL, CTR_GPU_FILES_DEVICES},
	{KEY_MIG_CONFIG, CTR_GPU_FILES_DEVICES},
	{KEY_MIG_MONITOR, CTR_GPU_FILES_DEVICES},
	{KEY_NO_PERSISTENCED, 0},
	{KEY_NO_FABRICMANAGER, 0},
};

static error_t nvidia_list_parse(int key, char *argument, struct argp_state *state)
{
	struct nvidia_list *list = state->input;
	error_t r = ARGP_ERR_UNKNOWN;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].key == key) {
			list->kinds |= kinds[i].kind;
			r = 0;
		}
	switch (key) {
	case 'd':
		return request_list_append(&list->request.devices, argument);
	case KEY_IMEX_CHANNEL:
		request_check_channels(state, argument, true);
		return request_list_append(&list->request.imex_channels, argument);
	case KEY_COMPAT32:
		list->compat32 = true;
		return 0;
	case KEY_MIG_CONFIG:
		nvidia_take_mig("mig-config", argument, CTR_GPU_MIG_CONFIG, &list->request.mig);
		return 0;
	case KEY_MIG_MONITOR:
		nvidia_take_mig("mig-monitor", argument, CTR_GPU_MIG_MONITOR, &list->request.mig);
		return 0;
	case KEY_NO_GSP_FIRMWARE:
		list->no_firmware = true;
		return 0;
	case ARGP_KEY_ARG:
		nvidia_input_error("'%s' is one argument too many", argument);
	default:
		return r;
	}
}

static int nvidia_list(struct nvidia *nvidia, int argc, char **argv)
{
	static const struct argp argp = {
		.options = list_options,
		.parser = nvidia_list_parse,
		.doc = "List the devices and files of this host that a container would get; without an option, "
		       "all of them.",
	};
	_cleanup_session_ struct session session = {0};
	struct nvidia_list list = {0};
	bool everything = argc == 1;
	int r = 0;

	nvidia_parse(&argp, argc, argv, &list);
	if (everything)
		list.kinds = ~0U;
	if (list.no_firmware)
		list.kinds &= ~(unsigned)CTR_GPU_FILES_FIRMWARE;
	/* The driver's files are listed whichever devices are. */
	if ((!list.request.devices && request_list_append(&list.request.devices, "all")) ||
	    request_list_append(&list.request.capabilities, "compute,utility,video,graphics,display,ngx") ||
	    ((everything || list.compat32) && request_list_append(&list.request.capabilities, "compat32")))
		r = output_no_memory();
	if (!r)
		r = nvidia_open(&session, nvidia);
	if (!r)
		r = nvidia_plan(&session, &list.request);
	if (!r)
		r = session_check(&session, ctr_gpu_plan_write_files(session.plan, list.kinds, stdout));
	request_options_clear(&list.request);
	return r;
}

/* ---- configure ---- */

/*
 * Give a container that is being created the GPUs. Programs that create containers run this as a hook, so it does not
 * trust what it inherits any more than ctr-gpu-hook does.
 */

enum { LOAD_DEADLINE_S = 60 };

struct nvidia_configure {
	struct session *session;
	struct request_options request;
	pid_t pid;
	const char *rootfs, *ldconfig, *cuda_compat;
	bool no_cgroups, no_devbind, dry_run, ignored;
};

static const struct argp_option configure_options[] = {
	{"pid", 'p', "PID", 0,
	 "The container's first process; without it, ROOTFS is in the caller's own mount namespace", 0},
	{"mig-config", KEY_MIG_CONFIG, "all", 0, "Let the container make parts of GPUs (MIG)", 0},
	{"mig-monitor", KEY_MIG_MONITOR, "all", 0, "Let the container see everybody's parts of GPUs (MIG)", 0},
	{"no-cgroups", KEY_NO_CGROUPS, NULL, 0, "Leave the container's device rules (cgroup) alone", 0},
	{"no-devbind", KEY_NO_DEVBIND, NULL, 0, "Leave the container's device nodes alone", 0},
	{"dry-run", KEY_DRY_RUN, NULL, 0, "Print the plan, for programs, and change nothing", 0},
	{NULL, 0, NULL, 0, "Accepted, and not needed:", 3},
	{"ldconfig", 'l', "[@]PATH", 0, "The loader's cache is written without running anything", 3},
	{"no-cntlibs", KEY_IGNORED, NULL, 0, "Libraries of the container are never used", 3},
	{"cuda-compat-mode", KEY_CUDA_COMPAT_MODE, "MODE", 0, "They are not used as compatibility libraries either", 3},
	{"no-persistenced", KEY_IGNORED, NULL, 0, "Sockets and firmware that the host has are given all the same", 3},
	{"no-fabricmanager", KEY_IGNORED, NULL, OPTION_ALIAS, NULL, 3},
	{"no-gsp-firmware", KEY_IGNORED, NULL, OPTION_ALIAS, NULL, 3},
	{0},
};

static void nvidia_configure_take_rootfs(struct nvidia_configure *configure, const char *argument)
{
	if (configure->rootfs)
		nvidia_input_error("'%s' is one argument too many", argument);
	if (argument[0] != '/' || strcmp(argument, "/") == 0)
		nvidia_input_error("invalid rootfs directory: it is the absolute path of a container's, not '%s'",
				   argument);
	configure->rootfs = argument;
}

/* The member that an option without a value sets; NULL for other keys. */
static bool *nvidia_configure_find_flag(struct nvidia_configure *configure, int key)
{
	return key == KEY_NO_CGROUPS   ? &configure->no_cgroups
	       : key == KEY_NO_DEVBIND ? &configure->no_devbind
	       : key == KEY_DRY_RUN    ? &configure->dry_run
	       : key == KEY_IGNORED    ? &configure->ignored
				       : NULL;
}

static error_t nvidia_configure_parse(int key, char *argument, struct argp_state *state)
{
	struct nvidia_configure *configure = state->input;
	bool *flag = nvidia_configure_find_flag(configure, key);

	if (flag) {
		*flag = true;
		return 0;
	}
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &configure->request;
		return 0;
	case 'p':
		if (!request_parse_pid(argument, &configure->pid))
			nvidia_input_error("--pid is the number of a process, not '%s'", argument);
		return 0;
	case 'l':
		configure->ldconfig = argument;
		return 0;
	case KEY_MIG_CONFIG:
		nvidia_take_mig("mig-config", argument, CTR_GPU_MIG_CONFIG, &configure->request.mig);
		return 0;
	case KEY_MIG_MONITOR:
		nvidia_take_mig("mig-monitor", argument, CTR_GPU_MIG_MONITOR, &configure->request.mig);
		return 0;
	case KEY_CUDA_COMPAT_MODE:
		configure->cuda_compat = argument;
		return 0;
	case ARGP_KEY_ARG:
		nvidia_configure_take_rootfs(configure, argument);
		return 0;
	case ARGP_KEY_NO_ARGS:
		nvidia_input_error("ROOTFS is missing: the absolute path of the container's root directory");
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int nvidia_configure_apply(void *user)
{
	const struct nvidia_configure *configure = user;
	struct session *session = configure->session;
	int r, exit_status;

	exit_status = nvidia_plan(session, &configure->request);
	if (!exit_status)
		exit_status = session_enter(PHASE_GIVE);
	if (exit_status)
		return exit_status;
	nvidia_begin("container error");
	r = ctr_gpu_container_new(session->context, configure->pid, configure->rootfs, &session->container);
	if (r)
		return session_check(session, r);
	if (configure->no_cgroups)
		ctr_gpu_container_leave_cgroup(session->container);
	if (configure->no_devbind)
		ctr_gpu_container_leave_devices(session->container);
	nvidia_begin("mount error");
	return session_check(session, ctr_gpu_plan_apply(session->context, session->plan, session->container));
}

/* A plan can be shown before there is a container. */
static int nvidia_configure_show(const struct nvidia_configure *configure)
{
	struct session *session = configure->session;
	int r = nvidia_plan(session, &configure->request);

	if (r)
		return r;
	if (ctr_gpu_container_new(session->context, configure->pid, configure->rootfs, &session->container) == 0)
		r = ctr_gpu_plan_fit_container(session->plan, session->container);
	if (!r)
		r = ctr_gpu_plan_write(session->plan, CTR_GPU_FORMAT_JSON, stdout);
	return session_check(session, r);
}

static int nvidia_configure_prepare(struct nvidia *nvidia, char **ret_log)
{
	const char *step;
	int r = 0;

	deadline_set(LOAD_DEADLINE_S,
		     NVIDIA_CLI_NAME ": container error: gave up after a minute of loading the driver [ETIMEDOUT]\n"
				     "    '--debug=FILE' before 'configure' shows how far it came");
	/* The file may be relative to the working directory, and that is about to be left. */
	if (nvidia->globals.debug_file) {
		*ret_log = path_absolute(nvidia->globals.debug_file);
		if (!*ret_log)
			return output_print("cannot write the log to %s: %m", nvidia->globals.debug_file);
		nvidia->globals.debug_file = *ret_log;
	}
	/* What --load-kmods asks for takes capabilities that are given up next. */
	if (nvidia->load_kmods) {
		_cleanup_session_ struct session session = {0};

		r = nvidia_open(&session, nvidia);
		nvidia->load_kmods = false;
	}
	if (r)
		return r;
	deadline_set(0, "");
	errno = -sanitise(&step);
	return errno ? output_print("permission error: cannot %s: %m", step) : 0;
}

/*
 * Hooks of LXC have the container's environment, those of `ctr run` the client's. What it says of vCUDA is kept, since
 * nothing of it is left afterwards.
 */
static int nvidia_configure_keep_mode(struct request_options *request)
{
	static const char *const names[] = {"CTR_GPU_MODE", "CTR_GPU_MEMORY", "CTR_GPU_SHARE"};
	const size_t most = sizeof(names) / sizeof(names[0]);
	size_t count = 0;

	request->environment = calloc(most + 1, sizeof(*request->environment));
	for (size_t i = 0; request->environment && i < most; i++) {
		const char *value = getenv(names[i]);

		if (value && asprintf(&request->environment[count++], "%s=%s", names[i], value) < 0)
			return -ENOMEM;
	}
	return request->environment ? 0 : -ENOMEM;
}

static int nvidia_configure_run(struct nvidia *nvidia, struct nvidia_configure *configure)
{
	_cleanup_session_ struct session session = {0};
	_cleanup_free_ char *log = NULL;
	char **devices = &configure->request.devices;
	int r = 0;

	/* The caller's devices, or none: only `list` shows all of them unasked. */
	if (nvidia_configure_keep_mode(&configure->request) < 0 ||
	    ((!*devices || !**devices) && request_list_append(devices, "none")))
		return output_no_memory();
	nvidia->load_kmods = nvidia->load_kmods && !configure->dry_run;
	if (!configure->dry_run)
		r = nvidia_configure_prepare(nvidia, &log);
	if (!r)
		r = nvidia_open(&session, nvidia);
	if (r)
		return r;
	if (configure->ldconfig)
		session_log(&session, "--ldconfig is not needed: no ldconfig is run");
	if (configure->cuda_compat && strcmp(configure->cuda_compat, "disabled") != 0)
		session_log(&session,
			    "--cuda-compat-mode=%s is not done: nothing of an image is used as a driver's library",
			    configure->cuda_compat);
	configure->session = &session;
	if (!configure->dry_run)
		session_run_in_child(&session, nvidia_configure_apply, configure);
	return nvidia_configure_show(configure);
}

static int nvidia_configure(struct nvidia *nvidia, int argc, char **argv)
{
	static const struct argp_child children[] = {{&request_argp, 0, NULL, 1}, {0}};
	static const struct argp argp = {
		.options = configure_options,
		.parser = nvidia_configure_parse,
		.args_doc = "ROOTFS",
		.children = children,
		.doc = "Give GPUs of this host to a container that is being created: those that --device names.",
	};
	struct nvidia_configure configure = {0};
	int r;

	nvidia_parse(&argp, argc, argv, &configure);
	r = nvidia_configure_run(nvidia, &configure);
	request_options_clear(&configure.request);
	return r;
}

/* ---- the program ---- */

static const struct argp_option options[] = {
	{"debug", 'd', "FILE", 0, "Say in FILE what is looked at and decided", 0},
	{"load-kmods", 'k', NULL, 0, "Load NVIDIA's kernel modules and make their device nodes, where they are missing",
	 0},
	{"root", 'r', "PATH", 0, "Where a native driver is installed, such as /run/nvidia/driver", 0},
	{NULL, 0, NULL, 0, "Accepted, and not needed:", 0},
	{"no-pivot", 'n', NULL, 0, "Nothing is run that pivot_root(2) would have to lock in", 0},
	{"user", 'u', "UID[:GID]", OPTION_ARG_OPTIONAL, "Driver libraries are loaded by a user of their own only", 0},
	{"ldcache", 'l', "FILE", 0, "The host's libraries are found without being told", 0},
	{"no-create-imex-channels", KEY_NO_CREATE_IMEX_CHANNELS, NULL, 0, "None are made", 0},
	{0},
};

/* argv[0] is what their usage is printed with. Return: the exit status. */
static const struct {
	const char *name;
	int (*run)(struct nvidia *nvidia, int argc, char **argv);
} commands[] = {
	{"info", nvidia_info},
	{"list", nvidia_list},
	{"configure", nvidia_configure},
};

struct nvidia_line {
	struct nvidia *nvidia;
	int command; /* index in argv; 0: there is none */
};

static void nvidia_ignore(struct nvidia *nvidia, const char *option)
{
	size_t count = 0;

	while (nvidia->ignored[count] && strcmp(nvidia->ignored[count], option) != 0)
		count++;
	if (count < sizeof(nvidia->ignored) / sizeof(nvidia->ignored[0]) - 1)
		nvidia->ignored[count] = option;
}

static error_t nvidia_parse_option(int key, char *argument, struct argp_state *state)
{
	struct nvidia_line *line = state->input;
	struct nvidia *nvidia = line->nvidia;

	switch (key) {
	case 'd':
		nvidia->globals.debug = true;
		/* It may be a pipe of another user, which cannot be opened a second time. */
		nvidia->globals.debug_file = strcmp(argument, "/dev/stderr") == 0 ? NULL : argument;
		return 0;
	case 'k':
		nvidia->load_kmods = true;
		return 0;
	case 'r':
		nvidia->globals.driver_root = argument;
		return 0;
	case 'n':
		nvidia_ignore(nvidia, "--no-pivot");
		return 0;
	case 'u':
		nvidia_ignore(nvidia, "--user");
		return 0;
	case 'l':
		nvidia_ignore(nvidia, "--ldcache");
		return 0;
	case KEY_NO_CREATE_IMEX_CHANNELS:
		return 0;
	case ARGP_KEY_ARG:
		line->command = state->next - 1;
		state->next = state->argc; /* the rest is the command's */
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_usage(state);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void nvidia_print_version(FILE *file, struct argp_state *state)
{
	(void)state;
	print_safe(file, "cli-version: %s\n", ctr_gpu_version());
	print_safe(file, "lib-version: %s\n", ctr_gpu_version());
}

int nvidia_main(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = nvidia_parse_option,
		.args_doc = "COMMAND [ARGUMENT...]",
		.doc = "Give containers the GPUs of this host: ctr-gpu, for programs that call NVIDIA's.\v"
		       "Commands: info, list, configure. 'nvidia-container-cli COMMAND --help' shows a command's own "
		       "options; "
		       "nvidia-container-cli(1) explains them all.",
	};
	struct nvidia nvidia = {0};
	struct nvidia_line line = {.nvidia = &nvidia};
	char name[64], suggestion[SUGGESTION_SIZE];
	const char *names[ARRAY_SIZE(commands)];
	error_t error;

	output_set_program(NVIDIA_CLI_NAME, nvidia_class_of);
	argp_program_version_hook = nvidia_print_version;
	argp_err_exit_status = EXIT_STATUS_FAILURE;
	error = argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &line);
	if (error)
		nvidia_input_error("cannot read the command line: %s", strerror(error));
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		names[i] = commands[i].name;
		if (strcmp(argv[line.command], commands[i].name) != 0)
			continue;
		(void)snprintf(name, sizeof(name), NVIDIA_CLI_NAME " %s", commands[i].name);
		argv[line.command] = name;
		return commands[i].run(&nvidia, argc - line.command, argv + line.command);
	}
	nvidia_input_error("unknown command '%s'; the commands are info, list and configure%s", argv[line.command],
			   str_suggest(names, ARRAY_SIZE(names), argv[line.command], suggestion));
}
