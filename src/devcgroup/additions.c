/* SPDX-License-Identifier: Apache-2.0 */

/* What was added to a container's device rules, as it is written down. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/str.h"
#include "devcgroup/devcgroup.h"

const char *additions_access(const char *letters)
{
	static const char *const all[] = {"r", "w", "m", "rw", "rm", "wm", "rwm"};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (streq(all[i], letters))
			return all[i];
	return NULL;
}

void additions_clear(struct devcgroup_additions *additions)
{
	for (size_t i = 0; i < additions->count; i++)
		free(additions->items[i].rules);
	free(additions->items);
	free(additions->drop_in);
	*additions = (struct devcgroup_additions){0};
}

int additions_add(struct devcgroup_additions *additions, const struct devcgroup_id *cgroup,
		  const struct devcgroup_rule *rules, size_t count)
{
	struct devcgroup_addition *longer = array_grow(additions->items, additions->count, sizeof(*longer));
	struct devcgroup_rule *copy = calloc(count, sizeof(*copy));

	if (longer)
		additions->items = longer;
	if (!longer || !copy) {
		free(copy);
		return -ENOMEM;
	}
	memcpy(copy, rules, count * sizeof(*copy));
	longer[additions->count++] = (struct devcgroup_addition){*cgroup, copy, count};
	return 0;
}

int additions_identify(int fd, struct devcgroup_id *ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*ret = (struct devcgroup_id){st.st_dev, st.st_ino};
	return 0;
}

int additions_add_in(struct devcgroup_additions *additions, int fd, const struct devcgroup_rule *rules, size_t count)
{
	struct devcgroup_id id = {0};
	int r = additions_identify(fd, &id);

	return r == 0 ? additions_add(additions, &id, rules, count) : r;
}

/* ---- in JSON ---- */

json_t *additions_print_id(const struct devcgroup_id *id)
{
	return json_pack("{s:I, s:I}", "device", (json_int_t)id->device, "inode", (json_int_t)id->inode);
}

struct devcgroup_id additions_read_id(const json_t *json)
{
	return (struct devcgroup_id){(dev_t)json_integer_value(json_object_get(json, "device")),
				     (ino_t)json_integer_value(json_object_get(json, "inode"))};
}

static json_t *additions_print_rules(const struct devcgroup_addition *addition)
{
	json_t *rules = json_array();

	for (size_t i = 0; rules && i < addition->count; i++) {
		const struct devcgroup_rule *rule = &addition->rules[i];
		const char type[2] = {rule->type, '\0'};

		if (json_array_append_new(rules,
					  json_pack("{s:s, s:i, s:i, s:s}", "type", type, "major", (int)rule->major,
						    "minor", (int)rule->minor, "access", rule->access)) < 0)
			return json_decref(rules), NULL;
	}
	return rules;
}

json_t *additions_print(const struct devcgroup_additions *additions)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < additions->count; i++)
		if (json_array_append_new(list, json_pack("{s:o, s:o}", "cgroup",
							  additions_print_id(&additions->items[i].cgroup), "rules",
							  additions_print_rules(&additions->items[i]))) < 0)
			return json_decref(list), NULL;
	return list;
}

static const char *additions_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* What root has written; a file that is damaged has fewer. Return: 0 or -ENOMEM. */
static int additions_read_one(const json_t *entry, struct devcgroup_additions *ret)
{
	const json_t *list = json_object_get(entry, "rules"), *item;
	_cleanup_free_ struct devcgroup_rule *rules = calloc(json_array_size(list) + 1, sizeof(*rules));
	const struct devcgroup_id cgroup = additions_read_id(json_object_get(entry, "cgroup"));
	size_t count = 0, i;

	if (!rules)
		return -ENOMEM;
	json_array_foreach (list, i, item) {
		rules[count] = (struct devcgroup_rule){
			.type = additions_text(item, "type")[0],
			.major = (unsigned)json_integer_value(json_object_get(item, "major")),
			.minor = (unsigned)json_integer_value(json_object_get(item, "minor")),
			.access = additions_access(additions_text(item, "access")),
		};
		count += rules[count].access && (rules[count].type == 'c' || rules[count].type == 'b');
	}
	return count > 0 ? additions_add(ret, &cgroup, rules, count) : 0;
}

int additions_read(const json_t *json, struct devcgroup_additions *ret)
{
	const char *drop_in = additions_text(json, "dropIn");
	const json_t *entry;
	size_t i;
	int r = 0;

	json_array_foreach (json_object_get(json, "additions"), i, entry) {
		r = additions_read_one(entry, ret);
		if (r < 0)
			return r;
	}
	if (*drop_in)
		ret->drop_in = strdup(drop_in);
	return *drop_in && !ret->drop_in ? -ENOMEM : 0;
}
