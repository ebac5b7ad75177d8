/* SPDX-License-Identifier: Apache-2.0 */

#include "cdi/spec.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cdi/cdi.h"
#include "model/adapter.h"
#include "model/request.h"

/* ---- schema ---- */

/*
 * The schema of CDI 1.1.0. Engines decode strictly: a field that their version does not know makes them refuse the
 * whole file (sigs.k8s.io/yaml UnmarshalStrict in pkg/cdi/spec.go).
 */

enum { PROBLEMS_MAX = 32 };

struct field {
	const char *name;
	json_type type; /* JSON_TRUE: either truth value */
	enum cdi_version version;
	const char *feature; /* why that version */
	bool required;
};

struct schema_reader {
	struct cdi_spec *spec;
	char where[160]; /* "devices[3].containerEdits.hooks[0]" */
};

static const struct field top_fields[] = {
	{"cdiVersion", JSON_STRING, CDI_0_3, NULL, true},
	{"kind", JSON_STRING, CDI_0_3, NULL, true},
	{"annotations", JSON_OBJECT, CDI_0_6, "annotations", false},
	{"devices", JSON_ARRAY, CDI_0_3, NULL, true},
	{"containerEdits", JSON_OBJECT, CDI_0_3, NULL, false},
	{0},
};

static const struct field device_fields[] = {
	{"name", JSON_STRING, CDI_0_3, NULL, true},
	{"annotations", JSON_OBJECT, CDI_0_6, "annotations", false},
	{"containerEdits", JSON_OBJECT, CDI_0_3, NULL, true},
	{0},
};

static const struct field edits_fields[] = {
	{"env", JSON_ARRAY, CDI_0_3, NULL, false},
	{"deviceNodes", JSON_ARRAY, CDI_0_3, NULL, false},
	{"hooks", JSON_ARRAY, CDI_0_3, NULL, false},
	{"mounts", JSON_ARRAY, CDI_0_3, NULL, false},
	{"intelRdt", JSON_OBJECT, CDI_0_7, "intelRdt", false},
	{"additionalGids", JSON_ARRAY, CDI_0_7, "additionalGids", false},
	{"netDevices", JSON_ARRAY, CDI_1_1, "netDevices", false},
	{0},
};

static const struct field node_fields[] = {
	{"path", JSON_STRING, CDI_0_3, NULL, true},
	{"hostPath", JSON_STRING, CDI_0_5, "hostPath of a device node", false},
	{"type", JSON_STRING, CDI_0_3, NULL, false},
	{"major", JSON_INTEGER, CDI_0_3, NULL, false},
	{"minor", JSON_INTEGER, CDI_0_3, NULL, false},
	{"fileMode", JSON_INTEGER, CDI_0_3, NULL, false},
	{"permissions", JSON_STRING, CDI_0_3, NULL, false},
	{"uid", JSON_INTEGER, CDI_0_3, NULL, false},
	{"gid", JSON_INTEGER, CDI_0_3, NULL, false},
	{0},
};

static const struct field mount_fields[] = {
	{"hostPath", JSON_STRING, CDI_0_3, NULL, true},
	{"containerPath", JSON_STRING, CDI_0_3, NULL, true},
	{"options", JSON_ARRAY, CDI_0_3, NULL, false},
	{"type", JSON_STRING, CDI_0_4, "type of a mount", false},
	{0},
};

static const struct field hook_fields[] = {
	{"hookName", JSON_STRING, CDI_0_3, NULL, true},  {"path", JSON_STRING, CDI_0_3, NULL, true},
	{"args", JSON_ARRAY, CDI_0_3, NULL, false},      {"env", JSON_ARRAY, CDI_0_3, NULL, false},
	{"timeout", JSON_INTEGER, CDI_0_3, NULL, false}, {0},
};

static const struct field rdt_fields[] = {
	{"closID", JSON_STRING, CDI_0_7, "intelRdt", false},
	{"l3CacheSchema", JSON_STRING, CDI_0_7, "intelRdt", false},
	{"memBwSchema", JSON_STRING, CDI_0_7, "intelRdt", false},
	{"enableCMT", JSON_TRUE, CDI_0_7, "intelRdt", false},
	{"enableMBM", JSON_TRUE, CDI_0_7, "intelRdt", false},
	{"schemata", JSON_ARRAY, CDI_1_1, "intelRdt.schemata", false},
	{"enableMonitoring", JSON_TRUE, CDI_1_1, "intelRdt.enableMonitoring", false},
	{0},
};

