/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An image that brings parts of a driver along, or whose loader cannot load one. All of it is hostile, and reached
 * through its root alone. What ctr-gpu puts into the loader's cache goes before what an image has there; but not before
 * LD_LIBRARY_PATH.
 */

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/paths.h"
#include "cli/doctor/doctor.h"
#include "ldcache/ldcache.h"
#include "ldcache/loader.h"
#include "root/rootfs.h"
#include "system/trusted_file.h"

enum { ENTRIES_MAX = 1024, NAME_SIZE = 128 };

static bool image_has(const struct rootfs *root, const char *path)
{
	_cleanup_close_ int fd = rootfs_open_path(root, path, O_PATH);

	return fd >= 0;
}

/* The first entry of a directory whose name begins like this. Return: false if there is none. */
static bool image_find_entry(const struct rootfs *root, const char *path, const char *prefix, char name[NAME_SIZE])
{
	_cleanup_close_ int fd = rootfs_open_path(root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	_cleanup_dir_ DIR *directory = fd < 0 ? NULL : fd_open_directory(fd, ".", 0);
	const struct dirent *entry;

	for (int i = 0; directory && i < ENTRIES_MAX && (entry = readdir(directory)); i++) {
		(void)snprintf(name, NAME_SIZE, "%.100s", entry->d_name);
		if (str_has_prefix(name, prefix))
			return true;
	}
	return false;
}

/* ---- the loader ---- */

static void image_check_loader(struct findings *findings, const struct rootfs *root)
{
	char name[NAME_SIZE];

	if (image_find_entry(root, "/lib", "ld-musl-", name))
		findings_add(findings, "image.musl", SEVERITY_WARNING,
			     "its C library is musl, and drivers are made for glibc: CUDA programs will not load them\n"
			     "Use an image with glibc (Debian, Ubuntu, Fedora), or install gcompat in it for the "
			     "simplest programs.");
	else if (!image_has(root, "/etc/ld.so.cache"))
		findings_add(findings, "image.no-cache", SEVERITY_NOTE,
			     "it has no /etc/ld.so.cache: ctr-gpu makes one with the driver's libraries in it");
}

/* ---- the architecture ---- */

static const struct machine {
	unsigned number;
	const char *name, *platform, *emulator; /* NULL: a processor may run both */
} machines[] = {
#if defined(__aarch64__)
	{EM_AARCH64, "64-bit ARM", "arm64", NULL},
	{EM_X86_64, "x86-64", "amd64", "qemu-x86_64"},
	{EM_386, "32-bit x86", NULL, "qemu-i386"},
	{EM_ARM, "32-bit ARM", NULL, NULL},
#else
	{EM_X86_64, "x86-64", "amd64", NULL}, /* ours is the first */
	{EM_AARCH64, "64-bit ARM", "arm64", "qemu-aarch64"},
	{EM_386, "32-bit x86", NULL, NULL},
	{EM_ARM, "32-bit ARM", NULL, "qemu-arm"},
#endif
};

/* The image's machine, from the first ELF file found among some that most images have. Return: EM_NONE without one. */
static unsigned image_find_machine(const struct rootfs *root)
{
	static const char *const paths[] = {"/bin/sh",
					    "/usr/bin/env",
					    "/bin/busybox",
					    "/lib64/ld-linux-x86-64.so.2",
					    "/lib/ld-linux-aarch64.so.1",
					    "/lib/ld-linux-armhf.so.3",
					    "/lib/ld-linux.so.2"};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		_cleanup_close_ int handle = rootfs_open_path(root, paths[i], O_PATH), fd = -1;
		Elf64_Ehdr header;

		if (handle >= 0)
			fd = rootfs_open_regular(root, handle);

		/* Up to e_machine both classes are alike. */
		if (fd >= 0 && read(fd, &header, sizeof(header)) >= (ssize_t)sizeof(Elf32_Ehdr) &&
		    memcmp(header.e_ident, ELFMAG, SELFMAG) == 0)
			return header.e_machine;
	}
	return EM_NONE;
}

/* Whether the kernel starts an emulator for such programs. It is registered by this name (qemu's binfmt files). */
static bool image_is_emulated(const struct machine *machine)
{
	_cleanup_free_ char *path = NULL, *state = NULL;

	if (!machine->emulator)
		return true;
	if (str_format(&path, "/proc/sys/fs/binfmt_misc/%s", machine->emulator) == 0)
		state = file_text(path);
	return state && str_has_prefix(state, "enabled");
}

