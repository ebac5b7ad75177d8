/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu-device-plugin: tells kubelet which GPUs this node has, and gives each container what kubelet has decided. It
 * keeps nothing: what a container was granted kubelet knows, and an answer depends on the request alone.
 */

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/print.h"
#include "base/str.h"
#include "cluster/plugin.h"
#include "model/version.h"

VERSION_NOTE();

#define PLUGIN_DIRECTORY "/var/lib/kubelet/device-plugins"
#define PLUGIN_ADVICE "    See ctr-gpu-device-plugin(8).\n"

enum {
	EXIT_STATUS_USAGE = 2,
	PLUGIN_LOOK_MS = 20 * 1000, /* in which a look comes, also one that asks drivers for names (watcher.c) */
};

struct plugin {
	const char *directory;
	unsigned strategies;
	bool follows; /* the strategies are those of the node's engine */
	enum watcher_mig mig;
	struct watcher watcher;
	struct resources resources;
	struct kubelet kubelet;
	const char *metrics_where; /* NULL: nowhere */
	struct metrics metrics;
	struct endpoint endpoints[RESOURCES_MAX];
	size_t endpoint_count;
	unsigned told[RESOURCES_MAX]; /* which of a resource's changes the log has */
	char *why;                    /* the last complaint of a look */
	int64_t look_until;           /* by when the next must have come */
};

static volatile sig_atomic_t plugin_ended;

static void plugin_end(int number)
{
	(void)number;
	plugin_ended = 1;
}

/* ---- looks ---- */

static void plugin_tell_changes(struct plugin *plugin)
{
	for (size_t i = 0; i < plugin->resources.count; i++) {
		const struct resource *resource = &plugin->resources.list[i];
		size_t healthy = 0;

		if (plugin->told[i] == resource->changes)
			continue;
		plugin->told[i] = resource->changes;
		for (size_t j = 0; j < resource->count; j++)
			healthy += resource->devices[j].healthy;
		plugin_log("%s: %zu of %zu can be used", resource->name, healthy, resource->count);
	}
}

/* Each complaint once, until there is another, or none. */
static void plugin_tell_why(struct plugin *plugin, const char *why)
{
	if (why && (!plugin->why || !streq(plugin->why, why)))
		plugin_log("%s", why);
	free(plugin->why);
	plugin->why = why ? strdup(why) : NULL;
}

static void plugin_tell_strategies(const struct plugin *plugin)
{
	char strategies[STRATEGY_TEXT_SIZE];

	strategy_print(plugin->strategies, strategies);
	plugin_log("containers are told their devices by: %s", strategies);
}

static void plugin_take_strategies(struct plugin *plugin, unsigned strategies)
{
	if (!plugin->follows || strategies == 0 || strategies == plugin->strategies)
		return;
	plugin->strategies = strategies;
	for (size_t i = 0; i < plugin->endpoint_count; i++)
		plugin->endpoints[i].strategies = strategies;
	plugin_tell_strategies(plugin);
}

static int plugin_take_look(struct plugin *plugin, const json_t *look)
{
	int r = 0;

	if (json_is_true(json_object_get(look, "failed")))
		resources_fail(&plugin->resources);
	else
		r = resources_update(&plugin->resources, look);
	plugin_tell_why(plugin, json_string_value(json_object_get(look, "why")));
	plugin_tell_changes(plugin);
	plugin_take_strategies(plugin, (unsigned)json_integer_value(json_object_get(look, "strategies")));
	if (plugin->resources.wants_names)
		watcher_ask_names(&plugin->watcher);
	for (; r == 0 && plugin->endpoint_count < plugin->resources.count; plugin->endpoint_count++) {
		size_t number = plugin->endpoint_count;

		r = endpoint_new(plugin->directory, &plugin->resources.list[number], plugin->strategies,
				 &plugin->endpoints[number]);
		if (r < 0)
			break;
	}
	return r;
}

