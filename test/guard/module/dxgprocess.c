// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only

/* A process that has opened the device, whatever the number of its files. Its handles end with the last of them. */

#include <linux/sched.h>
#include <linux/slab.h>

#include "dxgkrnl.h"

static LIST_HEAD(processes);
static DEFINE_MUTEX(processes_lock);
static u32 host_handles;

static struct dxgprocess *process_new(void)
{
	struct dxgprocess *process = kzalloc(sizeof(*process), GFP_KERNEL);

	if (!process)
		return NULL;
	kref_init(&process->process_kref);
	process->pid = current->pid;
	process->tgid = current->tgid;
	process->host_handle.v = 0x40000000 | ++host_handles << 6;
	hmgrtable_init(&process->handle_table, process);
	hmgrtable_init(&process->local_handle_table, process);
	list_add(&process->plistentry, &processes);
	return process;
}

struct dxgprocess *dxgprocess_open(void)
{
	struct dxgprocess *at, *process = NULL;

	mutex_lock(&processes_lock);
	list_for_each_entry(at, &processes, plistentry)
	{
		if (at->tgid != current->tgid)
			continue;
		process = at;
		kref_get(&process->process_kref);
		break;
	}
	if (!process)
		process = process_new();
	mutex_unlock(&processes_lock);
	return process;
}

static void devices_free(struct hmgrtable *table)
{
	for (u32 i = 0; i < table->table_size; i++) {
		struct hmgrentry *entry = &table->entry_table[i];

		if (entry->type == HMGRENTRY_TYPE_DXGDEVICE)
			dxgdevice_put(entry->object);
		if (entry->type == HMGRENTRY_TYPE_DXGPAGINGQUEUE)
			kfree(entry->object);
	}
}

noinline void dxgprocess_destroy(struct dxgprocess *process)
{
	devices_free(&process->handle_table);
	hmgrtable_destroy(&process->handle_table);
	hmgrtable_destroy(&process->local_handle_table);
}

static void process_release(struct kref *kref)
{
	struct dxgprocess *process = container_of(kref, struct dxgprocess, process_kref);

	list_del(&process->plistentry);
	dxgprocess_destroy(process);
	kfree(process);
}

void dxgprocess_close(struct dxgprocess *process)
{
	mutex_lock(&processes_lock);
	kref_put(&process->process_kref, process_release);
	mutex_unlock(&processes_lock);
}

struct d3dkmthandle dxgprocess_host_handle(u64 pid)
{
	struct d3dkmthandle handle = {};
	struct dxgprocess *at;

	mutex_lock(&processes_lock);
	list_for_each_entry(at, &processes, plistentry) if (at->tgid == (pid_t)pid) handle = at->host_handle;
	mutex_unlock(&processes_lock);
	return handle;
}

noinline int dxgprocess_open_adapter(struct dxgprocess *process, struct dxgadapter *adapter,
				     struct d3dkmthandle *handle)
{
	struct hmgrtable *table = &process->local_handle_table;

	down_write(&table->table_lock);
	*handle = hmgrtable_alloc_handle(table, adapter, HMGRENTRY_TYPE_DXGADAPTER);
	up_write(&table->table_lock);
	return handle->v ? 0 : -ENOMEM;
}

noinline int dxgprocess_close_adapter(struct dxgprocess *process, struct d3dkmthandle handle)
{
	struct hmgrtable *table = &process->local_handle_table;
	void *adapter;

	if (handle.v == 0)
		return 0;
	down_write(&table->table_lock);
	adapter = hmgrtable_free_handle(table, HMGRENTRY_TYPE_DXGADAPTER, handle);
	up_write(&table->table_lock);
	return adapter ? 0 : -EINVAL;
}

noinline struct dxgadapter *dxgprocess_adapter_by_handle(struct dxgprocess *process, struct d3dkmthandle handle)
{
	struct hmgrtable *table = &process->local_handle_table;
	struct dxgadapter *adapter;

	down_read(&table->table_lock);
	adapter = hmgrtable_get_object_by_type(table, HMGRENTRY_TYPE_DXGADAPTER, handle);
	up_read(&table->table_lock);
	return adapter;
}

noinline struct dxgdevice *dxgprocess_device_by_object_handle(struct dxgprocess *process, enum hmgrentry_type t,
							      struct d3dkmthandle handle)
{
	struct hmgrtable *table = &process->handle_table;
	struct dxgdevice *device = NULL;
	void *object;

	down_read(&table->table_lock);
	object = hmgrtable_get_object_by_type(table, t, handle);
	if (object && t == HMGRENTRY_TYPE_DXGPAGINGQUEUE)
		device = hmgrtable_get_object_by_type(table, HMGRENTRY_TYPE_DXGDEVICE,
						      ((struct dxgpagingqueue *)object)->device_handle);
	else
		device = object;
	if (device && !kref_get_unless_zero(&device->device_kref))
		device = NULL;
	up_read(&table->table_lock);
	return device;
}

struct dxgdevice *dxgprocess_device_by_handle(struct dxgprocess *process, struct d3dkmthandle handle)
{
	return dxgprocess_device_by_object_handle(process, HMGRENTRY_TYPE_DXGDEVICE, handle);
}

static void device_release(struct kref *kref)
{
	kfree(container_of(kref, struct dxgdevice, device_kref));
}

void dxgdevice_put(struct dxgdevice *device)
{
	kref_put(&device->device_kref, device_release);
}
