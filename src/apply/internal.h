/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of apply have of each other: what is done to a container, and the record by which it is undone. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/span.h"
#include "base/str.h"
#include "devcgroup/devcgroup.h"
#include "ldcache/loader.h"
#include "model/plan.h"
#include "root/mount.h"
#include "root/rootfs.h"
#include "root/undo_log.h"

struct ctr_gpu_container;

/*
 * A directory of ours, in memory, in which files of the plan are mounted. Without it they would need empty files in the
 * container's root filesystem as mount points. If a user makes an image of the container, such an empty file stays in
 * it: loaders stop at it, and shells cannot run it. So the plan's path gets a symlink into the directory, which leads
 * nowhere in such an image. A file that the image itself has at the path is mounted on, as it is.
 */

struct own_directory {
	bool tried;
	int tmpfs; /* the undo log's; -1: nothing is mounted there, or it is not known to be ours */
};

#define OWN_DIRECTORY_NONE ((struct own_directory){.tmpfs = -1})

/** Nothing can be changed there any more. Return: 0; negative errno. */
int own_directory_close(const struct own_directory *own, const struct rootfs *rootfs);

/** For a tmpfs of ours that was there before and can be written to meanwhile. */
void own_directory_undo_writable(const struct undo_log *undo_log, const struct undo_step *undo_step);

/** Whether a directory that the plan mounts brings the file along, by the name that it has on the host. */
bool own_directory_is_reachable(const struct plan *plan, const struct plan_mount *file);

/** Whether the symlink that own_directory_link() would make is there. */
bool own_directory_is_linked(const struct rootfs *rootfs, const struct plan *plan, const struct plan_mount *file);

/**
 * own_directory_link() - have a symlink where the plan wants a file and the image has none
 * @leads_to: where the file is; NULL: in PLAN_OWN_DIRECTORY, by its whole path
 * @ret:      new string, what the symlink says; NULL: there is none, and the file is to be mounted at @path
 *
 * Return: 0, also where no link can be made; -ENOMEM.
 */
int own_directory_link(struct rootfs *rootfs, const struct mapped_root *owner, const char *path, const char *leads_to,
		       char **ret);

/* Mounts what the caller holds at a path of the container, where that may be done. */

/* All of it is borrowed. */
struct attach_context {
	struct rootfs *rootfs;
	struct mount_stage *stage;
	struct own_directory *own;
	const struct mapped_root *owner; /* who makes what is missing */
	const struct log *log;
	struct err *err;
};

/** own_directory_link(), and what the error means. Return: 0; -ENOMEM with the error set. */
int attach_target_link(const struct attach_context *attach_context, const char *path, const char *leads_to, char **ret);

/** A file or directory to mount onto, found, or made where it is missing. Return: 0; negative errno. */
int attach_target_make(const struct attach_context *attach_context, const char *path, bool directory,
		       struct rootfs_target *ret);

/** Whether nothing may be mounted there. @path: as the plan names it */
bool attach_target_is_forbidden(const struct rootfs_target *target, const char *path);

/**
 * attach_target_can_do_without() - whether the engine's mounts leave no place for what the container works without;
 * says so
 * @r: of making @target
 */
bool attach_target_can_do_without(const struct attach_context *attach_context, const char *path, int r,
				  const struct rootfs_target *target);

/** Attaches a source at a place. Return: 0; a result with the error set. */
int attach_target_attach(const struct attach_context *attach_context, struct mount_source *source,
			 const struct rootfs_target *target, const char *path);

/** Lays bytes of ours over a place. Return: as attach_target_attach(). */
int attach_target_cover(const struct attach_context *attach_context, const struct span *parts, size_t count,
			const struct rootfs_target *target, const char *path);

/** What it means when mounting @source on @target fails with @r. Return: the result, with the error set. */
int attach_target_error(const struct attach_context *attach_context, const char *source, const char *target, int r);

/* What a plan lays over files and directories of the container. */

/** All of it, or what the container does not work without. Return: 0; a result with the error set. */
int cover_all(const struct attach_context *attach_context, const struct plan *plan);