/* The process that looks waits for a driver itself at times. Where it hangs, nothing is known of the GPUs any more. */
static void plugin_miss_look(struct plugin *plugin)
{
	resources_fail(&plugin->resources);
	plugin_tell_why(plugin, "the process that looks at the host does not answer");
	plugin_tell_changes(plugin);
	plugin->look_until = grpc_now() + PLUGIN_LOOK_MS;
}

/* Return: 0; negative errno, with which the plugin ends: to be started again is what helps. */
static int plugin_read_looks(struct plugin *plugin)
{
	for (;;) {
		_cleanup_json_ json_t *look = NULL;
		int r = watcher_read(&plugin->watcher, &look);

		if (r == 0)
			return 0;
		if (r > 0) {
			plugin->look_until = grpc_now() + PLUGIN_LOOK_MS;
			r = plugin_take_look(plugin, look);
		}
		if (r < 0)
			return r;
	}
}

/* ---- the loop ---- */

static void plugin_wait(struct plugin *plugin, struct waits *waits)
{
	int64_t left;

	*waits = (struct waits){.until = plugin->look_until};
	waits_add(waits, plugin->watcher.fd, POLLIN);
	kubelet_gather(&plugin->kubelet, waits);
	metrics_gather(&plugin->metrics, waits);
	for (size_t i = 0; i < plugin->endpoint_count; i++)
		endpoint_gather(&plugin->endpoints[i], waits);
	left = waits->until - grpc_now();
	if (poll(waits->list, waits->count, left < 0 ? 0 : (int)left + 1) < 0)
		for (size_t i = 0; i < waits->count; i++)
			waits->list[i].revents = 0;
}

/*
 * A service manager gives the plugin kubelet's directory to write to if there is one by then. One that kubelet makes
 * later cannot be written to before the plugin is started again, so the plugin ends.
 */
static int plugin_run(struct plugin *plugin)
{
	struct waits waits;
	int r = 0;

	plugin->look_until = grpc_now() + PLUGIN_LOOK_MS;
	while (!plugin_ended && r == 0) {
		plugin_wait(plugin, &waits);
		if (waits_find(&waits, plugin->watcher.fd))
			r = plugin_read_looks(plugin);
		if (r == 0 && grpc_now() >= plugin->look_until)
			plugin_miss_look(plugin);
		for (size_t i = 0; r == 0 && i < plugin->endpoint_count; i++)
			endpoint_serve(&plugin->endpoints[i], &waits);
		if (r == 0)
			r = kubelet_serve(&plugin->kubelet, plugin->endpoints, plugin->endpoint_count, &waits);
		if (r == 0)
			metrics_serve(&plugin->metrics, &plugin->resources, &waits);
	}
	return r;
}

