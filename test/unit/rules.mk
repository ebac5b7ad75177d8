# SPDX-License-Identifier: Apache-2.0

device_world = $(O)/test/unit/devcgroup/device_world.o
$(O)/test/unit/devcgroup/devcgroup_test: $(device_world) $(O)/test/unit/devcgroup/old_kernel.o
$(O)/test/unit/devcgroup/bpf_device_test: $(device_world)
$(device_world): override CPPFLAGS += -Itest/unit

$(patsubst %,$(O)/test/unit/vcuda/manager/%_test,pidref cgroup manager): $(filter-out %/main.o,$(vcudad_objects))
$(O)/test/unit/vcuda/manager/manager_test: override LDFLAGS += -Wl,--wrap=setsockopt,--wrap=fork
$(O)/test/unit/vcuda/server/quota_test: $(O)/vcuda/server/quota.o
$(O)/test/unit/vcuda/server/image_test: $(patsubst %,$(O)/vcuda/server/%.o,image ptx_parse)
$(O)/test/unit/vcuda/server/handle_test: $(O)/vcuda/server/handle.o
$(O)/test/unit/vcuda/server/object_ref_test: $(O)/vcuda/server/object_ref.o
$(O)/test/unit/vcuda/server/uvm_flags_test: $(O)/vcuda/server/driver.o
$(O)/test/unit/vcuda/server/uvm_flags_test.o: $(vcuda_headers)
$(O)/test/unit/vcuda/server/request_test: $(patsubst %,$(O)/vcuda/server/%.o,request handle object_ref quota)
$(O)/test/unit/base/memstream_test $(O)/test/unit/vcuda/server/request_test: override LDFLAGS += -Wl,--wrap=realloc
$(patsubst %,$(O)/test/unit/vcuda/server/%_test.o,handle object_ref request): $(vcuda_headers)

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
