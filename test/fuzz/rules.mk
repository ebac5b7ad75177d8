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
fuzzers = $(patsubst test/fuzz/%.c,$(O)/libfuzzer/fuzz/%,$(wildcard test/fuzz/*_fuzz.c))
fuzz: dependencies-fuzz
	$(MAKE) fuzzers
	FUZZ_SECONDS=$(FUZZ_SECONDS) test/run $(O) fuzz

fuzzers:
	$(MAKE) O=$(O)/libfuzzer CC=clang SANITIZE=fuzzer-no-link,address,undefined OPTIMIZE=-O1 $(fuzzers)

$(O)/fuzz/%: $(O)/test/fuzz/%.o $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ $^ $(shared_libraries)

# vCUDA's server, on the simulated driver, without the main() that would not return; and its client, for which the fuzzer is
# the server.
vcuda_frames = $(filter-out %/server/main.o %/server/lane.o,$(vcuda_server_objects))
$(O)/fuzz/vcuda_frames_fuzz: $(vcuda_frames) $(O)/test/vcuda/sim/libcuda.so.1 $(O)/test/vcuda/sim/libnvidia-ml.so.1
$(O)/fuzz/vcuda_frames_fuzz: $(O)/test/fuzz/vcuda_frames_fuzz.o $(vcuda_frames) $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ $(filter-out %.so.1,$^) $(shared_libraries) -lpthread -ldl
$(O)/fuzz/vcuda_image_fuzz: $(patsubst %,$(O)/vcuda/server/%.o,image ptx_parse)
vcuda_replies = $(vcuda_client_objects:$(O)/vcuda-client/%=$(O)/fuzz-client/%)
$(O)/fuzz/vcuda_replies_fuzz: $(O)/test/fuzz/vcuda_replies_fuzz.o $(vcuda_replies)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ $^ -lpthread
$(O)/fuzz-client/%.o: %.c $(vcuda_headers)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -include test/fuzz/vcuda_bell.h -MMD -MP -c -o $@ $<
$(O)/fuzz-client/stubs.o: $(vcuda_gen)/client_stubs.c $(vcuda_headers)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -include test/fuzz/vcuda_bell.h -MMD -MP -c -o $@ $<
$(O)/test/fuzz/vcuda_frames_fuzz.o $(O)/test/fuzz/vcuda_replies_fuzz.o: $(vcuda_headers)

.PHONY: fuzz fuzzers
