# SPDX-License-Identifier: Apache-2.0
#
# test-hosts: the simulated hosts. What a host is made of is compiled here, so that entering one only copies files:
# files/lib-* and files/dxcore-* go to /usr/lib/wsl/lib, files/store-* into driver stores, under the names they have here.

hosts = $(O)/test/hosts
hosts_files = $(hosts)/files

# Driver libraries must load in old images. They are linked against empty libraries that have libc's names and no
# versions, so that no symbol asks for a glibc newer than 2.2.5 (linked as usual on Debian 12, dlopen() asks for 2.34).
hosts_cflags = -std=gnu17 -O2 -fPIC -fvisibility=hidden $(warnings) -D_GNU_SOURCE -U_FORTIFY_SOURCE -fno-stack-protector
hosts_libc = $(hosts)/libc/libc.so.6 $(hosts)/libc/libdl.so.2
hosts_link = -nostdlib -Wl,--no-as-needed -Wl,--unresolved-symbols=ignore-all -Wl,--hash-style=both -Wl,-z,noexecstack $(hosts_libc)

hosts_lib_nvidia = libcuda.so libcuda.so.1 libcuda.so.1.1 libnvidia-ml.so.1 libnvidia-encode.so libnvidia-encode.so.1 \
	libnvcuvid.so libnvcuvid.so.1 libnvidia-opticalflow.so libnvidia-opticalflow.so.1 libnvoptix.so.1 libnvdxdlkernels.so \
	libnvwgf2umx.so libcudadebugger.so.1 libnvidia-ngx.so.1 nvidia-smi
hosts_lib_packaged = libd3d12.so libd3d12core.so
hosts_store_nvidia = libcuda.so.1.1 libcuda_loader.so libnvidia-ml.so.1 libnvidia-ml_loader.so libnvidia-ptxjitcompiler.so.1 \
	libnvidia-nvvm.so.4 libnvdxgdmal.so.1 libnvwgf2umx.so libnvcuvid.so.1 libnvidia-encode.so.1 libnvoptix.so.1 \
	libnvidia-tileiras.so.1 libnvidia-gpucomp.so nvidia-smi nvcubins.bin nvlddmkm.sys nvapi64.dll nv_dispi.inf
hosts_store_intel = libigd12umd64.so libigc.so libigdml64.so libigdgmm_w.so.12 libLLVM-14.so libwsl_compute_helper.so iigd_dch.inf igdkmdn64.sys
hosts_store_amd = B025777/amdxc64.so B025777/libamdenc64.so u0198975.inf amdkmdag.sys
hosts_store_npu = libamdxdna_mcdm.so kipudrv.inf kipudrv.sys
hosts_store_qualcomm = libqcdx12arm64wslum.so libqcdxarm64wslcompiler.so qcdx8380.inf qcdxkm8380.sys
hosts_store_windows = qcnspmcdm8380.inf qcnspmcdm8380.sys qnnhtp.dll
hosts_store_microsoft = basicrender.inf

# The drivers of native hosts: what has a SONAME with a number, and what has its whole name as SONAME. One is older than the
# note in which libcuda tells its CUDA version, and one newer than anybody's list of libraries.
hosts_drivers = 570.86.10 580.159.04 999.10.01
hosts_cuda_570.86.10 = -DCUDA_VERSION=12080
hosts_cuda_580.159.04 = -DCUDA_VERSION=13000 -DCUDA_NOTE='"13.0"'
hosts_cuda_999.10.01 = -DCUDA_VERSION=19020 -DCUDA_NOTE='"19.2"'
hosts_native_numbered = libcuda:1 libnvidia-ml:1 libnvidia-ptxjitcompiler:1 libnvidia-nvvm:4 libcudadebugger:1 \
	libnvidia-opencl:1 libnvidia-cfg:1 libnvidia-allocator:1 libnvidia-encode:1 libnvcuvid:1 libnvidia-opticalflow:1 \
	libnvidia-fbc:1 libvdpau_nvidia:1 libnvoptix:1 libnvidia-ngx:1 libEGL_nvidia:0 libGLX_nvidia:0 libGLESv1_CM_nvidia:1 \
	libGLESv2_nvidia:2
