# SPDX-License-Identifier: Apache-2.0
#
# make            build into build/        make check     tests (as root: the end-to-end part too)
# make install    DESTDIR= prefix=/usr     make demo      a container with a GPU, start to end
# make install-compat, install-vcuda       make install and more   make uninstall   undoes all three
# make bench      measure                  make lint      analysers    make fuzz    make coverage
# make deb        Debian packages          make rpm       RPM packages
# make repository KEY=FINGERPRINT          an apt repository of what make deb has made, signed (docs/packages.md)
# make check-unit                          the tests that need neither root nor engines
# make check-clusters                      Slurm and Kubernetes, with what they are told of GPUs
# make check-engines                       the engines of several Debian releases
# make check-kernels                       under the kernels of several Debian releases; check-kernel: the quick part
# make check-guard                         the guard under those kernels, on a stand-in for dxgkrnl; check-guard-quick: a part
# make check-hostile, check-faults, check-load, check-sanitize             in full, what make check has a part of
# make hostile-images                      images made to harm a host, for other tools (docs/hostile-images.md)
# make check-packages                      the Debian packages and an apt repository on new machines; RPMs, Arch's recipe, Nix' flake
# make check-arm64                         a cross build for arm64, its packages, and its unit tests
# make check-fresh                         the README's commands on new machines of Debian 12, 13 and sid
# make check-nightly                       what a commit is tested with, and all that takes too long for each; some hours
# make check-reproducible                  builds twice and compares
# make abi-dump                            the library's interface, which later builds are compared with
# make static     a tarball that runs on any Linux           make sbom      what is linked into the programs
# make kubernetes-image                    an image with the device plugin for Kubernetes alone (docs/clusters.md)
# make fuzzers    the programs that make fuzz runs, into build/libfuzzer
#
# CC=clang (also in the environment) and SANITIZE=address,undefined work with every target; O= is the build directory; V=1 shows the commands;
# STATIC=0 is for distributions without static libraries.

MAKEFLAGS += --no-builtin-rules --no-print-directory
# Whatever is included before it.
.DEFAULT_GOAL = all
ifndef V
MAKEFLAGS += --silent
endif
say = @printf '  %-4s %s\n'
O ?= build
ifneq ($(words $(O)),1)
$(error make: O= takes one directory without spaces in its name)
endif
# CROSS_COMPILE=aarch64-linux-gnu- builds for another architecture, which a compiler in the environment is not for.
ifneq ($(CROSS_COMPILE)$(origin CC),environment)
CC = $(CROSS_COMPILE)gcc
endif
CXX = $(CROSS_COMPILE)g++
# On the machine that builds, whatever it builds for.
HOSTCC = $(if $(shell command -v cc),cc,$(CC))
AR = $(CROSS_COMPILE)ar
OBJCOPY = $(CROSS_COMPILE)objcopy
PKG_CONFIG = $(CROSS_COMPILE)pkg-config
OPTIMIZE = -O2
SANITIZE =
# A new warning of a compiler newer than those that this was compiled with should not stop a build; packagers empty it anyway.
newest_compiler = $(if $(findstring clang,$(CC)),23,16)
WERROR := $(shell test "$$($(CC) -dumpversion 2>/dev/null | cut -d . -f 1)" -le $(newest_compiler) 2>/dev/null && echo -Werror)
# 0 where a distribution has no static libraries: the hook and ctr-gpu-driverd then are ordinary programs, and a variable in
# the hook's environment can make the loader run code in it.
STATIC = 1

# Root who builds in somebody's checkout ("sudo make demo") would leave files there that stop its owner's next make. So recipes
# are run by the owner of the build directory, but for those of targets that are only of use to root.
owner := $(if $(filter 0,$(shell id -u)),$(filter-out 0,$(shell stat -c %u $(O) 2>/dev/null || stat -c %u $(dir $(O)). 2>/dev/null)))
as_owner := --reuid $(owner) --regid $(shell stat -c %g .) --clear-groups -- \
	env HOME=$(or $(shell getent passwd $(owner) | cut -d : -f 6),/) /bin/sh -c
ifneq ($(and $(owner),$(shell setpriv $(as_owner) 'echo yes' 2>/dev/null)),)
SHELL = setpriv
.SHELLFLAGS = $(as_owner)
endif
for_root = install install-vcuda uninstall install-compat uninstall-compat dependencies-% check check-% demo demo-only bench bench-only real-gpu coverage \
	engines-root packages-to-test recordings
$(for_root): private SHELL = /bin/sh
$(for_root): private .SHELLFLAGS = -c

