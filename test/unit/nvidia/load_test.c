/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which modules and nodes a native host lacks, and making them: on prepared trees that stand for /proc, /sys and /dev, with a
 * modprobe of the test's.
 */

#include "scratch.h"

#include <signal.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include "nvidia/internal.h"

#define CHARACTER "Character devices:\n  1 mem\n"
#define BLOCK "\nBlock devices:\n  8 sd\n195 nvidia-uvm\n"
#define INFORMATION(model, minor) \
	"Model: \t\t " model "\nGPU UUID: \t GPU-0\nDevice Minor: \t " minor "\nGPU Excluded:\t No\n"
#define CAPABILITY(minor, mode) "DeviceFileMinor: " minor "\nDeviceFileMode: " mode "\nDeviceFileModify: 1\n"
#define NEW_DRIVER \
	"195 nvidia\n195 nvidiactl\n508 nvidia-uvm\n509 nvidia-nvswitch\n510 nvidia-caps\n511 nvidia-caps-imex-channels\n"

static struct load_host host;
static struct load_options options;
static struct err err;

static int setup(void **state)
{
	if (scratch_mount(state) < 0)
		return -1;
	make_directories("/proc/driver");
	make_directories("/sys/bus/pci/devices/0000:06:00.0");
	make_directories("/dev");
	make_directories("/bin");
	write_file("/sys/bus/pci/devices/0000:06:00.0/vendor", "0x10de\n");
	write_file("/sys/bus/pci/devices/0000:06:00.0/class", "0x030200\n");
	write_file("/proc/devices", CHARACTER BLOCK);
	host = (struct load_host){.proc = strdup(scratch_path("/proc")),
				  .sys = strdup(scratch_path("/sys")),
				  .dev = strdup(scratch_path("/dev")),
				  .programs = strdup(scratch_path("/bin"))};
	options = (struct load_options){0};
	err.text[0] = '\0';
	return 0;
}

static int teardown(void **state)
{
	free((char *)host.proc);
	free((char *)host.sys);
	free((char *)host.dev);
	free((char *)host.programs);
	strv_clear(&options.imex_channels);
	return scratch_unmount(state);
}

/* A file below the tree's /proc/driver, with its directories. */
static void say(const char *name, const char *text)
{
	_cleanup_free_ char *path = NULL;
	char *slash;

	assert_int_equal(str_format(&path, "/proc/driver/%s", name), 0);
	slash = strrchr(path, '/');
	*slash = '\0';
	make_directories(path);
	*slash = '/';
	write_file(path, text);
}

static void load_driver(const char *numbers)
{
	_cleanup_free_ char *text = NULL;

	assert_int_equal(str_format(&text, CHARACTER "%s" BLOCK, numbers), 0);
	write_file("/proc/devices", text);
}

/* Each step as a line; the scratch place's name left out. */
static char *steps_of(const struct load *load)
{
	char *all = strdup("");

	for (size_t i = 0; i < load->count; i++) {
		const struct load_step *step = &load->steps[i];
		const char *name = str_has_prefix(step->name, scratch) ? step->name + strlen(scratch) : step->name;
		char *longer = NULL, number[64] = "";

		if (step->kind == LOAD_NODE)
			(void)snprintf(number, sizeof(number), " %u:%u %04o %u:%u", major(step->number),
				       minor(step->number), step->mode, step->uid, step->gid);
		assert_int_equal(str_format(&longer, "%s%c %s%s\n", all, "-+!*"[step->state], name, number), 0);
		free(all);
		all = longer;
	}
	return all;
}

static void expect_steps(const char *expected)
{
	_cleanup_load_ struct load load = {0};
	_cleanup_free_ char *steps = NULL;
	int r = load_decide(&host, &options, &load, &err);

	if (r != 0)
		fail_msg("%d: %s", r, err.text);
	steps = steps_of(&load);
	assert_string_equal(steps, expected);
}

static void expect_refusal(int code, const char *text)
{
	struct load load = {0};
	int r = load_decide(&host, &options, &load, &err);

	assert_int_equal(r, code);
	if (!strstr(unit_message(&err), text))
		fail_msg("%s", err.text);
	assert_int_equal(load.count, 0);
}

