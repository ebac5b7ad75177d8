# SPDX-License-Identifier: Apache-2.0
#
# vCUDA's tests: the simulated driver, the conformance checks, hostile frames. The simulation is a libcuda.so.1 of its own and
# links nothing of the tree.

vcuda_sim = $(O)/test/vcuda/sim/libcuda.so.1
vcuda_sim_objects = $(patsubst %.c,$(O)/%.o,$(filter-out %/nvml.c,$(wildcard test/vcuda/sim/*.c)))
test_programs += $(vcuda_sim)

$(vcuda_sim_objects): override CFLAGS += -fvisibility=default
$(vcuda_sim): $(vcuda_sim_objects) test/vcuda/sim/sim.map
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -shared $(CFLAGS_ALL) $(LDFLAGS_ALL) -Wl,-soname,$(@F) -Wl,--version-script=test/vcuda/sim/sim.map -o $@ \
		$(vcuda_sim_objects) -pthread -ldl

# Beside it, what of NVML servers ask.
vcuda_sim_nvml = $(O)/test/vcuda/sim/libnvidia-ml.so.1
test_programs += $(vcuda_sim_nvml)
$(vcuda_sim_nvml): test/vcuda/sim/nvml.c
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -shared -fPIC -std=gnu17 -D_GNU_SOURCE -O2 $(warnings) -Wl,-soname,$(@F) -o $@ $< -ldl

# The checks need libcuda.so.1 and the C library alone, so that they run on any machine with a driver.
vcuda_conform = $(O)/test/vcuda/conform/conform
vcuda_conform_objects = $(patsubst %.c,$(O)/%.o,$(wildcard test/vcuda/conform/*.c)) $(O)/test/vcuda/conform/kernels.o
test_programs += $(vcuda_conform)

$(O)/gen/vcuda/kernels.c: test/vcuda/conform/kernels.ptx
	@mkdir -p $(@D)
	{ echo 'extern char kernels_ptx[]; char kernels_ptx[] = {' && od -An -v -tx1 $< | sed 's/ \(..\)/0x\1,/g' && echo '0};'; } >$@
$(O)/test/vcuda/conform/kernels.o: $(O)/gen/vcuda/kernels.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -c -o $@ $<
$(vcuda_conform): $(vcuda_conform_objects)
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -pthread -ldl

# A manager without a policy, and the program of the measurements.
test_programs += $(O)/test/vcuda/launch $(O)/test/vcuda/measure $(O)/test/vcuda/scrub $(O)/test/vcuda/takes
$(O)/test/vcuda/launch: test/vcuda/launch.c vcuda/protocol/start.h
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -std=gnu17 -O2 $(warnings) -o $@ $<
$(O)/test/vcuda/measure $(O)/test/vcuda/scrub $(O)/test/vcuda/takes: $(O)/test/vcuda/%: test/vcuda/real/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -D_GNU_SOURCE -O2 $(warnings) -o $@ $< -pthread -ldl

# Between a server, or a program, and the driver.
test_programs += $(O)/test/vcuda/real/libbetween.so
$(O)/test/vcuda/real/libbetween.so: test/vcuda/real/between.c $(O)/lib/vcuda/libcuda.so.1
	@mkdir -p $(@D)
	$(CC) -shared -fPIC -std=gnu17 -D_GNU_SOURCE -O2 $(warnings) -o $@ $< -Wl,-rpath,'$$ORIGIN' -Wl,--no-as-needed $(O)/lib/vcuda/libcuda.so.1

# What only a real driver can say.
vcuda_question = $(O)/test/vcuda/question
test_programs += $(vcuda_question)
vcuda_question_objects = $(patsubst %.c,$(O)/%.o,$(wildcard test/vcuda/real/question/*.c)) $(O)/test/vcuda/conform/kernels.o
$(vcuda_question): $(vcuda_question_objects)
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -pthread -ldl

# What has the driver take memory that nobody asks it for.
test_programs += $(O)/test/vcuda/unasked
$(O)/test/vcuda/unasked: $(O)/test/vcuda/unasked.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -ldl

# A client that keeps to no rule.
vcuda_hostile = $(O)/test/vcuda/hostile/frames
test_programs += $(vcuda_hostile)
vcuda_hostile_objects = $(patsubst %,$(O)/test/vcuda/hostile/%.o,frames waits wire)
$(vcuda_hostile): $(vcuda_hostile_objects)
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -pthread
$(vcuda_hostile_objects): $(O)/gen/vcuda/ops.h

# A server that keeps to no rule.
test_programs += $(O)/test/vcuda/hostile/server
$(O)/test/vcuda/hostile/server: $(O)/test/vcuda/hostile/server.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -ldl
$(O)/test/vcuda/hostile/server.o: $(O)/gen/vcuda/ops.h

# Programs that do what no driver counts on.
test_programs += $(O)/test/vcuda/hostile/programs
$(O)/test/vcuda/hostile/programs: $(O)/test/vcuda/hostile/programs.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -rdynamic -o $@ $^ -pthread -ldl

# What a server that was taken over tries.
vcuda_taken = $(O)/test/vcuda/hostile/taken.so
test_programs += $(vcuda_taken)
$(vcuda_taken): test/vcuda/hostile/taken.c
	@mkdir -p $(@D)
	$(CC) -shared -fPIC -std=gnu17 -D_GNU_SOURCE -O2 $(warnings) -o $@ $<

# Clients and servers that are killed.
vcuda_chaos = $(O)/test/vcuda/chaos/chaos
test_programs += $(vcuda_chaos)
$(vcuda_chaos): $(O)/test/vcuda/chaos/chaos.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -ldl

# What is held against NVIDIA's cuda.h and nvml.h where they are.
vcuda_header = $(O)/test/vcuda/header/check-$(1)-h.c
test_programs += $(call vcuda_header,cuda) $(call vcuda_header,nvml)
$(call vcuda_header,cuda) $(call vcuda_header,nvml): $(vcuda_gen)/generate
	@mkdir -p $(@D)
	$< $(if $(findstring nvml,$@),nvml-)check >$@

# Who asks NVML.
test_programs += $(O)/test/vcuda/nvml/ask
$(O)/test/vcuda/nvml/ask: $(O)/test/vcuda/nvml/ask.o
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -ldl -pthread

# Part of continuous integration.
ci_groups += vcuda vcuda/header vcuda/linkage vcuda/nvml