hosts_native_whole = libnvidia-eglcore libnvidia-glcore libnvidia-glsi libnvidia-tls libnvidia-rtcore libnvidia-gpucomp \
	libnvidia-glvkspirv libnvidia-pkcs11-openssl3
hosts_native_numbered_999.10.01 = libnvidia-tomorrow:1
hosts_native_whole_999.10.01 = libnvidia-tomorrowcore
hosts_native_32 = libcuda:1 libnvidia-ml:1 libnvidia-ptxjitcompiler:1 libnvidia-opencl:1 libGLX_nvidia:0

# hosts_native_set(VERSION, SET): the files of a set
hosts_names = $(foreach name,$(2),$(firstword $(subst :, ,$(name))).so.$(1))
hosts_native_lib = $(call hosts_names,$(1),$(hosts_native_numbered) $(hosts_native_numbered_$(1)) $(hosts_native_whole) $(hosts_native_whole_$(1)))
hosts_native_lib32 = $(call hosts_names,$(1),$(hosts_native_32))
hosts_native_bin = nvidia-smi nvidia-debugdump nvidia-persistenced nvidia-cuda-mps-control nvidia-cuda-mps-server
hosts_native_firmware = gsp_ga10x.bin gsp_tu10x.bin
hosts_native_xorg = nvidia_drv.so
hosts_native_vulkan = nvidia_icd.json
hosts_native_layers = nvidia_layers.json
hosts_native_egl = 10_nvidia.json
hosts_native_opencl = nvidia.icd
hosts_native_profiles = nvidia-application-profiles-$(1)-rc
hosts_native_sets := lib bin firmware xorg vulkan layers egl opencl profiles \
	$(if $(shell echo 'int i;' | $(CC) -m32 -nostdlib -shared -x c -o /dev/null - 2>/dev/null && echo yes),lib32)
hosts_native_set = $(patsubst %,$(hosts_files)/native-$(1)/$(2)/%,$(call hosts_native_$(2),$(1)))

hosts_made = $(foreach version,$(hosts_drivers),$(foreach set,$(hosts_native_sets),$(call hosts_native_set,$(version),$(set)))) \
	$(hosts_lib_nvidia:%=$(hosts_files)/lib-nvidia/%) $(hosts_lib_packaged:%=$(hosts_files)/lib-packaged/%) \
	$(foreach set,nvidia intel amd npu qualcomm windows microsoft,$(hosts_store_$(set):%=$(hosts_files)/store-$(set)/%)) \
	$(foreach kind,present no-symbols hangs crashes,$(hosts_files)/dxcore-$(kind)/libdxcore.so)