static void do_it(int code, const char *text)
{
	_cleanup_load_ struct load load = {0};
	int r = load_decide(&host, &options, &load, &err);

	if (r == 0)
		r = load_apply(&host, &options, &load, &err);
	if (r != code || (text && !strstr(unit_message(&err), text)))
		fail_msg("%d: %s", r, err.text);
}

/* ---- deciding ---- */

static void modules_first(void **state)
{
	(void)state;
	expect_steps("- nvidia\n- nvidia-uvm\n");
	options.modeset = true;
	expect_steps("- nvidia\n- nvidia-uvm\n- nvidia-modeset\n");
}

static void a_whole_host(void **state)
{
	(void)state;
	load_driver(NEW_DRIVER);
	make_directories("/sys/module/nvidia_modeset");
	say("nvidia/params",
	    "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 44\nDeviceFileMode: 432\nCreateImexChannel0: 1\n");
	say("nvidia/gpus/0000:06:00.0/information", INFORMATION("NVIDIA H200", "3"));
	say("nvidia/gpus/0000:07:00.0/information", INFORMATION("NVIDIA H200", "0"));
	say("nvidia/capabilities/mig/config", CAPABILITY("1", "256"));
	say("nvidia/capabilities/gpu3/mig/gi1/access", CAPABILITY("12", "292"));
	say("nvidia/capabilities/gpu3/mig/gi1/ci0/access", CAPABILITY("13", "292"));
	say("nvidia-nvswitch/permissions", "DeviceFileMode: 438\nDeviceFileUID: 7\nDeviceFileModify: 1\n");
	make_directories("/proc/driver/nvidia-nvswitch/devices/0000:09:00.0");
	expect_steps("+ nvidia\n+ nvidia-uvm\n+ nvidia-modeset\n"
		     "- /dev/nvidiactl 195:255 0660 0:44\n"
		     "- /dev/nvidia-uvm 508:0 0666 0:0\n"
		     "- /dev/nvidia-uvm-tools 508:1 0666 0:0\n"
		     "- /dev/nvidia-modeset 195:254 0660 0:44\n"
		     "- /dev/nvidia3 195:3 0660 0:44\n"
		     "- /dev/nvidia0 195:0 0660 0:44\n"
		     "- /dev/nvidia-caps\n"
		     "- /dev/nvidia-caps/nvidia-cap12 510:12 0444 0:0\n"
		     "- /dev/nvidia-caps/nvidia-cap13 510:13 0444 0:0\n"
		     "- /dev/nvidia-caps/nvidia-cap1 510:1 0400 0:0\n"
		     "- /dev/nvidia-caps-imex-channels\n"
		     "- /dev/nvidia-caps-imex-channels/channel0 511:0 0660 0:44\n"
		     "- /dev/nvidia-nvswitchctl 509:255 0666 7:0\n"
		     "- /dev/nvidia-nvswitch0 509:0 0666 7:0\n");
}

/* One number for everything, no capabilities; a block device's number is nobody's. */
static void an_old_driver(void **state)
{
	(void)state;
	load_driver("195 nvidia-frontend\n");
	say("nvidia/gpus/0000:06:00.0/information", INFORMATION("Tesla", "0"));
	say("nvidia/capabilities/mig/config", CAPABILITY("1", "256"));
	expect_steps("+ nvidia\n- nvidia-uvm\n- /dev/nvidiactl 195:255 0666 0:0\n- /dev/nvidia0 195:0 0666 0:0\n");
}

