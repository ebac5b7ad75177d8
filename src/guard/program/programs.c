/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/program/internal.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "guard_object.h"

uint64_t programs_hash(void)
{
	return str_hash_of(guard_object, sizeof(guard_object));
}

static int programs_find_maps(struct guard *guard)
{
	size_t count = 0;
	struct bpf_program *program;

	bpf_object__for_each_program(program, guard->obj) count++;
	guard->maps.choices = bpf_object__find_map_by_name(guard->obj, "choices");
	guard->maps.present = bpf_object__find_map_by_name(guard->obj, "present");
	if (!guard->maps.choices || !guard->maps.present)
		return -ENOENT;
	return count > PROGRAMS_MAX ? -E2BIG : 0;
}

struct guard *programs_open(void)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "guard");
	struct guard *guard = calloc(1, sizeof(*guard));
	int r;

	if (!guard)
		return NULL;
	guard->obj = bpf_object__open_mem(guard_object, sizeof(guard_object), &options);
	r = guard->obj ? programs_find_maps(guard) : -errno;
	if (r == 0)
		return guard;
	programs_close(guard);
	errno = -r;
	return NULL;
}

void programs_close(struct guard *guard)
{
	if (!guard)
		return;
	for (size_t i = 0; i < PROGRAMS_MAX; i++)
		(void)bpf_link__destroy(guard->links[i]);
	bpf_object__close(guard->obj);
	free(guard);
}

/* Return: where the constant is among the others, or NULL. */
static const struct btf_var_secinfo *programs_find_constant(const struct guard *guard, const char *name)
{
	const struct btf *btf = bpf_object__btf(guard->obj);
	int id = btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC);
	const struct btf_type *section = id < 0 ? NULL : btf__type_by_id(btf, (__u32)id);

	for (unsigned i = 0; section && i < btf_vlen(section); i++) {
		const struct btf_var_secinfo *constant = &btf_var_secinfos(section)[i];

		if (streq(btf__name_by_offset(btf, btf__type_by_id(btf, constant->type)->name_off), name))
			return constant;
	}
	return NULL;
}

int programs_set(struct guard *guard, const char *name, const void *value, size_t size)
{
	const struct btf_var_secinfo *constant = programs_find_constant(guard, name);
	struct bpf_map *map = bpf_object__find_map_by_name(guard->obj, ".rodata");
	_cleanup_free_ char *values = NULL;
	const void *initial;
	size_t all = 0;

	initial = map ? bpf_map__initial_value(map, &all) : NULL;
	if (!constant || !initial)
		return -ENOENT;
	if (constant->size != size || constant->offset > all || all - constant->offset < size)
		return -EINVAL;
	values = malloc(all);
	if (!values)
		return -ENOMEM;
	memcpy(values, initial, all);
	memcpy(values + constant->offset, value, size);
	return bpf_map__set_initial_value(map, values, all);
}

int programs_choose(struct guard *guard, const char *name, bool wanted)
{
	struct bpf_program *program = bpf_object__find_program_by_name(guard->obj, name);

	return program ? bpf_program__set_autoload(program, wanted) : -ENOENT;
}

int programs_attach(struct guard *guard)
{
	struct bpf_program *program;
	size_t i = 0;

	bpf_object__for_each_program(program, guard->obj)
	{
		if (bpf_program__autoload(program)) {
			guard->links[i] = bpf_program__attach(program);
			if (!guard->links[i])
				return -errno;
		}
		i++;
	}
	return 0;
}
