# SPDX-License-Identifier: Apache-2.0
#
# Programs for use inside test containers, and the old driver libraries of an image that brings its own.

e2e_tools = $(patsubst test/e2e/tools/%.c,$(O)/test/tools/%,$(wildcard test/e2e/tools/*.c))
stale_libraries = $(addprefix $(O)/test/stale/,libcuda.so.1 libnvidia-ml.so.1 libgen00000.so.1)
musl_gcc := $(shell command -v musl-gcc)

test_programs += $(e2e_tools) $(O)/test/tools/podman $(O)/test/tools/device-rule $(stale_libraries) $(if $(musl_gcc),$(O)/test/tools/probe-musl)

# An image's C library may be older than ours, so nothing that needs it new; sanitizers stay out for the same reason.
$(O)/test/tools/%: test/e2e/tools/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -D_GNU_SOURCE $(OPTIMIZE) $(warnings) -o $@ $<

# It starts for each sandbox, in trees with other C libraries, too.
$(O)/test/tools/sandbox-stage: test/e2e/tools/sandbox-stage.c
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -D_GNU_SOURCE $(OPTIMIZE) $(warnings) -static -o $@ $<

$(O)/test/tools/vcuda-standin: test/e2e/tools/vcuda-standin.c vcuda/protocol/start.h
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -D_GNU_SOURCE -I. -Isrc $(OPTIMIZE) $(warnings) -o $@ $<

$(O)/test/tools/podman: test/e2e/tools/podman.sh
	@mkdir -p $(@D)
	$(INSTALL) -m 755 $< $@

$(O)/test/tools/device-rule: $(O)/test/e2e/device-rule.o $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ $(if $(SANITIZE),$(shared_libraries),-Wl,--as-needed $(static_libraries))

$(O)/test/tools/probe-musl: test/e2e/tools/probe.c
	@mkdir -p $(@D)
	$(musl_gcc) -std=gnu17 -D_GNU_SOURCE $(OPTIMIZE) -o $@ $<

$(O)/test/stale/%: test/e2e/stale.c
	@mkdir -p $(@D)
	$(CC) -std=gnu17 $(OPTIMIZE) $(warnings) -fPIC -fvisibility=hidden -shared -nostdlib -Wl,-soname,$(@F) \
		-Wl,-z,noseparate-code -Wl,--build-id=none -s -o $@ $<

demo: dependencies-demo
	$(MAKE) $(all_cores) demo-only

# What it shows, and no other program.
demo-only: $(addprefix $(O)/bin/,ctr-gpu ctr-gpu-hook ctr-gpu-driverd) test-hosts $(addprefix $(O)/test/tools/,memlock probe sandbox-stage)
	test/e2e/demo $(O)

.PHONY: demo demo-only

# Links the library, and so runs on this machine only.
$(O)/test/tools/ldcache-merge: $(O)/test/e2e/tools/ldcache-merge.o $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -Wl,--as-needed $(shared_libraries)