/* Emulated or not, its programs cannot load the host's driver. */
static void image_check_architecture(struct findings *findings, const struct rootfs *root)
{
	static const struct machine unknown = {.name = "another architecture", .emulator = "qemu"};
	const struct machine *machine = &unknown;
	unsigned number = image_find_machine(root);

	if (number == EM_NONE || number == machines[0].number)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
		if (machines[i].number == number)
			machine = &machines[i];
	findings_add(findings, "image.architecture", SEVERITY_PROBLEM,
		     "the image is for %s, and the driver's libraries are for %s: its programs %s\n"
		     "Use the image for this machine: docker pull --platform linux/%s",
		     machine->name, machines[0].name,
		     image_is_emulated(machine) ? "run here, and cannot load them"
						: "do not run here (\"exec format error\")",
		     machines[0].platform);
}

/* ---- libraries of a driver ---- */

static const char *const libraries[] = {"libcuda.so.1", "libnvidia-ml.so.1", "libcuda.so"};

/* @user: gets the first path of such a library. */
static void image_visit(void *user, const char *name, const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(libraries) && !*(char *)user; i++)
		if (streq(name, libraries[i]))
			(void)snprintf(user, NAME_SIZE, "%.120s", path);
}

static void image_search_directories(const struct rootfs *root, char path[NAME_SIZE])
{
	static const char *const directories[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
						  "/usr/lib64", "/usr/lib"};

	for (size_t i = 0; i < ARRAY_SIZE(directories) * 2 && !*path; i++) {
		(void)snprintf(path, NAME_SIZE, "%s/%s", directories[i / 2], libraries[i % 2]);
		if (!image_has(root, path))
			*path = '\0';
	}
}

static void image_check_baked(struct findings *findings, const struct rootfs *root)
{
	_cleanup_free_ char *data = NULL;
	char path[NAME_SIZE] = "";
	size_t size;

	if (loader_read_cache(root, &data, &size) == 0)
		ldcache_each(&(struct span){(const unsigned char *)data, size}, image_visit, path);
	image_search_directories(root, path);
	/* Those that ctr-gpu itself put there do not belong to the image. */
	if (!*path || str_has_prefix(path, PATH_WSL "/") || str_has_prefix(path, PATH_CONTAINER "/"))
		return;
	if (strstr(path, "/stubs/"))
		findings_add(findings, "image.stub", SEVERITY_WARNING,
			     "its loader finds a stub, %s, which only links programs and finds no GPU\n"
			     "ctr-gpu's entry goes before it; for other toolkits remove the stubs directory from "
			     "/etc/ld.so.conf.d.",
			     path);
	else
		findings_add(findings, "image.baked", SEVERITY_NOTE,
			     "it brings a driver library along, %s; ctr-gpu's goes before it\n"
			     "Remove the library from the image: other toolkits fail on it (\"file exists\").",
			     path);
}

/* ---- compatibility libraries ---- */

/* In "/usr/local/cuda-12.4", or by the link "/usr/local/cuda". */
static void image_check_compat(struct findings *findings, const struct rootfs *root)
{
	char name[NAME_SIZE] = "cuda", path[NAME_SIZE + 32], ignored[NAME_SIZE];
	bool configured;

	if (!image_has(root, "/usr/local/cuda/compat") && !image_find_entry(root, "/usr/local", "cuda-", name))
		return;
	(void)snprintf(path, sizeof(path), "/usr/local/%.100s/compat", name);
	if (!image_find_entry(root, path, "libcuda.so", ignored))
		return;
	/* A drop-in that names the directory lets the loader take its libcuda in place of the host's. */
	configured = image_find_entry(root, "/etc/ld.so.conf.d", "00-cuda-compat", ignored) ||
		     image_find_entry(root, "/etc/ld.so.conf.d", "000_cuda_compat", ignored);
	findings_add(findings, "image.compat", configured ? SEVERITY_WARNING : SEVERITY_NOTE,
		     "it has NVIDIA's compatibility libraries in %s, which ctr-gpu never uses\n"
		     "If LD_LIBRARY_PATH names that directory, take it out: on GPU-PV hosts its libcuda finds no GPU.",
		     path);
}

void check_image(struct doctor_context *examination)
{
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	struct findings *findings = &examination->findings;
	size_t before = findings->count;
	int r;

	if (!examination->rootfs)
		return;
	r = rootfs_open(AT_FDCWD, examination->rootfs, &root);
	if (r < 0) {
		findings_add(findings, IMAGE_UNREADABLE, SEVERITY_PROBLEM,
			     "cannot open %s: %s\n"
			     "Give the root directory of an unpacked image or a mounted container.",
			     examination->rootfs, strerror(-r));
		return;
	}
	image_check_architecture(findings, &root);
	image_check_loader(findings, &root);
	image_check_baked(findings, &root);
	image_check_compat(findings, &root);
	if (findings->count == before)
		findings_add(findings, "image.clean", SEVERITY_OK,
			     "glibc, a loader cache, and no driver library of its own");
}
