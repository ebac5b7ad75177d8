# SPDX-License-Identifier: Apache-2.0
#
# make            build into build/        make check     tests (as root: the end-to-end part too)
# make install    DESTDIR= prefix=/usr     make demo      a container with a GPU, start to end
# make bench      measure                  make lint      analysers    make fuzz    make coverage
#
# CC=clang and SANITIZE=address,undefined work with every target; O= is the build directory.

MAKEFLAGS += --no-builtin-rules
O ?= build
CC = gcc
AR = ar
PKG_CONFIG = pkg-config
OPTIMIZE = -O2
SANITIZE =

prefix = /usr
bindir = $(prefix)/bin
libdir = $(prefix)/lib/$(shell $(CC) -print-multiarch)
libexecdir = $(prefix)/libexec
includedir = $(prefix)/include
mandir = $(prefix)/share/man

VERSION := $(shell sed -n 's/^ctr-gpu \([0-9.]*\).*/\1/p' NEWS | head -n 1)
SOVERSION = 0

warnings = -Wall -Wextra -Wconversion -Werror -Wformat=2 -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wundef \
	-Wvla -Wimplicit-fallthrough
hardening = -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fno-common
sanitize_flags = $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer -U_FORTIFY_SOURCE)
CPPFLAGS_ALL = -D_GNU_SOURCE -DCTR_GPU_VERSION='"$(VERSION)"' -DCTR_GPU_LIBEXECDIR='"$(libexecdir)/ctr-gpu"' \
	-Isrc -Isrc/lib -Isrc/base -I$(O)/gen $(tirpc_cflags) $(CPPFLAGS)
CFLAGS_ALL = -std=gnu17 $(OPTIMIZE) -g -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections $(warnings) $(hardening) \
	$(sanitize_flags) $(CFLAGS)
LDFLAGS_ALL = -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--gc-sections $(sanitize_flags) $(LDFLAGS)

tirpc_cflags := $(shell $(PKG_CONFIG) --cflags libtirpc 2>/dev/null)
shared_libraries = -ljansson -lseccomp -lcap -lelf -ltirpc
static_libraries = -l:libjansson.a -l:libseccomp.a -l:libcap.a -l:libelf.a -l:libz.a -l:libtirpc.a

library_sources = $(wildcard src/base/*.c src/lib/*.c src/wsl/*.c src/nvidia/*.c src/ldcache/*.c) src/driverd/client.c
library_objects = $(library_sources:%.c=$(O)/%.o) $(rpc_client_objects)
driverd_sources = $(filter-out src/driverd/client.c src/driverd/gss.c,$(wildcard src/driverd/*.c))
driverd_objects = $(driverd_sources:%.c=$(O)/%.o) $(rpc_server_objects)
cli_objects = $(patsubst %.c,$(O)/%.o,$(wildcard src/cli/*.c))
hook_objects = $(patsubst %.c,$(O)/%.o,$(wildcard hooks/*.c))
programs = $(O)/bin/ctr-gpu $(O)/bin/ctr-gpu-hook $(O)/bin/ctr-gpu-driverd

# rpcgen's own code does not pass our warnings; it is compiled apart, with none.
rpc_client_objects = $(O)/gen/driverd/protocol_xdr.o $(O)/gen/driverd/protocol_clnt.o
rpc_server_objects = $(O)/gen/driverd/protocol_xdr.o $(O)/gen/driverd/protocol_svc.o

# ASan cannot be linked statically, so a sanitized hook is an ordinary program.
hook_link = $(if $(SANITIZE),-pie $(shared_libraries),-static-pie $(static_libraries))

unit_tests = $(patsubst test/unit/%.c,$(O)/test/unit/%,$(wildcard test/unit/*_test.c))

all: $(programs) $(O)/lib/libctr-gpu.so.$(SOVERSION) $(O)/lib/libctr-gpu.a

$(O)/lib/libctr-gpu.a: $(library_objects) $(O)/src/driverd/gss.o
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

$(O)/lib/libctr-gpu.so.$(SOVERSION): $(library_objects) src/lib/ctr-gpu.map
	@mkdir -p $(@D)
	$(CC) -shared $(CFLAGS_ALL) $(LDFLAGS_ALL) -Wl,-soname,$(@F) -Wl,--version-script=src/lib/ctr-gpu.map \
		$(if $(SANITIZE),,-Wl,-z,defs) -o $@ $(library_objects) -Wl,--as-needed $(shared_libraries)
	ln -sf $(@F) $(@D)/libctr-gpu.so

$(O)/bin/ctr-gpu: $(cli_objects) $(O)/lib/libctr-gpu.so.$(SOVERSION)
	@mkdir -p $(@D)
	$(CC) -pie $(CFLAGS_ALL) $(LDFLAGS_ALL) -Wl,-rpath,'$$ORIGIN/../lib' -o $@ $(cli_objects) -L$(O)/lib -lctr-gpu

$(O)/bin/ctr-gpu-hook: $(hook_objects) $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ $(hook_link)
	ln -sf $(@F) $(@D)/nvidia-container-runtime-hook

$(O)/bin/ctr-gpu-driverd: $(driverd_objects) $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(CC) -pie $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -Wl,--as-needed $(if $(SANITIZE),-ltirpc,-l:libtirpc.a) -lseccomp -lcap -ldl

$(O)/gen/driverd/protocol.h: src/driverd/protocol.x
	@mkdir -p $(@D)
	rm -f $@ && cd $(<D) && rpcgen -C -h $(<F) > $(abspath $@)
$(O)/gen/driverd/protocol_xdr.c: src/driverd/protocol.x $(O)/gen/driverd/protocol.h
	rm -f $@ && cd $(<D) && rpcgen -C -c $(<F) > $(abspath $@)
$(O)/gen/driverd/protocol_clnt.c: src/driverd/protocol.x $(O)/gen/driverd/protocol.h
	rm -f $@ && cd $(<D) && rpcgen -C -l $(<F) > $(abspath $@)
$(O)/gen/driverd/protocol_svc.c: src/driverd/protocol.x $(O)/gen/driverd/protocol.h
	rm -f $@ && cd $(<D) && rpcgen -C -m $(<F) > $(abspath $@)
$(O)/gen/%.o: $(O)/gen/%.c
	$(CC) -std=gnu17 $(OPTIMIZE) -g -fPIC -fvisibility=hidden -w $(hardening) $(sanitize_flags) $(CPPFLAGS_ALL) -I$(@D) -c -o $@ $<
$(O)/src/driverd/%.o: $(O)/gen/driverd/protocol.h

$(O)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(O)/test/unit/%: $(O)/test/unit/%.o $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -lcmocka $(if $(SANITIZE),$(shared_libraries),-Wl,--as-needed $(static_libraries))

# ---- tests ----

include $(wildcard test/*/rules.mk)

