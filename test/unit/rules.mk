# SPDX-License-Identifier: Apache-2.0

$(O)/test/unit/devcgroup_test: $(O)/test/unit/device_world.o $(O)/test/unit/old_kernel.o
$(O)/test/unit/bpf_device_test: $(O)/test/unit/device_world.o

# Nouns of the commands are in no library.
$(O)/test/unit/json_text_test: $(O)/src/cli/json_text.o
