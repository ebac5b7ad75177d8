# SPDX-License-Identifier: Apache-2.0
#
# The examples, compiled as their users do: with the files that "make install" lays down, found by pkg-config.

stage = $(O)/test/stage
stage_pkg_config = PKG_CONFIG_SYSROOT_DIR=$(stage) PKG_CONFIG_PATH=$(stage)$(libdir)/pkgconfig PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 \
	PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 $(PKG_CONFIG)
examples_warnings = -Wall -Wextra $(WERROR)

examples = $(patsubst examples/%.c,$(O)/test/examples/%,$(wildcard examples/*.c)) \
	$(patsubst examples/%.cpp,$(O)/test/examples/%,$(wildcard examples/*.cpp)) \
	$(if $(dynamic),,$(O)/test/examples/list-adapters-static)

test_programs += $(examples)

$(stage)/done: $(programs) $(O)/lib/libctr-gpu.so.$(SOVERSION) $(O)/lib/libctr-gpu.a include/ctr-gpu.h include/ctr-gpu-error.h \
	src/lib/ctr-gpu.pc.in $(wildcard man/*.3) Makefile
	@rm -rf $(stage)
	$(MAKE) install DESTDIR=$(stage)
	@touch $@

$(O)/test/examples/%: examples/%.c $(stage)/done
	@mkdir -p $(@D)
	$(CC) -std=c17 $(OPTIMIZE) $(examples_warnings) $(sanitize_flags) $(CFLAGS) $(LDFLAGS) -o $@ $< $$($(stage_pkg_config) --cflags --libs ctr-gpu)

$(O)/test/examples/%-static: examples/%.c $(stage)/done
	@mkdir -p $(@D)
	$(CC) -std=c17 $(OPTIMIZE) $(examples_warnings) $(CFLAGS) $(LDFLAGS) -static -o $@ $< $$($(stage_pkg_config) --static --cflags --libs ctr-gpu)

$(O)/test/examples/%: examples/%.cpp $(stage)/done
	@mkdir -p $(@D)
	$(CXX) -std=c++17 $(OPTIMIZE) $(examples_warnings) $(sanitize_flags) -o $@ $< $$($(stage_pkg_config) --cflags --libs ctr-gpu)

.PHONY: examples
examples: $(examples)
