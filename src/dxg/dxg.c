/* SPDX-License-Identifier: Apache-2.0 */

#include "dxg/dxg.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/cleanup.h"
#include "base/paths.h"

/* ---- UTF-16 ---- */

enum {
	REPLACEMENT = 0xfffd,
	LAST_CHARACTER = 0x10ffff,
	HIGH_SURROGATE = 0xd800,
	LOW_SURROGATE = 0xdc00,
	SURROGATES_END = 0xe000,
	LONGEST_UTF8 = 4, /* bytes of one character; a unit of either encoding never needs more */
};

static bool utf16_is_between(uint32_t c, uint32_t first, uint32_t end)
{
	return c >= first && c < end;
}

/* One unit at @offset; 0, which ends a string, where there is none. */
static uint32_t utf16_unit_at(const struct span *wide, size_t offset, size_t char_size)
{
	uint16_t narrow = 0;
	uint32_t unit = 0;

	if (char_size == sizeof(unit)) {
		(void)span_read(wide, offset, &unit, sizeof(unit));
		return unit;
	}
	(void)span_read(wide, offset, &narrow, sizeof(narrow));
	return narrow;
}

/* One character, 0 at the end; moves @offset past it. */
static uint32_t utf16_next_character(const struct span *wide, size_t *offset, size_t char_size)
{
	uint32_t c = utf16_unit_at(wide, *offset, char_size), low;

	*offset += char_size;
	if (char_size == sizeof(uint16_t) && utf16_is_between(c, HIGH_SURROGATE, LOW_SURROGATE)) {
		low = utf16_unit_at(wide, *offset, char_size);
		if (!utf16_is_between(low, LOW_SURROGATE, SURROGATES_END))
			return REPLACEMENT;
		*offset += char_size;
		return 0x10000 + ((c - HIGH_SURROGATE) << 10) + (low - LOW_SURROGATE);
	}
	if (c > LAST_CHARACTER || utf16_is_between(c, HIGH_SURROGATE, SURROGATES_END))
		return REPLACEMENT;
	return c;
}

static size_t utf16_encode(uint32_t c, char *out)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

int utf16_from_wide(const struct span *wide, size_t char_size, char **ret)
{
	size_t units = wide->size / char_size, offset = 0, length = 0;
	char *text, *shorter;
	uint32_t c;

	text = malloc(units * LONGEST_UTF8 + 1);
	if (!text)
		return -ENOMEM;
	while ((c = utf16_next_character(wide, &offset, char_size)) != 0)
		length += utf16_encode(c, text + length);
	text[length] = '\0';
	shorter = realloc(text, length + 1);
	*ret = shorter ? shorter : text;
	return 0;
}

/* ---- D3DKMT ---- */

/*
 * The questions of an inventory, in their order. The answers are hostile: counts and sizes are checked against what was
 * offered, strings end where their buffer ends.
 */

enum {
	ENUMERATION_TRIES = 3, /* adapters come and go: a partition may be added between two calls */
	BUS_END = 256,
	DEVICE_END = 32,
	FUNCTION_END = 8,
};

struct dxg_facts *dxg_facts_free(struct dxg_facts *facts, size_t count)
{
	for (size_t i = 0; facts && i < count; i++) {
		free(facts[i].name);
		free(facts[i].store);
	}
	free(facts);
	return NULL;
}

struct adapter_list {
	struct d3dkmt_adapterinfo adapters[D3DKMT_MAX_ADAPTERS];
	uint32_t count;
};

/* Compute-only adapters (NPUs, NVIDIA's MCDM mode) show in the third version of the call alone. */
static int d3dkmt_enumerate3(const struct d3dkmt *d3dkmt, struct adapter_list *list)
{
	struct d3dkmt_enumadapters3 arguments = {
		.filter = D3DKMT_ENUM_COMPUTE_ONLY,
		.count = D3DKMT_MAX_ADAPTERS,
		.adapters = (uintptr_t)list->adapters,
	};
	int r = d3dkmt->enumerate3(d3dkmt, &arguments);

	list->count = arguments.count;
	return r;
}

static int d3dkmt_enumerate2(const struct d3dkmt *d3dkmt, struct adapter_list *list)
{
	struct d3dkmt_enumadapters2 arguments = {
		.count = D3DKMT_MAX_ADAPTERS,
		.adapters = (uintptr_t)list->adapters,
	};
	int r = d3dkmt->enumerate2(d3dkmt, &arguments);

	list->count = arguments.count;
	return r;
}

