/* SPDX-License-Identifier: Apache-2.0 */

#include "cdi/spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cdi/cdi.h"
#include "model/adapter.h"
#include "model/request.h"

/* Names are compared with each other. A machine with 16 GPUs, each in 7 parts with 2 names, has some 300. */
enum { DEVICES_MAX = 4096 };

const char *const cdi_versions[CDI_VERSIONS] = {"0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"};

static void cdi_spec_edits_clear(struct cdi_edits *edits)
{
	for (size_t i = 0; i < edits->node_count; i++)
		free(edits->nodes[i].path);
	free(edits->nodes);
	for (size_t i = 0; i < edits->mount_count; i++) {
		free(edits->mounts[i].source);
		free(edits->mounts[i].target);
	}
	free(edits->mounts);
	for (size_t i = 0; i < edits->hook_count; i++) {
		free(edits->hooks[i].stage);
		free(edits->hooks[i].path);
		strv_clear(&edits->hooks[i].environment);
	}
	free(edits->hooks);
	strv_clear(&edits->environment);
	strv_clear(&edits->groups);
}

void cdi_spec_clear(struct cdi_spec *spec)
{
	for (size_t i = 0; i < spec->device_count; i++) {
		free(spec->devices[i].name);
		cdi_spec_edits_clear(&spec->devices[i].edits);
	}
	free(spec->devices);
	cdi_spec_edits_clear(&spec->edits);
	free(spec->version);
	free(spec->kind);
	free(spec->needed_for);
	strv_clear(&spec->problems);
	*spec = (struct cdi_spec){0};
}

int cdi_spec_version(const char *text)
{
	for (int i = 0; i < CDI_VERSIONS; i++)
		if (streq(cdi_versions[i], text))
			return i;
	return -1;
}

static int cdi_spec_check_version(struct cdi_spec *spec)
{
	spec->declared = -1;
	if (!spec->version)
		return 0;
	/* A "v" in front is accepted by engines. */
	spec->declared = cdi_spec_version(spec->version + (spec->version[0] == 'v'));
	if (spec->declared < 0)
		return cdi_schema_problem(spec, "\"%.32s\" is not a version of CDI", spec->version);
	if (spec->declared < spec->needed)
		return cdi_schema_problem(spec, "it says version %s, and has %s, which needs %s: engines refuse it",
					  cdi_versions[spec->declared], spec->needed_for, cdi_versions[spec->needed]);
	return 0;
}

static int cdi_spec_check_devices(struct cdi_spec *spec)
{
	int r = 0;

	if (spec->device_count == 0)
		return cdi_schema_problem(spec, "it has no device");
	if (spec->device_count > DEVICES_MAX)
		return cdi_schema_problem(spec, "it has more than %d devices: ctr-gpu does not check so many",
					  DEVICES_MAX);
	for (size_t i = 0; i < spec->device_count && r == 0; i++) {
		const char *name = spec->devices[i].name;

		if (!name || !cdi_is_device_name(name))
			r = cdi_schema_problem(spec, "no device may be called \"%.64s\"", name ? name : "");
		else if (name[0] >= '0' && name[0] <= '9')
			r = cdi_schema_need(spec, CDI_0_5, "a device name that begins with a digit");
		for (size_t j = 0; name && j < i && r == 0; j++)
			if (spec->devices[j].name && streq(spec->devices[j].name, name))
				r = cdi_schema_problem(spec, "it has the device \"%.64s\" twice", name);
	}
	return r;
}

/* With the hook or without: every spec of ours says "void", and has no other hook. */
static bool cdi_spec_is_ours(const struct cdi_spec *spec)
{
	if (!strv_contains(&spec->edits.environment, CDI_DEVICES_VARIABLE "=void"))
		return false;
	for (size_t i = 0; i <= spec->device_count; i++) {
		const struct cdi_edits *edits = i > 0 ? &spec->devices[i - 1].edits : &spec->edits;

		for (size_t j = 0; j < edits->hook_count; j++)
			if (!edits->hooks[j].is_ours)
				return false;
	}
	return spec->device_count > 0;
}

static int cdi_spec_check_kind(struct cdi_spec *spec)
{
	if (!spec->kind)
		return 0;
	if (!cdi_is_kind(spec->kind))
		return cdi_schema_problem(spec, "\"%.128s\" is not a kind: a kind is VENDOR/CLASS", spec->kind);
	return strchr(strchr(spec->kind, '/'), '.') ? cdi_schema_need(spec, CDI_0_6, "a dot in its class") : 0;
}

