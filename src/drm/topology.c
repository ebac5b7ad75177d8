/* SPDX-License-Identifier: Apache-2.0 */

#include "drm/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"

#define NODES "/sys/class/kfd/kfd/topology/nodes"

enum {
	NODES_MAX = 1024,
	PROPERTIES_MAX = 16 * 1024,
	RENDER_MINOR_MAX = 1 << 20, /* MINORBITS of include/linux/kdev_t.h */
};

void topology_clear(struct topology *topology)
{
	free(topology->nodes);
	*topology = (struct topology){0};
}

/* A line "NAME NUMBER", unsigned and decimal (kfd_topology.c). Return: 0 if it is missing or none. */
static uint64_t topology_number(const char *text, const char *name, uint64_t max)
{
	size_t length = strlen(name);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *value = line + length + 1;
		unsigned long long number;
		char *end;

		if (strncmp(line, name, length) != 0 || line[length] != ' ' || *value < '0' || *value > '9')
			continue;
		errno = 0;
		number = strtoull(value, &end, 10);
		return errno == 0 && (*end == '\n' || *end == '\0') && number <= max ? number : 0;
	}
	return 0;
}

bool topology_parse(const char *text, struct topology_node *ret)
{
	*ret = (struct topology_node){
		.render_minor = (unsigned)topology_number(text, "drm_render_minor", RENDER_MINOR_MAX),
		.unique_id = topology_number(text, "unique_id", UINT64_MAX),
		.gfx_target = (unsigned)topology_number(text, "gfx_target_version", 999999),
		.domain = (uint32_t)topology_number(text, "domain", UINT32_MAX),
		.location = (uint32_t)topology_number(text, "location_id", UINT32_MAX),
	};
	return ret->render_minor > 0;
}

static bool topology_is_node(const char *name)
{
	return *name && name[strspn(name, "0123456789")] == '\0';
}

int topology_read(struct topology *ret)
{
	_cleanup_(topology_clear) struct topology topology = {0};
	_cleanup_strv_ struct strv names = {0};
	int r = fd_list_names(AT_FDCWD, NODES, topology_is_node, NODES_MAX, &names);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	topology.nodes = calloc(names.count + 1, sizeof(*topology.nodes));
	if (!topology.nodes)
		return -ENOMEM;
	for (size_t i = 0; i < names.count; i++) {
		_cleanup_free_ char *path = NULL, *text = NULL;

		if (str_format(&path, NODES "/%s/properties", names.items[i]) < 0)
			return -ENOMEM;
		/* A node that a container may not use has an empty file, or one that cannot be read. */
		r = fd_read_file_at(AT_FDCWD, path, PROPERTIES_MAX, &text, NULL);
		if (r == -ENOMEM)
			return r;
		topology.count += r == 0 && topology_parse(text, &topology.nodes[topology.count]);
	}
	*ret = steal_struct(&topology);
	return 0;
}

const struct topology_node *topology_find(const struct topology *topology, int render_minor)
{
	for (size_t i = 0; i < topology->count; i++)
		if (render_minor >= 0 && topology->nodes[i].render_minor == (unsigned)render_minor)
			return &topology->nodes[i];
	return NULL;
}

void topology_format_target(unsigned gfx_target, char text[TOPOLOGY_TARGET_SIZE])
{
	(void)snprintf(text, TOPOLOGY_TARGET_SIZE, "gfx%u%x%x", gfx_target / 10000, gfx_target / 100 % 100,
		       gfx_target % 100);
}