static int d3dkmt_enumerate(const struct d3dkmt *d3dkmt, struct adapter_list *list)
{
	int r = -EOVERFLOW;

	for (int i = 0; i < ENUMERATION_TRIES && r == -EOVERFLOW; i++)
		r = d3dkmt_enumerate3(d3dkmt, list);
	if (r < 0)
		r = -EOVERFLOW;
	for (int i = 0; i < ENUMERATION_TRIES && r == -EOVERFLOW; i++)
		r = d3dkmt_enumerate2(d3dkmt, list);
	if (r < 0)
		return r;
	return list->count <= D3DKMT_MAX_ADAPTERS ? 0 : -EPROTO;
}

static int d3dkmt_ask(const struct d3dkmt *d3dkmt, uint32_t handle, enum d3dkmt_query type, void *data, size_t size)
{
	struct d3dkmt_queryadapterinfo arguments = {
		.handle = handle,
		.type = type,
		.data = (uintptr_t)data,
		.size = (uint32_t)size,
	};

	return d3dkmt->query(d3dkmt, &arguments);
}

/* A string of @characters at @offset of a reply. An empty one counts as missing. */
static int d3dkmt_take_string(const struct span *reply, size_t offset, size_t characters, size_t char_size, char **ret)
{
	_cleanup_free_ char *text = NULL;
	struct span wide;
	int r;

	if (!span_slice(reply, offset, characters * char_size, &wide))
		return -EPROTO;
	r = utf16_from_wide(&wide, char_size, &text);
	if (r == 0 && text[0])
		*ret = steal_ptr(text);
	return r;
}

/*
 * D3DKMT_ADAPTERREGISTRYINFO, four strings of MAX_PATH, the adapter's name first. As old as WDDM, which the newer
 * DRIVER_DESCRIPTION is not.
 */
static int d3dkmt_ask_name(const struct d3dkmt *d3dkmt, uint32_t handle, char **ret)
{
	size_t size = 4 * D3DKMT_MAX_PATH * sizeof(uint16_t);
	_cleanup_free_ unsigned char *reply = calloc(1, size);

	if (!reply)
		return -ENOMEM;
	if (d3dkmt_ask(d3dkmt, handle, D3DKMT_QUERY_ADAPTERREGISTRYINFO, reply, size) < 0)
		return 0;
	return d3dkmt_take_string(&(struct span){reply, size}, 0, D3DKMT_MAX_PATH, sizeof(uint16_t), ret);
}

/* D3DDDI_QUERYREGISTRY_INFO; the size of ValueName is the only thing that the width of a character changes. */
struct d3dkmt_registry_layout {
	size_t output_size, status, output, size;
};

static struct d3dkmt_registry_layout d3dkmt_registry_layout(size_t char_size)
{
	size_t value_type = 2 * sizeof(uint32_t) + D3DKMT_MAX_PATH * char_size;

	return (struct d3dkmt_registry_layout){
		.output_size = value_type + 2 * sizeof(uint32_t),
		.status = value_type + 3 * sizeof(uint32_t),
		.output = value_type + 4 * sizeof(uint32_t),
		.size = value_type + 4 * sizeof(uint32_t) + sizeof(uint64_t),
	};
}

/*
 * The size that the driver store's path needs. A bare structure is too small for any path: the call succeeds, and the
 * status in the answer is D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW. 0 if the size is unknown.
 */
static size_t d3dkmt_ask_store_size(const struct d3dkmt *d3dkmt, uint32_t handle,
				    const struct d3dkmt_registry_layout *layout, unsigned char *request)
{
	const uint32_t type = D3DKMT_REGISTRY_DRIVERSTOREPATH;
	uint32_t needed, status;

	memcpy(request, &type, sizeof(type));
	if (d3dkmt_ask(d3dkmt, handle, D3DKMT_QUERY_QUERYREGISTRY, request, layout->size) < 0)
		return 0;
	memcpy(&status, request + layout->status, sizeof(status));
	memcpy(&needed, request + layout->output_size, sizeof(needed));
	if (status != D3DKMT_REGISTRY_OVERFLOW || needed > D3DKMT_MAX_PATH * d3dkmt->char_size)
		return 0;
	return needed;
}