bool cdi_spec_has_name(const char *name, bool *ret_is_yaml)
{
	const char *ending = strrchr(name, '.');

	*ret_is_yaml = ending && ending != name && streq(ending, ".yaml");
	return *ret_is_yaml || (ending && ending != name && streq(ending, ".json"));
}

/* Return: 0, without an object if the file has none. */
static int cdi_spec_read_object(struct cdi_spec *spec, const char *data, size_t size, json_t **ret)
{
	char reason[JSON_ERROR_TEXT_LENGTH], yaml_reason[JSON_ERROR_TEXT_LENGTH];
	_cleanup_json_ json_t *json = NULL;
	int r;

	/* Engines read every spec as YAML, of which JSON is a part, whatever its name ends in. */
	r = spec->is_yaml ? -EINVAL : json_parse(data, size, &json, reason);
	if (r == -EINVAL)
		r = cdi_yaml_parse(data, size, &json, yaml_reason);
	if (r == -EINVAL)
		return cdi_schema_problem(spec, "it is not %s: %s", spec->is_yaml ? "good YAML" : "JSON",
					  spec->is_yaml ? yaml_reason : reason);
	if (r < 0)
		return r;
	if (!json_is_object(json))
		return cdi_schema_problem(spec, "it is not %s", spec->is_yaml ? "a mapping in YAML" : "a JSON object");
	*ret = steal_ptr(json);
	return 0;
}

int cdi_spec_parse(const char *name, const char *data, size_t size, struct cdi_spec *ret)
{
	_cleanup_json_ json_t *json = NULL;
	int r = 0;

	if (!cdi_spec_has_name(name, &ret->is_yaml))
		r = cdi_schema_problem(ret, "its name ends neither in .json nor in .yaml, so engines do not read it");
	if (r == 0)
		r = cdi_spec_read_object(ret, data, size, &json);
	if (r < 0 || !json)
		return r;
	r = cdi_schema_read(json, ret);
	/* One finding is enough for a file that is not a spec. */
	if (r != 0 || (ret->problems.count > 0 && !ret->version && !ret->kind && ret->device_count == 0))
		return r;
	r = cdi_spec_check_kind(ret);
	if (r == 0)
		r = cdi_spec_check_devices(ret);
	if (r == 0)
		r = cdi_spec_check_version(ret);
	ret->is_ours = !ret->is_yaml && cdi_spec_is_ours(ret);
	return r;
}

/* Names of kinds, devices and files. */

enum { CLASS_MAX = 63 };

/* Of ASCII, whatever the locale. */
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* Whether it begins with one of @first, ends in a letter or digit, and has those and @others between. */
static bool cdi_name_is_made_of(const char *text, size_t length, const char *first, const char *others)
{
	for (size_t i = 0; i < length; i++)
		if (!text[i] ||
		    !(strchr(i == 0 ? first : LETTERS DIGITS, text[i]) || (i > 0 && strchr(others, text[i]))))
			return false;
	return length > 0 && strchr(LETTERS DIGITS, text[length - 1]);
}

bool cdi_is_kind(const char *text)
{
	size_t vendor = strcspn(text, "/");
	const char *class = text + vendor + 1;

	if (text[vendor] != '/')
		return false;
	return cdi_name_is_made_of(text, vendor, LETTERS, "_-.") && strlen(class) <= CLASS_MAX &&
	       cdi_name_is_made_of(class, strlen(class), LETTERS, "_-.");
}

bool cdi_is_device_name(const char *text)
{
	return cdi_name_is_made_of(text, strlen(text), LETTERS DIGITS, "_-.:");
}

/* A known vendor's GPUs by the vendor's short name, vCUDA's kinds by their own, everything else by the whole kind. */
int cdi_file_name(const char *kind, char **ret)
{
	size_t vendor = strcspn(kind, "/");

	if (streq(kind, DEVICE_NAME_VCUDA_KIND))
		return str_format(ret, CDI_FILE_PREFIX "vcuda.json");
	if (streq(kind, DEVICE_NAME_SLOT_KIND))
		return str_format(ret, CDI_FILE_PREFIX "vgpu.json");
	if (adapter_find_domain(kind, vendor) && streq(kind + vendor, "/gpu"))
		return str_format(ret, CDI_FILE_PREFIX "%.*s.json", (int)strcspn(kind, "."), kind);
	return str_format(ret, CDI_FILE_PREFIX "%.*s-%s.json", (int)vendor, kind, kind + vendor + 1);
}
