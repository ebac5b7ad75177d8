/* SPDX-License-Identifier: Apache-2.0 */

/* The file of what is known of a native host: what is written is read again, and nothing else. */

#include <stdlib.h>
#include <time.h>

#include "unit.h"

#include <errno.h>

#include "nvidia/internal.h"

#define HEAD "ctr-gpu nvidia 1 boot"
#define ADDRESS "0000:c1:00.0"
#define GPU "gpu " ADDRESS " 22.4711 2330 13\nModel: H100\n \n"
#define DRIVER "driver 580.159.04 1.2.3.4.5.6 \n"
#define DIR_HERE "libraries 64 listed 1.2.3.4.5.6 /usr/lib with a blank\n"
#define ALL                                                      \
	HEAD "\n" GPU DRIVER "place 1.2.3.4.5.6 /lib\n" DIR_HERE \
	     "name libcuda.so.580.159.04\nlibraries 32 unlisted 7 /x\nend\n"

static int parse(const char *text, size_t size, struct nvidia_cache *ret)
{
	_cleanup_free_ char *copy = malloc(size + 1);

	assert_non_null(copy);
	memcpy(copy, text, size);
	copy[size] = '\0';
	*ret = (struct nvidia_cache){.head = strdup(HEAD)};
	return nvidia_cache_parse(copy, size, ret);
}

static void the_same_comes_back(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct nvidia_cache known;
	struct nvidia_cache_gpu *gpu;

	(void)state;
	assert_int_equal(parse(ALL, strlen(ALL), &known), 0);
	assert_false(known.is_new);
	assert_null(nvidia_cache_find_gpu(&known, ADDRESS, "22.4712"));
	assert_null(nvidia_cache_find_gpu(&known, "0000:c2:00.0", "22.4711"));
	gpu = nvidia_cache_find_gpu(&known, ADDRESS, "22.4711");
	assert_non_null(gpu);
	assert_string_equal(gpu->information, "Model: H100\n ");
	assert_int_equal(gpu->device_id, 0x2330);
	assert_string_equal(known.driver.root, "");
	assert_int_equal(known.driver.place_count, 1);
	assert_int_equal(known.driver.dir_count, 2);
	assert_string_equal(known.driver.dirs[0].place.path, "/usr/lib with a blank");
	assert_true(known.driver.dirs[0].is_listed);
	assert_int_equal(known.driver.dirs[0].names.count, 1);
	assert_true(known.driver.dirs[1].is_32);
	assert_false(known.driver.dirs[1].is_listed);
	gpu->is_here = true;
	assert_int_equal(nvidia_cache_print(&known, &text), 0);
	assert_string_equal(text, ALL);
	nvidia_cache_close(&known);
}

static void a_gpu_that_is_gone_is_forgotten(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct nvidia_cache known;

	(void)state;
	assert_int_equal(parse(ALL, strlen(ALL), &known), 0);
	assert_int_equal(nvidia_cache_put_gpu(&known, "0000:c2:00.0", "22.5", 0x2331, "Model: other\n"), 0);
	assert_true(known.is_new);
	assert_int_equal(nvidia_cache_print(&known, &text), 0);
	assert_null(strstr(text, ADDRESS));
	assert_non_null(strstr(text, "gpu 0000:c2:00.0 22.5 2331 13\nModel: other\n\n"));
	/* Another device in the same place. */
	assert_int_equal(nvidia_cache_put_gpu(&known, "0000:c2:00.0", "22.6", 0x2331, "Model: third\n"), 0);
	assert_null(nvidia_cache_find_gpu(&known, "0000:c2:00.0", "22.5"));
	assert_non_null(nvidia_cache_find_gpu(&known, "0000:c2:00.0", "22.6"));
	assert_int_equal(known.gpu_count, 2);
	nvidia_cache_close(&known);
}