/*
 * The part of a plan that is written into a container's root filesystem itself, rather than mounted on it: symlinks,
 * the files that tell the image's loader of the driver's libraries, and the modes of directories.
 */

struct file_writer {
	struct rootfs *rootfs;
	const struct plan *plan;
	const struct mapped_root *owner;
	const struct log *log;
	struct err *err;
	bool leave_own; /* a tmpfs is going to be mounted on PLAN_OWN_DIRECTORY */
	/*
	 * For a file that cannot be written, as on a volume; writing it failed with @r.
	 * Return: 0, or a result with @err set.
	 */
	int (*cover)(void *user, const struct loader_file *file, int r);
	void *user;
};

/** Return: 0; the result of what failed, with @err set. What was done is in the undo log of the rootfs. */
int write_files_make_symlinks(const struct file_writer *writer);
int write_files_make_loader_files(const struct file_writer *writer);

/** Changes the modes of directories that a plan names. Return: 0; negative errno with the error set. */
int write_files_change_modes(const struct attach_context *attach_context, const struct plan *plan);

/** For a change of a directory's mode: the mode before. */
void write_files_undo_mode(const struct undo_log *undo_log, const struct undo_step *undo_step);

/** What it means when making @path in the container fails with @r. Return: the result, with @err set. */
int write_files_error(struct err *err, const struct rootfs *rootfs, const char *path, int r);

/* Tells the guard which adapters a container has chosen, before the container has the device. */

enum { GUARD_RULE_BEFORE_MAX = 16 };

/* What a container that runs had chosen before. */
struct guard_rule_before {
	bool changed;
	size_t count; /* 0: nothing */
	uint64_t luids[GUARD_RULE_BEFORE_MAX];
};

/* All of it is borrowed. */
struct guard_rule {
	const struct plan_choice *choice;
	const struct devcgroup *cgroup; /* the container's; NULL: it has none with device rules */
	struct guard_rule_before
		*before; /* of a container that runs, whose choice is extended; NULL: of one that is made */
	bool has_device; /* the running container has the device already: without a choice it may use all adapters */
	bool all;        /* the running container is to use all adapters: an earlier choice would keep it from some */
	struct undo_log *undo_log;
	const struct log *log;
	struct err *err;
};

/**
 * guard_rule_guard() - if the plan has a choice
 *
 * The cgroup's end takes it away. Return: 0, with a warning if it is not held and need not be; CTR_GPU_E_GUARD with the
 * error set.
 */
int guard_rule_guard(const struct guard_rule *rule);

struct choices;

/**
 * guard_rule_restore() - of a container that runs, a choice as it was before
 * @cgroup: its directory
 * @count:  0: there was none, or of no adapter
 *
 * Where there was none, there is one of no adapter until the container ends. Without it, the device would reach all of
 * them, for a process that still has it where it is not seen: in a socket's queue, or opened a moment ago.
 *
 * Return: 0 or negative errno.
 */
int guard_rule_restore(const struct choices *choices, int cgroup, const uint64_t *luids, size_t count);

/* GPUs that one container at a time may have. All of it is borrowed. */
struct claim_gpus {
	const struct plan *plan; /* with some */
	const struct ctr_gpu_container *container;
	struct undo_log *undo_log;
	struct err *err;
	struct strv *ret_taken; /* those that it did not have before; appended */
};

/** Has the container have them. Return: 0; CTR_GPU_E_EXCLUSIVE; negative errno. @err is set. */
int claim_gpus_take(const struct claim_gpus *gpus);

/** Takes away what claim_gpus_take() gave a container, an array of those in @ret_taken. */
void claim_gpus_release(const struct ctr_gpu_container *container, const json_t *names);

/*
 * What was done to a root filesystem by hand, written down so that a later process can take it back. Below a directory
 * that root alone may write, each root filesystem has a directory, with a numbered one for each time. That has the undo
 * log in JSON, and what was replaced.
 */