static int d3dkmt_ask_store(const struct d3dkmt *d3dkmt, uint32_t handle, char **ret)
{
	struct d3dkmt_registry_layout layout = d3dkmt_registry_layout(d3dkmt->char_size);
	const uint32_t type = D3DKMT_REGISTRY_DRIVERSTOREPATH;
	_cleanup_free_ unsigned char *request = calloc(1, layout.size + D3DKMT_MAX_PATH * d3dkmt->char_size);
	uint32_t status;
	size_t needed;

	if (!request)
		return -ENOMEM;
	needed = d3dkmt_ask_store_size(d3dkmt, handle, &layout, request);
	if (needed == 0)
		return 0;
	memset(request, 0, layout.size);
	memcpy(request, &type, sizeof(type));
	if (d3dkmt_ask(d3dkmt, handle, D3DKMT_QUERY_QUERYREGISTRY, request, layout.size + needed) < 0)
		return 0;
	memcpy(&status, request + layout.status, sizeof(status));
	if (status != 0)
		return 0;
	/* libdxcore gives the length of the Windows path, and the shorter Linux path: the NUL decides. */
	return d3dkmt_take_string(&(struct span){request, layout.size + needed}, layout.output,
				  needed / d3dkmt->char_size, d3dkmt->char_size, ret);
}

static void d3dkmt_ask_address(const struct d3dkmt *d3dkmt, uint32_t handle, struct dxg_facts *facts)
{
	struct d3dkmt_adapteraddress address = {0};

	if (d3dkmt_ask(d3dkmt, handle, D3DKMT_QUERY_ADAPTERADDRESS, &address, sizeof(address)) < 0)
		return;
	/* An adapter that is not a PCI device has numbers like 0xffffffff. */
	if (address.bus >= BUS_END || address.device >= DEVICE_END || address.function >= FUNCTION_END)
		return;
	/*
	 * Hosts of Windows 10 answer without a status (dxgkrnl's DXGK_VMBUS_INTERFACE_VERSION_OLD), so that a refusal
	 * leaves our zeros. No adapter is there: it is the place of the host bridge.
	 */
	if (address.bus == 0 && address.device == 0 && address.function == 0)
		return;
	facts->has_address = true;
	facts->address = address;
}

static bool d3dkmt_may_be_usable(const struct dxg_facts *facts)
{
	return facts->wddm_version >= D3DKMT_WDDM_2_7 && !(facts->type_bits & D3DKMT_TYPE_SOFTWARE) &&
	       (facts->type_bits & (D3DKMT_TYPE_RENDER | D3DKMT_TYPE_COMPUTE_ONLY));
}

/*
 * Every query that a driver refuses leaves a line in the guest's kernel log. So of an adapter that cannot be used, only
 * what identifies it to the user is queried.
 */
static int d3dkmt_describe(const struct d3dkmt *d3dkmt, const struct d3dkmt_adapterinfo *adapter, struct dxg_facts *ret)
{
	struct d3dkmt_device_ids ids = {0};
	uint32_t version = 0, type = 0;
	int r;

	ret->luid = adapter->luid;
	if (d3dkmt_ask(d3dkmt, adapter->handle, D3DKMT_QUERY_DRIVERVERSION, &version, sizeof(version)) == 0)
		ret->wddm_version = version;
	if (d3dkmt_ask(d3dkmt, adapter->handle, D3DKMT_QUERY_ADAPTERTYPE, &type, sizeof(type)) == 0)
		ret->type_bits = type;
	if (d3dkmt_ask(d3dkmt, adapter->handle, D3DKMT_QUERY_DEVICE_IDS, &ids, sizeof(ids)) == 0) {
		ret->vendor_id = ids.vendor;
		ret->device_id = ids.device;
	}
	r = d3dkmt_ask_name(d3dkmt, adapter->handle, &ret->name);
	if (r < 0 || !d3dkmt_may_be_usable(ret))
		return r;
	d3dkmt_ask_address(d3dkmt, adapter->handle, ret);
	return d3dkmt_ask_store(d3dkmt, adapter->handle, &ret->store);
}

