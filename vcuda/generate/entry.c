/* SPDX-License-Identifier: Apache-2.0 */

/* The table in which cuGetProcAddress() looks: in the order of names and, of one name, of falling versions. */

#include <stdlib.h>
#include <string.h>

#include "vcuda/generate/definition.h"
#include "vcuda/generate/outputs.h"

struct entry {
	char name[TEXT_MAX];
	int version;
	const struct function *function;
};

static int entry_compare(const void *a, const void *b)
{
	const struct entry *one = a, *other = b;
	const int r = strcmp(one->name, other->name);

	return r ? r : other->version - one->version;
}

void entry_print_all(void)
{
	static struct entry entries[FUNCTIONS_MAX];
	int count = 0;

	for (int i = 0; i < function_count; i++) {
		struct entry *entry = &entries[count];
		char *suffix;

		if (function_is(&functions[i], "needed"))
			continue;
		count++;
		entry->function = &functions[i];
		entry->version = functions[i].version;
		memcpy(entry->name, functions[i].name, TEXT_MAX);
		suffix = strrchr(entry->name, '_');
		if (suffix && suffix[1] == 'v' && strspn(suffix + 2, "0123456789") == strlen(suffix + 2))
			*suffix = '\0';
	}
	qsort(entries, (size_t)count, sizeof(*entries), entry_compare);
	printf("static const struct entry entries[] = {\n");
	for (int i = 0; i < count; i++) {
		const struct function *f = entries[i].function;

		printf("\t{\"%s\", %d, (void *)%s, ", entries[i].name, entries[i].version, f->name);
		if (function_has_twin(f))
			printf("(void *)%s_%s},\n", f->name, f->twins);
		else
			printf("NULL},\n");
	}
	printf("};\n");
}
