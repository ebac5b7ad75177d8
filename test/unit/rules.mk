# SPDX-License-Identifier: Apache-2.0

device_world = $(O)/test/unit/devcgroup/device_world.o
$(O)/test/unit/devcgroup/devcgroup_test: $(device_world) $(O)/test/unit/devcgroup/old_kernel.o
$(O)/test/unit/devcgroup/bpf_device_test $(O)/test/unit/apply/guard_rule_test: $(device_world)
$(device_world): override CPPFLAGS += -Itest/unit
$(O)/test/unit/base/memstream_test: override LDFLAGS += -Wl,--wrap=realloc
$(O)/test/unit/root/atomic_file_test: override LDFLAGS += -Wl,--wrap=fchmod

# Nouns of the commands are in no library.
$(filter $(O)/test/unit/cli/% $(O)/test/unit/slurm/%,$(unit_tests)): $(O)/test/lib/cli.a
$(filter $(O)/test/unit/hooks/%,$(unit_tests)): $(O)/test/lib/hooks.a
$(O)/test/lib/cli.a: $(filter-out $(O)/src/cli/main.o,$(cli_objects))
$(O)/test/lib/hooks.a: $(filter-out $(O)/hooks/main.o,$(hook_objects))
$(filter $(O)/test/unit/cluster/%,$(unit_tests)): $(O)/test/lib/cluster.a
$(filter $(O)/test/unit/cluster/%,$(unit_tests)): override LDFLAGS += -Wl,--no-as-needed $(plugin_libraries)
$(O)/test/lib/cluster.a: $(filter-out $(O)/cluster/main.o,$(plugin_objects)) $(plugin_messages:=.o)
$(O)/test/lib/cli.a $(O)/test/lib/hooks.a $(O)/test/lib/cluster.a:
	@mkdir -p $(@D)
	$(say) AR $@
	@rm -f $@
	$(AR) rcsD $@ $^