static void what_cannot_be_is_left_out(void **state)
{
	_cleanup_load_ struct load load = {0};

	(void)state;
	load_driver("195 nvidia\n508 nvidia-uvm\n510 nvidia-caps\n");
	say("nvidia/params", "DeviceFileMode: 99999\nDeviceFileUID: -1\nDeviceFileGID: 99999999999999999999\n");
	say("nvidia/gpus/0000:01:00.0/information", INFORMATION("too large", "4294967295"));
	say("nvidia/gpus/0000:02:00.0/information", INFORMATION("negative", "-1"));
	say("nvidia/gpus/0000:03:00.0/information", "Device Minor: \t 5\nGPU Excluded:\t Yes\n");
	say("nvidia/gpus/0000:04:00.0/information", "");
	say("nvidia/gpus/elsewhere/information", INFORMATION("no address", "6"));
	say("nvidia/capabilities/a", CAPABILITY("1048576", "292"));
	say("nvidia/capabilities/b", CAPABILITY("../../x", "292"));
	say("nvidia/capabilities/c", "DeviceFileMinor: 4\nDeviceFileMode: 511\nDeviceFileModify: 0\n");
	say("nvidia/capabilities/d", CAPABILITY("1048575", "2541"));
	say("nvidia/capabilities/1/2/3/4/5/6/7/access", CAPABILITY("9", "292"));
	expect_steps("+ nvidia\n+ nvidia-uvm\n"
		     "- /dev/nvidiactl 195:255 0666 0:0\n"
		     "- /dev/nvidia-uvm 508:0 0666 0:0\n"
		     "- /dev/nvidia-uvm-tools 508:1 0666 0:0\n"
		     "- /dev/nvidia-caps\n"
		     "- /dev/nvidia-caps/nvidia-cap1048575 510:1048575 0666 0:0\n");
	assert_int_equal(load_decide(&host, &options, &load, &err), 0);
	assert_int_equal(load.remarks.count, 4);
}

static void hosts_without(void **state)
{
	(void)state;
	write_file("/sys/bus/pci/devices/0000:06:00.0/class", "0x020000\n"); /* a network card of NVIDIA's */
	expect_refusal(CTR_GPU_E_NO_DEVICE, "has no GPU of NVIDIA");
	assert_int_equal(unlink(scratch_path("/proc/devices")), 0);
	expect_refusal(-ENOENT, "/proc/devices");
}

static void channels(void **state)
{
	static const char *const bad[] = {"8", "-1", "0x1", "1e1", "00000001", " ", "../0"};

	(void)state;
	load_driver(NEW_DRIVER);
	say("nvidia/params", "ImexChannelCount: 8\n");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(strv_add(&options.imex_channels, bad[i]), 0);
		expect_refusal(CTR_GPU_E_UNKNOWN_DEVICE, "a number below 8");
		strv_clear(&options.imex_channels);
	}
	assert_int_equal(strv_add(&options.imex_channels, "7"), 0);
	load_driver("195 nvidia\n");
	expect_refusal(CTR_GPU_E_UNKNOWN_DEVICE, "no IMEX channels");
}

/* ---- doing ---- */

static void program_is(const char *path, const char *script)
{
	_cleanup_free_ char *text = NULL;

	assert_int_equal(str_format(&text, "#!/bin/sh\nPATH=/usr/bin:/bin\ncd %s\n%s\n", scratch, script), 0);
	write_file(path, text);
	assert_int_equal(chmod(scratch_path(path), 0755), 0);
}

static void modprobe_is(const char *script)
{
	program_is("/bin/modprobe", script);
}

static void nodes_are_made_once(void **state)
{
	_cleanup_free_ char *before = NULL, *after = NULL;

	(void)state;
	load_driver(NEW_DRIVER);
	say("nvidia/params", "DeviceFileMode: 416\nDeviceFileUID: 12\nDeviceFileGID: 34\n");
	say("nvidia/gpus/0000:06:00.0/information", INFORMATION("NVIDIA H200", "0"));
	say("nvidia/capabilities/mig/config", CAPABILITY("1", "256"));
	(void)umask(0777);
	do_it(0, NULL);
	(void)umask(022);
	expect_steps("+ nvidia\n+ nvidia-uvm\n"
		     "+ /dev/nvidiactl 195:255 0640 12:34\n"
		     "+ /dev/nvidia-uvm 508:0 0666 0:0\n"
		     "+ /dev/nvidia-uvm-tools 508:1 0666 0:0\n"
		     "+ /dev/nvidia0 195:0 0640 12:34\n"
		     "+ /dev/nvidia-caps\n"
		     "+ /dev/nvidia-caps/nvidia-cap1 510:1 0400 0:0\n");
	before = picture("/dev");
	assert_non_null(strstr(before, "/dev/nvidia0 20640 12:34"));
	assert_non_null(strstr(before, "/dev/nvidia-caps 40755 0:0"));
	assert_null(strstr(before, ".ctr-gpu"));
	do_it(0, NULL);
	after = picture("/dev");
	assert_string_equal(before, after);
}

