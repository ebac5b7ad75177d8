/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include_next <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* linux/mman.h */
#endif
