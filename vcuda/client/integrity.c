/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What NVIDIA's CUDA runtime asks its driver for when it starts, and compares with what it has made itself: an HMAC
 * (RFC 2104) with MD2 (RFC 1319), by a key that is publicly known, of what both know: versions, process and thread,
 * where the tables are, the time, and the GPUs. A build without this file serves programs of the driver API alone.
 */

#include <pthread.h>
#include <string.h>

#include "vcuda/client/call.h"
#include "vcuda/client/table.h"
#include "vcuda/client_api.h"

enum { MD2_BLOCK = 16, MD2_STATE = 48, MD2_ROUNDS = 18, INNER = 0x36, OUTER = 0x5c };
enum { PCI_BUS = 33, PCI_DEVICE = 34, PCI_DOMAIN = 50 }; /* of CUdevice_attribute */

/* Digits of pi, as RFC 1319 has them. */
static const uint8_t md2_pi[256] = {
	41,  46,  67,  201, 162, 216, 124, 1,   61,  54,  84,  161, 236, 240, 6,   19,  98,  167, 5,   243, 192, 199,
	115, 140, 152, 147, 43,  217, 188, 76,  130, 202, 30,  155, 87,  60,  253, 212, 224, 22,  103, 66,  111, 24,
	138, 23,  229, 18,  190, 78,  196, 214, 218, 158, 222, 73,  160, 251, 245, 142, 187, 47,  238, 122, 169, 104,
	121, 145, 21,  178, 7,   63,  148, 194, 16,  137, 11,  34,  95,  33,  128, 127, 93,  154, 90,  144, 50,  39,
	53,  62,  204, 231, 191, 247, 151, 3,   255, 25,  48,  179, 72,  165, 181, 209, 215, 94,  146, 42,  172, 86,
	170, 198, 79,  184, 56,  210, 150, 164, 125, 182, 118, 252, 107, 226, 156, 116, 4,   241, 69,  157, 112, 89,
	100, 113, 135, 32,  134, 91,  207, 101, 230, 45,  168, 2,   27,  96,  37,  173, 174, 176, 185, 246, 28,  70,
	97,  105, 52,  64,  126, 15,  85,  71,  163, 35,  221, 81,  175, 58,  195, 92,  249, 206, 186, 197, 234, 38,
	44,  83,  13,  110, 133, 40,  132, 9,   211, 223, 205, 244, 65,  129, 77,  82,  106, 220, 55,  200, 108, 193,
	171, 250, 36,  225, 123, 8,   12,  189, 177, 74,  120, 136, 149, 139, 227, 99,  232, 109, 233, 203, 213, 254,
	59,  0,   29,  57,  242, 239, 183, 14,  102, 88,  208, 228, 166, 119, 114, 248, 235, 117, 75,  10,  49,  68,
	80,  180, 143, 237, 31,  26,  219, 153, 141, 51,  159, 17,  131, 20,
};

static const uint8_t integrity_key[MD2_BLOCK] = {
	0x14, 0x6a, 0xdd, 0xae, 0x53, 0xa9, 0xa7, 0x52, 0xaa, 0x08, 0x41, 0x36, 0x0b, 0xf5, 0x5a, 0x9f,
};

struct md2 {
	uint8_t state[MD2_STATE], checksum[MD2_BLOCK], block[MD2_BLOCK];
	unsigned filled;
};

static void integrity_mix(struct md2 *md2)
{
	uint8_t last = md2->checksum[MD2_BLOCK - 1], t = 0;

	for (int i = 0; i < MD2_BLOCK; i++) {
		last = md2->checksum[i] ^= md2_pi[md2->block[i] ^ last];
		md2->state[MD2_BLOCK + i] = md2->block[i];
		md2->state[2 * MD2_BLOCK + i] = md2->block[i] ^ md2->state[i];
	}
	for (unsigned round = 0; round < MD2_ROUNDS; round++) {
		for (int i = 0; i < MD2_STATE; i++)
			t = md2->state[i] ^= md2_pi[t];
		t = (uint8_t)(t + round);
	}
	md2->filled = 0;
}

static void integrity_add(struct md2 *md2, const void *data, size_t bytes)
{
	for (const uint8_t *at = data; at < (const uint8_t *)data + bytes; at++) {
		md2->block[md2->filled++] = *at;
		if (md2->filled == MD2_BLOCK)
			integrity_mix(md2);
	}
}

static void integrity_end(struct md2 *md2, uint8_t digest[MD2_BLOCK])
{
	const unsigned left = MD2_BLOCK - md2->filled;
	uint8_t checksum[MD2_BLOCK];

	memset(md2->block + md2->filled, (int)left, left);
	integrity_mix(md2);
	memcpy(checksum, md2->checksum, sizeof(checksum));
	integrity_add(md2, checksum, sizeof(checksum));
	memcpy(digest, md2->state, MD2_BLOCK);
}

static struct md2 integrity_begin(uint8_t pad)
{
	struct md2 md2 = {0};
	uint8_t key[MD2_BLOCK];

	for (int i = 0; i < MD2_BLOCK; i++)
		key[i] = integrity_key[i] ^ pad;
	integrity_add(&md2, key, sizeof(key));
	return md2;
}

static void integrity_add_call(struct md2 *md2, uint32_t version, uint64_t seconds)
{
	struct table_addresses at;
	int driver = 0;

	table_tell_addresses(&at);
	(void)cuDriverGetVersion(&driver);
	const struct {
		uint32_t driver, version, process, thread;
		struct table_addresses at;
		uint64_t seconds;
	} call = {(uint32_t)driver, version, (uint32_t)syscall(SYS_getpid), (uint32_t)(uintptr_t)pthread_self(), at,
		  seconds};

	integrity_add(md2, &call, sizeof(call));
}

static CUresult integrity_add_devices(struct md2 *md2)
{
	int count = 0;
	CUresult r = cuDeviceGetCount(&count);

	for (int i = 0; !r && i < count; i++) {
		struct {
			CUuuid uuid;
			int domain, bus, device;
		} gpu = {0};

		r = cuDeviceGetUuid_v2(&gpu.uuid, i);
		(void)cuDeviceGetAttribute(&gpu.domain, PCI_DOMAIN, i);
		(void)cuDeviceGetAttribute(&gpu.bus, PCI_BUS, i);
		(void)cuDeviceGetAttribute(&gpu.device, PCI_DEVICE, i);
		integrity_add(md2, &gpu, sizeof(gpu));
	}
	return r;
}

CUresult table_integrity(uint32_t version, uint64_t seconds, uint64_t *result)
{
	struct md2 md2 = integrity_begin(INNER);
	uint8_t digest[MD2_BLOCK];
	CUresult r;

	if (!result)
		return CUDA_ERROR_INVALID_VALUE;
	/* For these versions of the question the answer is a constant. */
	if (version % 10 < 2) {
		result[0] = version % 10 ? 0x1841181c03cb675c : 0x3341181c03cb675c;
		result[1] = 0x8ed383aa1f4cd1e8;
		return CUDA_SUCCESS;
	}
	integrity_add_call(&md2, version, seconds);
	r = integrity_add_devices(&md2);
	if (r)
		return r;
	integrity_end(&md2, digest);
	md2 = integrity_begin(OUTER);
	integrity_add(&md2, digest, sizeof(digest));
	integrity_end(&md2, digest);
	memcpy(result, digest, sizeof(digest));
	return CUDA_SUCCESS;
}
