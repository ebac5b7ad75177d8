/* SPDX-License-Identifier: Apache-2.0 */

/* Memory that servers of a container give each other by descriptors, while another one writes what it likes among it. */

#include "unit.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"
#include "vcuda/server/share.h"

CUresult serve_cuMemExportToShareableHandle(struct request *q);
CUresult serve_cuMemImportFromShareableHandle(struct request *q);

enum { SLOT = 3, OTHER = 5, MEMORY = 0x5000, FOREIGN = 0x6000, BYTES = 2 << 20, TOKEN = 64 };

static struct start_quota quota;
static const struct start_orders orders = {.limit = UINT64_MAX};
static int memory, secret; /* the driver's descriptor, and one that is nobody's to have */
static uint64_t imports, released, named;
static ino_t imported;
static bool handles_are_out;

void lane_leave(struct request *q)
{
	(void)q;
}

void lane_forget_context(void)
{
}

static ino_t inode_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static CUresult export_memory(void *ret, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
			      unsigned long long flags)
{
	(void)type, (void)flags;
	assert_int_equal(handle, MEMORY);
	*(int *)ret = fcntl(memory, F_DUPFD_CLOEXEC, 0);
	return CUDA_SUCCESS;
}

static CUresult import_memory(CUmemGenericAllocationHandle *ret, void *fd, CUmemAllocationHandleType type)
{
	(void)type;
	imports++;
	imported = inode_of((int)(intptr_t)fd);
	*ret = named;
	return CUDA_SUCCESS;
}

static CUresult release(CUmemGenericAllocationHandle handle)
{
	(void)handle;
	released++;
	return CUDA_SUCCESS;
}

uint64_t __real_handle_give(enum wire_type type, uint64_t real, uint64_t parent, uint64_t context);
uint64_t __wrap_handle_give(enum wire_type type, uint64_t real, uint64_t parent, uint64_t context);

uint64_t __wrap_handle_give(enum wire_type type, uint64_t real, uint64_t parent, uint64_t context)
{
	return handles_are_out ? 0 : __real_handle_give(type, real, parent, context);
}

/* As the manager finds it. */
int __wrap_share_file_get(const struct share_file *file);

int __wrap_share_file_get(const struct share_file *file)
{
	return fcntl((int)file->fd, F_DUPFD_CLOEXEC, 0);
}

static int begin(void **state)
{
	const struct rlimit descriptors = {2 * SHARE_FD, 2 * SHARE_FD};

	(void)state;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
	server.quota = &quota;
	server.orders = &orders;
	server.start.quota_slot = SLOT;
	driver.cuMemExportToShareableHandle = export_memory;
	driver.cuMemImportFromShareableHandle = import_memory;
	driver.cuMemRelease = release;
	memory = memfd_create("memory", MFD_CLOEXEC);
	secret = fcntl(memfd_create("secret", MFD_CLOEXEC), F_DUPFD_CLOEXEC, SHARE_FD);
	assert_true(memory >= 0 && secret >= 0);
	named = MEMORY;
	return 0;
}

static CUresult import(const void *token)
{
	static struct request q;

	memset(&q, 0, sizeof(q));
	q.header.words = 2;
	q.header.bytes = 16 + TOKEN;
	q.argument[0] = TOKEN;
	q.argument[1] = 1;
	memcpy(&q.argument[2], token, TOKEN);
	return serve_cuMemImportFromShareableHandle(&q);
}

/* Memory of this server's, and a token of it. */
static void give(uint8_t token[TOKEN])
{
	static struct request q;

	q.header.words = 3;
	q.header.bytes = 24;
	q.argument[0] = handle_give(WIRE_MEMORY, MEMORY, 0, 0);
	q.argument[1] = 1;
	handle_hold(q.argument[0]);
	assert_true(quota_try(BYTES) && quota_note(QUOTA_PHYSICAL, MEMORY, BYTES, 0));
	(void)quota_hold(QUOTA_PHYSICAL, MEMORY, 1);
	(void)quota_forget(QUOTA_PHYSICAL, MEMORY);
	assert_int_equal(serve_cuMemExportToShareableHandle(&q), CUDA_SUCCESS);
	memcpy(token, q.reply, TOKEN);
}

/* Another place, as a server that was taken over writes it: a token that it knows, a slot and a number. */
static struct share *forge(uint8_t token[TOKEN], uint32_t slot, int fd)
{
	struct share *place = &quota.shares.place[quota.shares.used++];
	const struct share_file file = {.slot = slot, .fd = (uint32_t)fd};

	place->kind = SHARE_PHYSICAL;
	place->token[0] = place->token[1] = 7;
	memcpy(place->handle, &file, sizeof(file));
	memcpy(token + 8, place->token, sizeof(place->token));
	place->holders[0] = 1ULL << OTHER;
	place->state = SHARE_READY;
	return place;
}

static void a_server_imports_what_it_has_given_itself(void **state)
{
	uint8_t token[TOKEN];
	struct share_file file = {.slot = SLOT};
	struct share *place;

	(void)state;
	give(token);
	assert_int_equal(import(token), CUDA_SUCCESS);
	assert_int_equal(imported, inode_of(memory));
	/* Whatever stands there by now. */
	file.fd = (uint32_t)secret;
	memcpy(quota.shares.place[0].handle, &file, sizeof(file));
	assert_int_equal(import(token), CUDA_SUCCESS);
	assert_int_equal(imported, inode_of(memory));
	imports = 0;
	place = forge(token, SLOT, secret);
	assert_int_equal(import(token), CUDA_ERROR_UNKNOWN);
	assert_int_equal(imports, 0);
	assert_int_equal(place->holders[0], 1ULL << OTHER);
	place->token[0] = 0;
}

static void an_import_that_gets_no_handle_holds_nothing(void **state)
{
	uint8_t token[TOKEN];
	struct share *place;

	(void)state;
	give(token);
	place = forge(token, OTHER, memory);
	named = FOREIGN;
	handles_are_out = true;
	released = 0;
	assert_int_equal(import(token), CUDA_ERROR_OUT_OF_MEMORY);
	handles_are_out = false;
	assert_int_equal(released, 1);
	assert_int_equal(place->holders[0], 1ULL << OTHER);
	assert_int_equal(import(token), CUDA_SUCCESS);
	assert_int_equal(place->holders[0], 1ULL << OTHER | 1ULL << SLOT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_server_imports_what_it_has_given_itself, begin),
		cmocka_unit_test_setup(an_import_that_gets_no_handle_holds_nothing, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
