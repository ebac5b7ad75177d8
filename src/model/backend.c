/* SPDX-License-Identifier: Apache-2.0 */

#include "model/backend.h"

#include <stdlib.h>

void driver_facts_clear(struct driver_facts *facts)
{
	free(facts->driver_version);
	free(facts->architecture);
	free(facts->brand);
	*facts = (struct driver_facts){0};
}
