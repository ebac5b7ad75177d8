/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An image that brings parts of a driver along, or whose loader cannot load one. All of it is hostile, and reached
 * through its root alone. What ctr-gpu puts into the loader's cache goes before what an image has there; but not before
 * LD_LIBRARY_PATH.
 */

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/doctor/doctor.h"
#include "ldcache/ldcache.h"
#include "root/rootfs.h"

enum { ENTRIES_MAX = 1024 };

static bool image_has(const struct rootfs *root, const char *path)
{
	_cleanup_close_ int fd = rootfs_open_path(root, path, O_PATH);

	return fd >= 0;
}

/* The first entry of a directory whose name begins like this. Return: false if there is none. */
static bool image_find_entry(const struct rootfs *root, const char *path, const char *prefix, char *name, size_t size)
{
	int fd = rootfs_open_path(root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool found = false;

	if (!directory) {
		cleanup_closep(&fd);
		return false;
	}
	for (int i = 0; !found && i < ENTRIES_MAX && (entry = readdir(directory)); i++)
		if (str_has_prefix(entry->d_name, prefix)) {
			(void)snprintf(name, size, "%.100s", entry->d_name);
			found = true;
		}
	(void)closedir(directory);
	return found;
}

/* ---- the loader ---- */

static void image_check_loader(struct findings *findings, const struct rootfs *root)
{
	char name[128];

	if (image_find_entry(root, "/lib", "ld-musl-", name, sizeof(name))) {
		findings_add(findings, "image.musl", SEVERITY_WARNING,
			     "its C library is musl, and drivers are made for glibc: CUDA programs will not load them\n"
			     "Use an image with glibc (Debian, Ubuntu, Fedora), or install gcompat in it for the "
			     "simplest programs.");
	} else if (!image_has(root, "/etc/ld.so.cache")) {
		findings_add(findings, "image.no-cache", SEVERITY_NOTE,
			     "it has no /etc/ld.so.cache: ctr-gpu makes one with the driver's libraries in it");
	}
}

/* ---- the architecture ---- */

/* That of the first ELF file of some that most images have; EM_NONE if there is none. */
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
		_cleanup_close_ int fd = rootfs_open_path(root, paths[i], O_RDONLY | O_NONBLOCK | O_NOCTTY);
		Elf64_Ehdr header;

		/* Up to e_machine both classes are alike. */
		if (fd >= 0 && read(fd, &header, sizeof(header)) >= (ssize_t)sizeof(Elf32_Ehdr) &&
		    memcmp(header.e_ident, ELFMAG, SELFMAG) == 0)
			return header.e_machine;
	}
	return EM_NONE;
}

static const char *image_machine_name(unsigned machine)
{
	static const struct {
		unsigned machine;
		const char *name;
	} names[] = {{EM_X86_64, "x86-64"}, {EM_386, "32-bit x86"}, {EM_AARCH64, "64-bit ARM"}, {EM_ARM, "32-bit ARM"}};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].machine == machine)
			return names[i].name;
	return "another architecture";
}

/* Emulated or not, its programs cannot load the host's driver. */
static void image_check_architecture(struct findings *findings, const struct rootfs *root)
{
#if defined(__x86_64__)
	const unsigned ours = EM_X86_64;
#elif defined(__aarch64__)
	const unsigned ours = EM_AARCH64;
#else
	const unsigned ours = EM_NONE;
#endif
	unsigned machine = image_find_machine(root);

	if (machine == EM_NONE || machine == ours)
		return;
	findings_add(findings, "image.architecture", SEVERITY_PROBLEM,
		     "the image is for %s, and the driver's libraries are for %s\n"
		     "Use the image for this machine: docker pull --platform linux/%s",
		     image_machine_name(machine), image_machine_name(ours), ours == EM_X86_64 ? "amd64" : "arm64");
}

/* ---- libraries of a driver ---- */

struct baked {
	char path[128]; /* the first; "" if there is none */
	bool stub;
};

static void image_visit(void *user, const char *name, const char *path)
{
	struct baked *baked = user;

	if (baked->path[0] ||
	    (!streq(name, "libcuda.so.1") && !streq(name, "libnvidia-ml.so.1") && !streq(name, "libcuda.so")))
		return;
	(void)snprintf(baked->path, sizeof(baked->path), "%.120s", path);
	baked->stub = strstr(path, "/stubs/");
}

