# SPDX-License-Identifier: Apache-2.0
#
# check-packages: the Debian packages, installed by apt on machines of several releases, which are made with debootstrap and
# kept (see test/engines/tree). Wants a mirror of Debian.

check-packages: dependencies-check-engines+packages all test-programs
	DEB_BUILD_OPTIONS=nocheck $(MAKE) deb
	CTR_GPU_PACKAGES="$$(realpath $(O))/deb" test/run $(O) packages

.PHONY: check-packages
