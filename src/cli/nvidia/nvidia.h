/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * ctr-gpu under the name nvidia-container-cli, for the programs that call NVIDIA's: containerd's ctr, NVIDIA's own
 * hook, LXC, enroot, Apptainer. Options, error classes, exit statuses and output are NVIDIA's. Decisions and changes
 * are ctr-gpu's.
 */

#include "cli/session.h"

#define NVIDIA_NAME "nvidia-container-cli"

/* The options before the command's name. */
struct nvidia {
	struct global_options globals;
	bool load_kmods;
	const char *ignored[4]; /* options that are accepted and ignored; ends with NULL */
};

/** Return: the exit status. */
int nvidia_main(int argc, char **argv);

/* The commands. argv[0] is what their usage is printed with. Return: the exit status. */
int nvidia_info(struct nvidia *nvidia, int argc, char **argv);
int nvidia_list(struct nvidia *nvidia, int argc, char **argv);
int nvidia_configure(struct nvidia *nvidia, int argc, char **argv);

/** Ends the process: an argument is wrong. */
void nvidia_input_error(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/** Return: the first words of the message of a result, static: "mount error". */
const char *nvidia_class_of(int r);

/** Sets the error class of an errno from now on: "mount error". */
void nvidia_begin(const char *class);

/** Parses the options of a command; invalid ones end the process. */
void nvidia_parse(const struct argp *argp, int argc, char **argv, void *input);

/** session_open() for these programs: warnings go to the log and nowhere else. Then does what --load-kmods asks for. */
int nvidia_open(struct session *session, const struct nvidia *nvidia);

/** request_plan(), with errnos as "detection error". */
int nvidia_plan(struct session *session, const struct request_options *request);

/** Has "all" as the value of --mig-config and --mig-monitor set @right. */
void nvidia_take_mig(const char *option, const char *value, unsigned right, unsigned *rights);
