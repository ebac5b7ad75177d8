/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A spec of any author, in JSON or YAML: what it says, and why engines refuse it. Any bytes may be in it. */

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "base/str.h"

struct cdi_node {
	char *path;       /* of the host */
	bool numbered;    /* otherwise engines take the number of the host's */
	bool is_complete; /* with its type: engines do without the host's */
	long long major, minor;
};

struct cdi_mount {
	char *source, *target;
};

struct cdi_hook {
	char *stage, *path;
	bool has_environment, has_timeout;
	bool is_ours;
	struct strv environment;
};

struct cdi_edits {
	struct cdi_node *nodes;
	size_t node_count;
	struct cdi_mount *mounts;
	size_t mount_count;
	struct cdi_hook *hooks;
	size_t hook_count;
	struct strv environment;
	struct strv groups; /* numbers */
};

struct cdi_device {
	char *name;
	struct cdi_edits edits;
};

/* Versions of the specification, oldest first. */
enum cdi_version { CDI_0_3, CDI_0_4, CDI_0_5, CDI_0_6, CDI_0_7, CDI_0_8, CDI_1_0, CDI_1_1, CDI_VERSIONS };
extern const char *const cdi_versions[CDI_VERSIONS];
/** Return: enum cdi_version; -1 for another text. */
int cdi_spec_version(const char *text);

struct cdi_spec {
	bool is_yaml;
	char *version, *kind;   /* NULL if missing or no text */
	int declared, needed;   /* enum cdi_version; declared is -1 for an unknown one */
	char *needed_for;       /* the feature that makes it @needed */
	struct cdi_edits edits; /* for every device */
	struct cdi_device *devices;
	size_t device_count;
	bool is_ours;         /* this program wrote it */
	struct strv problems; /* why engines do not load it, a sentence each; at most some dozens */
};

void cdi_spec_clear(struct cdi_spec *spec);

/** Whether engines read a file of this name, and as YAML. */
bool cdi_spec_has_name(const char *name, bool *ret_is_yaml);

/**
 * cdi_spec_parse() - read a spec
 * @name: of its file, whose ending tells JSON from YAML
 * @ret:  zeroed; to be cleared in any case
 *
 * Return: 0, whatever is wrong with it; -ENOMEM.
 */
int cdi_spec_parse(const char *name, const char *data, size_t size, struct cdi_spec *ret);

/** Adds a sentence, up to a number of them. Return: 0 or -ENOMEM. */
int cdi_schema_problem(struct cdi_spec *spec, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** As json_parse(), whose JSON is what the YAML means. */
int cdi_yaml_parse(const char *data, size_t size, json_t **ret, char reason[JSON_ERROR_TEXT_LENGTH]);