prefix = /usr
bindir = $(prefix)/bin
# Some clang cannot tell; gcc can where it is the same machine.
multiarch := $(shell $(CC) -print-multiarch 2>/dev/null || gcc -print-multiarch 2>/dev/null)
libdir = $(prefix)/lib/$(multiarch)
libexecdir = $(prefix)/libexec
includedir = $(prefix)/include
mandir = $(prefix)/share/man

# NEWS has the version; a function that is new in it has a node of that name in the map.
VERSION := $(shell sed -n '1s/^ctr-gpu \([0-9.]*\).*/\1/p' NEWS)
SOVERSION = 0
newest_node := $(lastword $(shell sed -n 's/^CTR_GPU_\([0-9.]*\) {$$/\1/p' src/lib/ctr-gpu.map))
ifneq ($(basename $(VERSION)),$(newest_node))
$(error NEWS begins with version "$(VERSION)", and the newest node of src/lib/ctr-gpu.map is for "$(newest_node)")
endif

warnings = -Wall -Wextra -Wconversion $(WERROR) -Wformat=2 -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wundef \
	-Wvla -Wimplicit-fallthrough
hardening = -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fno-common
sanitize_flags = $(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer -U_FORTIFY_SOURCE)
CPPFLAGS_ALL = -D_GNU_SOURCE -DCTR_GPU_VERSION='"$(VERSION)"' -DCTR_GPU_LIBEXECDIR='"$(libexecdir)/ctr-gpu"' -DCTR_GPU_DATADIR='"$(prefix)/share/ctr-gpu"' \
	-Iinclude -Isrc -I. -I$(O)/gen $(tirpc_cflags) $(CPPFLAGS)
# The same bytes wherever the tree and the build directory are. (-ffile-prefix-map would move the counts of make coverage, too.)
# The tree's own path may have spaces, so no name is made of it: make cannot tell them from those between names.
prefix_map = $(foreach kind,debug macro,-f$(kind)-prefix-map='$(CURDIR)'=. -f$(kind)-prefix-map=$(O)=build)
# No tables for exceptions that nobody throws.
CFLAGS_ALL = -std=gnu17 $(OPTIMIZE) -g $(prefix_map) -fno-asynchronous-unwind-tables -fPIC -fvisibility=hidden -ffunction-sections -fdata-sections $(warnings) $(hardening) \
	$(sanitize_flags) $(CFLAGS) $(no_lto)
# Distributions have the linker optimize (-flto), for which objects need not have machine code: the archive of the library would be empty.
# What is tested is what they pack, too.
no_lto = $(if $(findstring -flto,$(CFLAGS)),-fno-lto)
comma := ,
# A relocation is a bit and not 24 bytes where the linker can write that and the C library reads it (glibc 2.36).
linker_help := $(sort $(shell $(CC) -Wl,--help 2>/dev/null | grep -o -e pack-relative-relocs -e emulations))
new_glibc := $(shell printf '\043include <features.h>\n_Static_assert(__GLIBC_PREREQ(2, 36), "");\n' | $(CC) -fsyntax-only -x c - 2>/dev/null && echo yes)
relative = $(if $(new_glibc),$(addprefix -Wl$(comma)-z$(comma),$(filter pack-relative-relocs,$(linker_help))))
LDFLAGS_ALL = -Wl,-z,relro,-z,now,-z,noexecstack $(relative) -Wl,--gc-sections $(sanitize_flags) $(LDFLAGS)

tirpc_cflags := $(shell $(PKG_CONFIG) --cflags libtirpc 2>/dev/null)
shared_libraries = -ljansson -lyaml -ltirpc
static_libraries = $(patsubst -l%,-l:lib%.a,$(shared_libraries))
# Of libtirpc only XDR is used; the shared libtirpc brings Kerberos along.
xdr_inside = $(if $(dynamic),$(shared_libraries),$(patsubst -ltirpc,-l:libtirpc.a,$(shared_libraries)))
# What a program has in it of other projects' archives, for the bill of materials.
link_map = -Wl,-Map=$(O)/$(@F).map

