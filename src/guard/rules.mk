# SPDX-License-Identifier: Apache-2.0
#
# ctr-gpu-guard: BPF programs for the kernel, and what loads them. It alone takes clang and libbpf; a machine without them
# builds the rest.

guard_lacks := $(shell CC='$(CC)' CROSS_COMPILE='$(CROSS_COMPILE)' PKG_CONFIG='$(PKG_CONFIG)' pkg/needs guard)
guard_sources = $(sort $(wildcard src/guard/program/*.c))
guard_objects = $(guard_sources:%.c=$(O)/%.o)
ifeq ($(guard_lacks),)
programs += $(O)/bin/ctr-gpu-guard
guard_installed = $(libexecdir)/ctr-gpu/ctr-gpu-guard
else
all: guard-left-out
guard-left-out:
	@echo "ctr-gpu-guard is left out, as this machine lacks: $(guard_lacks)"
.PHONY: guard-left-out
endif

# Registers of the machine whose calls are traced.
guard_machine = $(if $(filter aarch64%,$(shell $(CC) -dumpmachine 2>/dev/null)),arm64,x86)

guard_bpf_objects = $(patsubst src/guard/bpf/%.c,$(O)/gen/guard/%.o,$(sort $(wildcard src/guard/bpf/*.c)))

$(guard_bpf_objects): src/guard/rules.mk
$(guard_bpf_objects): $(O)/gen/guard/%.o: src/guard/bpf/%.c $(wildcard src/guard/bpf/*.h) src/guard/layout.h | needs
	@mkdir -p $(@D)
	$(say) BPF $<
	clang -target bpf -mcpu=v3 -D__TARGET_ARCH_$(guard_machine) -O2 -g -ffile-prefix-map='$(CURDIR)'=. -Wall -Wextra -Wno-unused-parameter \
		$(WERROR) -Isrc -c -o $@ $<
# bpftool would link them, too, but is not to be had everywhere; libbpf is what it does that with.
$(O)/gen/guard/link: src/guard/link/link.c | needs
	@mkdir -p $(@D)
	$(say) CC $@
	$(HOSTCC) -std=gnu17 -O1 $(filter-out $(WERROR),$(warnings)) -o $@ $< -lbpf
$(O)/gen/guard_object: $(O)/gen/guard/link $(guard_bpf_objects)
	$(say) LD $@
	$(O)/gen/guard/link $@ $(guard_bpf_objects)
$(O)/src/guard/program/attach_programs.o: $(O)/gen/guard_object.h

$(O)/bin/ctr-gpu-guard: $(guard_objects) $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -pie $(CFLAGS_ALL) $(LDFLAGS_ALL) $(link_map) -o $@ $^ -Wl,--as-needed -lbpf $(xdr_inside)
