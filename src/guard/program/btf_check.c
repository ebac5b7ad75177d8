/* SPDX-License-Identifier: Apache-2.0 */

/* Whether the kernel's and the driver's types are those that the guard's programs were written for. */

#include "guard/program/internal.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

#define DRIVER "dxgkrnl"
#define VMLINUX "/sys/kernel/btf/vmlinux"
#define DRIVER_TYPES "/sys/kernel/btf/" DRIVER

/* A function as its types say it; @other: as another version of the driver has it. */
struct function {
	const char *name, *type, *other;
};

/* A member of a structure; "bits" is a bit field, and a type that ends in "[]" any array of it. */
struct member {
	const char *structure, *name, *type;
};

static const struct function kernel_functions[] = {
	{"security_file_ioctl", "s32(struct file*,u32,u64)", NULL},
};
static const struct function compat_hook = {"security_file_ioctl_compat", "s32(struct file*,u32,u64)", NULL};

/* The kernel's own page faults, on x86; elsewhere all are looked at. */
static const struct function fault_event = {"btf_trace_page_fault_kernel", "void(void*,u64,struct pt_regs*,u64)*",
					    NULL};
static const struct function any_fault = {"handle_mm_fault", "u32(struct vm_area_struct*,u64,u32,struct pt_regs*)",
					  NULL};

static const struct function driver_functions[] = {
	{"dxgk_unlocked_ioctl", "s64(struct file*,u32,u64)", NULL},
	{"dxgk_compat_ioctl", "s64(struct file*,u32,u64)", NULL},
	{"dxgkio_enum_adapters", "s32(struct dxgprocess*,void*)", NULL},
	{"dxgkio_enum_adapters3", "s32(struct dxgprocess*,void*)", NULL},
	{"dxgprocess_open_adapter", "s32(struct dxgprocess*,struct dxgadapter*,struct d3dkmthandle*)", NULL},
	{"dxgprocess_adapter_by_handle", "struct dxgadapter*(struct dxgprocess*,struct d3dkmthandle)", NULL},
	{"dxgprocess_device_by_object_handle",
	 "struct dxgdevice*(struct dxgprocess*,enum hmgrentry_type,struct d3dkmthandle)", NULL},
	{"dxgvmb_send_query_statistics", "s32(struct dxgprocess*,struct dxgadapter*,struct d3dkmt_querystatistics*)",
	 "s32(struct d3dkmthandle,struct dxgadapter*,struct d3dkmt_querystatistics*)"},
};

static const struct member kernel_members[] = {
	{"file", "f_inode", "struct inode*"},
	{"file", "private_data", "void*"},
	{"inode", "i_mode", "u16"},
	{"inode", "i_rdev", "u32"},
	{"task_struct", "cgroups", "struct css_set*"},
	{"task_struct", "group_leader", "struct task_struct*"},
	{"css_set", "subsys", "struct cgroup_subsys_state*[]"},
	{"cgroup_subsys_state", "cgroup", "struct cgroup*"},
	{"cgroup", "level", "s32"},
	{"cgroup", "kn", "struct kernfs_node*"},
	{"cgroup", "root", "struct cgroup_root*"},
	{"kernfs_node", "id", "u64"},
};
static const struct member ancestors[] = {
	{"cgroup", "ancestors", "struct cgroup*[]"},
	{"cgroup", "ancestor_ids", "u64[]"},
};

static const struct member driver_members[] = {
	{"winluid", "a", "u32"},
	{"winluid", "b", "u32"},
	{"dxgadapter", "luid", "struct winluid"},
	{"dxgdevice", "adapter", "struct dxgadapter*"},
	{"hmgrentry", "object", "void*"},
	{"hmgrentry", "type", "bits"},
	{"hmgrtable", "entry_table", "struct hmgrentry*"},
	{"hmgrtable", "table_size", "u32"},
	{"dxgprocess", "local_handle_table", "struct hmgrtable"},
};

/* ---- types as text ---- */

static void btf_check_write_type(const struct btf *btf, __u32 id, FILE *file);

static void btf_check_write_function(const struct btf *btf, const struct btf_type *type, FILE *file)
{
	btf_check_write_type(btf, type->type, file);
	for (__u32 i = 0; i < btf_vlen(type); i++) {
		(void)fputc(i == 0 ? '(' : ',', file);
		btf_check_write_type(btf, btf_params(type)[i].type, file);
	}
	(void)fputs(btf_vlen(type) == 0 ? "()" : ")", file);
}