# libctr-gpu is made of the rooms that src/rooms says "lib" of, and the programs link its archive, in which all their functions
# are to be had; the shared library shows the public ones alone.
rooms := $(shell awk -F ' *[|] *' '!/^\#/ && $$3 == "lib" { print ($$1 ~ /^vcuda\// ? "" : "src/") $$1 }' src/rooms)
room_sources = $(sort $(wildcard $(rooms:%=%/*.c)) $(wildcard src/driverd/client*.c) src/driverd/protocol.c)
library_objects = $(room_sources:%.c=$(O)/%.o) $(O)/gen/vcuda_rpc.o
driverd_objects = $(patsubst %.c,$(O)/%.o,$(filter-out $(room_sources),$(sort $(wildcard src/driverd/*.c))))
cli_objects = $(patsubst %.c,$(O)/%.o,$(filter-out src/cli/try/gpu_probe.c,$(sort $(wildcard src/cli/*.c src/cli/*/*.c src/slurm/*.c))))
hook_sources = $(filter-out hooks/bump_allocator.c,$(sort $(wildcard hooks/*.c hooks/runtime/*.c)))
hook_objects = $(hook_sources:%.c=$(O)/%.o)
vcudad_objects = $(patsubst %.c,$(O)/%.o,$(sort $(wildcard vcuda/manager/*.c vcuda/users/*.c)))
programs = $(O)/bin/ctr-gpu $(O)/bin/ctr-gpu-hook $(O)/bin/ctr-gpu-driverd $(O)/bin/ctr-gpu-vcudad
include src/guard/rules.mk
include cluster/rules.mk
include src/slurm/rules.mk

# ASan cannot be linked statically, so a sanitized hook is an ordinary program.
dynamic = $(SANITIZE)$(filter 0,$(STATIC))

# The static hook is linked with musl: before main() glibc asks the processor some 40 to 70 times what it can do, and a
# virtual machine is left for each of these. So what it is made of is compiled once more, with musl's headers, those of
# hooks/musl before them, and of the system's only those of the kernel and of three libraries. The hook reads no YAML.
musl = $(subst gnu,musl,$(multiarch))
MUSL_LIB = /usr/lib/$(musl)
MUSL_INCLUDE = /usr/include/$(musl)
musl_objects = $(patsubst %.c,$(O)/musl/%.o,$(hook_sources) hooks/bump_allocator.c $(wildcard hooks/musl/*.c))
musl_library = $(room_sources:%.c=$(O)/musl/%.o) $(O)/musl/gen/vcuda_rpc.o
musl_cppflags = -nostdinc -Ihooks/musl -isystem $(MUSL_INCLUDE) -isystem $(O)/musl/include -isystem $(shell $(CC) -print-file-name=include)
# musl reads packed relocations only since 1.2.4.
musl_link = -nostdlib -static-pie $(MUSL_LIB)/rcrt1.o $(MUSL_LIB)/crti.o $(1) \
	-Wl,--start-group $(filter-out %libyaml.a,$(static_libraries)) $(MUSL_LIB)/libc.a -lgcc -Wl,--end-group $(MUSL_LIB)/crtn.o
# Of linkers GNU's names emulations, and takes scripts beside its own.
hook_scripts = $(if $(filter emulations,$(linker_help)),-Wl$(comma)-T$(comma)hooks/hook.ld)

unit_tests = $(patsubst %.c,$(O)/%,$(filter-out $(if $(plugin_installed),,test/unit/cluster/%),\
	$(wildcard test/unit/*/*_test.c test/unit/*/*/*_test.c vcuda/test/unit/*/*_test.c)))

all: $(programs) $(O)/lib/libctr-gpu.so.$(SOVERSION) $(O)/lib/libctr-gpu.a

help:
	@sed -n '3,/^$$/s/^# \{0,1\}//p' Makefile

# Before a compiler stumbles over the first of them: what is missing, all of it, and how to install it.
needs_check = @CC='$(CC)' CROSS_COMPILE='$(CROSS_COMPILE)' PKG_CONFIG='$(PKG_CONFIG)' MUSL_LIB='$(MUSL_LIB)' STATIC='$(if $(dynamic),0,1)' pkg/needs
needs-check:
	$(needs_check) check
needs:
	$(needs_check)
	@mkdir -p $(O) 2>/dev/null; test -w $(O) || { echo "You may not write to $(O): $$(stat -c %U $(O) 2>/dev/null || echo nobody) made it." \
		"Take it over with: sudo chown -R $$(id -u) $(O)" >&2; exit 1; }

$(O)/lib/libctr-gpu.a: $(library_objects)
	@mkdir -p $(@D)
	$(say) AR $@
	@rm -f $@
	$(AR) rcsD $@ $^

$(O)/lib/libctr-gpu.so.$(SOVERSION): $(library_objects) src/lib/ctr-gpu.map
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -shared $(CFLAGS_ALL) $(LDFLAGS_ALL) $(link_map) -Wl,-soname,$(@F) -Wl,--version-script=src/lib/ctr-gpu.map \
		$(if $(SANITIZE),,-Wl,-z,defs) -o $@ $(library_objects) -Wl,--as-needed $(xdr_inside)
	ln -sf $(@F) $(@D)/libctr-gpu.so

$(O)/musl/libctr-gpu.a: $(musl_library)
	@mkdir -p $(@D)
	$(say) AR $@
	@rm -f $@
	$(AR) rcsD $@ $^

$(O)/bin/ctr-gpu: $(cli_objects) $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -pie $(CFLAGS_ALL) $(LDFLAGS_ALL) $(link_map) -o $@ $^ -Wl,--as-needed $(xdr_inside)
	ln -sf $(@F) $(@D)/nvidia-container-cli

hook_parts = $(if $(dynamic),$(hook_objects) $(O)/lib/libctr-gpu.a,$(musl_objects) $(O)/musl/libctr-gpu.a)
# What both C libraries must lay out alike: names and sizes, one a line.
$(O)/musl/layouts: $(O)/test/layouts.o $(O)/musl/test/layouts.o
	for object in $^; do $(CROSS_COMPILE)nm -S $$object | sed -n 's/^[0-9a-f]* \([0-9a-f]*\) . /\1 /p' | sort -k 2 >$${object%.o}.sizes || exit 1; done
	diff -u $(^:.o=.sizes)
	@touch $@

$(O)/bin/ctr-gpu-hook: $(hook_parts) $(if $(dynamic),,$(O)/musl/layouts) hooks/hook.ld
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(filter-out $(if $(dynamic),,$(relative)),$(LDFLAGS_ALL)) $(link_map) -o $@ \
		$(if $(dynamic),$(hook_parts) -pie $(shared_libraries),$(call musl_link,$(hook_parts)) $(hook_scripts))
	ln -sf $(@F) $(@D)/ctr-gpu-runtime
	ln -sf ctr-gpu-runtime $(@D)/nvidia-container-runtime
	ln -sf $(@F) $(@D)/nvidia-container-runtime-hook
	ln -sf $(@F) $(@D)/nvidia-cdi-hook

$(O)/bin/ctr-gpu-driverd: $(driverd_objects) $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -pie $(CFLAGS_ALL) $(LDFLAGS_ALL) $(link_map) -o $@ $^ -Wl,--as-needed $(if $(dynamic),-ltirpc,-l:libtirpc.a) -ldl

$(O)/bin/ctr-gpu-vcudad: $(vcudad_objects) $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -pie $(CFLAGS_ALL) $(LDFLAGS_ALL) $(link_map) -o $@ $^ -Wl,--as-needed $(xdr_inside)

# A program without libraries, and its bytes in ours.
$(O)/gen/try_program: src/cli/try/gpu_probe.c
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -std=gnu17 -Os -ffreestanding -fno-builtin -fno-pie -fno-stack-protector -fno-asynchronous-unwind-tables -Wall -Wextra $(WERROR) \
		-nostdlib -static -Wl,-z,noexecstack,-z,norelro,-z,max-page-size=4096,--build-id=none,-s -o $@ $<
# The bytes of a file, as C has them.
$(O)/gen/%.h: $(O)/gen/%
	{ echo 'static const unsigned char $*[] __attribute__((aligned(8))) = {' && od -An -v -tx1 $< | sed 's/ \(..\)/0x\1,/g' && echo '};'; } >$@
$(O)/src/cli/try/try.o: $(O)/gen/try_program.h

# What vCUDA's manager is asked, in C.
$(O)/gen/vcuda_rpc.x: vcuda/protocol/control.x | needs
	@mkdir -p $(@D)
	cp $< $@
$(O)/gen/vcuda_rpc.h $(O)/gen/vcuda_rpc.c: $(O)/gen/vcuda_rpc.x
	rm -f $@
	cd $(O)/gen && rpcgen $(if $(filter %.h,$@),-h,-c) -o $(@F) $(<F)
$(O)/gen/vcuda_rpc.o: $(O)/gen/vcuda_rpc.c $(O)/gen/vcuda_rpc.h
	$(say) CC $<
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -w -c -o $@ $<
# Whoever includes it, so that no list of them falls behind.
rpc_users := $(shell grep -rlE '"(vcuda_rpc|vcuda/control)\.h"' --include='*.c' src vcuda cluster test)
$(rpc_users:%.c=$(O)/%.o) $(rpc_users:%.c=$(O)/musl/%.o): $(O)/gen/vcuda_rpc.h

# What no start of a container on GPU-PV waits for: small.
small = $(cli_objects) $(plugin_objects) $(foreach room,cdi drm driverd engines nvidia,$(filter $(O)/src/$(room)/% $(O)/musl/src/$(room)/%,$(library_objects) $(musl_library)))
$(small): OPTIMIZE := $(if $(filter -O2,$(OPTIMIZE)),-Os,$(OPTIMIZE))

$(O)/%.o: %.c | needs
	@mkdir -p $(@D)
	$(say) CC $<
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(O)/musl/%.o: %.c $(O)/musl/include/made | needs
	@mkdir -p $(@D)
	$(say) CC '$< (musl)'
	$(CC) $(musl_cppflags) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<
$(O)/musl/gen/vcuda_rpc.o: $(O)/gen/vcuda_rpc.c $(O)/gen/vcuda_rpc.h $(O)/musl/include/made
	@mkdir -p $(@D)
	$(say) CC '$< (musl)'
	$(CC) $(musl_cppflags) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -w -c -o $@ $<
$(O)/musl/hooks/musl/compat.o: $(O)/gen/errno_names.h
$(O)/gen/errno_names.h: $(O)/musl/include/made
	@mkdir -p $(@D)
	echo '#include <errno.h>' | $(CC) $(musl_cppflags) -E -dM - | sed -n 's/^#define \(E[A-Z0-9]*\) [0-9]*$$/[\1] = "\1",/p' | LC_ALL=C sort >$@
# Where the compiler has them, which is elsewhere in a build for another machine.
$(O)/musl/include/made: | needs
	@rm -rf $(@D) && mkdir -p $(@D)
	for header in linux/types.h asm/types.h asm-generic/types.h jansson.h jansson_config.h yaml.h; do \
		found=$$(echo "#include <$$header>" | $(CC) $(CPPFLAGS) -M -x c - | tr ' ' '\n' | grep "/$$header$$" | head -n 1) && \
		case $$header in */*) ln -s "$${found%/*}" $(@D)/ ;; *) ln -s "$$found" $(@D)/ ;; esac || exit 1; \
	done
	touch $@

$(unit_tests): %: %.o $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ -Wl,--start-group $(filter %.o %.a,$^) -Wl,--end-group -lcmocka $(if $(dynamic),$(shared_libraries),-Wl,--as-needed $(static_libraries))

# Libraries that misbehave, for the test of ctr-gpu-driverd.
driverd_test_libraries = $(patsubst test/unit/driverd/libraries/%.c,$(O)/test/lib/%.so,$(wildcard test/unit/driverd/libraries/*.c))

$(O)/test/lib/%.so: test/unit/driverd/libraries/%.c
	@mkdir -p $(@D)
	$(CC) -shared $(CPPFLAGS_ALL) $(filter-out -fsanitize=%,$(CFLAGS_ALL)) -MMD -MP -o $@ $<

$(O)/test/unit/driverd/driverd_test: $(driverd_test_libraries) $(O)/bin/ctr-gpu-driverd
# Packagers give make flags of their own, which else would cancel what is added.
$(unit_tests:%=%.o): override CPPFLAGS += -Itest/unit -I.

include vcuda/rules.mk

# ---- tests ----

include $(wildcard test/*/rules.mk) vcuda/test/rules.mk examples/rules.mk

tests = $(unit_tests) $(test_programs)
$(test_programs): | needs
$(unit_tests): | needs-check

# Here, where every folder has added its own to the list.
test-programs: $(test_programs)

# What is missing is installed first: a fresh machine has git, make and a compiler. Then all cores build, unless make was told how many.
all_cores = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))
dependencies-%:
	test/install-deps $(subst +, ,$*)

