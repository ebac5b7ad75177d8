/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a text in PTX declares. */

#include <stdint.h>

/** Return: bytes of its global variables, as far as their lengths are numbers and products of such. */
uint64_t ptx_parse_count_globals(const uint8_t *text, uint64_t bytes);
