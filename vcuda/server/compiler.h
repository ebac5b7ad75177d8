/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The thread that has all linkers. NVIDIA's compiler keeps memory for the thread that made a linker: one that another
 * thread completes or ends has the heap corrupted (seen with 580, natively, too), and which of its threads does that is
 * the client's to say. On one thread every order of calls is survived, also after a call that failed.
 */

#include "vcuda/server/server.h"

/**
 * compiler_do() - have the thread do something, and wait
 * @work:    called once, with @user
 * @context: the driver's, that is current meanwhile
 *
 * Return: what @work returned; CUDA_ERROR_OUT_OF_MEMORY if there is no such thread.
 */
CUresult compiler_do(CUresult (*work)(void *user), void *user, uint64_t context);