check_groups = checks unit e2e hostile
check: dependencies-$(if $(FULL),ci,check)
	$(MAKE) $(all_cores) check-built
	$(MAKE) check-only

check-built: needs-check all $(tests)
check-only: check-built
	test/run $(O) $(check_groups)

# What continuous integration runs for a commit: FULL=1 makes "make check" do all of ci_groups besides, after building
# ci_programs with what ci_dependencies are in test/install-deps. A folder of tests adds to them in its rules.mk.
ifdef FULL
# What takes long comes first.
check_groups := checks unit $(ci_groups) e2e hostile
check-built: $(ci_programs)
# As test/run does it, which compiles much of this again elsewhere.
ifneq ($(wildcard /usr/lib/ccache),)
export PATH := /usr/lib/ccache:$(PATH)
export CCACHE_DIR ?= $(abspath $(O))/ccache
# Packages are built with another locale, which only the words of warnings depend on.
export CCACHE_SLOPPINESS ?= locale
endif
endif
dependencies-ci:
	test/install-deps check ccache $(ci_dependencies)

# What takes too long for each commit runs every night and before a release: nightly_groups besides, every case of each file,
# every shape, more rounds of races in a process, and more of those whose rounds are starts and commands. A case that fails there alone
# is put into the commit's run.
ifdef NIGHTLY
export CTR_GPU_TEST_NIGHTLY = 1
export CTR_GPU_TEST_ROUNDS = 10000
export CTR_GPU_TEST_STARTS = 100
export CTR_GPU_TEST_TIMEOUT = 3600
export FUZZ_TIMEOUT = 10
export CTR_GPU_SHAPES = 1
check_groups += $(nightly_groups)
check-built: $(nightly_programs)
endif
dependencies-nightly: dependencies-ci
	test/install-deps $(nightly_dependencies)
