/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How containers of this node are told their devices, unless the administrator says it: by CDI where the engine that
 * runs them reads specs and one of ours is there, otherwise by mounts, which hook and shim read.
 */

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/paths.h"
#include "base/str.h"
#include "cluster/plugin.h"
#include "engines/config.h"
#include "engines/engine.h"

static const struct {
	const char *name;
	enum strategy strategy;
} strategy_names[] = {
	{"cdi", STRATEGY_CDI},
	{"annotations", STRATEGY_ANNOTATIONS},
	{"mounts", STRATEGY_MOUNTS},
	{"environment", STRATEGY_ENVIRONMENT},
};

unsigned strategy_read(const char *text)
{
	_cleanup_strv_ struct strv words = {0};
	unsigned strategies = 0;

	if (strv_split(text, ",", &words) < 0)
		return 0;
	for (size_t i = 0; i < words.count; i++) {
		unsigned known = 0;

		for (size_t j = 0; j < ARRAY_SIZE(strategy_names); j++)
			if (streq(words.items[i], strategy_names[j].name))
				known = strategy_names[j].strategy;
		if (!known)
			return 0;
		strategies |= known;
	}
	return strategies;
}

void strategy_print(unsigned strategies, char ret[static STRATEGY_TEXT_SIZE])
{
	size_t size = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(strategy_names); i++)
		if (strategies & strategy_names[i].strategy)
			size += (size_t)snprintf(ret + size, STRATEGY_TEXT_SIZE - size, "%s%s", size > 0 ? "," : "",
						 strategy_names[i].name);
}

bool strategy_has_specs(void)
{
	static const char *const patterns[] = {PATH_CDI "/ctr-gpu-*.json", PATH_CDI_RUN "/ctr-gpu-*.json"};
	bool found = false;

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		glob_t matches = {0};

		found = glob(patterns[i], GLOB_NOSORT, NULL, &matches) == 0 || found;
		globfree(&matches);
	}
	return found;
}

static bool strategy_reads_specs(const struct engine *engine)
{
	_cleanup_daemon_ struct daemon daemon = DAEMON_NONE;
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	_cleanup_engine_config_ struct engine_config config = {0};
	_cleanup_free_ char *version = NULL;

	if (daemon_find(&engine->daemon, 0, &daemon) < 0 || daemon_open_root(&daemon, &root) < 0 ||
	    (daemon.pid == 0 && !engine_is_installed(engine)) ||
	    engine_config_read(engine, &daemon, &root, &config) < 0)
		return false;
	version = engine_version(engine, daemon.snap);
	return engine_cdi_state(engine, engine_version_number(version), config.cdi) == ENGINE_CDI_ON;
}

unsigned strategy_find(void)
{
	if (strategy_has_specs() && (strategy_reads_specs(&engine_containerd) || strategy_reads_specs(&engine_crio)))
		return STRATEGY_CDI | STRATEGY_ANNOTATIONS;
	return STRATEGY_MOUNTS;
}
