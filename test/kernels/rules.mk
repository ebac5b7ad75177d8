# SPDX-License-Identifier: Apache-2.0
#
# check-kernels: tests under the kernels of several Debian releases, in virtual machines without hardware acceleration (see
# test/kernels/guest). Wants a mirror of Debian. check-kernel: the part that every check runs.

ci_groups += kernel
ci_dependencies += kernels
nightly_groups += kernels
nightly_programs += unit-tests

check-kernels: unit-tests
check-kernels check-kernel: check-%: all test-programs
	test/install-deps check kernels
	test/run $(O) $*

.PHONY: check-kernels check-kernel
