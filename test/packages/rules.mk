# SPDX-License-Identifier: Apache-2.0
#
# check-packages: the Debian packages, installed by apt on machines of several releases, which are made with debootstrap and
# kept (see test/engines/tree), also from a repository; the spec with macros of other distributions; Arch's recipe and Nix' flake with
# makepkg, pacman and Nix of Debian sid. Wants a mirror of Debian.

nightly_groups += packages
nightly_programs += packages-to-test
nightly_dependencies += packages

check-packages: dependencies-check-engines+packages packages-to-test
	test/run $(O) packages

packages-to-test: all test-programs
	DEB_BUILD_OPTIONS=nocheck $(MAKE) deb

.PHONY: check-packages packages-to-test
