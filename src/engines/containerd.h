/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* containerd's configuration file, where every reader of ours needs to know it. */

/* The CRI plugin's section, as a path of toml_text.h, by the file's version; that of version 0 is NULL. */
enum { CONTAINERD_VERSIONS = 4 };
extern const char *const containerd_sections[CONTAINERD_VERSIONS];
