/* SPDX-License-Identifier: Apache-2.0 */

/* What NVIDIA's kernel module says of itself in /proc, and the device nodes that it stands behind. */

#include "nvidia/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "base/paths.h"
#include "base/str.h"
#include "model/adapter.h"

/* ---- text below /proc ---- */

enum {
	VERSION_MAX = 32,
	MAJOR_MAX = 4095, /* of a device number: MINORBITS of include/linux/kdev_t.h leaves 12 bits */
};

static bool proc_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The length of a version at @text; 0 for other text. */
static size_t proc_version_length(const char *text)
{
	size_t length = 0, numbers = 0;

	for (;;) {
		if (!proc_is_digit(text[length]))
			return 0;
		while (proc_is_digit(text[length]))
			length++;
		numbers++;
		if (text[length] != '.')
			break;
		length++;
	}
	return numbers >= 2 && numbers <= 3 && length <= VERSION_MAX ? length : 0;
}

bool proc_is_version(const char *text)
{
	size_t length = proc_version_length(text);

	return length > 0 && text[length] == '\0';
}

static bool proc_ends_word(char c)
{
	return c == '\0' || c == ' ' || c == '\t' || c == '\n';
}

/* The version is the first such word behind "NVRM version:"; what stands in front differs between drivers. */
int proc_driver_version(const char *text, char **ret)
{
	static const char label[] = "NVRM version:";
	const char *word;

	if (!str_has_prefix(text, label))
		return -ENOENT;
	word = text + strlen(label);
	while (*word && *word != '\n') {
		size_t length;

		word += strspn(word, " \t");
		length = proc_version_length(word);
		if (length > 0 && proc_ends_word(word[length])) {
			char *version = strndup(word, length);

			if (!version)
				return -ENOMEM;
			*ret = version;
			return 0;
		}
		word += strcspn(word, " \t\n");
	}
	return -ENOENT;
}

/* The value of a line, up to its end without trailing blanks; NULL if the line is missing. */
static const char *proc_find_value(const char *text, const char *name, size_t *ret_length)
{
	size_t name_length = strlen(name);

	while (*text) {
		size_t line = strcspn(text, "\n");
		const char *value = text + name_length + 1;

		if (line > name_length && strncmp(text, name, name_length) == 0 && text[name_length] == ':') {
			size_t length, end = line - name_length - 1;

			length = strspn(value, " \t");
			length = length < end ? length : end;
			value += length;
			end -= length;
			while (end > 0 && (value[end - 1] == ' ' || value[end - 1] == '\t' || value[end - 1] == '\r'))
				end--;
			*ret_length = end;
			return value;
		}
		text += line;
		text += *text == '\n';
	}
	return NULL;
}

int proc_field(const char *text, const char *name, char **ret)
{
	size_t length;
	const char *value = proc_find_value(text, name, &length);
	char *copy;

	if (!value || length == 0)
		return -ENOENT;
	copy = strndup(value, length);
	if (!copy)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

int proc_number(const char *text, const char *name, unsigned max, unsigned *ret)
{
	_cleanup_free_ char *value = NULL;
	unsigned long number;
	char *end;
	int r;

	r = proc_field(text, name, &value);
	if (r < 0)
		return r;
	if (!proc_is_digit(*value))
		return -EINVAL;
	errno = 0;
	number = strtoul(value, &end, 10);
	if (*end || errno != 0 || number > max)
		return -EINVAL;
	*ret = (unsigned)number;
	return 0;
}

/* One line of /proc/devices, "195 nvidia", numbers right-aligned. */
static bool proc_parse_device_line(const char *line, size_t length, const char *name, unsigned *ret)
{
	const char *end = line + length;
	unsigned number = 0;

	while (line < end && *line == ' ')
		line++;
	if (line == end || !proc_is_digit(*line))
		return false;
	for (; line < end && proc_is_digit(*line); line++) {
		number = number * 10 + (unsigned)(*line - '0');
		if (number > MAJOR_MAX)
			return false;
	}
	if (line == end || *line++ != ' ')
		return false;
	if (str_after_prefix(line, name) != end)
		return false;
	*ret = number;
	return true;
}

int proc_device_major(const char *devices, const char *name, unsigned *ret)
{
	static const char heading[] = "Character devices:";
	const char *line = strstr(devices, heading);

	if (!line)
		return -ENOENT;
	line += strlen(heading);
	line += *line == '\n';
	/* An empty line stands in front of the block devices. */
	while (*line && *line != '\n') {
		size_t length = strcspn(line, "\n");

		if (proc_parse_device_line(line, length, name, ret))
			return 0;
		line += length;
		line += *line == '\n';
	}
	return -ENOENT;
}

int proc_set_field(const char *text, const char *name, const char *value, char **ret)
{
	size_t length;
	const char *old = proc_find_value(text, name, &length);

	if (!old)
		return -ENOENT;
	return str_format(ret, "%.*s%s%s", (int)(old - text), text, value, old + length);
}

/* ---- the module ---- */

enum {
	SMALL_FILE_MAX = 4095,
	PROC_FILE_MAX = 256 * 1024,
};

void module_clear(struct module *module)
{
	free(module->version);
	free(module->devices);
	*module = (struct module){0};
}

/* Below /proc it is one record of the kernel's, which one read gives whole. */
int module_read_small(const char *path, char **ret)
{
	return fd_read_kernel_file(AT_FDCWD, path, SMALL_FILE_MAX, ret);
}

int module_read_file(const char *path, char **ret)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd_read_sized(fd, 0, PROC_FILE_MAX, ret, NULL);
}

