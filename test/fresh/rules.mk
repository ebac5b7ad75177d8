# SPDX-License-Identifier: Apache-2.0
#
# check-fresh: the README's commands on new machines of Debian 12, 13 and sid, as debootstrap makes them. Wants a mirror of
# Debian. recordings: what was to be seen there, for docs/first-minutes.

ci_groups += fresh/trixie
ci_dependencies += check-fresh
nightly_groups += fresh/bookworm fresh/sid

check-fresh: dependencies-check-fresh
	$(MAKE) check-fresh-only

check-fresh-only: all test-programs
	CTR_GPU_TEST_NIGHTLY=1 test/run $(O) fresh

recordings: dependencies-check-fresh
	$(MAKE) all test-programs
	CTR_GPU_BUILD=$(O) test/fresh/record

.PHONY: check-fresh check-fresh-only recordings
