# SPDX-License-Identifier: Apache-2.0
#
# vCUDA: the client's libraries and the server. What the generator makes of cuda.def stands in $(O)/gen/vcuda.

vcuda_gen = $(O)/gen/vcuda
vcuda_headers = $(addprefix $(vcuda_gen)/,ops.h client_api.h client_entries.h client_tables.h driver_api.h nvml_api.h build.h)
# The check value that NVIDIA's CUDA runtime asks its driver for stands in a file of its own. VCUDA_INTEGRITY=0, or without
# the file, makes libraries for programs of the driver API only.
VCUDA_INTEGRITY ?= $(if $(wildcard vcuda/client/integrity.c),1,0)
vcuda_client_sources = $(filter-out $(if $(filter 1,$(VCUDA_INTEGRITY)),,%/integrity.c),$(sort $(wildcard vcuda/client/*.c)))
vcuda_client_objects = $(patsubst %.c,$(O)/vcuda-client/%.o,$(vcuda_client_sources)) $(O)/vcuda-client/stubs.o
vcuda_server_objects = $(patsubst %.c,$(O)/%.o,$(sort $(wildcard vcuda/server/*.c))) $(O)/vcuda-server/cases.o
vcuda_nvml_objects = $(patsubst %.c,$(O)/vcuda-client/%.o,$(sort $(wildcard vcuda/nvml/*.c)) $(addprefix vcuda/client/,call.c connect.c device_name.c)) \
	$(O)/vcuda-client/nvml_stubs.o
vcuda_programs = $(addprefix $(O)/bin/,ctr-gpu-vcuda ctr-gpu-vcuda-checkpoint ctr-gpu-vcuda-turns) $(O)/lib/vcuda/libcuda.so.1 $(O)/lib/vcuda/libnvidia-ml.so.1

$(vcuda_gen)/generate: $(sort $(wildcard vcuda/generate/*)) $(addprefix vcuda/protocol/,cuda.def nvml.def tables.def) | needs
	@mkdir -p $(@D)
	$(say) CC $@
	$(HOSTCC) -std=gnu17 -D_GNU_SOURCE -I. -O1 $(filter-out $(WERROR),$(warnings)) -o $@ $(filter %.c,$^)

vcuda_generated = $(vcuda_gen)/$(1): $(vcuda_gen)/generate; @$$< $(2) >$$@
$(eval $(call vcuda_generated,ops.h,ops))
$(eval $(call vcuda_generated,client_api.h,api))
$(eval $(call vcuda_generated,client_entries.h,entries))
$(eval $(call vcuda_generated,client_tables.h,tables))
$(eval $(call vcuda_generated,client_stubs.c,stubs))
$(eval $(call vcuda_generated,driver_api.h,driver))
$(eval $(call vcuda_generated,server_cases.c,cases))
$(eval $(call vcuda_generated,nvml_api.h,nvml-api))
$(eval $(call vcuda_generated,nvml_stubs.c,nvml-stubs))

# Written anew only where it says something else.
$(vcuda_gen)/build.h: always | needs
	@mkdir -p $(@D)
	@printf '#ifndef VCUDA_INTEGRITY\n#define VCUDA_INTEGRITY %s\n#endif\n' $(VCUDA_INTEGRITY) >$@.new; cmp -s $@.new $@ || cp $@.new $@; rm $@.new

# It is mapped into foreign images: no library is named, and no symbol asks for a version, so that the C library that the
# program has serves it, glibc from 2.17 on and musl. What is in glibc only with a version of its own is not used. All of them have what
# a stack protector calls; what _FORTIFY_SOURCE makes of memcpy(3) and others musl has not.
vcuda_client_hardening := -fno-common -fstack-protector-strong $(foreach flag,-fstack-clash-protection -fcf-protection -mbranch-protection=standard,\
	$(shell $(CC) -Werror $(flag) -c -x c /dev/null -o /dev/null 2>/dev/null && echo $(flag)))
vcuda_client_cflags = $(filter-out $(hardening) -D_FORTIFY_SOURCE=2 -fsanitize=%,$(CFLAGS_ALL)) -U_FORTIFY_SOURCE $(vcuda_client_hardening) \
	$(if $(findstring aarch64,$(shell $(CC) -dumpmachine 2>/dev/null)),-mno-outline-atomics)

$(O)/vcuda-client/%.o: %.c $(vcuda_headers) | needs
	@mkdir -p $(@D)
	$(say) CC $<
	$(CC) $(CPPFLAGS_ALL) $(vcuda_client_cflags) -MMD -MP -c -o $@ $<

$(O)/vcuda-client/stubs.o: $(vcuda_gen)/client_stubs.c
$(O)/vcuda-client/nvml_stubs.o: $(vcuda_gen)/nvml_stubs.c
$(O)/vcuda-client/stubs.o $(O)/vcuda-client/nvml_stubs.o: $(vcuda_headers)
	@mkdir -p $(@D)
	$(say) CC $(filter %.c,$^)
	$(CC) $(CPPFLAGS_ALL) $(vcuda_client_cflags) -MMD -MP -c -o $@ $(filter %.c,$^)

# What NVML's has of the other is not for programs to find.
$(O)/lib/vcuda/libcuda.so.1: $(vcuda_client_objects)
$(O)/lib/vcuda/libnvidia-ml.so.1: $(vcuda_nvml_objects)
$(O)/lib/vcuda/libnvidia-ml.so.1: vcuda_client_ldflags = -Wl,--version-script=vcuda/nvml/exports.map
$(O)/lib/vcuda/libcuda.so.1 $(O)/lib/vcuda/libnvidia-ml.so.1:
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -shared -nostdlib $(vcuda_client_cflags) $(filter-out $(relative),$(LDFLAGS_ALL)) -Wl,-soname,$(@F) -Wl,-Bsymbolic -Wl,-z,nodelete \
		-Wl,--hash-style=both $(vcuda_client_ldflags) -o $@ $(filter %.o,$^)
	@! nm -u $@ | grep ' cu[A-Z]\| nvml[A-Z]' || { echo "its .def says that these are written by hand"; rm $@; exit 1; }
	ln -sf $(@F) $(@:.1=)

$(vcuda_server_objects): $(vcuda_headers)
$(O)/vcuda/manager/control_client.o: $(vcuda_gen)/build.h

$(O)/vcuda-server/cases.o: $(vcuda_gen)/server_cases.c $(vcuda_headers)
	@mkdir -p $(@D)
	$(say) CC $<
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# The driver's library is loaded into it, so it is no static program.
$(O)/bin/ctr-gpu-vcuda: $(vcuda_server_objects) $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -pie $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -lpthread -ldl

# So is what asks the driver to put away what servers have.
vcuda_checkpoint_objects = $(patsubst %.c,$(O)/%.o,$(sort $(wildcard vcuda/checkpoint/*.c)))
$(O)/bin/ctr-gpu-vcuda-checkpoint: $(vcuda_checkpoint_objects) $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -pie $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -ldl

# Whose turn it is on a GPU.
vcuda_turns_objects = $(patsubst %.c,$(O)/%.o,$(sort $(wildcard vcuda/turns/*.c)))
$(O)/bin/ctr-gpu-vcuda-turns: $(vcuda_turns_objects) $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -pie $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^

all: $(vcuda_programs)
