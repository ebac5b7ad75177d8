/* SPDX-License-Identifier: Apache-2.0 */

/* Names of kinds, devices and files. */

#include <string.h>

#include "cdi/cdi.h"
#include "model/adapter.h"
#include "model/request.h"

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

/* A known vendor's GPUs by the vendor's short name, vCUDA by its own, everything else by the whole kind. */
int cdi_file_name(const char *kind, char **ret)
{
	size_t vendor = strcspn(kind, "/");

	if (streq(kind, REQUEST_VCUDA_KIND))
		return str_format(ret, CDI_FILE_PREFIX "vcuda.json");
	if (adapter_is_domain(kind, vendor) && streq(kind + vendor, "/gpu"))
		return str_format(ret, CDI_FILE_PREFIX "%.*s.json", (int)strcspn(kind, "."), kind);
	return str_format(ret, CDI_FILE_PREFIX "%.*s-%s.json", (int)vendor, kind, kind + vendor + 1);
}
