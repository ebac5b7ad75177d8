/* SPDX-License-Identifier: Apache-2.0 */

#include "doctor/engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void ways_add(struct ways *ways, const char *format, ...)
{
	size_t length = strlen(ways->text);
	va_list arguments;

	if (ways->count++ > 0 && length < sizeof(ways->text)) {
		(void)snprintf(ways->text + length, sizeof(ways->text) - length, ", ");
		length = strlen(ways->text);
	}
	va_start(arguments, format);
	(void)vsnprintf(ways->text + length, sizeof(ways->text) - length, format, arguments);
	va_end(arguments);
}

void ways_add_cdi(struct ways *ways, const struct examination *examination, const char *option)
{
	static const char preferred[] = "nvidia.com/gpu";
	const struct strv *kinds = &examination->cdi_kinds;

	/* Where there are several, the kind that most images are made for. */
	if (kinds->count > 0)
		ways_add(ways, "%s %s=all", option, strv_contains(kinds, preferred) ? preferred : kinds->items[0]);
}

int engine_find_daemon(const char *name, bool (*wanted)(const struct daemon *daemon), struct daemon *ret_daemon, struct rootfs *ret_root)
{
	if (daemon_find(name, 0, wanted, ret_daemon) == 0 && ret_daemon->pid == 0 && geteuid() != 0)
		(void)daemon_find(name, geteuid(), wanted, ret_daemon);
	return daemon_open_root(ret_daemon, ret_root);
}

void engine_conclude(struct examination *examination, struct engines *engines, const char *id, const char *name, const struct ways *ways,
		     const char *remedy)
{
	_cleanup_free_ char *full = NULL;

	engines->found++;
	if (str_format(&full, "%s.%s", id, ways->count > 0 ? "ready" : "not-set-up") < 0) {
		examination->findings.incomplete = true;
		return;
	}
	if (ways->count > 0) {
		engines->ready++;
		findings_add(&examination->findings, full, SEVERITY_OK, "%s: %s", name, ways->text);
	} else {
		findings_add(&examination->findings, full, SEVERITY_NOTE, "%s: not set up for GPUs", name);
		findings_advise(&examination->findings, "%s", remedy);
	}
}

/* The first engine that could be used is the one that is advised on. */
static void add_none(struct findings *findings, const struct engines *engines)
{
	const char *remedy = NULL;

	for (size_t i = 0; i < findings->count && !remedy; i++)
		if (strstr(findings->items[i].id, ".not-set-up"))
			remedy = findings->items[i].remedy;
	findings_add(findings, "engines.none", SEVERITY_PROBLEM, "%s", engines->found > 0 ? "no engine here is set up for GPUs" : "no container engine is installed");
	findings_advise(findings, "%s", remedy ? remedy : "Install Docker or Podman, then: sudo ctr-gpu setup docker, or podman.");
}

void check_engines(struct examination *examination)
{
	static void (*const checks[])(struct examination *, struct engines *) = {
		engine_docker, engine_podman, engine_containerd, engine_crio, engine_lxc, engine_apptainer,
	};
	struct engines engines = {0};

	for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
		checks[i](examination, &engines);
	if (engines.ready == 0)
		add_none(&examination->findings, &engines);
}
