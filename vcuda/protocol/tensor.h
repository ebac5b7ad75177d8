/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The words in which a client sends what a map of a tensor is made of. */

enum {
	TENSOR_RANKS = 5,
	TENSOR_TYPE = 0,
	TENSOR_RANK,
	TENSOR_ADDRESS,
	TENSOR_INTERLEAVE,
	TENSOR_SWIZZLE,
	TENSOR_PROMOTION,
	TENSOR_FILL,
	TENSOR_DIMENSIONS,
	TENSOR_STRIDES = TENSOR_DIMENSIONS + TENSOR_RANKS,
	TENSOR_ELEMENT = TENSOR_STRIDES + TENSOR_RANKS,
	/* Then those of the kind: the box; or channels, pixels and corners. */
	TENSOR_OWN = TENSOR_ELEMENT + TENSOR_RANKS,
};
