# SPDX-License-Identifier: Apache-2.0
#
# spank_ctr_gpu.so, for Slurm. It alone takes Slurm's headers; a machine without them builds the rest.

spank_lacks := $(shell CC='$(CC)' CROSS_COMPILE='$(CROSS_COMPILE)' PKG_CONFIG='$(PKG_CONFIG)' pkg/needs slurm)
ifeq ($(spank_lacks),)
spank = $(O)/lib/slurm/spank_ctr_gpu.so
spank_installed = $(slurmdir)/spank_ctr_gpu.so
all: $(spank)
else
all: spank-left-out
spank-left-out:
	@echo "spank_ctr_gpu.so is left out, as this machine lacks: $(spank_lacks)"
.PHONY: spank-left-out
endif

# Debian's slurmd has its plugins in a directory of another name than Slurm itself has.
slurmdir = $(libdir)/$(if $(wildcard /etc/debian_version),slurm-wlm,slurm)

# slurmstepd has the functions that it calls, whatever a distribution's flags say of such, and finds the plugin's by their names.
$(O)/src/slurm/spank/spank.o: CPPFLAGS_ALL += -DCTR_GPU_BINDIR='"$(bindir)"'
$(O)/src/slurm/spank/spank.o: CFLAGS_ALL += -fvisibility=default
$(O)/src/slurm/spank/spank.o: $(O)/gen/libexecdir
$(O)/lib/slurm/spank_ctr_gpu.so: $(O)/src/slurm/spank/spank.o
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -shared $(CFLAGS_ALL) $(LDFLAGS_ALL) -Wl,-z,undefs -o $@ $<
