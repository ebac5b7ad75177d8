/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/client/client.h"

#include <string.h>

/* Hexadecimal digits up to @end, of which there is one at least. */
static bool pci_bus_id_read_hex(const char **text, char end, unsigned *ret)
{
	static const char digits[] = "0123456789abcdef";
	const char *begin = *text, *found;

	for (*ret = 0; **text && *text - begin < 8; (*text)++) {
		found = strchr(digits, **text >= 'A' && **text <= 'F' ? **text + 'a' - 'A' : **text);
		if (!found)
			break;
		*ret = *ret << 4 | (unsigned)(found - digits);
	}
	if (*text == begin || **text != end)
		return false;
	*text += end != '\0';
	return true;
}

bool pci_bus_id_read(const char *text, struct pci_bus_id *ret)
{
	const char *colon = strchr(text, ':');

	*ret = (struct pci_bus_id){0};
	if (colon && strchr(colon + 1, ':') && !pci_bus_id_read_hex(&text, ':', &ret->domain))
		return false;
	if (!pci_bus_id_read_hex(&text, ':', &ret->bus))
		return false;
	if (strchr(text, '.'))
		return pci_bus_id_read_hex(&text, '.', &ret->device) &&
		       pci_bus_id_read_hex(&text, '\0', &ret->function);
	return pci_bus_id_read_hex(&text, '\0', &ret->device);
}
