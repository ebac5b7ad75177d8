/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of NVIDIA's driver are for. The tables say which capability a file goes with; they do not decide what
 * a driver is: a library of this driver version that they do not know goes with compute.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/request.h"

struct driver_library {
	char stem[32];         /* "libcuda": the file is libcuda.so.<driver version> */
	const char *soversion; /* "1": its SONAME is libcuda.so.1; NULL: its SONAME is the file's name */
	uint32_t capabilities; /* any of them */
	bool development;      /* programs also look for libcuda.so */
	bool own_version;      /* the file has a version of its own, and is found by SONAME */
	const char *meaning;
};

extern const struct driver_library driver_libraries[];
extern const size_t driver_library_count;

/** Return: the entry of a stem of @length characters; NULL if there is none. */
const struct driver_library *driver_library_find(const char *stem, size_t length);

struct driver_program {
	const char *name;
	uint32_t capabilities;
	const char *meaning;
};

extern const struct driver_program driver_programs[];
extern const size_t driver_program_count;

struct driver_config {
	const char *name; /* below /usr/share or /etc */
	uint32_t capabilities;
	const char *target; /* directory that it is looked for in, if that is only one */
	const char *meaning;
	const char *library; /* SONAME that it tells, if it tells no more; NULL: what is in it is not known */
};

extern const struct driver_config driver_configs[];
extern const size_t driver_config_count;

struct driver_socket {
	const char *path;
	bool directory;
	uint32_t capabilities;
	const char *meaning;
};

extern const struct driver_socket driver_sockets[];
extern const size_t driver_socket_count;