/* Other names of a type, and what is said of it besides, are left out. */
static __u32 btf_check_plain(const struct btf *btf, __u32 id)
{
	const struct btf_type *type = btf__type_by_id(btf, id);

	while (type && id && (btf_is_mod(type) || btf_is_typedef(type) || btf_is_type_tag(type))) {
		id = type->type;
		type = btf__type_by_id(btf, id);
	}
	return id;
}

static void btf_check_write_type(const struct btf *btf, __u32 id, FILE *file)
{
	const struct btf_type *type;

	id = btf_check_plain(btf, id);
	type = id ? btf__type_by_id(btf, id) : NULL;
	if (!type)
		(void)fputs("void", file);
	else if (btf_is_ptr(type)) {
		btf_check_write_type(btf, type->type, file);
		(void)fputc('*', file);
	} else if (btf_is_array(type)) {
		btf_check_write_type(btf, btf_array(type)->type, file);
		(void)fputs("[]", file);
	} else if (btf_is_func_proto(type)) {
		btf_check_write_function(btf, type, file);
	} else if (btf_is_int(type)) {
		/* Compilers have different names for them. */
		(void)fprintf(file, "%c%u", btf_int_encoding(type) & BTF_INT_SIGNED ? 's' : 'u', type->size * 8);
	} else {
		const char *name = btf__name_by_offset(btf, type->name_off);

		(void)fprintf(file, "%s%s",
			      btf_is_any_enum(type)                        ? "enum "
			      : btf_is_union(type)                         ? "union "
			      : btf_is_composite(type) || btf_is_fwd(type) ? "struct "
									   : "",
			      name && *name ? name : "(unnamed)");
	}
}

/* Return: new text; NULL without memory. */
static char *btf_check_of_type(const struct btf *btf, __u32 id)
{
	struct memstream stream;
	char *text;

	if (!memstream_open(&stream))
		return NULL;
	btf_check_write_type(btf, id, stream.file);
	return memstream_close(&stream, &text, NULL) == 0 ? text : NULL;
}

/* ---- types by their names ---- */

/* A module's types go on from the kernel's, which are many more: they come last. */
static __s32 btf_check_find(const struct btf *btf, const char *name, __u32 kind)
{
	const struct btf *kernel = btf__base_btf(btf);

	for (__u32 id = kernel ? btf__type_cnt(kernel) : 0; kernel && id < btf__type_cnt(btf); id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);
		const char *found = btf_kind(type) == kind ? btf__name_by_offset(btf, type->name_off) : NULL;

		if (found && streq(found, name))
			return (__s32)id;
	}
	return btf__find_by_name_kind(kernel ? kernel : btf, name, kind);
}

const struct btf_target *btf_target_find(const struct btf_facts *facts, const char *name)
{
	for (size_t i = 0; i < facts->target_count; i++)
		if (streq(facts->targets[i].name, name))
			return &facts->targets[i];
	return NULL;
}

int btf_target_open_module(void)
{
	__u32 id = 0;

	while (bpf_btf_get_next_id(id, &id) == 0) {
		_cleanup_close_ int fd = bpf_btf_get_fd_by_id(id);
		char name[sizeof(DRIVER)] = ""; /* the kernel refuses a longer one */
		struct bpf_btf_info info = {.name = (uintptr_t)name, .name_len = sizeof(name)};
		__u32 size = sizeof(info);

		/* One that is gone by now does not matter. */
		if (fd < 0 && errno != ENOENT)
			return -errno;
		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && info.kernel_btf && streq(name, DRIVER))
			return steal_fd(&fd);
	}
	return -errno;
}

/* Looks for what programs are attached to, and notes where it is. Return: as btf_check_find(). */
static __s32 btf_check_find_target(const struct btf *btf, const char *name, __u32 kind, struct btf_facts *facts)
{
	const struct btf_target *known = btf_target_find(facts, name);
	const struct btf *kernel = btf__base_btf(btf);
	__s32 id = known ? (__s32)known->id : btf_check_find(btf, name, kind);

	if (known || id <= 0)
		return id;
	if (facts->target_count == BTF_TARGETS_MAX)
		return -E2BIG;
	facts->targets[facts->target_count++] = (struct btf_target){
		.name = name,
		.id = (__u32)id,
		.of_module = kernel && (__u32)id >= btf__type_cnt(kernel),
	};
	return id;
}

