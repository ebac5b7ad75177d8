# SPDX-License-Identifier: Apache-2.0
#
# make deb, make rpm: packages of the tracked files as they are, built below $(O)/deb and $(O)/rpm by the distribution's own
# tools. The checkout stays as it is.

deb:
	test/install-deps deb
	pkg/make-deb $(O)

rpm:
	test/install-deps rpm
	pkg/make-rpm $(O)

.PHONY: deb rpm
