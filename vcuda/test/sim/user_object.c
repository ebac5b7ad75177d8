/* SPDX-License-Identifier: Apache-2.0 */

/* Objects of the program's that graphs keep: those that are copied have a reference of their own. */

#include <stdlib.h>

#include "graph.h"

struct CUuserObject_st {
	struct object object;
	unsigned references;
	void *data;
	CUhostFn destroy;
};

static void user_object_drop(CUuserObject object, unsigned count)
{
	object->references -= count;
	if (object->references)
		return;
	object->destroy(object->data);
	object_free(object);
}

static struct kept *user_object_in(CUgraph graph, CUuserObject object)
{
	for (size_t i = 0; i < graph->kept_count; i++)
		if (graph->kept[i].object == object)
			return &graph->kept[i];
	return NULL;
}

static void user_object_keep(CUgraph graph, CUuserObject object, unsigned count)
{
	struct kept *kept = user_object_in(graph, object);

	if (!kept) {
		graph->kept = realloc(graph->kept, (graph->kept_count + 1) * sizeof(*graph->kept));
		if (!graph->kept)
			abort();
		kept = &graph->kept[graph->kept_count++];
		*kept = (struct kept){object, 0};
	}
	kept->count += count;
}

void user_object_copy(CUgraph to, CUgraph from)
{
	for (size_t i = 0; i < from->kept_count; i++) {
		from->kept[i].object->references++;
		user_object_keep(to, from->kept[i].object, 1);
	}
}

void user_object_forget(CUgraph graph)
{
	for (size_t i = 0; i < graph->kept_count; i++)
		user_object_drop(graph->kept[i].object, graph->kept[i].count);
	free(graph->kept);
	graph->kept = NULL;
	graph->kept_count = 0;
}

CUresult cuUserObjectCreate(CUuserObject *ret, void *data, CUhostFn destroy, unsigned references, unsigned flags)
{
	CALL(__func__);
	LEAVE_IF(!ret || !destroy || !references || references > INT32_MAX || flags != 1, CUDA_ERROR_INVALID_VALUE);
	*ret = object_new(OBJECT_USER, sizeof(**ret), NULL);
	(*ret)->references = references;
	(*ret)->data = data;
	(*ret)->destroy = destroy;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned count)
{
	CALL(__func__);
	LEAVE_IF(!object_is(object, OBJECT_USER) || !count || count > INT32_MAX, CUDA_ERROR_INVALID_VALUE);
	object->references += count;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned count)
{
	CALL(__func__);
	LEAVE_IF(!object_is(object, OBJECT_USER) || !count || count > object->references, CUDA_ERROR_INVALID_VALUE);
	user_object_drop(object, count);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags)
{
	CALL(__func__);
	LEAVE_IF(!object_is(graph, OBJECT_GRAPH) || !object_is(object, OBJECT_USER) || !count || count > INT32_MAX ||
			 flags > 1,
		 CUDA_ERROR_INVALID_VALUE);
	if (!flags)
		object->references += count;
	user_object_keep(graph, object, count);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned count)
{
	struct kept *kept;

	CALL(__func__);
	LEAVE_IF(!object_is(graph, OBJECT_GRAPH) || !object_is(object, OBJECT_USER) || !count,
		 CUDA_ERROR_INVALID_VALUE);
	kept = user_object_in(graph, object);
	LEAVE_IF(!kept || kept->count < count, CUDA_ERROR_INVALID_VALUE);
	kept->count -= count;
	if (!kept->count)
		*kept = graph->kept[--graph->kept_count];
	user_object_drop(object, count);
	LEAVE(CUDA_SUCCESS);
}
