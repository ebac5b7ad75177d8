/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/client/context.h"

#include <stdlib.h>

struct context_value {
	struct context_value *next;
	const void *key;
	void *value;
	context_storage_end *end;
};

static struct lock storage_lock;

/* Where the value is linked, or where one would be. */
static struct context_value **context_storage_find(struct context *context, const void *key)
{
	struct context_value **at = &context->values;

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

CUresult context_storage_put(struct context *context, const void *key, void *value, context_storage_end *end)
{
	struct context_value **at;

	LOCK_HOLD(&storage_lock);
	at = context_storage_find(context, key);
	if (*at)
		return CUDA_ERROR_INVALID_HANDLE;
	*at = malloc(sizeof(**at));
	if (!*at)
		return CUDA_ERROR_OUT_OF_MEMORY;
	**at = (struct context_value){NULL, key, value, end};
	return CUDA_SUCCESS;
}

CUresult context_storage_get(struct context *context, const void *key, void **ret)
{
	const struct context_value *found;

	LOCK_HOLD(&storage_lock);
	found = *context_storage_find(context, key);
	*ret = found ? found->value : NULL;
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult context_storage_delete(struct context *context, const void *key)
{
	struct context_value **at, *found;

	LOCK_HOLD(&storage_lock);
	at = context_storage_find(context, key);
	found = *at;
	if (!found)
		return CUDA_ERROR_INVALID_HANDLE;
	*at = found->next;
	free(found);
	return CUDA_SUCCESS;
}

/* One at a time: whoever is told may put and delete others. */
static struct context_value *context_storage_take(struct context *context)
{
	struct context_value *first;

	LOCK_HOLD(&storage_lock);
	first = context->values;
	if (first)
		context->values = first->next;
	return first;
}

void context_storage_forget(struct context *context)
{
	struct context_value *value;

	while ((value = context_storage_take(context))) {
		if (value->end)
			value->end(context->name, value->key, value->value);
		free(value);
	}
}