/**
 * undo_record_write() - write down what was done
 * @directory: absolute, made where missing
 * @undo_log: the record is a step of it, and goes if that is undone
 * @ret_holder: of -ETIMEDOUT: the process that did not let go of the records
 *
 * Return: 0, also where there is nothing to take back; negative errno.
 */
int undo_record_write(const char *directory, const struct rootfs *rootfs, struct undo_log *undo_log, pid_t *ret_holder);

/*
 * The records of one root filesystem, for one process at a time: another would take an unfinished record for its own.
 */
struct undo_records {
	int fd, lock;
	pid_t holder; /* of the lock, where it was not to be had */
};

#define UNDO_RECORDS_CLOSED ((struct undo_records){.fd = -1, .lock = -1})
enum { UNDO_RECORDS_MAX = 1000, UNDO_RECORDS_WAIT_MS = 10 * 1000 };

/** Makes the directory of the records at @path, and locks it. Return: 0; -ETIMEDOUT with the holder; negative errno. */
int undo_records_make(char *path, struct undo_records *ret);

/** The same of one that is there. Return: also -ENOENT. */
int undo_records_open(const char *path, struct undo_records *ret);

/** @path: of the directory, from @parent; it is removed if it is empty and its lock is held here */
void undo_records_close(struct undo_records *records, int parent, const char *path);

/** Which numbers are taken, in the directory @all. Return: 0 or negative errno. */
int undo_records_list(int all, bool ret[UNDO_RECORDS_MAX]);

/** Which records are outdated: a root filesystem may be given its GPUs at every boot. */
struct undo_records_age {
	bool (*is_over)(int all, const char *name, const char *boot);
	const char *boot;
};

/**
 * undo_records_find_number() - the number behind the newest record's
 *
 * Records are taken back by their numbers, the highest first, so one that is free below is not used. Outdated records
 * are removed. If the last number is taken, the records get lower ones, in the same order.
 *
 * Return: 0; -EMLINK if every number is taken; another negative errno.
 */
int undo_records_find_number(int all, const struct undo_records_age *age, char ret[static 16]);

/** Removes what is in a record, and it. @parent: of @name */
void undo_records_remove(int parent, const char *name);

/*
 * The record of a container that runs, whose namespaces this process may have entered: it is reached by descriptors
 * alone. Mounts and records end with the boot.
 */

/**
 * undo_record_write_running() - write down what was done
 * @records: their lock and directory become the undo log's, which takes the record back if it is undone
 * @more:    what the list does not have, and another process takes back; borrowed
 *
 * Return: 0, also where there is nothing to take back; negative errno.
 */
int undo_record_write_running(struct undo_records *records, const struct rootfs *rootfs, struct undo_log *undo_log,
			      json_t *more);

/** A record as it was written, a new reference. Return: 0 or negative errno. */
int undo_record_read_running(const struct undo_records *records, unsigned number, json_t **ret);

/**
 * undo_record_undo_running() - take back what a record has, in the container's mount namespace
 * @rootfs:   the container's, with its mount map, proc_self_fd and an undo log whose owner its files have
 * @restored: of the records that were undone just before, which were written later; begins empty
 * @lost:     begins as 0; the first reason why a file could not be brought back, with @err set. Older records are
 *            undone all the same, as another try does not know what this one has brought back; they and this record
 *            stay for it
 *
 * Return: 0; -EBUSY with @err set if a mount stays; negative errno.
 */
int undo_record_undo_running(const struct undo_records *records, unsigned number, const struct rootfs *rootfs,
			     struct strv *restored, int *lost, struct err *err);

void undo_record_remove_running(const struct undo_records *records, unsigned number);

/**
 * namespaces_enter() - enter the container's namespaces
 * @ret_fds: user and mount namespace, for the process that undoes
 *
 * Return: 0; CTR_GPU_E_NO_PERMISSION; negative errno. @err is set.
 */
int namespaces_enter(const struct ctr_gpu_container *container, int ret_fds[2], struct err *err);

/** The same in two steps: the user namespace, where that must be entered, and the mount namespace. */
int namespaces_enter_user(const struct ctr_gpu_container *container, int ret_fds[2], struct err *err);
int namespaces_enter_mounts(const struct ctr_gpu_container *container, int ret_fds[2], struct err *err);

