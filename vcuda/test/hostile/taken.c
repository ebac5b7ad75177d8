/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A driver's library that says what a server that was taken over could open: loaded in the driver's place, it tries from
 * inside before anything of the driver is asked, and prints a line for each.
 */

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static int try_open(const char *path, int flags)
{
	const int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd >= 0)
		(void)close(fd);
	return fd >= 0;
}

/* Opened and read, since rules for a directory are asked for when it is opened. */
static int try_list(const char *path)
{
	DIR *directory = opendir(path);

	if (directory)
		(void)closedir(directory);
	return directory != NULL;
}

static int try_tcp(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int r = fd < 0 ? -1 : bind(fd, (const struct sockaddr *)&address, sizeof(address));

	if (fd >= 0)
		(void)close(fd);
	return r == 0;
}

/* As NVIDIA's driver does it for each of its threads. */
static int try_name(void)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)gettid());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return 0;
	const int named = write(fd, "named", 5) == 5;

	(void)close(fd);
	return named;
}

static void tell(const char *what, int could)
{
	(void)printf("%s: %s\n", what, could ? "yes" : "no");
}

__attribute__((constructor)) static void look_around(void)
{
	tell("read /etc/passwd", try_open("/etc/passwd", O_RDONLY));
	tell("read /proc/1/status", try_open("/proc/1/status", O_RDONLY));
	tell("list /", try_list("/"));
	tell("list /proc", try_list("/proc"));
	tell("list /home", try_list("/home"));
	tell("list /run", try_list("/run"));
	tell("make a file in /tmp", try_open("/tmp/taken-over", O_WRONLY | O_CREAT));
	tell("make a file in /dev/shm", try_open("/dev/shm/taken-over", O_WRONLY | O_CREAT));
	tell("open /dev/full", try_open("/dev/full", O_RDWR));
	tell("bind a TCP socket", try_tcp());
	tell("read /proc/self/maps", try_open("/proc/self/maps", O_RDONLY));
	tell("read /proc/cpuinfo", try_open("/proc/cpuinfo", O_RDONLY));
	tell("name a thread", try_name());
	tell("list /usr/lib", try_list("/usr/lib"));
	tell("open /dev/null", try_open("/dev/null", O_RDWR));
	tell("open /dev/nvidiactl", try_open("/dev/nvidiactl", O_RDWR));
	tell("open /dev/nvidia0", try_open("/dev/nvidia0", O_RDWR));
	tell("open /dev/nvidia1", try_open("/dev/nvidia1", O_RDWR));
	(void)fflush(stdout);
}
