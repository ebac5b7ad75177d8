/* SPDX-License-Identifier: Apache-2.0 */

/* The backend of GPU-PV: hosts with /dev/dxg. */

#include "wsl/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/paths.h"
#include "driverd/driverd.h"
#include "dxg/dxg.h"
#include "system/elf_file.h"
#include "system/noexec.h"

struct answer {
	struct dxg_facts *facts;
	size_t count;
};

static void wsl_backend_answer_clear(struct answer *answer)
{
	dxg_facts_free(answer->facts, answer->count);
}
#define _cleanup_answer_ _cleanup_(wsl_backend_answer_clear)

/*
 * Finds the device and looks at nothing else: not at the kernel's name, and not at whether a library can be loaded.
 *
 * Return: 1; 0 if it is not there; negative errno if this is not known, so that no container starts without its GPUs.
 */
static int wsl_backend_find_device(dev_t *ret, struct err *err)
{
	struct stat st;

	if (stat(PATH_DXG, &st) == 0) {
		*ret = st.st_rdev;
		return S_ISCHR(st.st_mode);
	}
	return errno == ENOENT || errno == ENOTDIR || errno == EACCES
		       ? 0
		       : err_set(err, -errno, "cannot look at " PATH_DXG ": %m");
}

static int wsl_backend_query_dxcore(const struct settings *settings, const char *library, struct answer *ret,
				    struct err *err)
{
	if (!library)
		return err_set_advised(
			err, CTR_GPU_E_DRIVER_LIBRARY,
			("libdxcore.so is missing: not in the loader's directories, " PATH_WSL_LIB
			 " or the configured directories"),
			("Set \"inventory\" to \"ioctl\", which works without it, or name its directory in "
			 "\"library-directories\"."));
	log_debug(&settings->log, "asking %s for the adapters", library);
	return driverd_dxcore_adapters(settings, library, &ret->facts, &ret->count, err);
}

/* All adapters share a device node, those of one driver a store; a plan for some of them says so. */
static void wsl_backend_count_sharing(struct adapter *adapters, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count && adapters[i].unusable == 0; j++) {
			if (adapters[j].unusable != 0)
				continue;
			adapters[i].same_device_count += !adapters[j].is_npu;
			adapters[i].same_vendor_count +=
				!adapters[j].is_npu && adapters[i].vendor_id == adapters[j].vendor_id;
			adapters[i].store_sharing += streq(adapters[i].driver_store, adapters[j].driver_store);
		}
}

static int wsl_backend_add_adapters(const struct answer *answer, struct inventory *inventory)
{
	size_t first = inventory->count;

	for (size_t i = 0; i < answer->count; i++) {
		struct adapter adapter;
		int r;

		r = adapter_classify(&answer->facts[i], store_look, &adapter);
		if (r == 0) {
			adapter.backend = &backend_gpu_pv;
			r = inventory_take(inventory, &adapter);
		}
		if (r < 0)
			return r;
	}
	adapter_sort(inventory->adapters + first, inventory->count - first);
	wsl_backend_count_sharing(inventory->adapters + first, inventory->count - first);
	return 0;
}

/* The first line of a sentence tells what happened; the rest, what to do if that were the end of it. */
static int wsl_backend_note_fallback(const struct settings *settings, struct inventory *inventory,
				     const struct err *err, const char *used)
{
	char *note;
	int r;

	r = str_format(&note, "%s; used %s", err->text, used);
	if (r < 0)
		return r;
	log_debug(&settings->log, "%s", note);
	return strv_take(&inventory->notes, note);
}

/* ---- from the kernel or from libdxcore ---- */

static bool wsl_backend_has_usable(const struct inventory *inventory, size_t first)
{
	for (size_t i = first; i < inventory->count; i++)
		if (inventory->adapters[i].unusable == 0)
			return true;
	return false;
}

static int wsl_backend_probe_kernel(const struct settings *settings, struct inventory *inventory, struct err *err)
{
	_cleanup_answer_ struct answer answer = {0};
	int r;

	log_debug(&settings->log, "asking %s for the adapters", PATH_DXG);
	r = ioctl_adapters(&answer.facts, &answer.count, err);
	return r == 0 ? wsl_backend_add_adapters(&answer, inventory) : r;
}

