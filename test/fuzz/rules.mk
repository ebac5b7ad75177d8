# SPDX-License-Identifier: Apache-2.0
#
# fuzz: every parser of foreign bytes, FUZZ_SECONDS each.

ci_groups += fuzz
ci_programs += fuzzers
ci_dependencies += fuzz

FUZZ_SECONDS = 60
fuzzers = $(patsubst test/fuzz/%.c,$(O)/libfuzzer/fuzz/%,$(wildcard test/fuzz/*_fuzz.c))
fuzz: dependencies-fuzz
	$(MAKE) fuzzers
	FUZZ_SECONDS=$(FUZZ_SECONDS) test/run $(O) fuzz

fuzzers:
	$(MAKE) O=$(O)/libfuzzer CC=clang SANITIZE=fuzzer-no-link,address,undefined OPTIMIZE=-O1 $(fuzzers)

$(O)/fuzz/%: $(O)/test/fuzz/%.o $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ $^ $(shared_libraries)

$(O)/fuzz/chosen_fuzz: $(O)/hooks/runtime/chosen.o
$(O)/test/fuzz/chosen_fuzz.o: CPPFLAGS += -I.

.PHONY: fuzz fuzzers
