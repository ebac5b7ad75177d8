# SPDX-License-Identifier: Apache-2.0
#
# check-guard: the guard under the kernels of Debian 12, 13 and sid, on a stand-in for dxgkrnl, in virtual machines without hardware
# acceleration (see test/guard/run). Wants a mirror of Debian. check-guard-quick: the part that every check runs.

ci_groups += guard-quick
ci_dependencies += check-guard
nightly_groups += guard

guard_clients = $(patsubst test/guard/%.c,$(O)/test/guard/%,$(filter-out test/guard/dxg.c test/guard/late.c,$(wildcard test/guard/*.c)))
test_programs += $(guard_clients)

# They run in any image. Static data lies below 4 GiB, where 32-bit calls can reach it.
$(guard_clients): $(O)/test/guard/%: test/guard/%.c test/guard/dxg.c test/guard/dxg.h test/hosts/abi.h
	@mkdir -p $(@D)
	$(say) CC $@
	$(CC) -std=gnu17 $(OPTIMIZE) -g -D_GNU_SOURCE $(warnings) -static -fno-pie -pthread -o $@ $(filter %.c,$^)
$(O)/test/guard/park: test/guard/late.c test/guard/late.h

check-guard check-guard-quick: check-%: all test-programs
	test/install-deps check check-guard
	test/run $(O) $*

.PHONY: check-guard check-guard-quick
