// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only

/* The ioctls: order of checks and errors as the real driver was seen to have them. */

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "dxgkrnl.h"

static unsigned int window;
module_param(window, uint, 0644);
MODULE_PARM_DESC(window,
		 "microseconds between the entry of a call and its look at the caller's memory, for who changes that");

static noinline int dxgkio_open_adapter_from_luid(struct dxgprocess *process, void __user *inargs)
{
	struct d3dkmt_openadapterfromluid args, __user *result = inargs;
	struct dxgadapter *adapter;
	int r;

	if (copy_from_user(&args, inargs, sizeof(args)))
		return -EFAULT;
	adapter = dxgadapter_by_luid(&args.adapter_luid);
	/* The caller's handle field is looked at, whether or not an adapter was found. */
	if (!adapter)
		return args.adapter_handle.v ? 0 : -EINVAL;
	r = dxgprocess_open_adapter(process, adapter, &args.adapter_handle);
	if (r)
		return r;
	if (!copy_to_user(&result->adapter_handle, &args.adapter_handle, sizeof(args.adapter_handle)))
		return 0;
	dxgprocess_close_adapter(process, args.adapter_handle);
	return -EFAULT;
}

static void close_adapters(struct dxgprocess *process, const struct d3dkmt_adapterinfo *infos, u32 count)
{
	for (u32 i = 0; i < count; i++)
		dxgprocess_close_adapter(process, infos[i].adapter_handle);
}

/* A handle for every adapter, or for every one but the compute-only ones. */
static int list_adapters(struct dxgprocess *process, bool compute_only, struct d3dkmt_adapterinfo *infos,
			 u32 *ret_count)
{
	u32 count = 0;

	for (unsigned int i = 0; i < dxgadapter_count; i++) {
		if ((dxgadapters[i].type & TYPE_COMPUTE_ONLY) && !compute_only)
			continue;
		if (dxgprocess_open_adapter(process, &dxgadapters[i], &infos[count].adapter_handle)) {
			close_adapters(process, infos, count);
			return -ENOMEM;
		}
		infos[count++].adapter_luid = dxgadapters[i].luid;
	}
	*ret_count = count;
	return 0;
}

static int give_adapters(struct dxgprocess *process, struct d3dkmt_enumadapters2 *args, void __user *inargs,
			 struct d3dkmt_adapterinfo *infos)
{
	int r = list_adapters(process, false, infos, &args->num_adapters);

	if (r)
		return r;
	if (!copy_to_user(inargs, args, sizeof(*args)) &&
	    !copy_to_user((void __user *)(uintptr_t)args->adapters, infos, args->num_adapters * sizeof(*infos)))
		return 0;
	close_adapters(process, infos, args->num_adapters);
	return -EFAULT;
}

static noinline int dxgkio_enum_adapters(struct dxgprocess *process, void __user *inargs)
{
	struct d3dkmt_enumadapters2 args;
	struct d3dkmt_adapterinfo *infos;
	int r;

	if (copy_from_user(&args, inargs, sizeof(args)))
		return -EFAULT;
	if (!args.adapters) {
		args.num_adapters = dxgadapter_count;
		return copy_to_user(inargs, &args, sizeof(args)) ? -EFAULT : 0;
	}
	if (args.num_adapters < dxgadapter_count)
		return -EOVERFLOW;
	if (args.num_adapters > D3DKMT_ADAPTERS_MAX)
		return -EINVAL;
	infos = kcalloc(args.num_adapters, sizeof(*infos), GFP_KERNEL);
	if (!infos)
		return -ENOMEM;
	r = give_adapters(process, &args, inargs, infos);
	kfree(infos);
	return r;
}

/* Too little room is success, with the number of all; the handles that were made stay with the process. */
static int give_adapters3(struct dxgprocess *process, const struct d3dkmt_enumadapters3 *args, u32 __user *ret_count,
			  struct d3dkmt_adapterinfo *infos)
{
	u32 count;
	int r = list_adapters(process, args->filter & ENUM_COMPUTE_ONLY, infos, &count);

	if (r)
		return r;
	if (count > args->adapter_count)
		return copy_to_user(ret_count, &dxgadapter_count, sizeof(u32)) ? -EFAULT : 0;
	if (!copy_to_user(ret_count, &count, sizeof(count)) &&
	    !copy_to_user((void __user *)(uintptr_t)args->adapters, infos, count * sizeof(*infos)))
		return 0;
	close_adapters(process, infos, count);
	return -EFAULT;
}

