/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once

/*
 * A stand-in for Microsoft's dxgkrnl, with a host of its own inside: what the guard must find (names of functions and structs,
 * the fields that it reads, how handles are built) and what programs see of it. Written from the published interface and
 * from what the real driver was seen to do; nothing behind the interface is the real one's.
 */

#include <linux/completion.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/types.h>
#include <linux/uaccess.h>

#include "d3dkmthk.h"

/* For a guard that takes its offsets from anywhere but BTF. */
#ifdef VARIANT_MOVED
#define MOVED(number) u64 moved_##number[number];
#else
#define MOVED(number)
#endif

struct dxgprocess;

enum hmgrentry_type {
	HMGRENTRY_TYPE_FREE = 0,
	HMGRENTRY_TYPE_DXGADAPTER = 1,
	HMGRENTRY_TYPE_DXGDEVICE = 3,
	HMGRENTRY_TYPE_DXGPAGINGQUEUE = 10,
};

struct hmgrentry {
	MOVED(1)
	union {
		void *object;
		struct {
			u32 prev_free_index;
			u32 next_free_index;
		};
	};
#ifdef VARIANT_MOVED
	u32 moved_bits : 9;
#endif
	u32 type : 6;
	u32 unique : 2;
	u32 instance : 6;
	u32 destroyed : 1;
};

struct hmgrtable {
	struct dxgprocess *process;
	MOVED(2)
	struct hmgrentry *entry_table;
	u32 free_handle_list_head;
	u32 free_handle_list_tail;
	MOVED(3)
	u32 table_size;
	u32 free_count;
	struct rw_semaphore table_lock;
};

struct dxgprocess {
	struct list_head plistentry;
	pid_t pid;
	pid_t tgid;
	struct kref process_kref;
	MOVED(4)
	struct hmgrtable handle_table;       /* devices and what belongs to them */
	struct hmgrtable local_handle_table; /* adapters */
	struct d3dkmthandle host_handle;
};

struct dxgadapter {
	struct rw_semaphore core_lock;
	MOVED(5)
	struct winluid luid;
	struct winluid host_adapter_luid;
	/* What the host knows of it. */
	u32 vendor, device, type, bus;
	const char *name, *store;
	atomic64_t messages;
};

struct dxgdevice {
	struct kref device_kref;
	MOVED(6)
	struct dxgadapter *adapter;
	struct dxgprocess *process;
	struct d3dkmthandle handle;
};

struct dxgpagingqueue {
	struct dxgdevice *device;
	struct d3dkmthandle device_handle;
	struct d3dkmthandle handle;
};

extern struct dxgadapter *dxgadapters;
extern unsigned int dxgadapter_count;

int dxgadapters_init(void);
void dxgadapters_free(void);
struct dxgadapter *dxgadapter_by_luid(const struct winluid *luid);
int dxgadapter_answer(struct dxgadapter *adapter, u32 type, void *data, u32 size);

void hmgrtable_init(struct hmgrtable *table, struct dxgprocess *process);
void hmgrtable_destroy(struct hmgrtable *table);
/* The table's lock is held for writing. Return: 0 if there is no memory. */
struct d3dkmthandle hmgrtable_alloc_handle(struct hmgrtable *table, void *object, enum hmgrentry_type type);
/* The table's lock is held for writing. Return: the object that the handle meant, NULL if none. */
void *hmgrtable_free_handle(struct hmgrtable *table, enum hmgrentry_type type, struct d3dkmthandle handle);
/* The table's lock is held. */
void *hmgrtable_get_object_by_type(struct hmgrtable *table, enum hmgrentry_type type, struct d3dkmthandle handle);

struct dxgprocess *dxgprocess_open(void);
void dxgprocess_close(struct dxgprocess *process);
/* At the last close. */
void dxgprocess_destroy(struct dxgprocess *process);
/* The host's handle of a process, by its number; 0 if it has none. */
struct d3dkmthandle dxgprocess_host_handle(u64 pid);
int dxgprocess_open_adapter(struct dxgprocess *process, struct dxgadapter *adapter, struct d3dkmthandle *handle);
int dxgprocess_close_adapter(struct dxgprocess *process, struct d3dkmthandle handle);
struct dxgadapter *dxgprocess_adapter_by_handle(struct dxgprocess *process, struct d3dkmthandle handle);
/* Return: referenced. */
struct dxgdevice *dxgprocess_device_by_object_handle(struct dxgprocess *process, enum hmgrentry_type t,
						     struct d3dkmthandle handle);
struct dxgdevice *dxgprocess_device_by_handle(struct dxgprocess *process, struct d3dkmthandle handle);
void dxgdevice_put(struct dxgdevice *device);

int dxgvmb_init(void);
void dxgvmb_exit(void);
int dxgvmb_send_sync_msg(struct dxgadapter *adapter);
int dxgvmb_send_query_adapter_info(struct dxgprocess *process, struct dxgadapter *adapter,
				   struct d3dkmt_queryadapterinfo *args);
int dxgvmb_send_query_statistics(struct d3dkmthandle host_process_handle, struct dxgadapter *adapter,
				 struct d3dkmt_querystatistics *args);

long dxgk_unlocked_ioctl(struct file *f, unsigned int p1, unsigned long p2);
long dxgk_compat_ioctl(struct file *f, unsigned int p1, unsigned long p2);
