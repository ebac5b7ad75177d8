/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The names of Kerberos' GSS-API that a static libtirpc leaves undefined. ctr-gpu speaks over a socketpair between two of
 * its own processes and authenticates nobody (AUTH_NONE), so none of them is ever called.
 */

#include <stdlib.h>

#define NEVER_CALLED(name)      \
	void name(void);        \
	void name(void)         \
	{                       \
		abort();        \
	}

extern void *const GSS_C_NT_HOSTBASED_SERVICE, *const GSS_C_NT_USER_NAME;
void *const GSS_C_NT_HOSTBASED_SERVICE = NULL, *const GSS_C_NT_USER_NAME = NULL;

NEVER_CALLED(gss_accept_sec_context)
NEVER_CALLED(gss_acquire_cred)
NEVER_CALLED(gss_canonicalize_name)
NEVER_CALLED(gss_delete_sec_context)
NEVER_CALLED(gss_display_name)
NEVER_CALLED(gss_display_status)
NEVER_CALLED(gss_duplicate_name)
NEVER_CALLED(gss_export_name)
NEVER_CALLED(gss_get_mic)
NEVER_CALLED(gss_import_name)
NEVER_CALLED(gss_init_sec_context)
NEVER_CALLED(gss_pname_to_uid)
NEVER_CALLED(gss_release_buffer)
NEVER_CALLED(gss_release_cred)
NEVER_CALLED(gss_release_name)
NEVER_CALLED(gss_sign)
NEVER_CALLED(gss_unwrap)
NEVER_CALLED(gss_verify_mic)
NEVER_CALLED(gss_wrap)
NEVER_CALLED(gss_wrap_size_limit)
