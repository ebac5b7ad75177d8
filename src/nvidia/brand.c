/* SPDX-License-Identifier: Apache-2.0 */

#include "nvidia/internal.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

/* The first that fits counts. NVML's nvmlBrandType_t has the names. */
static const struct {
	const char *prefix, *brand;
} brands[] = {
	{"GeForce RTX", "geforcertx"},
	{"GeForce", "geforce"},
	{"Quadro RTX", "quadrortx"},
	{"Quadro", "quadro"},
	{"TITAN RTX", "titanrtx"},
	{"TITAN", "titan"},
	{"Tesla", "tesla"},
	{"RTX", "nvidiartx"},
	{"GRID", "grid"},
	{"NVS", "nvs"},
};

/* "H200", "A100-SXM4-80GB", "GH200 480GB": those since Ampere have letters, a number, and no brand but the maker's. */
static bool brand_is_of_data_centre(const char *model)
{
	const size_t letters = strspn(model, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

	return letters > 0 && isdigit((unsigned char)model[letters]);
}

const char *brand_of(const char *model)
{
	static const char maker[] = "NVIDIA ";
	bool made = model && str_has_prefix(model, maker);

	if (!model)
		return NULL;
	/* Drivers of before 2021 leave the maker out. */
	model += made ? sizeof(maker) - 1 : 0;
	for (size_t i = 0; i < ARRAY_SIZE(brands); i++)
		if (str_has_prefix(model, brands[i].prefix))
			return brands[i].brand;
	return made && brand_is_of_data_centre(model) ? "nvidia" : NULL;
}

/* Ranges of PCI device ids that belong to one chip family, from the driver's list of supported products. */
static const struct {
	uint16_t first, last;
	const char *architecture;
} families[] = {
	{0x15f0, 0x15ff, "6.0"},  /* GP100 */
	{0x1b00, 0x1bff, "6.1"},  /* GP102, GP104 */
	{0x1c00, 0x1cff, "6.1"},  /* GP106, GP107 */
	{0x1d00, 0x1d7f, "6.1"},  /* GP108 */
	{0x1d80, 0x1dff, "7.0"},  /* GV100 */
	{0x1e00, 0x1fff, "7.5"},  /* TU102, TU104, TU106, TU117 */
	{0x2180, 0x21ff, "7.5"},  /* TU116 */
	{0x2080, 0x20ff, "8.0"},  /* GA100 */
	{0x2200, 0x22ff, "8.6"},  /* GA102 */
	{0x2300, 0x23ff, "9.0"},  /* GH100 */
	{0x2400, 0x247f, "8.6"},  /* GA103 */
	{0x2480, 0x25ff, "8.6"},  /* GA104, GA106, GA107 */
	{0x2680, 0x28ff, "8.9"},  /* AD102 to AD107 */
	{0x2900, 0x29ff, "10.0"}, /* GB100, GB102 */
	{0x2b80, 0x2dff, "12.0"}, /* GB202, GB203, GB206, GB207 */
	{0x2e00, 0x2e7f, "12.1"}, /* GB20B, as in a GB10 */
	{0x2f00, 0x2f7f, "12.0"}, /* GB205 */
	{0x3180, 0x32ff, "10.3"}, /* GB110, GB112: B300, GB300 */
};

const char *architecture_of(uint32_t device_id)
{
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (device_id >= families[i].first && device_id <= families[i].last)
			return families[i].architecture;
	return NULL;
}
