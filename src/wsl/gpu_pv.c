/* SPDX-License-Identifier: Apache-2.0 */

#include "wsl/gpu_pv.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "driverd/driverd.h"
#include "wsl/adapter.h"
#include "wsl/dxcore.h"
#include "wsl/facts.h"
#include "wsl/ioctl.h"
#include "wsl/paths.h"
#include "wsl/plan.h"
#include "wsl/store.h"

struct answer {
	struct dxg_facts *facts;
	size_t count;
};

static void answer_clear(struct answer *answer)
{
	dxg_facts_free(answer->facts, answer->count);
}
#define _cleanup_answer_ _cleanup_(answer_clear)

/* The device and nothing else: not the kernel's name, and not whether a library can be loaded. */
static bool has_device(void)
{
	struct stat st;

	return stat(DXG_DEVICE, &st) == 0 && S_ISCHR(st.st_mode);
}

static int ask_dxcore(const struct settings *settings, const char *library, struct answer *ret, struct err *err)
{
	if (!library)
		return err_set(err, CTR_GPU_E_DRIVER_LIBRARY,
			       "there is no libdxcore.so in the loader's directories, " WSL_LIB " and the configured directories\n"
			       "The inventory source \"ioctl\" does without it; or name its directory in \"library-directories\".");
	return driverd_dxcore_adapters(settings, library, &ret->facts, &ret->count, err);
}

/* The first line of a sentence tells what happened; the rest, what to do if that were the end of it. */
static int note_fallback(const struct settings *settings, struct inventory *inventory, const struct err *err)
{
	char *note;
	int r;

	r = str_format(&note, "%.*s; used " DXG_DEVICE " itself", (int)strcspn(err->text, "\n"), err->text);
	if (r < 0)
		return r;
	log_debug(&settings->log, "%s", note);
	return strv_take(&inventory->notes, note);
}

/* Both sources work on a host where the driver does, so that which one is asked first is only a matter of what is proven. */
static int ask_either(const struct settings *settings, const char *library, struct inventory *inventory, struct answer *ret,
		      struct err *err)
{
	struct err dxcore_err = {0};
	int r;

	if (!library) {
		log_debug(&settings->log, "no libdxcore.so on this host; asking " DXG_DEVICE " itself");
		return ioctl_adapters(&ret->facts, &ret->count, err);
	}
	log_debug(&settings->log, "asking %s for the adapters", library);
	r = ask_dxcore(settings, library, ret, &dxcore_err);
	if (r == 0 || r == -ENOMEM)
		return r;
	/* The device hangs, and would take us with it. */
	if (r == -ETIMEDOUT) {
		*err = dxcore_err;
		return r;
	}
	r = note_fallback(settings, inventory, &dxcore_err);
	return r < 0 ? r : ioctl_adapters(&ret->facts, &ret->count, err);
}

static int ask(const struct settings *settings, struct inventory *inventory, struct answer *ret, struct err *err)
{
	_cleanup_free_ char *library = NULL;
	int r;

	if (settings->inventory == INVENTORY_IOCTL)
		return ioctl_adapters(&ret->facts, &ret->count, err);
	r = dxcore_find(settings, &library);
	if (r < 0)
		return r;
	if (settings->inventory == INVENTORY_DXCORE)
		return ask_dxcore(settings, library, ret, err);
	return ask_either(settings, library, inventory, ret, err);
}

/* One device node serves them all; a plan for some of them says so. */
static void count_sharing(struct adapter *adapters, size_t count)
{
	size_t usable = 0;

	for (size_t i = 0; i < count; i++)
		usable += adapters[i].unusable == 0;
	for (size_t i = 0; i < count; i++)
		adapters[i].sharing = usable;
}

static int add_adapters(const struct answer *answer, struct inventory *inventory)
{
	size_t first = inventory->count;

	for (size_t i = 0; i < answer->count; i++) {
		struct adapter adapter;
		int r;

		r = adapter_judge(&answer->facts[i], store_exists, &adapter);
		if (r == 0) {
			adapter.backend = &backend_gpu_pv;
			r = inventory_take(inventory, &adapter);
		}
		if (r < 0)
			return r;
	}
	adapter_sort(inventory->adapters + first, inventory->count - first);
	count_sharing(inventory->adapters + first, inventory->count - first);
	return 0;
}

static int probe(const struct settings *settings, struct inventory *inventory, struct err *err)
{
	_cleanup_answer_ struct answer answer = {0};
	int r;

	if (!has_device())
		return CTR_GPU_E_NO_DEVICE;
	r = ask(settings, inventory, &answer, err);
	return r == 0 ? add_adapters(&answer, inventory) : r;
}

const struct backend backend_gpu_pv = {
	.name = "gpu-pv",
	.probe = probe,
	.plan = gpu_pv_plan,
	.facts = gpu_pv_facts,
};