/* ---- comparisons ---- */

static int btf_check_compare(const char *what, const char *found, const char *type, const char *other,
			     struct strv *missing)
{
	if (!found)
		return -ENOMEM;
	if (streq(found, type) || (other && streq(found, other)))
		return 0;
	return strv_format(missing, "%s is \"%s\" here, and the guard knows it as \"%s\"", what, found, type);
}

static int btf_check_check_function(const struct btf *btf, const struct function *function, struct btf_facts *facts,
				    struct strv *missing)
{
	_cleanup_free_ char *found = NULL;
	__s32 id = btf_check_find_target(btf, function->name, BTF_KIND_FUNC, facts);

	if (id <= 0)
		return strv_format(missing, "the function %s is missing", function->name);
	found = btf_check_of_type(btf, btf__type_by_id(btf, (__u32)id)->type);
	return btf_check_compare(function->name, found, function->type, function->other, missing);
}

/* Members of a nameless structure or union in it are its own. @ret: with the bits of a bit field, or 0. */
static const struct btf_member *btf_check_find_member(const struct btf *btf, const struct btf_type *type,
						      const char *name, __u32 *ret_bits)
{
	for (__u32 i = 0; i < btf_vlen(type); i++) {
		const struct btf_member *member = &btf_members(type)[i];
		const char *own = btf__name_by_offset(btf, member->name_off);
		const struct btf_type *inner = btf__type_by_id(btf, btf_check_plain(btf, member->type));
		const struct btf_member *found;

		if (own && streq(own, name)) {
			*ret_bits = btf_member_bitfield_size(type, i);
			return member;
		}
		found = own && !*own && inner && btf_is_composite(inner)
				? btf_check_find_member(btf, inner, name, ret_bits)
				: NULL;
		if (found)
			return found;
	}
	return NULL;
}

static const struct btf_member *btf_check_get_member(const struct btf *btf, const struct member *wanted,
						     __u32 *ret_bits)
{
	__s32 id = btf_check_find(btf, wanted->structure, BTF_KIND_STRUCT);

	return id > 0 ? btf_check_find_member(btf, btf__type_by_id(btf, (__u32)id), wanted->name, ret_bits) : NULL;
}

static int btf_check_check_member(const struct btf *btf, const struct member *wanted, struct strv *missing)
{
	_cleanup_free_ char *what = NULL, *found = NULL;
	const struct btf_member *member;
	__u32 bits = 0;

	if (str_format(&what, "%s.%s", wanted->structure, wanted->name) < 0)
		return -ENOMEM;
	member = btf_check_get_member(btf, wanted, &bits);
	if (!member)
		return strv_format(missing, "the member %s is missing", what);
	/* How many, the programs find out as they are loaded. */
	found = bits ? strdup("bits") : btf_check_of_type(btf, member->type);
	return btf_check_compare(what, found, wanted->type, NULL, missing);
}

/* Return: whether there is such an event. */
static int btf_check_has_event(const struct btf *btf, const struct function *event, struct btf_facts *facts)
{
	_cleanup_free_ char *found = NULL;
	__s32 id = btf_check_find_target(btf, event->name, BTF_KIND_TYPEDEF, facts);

	if (id <= 0)
		return 0;
	found = btf_check_of_type(btf, (__u32)id);
	return found ? streq(found, event->type) : -ENOMEM;
}

static int btf_check_check_faults(const struct btf *btf, struct btf_facts *facts, struct strv *missing)
{
	int r = btf_check_has_event(btf, &fault_event, facts);

	facts->has_fault_event = r > 0;
	return r == 0 ? btf_check_check_function(btf, &any_fault, facts, missing) : r < 0 ? r : 0;
}

