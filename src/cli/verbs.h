/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The commands of ctr-gpu: a name in the table of main.c, a function in a file for each or for two of a kind. */

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/paths.h"
#include "cli/doctor/run.h"
#include "cli/session.h"
#include "model/backend.h"

/* ---- verbs ---- */

struct verb {
	const char *name;
	const char *arguments; /* as the usage line shows them; "" for none */
	const char *summary;   /* for the list in --help; NULL: another name, which is not listed */
	int (*run)(struct global_options *globals, int argc, char **argv); /* Return: the exit status */
};

/** @table: ends with an entry that has no name. Return: NULL if there is none. */
const struct verb *verb_find(const struct verb *table, const char *name);

/** The parser of an argp for verb_run(); its first child takes a `struct global_options *`. */
error_t verb_parse(int key, char *argument, struct argp_state *state);

/** Its help filter, which lists the commands behind the text before the options. */
char *verb_help_filter(int key, const char *text, void *input);

/**
 * verb_run() - run the command that a line names
 * @argp:    of what stands before the command's name
 * @program: the words before the command, "ctr-gpu"
 *
 * Return: the exit status.
 */
int verb_run(const struct argp *argp, const struct verb *table, const char *program, struct global_options *globals,
	     int argc, char **argv);

/* The changes that configure has saved for unconfigure. */
#define CONFIGURED_DIRECTORY PATH_STATE "/configured"

int verb_assign(struct global_options *globals, int argc, char **argv);
int verb_attach(struct global_options *globals, int argc, char **argv);
int verb_cdi(struct global_options *globals, int argc, char **argv);
int verb_configure(struct global_options *globals, int argc, char **argv);
int verb_detach(struct global_options *globals, int argc, char **argv);
int verb_doctor(struct global_options *globals, int argc, char **argv);
int verb_help(struct global_options *globals, int argc, char **argv);
int verb_info(struct global_options *globals, int argc, char **argv);
int verb_list(struct global_options *globals, int argc, char **argv);
int verb_load(struct global_options *globals, int argc, char **argv);
int verb_refresh(struct global_options *globals, int argc, char **argv);
int verb_setup(struct global_options *globals, int argc, char **argv);
int verb_slurm(struct global_options *globals, int argc, char **argv);
int verb_top(struct global_options *globals, int argc, char **argv);
int verb_unconfigure(struct global_options *globals, int argc, char **argv);
int verb_vcuda(struct global_options *globals, int argc, char **argv);
int verb_version(struct global_options *globals, int argc, char **argv);

/* ---- suggest ---- */

/* For a command, an option or a name that does not exist: the one that was meant. */

/** Ends with EXIT_STATUS_USAGE if a long option is not known that comes close to one that is; says which. */
void suggest_option(const struct argp *argp, const char *program, int argc, char *const *argv);

/** Says on standard error that the command is unknown, and which one comes close. */
void suggest_verb(const struct verb *table, const char *program, const char *name);

/* ---- load ---- */

/**
 * load_run() - find the kernel modules and device nodes that this host lacks; load and make them unless @dry_run
 * @options: all but their driver_root, which is the session's
 * @ret:     empty after a failure
 *
 * Return: 0; as decide() and apply() of struct backend_load, CTR_GPU_E_NO_DEVICE if no kind is here; with the context's
 * message set.
 */
int load_run(const struct session *session, struct load_options options, bool dry_run, struct load *ret);

/* ---- vcuda ---- */

/** Asks vCUDA's manager (vcuda/protocol/control.h). Return: 0, or the exit status after a message was printed. */
int vcuda_ask(unsigned procedure, const void *arguments, void *ret);

/** The same for what is answered by no more than whether it was done. */
int vcuda_ask_done(unsigned procedure, const void *arguments);

/** `ctr-gpu vcuda audit` and `top`. Return: the exit status. */
int vcuda_audit_show(struct global_options *globals, int argc, char **argv);
int vcuda_top_show(struct global_options *globals, int argc, char **argv);

/* ---- screen ---- */

/**
 * screen_run() - show something once; on a terminal, again each second until the user presses q or interrupts
 * @look: writes what there is. Return: 0, or the exit status after a message was printed
 *
 * Return: the same.
 */
int screen_run(int (*look)(void *data, FILE *file), void *data);

/** The name of a process, as the kernel has it, which the process chooses; "": it has ended. */
enum { SCREEN_PROGRAM_SIZE = 64 };
void screen_read_program(pid_t pid, char ret[static SCREEN_PROGRAM_SIZE]);

/** Waits for a second. Return: false if the user has seen enough meanwhile. */
bool screen_wait(void);

/* ---- nvidia ---- */

#define NVIDIA_CLI_NAME "nvidia-container-cli"

/** ctr-gpu under the name nvidia-container-cli. Return: the exit status. */
int nvidia_main(int argc, char **argv);

/* ---- cdi ---- */

/* The commands of `ctr-gpu cdi`. */

/* The directories that engines read by default; of two specs of one device the later directory's counts. */
extern const char *const cdi_directories[];

/** Where specs are written: the first of these directories or, on a machine whose /etc is read-only, the second. */
const char *cdi_directory(void);
