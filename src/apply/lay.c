/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Paths are looked up first, since the stage covers the root and an image's ".." would lead into it; then all is made
 * in one stage; then, without the stage, it is attached.
 */

#include "apply/lay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apply/root_writer.h"
#include "base/str.h"

struct lay {
	const char *path;
	const struct plan_file *file; /* NULL: the path is a directory, which is to be empty */
	struct rootfs_place target;   /* nowhere: nothing is to be done */
	struct mount_source source;
};

/* The file says so already when a plan is applied twice; then procfs is not found, as it is covered. */
static bool lay_says_so(const struct placing *placing, const struct rootfs_place *target, const struct plan_file *file)
{
	_cleanup_free_ char *old = NULL;

	return !file->on_procfs && !target->made &&
	       rootfs_read_handle(placing->rootfs, target->fd, strlen(file->content), &old, NULL) == 0 &&
	       streq(old, file->content);
}

static int lay_find_file(const struct placing *placing, const struct plan_file *file, struct lay *ret)
{
	_cleanup_place_ struct rootfs_place target = ROOTFS_NOWHERE;
	int r;

	r = file->on_procfs ? placing_find_procfs(placing, file->target, &target)
			    : placing_make(placing, file->target, false, &target);
	if (!file->on_procfs && placing_can_do_without(placing, file->target, r, &target))
		return 0;
	if (r < 0)
		return r == -ENOENT && file->on_procfs ? 0 : root_writer_error(placing->err, file->target, r);
	if (lay_says_so(placing, &target, file))
		return 0;
	if (placing_is_forbidden(&target, file->target))
		return placing_refuse(placing, &target, file->target);
	*ret = (struct lay){file->target, file, target, MOUNT_NONE};
	target = ROOTFS_NOWHERE;
	return 0;
}

static int lay_find_hidden(const struct placing *placing, const struct plan_hidden *hidden, struct lay *ret)
{
	_cleanup_place_ struct rootfs_place target = ROOTFS_NOWHERE;
	int r;

	r = placing_find_procfs(placing, hidden->path, &target);
	if (r < 0)
		return r == -ENOENT ? 0 : root_writer_error(placing->err, hidden->path, r);
	*ret = (struct lay){hidden->path, NULL, target, MOUNT_NONE};
	target = ROOTFS_NOWHERE;
	return 0;
}

static int lay_find_all(const struct placing *placing, const struct plan *plan, struct lay *lays)
{
	int r = 0;

	for (size_t i = 0; i < plan->file_count && r == 0; i++)
		r = lay_find_file(placing, &plan->files[i], lays++);
	for (size_t i = 0; i < plan->hidden_count && r == 0; i++)
		r = lay_find_hidden(placing, &plan->hidden[i], lays++);
	return r;
}

static int lay_attach(const struct placing *placing, struct lay *lay)
{
	int r = placing_attach(placing, &lay->source, &lay->target, lay->path);

	mount_source_close(&lay->source);
	if (r == 0)
		log_debug(placing->log, "mounted over %s", lay->path);
	return r;
}

/* Without open_tree(2) the source is a mount in the stage, and leaves it at once. */
static int lay_make(const struct placing *placing, struct lay *lay)
{
	struct span content = span_text(lay->file ? lay->file->content : "");
	int r = lay->file ? mount_make_data(placing->stage, &content, 1, &lay->source)
			  : mount_make_empty(placing->stage, &lay->source);

	if (r < 0)
		return placing_error(placing, "what ctr-gpu made", lay->path, r);
	return lay->source.staged ? lay_attach(placing, lay) : 0;
}

static int lay_make_all(const struct placing *placing, struct lay *lays, size_t count)
{
	int r = 0;

	for (size_t i = 0; i < count && r == 0; i++)
		if (lays[i].target.fd >= 0)
			r = lay_make(placing, &lays[i]);
	mount_stage_close(placing->stage);
	for (size_t i = 0; i < count && r == 0; i++)
		if (lays[i].source.tree >= 0)
			r = lay_attach(placing, &lays[i]);
	return r;
}

int lay_all(const struct placing *placing, const struct plan *plan)
{
	const size_t count = plan->file_count + plan->hidden_count;
	_cleanup_free_ struct lay *lays = calloc(count + 1, sizeof(*lays));
	int r;

	if (!lays)
		return err_set(placing->err, -ENOMEM, "%m");
	for (size_t i = 0; i < count; i++)
		lays[i] = (struct lay){NULL, NULL, ROOTFS_NOWHERE, MOUNT_NONE};
	r = lay_find_all(placing, plan, lays);
	if (r == 0)
		r = lay_make_all(placing, lays, count);
	for (size_t i = 0; i < count; i++) {
		rootfs_place_close(&lays[i].target);
		mount_source_close(&lays[i].source);
	}
	return r;
}
