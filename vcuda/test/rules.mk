# SPDX-License-Identifier: Apache-2.0
#
# vCUDA's tests: the simulated driver, the conformance checks, hostile frames. The simulation is a libcuda.so.1 of its own and
# links nothing of the tree.

vcuda_sim = $(O)/vcuda/test/sim/libcuda.so.1
vcuda_sim_objects = $(patsubst %.c,$(O)/%.o,$(filter-out %/nvml.c,$(wildcard vcuda/test/sim/*.c)))
test_programs += $(vcuda_sim)

$(vcuda_sim_objects): override CFLAGS += -fvisibility=default
$(vcuda_sim): $(vcuda_sim_objects) vcuda/test/sim/sim.map
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -shared $(CFLAGS_ALL) $(LDFLAGS_ALL) -Wl,-soname,$(@F) -Wl,--version-script=vcuda/test/sim/sim.map -o $@ \
		$(vcuda_sim_objects) -pthread -ldl

# Beside it, what of NVML servers ask.
vcuda_sim_nvml = $(O)/vcuda/test/sim/libnvidia-ml.so.1
test_programs += $(vcuda_sim_nvml)
$(vcuda_sim_nvml): vcuda/test/sim/nvml.c
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -shared -fPIC -std=gnu17 -D_GNU_SOURCE -O2 $(warnings) -Wl,-soname,$(@F) -o $@ $< -ldl

# The checks need libcuda.so.1 and the C library alone, so that they run on any machine with a driver.
vcuda_conform = $(O)/vcuda/test/conform/conform
vcuda_conform_objects = $(patsubst %.c,$(O)/%.o,$(wildcard vcuda/test/conform/*.c)) $(O)/vcuda/test/conform/kernels.o
test_programs += $(vcuda_conform)

$(O)/gen/vcuda/kernels.c: vcuda/test/conform/kernels.ptx
	@mkdir -p $(@D)
	{ echo 'extern char kernels_ptx[]; char kernels_ptx[] = {' && od -An -v -tx1 $< | sed 's/ \(..\)/0x\1,/g' && echo '0};'; } >$@
$(O)/vcuda/test/conform/kernels.o: $(O)/gen/vcuda/kernels.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c -o $@ $<
$(vcuda_conform): $(vcuda_conform_objects)
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -pthread -ldl

# A manager without a policy, and the program of the measurements.
test_programs += $(O)/vcuda/test/launch $(O)/vcuda/test/measure $(O)/vcuda/test/scrub $(O)/vcuda/test/takes $(O)/vcuda/test/holds $(O)/vcuda/test/moves $(O)/vcuda/test/saves $(O)/vcuda/test/turns
$(O)/vcuda/test/launch: vcuda/test/launch.c vcuda/protocol/descriptors.h vcuda/protocol/start.h vcuda/protocol/turns.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -std=gnu17 -O2 $(warnings) -o $@ $<
$(O)/vcuda/test/measure $(O)/vcuda/test/scrub $(O)/vcuda/test/takes $(O)/vcuda/test/holds $(O)/vcuda/test/moves $(O)/vcuda/test/saves $(O)/vcuda/test/turns: $(O)/vcuda/test/%: vcuda/test/real/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -D_GNU_SOURCE -O2 $(warnings) -o $@ $< -pthread -ldl

# Who asks the manager as the hook does.
test_programs += $(O)/vcuda/test/grant
$(O)/vcuda/test/grant: $(O)/vcuda/test/grant.o $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -Wl,--as-needed $(xdr_inside)

# Between a server, or a program, and the driver.
test_programs += $(O)/vcuda/test/real/libbetween.so
$(O)/vcuda/test/real/libbetween.so: vcuda/test/real/between.c $(O)/lib/vcuda/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) -shared -fPIC -std=gnu17 -D_GNU_SOURCE -O2 $(warnings) -o $@ $< -Wl,-rpath,'$$ORIGIN' -Wl,--no-as-needed $(O)/lib/vcuda/libcuda.so.1

# What only a real driver can say.
vcuda_question = $(O)/vcuda/test/question
test_programs += $(vcuda_question)
vcuda_question_objects = $(patsubst %.c,$(O)/%.o,$(wildcard vcuda/test/real/question/*.c)) $(O)/vcuda/test/conform/kernels.o
$(vcuda_question): $(vcuda_question_objects)
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -pthread -ldl

# What has the driver take memory that nobody asks it for.
test_programs += $(O)/vcuda/test/unasked
$(O)/vcuda/test/unasked: $(O)/vcuda/test/unasked.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -ldl

# A client that keeps to no rule.
vcuda_hostile = $(O)/vcuda/test/hostile/frames
test_programs += $(vcuda_hostile)
vcuda_hostile_objects = $(patsubst %,$(O)/vcuda/test/hostile/%.o,frames shares textures waits wire)
$(vcuda_hostile): $(vcuda_hostile_objects)
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -pthread
$(vcuda_hostile_objects): $(O)/gen/vcuda/ops.h

# A server that keeps to no rule.
test_programs += $(O)/vcuda/test/hostile/server
$(O)/vcuda/test/hostile/server: $(O)/vcuda/test/hostile/server.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -ldl
$(O)/vcuda/test/hostile/server.o: $(O)/gen/vcuda/ops.h

# Programs that do what no driver counts on.
test_programs += $(O)/vcuda/test/hostile/programs
$(O)/vcuda/test/hostile/programs: $(O)/vcuda/test/hostile/programs.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -rdynamic -o $@ $^ -pthread -ldl

# What a server that was taken over tries.
vcuda_taken = $(O)/vcuda/test/hostile/taken.so
test_programs += $(vcuda_taken)
$(vcuda_taken): vcuda/test/hostile/taken.c
	@mkdir -p $(@D)
	$(CC) -shared -fPIC -std=gnu17 -D_GNU_SOURCE -O2 $(warnings) -o $@ $<

# Clients and servers that are killed.
vcuda_chaos = $(O)/vcuda/test/chaos/chaos
test_programs += $(vcuda_chaos)
$(vcuda_chaos): $(O)/vcuda/test/chaos/chaos.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -ldl

# What is held against NVIDIA's cuda.h and nvml.h where they are.
vcuda_header = $(O)/vcuda/test/header/check-$(1)-h.c
test_programs += $(call vcuda_header,cuda) $(call vcuda_header,nvml)
$(call vcuda_header,cuda) $(call vcuda_header,nvml): $(vcuda_gen)/generate
	@mkdir -p $(@D)
	$< $(if $(findstring nvml,$@),nvml-)check >$@

# Who asks NVML.
test_programs += $(O)/vcuda/test/nvml/ask
$(O)/vcuda/test/nvml/ask: $(O)/vcuda/test/nvml/ask.o
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -ldl -pthread

# Part of continuous integration.
ci_groups += vcuda vcuda/header vcuda/linkage vcuda/nvml e2e/vcuda-podman

# Its units.
$(patsubst %,$(O)/vcuda/test/unit/%_test,$(addprefix manager/,cgroup manager balance) users/account): $(filter-out %/main.o,$(vcudad_objects))
$(O)/vcuda/test/unit/manager/manager_test: override LDFLAGS += -Wl,--wrap=setsockopt,--wrap=fork,--wrap=fstat,--wrap=statx
$(O)/vcuda/test/unit/turns/turns_test: $(O)/vcuda/turns/turns.o
$(O)/vcuda/test/unit/server/quota_test: $(O)/vcuda/server/quota.o
$(O)/vcuda/test/unit/server/driver_memory_test: $(patsubst %,$(O)/vcuda/server/%.o,driver_memory quota)
$(O)/vcuda/test/unit/server/driver_memory_test: override LDFLAGS += -Wl,--wrap=dlsym
$(O)/vcuda/test/unit/server/driver_memory_test.o: $(vcuda_headers)
$(patsubst %,$(O)/vcuda/test/unit/server/%_test,contexts share): $(filter-out %/server/main.o %/server/lane.o,$(vcuda_server_objects))
$(O)/vcuda/test/unit/server/contexts_test: override LDFLAGS += -Wl,--wrap=driver_memory_fits,--wrap=driver_memory_is_known,--wrap=handle_show
$(O)/vcuda/test/unit/server/share_test: override LDFLAGS += -Wl,--wrap=handle_give,--wrap=share_file_get
$(O)/vcuda/test/unit/server/share_file_test: $(O)/vcuda/server/share_held.o
$(O)/vcuda/test/unit/server/image_test: $(O)/vcuda/server/image.o
$(O)/vcuda/test/unit/server/handle_test: $(patsubst %,$(O)/vcuda/server/%.o,handle object_ref)
$(O)/vcuda/test/unit/server/handle_test: override LDFLAGS += -Wl,--wrap=object_ref_take
$(O)/vcuda/test/unit/server/object_ref_test: $(O)/vcuda/server/object_ref.o
$(O)/vcuda/test/unit/server/uvm_flags_test: $(O)/vcuda/server/driver.o
$(O)/vcuda/test/unit/server/uvm_flags_test.o: $(vcuda_headers)
$(O)/vcuda/test/unit/server/request_test: $(patsubst %,$(O)/vcuda/server/%.o,request handle object_ref quota)
$(O)/vcuda/test/unit/server/request_test: override LDFLAGS += -Wl,--wrap=realloc
$(O)/vcuda/test/unit/client/integrity_test.o: $(vcuda_headers)
$(O)/vcuda/test/unit/client/device_name_test: $(O)/vcuda/client/device_name.o
$(patsubst %,$(O)/vcuda/test/unit/server/%_test.o,contexts handle object_ref request share): $(vcuda_headers)

# vCUDA's server, on the simulated driver, without the main() that would not return; and its client, for which the fuzzer is
# the server.
vcuda_frames = $(filter-out %/server/main.o %/server/lane.o %/server/server.o,$(vcuda_server_objects))
$(O)/fuzz/vcuda_frames_fuzz: $(vcuda_frames) $(O)/vcuda/test/sim/libcuda.so.1 $(O)/vcuda/test/sim/libnvidia-ml.so.1
$(O)/fuzz/vcuda_frames_fuzz: $(O)/vcuda/test/fuzz/vcuda_frames_fuzz.o $(vcuda_frames) $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(link_fuzzer) -lpthread -ldl
$(O)/fuzz/vcuda_image_fuzz: $(O)/vcuda/server/image.o
vcuda_replies = $(vcuda_client_objects:$(O)/vcuda-client/%=$(O)/fuzz-client/%)
$(O)/fuzz/vcuda_replies_fuzz: $(O)/vcuda/test/fuzz/vcuda_replies_fuzz.o $(vcuda_replies)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ $^ -lpthread
$(O)/fuzz-client/%.o: %.c $(vcuda_headers)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -include vcuda/test/fuzz/vcuda_bell.h -MMD -MP -c -o $@ $<
$(O)/fuzz-client/stubs.o: $(vcuda_gen)/client_stubs.c $(vcuda_headers)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -include vcuda/test/fuzz/vcuda_bell.h -MMD -MP -c -o $@ $<
$(O)/vcuda/test/fuzz/vcuda_frames_fuzz.o $(O)/vcuda/test/fuzz/vcuda_replies_fuzz.o: $(vcuda_headers)

# The container's library as a packager has it who leaves the check value out.
test_programs += $(O)/vcuda/test/driver-only/libcuda.so.1
vcuda_driver_only = $(filter-out %/integrity.o %/table.o,$(vcuda_client_objects)) $(O)/vcuda/test/driver-only/table.o
$(O)/vcuda/test/driver-only/table.o: vcuda/client/table.c $(vcuda_headers)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(vcuda_client_cflags) -DVCUDA_INTEGRITY=0 -MMD -MP -c -o $@ $<
$(O)/vcuda/test/driver-only/libcuda.so.1: $(vcuda_driver_only)
	$(say) LD $@
	$(CC) -shared -nostdlib $(vcuda_client_cflags) $(filter-out $(relative),$(LDFLAGS_ALL)) -Wl,-soname,$(@F) -Wl,-Bsymbolic -Wl,-z,nodelete -o $@ $^

# Between a program of others and the driver, or vCUDA: what it calls, and what fails.
ifneq ($(findstring x86_64,$(shell $(CC) -dumpmachine 2>/dev/null)),)
test_programs += $(O)/vcuda/test/trace/libcuda.so.1
$(O)/gen/vcuda/trace.s: vcuda/test/trace/generate $(O)/lib/vcuda/libcuda.so.1
	@mkdir -p $(@D)
	@$< $(O)/lib/vcuda/libcuda.so.1 >$@
$(O)/vcuda/test/trace/libcuda.so.1: vcuda/test/trace/trace.c vcuda/test/trace/enter.S $(O)/gen/vcuda/trace.s
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -shared -fPIC -std=gnu17 -D_GNU_SOURCE -O2 $(warnings) -Wl,-soname,$(@F) -Wl,-z,now -o $@ $(filter-out %/generate,$^) -ldl
endif

# What a user's hook may say to the manager.
$(O)/vcuda/test/ask: $(O)/vcuda/test/e2e/ask.o $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ $(if $(SANITIZE),$(shared_libraries),-Wl,--as-needed $(static_libraries))
$(O)/vcuda/test/e2e/ask.o: $(O)/gen/vcuda_rpc.h
test_programs += $(O)/vcuda/test/ask