tests = $(unit_tests) $(test_programs)

# What is missing is installed first: a fresh machine has git, make and a compiler.
check: check-dependencies
	$(MAKE) check-only

check-only: all $(tests)
	test/run $(O)

check-dependencies:
	test/install-deps check

# The whole suite with programs that notice their own memory errors and undefined behaviour.
check-sanitize:
	$(MAKE) O=$(O)-sanitize SANITIZE=address,undefined OPTIMIZE=-O1 check-only

check-unit: $(unit_tests)
	test/run $(O) unit

lint:
	$(MAKE) O=$(O)-clang CC=clang all
	test/checks
	for file in $(filter-out %/gss.c,$(wildcard src/*/*.c hooks/*.c)); do \
		clang --analyze --analyzer-output text -Xclang -analyzer-werror -std=gnu17 $(CPPFLAGS_ALL) -I$(O)-clang/gen -o /dev/null $$file || exit 1; \
	done

# Every parser of foreign bytes, FUZZ_SECONDS each.
FUZZ_SECONDS = 30
fuzzers = $(patsubst test/fuzz/%.c,$(O)-fuzz/fuzz/%,$(wildcard test/fuzz/*_fuzz.c))
fuzz:
	$(MAKE) O=$(O)-fuzz CC=clang SANITIZE=fuzzer-no-link,address,undefined OPTIMIZE=-O1 $(fuzzers)
	for fuzzer in $(fuzzers); do \
		$$fuzzer -max_total_time=$(FUZZ_SECONDS) -timeout=5 -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 || exit 1; \
		echo "$$fuzzer: $(FUZZ_SECONDS) s, nothing found"; \
	done
$(O)/fuzz/%: $(O)/test/fuzz/%.o $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ $^ $(shared_libraries)

coverage:
	$(MAKE) O=$(O)-coverage OPTIMIZE=-O0 CFLAGS=--coverage check-only
	lcov --quiet --capture --directory $(O)-coverage --output-file $(O)-coverage/all.info --rc lcov_branch_coverage=1
	lcov --quiet --extract $(O)-coverage/all.info '*/src/*' '*/hooks/*' --output-file $(O)-coverage/ours.info --rc lcov_branch_coverage=1
	lcov --summary $(O)-coverage/ours.info --rc lcov_branch_coverage=1

# ---- the rest ----

clean:
	rm -rf $(O) $(O)-sanitize $(O)-clang $(O)-fuzz $(O)-coverage

-include $(shell find $(O) -type f -name '*.d' 2>/dev/null)
.PHONY: all clean check check-only check-dependencies check-sanitize check-unit lint fuzz coverage
.SECONDARY:
