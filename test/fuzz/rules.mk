# SPDX-License-Identifier: Apache-2.0
#
# fuzz: every parser of foreign bytes, FUZZ_SECONDS each.

ci_groups += fuzz
ci_programs += fuzzers
ci_dependencies += fuzz

FUZZ_SECONDS = 60
ifdef NIGHTLY
export FUZZ_SECONDS = 600
export FUZZ_KEEP = 1
endif
fuzzers = $(filter-out $(if $(plugin_installed),,%/grpc_fuzz),$(patsubst %.c,$(O)/libfuzzer/fuzz/%,$(notdir $(wildcard test/fuzz/*_fuzz.c vcuda/test/fuzz/*_fuzz.c))))
fuzz: dependencies-fuzz
	$(MAKE) fuzzers
	FUZZ_SECONDS=$(FUZZ_SECONDS) test/run $(O) fuzz

fuzzers:
	$(MAKE) O=$(O)/libfuzzer CC=clang SANITIZE=fuzzer-no-link,address,undefined OPTIMIZE=-O1 $(fuzzers)

link_fuzzer = $(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ -Wl,--start-group $(filter-out %.so.1,$^) -Wl,--end-group $(shared_libraries) $(fuzz_libraries)
$(O)/fuzz/grpc_fuzz: fuzz_libraries = $(plugin_libraries)
$(O)/fuzz/grpc_fuzz: $(O)/test/lib/cluster.a
$(O)/fuzz/slurm_list_fuzz: $(O)/src/slurm/slurm_list.o
$(O)/fuzz/%: $(O)/test/fuzz/%.o $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(link_fuzzer)
$(O)/fuzz/%: $(O)/vcuda/test/fuzz/%.o $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(link_fuzzer)

.PHONY: fuzz fuzzers