/* Drivers before 550 register one "frontend" for all nodes of major 195. */
int module_major(const char *devices, const char *driver, unsigned *ret)
{
	int r = proc_device_major(devices, driver, ret);

	if (r == -ENOENT && streq(driver, "nvidia"))
		return proc_device_major(devices, "nvidia-frontend", ret);
	return r;
}

static int module_check_node(const struct module *module, const struct stat *st, const char *driver,
			     unsigned node_minor)
{
	unsigned number;

	if (!S_ISCHR(st->st_mode))
		return -ENODEV;
	if (module_major(module->devices, driver, &number) < 0)
		return -ENXIO;
	return st->st_rdev == makedev(number, node_minor) ? 0 : -ENODEV;
}

int module_node(const struct module *module, const char *path, const char *driver, unsigned node_minor,
		struct stat *ret)
{
	struct stat st;
	int r;

	if (stat(path, &st) < 0)
		return -errno;
	r = module_check_node(module, &st, driver, node_minor);
	if (r == 0)
		*ret = st;
	return r;
}

static int module_read_version(char **ret)
{
	_cleanup_free_ char *text = NULL;
	int r;

	r = module_read_small(PATH_PROC_NVIDIA "/version", &text);
	return r < 0 ? r : proc_driver_version(text, ret);
}

int module_read(struct module *ret, struct err *err)
{
	_cleanup_module_ struct module module = {0};
	struct stat st;
	int r;

	/* Nothing else decides whether this kind of device is here. */
	if (stat(PATH_NVIDIACTL, &st) < 0 || !S_ISCHR(st.st_mode))
		return CTR_GPU_E_NO_DEVICE;
	r = module_read_version(&module.version);
	if (r == -ENOENT)
		return err_set_advised(err, CTR_GPU_E_NO_ADAPTER,
				       (PATH_NVIDIACTL
					" is there, but NVIDIA's kernel module is not loaded (%s/version is missing)",
					PATH_PROC_NVIDIA),
				       ("Load the module: sudo ctr-gpu load. If that fails, dmesg says why."));
	if (r < 0)
		return err_set(err, r, "cannot read " PATH_PROC_NVIDIA "/version: %m");
	r = module_read_file("/proc/devices", &module.devices);
	if (r < 0)
		return err_set(err, r, "cannot read /proc/devices: %m");
	if (module_check_node(&module, &st, "nvidia", MINOR_CONTROL) < 0)
		return err_set_advised(err, CTR_GPU_E_NO_ADAPTER,
				       (PATH_NVIDIACTL " is device %u:%u, and by /proc/devices that is another",
					major(st.st_rdev), minor(st.st_rdev)),
				       ("Put the right one there: ctr-gpu load --replace"));
	*ret = steal_struct(&module);
	return 0;
}

bool module_is_gpu(const struct pci_function *function)
{
	return function->display && function->vendor == PCI_VENDOR_NVIDIA;
}