static void wrong_ones(void **state)
{
	_cleanup_free_ char *before = NULL, *after = NULL;

	(void)state;
	load_driver(NEW_DRIVER);
	say("nvidia/gpus/0000:06:00.0/information", INFORMATION("NVIDIA H200", "0"));
	write_file("/outside", "precious");
	make_link("/dev/nvidia0", "../outside");
	make_link("/dev/nvidia-caps", "/");
	before = picture("/");
	do_it(CTR_GPU_E_WRONG_NODE, "/dev/nvidia0 should be a node of NVIDIA's driver, and is a symbolic link");
	after = picture("/");
	assert_string_equal(before, after);
	options.replace = true;
	do_it(0, NULL);
	assert_content("/outside", "precious");
	expect_steps("+ nvidia\n+ nvidia-uvm\n"
		     "+ /dev/nvidiactl 195:255 0666 0:0\n"
		     "+ /dev/nvidia-uvm 508:0 0666 0:0\n"
		     "+ /dev/nvidia-uvm-tools 508:1 0666 0:0\n"
		     "+ /dev/nvidia0 195:0 0666 0:0\n"
		     "+ /dev/nvidia-caps\n");
}

/* Nobody's files are removed with it. */
static void a_directory_is_not_replaced(void **state)
{
	(void)state;
	load_driver("195 nvidia\n508 nvidia-uvm\n");
	make_directories("/dev/nvidiactl");
	write_file("/dev/nvidiactl/precious", "text");
	options.replace = true;
	do_it(-EISDIR, "cannot make");
	assert_content("/dev/nvidiactl/precious", "text");
}

/* What appears between looking and doing: the right node is welcome, others stay and are an error. */
static void others_are_faster(void **state)
{
	_cleanup_load_ struct load first = {0}, second = {0};

	(void)state;
	load_driver("195 nvidia\n508 nvidia-uvm\n510 nvidia-caps\n");
	say("nvidia/capabilities/mig/config", CAPABILITY("1", "256"));
	assert_int_equal(load_decide(&host, &options, &first, &err), 0);
	assert_int_equal(mknod(scratch_path("/dev/nvidiactl"), S_IFCHR | 0600, makedev(195, 255)), 0);
	write_file("/dev/nvidia-uvm-tools", "precious");
	assert_int_equal(load_apply(&host, &options, &first, &err), -EEXIST);
	assert_non_null(strstr(err.text, "/dev/nvidia-uvm-tools"));
	assert_content("/dev/nvidia-uvm-tools", "precious");
	assert_int_equal(first.steps[2].state, LOAD_THERE);
	assert_int_equal(first.steps[3].state, LOAD_DONE);

	assert_int_equal(unlink(scratch_path("/dev/nvidia-uvm-tools")), 0);
	make_directories("/dev/nvidia-caps");
	assert_int_equal(load_decide(&host, &options, &second, &err), 0);
	assert_int_equal(rmdir(scratch_path("/dev/nvidia-caps")), 0);
	make_directories("/elsewhere");
	make_link("/dev/nvidia-caps", "../elsewhere");
	assert_int_equal(load_apply(&host, &options, &second, &err), -ENOTDIR);
	assert_false(exists("/elsewhere/nvidia-cap1"));
}

static void modules_are_loaded(void **state)
{
	static const char script[] = "echo \"$@\" >>calls; cat /proc/$$/environ >>calls; cp devices proc/devices";

	(void)state;
	write_file("/devices", CHARACTER NEW_DRIVER BLOCK);
	modprobe_is(script);
	(void)setenv("MODPROBE_OPTIONS", "--nonsense", 1);
	do_it(0, NULL);
	expect_steps("+ nvidia\n+ nvidia-uvm\n"
		     "+ /dev/nvidiactl 195:255 0666 0:0\n"
		     "+ /dev/nvidia-uvm 508:0 0666 0:0\n"
		     "+ /dev/nvidia-uvm-tools 508:1 0666 0:0\n"
		     "+ /dev/nvidia-caps\n");
	assert_content("/calls", "-- nvidia\n-- nvidia-uvm\n");
}