static int wsl_backend_probe_dxcore(const struct settings *settings, const char *library, struct inventory *inventory,
				    struct err *err)
{
	_cleanup_answer_ struct answer answer = {0};
	int r;

	r = wsl_backend_query_dxcore(settings, library, &answer, err);
	return r == 0 ? wsl_backend_add_adapters(&answer, inventory) : r;
}

/*
 * Both sources give the same where the driver works. The kernel comes first: it takes half the time and no code of the
 * driver's. A library that hangs or crashes is not even looked for then.
 */
static int wsl_backend_probe_either(const struct settings *settings, struct inventory *inventory, struct err *err)
{
	_cleanup_free_ char *library = NULL;
	struct err dxcore_err = {0};
	size_t first = inventory->count;
	int kernel, r;

	kernel = wsl_backend_probe_kernel(settings, inventory, err);
	/* If the device lists no adapter, libdxcore finds none either. */
	if (kernel == -ENOMEM ||
	    (kernel == 0 && (inventory->count == first || wsl_backend_has_usable(inventory, first))))
		return kernel;
	r = dxcore_find(settings, &library);
	if (r < 0 || !library)
		return r < 0 ? r : kernel;
	if (!kernel)
		(void)err_set(err, CTR_GPU_E_NO_DEVICE, PATH_DXG " has no adapter that can be used");
	log_debug(&settings->log, "%s", err->text);
	inventory_truncate(inventory, first);
	r = wsl_backend_probe_dxcore(settings, library, inventory, &dxcore_err);
	if (r == 0)
		return kernel || wsl_backend_has_usable(inventory, first)
			       ? wsl_backend_note_fallback(settings, inventory, err, library)
			       : 0;
	if (r == -ENOMEM || kernel)
		return r == -ENOMEM ? r : kernel;
	r = wsl_backend_note_fallback(settings, inventory, &dxcore_err, PATH_DXG " itself");
	return r == 0 ? wsl_backend_probe_kernel(settings, inventory, err) : r;
}

static int wsl_backend_probe_chosen(const struct settings *settings, struct inventory *inventory, struct err *err)
{
	_cleanup_free_ char *library = NULL;
	int r;

	if (settings->inventory == INVENTORY_AUTO)
		return wsl_backend_probe_either(settings, inventory, err);
	if (settings->inventory == INVENTORY_IOCTL)
		return wsl_backend_probe_kernel(settings, inventory, err);
	r = dxcore_find(settings, &library);
	if (r == 0)
		r = wsl_backend_probe_dxcore(settings, library, inventory, err);
	/* It fails where there is nothing to list. */
	return r == 0 || r == -ENOMEM || !ioctl_has_no_adapters() ? r : 0;
}

static int wsl_backend_probe(const struct settings *settings, struct inventory *inventory, void **ret_seen,
			     struct err *err)
{
	size_t first = inventory->count;
	dev_t node = 0;
	int r = wsl_backend_find_device(&node, err);

	(void)ret_seen;
	if (r <= 0)
		return r < 0 ? r : CTR_GPU_E_NO_DEVICE;
	r = wsl_backend_probe_chosen(settings, inventory, err);
	for (size_t i = first; i < inventory->count; i++)
		inventory->adapters[i].node = node;
	return r;
}

static int wsl_backend_describe(const struct adapter *adapter, struct strv *ret)
{
	char luid[LUID_TEXT_SIZE], wddm[16] = "unknown";
	const char *store = adapter->driver_store ? adapter->driver_store : "unknown";
	const char *lines[] = {"LUID", luid, "WDDM", wddm, "driver store", store};
	int r = 0;

	luid_format(adapter->luid, luid);
	if (adapter->wddm_version > 0)
		(void)snprintf(wddm, sizeof(wddm), "%u.%u", adapter->wddm_version / 1000,
			       adapter->wddm_version / 100 % 10);
	for (size_t i = 0; i < ARRAY_SIZE(lines) && r == 0; i++)
		r = strv_add(ret, lines[i]);
	return r;
}

