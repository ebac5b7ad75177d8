/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/service.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engines/text.h"

static bool is_service_manager(const char *directory)
{
	struct stat status;

	return stat(directory, &status) == 0 && S_ISDIR(status.st_mode);
}

char *service_command(const char *service, bool user, pid_t pid, enum service_step step)
{
	const char *verb = step == SERVICE_RELOAD ? "reload" : "restart";
	_cleanup_free_ char *script = text_format("/etc/init.d/%s", service);

	/* sd_booted(3) looks for this directory, too. */
	if (is_service_manager("/run/systemd/system"))
		return text_format("systemctl %s%s %s", user ? "--user " : "", verb, service);
	if (step == SERVICE_RELOAD && pid)
		return text_format("kill -HUP %d", pid);
	if (!user && is_service_manager("/run/openrc"))
		return text_format("rc-service %s restart", service);
	if (!user && script && access(script, X_OK) == 0)
		return text_format("service %s restart", service);
	if (pid)
		return text_format("kill %d, and start it again as it was started", pid);
	return strdup("start it");
}
