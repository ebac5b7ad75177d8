/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* As in glibc, with which libtirpc is compiled: xdr_u_quad_t(3) takes a uint64_t. */

#define u_quad_t u_quad_t_of_musl
#include_next <sys/types.h>
#undef u_quad_t

#include <stdint.h>

typedef uint64_t u_quad_t;
