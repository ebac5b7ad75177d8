# SPDX-License-Identifier: Apache-2.0
#
# ctr-gpu-device-plugin, for Kubernetes. It alone takes libnghttp2 and protobuf-c; a machine without them builds the rest.

plugin_lacks := $(shell CC='$(CC)' CROSS_COMPILE='$(CROSS_COMPILE)' PKG_CONFIG='$(PKG_CONFIG)' pkg/needs plugin)
plugin_objects = $(patsubst %.c,$(O)/%.o,$(sort $(wildcard cluster/*.c)))
plugin_libraries = -lnghttp2 -lprotobuf-c
ifeq ($(plugin_lacks),)
programs += $(O)/bin/ctr-gpu-device-plugin
plugin_installed = $(libexecdir)/ctr-gpu/ctr-gpu-device-plugin
else
all: plugin-left-out
plugin-left-out:
	@echo "ctr-gpu-device-plugin is left out, as this machine lacks: $(plugin_lacks)"
.PHONY: plugin-left-out
endif

# What kubelet is asked and asks, in C.
plugin_messages = $(O)/gen/device_plugin.pb-c $(O)/gen/pod_resources.pb-c
$(O)/gen/%.pb-c.h $(O)/gen/%.pb-c.c: cluster/%.proto | needs
	@mkdir -p $(@D)
	protoc-c --c_out=$(@D) --proto_path=$(<D) $<
$(plugin_messages:=.o): %.o: %.c
	$(say) CC $<
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -w -c -o $@ $<
$(O)/cluster/answer.o $(O)/cluster/metrics.o: $(plugin_messages:=.h)

$(O)/bin/ctr-gpu-device-plugin: $(plugin_objects) $(plugin_messages:=.o) $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) -pie $(CFLAGS_ALL) $(LDFLAGS_ALL) $(link_map) -o $@ $^ -Wl,--as-needed $(plugin_libraries) $(xdr_inside)

# The same without any library beside it, and an image of it, for nodes on which it is not installed. IMAGE= is the image's name.
$(O)/image/ctr-gpu-device-plugin: $(plugin_objects) $(plugin_messages:=.o) $(O)/lib/libctr-gpu.a
	@mkdir -p $(@D)
	$(say) LD $@
	$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $^ -static-pie $(patsubst -l%,-l:lib%.a,$(plugin_libraries)) $(static_libraries)

kubernetes-image: $(if $(plugin_lacks),plugin-left-out,$(O)/image/ctr-gpu-device-plugin $(O)/bin/ctr-gpu-driverd)
	$(if $(dynamic),@echo "make kubernetes-image: not with STATIC=0 or SANITIZE=" >&2; exit 1)
	$(if $(plugin_lacks),@exit 1)
	CC="$(CC)" STRIP="$(STRIP)" IMAGE="$(IMAGE)" pkg/make-image $(O)

.PHONY: kubernetes-image
