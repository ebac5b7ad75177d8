# SPDX-License-Identifier: Apache-2.0
#
# check-engines: the doors of container engines with the engines of several Debian releases, from trees that are made with
# debootstrap and kept (see test/engines/tree). What is tested there is what `make install-compat` installs.

nightly_groups += engines
nightly_programs += engines-root
nightly_dependencies += check-engines

check-engines: dependencies-check-engines
	$(MAKE) check-engines-only

check-engines-only: engines-root
	test/run $(O) engines

# Behind the programs, of which some are built against an installation of their own.
engines-root: all test-programs
	rm -rf $(O)/test/engines/root
	$(MAKE) install-compat DESTDIR=$(O)/test/engines/root prefix=/usr

.PHONY: check-engines check-engines-only engines-root
