/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Images of code, as far as one can tell that the driver finds no more in them than there is. */

#include <stdbool.h>
#include <stdint.h>

/**
 * image_is_whole() - whether all that an image says of places and lengths in it is within it
 *
 * The driver takes images without their length. Behind @bytes there has to be a NUL.
 */
bool image_is_whole(const uint8_t *image, uint64_t bytes);

/**
 * image_count_globals() - how much memory of the device the global arrays of a whole image take
 *
 * Of a fat binary, the most of its parts. What is compressed is not read.
 */
uint64_t image_count_globals(const uint8_t *image, uint64_t bytes);
