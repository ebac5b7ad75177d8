/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/client/device_name.h"

#include <stdlib.h>
#include <string.h>

/* ---- on the bus ---- */

/* Hexadecimal digits up to @end, of which there is one at least. */
static bool device_name_read_hex(const char **text, char end, unsigned *ret)
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

bool device_name_read_bus(const char *text, struct pci_bus_id *ret)
{
	const char *colon = strchr(text, ':');

	*ret = (struct pci_bus_id){0};
	if (colon && strchr(colon + 1, ':') && !device_name_read_hex(&text, ':', &ret->domain))
		return false;
	if (!device_name_read_hex(&text, ':', &ret->bus))
		return false;
	if (strchr(text, '.'))
		return device_name_read_hex(&text, '.', &ret->device) &&
		       device_name_read_hex(&text, '\0', &ret->function);
	return device_name_read_hex(&text, '\0', &ret->device);
}

/* ---- in CUDA_VISIBLE_DEVICES ---- */

enum { NAME_UUID = 40, NAME_UUID_BEGIN = 4, NAME_NONE = START_GPUS };

/* "GPU-", and the bytes in five groups. */
static void device_name_write_uuid(const uint8_t uuid[16], char ret[NAME_UUID + 1])
{
	static const char digits[] = "0123456789abcdef";
	char *at = ret;

	memcpy(at, "GPU-", 4);
	at += 4;
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*at++ = '-';
		*at++ = digits[uuid[i] >> 4];
		*at++ = digits[uuid[i] & 15];
	}
	*at = '\0';
}

/* Return: the one whose UUID begins like this; NAME_NONE if none does, or several. */
static unsigned device_name_find_uuid(const char *text, size_t length, const struct wire_device *devices,
				      unsigned count)
{
	unsigned found = NAME_NONE;
	char uuid[NAME_UUID + 1];

	for (unsigned i = 0; i < count && length > NAME_UUID_BEGIN; i++) {
		device_name_write_uuid(devices[i].uuid, uuid);
		if (length > NAME_UUID || strncmp(uuid, text, length) != 0)
			continue;
		if (found != NAME_NONE)
			return NAME_NONE;
		found = i;
	}
	return found;
}

/* Digits behind what may stand before a number; whatever follows does not matter, nor do bits beyond an int's. */
static unsigned device_name_find_number(const char *text, unsigned count)
{
	char *end;
	const int number = (int)strtol(text, &end, 10);

	return end > text && number >= 0 && number < (int)count ? (unsigned)number : NAME_NONE;
}

static bool device_name_is_uuid(const char *text)
{
	return strncmp(text, "GPU-", 4) == 0;
}

static bool device_name_has(const uint8_t *list, unsigned count, unsigned number)
{
	for (unsigned i = 0; i < count; i++)
		if (list[i] == number)
			return true;
	return false;
}

CUresult device_name_choose(const char *text, const struct wire_device *devices, unsigned count,
			    uint8_t ret[START_GPUS], unsigned *ret_count)
{
	const bool by_uuid = device_name_is_uuid(text);

	*ret_count = 0;
	for (size_t length;; text += length + 1) {
		unsigned number = NAME_NONE;

		length = strcspn(text, ",");
		if (device_name_is_uuid(text) == by_uuid)
			number = by_uuid ? device_name_find_uuid(text, length, devices, count)
					 : device_name_find_number(text, count);
		if (number == NAME_NONE)
			return *ret_count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
		if (device_name_has(ret, *ret_count, number))
			return CUDA_ERROR_INVALID_DEVICE;
		ret[(*ret_count)++] = (uint8_t)number;
		if (text[length] == '\0')
			return CUDA_SUCCESS;
	}
}
