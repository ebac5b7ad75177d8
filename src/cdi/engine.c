/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What engines' CDI libraries know. An entry is the first release for which a version is known; distributions build
 * engines with other libraries at times, and a release between two entries may know more than is said here.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cdi/report.h"

enum { V_0_3, V_0_4, V_0_5, V_0_6, V_0_7, V_0_8, V_1_0, V_1_1 };

static const char docker_remark[] = "Docker before 28.2 reads specs only with \"features\": {\"cdi\": true} in its daemon.json";
static const char containerd_remark[] = "containerd before 2.0 reads specs for Kubernetes only with enable_cdi = true in its config.toml";

/* Oldest first within an engine. */
static const struct cdi_engine releases[] = {
	{"docker", 25, 0, V_0_6, docker_remark},
	{"docker", 26, 1, V_0_7, docker_remark},
	{"docker", 28, 0, V_0_8, docker_remark},
	{"docker", 28, 2, V_1_0, NULL},
	{"podman", 4, 1, V_0_3, NULL},
	{"podman", 4, 2, V_0_4, NULL},
	{"podman", 4, 3, V_0_5, NULL},
	{"podman", 4, 7, V_0_6, NULL},
	{"podman", 5, 1, V_0_7, NULL},
	{"podman", 5, 3, V_0_8, NULL},
	{"podman", 5, 6, V_1_0, NULL},
	{"containerd", 1, 7, V_0_5, containerd_remark},
	{"containerd", 2, 0, V_0_8, NULL},
	{"containerd", 2, 1, V_1_0, NULL},
	{"cri-o", 1, 24, V_0_3, NULL},
	{"cri-o", 1, 26, V_0_5, NULL},
	{"cri-o", 1, 28, V_0_6, NULL},
	{"cri-o", 1, 30, V_0_7, NULL},
	{"cri-o", 1, 31, V_0_8, NULL},
	{"cri-o", 1, 33, V_1_0, NULL},
	{"buildkit", 0, 20, V_0_8, NULL},
	{"buildkit", 0, 22, V_1_0, NULL},
};

static bool is_at_least(const struct cdi_engine *engine, const struct cdi_engine *release)
{
	return engine->major > release->major || (engine->major == release->major && engine->minor >= release->minor);
}

static const char *find_name(const char *text, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(releases); i++)
		if (strlen(releases[i].name) == length && strncmp(releases[i].name, text, length) == 0)
			return releases[i].name;
	return length == strlen("crio") && strncmp(text, "crio", length) == 0 ? "cri-o" : NULL;
}

int cdi_engine_parse(const char *text, struct cdi_engine *ret, struct err *err)
{
	size_t length = strcspn(text, ":");
	struct cdi_engine engine = {.name = find_name(text, length), .newest = -1};

	if (!engine.name || text[length] != ':' ||
	    sscanf(text + length + 1 + (text[length + 1] == 'v'), "%4d.%4d", &engine.major, &engine.minor) < 1)
		return err_set(err, CTR_GPU_E_BAD_ARGUMENT,
			       "\"%.64s\" does not name an engine and its version\n"
			       "The engines are docker, podman, containerd, cri-o and buildkit; for example podman:4.3.", text);
	for (size_t i = 0; i < ARRAY_SIZE(releases); i++)
		if (streq(releases[i].name, engine.name) && is_at_least(&engine, &releases[i])) {
			engine.newest = releases[i].newest;
			engine.remark = releases[i].remark;
		}
	*ret = engine;
	return 0;
}
