# SPDX-License-Identifier: Apache-2.0
#
# vCUDA's tests: the simulated driver, the conformance checks, hostile frames. The simulation is a libcuda.so.1 of its own and
# links nothing of the tree.

vcuda_sim = $(O)/test/vcuda/sim/libcuda.so.1
vcuda_sim_objects = $(patsubst %.c,$(O)/%.o,$(filter-out %/nvml.c,$(wildcard test/vcuda/sim/*.c)))
test_programs += $(vcuda_sim)

$(vcuda_sim_objects): CFLAGS += -fvisibility=default
$(vcuda_sim): $(vcuda_sim_objects) test/vcuda/sim/sim.map
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -shared $(CFLAGS_ALL) $(LDFLAGS_ALL) -Wl,-soname,$(@F) -Wl,--version-script=test/vcuda/sim/sim.map -o $@ \
		$(vcuda_sim_objects) -pthread -ldl
