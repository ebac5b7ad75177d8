/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/context.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctr-gpu.h"
#include "model/version.h"

VERSION_NOTE();

/* The public log levels are the inner ones under another name. */
_Static_assert((int)CTR_GPU_LOG_WARNING == (int)LOG_WARNING && (int)CTR_GPU_LOG_DEBUG == (int)LOG_DEBUG, "log levels");
_Static_assert((int)CTR_GPU_INVENTORY_AUTO == (int)INVENTORY_AUTO &&
		       (int)CTR_GPU_INVENTORY_DXCORE == (int)INVENTORY_DXCORE &&
		       (int)CTR_GPU_INVENTORY_IOCTL == (int)INVENTORY_IOCTL,
	       "inventory sources");

const char *ctr_gpu_version(void)
{
	return CTR_GPU_VERSION;
}

const char *ctr_gpu_error_name(int r)
{
	return err_name(r);
}

int ctr_gpu_context_new(struct ctr_gpu_context **ret_context)
{
	struct ctr_gpu_context *context = calloc(1, sizeof(*context));

	if (!context)
		return -ENOMEM;
	context->message = calloc(1, ERR_MESSAGE_MAX);
	if (!context->message) {
		free(context);
		return -ENOMEM;
	}
	settings_init(&context->settings);
	*ret_context = context;
	return 0;
}

struct ctr_gpu_context *ctr_gpu_context_unref(struct ctr_gpu_context *context)
{
	if (!context)
		return NULL;
	settings_clear(&context->settings);
	free(context->message);
	free(context);
	return NULL;
}

pid_t context_caller(const struct ctr_gpu_context *context)
{
	return context->undo_log ? context->caller : getppid();
}

struct undo_log *context_begin_undo_log(const struct ctr_gpu_context *context)
{
	return context->undo_log ? context->undo_log : undo_log_new(false);
}

void context_end_undo_log(const struct ctr_gpu_context *context, struct undo_log *undo_log)
{
	if (undo_log != context->undo_log)
		(void)undo_log_free(undo_log);
}

const char *ctr_gpu_context_message(const struct ctr_gpu_context *context)
{
	return err_message(&context->err, context->message);
}

/* Inner layers have an enum of log levels of their own, with the same values. */
static void context_forward(void *user, enum log_level level, const char *text)
{
	const struct ctr_gpu_log_target *target = user;

	target->log(target->user, (enum ctr_gpu_log_level)level, text);
}

void ctr_gpu_context_set_log(struct ctr_gpu_context *context, ctr_gpu_log_fn log, void *user)
{
	context->target = (struct ctr_gpu_log_target){.log = log, .user = user};
	context->settings.log = (struct log){.sink = log ? context_forward : NULL, .user = &context->target};
}

int ctr_gpu_context_load_config(struct ctr_gpu_context *context, const char *path)
{
	return settings_load(&context->settings, path, &context->err);
}

const char *ctr_gpu_context_runtime(const struct ctr_gpu_context *context, size_t number)
{
	static const char *const usual[] = {"runc", "crun"};
	const struct strv *chosen = &context->settings.runtimes;

	if (chosen->count)
		return number < chosen->count ? chosen->items[number] : NULL;
	return number < ARRAY_SIZE(usual) ? usual[number] : NULL;
}

const char *ctr_gpu_context_log(const struct ctr_gpu_context *context)
{
	return context->settings.log_destination;
}

void ctr_gpu_context_set_inventory(struct ctr_gpu_context *context, enum ctr_gpu_inventory inventory)
{
	context->settings.inventory = (enum inventory_source)inventory;
}

void ctr_gpu_context_set_driver_timeout(struct ctr_gpu_context *context, unsigned milliseconds)
{
	const unsigned longest = SETTINGS_LONGEST_S * 1000;

	if (milliseconds > 0)
		context->settings.driver_timeout_ms = milliseconds < longest ? milliseconds : longest;
}

int ctr_gpu_context_set_driver_root(struct ctr_gpu_context *context, const char *directory)
{
	if (directory[0] != '/')
		return err_set(&context->err, CTR_GPU_E_BAD_ARGUMENT,
			       "the driver root must be an absolute path, not \"%.128s\"", directory);
	return str_replace(&context->settings.driver_root, directory);
}