static void btf_check_look_around(const struct btf *btf, struct btf_facts *facts)
{
	facts->has_compat_hook = btf_check_find_target(btf, compat_hook.name, BTF_KIND_FUNC, facts) > 0;
	facts->has_bpf_lsm = btf_check_find_target(btf, "bpf_lsm_file_ioctl", BTF_KIND_FUNC, facts) > 0;
	(void)btf_check_find_target(btf, "bpf_lsm_file_ioctl_compat", BTF_KIND_FUNC, facts);
	facts->has_preempt_calls = btf_check_find(btf, "bpf_preempt_disable", BTF_KIND_FUNC) > 0 &&
				   btf_check_find(btf, "bpf_preempt_enable", BTF_KIND_FUNC) > 0;
	facts->has_rmdir_event = btf_check_find_target(btf, "btf_trace_cgroup_rmdir", BTF_KIND_TYPEDEF, facts) > 0;
	(void)btf_check_find_target(btf, "btf_trace_sched_process_exit", BTF_KIND_TYPEDEF, facts);
}

static int btf_check_check_kernel(const struct btf *btf, struct btf_facts *facts, struct strv *missing)
{
	__u32 bits;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kernel_functions) && r == 0; i++)
		r = btf_check_check_function(btf, &kernel_functions[i], facts, missing);
	for (size_t i = 0; i < ARRAY_SIZE(kernel_members) && r == 0; i++)
		r = btf_check_check_member(btf, &kernel_members[i], missing);
	if (r == 0)
		r = btf_check_check_member(btf, &ancestors[btf_check_get_member(btf, &ancestors[1], &bits) != NULL],
					   missing);
	if (r == 0)
		r = btf_check_check_faults(btf, facts, missing);
	btf_check_look_around(btf, facts);
	if (r == 0 && facts->has_compat_hook)
		r = btf_check_check_function(btf, &compat_hook, facts, missing);
	return r;
}

static int btf_check_check_driver(const struct btf *btf, struct btf_facts *facts, struct strv *missing)
{
	__s32 handle = btf_check_find(btf, "d3dkmthandle", BTF_KIND_STRUCT);
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(driver_functions) && r == 0; i++)
		r = btf_check_check_function(btf, &driver_functions[i], facts, missing);
	for (size_t i = 0; i < ARRAY_SIZE(driver_members) && r == 0; i++)
		r = btf_check_check_member(btf, &driver_members[i], missing);
	if (r == 0 && (handle <= 0 || btf__resolve_size(btf, (__u32)handle) != sizeof(__u32)))
		r = strv_format(missing, "struct d3dkmthandle is not a word here");
	return r;
}

/* EBUSY: a function that others have attached to in a way that leaves no place for us, such as a live patch. */
bool errno_is_temporary(int r)
{
	static const int passing[] = {EAGAIN, EBUSY, EINTR, EIO, EMFILE, ENFILE, ENOMEM, ENOSPC};

	for (size_t i = 0; i < ARRAY_SIZE(passing); i++)
		if (r == -passing[i])
			return true;
	return false;
}

/* The types of the driver as a module, if it is one that has them. */
static int btf_check_check_types(struct btf *kernel, struct btf_facts *facts, struct strv *missing)
{
	bool is_module = access(DRIVER_TYPES, R_OK) == 0;
	struct btf *module = is_module ? btf__parse_split(DRIVER_TYPES, kernel) : NULL;
	int r = is_module && !module && errno_is_temporary(-errno) ? -errno
								   : btf_check_check_kernel(kernel, facts, missing);

	if (r == 0 && !module && btf_check_find(kernel, "dxgadapter", BTF_KIND_STRUCT) <= 0)
		r = strv_format(missing, "the driver " DRIVER " brings no types along (BTF)");
	else if (r == 0)
		r = btf_check_check_driver(module ? module : kernel, facts, missing);
	btf__free(module);
	return r;
}

int btf_check_check(struct btf_facts *ret, struct strv *ret_missing)
{
	struct btf *kernel;
	int r;

	*ret = (struct btf_facts){0};
	if (access(VMLINUX, R_OK) < 0)
		return strv_format(ret_missing, "this kernel brings no types along (CONFIG_DEBUG_INFO_BTF, %s)",
				   VMLINUX);
	kernel = btf__parse(VMLINUX, NULL);
	if (!kernel && errno_is_temporary(-errno))
		return -errno;
	if (!kernel)
		return strv_format(ret_missing, "the kernel's types (%s) cannot be read: %s", VMLINUX, strerror(errno));
	r = btf_check_check_types(kernel, ret, ret_missing);
	btf__free(kernel);
	return r;
}