/**
 * namespaces_open_root() - the root directory of the mount namespace that was entered
 *
 * The first process of a container that runs may have changed its own, to a volume or to another place. Return: as
 * container_open_rootfs().
 */
int namespaces_open_root(const struct ctr_gpu_container *container, struct rootfs *ret, struct err *err);

/**
 * namespaces_find_owner() - whose are files of the container's root
 * @ret: written if the container has a user namespace of its own, which is not entered: its root, as it is called here
 *
 * Return: 0; CTR_GPU_E_NO_PERMISSION if the namespace has no user of this one; negative errno. @err is set.
 */
int namespaces_find_owner(const struct ctr_gpu_container *container, struct mapped_root *ret, struct err *err);

/* What was given to a container that runs, and how it is taken back. */

/* What a record has besides the list: of the host's side of the container. */
struct running_rules {
	const struct devcgroup *cgroup; /* NULL: none */
	const struct guard_rule_before *guard;
	const struct plan *plan;
	const struct strv *claims; /* claim_gpus_take() */
};

/** Return: 0 with a new reference; -ENOMEM. */
int running_describe(const struct running_rules *rules, json_t **ret);

/**
 * running_check() - whether a container that runs can be given what is in a plan
 * @rootfs: its root
 *
 * Return: 0; CTR_GPU_E_BAD_ARGUMENT with @err set; negative errno.
 */
int running_check(const struct plan *plan, const struct rootfs *rootfs, struct err *err);

/** Removes the records of containers that have ended, below the directory of all. */
void running_drop_ended(const char *directory);

/** Whether it has the node of the plan's first device. */
bool running_has_device(const struct plan *plan, const struct ctr_gpu_container *container);

/*
 * The layer of a container, which an engine lays over the image with overlayfs. A start has to make directories to
 * mount on in it, links and the loader's files. They are written down in a file of the bundle, LAYER_RECORD, which ends
 * with the container, and taken back by a hook of the stage poststop, while the engine still has the layer mounted.
 */

#define LAYER_RECORD "ctr-gpu.layer"

/**
 * layer_begin() - have what is made from here on be noted
 * @bundle: the container's; NULL: nothing is noted
 * @rootfs: path of its root filesystem
 */
void layer_begin(struct undo_log *undo_log, const char *bundle, const char *rootfs);

/**
 * layer_save() - write down what was noted, once all is done
 * @ends: the program does; descriptors that are left are closed then
 *
 * What an earlier start of the same bundle wrote stays in front. A container starts even where nothing can be written;
 * then its layer keeps what was made.
 */
void layer_save(const struct undo_log *undo_log, bool ends);

/* The overlayfs that an engine has mounted for a container: as it is seen, and the directories it is made of. */

/* A directory in which something is removed. */
struct layer_times {
	char *path; /* in the root filesystem, without links */
	int fd;
	struct stat before;
};

struct layer_overlay {
	struct rootfs merged; /* as it is seen */
	struct rootfs upper;  /* the container's own layer */
	struct strv lowers;   /* the image's, the newest first */
	struct layer_times *times;
	size_t times_count;
};

#define LAYER_OVERLAY_NONE ((struct layer_overlay){.merged = ROOTFS_CLOSED, .upper = ROOTFS_CLOSED})

/**
 * layer_overlay_open_running() - what the root file system of a process is made of
 *
 * The engine's mount is looked for in this namespace, by its file system. Of an engine in another one nothing is found.
 */
int layer_overlay_open_running(struct layer_overlay *overlay);
void layer_overlay_close(struct layer_overlay *overlay);

/** Remembers when a directory changed. @fd: of @path. Return: 0 or -ENOMEM. */
int layer_overlay_keep_times(struct layer_overlay *overlay, const char *path, int fd);

/**
 * layer_overlay_restore_times() - the directories changed when they had changed before
 *
 * One of which the layer has nothing of its own any more, changed when the image's did: engines compare the times.
 */
void layer_overlay_restore_times(const struct layer_overlay *overlay);