static void modprobe_fails(void **state)
{
	(void)state;
	do_it(CTR_GPU_E_KERNEL_MODULE, "modprobe is missing from");
	make_directories("/bin/modprobe");
	do_it(CTR_GPU_E_KERNEL_MODULE, "modprobe is missing from");
	assert_int_equal(rmdir(scratch_path("/bin/modprobe")), 0);
	modprobe_is("exit 0");
	do_it(CTR_GPU_E_KERNEL_MODULE, "is not loaded all the same");
	modprobe_is("echo 'Module nvidia not found' >&2; exit 1");
	do_it(CTR_GPU_E_KERNEL_MODULE, "Install NVIDIA's driver for kernel");
	modprobe_is("printf 'a\\tb\\377\\177\\033[31m' >&2; exit 1");
	do_it(CTR_GPU_E_KERNEL_MODULE, "nvidia: a?b???[31m\n");
	modprobe_is("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1");
	do_it(CTR_GPU_E_KERNEL_MODULE, "xxx\nThe kernel may");
	assert_true(strlen(err.text) < 500);
	write_file("/bin/modprobe", "\177ELF");
	do_it(-ENOEXEC, "cannot run");
}

/* Where SELinux is, what was made is labelled, once, and nothing else is; where it cannot be, it is there nevertheless. */
static void nodes_are_labelled(void **state)
{
	_cleanup_free_ char *expected = NULL;

	(void)state;
	load_driver(NEW_DRIVER);
	program_is("/bin/restorecon", "echo \"$@\" >>labelled; exit 1");
	do_it(0, NULL);
	assert_false(exists("/labelled"));
	assert_int_equal(unlink(scratch_path("/dev/nvidiactl")), 0);
	make_directories("/sys/fs/selinux");
	write_file("/sys/fs/selinux/enforce", "1");
	do_it(0, NULL);
	do_it(0, NULL);
	assert_int_equal(str_format(&expected, "-- %s/dev/nvidiactl\n", scratch), 0);
	assert_content("/labelled", expected);
	assert_int_equal(unlink(scratch_path("/bin/restorecon")), 0);
	assert_int_equal(unlink(scratch_path("/dev/nvidiactl")), 0);
	do_it(0, NULL);
	assert_true(exists("/dev/nvidiactl"));
}

/* A caller that ignores SIGCHLD gets no status, and modprobe gets its own disposition of signals. */
static void callers_differ(void **state)
{
	(void)state;
	write_file("/devices", CHARACTER NEW_DRIVER BLOCK);
	modprobe_is("cp devices proc/devices; exec 2>signals; grep SigIgn /proc/$$/status >signals");
	(void)signal(SIGCHLD, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	do_it(0, NULL);
	(void)signal(SIGCHLD, SIG_DFL);
	assert_true(exists("/dev/nvidiactl"));
	{
		_cleanup_free_ char *text = NULL;

		assert_int_equal(fd_read_file_at(AT_FDCWD, scratch_path("/signals"), 4096, &text, NULL), 0);
		/* The C library keeps 32 and 33 for itself. */
		assert_int_equal(strtoull(text + strlen("SigIgn:"), NULL, 16) & 0x7fffffff, 0);
	}
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

static const struct CMUnitTest tests[] = {
	CASE(modules_first),
	CASE(a_whole_host),
	CASE(an_old_driver),
	CASE(what_cannot_be_is_left_out),
	CASE(hosts_without),
	CASE(channels),
	CASE(nodes_are_made_once),
	CASE(wrong_ones),
	CASE(a_directory_is_not_replaced),
	CASE(others_are_faster),
	CASE(modules_are_loaded),
	CASE(modprobe_fails),
	CASE(nodes_are_labelled),
	CASE(callers_differ),
};

int main(void)
{
	int failed;

	scratch_enter();
	failed = cmocka_run_group_tests_name("load", tests, NULL, NULL);
	scratch_remove();
	return failed != 0;
}