static noinline int dxgkio_enum_adapters3(struct dxgprocess *process, void __user *inargs)
{
	u32 __user *ret_count = &((struct d3dkmt_enumadapters3 __user *)inargs)->adapter_count;
	struct d3dkmt_enumadapters3 args;
	struct d3dkmt_adapterinfo *infos;
	int r;

	if (copy_from_user(&args, inargs, sizeof(args)))
		return -EFAULT;
	if (!args.adapters || !args.adapter_count)
		return copy_to_user(ret_count, &dxgadapter_count, sizeof(u32)) ? -EFAULT : 0;
	if (args.adapter_count > 0xFFFF)
		return -EINVAL;
	infos = kcalloc(max(dxgadapter_count, 1u), sizeof(*infos), GFP_KERNEL);
	if (!infos)
		return -ENOMEM;
	r = give_adapters3(process, &args, ret_count, infos);
	kfree(infos);
	return r;
}

static noinline int dxgkio_close_adapter(struct dxgprocess *process, void __user *inargs)
{
	struct d3dkmthandle args;

	if (copy_from_user(&args, inargs, sizeof(args)))
		return -EFAULT;
	return dxgprocess_close_adapter(process, args);
}

static noinline int dxgkio_query_adapter_info(struct dxgprocess *process, void __user *inargs)
{
	struct d3dkmt_queryadapterinfo args;
	struct dxgadapter *adapter;

	if (copy_from_user(&args, inargs, sizeof(args)))
		return -EFAULT;
	/* The message has a header besides. */
	if (args.private_data_size == 0 || args.private_data_size > DXG_MAX_VM_BUS_PACKET_SIZE - 64)
		return -EINVAL;
	adapter = dxgprocess_adapter_by_handle(process, args.adapter);
	return adapter ? dxgvmb_send_query_adapter_info(process, adapter, &args) : -EINVAL;
}

static noinline int dxgkio_create_device(struct dxgprocess *process, void __user *inargs)
{
	struct d3dkmt_createdevice args, __user *result = inargs;
	struct hmgrtable *table = &process->handle_table;
	struct dxgadapter *adapter;
	struct dxgdevice *device;
	int r;

	if (copy_from_user(&args, inargs, sizeof(args)))
		return -EFAULT;
	adapter = dxgprocess_adapter_by_handle(process, args.adapter);
	if (!adapter)
		return -EINVAL;
	r = dxgvmb_send_sync_msg(adapter);
	if (r)
		return r;
	device = kzalloc(sizeof(*device), GFP_KERNEL);
	if (!device)
		return -ENOMEM;
	kref_init(&device->device_kref);
	device->adapter = adapter;
	device->process = process;
	down_write(&table->table_lock);
	device->handle = hmgrtable_alloc_handle(table, device, HMGRENTRY_TYPE_DXGDEVICE);
	up_write(&table->table_lock);
	return copy_to_user(&result->device, &device->handle, sizeof(device->handle)) ? -EFAULT : 0;
}

static noinline int dxgkio_destroy_device(struct dxgprocess *process, void __user *inargs)
{
	struct hmgrtable *table = &process->handle_table;
	struct dxgdevice *device;
	struct d3dkmthandle args;
	int r;

	if (copy_from_user(&args, inargs, sizeof(args)))
		return -EFAULT;
	down_write(&table->table_lock);
	device = hmgrtable_free_handle(table, HMGRENTRY_TYPE_DXGDEVICE, args);
	up_write(&table->table_lock);
	if (!device)
		return -EINVAL;
	r = dxgvmb_send_sync_msg(device->adapter);
	dxgdevice_put(device);
	return r;
}

static noinline int dxgkio_create_paging_queue(struct dxgprocess *process, void __user *inargs)
{
	struct d3dkmt_createpagingqueue args, __user *result = inargs;
	struct hmgrtable *table = &process->handle_table;
	struct dxgpagingqueue *queue;
	struct dxgdevice *device;
	int r;

	if (copy_from_user(&args, inargs, sizeof(args)))
		return -EFAULT;
	device = dxgprocess_device_by_handle(process, args.device);
	if (!device)
		return -EINVAL;
	r = dxgvmb_send_sync_msg(device->adapter);
	dxgdevice_put(device);
	queue = r ? NULL : kzalloc(sizeof(*queue), GFP_KERNEL);
	if (!queue)
		return r ? r : -ENOMEM;
	queue->device_handle = args.device;
	down_write(&table->table_lock);
	queue->handle = hmgrtable_alloc_handle(table, queue, HMGRENTRY_TYPE_DXGPAGINGQUEUE);
	up_write(&table->table_lock);
	return copy_to_user(&result->paging_queue, &queue->handle, sizeof(queue->handle)) ? -EFAULT : 0;
}

