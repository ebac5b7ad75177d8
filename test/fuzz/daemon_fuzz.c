/* SPDX-License-Identifier: Apache-2.0 */

/* A daemon's arguments and environment as /proc gives them: any bytes with a NUL behind, cut in two at the first empty string. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "engines/daemon.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Copies of the exact size, so that nothing behind them is read unseen. */
static char *copy(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

static void check(const struct daemon *daemon, const char *text)
{
	if (text && (text < daemon->arguments || text > daemon->arguments + daemon->arguments_size) &&
	    (text < daemon->environment || text > daemon->environment + daemon->environment_size))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const options[] = {"--config-file", "--config", "--host", "-c", "--", ""};
	const uint8_t *split = memmem(data, size, "\0\0", 2);
	size_t first = split ? (size_t)(split - data) + 1 : size;
	_cleanup_free_ char *arguments = copy(data, first), *environment = copy(data + first, size - first);
	const struct daemon daemon = {.arguments = arguments,
				      .arguments_size = first,
				      .environment = environment,
				      .environment_size = size - first,
				      .root = -1};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		_cleanup_free_ char *path = NULL;

		check(&daemon, daemon_option(&daemon, options[i], "-x"));
		check(&daemon, daemon_variable(&daemon, options[i]));
		(void)daemon_has_option(&daemon, options[i]);
		(void)daemon_mentions(&daemon, options[i]);
		/* Its first file that does not count ends the walk; nothing is opened. */
		if (daemon_config(&daemon, options[i], NULL, &path) == 0 && path && path[0] != '/')
			abort();
	}
	(void)daemon_stands_alone(&daemon);
	return 0;
}
