# SPDX-License-Identifier: Apache-2.0
#
# Nouns of the commands are in no library.

$(O)/fuzz/json_text_fuzz: $(O)/src/cli/json_text.o $(O)/src/cli/text.o
$(O)/fuzz/toml_text_fuzz: $(O)/src/cli/toml_text.o $(O)/src/cli/toml_scan.o $(O)/src/cli/text.o