check-nightly: dependencies-nightly
	$(MAKE) $(all_cores) check-built FULL=1 NIGHTLY=1
	$(MAKE) check-only FULL=1 NIGHTLY=1

# The whole suite with programs that notice their own memory errors and undefined behaviour.
check-sanitize:
	$(MAKE) O=$(O)-sanitize SANITIZE=address,undefined OPTIMIZE=-O1 check-only

# Every hostile shape of a root filesystem with every kind of volume; `make check` has a sample.
check-hostile: all $(tests)
	CTR_GPU_SHAPES=1 CTR_GPU_TEST_TIMEOUT=3600 test/run $(O) hostile

hostile-images: $(tests)
	CTR_GPU_BUILD=$(O) test/hostile/layout make $(O)/hostile-images

# The interface of the library as it is now is what later builds are compared with: at a release, and before it when the
# comparison in "make check" complains about a change that is meant.
abi-dump: dependencies-abi $(O)/lib/libctr-gpu.so.$(SOVERSION)
	test/abi dump $(O)

check-unit: needs-check $(unit_tests)
	test/run $(O) unit

# Home rules; builds by another compiler and with other optimizations, whose warnings differ; the analyser.
LINT_CLANG =
formatted = $(wildcard include/*.h src/*/*.[ch] src/*/*/*.[ch] hooks/*.[ch] hooks/runtime/*.[ch] cluster/*.[ch] test/*/*.[ch] test/*/*/*.[ch] \
	test/*/*/*/*.[ch] vcuda/*/*.[ch] vcuda/test/*/*.[ch] vcuda/test/*/*/*.[ch])
lint: dependencies-lint
	test/checks
	clang-format --dry-run -Werror $(formatted)
	$(MAKE) O=$(O)-clang CC=clang all test-programs
	$(MAKE) O=$(O)-o0 OPTIMIZE=-O0 all
	$(MAKE) O=$(O)-o3 OPTIMIZE='-O3 -DNDEBUG' all
	$(MAKE) -k analyse

analysed = $(addprefix $(O)/analysed/,$(filter-out src/guard/bpf/% vcuda/test/%,$(filter-out $(if $(spank_installed),,src/slurm/spank/%),$(wildcard src/*/*.c src/*/*/*.c)) $(wildcard vcuda/*/*.c hooks/*.c hooks/runtime/*.c $(if $(plugin_installed),cluster/*.c))) \
	$(wildcard test/hosts/*.c test/fuzz/*.c vcuda/test/fuzz/*.c))
analyse: $(analysed)
	@echo "The analyser finds nothing in $(words $(analysed)) files."
# After any change of a header, all of them.
$(analysed): $(O)/gen/try_program.h $(O)/gen/vcuda_rpc.h $(if $(guard_installed),$(O)/gen/guard_object.h) $(if $(plugin_installed),$(plugin_messages:=.h)) $(vcuda_headers) test/analyse \
	$(wildcard include/*.h src/*/*.h src/*/*/*.h vcuda/*/*.h vcuda/*/*.def hooks/*.h hooks/*/*.h cluster/*.h test/*/*.h vcuda/test/*/*.h)
$(analysed): $(O)/analysed/%: %
	@mkdir -p $(@D)
	test/analyse "$(LINT_CLANG)" -std=gnu17 $(CPPFLAGS_ALL) -I. -DCTR_GPU_COMMIT='""' $<
	touch $@

# Tests run as other users, too, whose counts belong into the same files. _exit(2) writes no counts.
coverage: coverage_flags = --coverage -D_exit=exit
coverage: dependencies-coverage
	$(MAKE) O=$(O)-coverage OPTIMIZE=-O0 CFLAGS='$(coverage_flags)' all test-programs
	find $(O)-coverage -name '*.gcno' | sed 's/gcno$$/gcda/' | xargs touch
	find $(O)-coverage -name '*.gcda' -exec chmod a+rw {} +
	$(MAKE) O=$(O)-coverage OPTIMIZE=-O0 CFLAGS='$(coverage_flags)' check-only
	find $(O)-coverage -name '*.gcda' -empty -delete
	lcov --quiet --capture --directory $(O)-coverage --output-file $(O)-coverage/all.info --rc lcov_branch_coverage=1
	lcov --quiet --extract $(O)-coverage/all.info '*/src/*' '*/hooks/*' '*/cluster/*' $(foreach part,client grant manager nvml protocol server,'*/vcuda/$(part)/*') --output-file $(O)-coverage/ours.info --rc lcov_branch_coverage=1
	lcov --summary $(O)-coverage/ours.info --rc lcov_branch_coverage=1

# ---- installation ----

hooksdir = $(prefix)/share/containers/oci/hooks.d
INSTALL = install
STRIP = $(CROSS_COMPILE)strip
man_section = $(subst .,,$(suffix $(1)))
# What "ctr-gpu setup docker" writes into daemon.json: other programs look for this name there.
nvidia_names = $(libexecdir)/ctr-gpu/nvidia-names

# The client has the way to ctr-gpu-driverd compiled in.
$(O)/src/driverd/client.o $(O)/musl/src/driverd/client.o: $(O)/gen/libexecdir
$(O)/gen/libexecdir: always
	@mkdir -p $(@D)
	@echo '$(libexecdir)' | cmp -s - $@ || echo '$(libexecdir)' >$@
# So have the command and the hook the commit; a source tarball has it in pkg/commit, and packages are given it.
ifndef COMMIT
COMMIT := $(shell pkg/version commit)
endif
versioned = $(foreach source,src/cli/main hooks/main,$(O)/$(source).o $(O)/musl/$(source).o)
$(versioned): override CPPFLAGS += -DCTR_GPU_COMMIT='"$(COMMIT)"'
$(versioned): $(O)/gen/commit
$(O)/gen/commit: always
	@mkdir -p $(@D)
	@echo '$(COMMIT)' | cmp -s - $@ || echo '$(COMMIT)' >$@
always:

docdir = $(prefix)/share/doc/ctr-gpu
bashcompdir = $(prefix)/share/bash-completion/completions
zshcompdir = $(prefix)/share/zsh/site-functions
fishcompdir = $(prefix)/share/fish/vendor_completions.d
# Where systemd and udev look; OpenRC's script is put into /etc/init.d by distributions that have OpenRC.
unitdir = $(prefix)/lib/systemd/system
udevdir = $(prefix)/lib/udev/rules.d
openrcdir = $(prefix)/share/ctr-gpu/openrc
# Where AppArmor's parser looks for what profiles include, unless it is all below one directory.
apparmordir = $(if $(filter /usr,$(prefix)),/etc,$(prefix)/etc)/apparmor.d/abstractions
unregister = $(prefix)/share/ctr-gpu/unregister
selinux = $(prefix)/share/ctr-gpu/selinux
# What is installed, and where, says pkg/files.
installed = build='$(O)' version='$(VERSION)' $(foreach name,prefix bindir libdir libexecdir includedir mandir docdir hooksdir unitdir udevdir openrcdir apparmordir slurmdir \
	bashcompdir zshcompdir fishcompdir INSTALL STRIP DESTDIR,$(name)='$($(name))') pkg/installed

# The static library's own names are no concern of those who link it, as they are none in the shared one, and what no public
# function needs is not in it.
public_functions = $(shell sed -n 's/^[[:space:]]*\(ctr_gpu_[a-z0-9_]*\);.*/\1/p' src/lib/ctr-gpu.map)
install-files: not-packaged all sbom
	@mkdir -p $(O)/install
	sed -e 's,@prefix@,$(prefix),; s,@libdir@,$(libdir),; s,@includedir@,$(includedir),; s,@version@,$(VERSION),' \
		src/lib/ctr-gpu.pc.in >$(O)/install/ctr-gpu.pc
	$(CC) -r -nostdlib -o $(O)/install/libctr-gpu.o -Wl,--gc-sections $(public_functions:%=-Wl,-u,%) -Wl,-T,src/lib/archive.ld $(O)/lib/libctr-gpu.a
	$(OBJCOPY) --wildcard --keep-global-symbol='ctr_gpu_*' --strip-unneeded $(O)/install/libctr-gpu.o
	rm -f $(O)/install/libctr-gpu.a && $(AR) rcsD $(O)/install/libctr-gpu.a $(O)/install/libctr-gpu.o

# What a package has installed is the package's: overwritten, it is of two versions, and uninstalled, dpkg and rpm miss it.
# A simulated host (test/hosts) hides the package's files; there nothing is overwritten.
.PHONY: not-packaged
not-packaged:
	$(if $(DESTDIR),,@test -e $(bindir)/ctr-gpu -o -e $(libdir)/libctr-gpu.so.$(SOVERSION) || exit 0; \
		package=$$(dpkg-query -S $(bindir)/ctr-gpu $(libdir)/libctr-gpu.so.$(SOVERSION) 2>/dev/null | sed -n '1s/:.*//p'); \
		test "$$package" || package=$$(rpm -q --qf '%{name}\n' -f $(bindir)/ctr-gpu 2>/dev/null) || package=; \
		test ! "$$package" || { echo "The files below $(prefix) are those of the package $$package. Remove the package first, with apt or dnf;" \
		"\"make install prefix=/usr/local\" installs beside it." >&2; exit 1; })

install: install-files
	$(installed) install base $(if $(guard_installed),guard) $(if $(plugin_installed),plugin) $(if $(spank_installed),slurm)

# GPUs without a device: the client library that containers get, its server, and their manager.
install-vcuda: install
	$(installed) install vcuda

# For debian/rules and the spec.
packaged-%:
	@$(installed) package $*

# Nothing that was installed for somebody else to pack is anybody's to run. CDI specs name the hook, and engines start no container
# that asks for their devices without it.
uninstall: not-packaged
	$(if $(DESTDIR),,test ! -x $(unregister) || $(unregister))
	$(if $(DESTDIR),,test ! -x $(selinux) || $(selinux) unload || true)
	$(call compat_each,compat_unlink)
	$(if $(DESTDIR),,grep -lsF '"$(bindir)/ctr-gpu-hook"' /etc/cdi/ctr-gpu-*.json /var/run/cdi/ctr-gpu-*.json | xargs -r rm -f)
	$(if $(DESTDIR),,rmdir --ignore-fail-on-non-empty /etc/cdi /etc/ctr-gpu 2>/dev/null || true)
	$(installed) paths base guard plugin slurm vcuda | sed 's,^,$(DESTDIR),' | xargs -d '\n' rm -f
	# Directories that are ours alone have our name, or are below one that has.
	$(installed) paths base guard plugin slurm vcuda | while read -r path; do \
		while path=$${path%/*}; case $$path in */ctr-gpu*) ;; *) break ;; esac; do echo "$(DESTDIR)$$path"; done; \
	done | sort -ru | xargs -d '\n' rmdir --ignore-fail-on-non-empty 2>/dev/null || true
	rmdir --ignore-fail-on-non-empty $(addprefix $(DESTDIR),$(wildcard $(unitdir)/sleep.target.wants) $(nvidia_names) $(hooksdir) $(apparmordir) $(prefix)/share/selinux/packages) 2>/dev/null || true