include test/hosts/loaders.mk
hosts_sources = $(wildcard test/hosts/*.c)
hosts_enter_objects = $(patsubst test/hosts/%.c,$(hosts)/%.o,$(filter-out test/hosts/dxgtest.c,$(hosts_sources)))

hosts_programs = $(hosts)/enter $(hosts)/dxgtest $(hosts_made)
test_programs += $(hosts_programs)

test-hosts: $(hosts_programs)

$(hosts)/enter: $(hosts_enter_objects)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ $(if $(dynamic),-pie -ljansson,-static-pie -l:libjansson.a)

$(hosts)/dxgtest: test/hosts/dxgtest.c
	$(say) LD $@
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< -lpthread

$(hosts_libc): $(hosts)/libc/%: test/hosts/lib/libc.S
	@mkdir -p $(@D)
	$(CC) -shared -nostdlib -Wl,-soname,$* -o $@ $<

$(hosts)/libc32/libc.so.6: $(hosts)/libc32/%: test/hosts/lib/libc.S
	@mkdir -p $(@D)
	$(CC) -m32 -shared -nostdlib -Wl,-soname,$* -o $@ $<

hosts_library = @mkdir -p $(@D) && $(CC) -shared $(hosts_cflags)

$(hosts_files)/dxcore-%/libdxcore.so: test/hosts/lib/dxcore.c test/hosts/lib/dxcore-com.c test/hosts/abi.h $(hosts_libc)
	$(hosts_library) $(hosts_dxcore_$*) -Wl,-soname,libdxcore.so -o $@ $< $(if $(filter no-symbols,$*),,$(word 2,$^)) $(hosts_link)
hosts_dxcore_no-symbols = -DWITHOUT_SYMBOLS
hosts_dxcore_hangs = -DHANGS
hosts_dxcore_crashes = -DCRASHES

$(hosts_files)/lib-packaged/libd3d12.so: test/hosts/lib/d3d12.c test/hosts/abi.h $(hosts_libc)
	$(hosts_library) -Wl,-soname,libd3d12.so -o $@ $< $(hosts_link)
$(hosts_files)/store-intel/libwsl_compute_helper.so: test/hosts/lib/intel-helper.c $(hosts_libc)
	$(hosts_library) -Wl,-soname,libwsl_compute_helper.so -o $@ $< $(hosts_link)

hosts_kmt = test/hosts/lib/kmt.c test/hosts/lib/kmt.h test/hosts/abi.h test/hosts/lib/cuda.h test/hosts/lib/nvml.h $(hosts_libc)

# One file under three names, none of them a link: so Windows lays them down.
$(patsubst %,$(hosts_files)/lib-nvidia/%,libcuda.so libcuda.so.1 libcuda.so.1.1): test/hosts/lib/cuda.c $(hosts_kmt)
	$(hosts_library) -Wl,-soname,libcuda.so.1 -o $@ $< test/hosts/lib/kmt.c $(hosts_link)
$(hosts_files)/lib-nvidia/libnvidia-ml.so.1: test/hosts/lib/nvml.c $(hosts_kmt)
	$(hosts_library) -Wl,-soname,libnvidia-ml.so.1 -o $@ $< test/hosts/lib/kmt.c $(hosts_link)
$(hosts_files)/store-nvidia/libcuda.so.1.1: test/hosts/lib/cuda-store.c $(hosts_kmt)
	$(hosts_library) -Wl,-soname,libcuda.so.1.1 -o $@ $< test/hosts/lib/kmt.c $(hosts_link)
$(hosts_files)/store-nvidia/libnvidia-ml.so.1: test/hosts/lib/nvml-store.c $(hosts_kmt)
	$(hosts_library) -Wl,-soname,libnvidia-ml.so.1 -o $@ $< test/hosts/lib/kmt.c $(hosts_link)
$(hosts_files)/%/nvidia-smi: test/hosts/lib/smi.c test/hosts/lib/nvml.h $(hosts_libc)
	@mkdir -p $(@D)
	$(CC) -pie $(hosts_cflags) -nostartfiles -o $@ $< $(shell $(CC) -print-file-name=Scrt1.o) $(hosts_link)

# libcuda.so.580.159.04 has the SONAME libcuda.so.1.
hosts_native_numbered_as = $(foreach name,$(hosts_native_numbered) $(hosts_native_numbered_999.10.01),$(if $(filter $(firstword $(subst :, ,$(name))).so.%,$(1)),$(subst :,.so.,$(name))))
hosts_native_soname = $(or $(strip $(call hosts_native_numbered_as,$(@F))),$(@F))
define hosts_driver_rules
$(hosts_files)/native-$(1)/lib/libcuda.so.$(1): test/hosts/lib/cuda-native.c test/hosts/lib/cuda-note.S test/hosts/lib/cuda.h test/hosts/lib/nodes.h $(hosts_libc)
	$$(hosts_library) $$(hosts_cuda_$(1)) -Wl,-soname,libcuda.so.1 -o $$@ $$(filter %.c %.S,$$^) $$(hosts_link)
$(hosts_files)/native-$(1)/lib/libnvidia-ml.so.$(1): test/hosts/lib/nvml-native.c test/hosts/lib/nvml.h test/hosts/lib/nodes.h $(hosts_libc)
	$$(hosts_library) -DDRIVER='"$(1)"' -Wl,-soname,libnvidia-ml.so.1 -o $$@ $$< $$(hosts_link)
$(hosts_files)/native-$(1)/lib/libnvidia-opencl.so.$(1): test/hosts/lib/opencl-native.c
$(hosts_files)/native-$(1)/lib/libGLX_nvidia.so.$(1): test/hosts/lib/vulkan-native.c
$(hosts_files)/native-$(1)/lib/libEGL_nvidia.so.$(1): test/hosts/lib/egl-native.c
$(patsubst %,$(hosts_files)/native-$(1)/lib/%.so.$(1),libnvidia-opencl libGLX_nvidia libEGL_nvidia): test/hosts/lib/nodes.h $(hosts_libc)
	$$(hosts_library) -DDRIVER='"$(1)"' -Wl,-soname,$$(hosts_native_soname) -o $$@ $$(filter %.c,$$^) $$(hosts_link)
$(hosts_files)/native-$(1)/lib/%: test/hosts/lib/driver.c $(hosts_libc)
	$$(hosts_library) -DNAME='"$$(@F)"' -Wl,-soname,$$(hosts_native_soname) -o $$@ $$< $$(hosts_link)
$(hosts_files)/native-$(1)/lib32/%: test/hosts/lib/driver.c $(hosts)/libc32/libc.so.6
	$$(hosts_library) -m32 -nostdlib -DNAME='"$$(@F)"' -Wl,-soname,$$(hosts_native_soname) -o $$@ $$< -Wl,--no-as-needed $(hosts)/libc32/libc.so.6
$(filter-out %/nvidia-smi,$(call hosts_native_set,$(1),bin)): test/hosts/lib/tool.c $(hosts_libc)
	@mkdir -p $$(@D)
	$(CC) -pie $$(hosts_cflags) -DNAME='"$$(@F)"' -nostartfiles -o $$@ $$< $$(shell $(CC) -print-file-name=Scrt1.o) $$(hosts_link)
endef
$(foreach version,$(hosts_drivers),$(eval $(call hosts_driver_rules,$(version))))

$(filter %.bin %.sys %.dll %.inf %-rc,$(hosts_made)):
	@mkdir -p $(@D)
	@printf 'simulated %s\n' $(@F) > $@
# What loaders read is as the driver's own.
$(filter %.json %.icd,$(hosts_made)): test/hosts/loaders.mk
	@mkdir -p $(@D)
	@printf '%s\n' '$(hosts_text_$(@F))' > $@

# libfoo.so.1.2 has the SONAME libfoo.so.1.2, and libfoo.so that of libfoo.so.1 where both are there. Two have others, as the
# real ones.
hosts_soname_libnvoptix.so.1 = libnvoptix_loader.so.1
hosts_soname_libnvidia-gpucomp.so = libnvidia-gpucomp.so.590.62
hosts_soname = $(or $(hosts_soname_$(@F)),$(if $(and $(filter %.so,$(@F)),$(filter $(@F).1,$(hosts_lib_nvidia))),$(@F).1,$(@F)))
define hosts_driver_library
	@mkdir -p $(@D)
	$(CC) -shared $(hosts_cflags) -DNAME='"$(@F)"' -Wl,-soname,$(hosts_soname) -o $@ $< $(hosts_link)
endef
$(hosts_files)/%: test/hosts/lib/driver.c $(hosts_libc)
	$(hosts_driver_library)

.PHONY: test-hosts
