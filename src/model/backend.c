/* SPDX-License-Identifier: Apache-2.0 */

#include "model/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void driver_facts_clear(struct driver_facts *facts)
{
	free(facts->driver_version);
	free(facts->architecture);
	free(facts->brand);
	*facts = (struct driver_facts){0};
}

void use_clear(struct use *use)
{
	free(use->processes);
	free(use->known);
	*use = (struct use){0};
}

int use_add(struct use *use, const struct use_process *process)
{
	struct use_process *processes = array_grow(use->processes, use->count, sizeof(*processes));

	if (!processes)
		return -ENOMEM;
	use->processes = processes;
	processes[use->count++] = *process;
	return 0;
}

void load_clear(struct load *load)
{
	for (size_t i = 0; i < load->count; i++) {
		free(load->steps[i].name);
		free(load->steps[i].reason);
		free(load->steps[i].found);
	}
	free(load->steps);
	strv_clear(&load->remarks);
	*load = (struct load){0};
}

int load_add(struct load *load, const struct load_step *step)
{
	struct load_step *steps = NULL;

	if (step->name && step->reason)
		steps = array_grow(load->steps, load->count, sizeof(*steps));
	if (!steps) {
		free(step->name);
		free(step->reason);
		free(step->found);
		return -ENOMEM;
	}
	load->steps = steps;
	steps[load->count++] = *step;
	return 0;
}

int load_merge(struct load *load, struct load *from)
{
	int r = 0;

	for (size_t i = 0; i < from->count && r == 0; i++) {
		r = load_add(load, &from->steps[i]);
		from->steps[i] = (struct load_step){0};
	}
	for (size_t i = 0; i < from->remarks.count && r == 0; i++)
		r = strv_take(&load->remarks, steal_ptr(from->remarks.items[i]));
	load_clear(from);
	return r;
}
