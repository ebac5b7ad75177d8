/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A device program as somebody attached it: it can be followed to an answer or not, and once it is extended by a rule, it
 * grants that rule and answers everything else as before.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "devcgroup/bpf_device.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct devcgroup_rule rule = {'c', 10, 183, "rw", "/dev/hwrng"};

static const struct bpf_cgroup_dev_ctx others[] = {
	{BPF_DEVCG_ACC_READ << 16 | BPF_DEVCG_DEV_CHAR, 10, 182},
	{BPF_DEVCG_ACC_READ << 16 | BPF_DEVCG_DEV_CHAR, 11, 183},
	{BPF_DEVCG_ACC_READ << 16 | BPF_DEVCG_DEV_BLOCK, 10, 183},
	{BPF_DEVCG_ACC_MKNOD << 16 | BPF_DEVCG_DEV_CHAR, 10, 183},
	{(BPF_DEVCG_ACC_MKNOD | BPF_DEVCG_ACC_WRITE) << 16 | BPF_DEVCG_DEV_CHAR, 10, 183},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_bpf_program_ struct bpf_program program = {0}, extended = {0};

	program.count = size / sizeof(*program.insns);
	program.insns = calloc(program.count + 1, sizeof(*program.insns));
	if (!program.insns)
		return 0;
	memcpy(program.insns, data, program.count * sizeof(*program.insns));
	if (bpf_program_extend(&program, &rule, 1, &extended) < 0)
		return 0;
	if (bpf_program_allows(&extended, &rule) != BPF_ALLOWS)
		abort();
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		enum bpf_decision before = bpf_program_evaluate(&program, &others[i]);

		/* One that reads registers before it writes them, which the verifier refuses, may know more afterwards. */
		if (before != BPF_UNKNOWN && bpf_program_evaluate(&extended, &others[i]) != before)
			abort();
	}
	return 0;
}
