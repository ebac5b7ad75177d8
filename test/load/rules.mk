# SPDX-License-Identifier: Apache-2.0
#
# check-load: 1,000 starts of a container, 64 at once, of which half of the hooks are killed. A part of it is in test/e2e/faults.bats.

check-load: all test-programs
	PATH=$(abspath $(O))/bin:$(abspath $(O))/test/tools:$$PATH CTR_GPU_BUILD=$(abspath $(O)) \
		test/e2e/sandbox wsl-nvidia -- test/load/starts 1000 64 | tee $(O)/load
	test $$(wc -l <$(O)/load) -eq 1

.PHONY: check-load
