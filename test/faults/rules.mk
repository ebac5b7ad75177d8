# SPDX-License-Identifier: Apache-2.0
#
# check-faults: each system call of each program fails once in each way; some 8,000 runs. A part of it is in test/e2e/faults.bats.

check-faults: all test-programs
	set -e; for program in configure hook shim setup; do for fault in ENOMEM EPERM ENOSYS EIO EINTR kill killed kill-first interrupt; do \
		PATH=$(abspath $(O))/bin:$(abspath $(O))/test/tools:$$PATH CTR_GPU_BUILD=$(abspath $(O)) \
			test/e2e/sandbox wsl-nvidia -- test/faults/each-call $$program 1 1 $$fault | tee $(O)/faults; \
		test $$(wc -l <$(O)/faults) -eq 1; \
	done; done

.PHONY: check-faults
