/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The EGL driver of a native host, as much as libglvnd's libEGL needs to open a display of it: one for a process that may
 * open a GPU. Layouts are those of <glvnd/libeglabi.h>, version 0.1.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "nodes.h"

#define EXPORT __attribute__((visibility("default")))

enum { EGL_TRUE = 1, EGL_SUCCESS = 0x3000, EGL_VENDOR = 0x3053, EGL_VERSION = 0x3054, EGL_EXTENSIONS = 0x3055 };
enum { EGL_CLIENT_APIS = 0x308d };

struct imports {
	void *(*get_platform_display)(unsigned platform, void *native, const intptr_t *attributes);
	unsigned (*supports_api)(unsigned api);
	const char *(*get_vendor_string)(int name);
	void *(*get_function)(const char *name);
	void *(*get_dispatch)(const char *name);
	void (*set_index)(const char *name, int index);
};

static char display;

static void *get_platform_display(unsigned platform, void *native, const intptr_t *attributes)
{
	int minors[NODES_MAX];

	(void)platform, (void)native, (void)attributes;
	return nodes_reachable(minors) > 0 ? &display : NULL;
}

static unsigned supports_api(unsigned api)
{
	(void)api;
	return EGL_TRUE;
}

static unsigned initialize(void *which, int *ret_major, int *ret_minor)
{
	(void)which;
	if (ret_major)
		*ret_major = 1;
	if (ret_minor)
		*ret_minor = 5;
	return EGL_TRUE;
}

static const char *query_string(void *which, int name)
{
	(void)which;
	switch (name) {
	case EGL_VENDOR:
		return "NVIDIA (simulated)";
	case EGL_VERSION:
		return "1.5 " DRIVER;
	case EGL_CLIENT_APIS:
		return "OpenGL_ES";
	case EGL_EXTENSIONS:
		return "";
	default:
		return NULL;
	}
}

static unsigned get_configs(void *which, void **configs, int room, int *ret_count)
{
	(void)which, (void)configs, (void)room;
	*ret_count = 0;
	return EGL_TRUE;
}

static int get_error(void)
{
	return EGL_SUCCESS;
}

/* What needs a context, and there is none. */
static unsigned nothing(void)
{
	return 0;
}

static unsigned done(void)
{
	return EGL_TRUE;
}

static int ends_in(const char *name, const char *end)
{
	return strlen(name) > strlen(end) && strcmp(name + strlen(name) - strlen(end), end) == 0;
}

static void *get_function(const char *name)
{
	static const struct {
		const char *name;
		void *function;
	} functions[] = {
		{"eglInitialize", initialize},  {"eglTerminate", done},     {"eglQueryString", query_string},
		{"eglGetConfigs", get_configs}, {"eglGetError", get_error}, {"eglReleaseThread", done},
		{"eglBindAPI", done},
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		if (strcmp(name, functions[i].name) == 0)
			return functions[i].function;
	if (strncmp(name, "egl", 3) != 0 || ends_in(name, "EXT") || ends_in(name, "KHR") || ends_in(name, "NV"))
		return NULL;
	return nothing;
}

static void *get_dispatch(const char *name)
{
	(void)name;
	return NULL;
}

static void set_index(const char *name, int index)
{
	(void)name, (void)index;
}

EXPORT unsigned __egl_Main(uint32_t version, const void *exports, void *vendor, struct imports *ret);

unsigned __egl_Main(uint32_t version, const void *exports, void *vendor, struct imports *ret)
{
	(void)exports, (void)vendor;
	if (version >> 16 != 0)
		return 0;
	ret->get_platform_display = get_platform_display;
	ret->supports_api = supports_api;
	ret->get_function = get_function;
	ret->get_dispatch = get_dispatch;
	ret->set_index = set_index;
	return EGL_TRUE;
}
