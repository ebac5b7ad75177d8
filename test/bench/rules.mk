# SPDX-License-Identifier: Apache-2.0
#
# Static programs: what a benchmark starts should not wait for a loader.

bench_programs = $(addprefix $(O)/test/bench/,floor floor-musl measure nothing step)

$(addprefix $(O)/test/bench/,floor nothing step): $(O)/test/bench/%: test/bench/%.c
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -D_GNU_SOURCE -O2 $(warnings) -static -o $@ $<

# As the hook is linked, beside that of glibc, which budgets are for.
$(O)/test/bench/floor-musl: $(O)/musl/test/bench/floor.o $(O)/musl/hooks/musl/compat.o
	@mkdir -p $(@D)
	$(CC) -o $@ $(call musl_link,$^)

$(O)/test/bench/measure: test/bench/measure.c test/bench/target.c test/bench/target.h
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -D_GNU_SOURCE -O2 $(warnings) -static -o $@ $(filter %.c,$^) -lm

bench: dependencies-bench
	$(MAKE) bench-only

bench-only: all $(bench_programs) test-programs
	test/bench/run $(O)

.PHONY: bench bench-only
