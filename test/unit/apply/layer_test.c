/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apply/internal.h"

enum { READ_AT_MOST = 256 * 1024, STARTS = 40, NOTES = 100 };

static char bundle[] = "/tmp/ctr-gpu-bundle-XXXXXX";

/* A start of the container. @number: of what it makes, which may be the same each time. Return: the record's size. */
static off_t start_container(int number)
{
	struct undo_log *undo_log = undo_log_new(false);
	char path[128];
	struct stat st;

	assert_non_null(undo_log);
	layer_begin(undo_log, bundle, "/run/rootfs");
	for (int i = 0; i < NOTES; i++) {
		(void)snprintf(path, sizeof(path), "/usr/lib/ctr-gpu/a-library-of-the-driver-with-a-long-name/%d-%d",
			       number, i);
		undo_log_note(undo_log, 's', path, "/usr/lib/wsl/lib/libcuda.so.1");
	}
	layer_save(undo_log, false);
	(void)undo_log_free(undo_log);
	(void)snprintf(path, sizeof(path), "%s/" LAYER_RECORD, bundle);
	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

/* It would be read no more, and nothing would be taken out of the layer. */
static void a_record_stays_short_enough_to_be_read(void **state)
{
	char command[128];
	off_t size, last = 0;

	(void)state;
	assert_non_null(mkdtemp(bundle));
	size = start_container(0);
	for (int i = 0; i < STARTS; i++)
		assert_int_equal(start_container(0), size);
	assert_true(start_container(1) > size);
	for (int i = 2; i < STARTS; i++)
		last = start_container(i);
	assert_between(last, READ_AT_MOST / 2, READ_AT_MOST);
	(void)snprintf(command, sizeof(command), "rm -rf %s", bundle);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_stays_short_enough_to_be_read),
	};

	return cmocka_run_group_tests_name("layer", tests, NULL, NULL);
}