static int wsl_backend_note_noexec(const struct inventory *inventory, struct strv *ret)
{
	struct plan found = {0};
	int r = noexec_check(&found, PATH_WSL_LIB);

	for (size_t i = 0; i < inventory->count && r == 0; i++)
		if (inventory->adapters[i].store.noexec)
			r = noexec_add(&found, inventory->adapters[i].driver_store);
	if (r == 0)
		r = plan_list_obstacles(&found, ret);
	plan_clear(&found);
	return r;
}

/* What a start for CUDA, or for any computing, would be refused for. */
static int wsl_backend_driver_notes(const struct settings *settings, const struct inventory *inventory,
				    struct strv *ret)
{
	bool any = false, nvidia = false;
	char message[ERR_MESSAGE_MAX];
	struct err err = {0};

	(void)settings;
	for (size_t i = 0; i < inventory->count; i++) {
		const struct adapter *adapter = &inventory->adapters[i];

		if (adapter->backend != &backend_gpu_pv || adapter->unusable != 0)
			continue;
		any = true;
		nvidia |= adapter->vendor_id == PCI_VENDOR_NVIDIA;
	}
	if (any && loaders_check(nvidia, &err) != 0 && strv_add(ret, err_message(&err, message)) < 0)
		return -ENOMEM;
	return any ? wsl_backend_note_noexec(inventory, ret) : 0;
}

/* ---- facts ---- */

static int wsl_backend_read_libcuda(const char *store, struct driver_facts *facts)
{
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	int r;

	if (str_format(&path, "%s/libcuda.so.1.1", store) < 0)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return 0;
	/* An old one does not tell; then nothing is known. */
	r = libcuda_read_version(fd, &facts->cuda_major, &facts->cuda_minor);
	return r == -ENOMEM ? r : 0;
}

static int wsl_backend_facts(const struct settings *settings, void *seen, const struct adapter *const *selected,
			     size_t count, struct driver_facts *ret)
{
	struct driver_facts facts = {0};
	int r = 0;

	(void)settings, (void)seen;
	for (size_t i = 0; i < count && r == 0 && facts.cuda_major == 0; i++)
		if (selected[i]->vendor_id == PCI_VENDOR_NVIDIA && selected[i]->driver_store)
			r = wsl_backend_read_libcuda(selected[i]->driver_store, &facts);
	if (r == 0)
		*ret = facts;
	return r;
}

/* ---- load ---- */

static int gpu_pv_decide_load(const struct load_options *options, struct load *ret, struct err *err)
{
	struct stat st;

	(void)options;
	if (stat(PATH_DXG, &st) < 0 || !S_ISCHR(st.st_mode))
		return err_set(err, CTR_GPU_E_NO_DEVICE, PATH_DXG " is missing");
	return strv_format(&ret->remarks,
			   "nothing to load for GPUs behind " PATH_DXG ": their driver is part of the kernel");
}

static int wsl_backend_identify(const struct settings *settings, struct adapter *adapters, size_t count,
				struct err *err)
{
	size_t first = 0, end;

	/* One backend's adapters stand together. */
	while (first < count && adapters[first].backend != &backend_gpu_pv)
		first++;
	end = first;
	while (end < count && adapters[end].backend == &backend_gpu_pv)
		end++;
	return uuid_identify(settings, adapters + first, end - first, err);
}

const struct backend backend_gpu_pv = {
	.name = "gpu-pv",
	.device = PATH_DXG,
	.advice = "WSL2: run wsl --update in Windows, and keep gpuSupport on in .wslconfig. "
		  "Hyper-V: load the dxgkrnl module.",
	.also_serves = DOMAIN_NVIDIA,
	.probe = wsl_backend_probe,
	.plan = gpu_pv_plan,
	.facts = wsl_backend_facts,
	.identify = wsl_backend_identify,
	.driver_notes = wsl_backend_driver_notes,
	.describe = wsl_backend_describe,
	.enforcement = enforce_describe,
};

const struct backend_load loader_gpu_pv = {.decide = gpu_pv_decide_load};