static noinline int dxgkio_destroy_paging_queue(struct dxgprocess *process, void __user *inargs)
{
	struct hmgrtable *table = &process->handle_table;
	struct dxgpagingqueue *queue;
	struct d3dkmthandle args;

	if (copy_from_user(&args, inargs, sizeof(args)))
		return -EFAULT;
	down_write(&table->table_lock);
	queue = hmgrtable_free_handle(table, HMGRENTRY_TYPE_DXGPAGINGQUEUE, args);
	up_write(&table->table_lock);
	kfree(queue);
	return queue ? 0 : -EINVAL;
}

/* The driver copies all of a call's arguments before it looks at any. */
enum { ARGUMENTS_MAX = 128 };

static int copy_arguments(char arguments[ARGUMENTS_MAX], const void __user *inargs, u32 call)
{
	if (WARN_ON(_IOC_SIZE(call) > ARGUMENTS_MAX))
		return -EINVAL;
	return copy_from_user(arguments, inargs, _IOC_SIZE(call)) ? -EFAULT : 0;
}

/* Calls of which only matters here that a message goes to the device whose handle, or whose queue's, comes first. */
static int message_to_device(struct dxgprocess *process, enum hmgrentry_type type, void __user *inargs, u32 call)
{
	char arguments[ARGUMENTS_MAX];
	struct d3dkmthandle handle;
	struct dxgdevice *device;
	int r = copy_arguments(arguments, inargs, call);

	if (r)
		return r;
	memcpy(&handle, arguments, sizeof(handle));
	device = dxgprocess_device_by_object_handle(process, type, handle);
	if (!device)
		return -EINVAL;
	r = dxgvmb_send_sync_msg(device->adapter);
	dxgdevice_put(device);
	return r;
}

static noinline int dxgkio_get_device_state(struct dxgprocess *process, void __user *inargs)
{
	return message_to_device(process, HMGRENTRY_TYPE_DXGDEVICE, inargs, LX_DXGETDEVICESTATE);
}

static noinline int dxgkio_make_resident(struct dxgprocess *process, void __user *inargs)
{
	return message_to_device(process, HMGRENTRY_TYPE_DXGPAGINGQUEUE, inargs, LX_DXMAKERESIDENT);
}

/* The same for the adapter whose handle is @offset bytes behind the start. */
static int message_to_adapter(struct dxgprocess *process, void __user *inargs, size_t offset, u32 call)
{
	char arguments[ARGUMENTS_MAX];
	struct dxgadapter *adapter;
	struct d3dkmthandle handle;
	int r = copy_arguments(arguments, inargs, call);

	if (r)
		return r;
	memcpy(&handle, arguments + offset, sizeof(handle));
	adapter = dxgprocess_adapter_by_handle(process, handle);
	return adapter ? dxgvmb_send_sync_msg(adapter) : -EINVAL;
}

static noinline int dxgkio_reserve_gpu_va(struct dxgprocess *process, void __user *inargs)
{
	return message_to_adapter(process, inargs, 0, LX_DXRESERVEGPUVIRTUALADDRESS);
}

static noinline int dxgkio_free_gpu_va(struct dxgprocess *process, void __user *inargs)
{
	return message_to_adapter(process, inargs, 0, LX_DXFREEGPUVIRTUALADDRESS);
}

static noinline int dxgkio_escape(struct dxgprocess *process, void __user *inargs)
{
	return message_to_adapter(process, inargs, 0, LX_DXESCAPE);
}

static noinline int dxgkio_flush_heap_transitions(struct dxgprocess *process, void __user *inargs)
{
	return message_to_adapter(process, inargs, 0, LX_DXFLUSHHEAPTRANSITIONS);
}

static noinline int dxgkio_query_clock_calibration(struct dxgprocess *process, void __user *inargs)
{
	return message_to_adapter(process, inargs, 0, LX_DXQUERYCLOCKCALIBRATION);
}

static noinline int dxgkio_is_feature_enabled(struct dxgprocess *process, void __user *inargs)
{
	return message_to_adapter(process, inargs, 0, LX_ISFEATUREENABLED);
}

static noinline int dxgkio_query_vidmem_info(struct dxgprocess *process, void __user *inargs)
{
	return message_to_adapter(process, inargs, 8, LX_DXQUERYVIDEOMEMORYINFO);
}

static noinline int dxgkio_change_vidmem_reservation(struct dxgprocess *process, void __user *inargs)
{
	return message_to_adapter(process, inargs, 8, LX_DXCHANGEVIDEOMEMORYRESERVATION);
}

static int give_statistics(struct dxgprocess *process, struct d3dkmt_querystatistics *args, void __user *inargs)
{
	struct d3dkmthandle host_process_handle = process->host_handle;
	struct dxgadapter *adapter;
	int r;

	if (copy_from_user(args, inargs, sizeof(*args)))
		return -EFAULT;
	if (args->process)
		host_process_handle = dxgprocess_host_handle(args->process);
	adapter = host_process_handle.v ? dxgadapter_by_luid(&args->adapter_luid) : NULL;
	if (!adapter)
		return -EINVAL;
	r = dxgvmb_send_query_statistics(host_process_handle, adapter, args);
	if (!r && copy_to_user(inargs, args, sizeof(*args)))
		r = -EFAULT;
	return r;
}

