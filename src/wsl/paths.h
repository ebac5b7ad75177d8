/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where WSL keeps things. The paths are part of the interface: libdxcore gives paths below WSL_DRIVERS whatever the
 * host calls them, and the loaders in WSL_LIB expect them, so Hyper-V guests use the same (libdxg src/d3dkmt-wsl.cpp).
 */

#define WSL_LIB "/usr/lib/wsl/lib"
#define WSL_DRIVERS "/usr/lib/wsl/drivers"
