/* SPDX-License-Identifier: Apache-2.0 */

/* cuGetProcAddress: every name that the tests know, versions, twins, and names that are none. */

#include <string.h>

#include "check.h"

static void *entry_of(const char *name, int version, unsigned flags, int *ret_status)
{
	void *function = NULL;

	*ret_status = -1;
	(void)cu.cuGetProcAddress_v2(name, &function, version, flags, ret_status);
	return function;
}

#define ENTRY_NONE(name, symbol, version, parameters)
#define ENTRY_NAMES(name, symbol, version, parameters) {#name, #symbol, version},
#define ENTRY_TWIN_NAMES(name, symbol, version, suffix, parameters, arguments) {#name, #symbol, version},
static const struct {
	const char *name, *symbol;
	int version;
} entries[] = {CUDA_FUNCTIONS(ENTRY_NAMES, ENTRY_TWIN_NAMES)};

/* Of the functions that the tests know, those that vCUDA refuses are not found there, so that programs take another way. */
static const char *const entries_declared[] = {"cuDeviceGetLuid"};
enum { ENTRIES_DECLARED = sizeof(entries_declared) / sizeof(entries_declared[0]) };

static bool entry_is_declared(const char *name)
{
	for (size_t i = 0; i < ENTRIES_DECLARED; i++)
		if (strcmp(entries_declared[i], name) == 0)
			return true;
	return false;
}

static void entry_all(void)
{
	int status, missing = 0;

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		void *function = entry_of(entries[i].name, entries[i].version, 0, &status);

		if ((function && status == 0) || entry_is_declared(entries[i].name))
			continue;
		got_text(entries[i].symbol);
		missing++;
	}
	want(missing, 0);
}

static void entry_symbols(void)
{
	int missing = 0;

	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (!check_symbol(entries[i].symbol)) {
			got_text(entries[i].symbol);
			missing++;
		}
	want(missing, 0);
}

#define ENTRY_TWIN(name, symbol, version, suffix, parameters, arguments) {#name, #symbol "_" #suffix, version},
static const struct {
	const char *name, *symbol;
	int version;
} twins[] = {CUDA_FUNCTIONS(ENTRY_NONE, ENTRY_TWIN)};

/* With flag 2 there is another function than without, where there are twins, which came with CUDA 7. */
static void entry_twins(void)
{
	int status, missing = 0;

	for (size_t i = 0; i < sizeof(twins) / sizeof(twins[0]); i++) {
		int version = twins[i].version < 7000 ? 7000 : twins[i].version;
		void *twin = entry_of(twins[i].name, version, 2, &status);

		if (twin && check_symbol(twins[i].symbol) && twin != entry_of(twins[i].name, version, 1, &status))
			continue;
		got_text(twins[i].symbol);
		missing++;
	}
	want(missing, 0);
}

static void entry_versions(void)
{
	int status;
	void *old = entry_of("cuCtxGetDevice", 12000, 0, &status), *new;

	TRUE(old != NULL);
	IS(0, status);
	new = entry_of("cuCtxGetDevice", 13000, 0, &status);
	IS(0, status);
	TRUE(new != old);
	TRUE(entry_of("cuEventElapsedTime", 12000, 0, &status) != entry_of("cuEventElapsedTime", 12080, 0, &status));
	TRUE(entry_of("cuCtxCreate", 3020, 0, &status) != entry_of("cuCtxCreate", 11040, 0, &status));
	TRUE(entry_of("cuCtxCreate", 11040, 0, &status) != entry_of("cuCtxCreate", 13000, 0, &status));
}

static void entry_too_new(void)
{
	int status;

	TRUE(entry_of("cuLibraryLoadData", 11000, 0, &status) == NULL);
	IS(2, status);
	TRUE(entry_of("cuMemAllocAsync", 10000, 0, &status) == NULL);
	IS(2, status);
}

/* Whoever asks with an older version gets the first form, or none, of what is offered. */
static void entry_first_forms(void)
{
	int status;

	TRUE(entry_of("cuGraphAddKernelNode", 11000, 0, &status) !=
	     entry_of("cuGraphAddKernelNode", 12000, 0, &status));
	IS(0, status);
	TRUE(entry_of("cuStreamWaitValue32", 8000, 0, &status) != entry_of("cuStreamWaitValue32", 11070, 0, &status));
	TRUE(entry_of("cuStreamWaitValue32", 8000, 2, &status) != entry_of("cuStreamWaitValue32", 8000, 1, &status));
	TRUE(entry_of("cuStreamWaitValue32", 7000, 0, &status) == NULL);
	IS(2, status);
}

static void entry_refused(void)
{
	int status;

	NOTE(entry_of("cuMemAllocManaged", 5050, 0, &status) == NULL);
	NOTE(status);
	for (size_t i = 0; i < ENTRIES_DECLARED; i++) {
		NOTE(entry_of(entries_declared[i], 13000, 0, &status) != NULL);
		NOTE(status);
	}
}

static void entry_unknown(void)
{
	void *function = (void *)entry_unknown;
	int status;

	TRUE(entry_of("cuNoSuchFunction", 13000, 0, &status) == NULL);
	IS(1, status);
	TRUE(entry_of("", 13000, 0, &status) == NULL);
	NOTE(status);
	NOTE(cu.cuGetProcAddress("cuNoSuchFunction", &function, 12000, 0));
	TRUE(function == (void *)entry_unknown);
	NOTE(cu.cuGetProcAddress_v2("cuInit", &function, 13000, 9, &status));
}

static void entry_first(void)
{
	CUresult (*init)(unsigned) = NULL;
	void *function = NULL;

	IS(0, cu.cuGetProcAddress("cuInit", &function, 12000, 0));
	memcpy(&init, &function, sizeof(init));
	OK(init ? init(0) : -1);
}

static void entry_tables(void)
{
	static const CUuuid other = {{1}};
	static const CUuuid unknown = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
	const void *table = NULL;
	int mode;

	OK(cu.cuInit(0));
	NOTE(cu.cuGetExportTable(&table, &unknown));
	TRUE(table == NULL);
	/* Who tells of it, tells once of each. */
	(void)cu.cuGetExportTable(&table, &unknown);
	(void)cu.cuGetExportTable(&table, &other);
	/* And what it was told is heard before this is answered. */
	(void)cu.cuModuleGetLoadingMode(&mode);
}

const struct check entry_checks[] = {
	{"every symbol is exported", entry_symbols, true},
	{"every name is found", entry_all, true},
	{"every twin is found", entry_twins, true},
	{"versions of one name differ", entry_versions, true},
	{"newer than was asked for", entry_too_new, true},
	{"first forms", entry_first_forms, true},
	{"names of what vCUDA refuses (declared)", entry_refused, true},
	{"unknown names", entry_unknown, true},
	{"cuInit by it", entry_first, true},
	{"a table that is none", entry_tables, true},
	END,
};
