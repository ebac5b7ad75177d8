/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A spec as somebody wrote it: what it says, and for which reasons engines refuse it. Any bytes may be in it. JSON is read
 * whole. YAML is gone through line by line, since there is no reader for it here: that finds what is written as every
 * generator writes it, and is no proof of anything.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct cdi_node {
	char *path; /* of the host */
	bool numbered;
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
};

struct cdi_device {
	char *name;
	struct cdi_edits edits;
};

/* Versions of the specification, oldest first; what a spec needs is an index. */
extern const char *const cdi_versions[];
enum { CDI_VERSIONS = 8 };

struct cdi_spec {
	bool is_yaml;
	char *version, *kind; /* NULL if missing or no text */
	int declared, needed; /* indexes in cdi_versions; declared is -1 for one that nobody knows */
	char *needed_for;     /* the feature that makes it @needed */
	struct cdi_edits edits; /* for every device */
	struct cdi_device *devices;
	size_t device_count;
	bool is_ours; /* this program wrote it */
	struct strv problems; /* why engines do not load it, a sentence each; at most some dozens */
};

void cdi_spec_clear(struct cdi_spec *spec);

/**
 * cdi_spec_parse() - read a spec
 * @name: of its file, whose ending tells JSON from YAML
 * @ret:  zeroed; to be cleared in any case
 *
 * Return: 0, whatever is wrong with it; -ENOMEM.
 */
int cdi_spec_parse(const char *name, const char *data, size_t size, struct cdi_spec *ret);

/* For the two readers. */

/** Adds a sentence, up to a number of them. Return: 0 or -ENOMEM. */
int cdi_spec_problem(struct cdi_spec *spec, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** The spec needs at least this version. Return: 0 or -ENOMEM. */
int cdi_spec_need(struct cdi_spec *spec, int version, const char *feature);

/** Each adds an empty one. Return: it; NULL if there is no memory. */
struct cdi_device *cdi_spec_add_device(struct cdi_spec *spec);
struct cdi_node *cdi_edits_add_node(struct cdi_edits *edits);
struct cdi_mount *cdi_edits_add_mount(struct cdi_edits *edits);
struct cdi_hook *cdi_edits_add_hook(struct cdi_edits *edits);

int cdi_json_parse(const char *data, size_t size, struct cdi_spec *spec);
int cdi_yaml_parse(const char *data, size_t size, struct cdi_spec *spec);