static void image_search_cache(const struct rootfs *root, struct baked *baked)
{
	_cleanup_free_ char *data = NULL;
	struct span cache;
	size_t size;

	if (rootfs_read_file(root, "/etc/ld.so.cache", LDCACHE_MAX_SIZE, &data, &size) < 0)
		return;
	cache = (struct span){(const unsigned char *)data, size};
	ldcache_each(&cache, image_visit, baked);
}

static void image_search_directories(const struct rootfs *root, struct baked *baked)
{
	static const char *const directories[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
						  "/usr/lib64", "/usr/lib"};
	static const char *const names[] = {"libcuda.so.1", "libnvidia-ml.so.1"};

	for (size_t i = 0; i < ARRAY_SIZE(directories) * ARRAY_SIZE(names) && !baked->path[0]; i++) {
		(void)snprintf(baked->path, sizeof(baked->path), "%s/%s", directories[i / 2], names[i % 2]);
		if (!image_has(root, baked->path))
			baked->path[0] = '\0';
	}
}

/* Those that ctr-gpu itself put there do not belong to the image. */
static bool image_is_given(const char *path)
{
	return str_has_prefix(path, "/usr/lib/wsl/") || str_has_prefix(path, "/usr/lib/ctr-gpu/");
}

static void image_check_baked(struct findings *findings, const struct rootfs *root)
{
	struct baked baked = {0};

	image_search_cache(root, &baked);
	image_search_directories(root, &baked);
	if (!baked.path[0] || image_is_given(baked.path))
		return;
	if (baked.stub) {
		findings_add(findings, "image.stub", SEVERITY_WARNING,
			     "its loader finds a stub, %s, which only links programs and finds no GPU\n"
			     "ctr-gpu's entry goes before it; for other toolkits remove the stubs directory from "
			     "/etc/ld.so.conf.d.",
			     baked.path);
		return;
	}
	findings_add(findings, "image.baked", SEVERITY_NOTE,
		     "it brings a driver library along, %s; ctr-gpu's goes before it\n"
		     "Remove it from the image: other toolkits fail on it (\"file exists\").",
		     baked.path);
}

/* ---- compatibility libraries ---- */

/* "/usr/local/cuda-12.4" or the link "/usr/local/cuda". */
static bool image_find_compat(const struct rootfs *root, char *path, size_t size)
{
	char name[128], file[128];

	if (image_has(root, "/usr/local/cuda/compat"))
		(void)snprintf(name, sizeof(name), "cuda");
	else if (!image_find_entry(root, "/usr/local", "cuda-", name, sizeof(name)))
		return false;
	(void)snprintf(path, size, "/usr/local/%.100s/compat", name);
	return image_find_entry(root, path, "libcuda.so", file, sizeof(file));
}

/* A drop-in that names the directory lets the loader take its libcuda in place of the host's. */
static bool image_configures_compat(const struct rootfs *root)
{
	char name[128];

	return image_find_entry(root, "/etc/ld.so.conf.d", "00-cuda-compat", name, sizeof(name)) ||
	       image_find_entry(root, "/etc/ld.so.conf.d", "000_cuda_compat", name, sizeof(name));
}

static void image_check_compat(struct findings *findings, const struct rootfs *root)
{
	char path[160];

	if (!image_find_compat(root, path, sizeof(path)))
		return;
	findings_add(findings, "image.compat", image_configures_compat(root) ? SEVERITY_WARNING : SEVERITY_NOTE,
		     "it has NVIDIA's compatibility libraries in %s, which ctr-gpu never uses\n"
		     "If LD_LIBRARY_PATH names that directory, take it out: on GPU-PV hosts its libcuda finds no GPU.",
		     path);
}

void check_image(struct examination *examination)
{
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	struct findings *findings = &examination->findings;
	size_t before = findings->count;
	int r;

	if (!examination->rootfs)
		return;
	r = rootfs_open(AT_FDCWD, examination->rootfs, &root);
	if (r < 0) {
		findings_add(findings, "image.unreadable", SEVERITY_PROBLEM,
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
