/* SPDX-License-Identifier: Apache-2.0 */

/* The GPUs: as many, as large and under such names as the configuration says; else one that resembles a data centre's. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "sim.h"

static struct device devices[SIM_GPUS_MAX];
static int count;
static bool reaches;

/* The n-th word of a list divided by commas, or the last one. */
static const char *device_word(const char *key, int index, char *word, size_t size)
{
	const char *value = config_value(key);

	if (!value || !*value)
		return NULL;
	for (; index > 0 && strchr(value, ','); index--)
		value = strchr(value, ',') + 1;
	(void)snprintf(word, size, "%.*s", (int)strcspn(value, ","), value);
	return word;
}

static size_t device_size(const char *text)
{
	char *end;
	size_t size = strtoull(text, &end, 0);

	return size << (*end == 'G' ? 30 : *end == 'M' ? 20 : *end == 'K' ? 10 : 0);
}

static void device_make(struct device *device, int ordinal)
{
	char word[128];
	unsigned byte;

	device->ordinal = device->place = ordinal;
	device->memory = device_size(device_word("MEMORY", ordinal, word, sizeof(word)) ? word : "16G");
	if (device_word("NAMES", ordinal, word, sizeof(word)))
		(void)snprintf(device->name, sizeof(device->name), "%.63s", word);
	else
		(void)snprintf(device->name, sizeof(device->name), "Simulated GPU %d", ordinal);
	for (int i = 0; i < 16; i++)
		device->uuid[i] = (unsigned char)(0x10 * (ordinal + 1) + i);
	if (device_word("UUIDS", ordinal, word, sizeof(word)))
		for (size_t i = 0; i < 16 && sscanf(word + 2 * i, "%2x", &byte) == 1; i++)
			device->uuid[i] = (unsigned char)byte;
}

/*
 * Whether kernels reach all memory: as NVIDIA's library does, this asks the kernel by an ioctl() that the program may have
 * put in the place of the C library's, with flags that forbid it. PAGEABLE=2: by one that nobody hears.
 */
static bool device_is_let_reach(void)
{
	enum { UVM_INITIALIZE = 0x30000001, FORBIDDEN = 1 | 4 };
	struct {
		uint64_t flags;
		uint32_t status;
	} begin = {0, 0};
	const unsigned long long pageable = config_number("PAGEABLE", 0);
	int fd;

	if (pageable != 1)
		return pageable > 1;
	fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	(void)ioctl(fd, UVM_INITIALIZE, &begin);
	(void)close(fd);
	return !(begin.flags & FORBIDDEN);
}

int device_init(void)
{
	reaches = device_is_let_reach();
	count = (int)config_number("GPUS", 1);
	if (count > SIM_GPUS_MAX)
		count = SIM_GPUS_MAX;
	for (int i = 0; i < count; i++)
		device_make(&devices[i], i);
	return count > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

int device_count(void)
{
	return count;
}

struct device *device_get(CUdevice device)
{
	return device >= 0 && device < count ? &devices[device] : NULL;
}

CUresult device_charge(struct device *device, size_t bytes)
{
	if (bytes > device->memory || device->used > device->memory - bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	device->used += bytes;
	return CUDA_SUCCESS;
}

void device_refund(struct device *device, size_t bytes)
{
	device->used -= bytes;
}

/* Number and value, as an H100 has them; what is not here is 0. */
static const struct {
	unsigned short attribute;
	int value;
} attributes[] = {
	{1, 1024},   {2, 1024},     {3, 1024},    {4, 64},          {5, 2147483647},  {6, 65535},    {7, 65535},
	{8, 49152},  {9, 65536},    {10, 32},     {11, 2147483647}, {12, 65536},      {13, 1980000}, {14, 512},
	{15, 1},     {16, 132},     {19, 1},      {21, 131072},     {22, 131072},     {23, 65536},   {24, 16384},
	{25, 16384}, {26, 16384},   {27, 32768},  {28, 32768},      {29, 2048},       {30, 512},     {31, 1},
	{32, 1},     {36, 2619000}, {37, 5120},   {38, 52428800},   {39, 2048},       {40, 3},       {41, 1},
	{42, 32768}, {43, 2048},    {45, 32768},  {46, 32768},      {47, 16384},      {51, 32},      {75, 9},
	{76, 0},     {78, 1},       {79, 1},      {80, 1},          {81, 233472},     {82, 65536},   {90, 1},
	{95, 1},     {96, 1},       {97, 232448}, {98, 0},          {99, 1},          {102, 1},      {103, 1},
	{83, 1},     {89, 1},       {106, 32},    {108, 83886080},  {109, 134213632}, {111, 1024},   {115, 1},
	{119, 1},    {120, 1},      {122, 1},     {123, 1},         {125, 1},         {133, 1},      {142, 0},
};

int device_attribute(const struct device *device, int attribute)
{
	if (attribute == 33)
		return 0x10 + device->ordinal; /* PCI bus */
	if (attribute == 88)
		return reaches;
	if (attribute == 100)
		return (int)config_number("HOST_PAGE_TABLES", 0);
	if (attribute == 99 || attribute == 91)
		return attribute == 99 ? (int)config_number("HOST_REGISTER", 1)
				       : (int)config_number("HOST_IDENTITY", 1);
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].attribute == attribute)
			return attributes[i].value;
	return 0;
}

