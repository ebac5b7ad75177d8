/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/engine.h"

/* Its --nvccli runs nvidia-container-cli. */
const struct engine engine_apptainer = {
	.name = "apptainer",
	.alias = "singularity",
	.label = "Apptainer",
	.programs = (const char *const[]){"apptainer", "singularity", NULL},
	.packages = (const char *const[]){"apptainer", "singularity-container", NULL},
	.uses = {[METHOD_CLI] = "--nvccli"},
};
