/* SPDX-License-Identifier: Apache-2.0 */

/* Included before all else of the client that is fuzzed: where it would sleep, the server is asked, which is the fuzzer. */

#ifndef VCUDA_BELL_H
#define VCUDA_BELL_H

#include <stdatomic.h>

void fuzz_answer(void);

#define BELL_LOAD(word) atomic_load_explicit(word, memory_order_acquire)
#define BELL_STORE(word, to) atomic_store_explicit(word, to, memory_order_release)
#define BELL_FENCE() ((void)0)
#define BELL_SLEEP(word, old, time) ((void)(word), (void)(time), fuzz_answer())
#define BELL_WAKE(word) ((void)(word))

#endif