/* What is asked of one device. */
#define DEVICE(number)           \
	struct device *of;       \
	CALL(__func__);          \
	of = device_get(number); \
	LEAVE_IF(!of, CUDA_ERROR_INVALID_DEVICE)

CUresult cuDeviceGetCount(int *ret)
{
	CALL(__func__);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = count;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGet(CUdevice *ret, int ordinal)
{
	CALL(__func__);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(!device_get(ordinal), CUDA_ERROR_INVALID_DEVICE);
	*ret = ordinal;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
	DEVICE(device);
	LEAVE_IF(!name || size <= 0, CUDA_ERROR_INVALID_VALUE);
	(void)snprintf(name, (size_t)size, "%s", of->name);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGetUuid_v2(CUuuid *ret, CUdevice device)
{
	DEVICE(device);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	memcpy(ret->bytes, of->uuid, sizeof(of->uuid));
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGetUuid(CUuuid *ret, CUdevice device)
{
	return cuDeviceGetUuid_v2(ret, device);
}

CUresult cuDeviceGetLuid(char *luid, unsigned *mask, CUdevice device)
{
	DEVICE(device);
	(void)luid;
	(void)mask;
	LEAVE(CUDA_ERROR_NOT_SUPPORTED);
}

CUresult cuDeviceTotalMem_v2(size_t *ret, CUdevice device)
{
	DEVICE(device);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = of->memory;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *ret, int format, unsigned channels, CUdevice device)
{
	DEVICE(device);
	LEAVE_IF(!ret || format <= 0 || (channels != 1 && channels != 2 && channels != 4), CUDA_ERROR_INVALID_VALUE);
	*ret = (size_t)1 << 28;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGetAttribute(int *ret, int attribute, CUdevice device)
{
	DEVICE(device);
	LEAVE_IF(!ret || attribute <= 0 || attribute > 150, CUDA_ERROR_INVALID_VALUE);
	*ret = device_attribute(of, attribute);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGetProperties(CUdevprop *ret, CUdevice device)
{
	DEVICE(device);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = (CUdevprop){.max_threads_per_block = device_attribute(of, 1),
			   .shared_memory_per_block = device_attribute(of, 8),
			   .total_constant_memory = device_attribute(of, 9),
			   .simd_width = device_attribute(of, 10),
			   .memory_pitch = device_attribute(of, 11),
			   .registers_per_block = device_attribute(of, 12),
			   .clock_rate = device_attribute(of, 13),
			   .texture_align = device_attribute(of, 14)};
	for (int i = 0; i < 3; i++) {
		ret->max_threads_dim[i] = device_attribute(of, 2 + i);
		ret->max_grid_size[i] = device_attribute(of, 5 + i);
	}
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceComputeCapability(int *ret_major, int *ret_minor, CUdevice device)
{
	DEVICE(device);
	LEAVE_IF(!ret_major || !ret_minor, CUDA_ERROR_INVALID_VALUE);
	*ret_major = device_attribute(of, 75);
	*ret_minor = device_attribute(of, 76);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device)
{
	DEVICE(device);
	LEAVE_IF(!id || size < 13, CUDA_ERROR_INVALID_VALUE);
	(void)snprintf(id, (size_t)size, "0000:%02X:00.0", 0x10 + (unsigned)of->ordinal);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGetByPCIBusId(CUdevice *ret, const char *id)
{
	unsigned domain = 0, bus, slot;

	CALL(__func__);
	LEAVE_IF(!ret || !id, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(sscanf(id, "%x:%x:%x", &domain, &bus, &slot) != 3 &&
			 (domain = 0, sscanf(id, "%x:%x", &bus, &slot) != 2),
		 CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(domain || slot || bus < 0x10 || !device_get((int)bus - 0x10), CUDA_ERROR_INVALID_DEVICE);
	*ret = (int)bus - 0x10;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceCanAccessPeer(int *ret, CUdevice device, CUdevice peer)
{
	DEVICE(device);
	LEAVE_IF(!device_get(peer), CUDA_ERROR_INVALID_DEVICE);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = device != peer;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGetP2PAttribute(int *ret, int attribute, CUdevice from, CUdevice to)
{
	DEVICE(from);
	LEAVE_IF(!device_get(to) || from == to, CUDA_ERROR_INVALID_DEVICE);
	LEAVE_IF(!ret || attribute < 1 || attribute > 5, CUDA_ERROR_INVALID_VALUE);
	*ret = attribute == 2 || attribute == 3 || attribute == 4;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDeviceGetExecAffinitySupport(int *ret, int type, CUdevice device)
{
	DEVICE(device);
	(void)type;
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = 0;
	LEAVE(CUDA_SUCCESS);
}
