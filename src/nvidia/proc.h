/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The text that the kernel and NVIDIA's kernel module write below /proc: bytes in, values out. Nothing is opened here.
 *
 * Facts: nv-procfs.c and nv-caps.c of NVIDIA's open kernel modules; drivers of other ages differ in blanks and in which
 * lines there are, so a value is found by its name alone.
 */

#include <stdbool.h>

/**
 * proc_driver_version() - the version in /proc/driver/nvidia/version
 * @ret: "580.159.04", owned by the caller
 *
 * Return: 0; -ENOENT if the text names none; -ENOMEM.
 */
int proc_driver_version(const char *text, char **ret);

/** Whether text is a driver version: two or three numbers with dots between. */
bool proc_is_version(const char *text);

/**
 * proc_field() - the value of a line `name:<blanks>value`
 *
 * Return: 0; -ENOENT if the line or its value is missing; -ENOMEM.
 */
int proc_field(const char *text, const char *name, char **ret);

/** The same for a number up to @max. Return: 0; -ENOENT; -EINVAL if it is not a number or too large; -ENOMEM. */
int proc_number(const char *text, const char *name, unsigned max, unsigned *ret);

/**
 * proc_device_major() - which major number a driver has, as /proc/devices says
 *
 * Block devices are not looked at. Return: 0; -ENOENT.
 */
int proc_device_major(const char *devices, const char *name, unsigned *ret);

/**
 * proc_set_field() - the text with the value of one line replaced
 *
 * Return: 0; -ENOENT if the line is missing; -ENOMEM.
 */
int proc_set_field(const char *text, const char *name, const char *value, char **ret);
