# SPDX-License-Identifier: Apache-2.0

device_world = $(O)/test/unit/devcgroup/device_world.o
$(O)/test/unit/devcgroup/devcgroup_test: $(device_world) $(O)/test/unit/devcgroup/old_kernel.o
$(O)/test/unit/devcgroup/bpf_device_test: $(device_world)
$(device_world): override CPPFLAGS += -Itest/unit
$(O)/test/unit/base/memstream_test: override LDFLAGS += -Wl,--wrap=realloc

# Nouns of the commands are in no library.
$(filter $(O)/test/unit/cli/%,$(unit_tests)): $(O)/test/lib/cli.a
$(filter $(O)/test/unit/hooks/%,$(unit_tests)): $(O)/test/lib/hooks.a
$(O)/test/lib/cli.a: $(filter-out $(O)/src/cli/main.o,$(cli_objects))
$(O)/test/lib/hooks.a: $(filter-out $(O)/hooks/main.o,$(hook_objects))
$(O)/test/lib/cli.a $(O)/test/lib/hooks.a:
	@mkdir -p $(@D)
	$(say) AR $@
	@rm -f $@
	$(AR) rcsD $@ $^
