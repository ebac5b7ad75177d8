# SPDX-License-Identifier: Apache-2.0
#
# real-gpu: the tests on this machine's own GPU. real-gpu-carry gathers what they need on another machine, which has a driver
# and perhaps nothing else: carry bin/, lib/ and test/real/ of the build directory there, with this source tree.

real_programs = $(O)/test/real/cuda-add $(O)/test/real/probe $(O)/test/real/floor $(O)/test/real/measure

$(O)/test/real/cuda-add: test/real/cuda-add.c
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -D_GNU_SOURCE $(OPTIMIZE) $(warnings) -o $@ $<
$(O)/test/real/probe: $(O)/test/tools/probe
	@mkdir -p $(@D)
	cp $< $@
$(O)/test/real/floor $(O)/test/real/measure: $(O)/test/real/%: $(O)/test/bench/%
	@mkdir -p $(@D)
	cp $< $@

test_programs += $(real_programs)

real-gpu: all $(real_programs)
	test/real-gpu $(O)

real-gpu-carry: all $(real_programs)
	@mkdir -p $(O)/test/real/lib
	cp -L $(shell command -v runc) $(O)/test/real/runc
	ldd $(O)/test/real/runc $(O)/bin/ctr-gpu $(O)/bin/ctr-gpu-driverd | \
		sed -n 's/^.* => \(\/[^ ]*\) (.*/\1/p' | sort -u | grep -vE '/(libc|libm|libdl|libpthread|librt)\.so|libctr-gpu' | \
		xargs -I{} cp -L {} $(O)/test/real/lib/
	du -sh $(O)/bin $(O)/lib $(O)/test/real

.PHONY: real-gpu real-gpu-carry
