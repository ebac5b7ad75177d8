/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/client/visible.h"

#include <stdlib.h>
#include <string.h>

enum { VISIBLE_UUID = 40, VISIBLE_UUID_BEGIN = 4, VISIBLE_NONE = START_GPUS };

/* "GPU-", and the bytes in five groups. */
static void visible_write_uuid(const uint8_t uuid[16], char ret[VISIBLE_UUID + 1])
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

/* Return: the one whose UUID begins like this; VISIBLE_NONE if none does, or several. */
static unsigned visible_find_uuid(const char *text, size_t length, const struct wire_device *devices, unsigned count)
{
	unsigned found = VISIBLE_NONE;
	char uuid[VISIBLE_UUID + 1];

	for (unsigned i = 0; i < count && length > VISIBLE_UUID_BEGIN; i++) {
		visible_write_uuid(devices[i].uuid, uuid);
		if (length > VISIBLE_UUID || strncmp(uuid, text, length) != 0)
			continue;
		if (found != VISIBLE_NONE)
			return VISIBLE_NONE;
		found = i;
	}
	return found;
}

/* Digits behind what may stand before a number; whatever follows does not matter, nor do bits beyond an int's. */
static unsigned visible_find_number(const char *text, unsigned count)
{
	char *end;
	const int number = (int)strtol(text, &end, 10);

	return end > text && number >= 0 && number < (int)count ? (unsigned)number : VISIBLE_NONE;
}

static bool visible_is_uuid(const char *text)
{
	return strncmp(text, "GPU-", 4) == 0;
}

static bool visible_has(const uint8_t *list, unsigned count, unsigned number)
{
	for (unsigned i = 0; i < count; i++)
		if (list[i] == number)
			return true;
	return false;
}

CUresult visible_choose(const char *text, const struct wire_device *devices, unsigned count, uint8_t ret[START_GPUS],
			unsigned *ret_count)
{
	const bool by_uuid = visible_is_uuid(text);

	*ret_count = 0;
	for (size_t length;; text += length + 1) {
		unsigned number = VISIBLE_NONE;

		length = strcspn(text, ",");
		if (visible_is_uuid(text) == by_uuid)
			number = by_uuid ? visible_find_uuid(text, length, devices, count)
					 : visible_find_number(text, count);
		if (number == VISIBLE_NONE)
			return *ret_count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
		if (visible_has(ret, *ret_count, number))
			return CUDA_ERROR_INVALID_DEVICE;
		ret[(*ret_count)++] = (uint8_t)number;
		if (text[length] == '\0')
			return CUDA_SUCCESS;
	}
}
