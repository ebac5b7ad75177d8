// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only

/*
 * A process's handles. The table grows when few entries are free, and hands them out in the order in which they became free;
 * the first is 0x40000000, one that was used before begins with 0x8. Bits 0 to 5 of a handle mean nothing.
 */

#include <linux/vmalloc.h>

#include "dxgkrnl.h"

enum { TABLE_STEP = 1024, TABLE_SPARE = 128, TABLE_LIMIT = 1 << 20, NO_INDEX = 0xFFFFFFFF };

void hmgrtable_init(struct hmgrtable *table, struct dxgprocess *process)
{
	table->process = process;
	table->entry_table = NULL;
	table->table_size = 0;
	table->free_count = 0;
	table->free_handle_list_head = table->free_handle_list_tail = NO_INDEX;
	init_rwsem(&table->table_lock);
}

void hmgrtable_destroy(struct hmgrtable *table)
{
	vfree(table->entry_table);
	table->entry_table = NULL;
	table->table_size = 0;
}

static void entry_enqueue(struct hmgrtable *table, u32 index)
{
	struct hmgrentry *entry = &table->entry_table[index];

	entry->type = HMGRENTRY_TYPE_FREE;
	entry->next_free_index = NO_INDEX;
	entry->prev_free_index = table->free_handle_list_tail;
	if (table->free_count > 0)
		table->entry_table[table->free_handle_list_tail].next_free_index = index;
	else
		table->free_handle_list_head = index;
	table->free_handle_list_tail = index;
	table->free_count++;
}

static bool table_expand(struct hmgrtable *table)
{
	u32 size = table->table_size + TABLE_STEP;
	struct hmgrentry *entries = size > TABLE_LIMIT ? NULL : vzalloc(size * sizeof(*entries));

	if (!entries)
		return false;
	if (table->entry_table)
		memcpy(entries, table->entry_table, table->table_size * sizeof(*entries));
	vfree(table->entry_table);
	table->entry_table = entries;
	while (table->table_size < size) {
		entries[table->table_size].unique = 1;
		entry_enqueue(table, table->table_size++);
	}
	return true;
}

struct d3dkmthandle hmgrtable_alloc_handle(struct hmgrtable *table, void *object, enum hmgrentry_type type)
{
	struct d3dkmthandle handle = {};
	struct hmgrentry *entry;
	u32 index;

	if (table->free_count <= TABLE_SPARE && !table_expand(table))
		return handle;
	index = table->free_handle_list_head;
	entry = &table->entry_table[index];
	table->free_handle_list_head = entry->next_free_index;
	table->free_count--;
	entry->object = object;
	entry->type = type;
	handle.index = index;
	handle.unique = entry->unique;
	return handle;
}

static struct hmgrentry *table_find(struct hmgrtable *table, enum hmgrentry_type type, struct d3dkmthandle handle)
{
	struct hmgrentry *entry;

	if (handle.index >= table->table_size)
		return NULL;
	entry = &table->entry_table[handle.index];
	return entry->unique == handle.unique && entry->type == type ? entry : NULL;
}

void *hmgrtable_get_object_by_type(struct hmgrtable *table, enum hmgrentry_type type, struct d3dkmthandle handle)
{
	struct hmgrentry *entry = table_find(table, type, handle);

	return entry ? entry->object : NULL;
}

void *hmgrtable_free_handle(struct hmgrtable *table, enum hmgrentry_type type, struct d3dkmthandle handle)
{
	struct hmgrentry *entry = table_find(table, type, handle);
	void *object;

	if (!entry)
		return NULL;
	object = entry->object;
	entry->unique = 2; /* from the second time on, for good */
	entry_enqueue(table, handle.index);
	return object;
}