int d3dkmt_describe_adapters(const struct d3dkmt *d3dkmt, struct dxg_facts **ret, size_t *ret_count)
{
	struct adapter_list list = {0};
	struct dxg_facts *facts;
	int r;

	r = d3dkmt_enumerate(d3dkmt, &list);
	if (r < 0)
		return r;
	facts = calloc(list.count + 1, sizeof(*facts));
	if (!facts)
		r = -ENOMEM;
	for (uint32_t i = 0; i < list.count; i++) {
		struct d3dkmt_closeadapter handle = {list.adapters[i].handle};

		if (r == 0)
			r = d3dkmt_describe(d3dkmt, &list.adapters[i], &facts[i]);
		if (d3dkmt->close)
			d3dkmt->close(d3dkmt, &handle);
	}
	if (r < 0) {
		dxg_facts_free(facts, list.count);
		return r;
	}
	*ret = facts;
	*ret_count = list.count;
	return 0;
}

/* ---- ioctls ---- */

/*
 * Every call is a synchronous question to the host. The kernel ties an open /dev/dxg to the process that opened it and
 * answers others with ENOTTY (dxgkrnl ioctl.c), so the descriptor is opened here, used and closed. That closes the
 * adapters, too (dxgkrnl dxgprocess.c), and saves a call for each. Strings are UTF-16.
 */

/* Linux uapi misc/d3dkmthk.h. */
#define LX_DXQUERYADAPTERINFO _IOWR(0x47, 0x09, struct d3dkmt_queryadapterinfo)
#define LX_DXENUMADAPTERS2 _IOWR(0x47, 0x14, struct d3dkmt_enumadapters2)
#define LX_DXENUMADAPTERS3 _IOWR(0x47, 0x3e, struct d3dkmt_enumadapters3)

/* A process that opens the device is made known to the host, which refuses where it has no adapter for this machine. */
enum { NO_ADAPTERS = EBADF };

bool ioctl_has_no_adapters(void)
{
	_cleanup_close_ int fd = open(PATH_DXG, O_RDONLY | O_CLOEXEC);

	return fd < 0 && errno == NO_ADAPTERS;
}

static int ioctl_call(int fd, unsigned long request, void *arguments)
{
	int r;

	do {
		r = ioctl(fd, request, arguments);
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

static int ioctl_call_enumerate3(const struct d3dkmt *d3dkmt, struct d3dkmt_enumadapters3 *arguments)
{
	return ioctl_call(d3dkmt->fd, LX_DXENUMADAPTERS3, arguments);
}

static int ioctl_call_enumerate2(const struct d3dkmt *d3dkmt, struct d3dkmt_enumadapters2 *arguments)
{
	return ioctl_call(d3dkmt->fd, LX_DXENUMADAPTERS2, arguments);
}

int ioctl_query(int fd, struct d3dkmt_queryadapterinfo *arguments)
{
	return ioctl_call(fd, LX_DXQUERYADAPTERINFO, arguments);
}

static int ioctl_call_query(const struct d3dkmt *d3dkmt, struct d3dkmt_queryadapterinfo *arguments)
{
	return ioctl_query(d3dkmt->fd, arguments);
}

int ioctl_adapters(struct dxg_facts **ret, size_t *ret_count, struct err *err)
{
	_cleanup_close_ int fd = open(PATH_DXG, O_RDONLY | O_CLOEXEC);
	struct d3dkmt calls = {
		.enumerate3 = ioctl_call_enumerate3,
		.enumerate2 = ioctl_call_enumerate2,
		.query = ioctl_call_query,
		.char_size = sizeof(uint16_t),
		.fd = fd,
	};
	int r;

	if (fd < 0 && errno == NO_ADAPTERS) {
		*ret = NULL;
		*ret_count = 0;
		return 0;
	}
	if (fd < 0)
		return err_set_advised(
			err, -errno, ("cannot open " PATH_DXG ": %m"),
			("%s", errno == EACCES || errno == EPERM
				       ? "Its mode should be 0666, and a container needs its device rule."
				       : "Run wsl --shutdown in Windows, or restart the virtual machine."));
	r = d3dkmt_describe_adapters(&calls, ret, ret_count);
	if (r == -EPROTO)
		return err_set_advised(
			err, r, (PATH_DXG " lists more than 64 adapters, the most that programs can be given: %m"),
			("Give this machine fewer of the host's GPUs."));
	if (r < 0)
		return err_set_advised(
			err, r, ("asking " PATH_DXG " for the adapters failed: %m"),
			("Run wsl --shutdown in Windows, or restart the virtual machine; dmesg | grep dxg may tell "
			 "more."));
	return 0;
}