static noinline int dxgkio_query_statistics(struct dxgprocess *process, void __user *inargs)
{
	struct d3dkmt_querystatistics *args = kzalloc(sizeof(*args), GFP_KERNEL);
	int r = args ? give_statistics(process, args, inargs) : -ENOMEM;

	kfree(args);
	return r;
}

/* Of all processes that use an adapter, the caller is one. */
static noinline int dxgkio_enum_processes(struct dxgprocess *process, void __user *inargs)
{
	struct d3dkmt_enumprocesses args;
	u32 pid = (u32)process->pid;

	if (copy_from_user(&args, inargs, sizeof(args)))
		return -EFAULT;
	if (!dxgadapter_by_luid(&args.adapter_luid))
		return -EINVAL;
	if (args.buffer && args.buffer_count && copy_to_user((void __user *)(uintptr_t)args.buffer, &pid, sizeof(pid)))
		return -EFAULT;
	args.buffer_count = 1;
	return copy_to_user(inargs, &args, sizeof(args)) ? -EFAULT : 0;
}

static const struct ioctl_desc {
	int (*ioctl_callback)(struct dxgprocess *process, void __user *inargs);
	u32 ioctl;
} ioctls[] = {
	[0x01] = {dxgkio_open_adapter_from_luid, LX_DXOPENADAPTERFROMLUID},
	[0x02] = {dxgkio_create_device, LX_DXCREATEDEVICE},
	[0x07] = {dxgkio_create_paging_queue, LX_DXCREATEPAGINGQUEUE},
	[0x08] = {dxgkio_reserve_gpu_va, LX_DXRESERVEGPUVIRTUALADDRESS},
	[0x09] = {dxgkio_query_adapter_info, LX_DXQUERYADAPTERINFO},
	[0x0a] = {dxgkio_query_vidmem_info, LX_DXQUERYVIDEOMEMORYINFO},
	[0x0b] = {dxgkio_make_resident, LX_DXMAKERESIDENT},
	[0x0d] = {dxgkio_escape, LX_DXESCAPE},
	[0x0e] = {dxgkio_get_device_state, LX_DXGETDEVICESTATE},
	[0x14] = {dxgkio_enum_adapters, LX_DXENUMADAPTERS2},
	[0x15] = {dxgkio_close_adapter, LX_DXCLOSEADAPTER},
	[0x16] = {dxgkio_change_vidmem_reservation, LX_DXCHANGEVIDEOMEMORYRESERVATION},
	[0x19] = {dxgkio_destroy_device, LX_DXDESTROYDEVICE},
	[0x1c] = {dxgkio_destroy_paging_queue, LX_DXDESTROYPAGINGQUEUE},
	[0x1f] = {dxgkio_flush_heap_transitions, LX_DXFLUSHHEAPTRANSITIONS},
	[0x20] = {dxgkio_free_gpu_va, LX_DXFREEGPUVIRTUALADDRESS},
	[0x3d] = {dxgkio_query_clock_calibration, LX_DXQUERYCLOCKCALIBRATION},
	[0x3e] = {dxgkio_enum_adapters3, LX_DXENUMADAPTERS3},
	[0x43] = {dxgkio_query_statistics, LX_DXQUERYSTATISTICS},
	[0x48] = {dxgkio_enum_processes, LX_DXENUMPROCESSES},
	[0x49] = {dxgkio_is_feature_enabled, LX_ISFEATUREENABLED},
};

static int dxgk_ioctl(struct file *f, unsigned int p1, unsigned long p2)
{
	struct dxgprocess *process = f->private_data;
	unsigned int code = _IOC_NR(p1);

	if (code >= ARRAY_SIZE(ioctls) || !ioctls[code].ioctl_callback || ioctls[code].ioctl != p1)
		return -ENOTTY;
	if (process->tgid != current->tgid)
		return -ENOTTY;
	/* The driver does not sleep there. */
	for (unsigned int i = 0; i < window; i++)
		udelay(1);
	return ioctls[code].ioctl_callback(process, (void __user *)p2);
}

noinline long dxgk_unlocked_ioctl(struct file *f, unsigned int p1, unsigned long p2)
{
	return dxgk_ioctl(f, p1, p2);
}

noinline long dxgk_compat_ioctl(struct file *f, unsigned int p1, unsigned long p2)
{
	return dxgk_ioctl(f, p1, p2);
}