static const char *const malformed[] = {
	"",
	"\n",
	HEAD,
	HEAD "\n",
	HEAD "x\nend\n",
	"ctr-gpu nvidia 2 boot\nend\n",
	"ctr-gpu nvidia 1 other\n" GPU "end\n",
	HEAD "\n" GPU,
	HEAD "\n\nend\n",
	HEAD "\nother x\nend\n",
	HEAD "\nend of it\n",
	ALL "x",
	ALL "\n",
	HEAD "\ngpu\nend\n",
	HEAD "\ngpu \nend\n",
	HEAD "\ngpu 0000:c1:00.0\nend\n",
	HEAD "\ngpu 0000:c1:00.0 1 2330\nend\n",
	HEAD "\ngpu 0000:c1:00.0  2330 1\nx\nend\n",
	HEAD "\ngpu ../../../etc 1 2330 1\nx\nend\n",
	HEAD "\ngpu 0000:c1:00.0 1 12330 1\nx\nend\n",
	HEAD "\ngpu 0000:c1:00.0 1 -1 1\nx\nend\n",
	HEAD "\ngpu 0000:c1:00.0 1 2330 -1\nx\nend\n",
	HEAD "\ngpu 0000:c1:00.0 1 2330 1x\nx\nend\n",
	HEAD "\ngpu 0000:c1:00.0 1 2330 2\nx\nend\n",
	HEAD "\ngpu 0000:c1:00.0 1 2330 9999\nx\nend\n",
	HEAD "\ngpu 0000:c1:00.0 1 2330 6\nx\nend\n",
	HEAD "\ngpu 0000:c1:00.0 1 2330 99999999999999999999\nx\nend\n",
	HEAD "\ngpu 0000:c1:00.0 1 2330 1",
	HEAD "\ndriver 580.1\nend\n",
	HEAD "\ndriver 580.1 stamp\nend\n",
	HEAD "\ndriver  stamp /\nend\n",
	HEAD "\n" DRIVER DRIVER "end\n",
	HEAD "\n" DRIVER "place 1\nend\n",
	HEAD "\n" DRIVER "place 1 relative\nend\n",
	HEAD "\n" DRIVER "name libcuda.so.1\nend\n",
	HEAD "\n" DRIVER DIR_HERE "name ../libcuda.so.1\nend\n",
	HEAD "\n" DRIVER DIR_HERE "name lib/../cuda.so.1\nend\n",
	HEAD "\n" DRIVER "libraries 64 listed\nend\n",
	HEAD "\n" DRIVER "libraries 64 listed 1\nend\n",
	HEAD "\n" DRIVER "libraries 64 listed 1 x\nend\n",
};

static void nothing_malformed_is_believed(void **state)
{
	static const char with_nul[] = HEAD "\n\0end\n";
	struct nvidia_cache known;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(malformed); i++) {
		if (parse(malformed[i], strlen(malformed[i]), &known) != -EINVAL)
			fail_msg("%zu: %s", i, malformed[i]);
		assert_int_equal(known.gpu_count, 0);
		assert_null(known.driver.version);
		nvidia_cache_close(&known);
	}
	assert_int_equal(parse(with_nul, sizeof(with_nul) - 1, &known), -EINVAL);
	nvidia_cache_close(&known);
	/* Whatever is cut off. */
	for (size_t size = 0; size < strlen(ALL) - 1; size++) {
		assert_int_equal(parse(ALL, size, &known), -EINVAL);
		nvidia_cache_close(&known);
	}
}

static void more_than_there_can_be(void **state)
{
	static const struct {
		const char *line;
		size_t max;
	} lines[] = {
		{"place 1 /lib\n", NVIDIA_CACHE_PLACES_MAX},
		{"libraries 64 listed 1 /lib\n", NVIDIA_CACHE_DIRS_MAX},
		{"name libx.so.1\n", NVIDIA_CACHE_NAMES_MAX},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		for (size_t more = 0; more < 2; more++) {
			_cleanup_free_ char *text = strdup(HEAD "\n" DRIVER);
			struct nvidia_cache known;

			if (lines[i].max == NVIDIA_CACHE_NAMES_MAX)
				assert_int_equal(str_append(&text, DIR_HERE), 0);
			for (size_t j = 0; j < lines[i].max + more; j++)
				assert_int_equal(str_append(&text, "%s", lines[i].line), 0);
			assert_int_equal(str_append(&text, "end\n"), 0);
			assert_int_equal(parse(text, strlen(text), &known), more ? -EINVAL : 0);
			nvidia_cache_close(&known);
		}
}

static void times_settle(void **state)
{
	const time_t now = time(NULL);
	struct stat st = {0};

	(void)state;
	assert_true(nvidia_cache_is_settled(&st, now));
	st.st_mtim.tv_sec = now;
	assert_false(nvidia_cache_is_settled(&st, now));
	st.st_ctim.tv_sec = st.st_mtim.tv_sec - 60;
	assert_false(nvidia_cache_is_settled(&st, now));
	st.st_mtim.tv_sec -= 60;
	assert_true(nvidia_cache_is_settled(&st, now));
	st.st_ctim.tv_sec += 3600;
	assert_false(nvidia_cache_is_settled(&st, now));
}

static void a_stamp_has_all_of_it(void **state)
{
	static const struct stat other[] = {
		{.st_dev = 1},          {.st_ino = 1},         {.st_mtim.tv_sec = 1},
		{.st_mtim.tv_nsec = 1}, {.st_ctim.tv_sec = 1}, {.st_ctim.tv_nsec = 1},
	};
	_cleanup_free_ char *stamp = NULL;

	(void)state;
	assert_int_equal(nvidia_cache_fingerprint(&(struct stat){0}, &stamp), 0);
	assert_true(nvidia_cache_is_fingerprint(stamp, &(struct stat){.st_size = 7}));
	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		assert_false(nvidia_cache_is_fingerprint(stamp, &other[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_comes_back),
		cmocka_unit_test(a_gpu_that_is_gone_is_forgotten),
		cmocka_unit_test(nothing_malformed_is_believed),
		cmocka_unit_test(more_than_there_can_be),
		cmocka_unit_test(times_settle),
		cmocka_unit_test(a_stamp_has_all_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