# The names by which Docker and others find NVIDIA's programs, and what they are of ours. They are NVIDIA's, so they are taken
# only when asked for, and never from a file that is not ours.
compat := $(shell sed -n 's,^ctr-gpu-nvidia-compat *| link *| \([^ ]*\) *| @bindir@/\([^ ]*\).*,\2:\1,p' pkg/files)
compat_ours = test "$$(readlink $(DESTDIR)$(bindir)/$(1))" = $(2)
compat_each = $(foreach pair,$(compat),$(call $(1),$(firstword $(subst :, ,$(pair))),$(lastword $(subst :, ,$(pair)))))
compat_refuse = if test -e $(DESTDIR)$(bindir)/$(1) || test -L $(DESTDIR)$(bindir)/$(1); then $(call compat_ours,$(1),$(2)) || { \
	echo "$(DESTDIR)$(bindir)/$(1) is there already and not ours; remove the package that it belongs to first" >&2; exit 1; }; fi;
# A page of its own, or that of our program, as man(1) finds it wherever its files are compressed.
compat_source = $(or $(wildcard man/$(1).[1-9]),$(wildcard man/$(2).[1-9]))
compat_section = $(call man_section,$(compat_source))
compat_page = $(DESTDIR)$(mandir)/man$(compat_section)/$(1).$(compat_section)
compat_link = ln -sf $(2) $(DESTDIR)$(bindir)/$(1); \
	$(if $(wildcard man/$(1).[1-9]),$(INSTALL) -m 644 $(compat_source),echo '.so man$(compat_section)/$(2).$(compat_section)' >) $(compat_page);
compat_unlink = if $(call compat_ours,$(1),$(2)); then rm -f $(DESTDIR)$(bindir)/$(1) $(compat_page); fi;

install-compat: install
	@$(call compat_each,compat_refuse)
	set -e; $(call compat_each,compat_link)

uninstall-compat:
	$(call compat_each,compat_unlink)

include pkg/rules.mk

# ---- the rest ----

clean:
	rm -rf $(O) $(O)-sanitize $(O)-clang $(O)-o0 $(O)-o3 $(O)-coverage

-include $(shell find $(O) -type f -name '*.d' 2>/dev/null)
.PHONY: all help needs needs-check clean test-programs check check-built check-only check-hostile hostile-images check-sanitize check-unit dependencies-ci abi-dump lint analyse \
	check-nightly dependencies-nightly coverage always install-files install install-vcuda uninstall \
	install-compat uninstall-compat
.SECONDARY:
# A file that was not finished is not there.
.DELETE_ON_ERROR:
