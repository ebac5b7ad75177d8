/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the manager runs ctr-gpu-vcuda-checkpoint, as root:
 * `ctr-gpu-vcuda-checkpoint suspend|resume|move LIBRARY UID FROM TO GPU,GPU… PID:SLOT…`.
 * LIBRARY is the driver's, an absolute path or what the loader finds; UID is the user of all these processes. FROM and
 * TO are arrangements of the container's GPUs (start_place()), hexadecimal: where these processes are as far as the
 * manager knows, and where they are to be, which "resume" and "move" see to. The GPUs are these GPUs' UUIDs, in the
 * order of their numbers.
 * Descriptor 3 is the page of the container's orders, where it writes down what is away, and where. It holds a lock
 * (flock(2)) on it as long as it works, so that one which is left of an earlier manager is waited for. On descriptor 1
 * it writes a struct checkpoint_failure unless all is done. Its status is an enum checkpoint_end.
 */

#include <stdint.h>

enum { CHECKPOINT_LOCK = 3 };

enum checkpoint_end {
	CHECKPOINT_DONE = 0,
	CHECKPOINT_USAGE = 2,
	CHECKPOINT_UNDONE = 3, /* the processes are as they were */
	CHECKPOINT_NO_ROOM,    /* the same: the GPU has not enough memory for them now */
	CHECKPOINT_LOST,       /* not all of them are as they were, nor as they should be */
	CHECKPOINT_AWAY,       /* something failed, and there is no room any more to undo it: resume them later */
	/*
	 * The processes were not looked at: what an earlier program left is as it was. The same status where this one
	 * could not be executed, which a manager knows that has been running since before an update.
	 */
	CHECKPOINT_NOT_BEGUN = 127,
};

/* What failed first. */
enum checkpoint_step {
	CHECKPOINT_RIGHTS,
	CHECKPOINT_LIBRARY, /* it is not to be loaded, or has no such functions */
	CHECKPOINT_MEASURE, /* NVML does not say how much of GPUs is free */
	CHECKPOINT_GET_STATE,
	CHECKPOINT_LOCK_PROCESS,
	CHECKPOINT_SAVE,
	CHECKPOINT_RESTORE,
	CHECKPOINT_UNLOCK,
	CHECKPOINT_IS_OTHERWISE, /* a process, whose state is the number */
	CHECKPOINT_STEPS,
};

struct checkpoint_failure {
	uint32_t step;
	int32_t number; /* a CUresult, or an errno of the first two */
};
