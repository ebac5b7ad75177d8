/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/containerd.h"

const char *const containerd_sections[CONTAINERD_VERSIONS] = {
	[1] = "plugins/cri",
	[2] = "plugins/io.containerd.grpc.v1.cri",
	[3] = "plugins/io.containerd.cri.v1.runtime",
};
