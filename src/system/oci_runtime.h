/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is known of an OCI runtime by its version: whether it finds the places of mounts safely in a root filesystem
 * that another process changes meanwhile. runc before 1.2.8, 1.3.3 and 1.4.0 looks a path up and then makes what is
 * missing by the path: on the host, if a directory has become a link in between (CVE-2024-45310, CVE-2025-52881). crun
 * has always held descriptors for that.
 */

#include <stdbool.h>

/** Whether a runtime that says @version, "runc version 1.1.5+ds1" and more, holds what it has found. */
bool oci_runtime_is_known(const char *version);

/**
 * oci_runtime_holds_places() - the same for a program, which is asked for its version
 *
 * What it says is kept until the next boot, or until the file is another. One that is not root's, or does not answer,
 * is not believed.
 */
bool oci_runtime_holds_places(const char *program);
