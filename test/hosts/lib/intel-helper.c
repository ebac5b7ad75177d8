/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libwsl_compute_helper.so, which Intel's driver store has for Intel's Level Zero and OpenCL drivers: these do not know the
 * layout of what the Windows driver says, and have it put into tokens (intel/compute-runtime, shared/wsl_compute_helper).
 * This one tells of a Tiger Lake with 96 execution units, whatever the driver said.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { ADAPTER_INFO = 1, VARIABLE_LENGTH = 1 << 4 };

/* A token is its id, the number of words behind it, and flags. */
#define TOKEN(id, words, flags) ((uint32_t)(id) | (uint32_t)(words) << 16 | (uint32_t)(flags) << 24)
#define WORD(id, value) TOKEN(id, 1, 0), (value)
#define LONG(id, value) TOKEN(id, 2, 0), (uint32_t)(value), (uint32_t)((uint64_t)(value) >> 32)
/* A member that is a structure, of so many words. */
#define MEMBER(id, words) TOKEN(id, 0, VARIABLE_LENGTH), 0, 4 * (words), (words)

static const uint32_t adapter_info[] = {
	MEMBER(3551, 12),                                         /* platform */
	WORD(3475, 33),                                           /* product family: Tiger Lake */
	WORD(3477, 18),         WORD(3478, 18),                   /* display and render core: generation 12 */
	WORD(3479, 2),                                            /* mobile */
	WORD(3480, 0x9a49),     WORD(3481, 1),  MEMBER(3585, 25), /* system information */
	WORD(299, 96),          WORD(300, 672), WORD(301, 1),
	WORD(302, 12),          WORD(303, 6),   LONG(304, 3840),
	WORD(308, 8),           WORD(319, 16),  WORD(320, 1),
	WORD(321, 12),          WORD(322, 6),   WORD(336, 7),
	MEMBER(3588, 10), /* partition of the address space: a part of it from 0 on */
	MEMBER(3534, 6),        LONG(3532, 0),  LONG(3533, 0xffffffffffff),
	WORD(3559, 1300), /* MHz */
	LONG(3578, 8ull << 30),
};

EXPORT size_t getSizeRequiredForStruct(uint32_t structure);
size_t getSizeRequiredForStruct(uint32_t structure)
{
	(void)structure;
	return 1024;
}

EXPORT size_t getSizeRequiredForTokens(uint32_t structure);
size_t getSizeRequiredForTokens(uint32_t structure)
{
	return structure == ADAPTER_INFO ? sizeof(adapter_info) : 0;
}

EXPORT bool structToTokens(uint32_t structure, void *ret, size_t size, const void *source, size_t source_size);
bool structToTokens(uint32_t structure, void *ret, size_t size, const void *source, size_t source_size)
{
	(void)source;
	(void)source_size;
	if (structure != ADAPTER_INFO || size < sizeof(adapter_info))
		return false;
	memcpy(ret, adapter_info, sizeof(adapter_info));
	return true;
}

EXPORT bool tokensToStruct(uint32_t structure, void *ret, size_t size, const void *begin, const void *end);
bool tokensToStruct(uint32_t structure, void *ret, size_t size, const void *begin, const void *end)
{
	(void)structure;
	(void)begin;
	(void)end;
	memset(ret, 0, size);
	return true;
}

EXPORT void destroyStructRepresentation(uint32_t structure, void *source, size_t size);
void destroyStructRepresentation(uint32_t structure, void *source, size_t size)
{
	(void)structure;
	(void)source;
	(void)size;
}

EXPORT uint64_t getVersion(void);
uint64_t getVersion(void)
{
	return 3;
}
