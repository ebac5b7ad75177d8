/* SPDX-License-Identifier: Apache-2.0 */

/* How many blocks fit; figures that all large GPUs share, and relations. */

#include "check.h"

static size_t occupancy_size_of(int block)
{
	return (size_t)block * 4;
}

static void occupancy_blocks(void)
{
	CUfunction function = check_function("nop");
	int few = 0, many = 0;

	OK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&few, function, 1024, 0));
	NOTE(few);
	OK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&many, function, 128, 0));
	NOTE(many);
	OK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&many, function, 128, 48 << 10));
	NOTE(many);
	OK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&many, function, 64, 0, 1));
	NOTE(many);
	NOTE(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&many, function, 2048, 0));
	IS(1, cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&many, function, 0, 0));
	IS(1, cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, function, 64, 0));
}

static void occupancy_best(void)
{
	CUfunction function = check_function("nop");
	int grid = 0, block = 0, processors = 0;

	OK(cu.cuDeviceGetAttribute(&processors, 16, 0));
	OK(cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, function, NULL, 0, 0));
	NOTE(block);
	TRUE(grid % processors == 0);
	OK(cu.cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, function, NULL, 0, 256, 0));
	NOTE(block);
	OK(cu.cuOccupancyMaxPotentialBlockSize(&grid, &block, function, occupancy_size_of, 0, 0));
	NOTE(block);
}

static void occupancy_shared(void)
{
	CUfunction function = check_function("nop");
	size_t size = 0, less = 0;

	OK(cu.cuOccupancyAvailableDynamicSMemPerBlock(&size, function, 1, 128));
	OK(cu.cuOccupancyAvailableDynamicSMemPerBlock(&less, function, 8, 128));
	TRUE(size >= 48 << 10 && less < size && less > 0);
	NOTE(cu.cuOccupancyAvailableDynamicSMemPerBlock(&size, function, 0, 128));
}

static void occupancy_clusters(void)
{
	CUfunction function = check_function("nop");
	CUlaunchAttribute cluster = {.id = 4, .value = {.cluster = {2, 1, 1}}};
	CUlaunchConfig config = {64, 1, 1, 128, 1, 1, 0, NULL, &cluster, 1};
	int value = 0, largest = 0;

	OK(cu.cuOccupancyMaxActiveClusters(&value, function, &config));
	TRUE(value > 0);
	config.attribute_count = 0;
	OK(cu.cuOccupancyMaxPotentialClusterSize(&largest, function, &config));
	NOTE(largest);
	IS(1, cu.cuOccupancyMaxActiveClusters(NULL, function, &config));
}

const struct check occupancy_checks[] = {
	{"blocks of a multiprocessor", occupancy_blocks, false},
	{"the best block", occupancy_best, false},
	{"shared memory left", occupancy_shared, false},
	{"clusters", occupancy_clusters, false},
	END,
};