static int plugin_start(struct plugin *plugin)
{
	struct sigaction end = {.sa_handler = plugin_end};
	int r;

	(void)umask(0177);
	(void)sigaction(SIGTERM, &end, NULL);
	(void)sigaction(SIGINT, &end, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	/* Before the rights are given up, which looks take. */
	r = watcher_start(plugin->mig, &plugin->watcher);
	if (r == 0)
		r = kubelet_new(plugin->directory, &plugin->kubelet);
	if (r == 0 && plugin->metrics_where)
		r = metrics_open(plugin->metrics_where, &plugin->metrics);
	return r < 0 ? r : filter_enter();
}

static int plugin_main(struct plugin *plugin)
{
	int r = plugin_start(plugin);

	plugin_tell_strategies(plugin);
	if (r < 0) {
		plugin_log("it cannot start: %s", strerror(-r));
		return EXIT_FAILURE;
	}
	r = plugin_run(plugin);
	if (r < 0)
		plugin_log("it ends: %s", r == -EPIPE ? "the process that looks at the host has ended" : strerror(-r));
	for (size_t i = 0; i < plugin->endpoint_count; i++)
		endpoint_clear(&plugin->endpoints[i]);
	kubelet_clear(&plugin->kubelet);
	metrics_close(&plugin->metrics);
	watcher_end(&plugin->watcher);
	resources_clear(&plugin->resources);
	free(plugin->why);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- arguments ---- */

static int plugin_refuse(const char *option, const char *value, const char *values)
{
	print_safe(stderr, "ctr-gpu-device-plugin: %s=%s: it takes %s\n", option, value, values);
	(void)fputs(PLUGIN_ADVICE, stderr);
	return EXIT_STATUS_USAGE;
}

static int plugin_print(const char *before, const char *after)
{
	(void)printf("%s" CTR_GPU_VERSION "%s", before, after);
	return print_finish(stdout) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static bool plugin_read_mig(const char *text, enum watcher_mig *ret)
{
	static const char *const words[] = {
		[WATCHER_MIG_PARTS] = "parts", [WATCHER_MIG_PROFILES] = "profiles", [WATCHER_MIG_WHOLE] = "whole"};

	for (unsigned i = 0; i < ARRAY_SIZE(words); i++)
		if (streq(words[i], text)) {
			*ret = (enum watcher_mig)i;
			return true;
		}
	return false;
}

/* Return: -1: go on; an exit status. */
static int plugin_read_option(struct plugin *plugin, int option)
{
	switch (option) {
	case 'd':
		plugin->directory = optarg;
		return optarg[0] == '/' ? -1 : plugin_refuse("--kubelet-directory", optarg, "an absolute path");
	case 's':
		plugin->strategies = strategy_read(optarg);
		return plugin->strategies
			       ? -1
			       : plugin_refuse("--strategy", optarg,
					       "cdi, annotations, mounts and environment, separated by commas");
	case 'm':
		return plugin_read_mig(optarg, &plugin->mig)
			       ? -1
			       : plugin_refuse("--mig", optarg, "parts, profiles or whole");
	case 'M':
		plugin->metrics_where = optarg;
		return optarg[0] == '/' || str_has_prefix(optarg, "127.0.0.1:")
			       ? -1
			       : plugin_refuse("--metrics", optarg, "an absolute path, or 127.0.0.1:PORT");
	case 'l':
		return labels_print(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	case 'h':
		return plugin_print("Usage: ctr-gpu-device-plugin [--strategy=LIST] [--mig=parts|profiles|whole] "
				    "[--kubelet-directory=DIRECTORY] "
				    "[--metrics=PATH|127.0.0.1:PORT] [--labels] [--version]\n"
				    "The device plugin for Kubernetes of ctr-gpu ",
				    "; see ctr-gpu-device-plugin(8).\n");
	case 'V':
		return plugin_print("ctr-gpu-device-plugin ", "\n");
	default:
		(void)fputs(PLUGIN_ADVICE, stderr);
		return EXIT_STATUS_USAGE;
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"kubelet-directory", required_argument, NULL, 'd'},
		{"strategy", required_argument, NULL, 's'},
		{"mig", required_argument, NULL, 'm'},
		{"metrics", required_argument, NULL, 'M'},
		{"labels", no_argument, NULL, 'l'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{0},
	};
	static struct plugin plugin = {
		.directory = PLUGIN_DIRECTORY, .watcher = {.fd = -1}, .metrics = {.page = {.listener = -1}}};
	int option, code = -1;

	while (code < 0 && (option = getopt_long(argc, argv, "", options, NULL)) != -1)
		code = plugin_read_option(&plugin, option);
	if (code < 0 && optind < argc) {
		print_safe(stderr, "ctr-gpu-device-plugin: it takes no argument: %s\n", argv[optind]);
		code = EXIT_STATUS_USAGE;
	}
	if (code >= 0)
		return code;
	plugin.follows = !plugin.strategies;
	if (plugin.follows)
		plugin.strategies = strategy_find();
	return plugin_main(&plugin);
}
