/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Many shared libraries from one: copies of TEMPLATE, whose SONAME is libgen00000.so.1, each with a number of its own in
 * file name and SONAME. ldconfig makes an entry for each.
 *
 *	libraries TEMPLATE COUNT DIRECTORY
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char soname[] = "libgen00000.so.1";

static char *find_soname(char *data, size_t size)
{
	return memmem(data, size, soname, sizeof(soname));
}

static int write_library(const char *directory, const char *name, const char *data, size_t size)
{
	char path[4096];
	int fd, result;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	if (fd < 0)
		return -1;
	result = write(fd, data, size) == (ssize_t)size ? 0 : -1;
	close(fd);
	return result;
}

static char *read_file(const char *path, size_t *ret_size)
{
	struct stat st;
	char *data = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) == 0 && (data = malloc((size_t)st.st_size)) &&
	    read(fd, data, (size_t)st.st_size) == st.st_size)
		*ret_size = (size_t)st.st_size;
	close(fd);
	return data;
}

int main(int argc, char **argv)
{
	char *data, *place, name[sizeof(soname)];
	size_t size = 0;

	if (argc != 4) {
		fprintf(stderr, "usage: libraries TEMPLATE COUNT DIRECTORY\n");
		return 2;
	}
	data = read_file(argv[1], &size);
	place = data ? find_soname(data, size) : NULL;
	if (!place) {
		fprintf(stderr, "libraries: %s: cannot be read, or has another SONAME\n", argv[1]);
		return 1;
	}
	for (unsigned i = 0; i < (unsigned)atoi(argv[2]) && i < 100000; i++) {
		snprintf(name, sizeof(name), "libgen%05u.so.1", i % 100000);
		memcpy(place, name, sizeof(name));
		if (write_library(argv[3], name, data, size) < 0) {
			perror(argv[3]);
			return 1;
		}
	}
	free(data);
	return 0;
}
