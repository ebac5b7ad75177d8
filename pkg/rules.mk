# SPDX-License-Identifier: Apache-2.0
#
# make deb, make rpm: packages of the tree as it is, in $(O)/deb and $(O)/rpm, built by the distribution's own tools.
# MAINTAINER="Name <address>" says who answers for them; the default is who builds them.

deb: dependencies-deb
	pkg/make-deb $(O)

# Of what make deb has made; KEY= is whose signature apt is to believe (docs/packages.md).
REPOSITORY = $(O)/repository
repository: dependencies-repository
	KEY='$(KEY)' UNSIGNED='$(UNSIGNED)' SUITE='$(SUITE)' pkg/make-repository $(O) '$(REPOSITORY)'

rpm: dependencies-rpm
	pkg/make-rpm $(O) $(RPM_OPTIONS)

# A program without libraries beside it, for the tarball; the hook is one already.
$(O)/static/ctr-gpu: link_map = -Wl,-Map=$@.map
$(O)/static/ctr-gpu: $(cli_objects) $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) $(link_map) -o $@ $^ -static-pie $(static_libraries)

static: $(O)/static/ctr-gpu $(O)/bin/ctr-gpu-hook
	$(if $(dynamic),@echo "make static: not with STATIC=0 or SANITIZE=" >&2; exit 1)
	CC="$(CC)" STRIP="$(STRIP)" COMPAT="$(compat)" pkg/make-static $(O)

# What is linked into the programs.
sbom: $(O)/ctr-gpu.cdx.json
$(O)/ctr-gpu.cdx.json: $(programs) $(O)/lib/libctr-gpu.so.$(SOVERSION) pkg/sbom
	pkg/sbom $(VERSION) $(programs:$(O)/bin/%=$(O)/%.map) $(O)/libctr-gpu.so.$(SOVERSION).map >$@

# Two builds of the last commit, in which everything differs that should not matter.
check-reproducible: dependencies-packages
	pkg/check-reproducible

.PHONY: deb repository rpm static sbom check-reproducible