static const struct field net_fields[] = {
	{"hostInterfaceName", JSON_STRING, CDI_1_1, "netDevices", true},
	{"name", JSON_STRING, CDI_1_1, "netDevices", true},
	{0},
};

/* Engines take null for a missing value. */
static json_t *cdi_schema_get(const json_t *json, const char *name)
{
	json_t *value = json_object_get(json, name);

	return json_is_null(value) ? NULL : value;
}

/*
 * Where text belongs, engines take a number or a truth value of YAML for text. @number: room for it.
 * Return: the text; NULL for any other value.
 */
static const char *cdi_schema_text(const struct schema_reader *reader, const json_t *value, char number[24])
{
	if (reader->spec->is_yaml && json_is_boolean(value))
		return json_is_true(value) ? "true" : "false";
	if (!reader->spec->is_yaml || !json_is_integer(value))
		return json_string_value(value);
	(void)snprintf(number, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	return number;
}

int cdi_schema_problem(struct cdi_spec *spec, const char *format, ...)
{
	struct err text = {0};
	va_list arguments;

	if (spec->problems.count >= PROBLEMS_MAX)
		return 0;
	va_start(arguments, format);
	(void)vsnprintf(text.text, sizeof(text.text), format, arguments);
	va_end(arguments);
	return strv_add(&spec->problems, text.text);
}

/* The spec needs at least this version. Return: 0 or -ENOMEM. */
static int cdi_schema_need(struct cdi_spec *spec, enum cdi_version version, const char *feature)
{
	if ((int)version <= spec->needed)
		return 0;
	free(spec->needed_for);
	spec->needed = (int)version;
	spec->needed_for = strdup(feature);
	return spec->needed_for ? 0 : -ENOMEM;
}

static int cdi_schema_check_field(struct schema_reader *reader, const struct field *field, const char *name,
				  const json_t *value)
{
	char number[24];

	while (field->name && !streq(field->name, name))
		field++;
	if (!field->name)
		return cdi_schema_problem(
			reader->spec,
			"%s has the field \"%.64s\". CDI does not know it, so engines refuse the whole file",
			reader->where, name);
	if (json_is_null(value))
		return 0;
	if (field->type == JSON_STRING ? !cdi_schema_text(reader, value, number)
	    : field->type == JSON_TRUE ? !json_is_boolean(value)
				       : json_typeof(value) != field->type)
		return cdi_schema_problem(reader->spec, "\"%s\" of %s is of the wrong type", name, reader->where);
	return field->feature ? cdi_schema_need(reader->spec, field->version, field->feature) : 0;
}

/* Return: 0 with a problem for each fault; -ENOMEM. */
static int cdi_schema_check_object(struct schema_reader *reader, const json_t *json, const struct field *fields)
{
	const char *name;
	json_t *value;
	int r = 0;

	if (!json_is_object(json))
		return cdi_schema_problem(reader->spec, "%s is not an object", reader->where);
	json_object_foreach ((json_t *)json, name, value)
		if (r == 0)
			r = cdi_schema_check_field(reader, fields, name, value);
	for (; fields->name && r == 0; fields++)
		if (fields->required && !cdi_schema_get(json, fields->name))
			r = cdi_schema_problem(reader->spec, "%s has no \"%s\"", reader->where, fields->name);
	return r;
}

static int cdi_schema_take_string(const struct schema_reader *reader, const json_t *json, const char *name, char **ret)
{
	char number[24];
	const char *text = cdi_schema_text(reader, cdi_schema_get(json, name), number);

	if (!text)
		return 0;
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}

static int cdi_schema_take_strings(struct schema_reader *reader, const json_t *json, const char *name, struct strv *ret)
{
	const json_t *item;
	char number[24];
	size_t i;
	int r = 0;

	json_array_foreach (cdi_schema_get(json, name), i, item) {
		const char *text = cdi_schema_text(reader, item, number);

		if (r == 0)
			r = text ? strv_add(ret, text)
				 : cdi_schema_problem(reader->spec, "\"%s\" of %s has an item that is not a string",
						      name, reader->where);
	}
	return r;
}

/* Engines decode 32 bits without a sign. */
static int cdi_schema_take_groups(struct schema_reader *reader, const json_t *json, struct strv *ret)
{
	const json_t *item;
	size_t i;
	int r = 0;

	json_array_foreach (cdi_schema_get(json, "additionalGids"), i, item) {
		json_int_t group = json_integer_value(item);

		if (r == 0)
			r = json_is_integer(item) && group >= 0 && group <= UINT32_MAX
				    ? strv_format(ret, "%" JSON_INTEGER_FORMAT, group)
				    : cdi_schema_problem(
					      reader->spec,
					      "\"additionalGids\" of %s has an item that is no group's number",
					      reader->where);
	}
	return r;
}

static int cdi_schema_check_environment(struct schema_reader *reader, const struct strv *environment)
{
	int r = 0;

	for (size_t i = 0; i < environment->count && r == 0; i++)
		if (!strchr(environment->items[i], '=') || environment->items[i][0] == '=')
			r = cdi_schema_problem(reader->spec, "\"%.64s\" in %s is not NAME=VALUE", environment->items[i],
					       reader->where);
	return r;
}

/* Each adds an empty one. Return: it; NULL without memory. */
#define DEFINE_ADD(function, owner, type, list)                                                     \
	static struct type *function(struct owner *owner)                                           \
	{                                                                                           \
		struct type *list = array_grow(owner->list##s, owner->list##_count, sizeof(*list)); \
                                                                                                    \
		if (!list)                                                                          \
			return NULL;                                                                \
		owner->list##s = list;                                                              \
		list += owner->list##_count++;                                                      \
		*list = (struct type){0};                                                           \
		return list;                                                                        \
	}

DEFINE_ADD(add_device, cdi_spec, cdi_device, device)
DEFINE_ADD(add_node, cdi_edits, cdi_node, node)
DEFINE_ADD(add_mount, cdi_edits, cdi_mount, mount)
DEFINE_ADD(add_hook, cdi_edits, cdi_hook, hook)

static int cdi_schema_read_node(struct schema_reader *reader, const json_t *json, struct cdi_edits *edits)
{
	struct cdi_node *node = add_node(edits);
	int r;

	r = node ? cdi_schema_check_object(reader, json, node_fields) : -ENOMEM;
	if (r == 0)
		r = cdi_schema_take_string(reader, json,
					   json_string_length(cdi_schema_get(json, "hostPath")) ? "hostPath" : "path",
					   &node->path);
	if (r != 0)
		return r;
	/* As fillMissingInfo() of pkg/cdi/container-edits_unix.go counts them. */
	node->major = json_integer_value(cdi_schema_get(json, "major"));
	node->minor = json_integer_value(cdi_schema_get(json, "minor"));
	node->numbered = node->major != 0;
	node->is_complete = node->numbered && json_string_length(cdi_schema_get(json, "type")) > 0;
	return 0;
}

static int cdi_schema_read_mount(struct schema_reader *reader, const json_t *json, struct cdi_edits *edits)
{
	struct cdi_mount *mount = add_mount(edits);
	struct strv options = {0};
	int r;

	r = mount ? cdi_schema_check_object(reader, json, mount_fields) : -ENOMEM;
	if (r == 0)
		r = cdi_schema_take_string(reader, json, "hostPath", &mount->source);
	if (r == 0)
		r = cdi_schema_take_string(reader, json, "containerPath", &mount->target);
	if (r == 0)
		r = cdi_schema_take_strings(reader, json, "options", &options);
	strv_clear(&options);
	return r;
}

static int cdi_schema_read_hook(struct schema_reader *reader, const json_t *json, struct cdi_edits *edits)
{
	static const char *const stages[] = {"prestart",       "createRuntime", "createContainer",
					     "startContainer", "poststart",     "poststop"};
	struct cdi_hook *hook = add_hook(edits);
	struct strv arguments = {0};
	size_t stage = 0;
	int r;

	r = hook ? cdi_schema_check_object(reader, json, hook_fields) : -ENOMEM;
	if (r == 0)
		r = cdi_schema_take_string(reader, json, "hookName", &hook->stage);
	if (r == 0)
		r = cdi_schema_take_string(reader, json, "path", &hook->path);
	if (r == 0)
		r = cdi_schema_take_strings(reader, json, "args", &arguments);
	if (r == 0)
		r = cdi_schema_take_strings(reader, json, "env", &hook->environment);
	if (r == 0)
		r = cdi_schema_check_environment(reader, &hook->environment);
	while (stage < ARRAY_SIZE(stages) && hook && hook->stage && !streq(stages[stage], hook->stage))
		stage++;
	if (r == 0 && stage == ARRAY_SIZE(stages))
		r = cdi_schema_problem(reader->spec, "%s is for the unknown stage \"%.32s\"", reader->where,
				       hook->stage);
	if (r == 0) {
		hook->has_environment = hook->environment.count > 0;
		hook->has_timeout = json_integer_value(cdi_schema_get(json, "timeout")) > 0;
		hook->is_ours = arguments.count > 0 && streq(arguments.items[0], CDI_HOOK_NAME);
	}
	strv_clear(&arguments);
	return r;
}

static int cdi_schema_read_net_device(struct schema_reader *reader, const json_t *json, struct cdi_edits *edits)
{
	(void)edits;
	return cdi_schema_check_object(reader, json, net_fields);
}

static int cdi_schema_read_list(struct schema_reader *reader, const json_t *json, const char *name,
				int (*read)(struct schema_reader *reader, const json_t *json, struct cdi_edits *edits),
				struct cdi_edits *edits)
{
	size_t length = strlen(reader->where), i;
	const json_t *item;
	int r = 0;

	json_array_foreach (cdi_schema_get(json, name), i, item) {
		if (r != 0)
			break;
		(void)snprintf(reader->where + length, sizeof(reader->where) - length, ".%s[%zu]", name, i);
		r = read(reader, item, edits);
		reader->where[length] = '\0';
	}
	return r;
}

static int cdi_schema_read_edits(struct schema_reader *reader, const json_t *json, struct cdi_edits *edits)
{
	const json_t *rdt = cdi_schema_get(json, "intelRdt");
	int r;

	r = cdi_schema_check_object(reader, json, edits_fields);
	if (r == 0)
		r = cdi_schema_take_strings(reader, json, "env", &edits->environment);
	if (r == 0)
		r = cdi_schema_check_environment(reader, &edits->environment);
	if (r == 0)
		r = cdi_schema_take_groups(reader, json, &edits->groups);
	if (r == 0)
		r = cdi_schema_read_list(reader, json, "deviceNodes", cdi_schema_read_node, edits);
	if (r == 0)
		r = cdi_schema_read_list(reader, json, "mounts", cdi_schema_read_mount, edits);
	if (r == 0)
		r = cdi_schema_read_list(reader, json, "hooks", cdi_schema_read_hook, edits);
	if (r == 0)
		r = cdi_schema_read_list(reader, json, "netDevices", cdi_schema_read_net_device, edits);
	return r == 0 && rdt ? cdi_schema_check_object(reader, rdt, rdt_fields) : r;
}

static int cdi_schema_read_device(struct schema_reader *reader, const json_t *json, size_t number)
{
	struct cdi_device *device = add_device(reader->spec);
	const json_t *edits = cdi_schema_get(json, "containerEdits");
	int r;

	if (!device)
		return -ENOMEM;
	(void)snprintf(reader->where, sizeof(reader->where), "devices[%zu]", number);
	r = cdi_schema_check_object(reader, json, device_fields);
	if (r == 0)
		r = cdi_schema_take_string(reader, json, "name", &device->name);
	if (r != 0 || !json_is_object(edits))
		return r;
	if (json_object_size(edits) == 0)
		return cdi_schema_problem(reader->spec, "devices[%zu] changes nothing: engines refuse it", number);
	(void)snprintf(reader->where, sizeof(reader->where), "devices[%zu].containerEdits", number);
	return cdi_schema_read_edits(reader, edits, &device->edits);
}

/* Takes out of a file what it says. Return: 0 with a problem for each fault; -ENOMEM. */
static int cdi_schema_read(const json_t *json, struct cdi_spec *spec)
{
	struct schema_reader top = {.spec = spec}, *reader = &top;
	const json_t *edits = cdi_schema_get(json, "containerEdits"), *device;
	size_t i;
	int r;

	(void)snprintf(reader->where, sizeof(reader->where), "the spec");
	r = cdi_schema_check_object(reader, json, top_fields);
	if (r == 0)
		r = cdi_schema_take_string(reader, json, "cdiVersion", &spec->version);
	if (r == 0)
		r = cdi_schema_take_string(reader, json, "kind", &spec->kind);
	(void)snprintf(reader->where, sizeof(reader->where), "containerEdits");
	if (r == 0 && json_is_object(edits))
		r = cdi_schema_read_edits(reader, edits, &spec->edits);
	json_array_foreach (cdi_schema_get(json, "devices"), i, device)
		if (r == 0)
			r = cdi_schema_read_device(reader, device, i);
	return r;
}

/* ---- spec ---- */

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
