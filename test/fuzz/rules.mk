# SPDX-License-Identifier: Apache-2.0
#
# Nouns of the commands are in no library.

$(O)/fuzz/json_text_fuzz: $(O)/src/cli/json_text.o
