# SPDX-License-Identifier: Apache-2.0
#
# check-arm64: cross build, packages, and the unit tests under emulation (test/arm64/tap). Wants a mirror of Debian. The cross build
# alone is arm64-quick.

ci_groups += arm64-quick
ci_dependencies += check-fresh
nightly_groups += arm64
nightly_dependencies += arm64

unit-tests: $(unit_tests)

check-arm64: all
	test/install-deps check arm64
	test/run $(O) arm64

.PHONY: check-arm64 unit-tests
