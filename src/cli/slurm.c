/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu slurm: what Slurm must be told of this node's GPUs. Slurm takes a GPU for a device node, and makes
 * CUDA_VISIBLE_DEVICES and SLURM_STEP_GPUS of the nodes' places in gres.conf. Behind /dev/dxg there is one node for
 * all, so each GPU there gets a node of no driver (`slurm nodes`), which Slurm can count, give and constrain.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/print.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "slurm/slurm_list.h"
#include "slurm/step.h"

#define SLURM_GRES_CONF "/etc/slurm/gres.conf"

enum {
	SLURM_MAJOR = 127, /* for local use (Documentation/admin-guide/devices.txt), so that no driver has it */
	SLURM_FILE_MAX = 256 * 1024,
};

/* ---- gres ---- */

static size_t slurm_count_type(const struct slurm_gpus *gpus, const char *type)
{
	size_t count = 0;

	for (size_t i = 0; i < gpus->count; i++)
		count += streq(gpus->list[i].type, type);
	return count;
}

static int slurm_print_gres(const struct slurm_gpus *gpus)
{
	(void)puts("# gres.conf of this node");
	for (size_t i = 0; i < gpus->count; i++)
		print_safe(stdout, "Name=gpu Type=%s File=%s\n", gpus->list[i].type, gpus->list[i].file);
	(void)fputs("# slurm.conf of the cluster: GresTypes=gpu, and in this node's line:\n# Gres=", stdout);
	for (size_t i = 0, lines = 0; i < gpus->count; i++) {
		bool first = true;

		for (size_t j = 0; j < i; j++)
			first = first && !streq(gpus->list[j].type, gpus->list[i].type);
		if (first)
			print_safe(stdout, "%sgpu:%s:%zu", lines++ > 0 ? "," : "", gpus->list[i].type,
				   slurm_count_type(gpus, gpus->list[i].type));
	}
	(void)putchar('\n');
	return print_finish(stdout);
}

/* ---- nodes ---- */

/* Return: 1 if the node was made; 0 if it is there; negative errno. */
static int slurm_make_node(int directory, const struct slurm_gpu *gpu, unsigned minor)
{
	const dev_t number = makedev(SLURM_MAJOR, minor);
	const char *name = strrchr(gpu->file, '/') + 1;
	struct stat st;

	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISCHR(st.st_mode) && st.st_rdev == number)
			return 0;
		if (unlinkat(directory, name, 0) < 0)
			return -errno;
	}
	return mknodat(directory, name, S_IFCHR | 0444, number) < 0 ? -errno : 1;
}

static int slurm_make_nodes(const struct slurm_gpus *gpus)
{
	_cleanup_close_ int directory = -1;

	if ((mkdir(PATH_RUN, 0700) < 0 && errno != EEXIST) || (mkdir(SLURM_NODES, 0755) < 0 && errno != EEXIST))
		return -errno;
	directory = open(SLURM_NODES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (directory < 0)
		return -errno;
	for (size_t i = 0; i < gpus->count; i++) {
		int r = gpus->list[i].made ? slurm_make_node(directory, &gpus->list[i], (unsigned)i) : 0;

		if (r < 0)
			return r;
		if (r > 0)
			print_safe(stdout, "%s\n", gpus->list[i].file);
	}
	return 0;
}

/* ---- check ---- */

/* What a gres.conf says of GPUs, and what is wrong with it. */
struct slurm_check {
	const struct slurm_gpus *gpus;
	const char *path;
	unsigned line;
	struct strv files; /* of all lines */
	size_t place;      /* behind the last that was named, in our own order */
	bool autodetect;
	size_t faults;
	char node[HOST_NAME_MAX + 1]; /* as which Slurm knows this one */
	unsigned others;              /* lines for other nodes than this one */
};

static void slurm_report(struct slurm_check *check, const char *what, const char *advice)
{
	check->faults++;
	print_safe(stdout, "%s:%u: %s\n", check->path, check->line, what);
	print_safe(stdout, "    %s\n", advice);
}

static void slurm_check_file(struct slurm_check *check, const char *file)
{
	_cleanup_free_ char *what = NULL;
	struct stat st;
	size_t place = 0;
	bool known;

	while (place < check->gpus->count && !streq(check->gpus->list[place].file, file))
		place++;
	known = place < check->gpus->count;
	if (strv_contains(&check->files, file)) {
		if (str_format(&what, "%s is named twice, and Slurm would give it twice", file) == 0)
			slurm_report(check, what, "Name each file once.");
	} else if (stat(file, &st) < 0) {
		if (str_format(&what, "%s is not there", file) == 0)
			slurm_report(check, what,
				     known ? "Make it, at each boot before slurmd: ctr-gpu slurm nodes"
					   : "Use the lines that ctr-gpu slurm gres prints.");
	} else if (!S_ISCHR(st.st_mode)) {
		if (str_format(&what, "%s is not a device, and slurmd gives none of its variables for it", file) == 0)
			slurm_report(check, what, "Make it anew: ctr-gpu slurm nodes");
	} else if (!known) {
		if (str_format(&what, "%s is no GPU that can be used here", file) == 0)
			slurm_report(check, what, "ctr-gpu info lists them, and why one cannot be used.");
	} else if (place < check->place && check->gpus->list[place].made) {
		if (str_format(&what, "%s is behind a later GPU, and Slurm numbers them by their order", file) == 0)
			slurm_report(check, what, "Use the order of the lines that ctr-gpu slurm gres prints.");
	}
	if (known)
		check->place = place + 1;
	(void)strv_add(&check->files, file);
}

/* ---- a line ---- */

/* @at: behind "[". Return: whether it is a range, with nothing behind it. */
static bool slurm_check_range(struct slurm_check *check, const char *start, const char *at)
{
	struct slurm_range range;

	for (; slurm_list_read_range(&at, &range) && range.from <= range.to; at++) {
		for (unsigned i = range.from; i <= range.to && i - range.from < SLURM_GPUS_MAX; i++) {
			_cleanup_free_ char *file = NULL;

			if (str_format(&file, "%s%0*u", start, range.width, i) == 0)
				slurm_check_file(check, file);
		}
		if (*at != ',')
			return streq(at, "]");
	}
	return false;
}

/* "/dev/nvidia0" or "/dev/nvidia[0-3,5]" */
static void slurm_check_item(struct slurm_check *check, char *item)
{
	_cleanup_free_ char *what = NULL, *whole = strdup(item);
	char *open = strchr(item, '[');

	if (!open) {
		slurm_check_file(check, item);
		return;
	}
	*open = '\0';
	if (!slurm_check_range(check, item, open + 1) && whole &&
	    str_format(&what, "%s is neither a file nor a range of files", whole) == 0)
		slurm_report(
			check, what,
			"Slurm reads /dev/nvidia0,/dev/nvidia1 and /dev/nvidia[0-1], with nothing behind the range.");
}

/* Goes behind the next item of a list. Return: the item, owned by the caller; NULL: there is none, or no memory. */
static char *slurm_next_item(const char **list)
{
	const char *start = *list + strspn(*list, ","), *end = start;

	for (bool inside = false; *end && (inside || *end != ','); end++)
		inside = *end == '[' || (inside && *end != ']');
	*list = end;
	return end > start ? strndup(start, (size_t)(end - start)) : NULL;
}

static void slurm_check_files(struct slurm_check *check, const char *list)
{
	char *item;

	while ((item = slurm_next_item(&list))) {
		slurm_check_item(check, item);
		free(item);
	}
}

static void slurm_check_line(struct slurm_check *check, char *line)
{
	const char *name = NULL, *file = NULL, *detect = NULL, *node = NULL;
	char *rest;

	line[strcspn(line, "#")] = '\0';
	for (char *word = strtok_r(line, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest)) {
		if (strncasecmp(word, "Name=", 5) == 0)
			name = word + 5;
		else if (strncasecmp(word, "File=", 5) == 0)
			file = word + 5;
		else if (strncasecmp(word, "AutoDetect=", 11) == 0)
			detect = word + 11;
		else if (strncasecmp(word, "NodeName=", 9) == 0)
			node = word + 9;
	}
	if (node && !slurm_list_has(node, check->node)) {
		check->others++;
		return;
	}
	if (detect && strcasecmp(detect, "off") != 0) {
		check->autodetect = true;
		if (check->gpus->count > 0 && check->gpus->list[0].made)
			slurm_report(check, "AutoDetect finds no GPU behind /dev/dxg, which has no node for each",
				     "Use the lines that ctr-gpu slurm gres prints.");
	}
	if (!name || strcasecmp(name, "gpu") != 0)
		return;
	if (file)
		slurm_check_files(check, file);
	else if (!detect)
		slurm_report(check, "a line for GPUs has no File=, so that no job is told which it got",
			     "Use the lines that ctr-gpu slurm gres prints.");
}

/* The node's name as slurmd has it: another than the host's may be configured, and a job has it in SLURMD_NODENAME. */
static void slurm_find_node(struct slurm_check *check)
{
	const char *told = getenv("SLURMD_NODENAME");

	if (told && *told)
		(void)snprintf(check->node, sizeof(check->node), "%s", told);
	else if (gethostname(check->node, sizeof(check->node) - 1) == 0)
		check->node[strcspn(check->node, ".")] = '\0';
}

static int slurm_check_conf(const struct slurm_gpus *gpus, const char *path)
{
	struct slurm_check check = {.gpus = gpus, .path = path};
	_cleanup_free_ char *text = NULL;
	char *rest;
	int r = fd_read_file_at(AT_FDCWD, path, SLURM_FILE_MAX, &text, NULL);

	if (r < 0) {
		errno = -r;
		return output_print_advised(("%.300s cannot be read: %m", path),
					    ("ctr-gpu slurm gres prints what it should have."));
	}
	slurm_find_node(&check);
	rest = text;
	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
		check.line++;
		slurm_check_line(&check, line);
	}
	for (size_t i = 0; i < gpus->count && !check.autodetect; i++)
		if (!strv_contains(&check.files, gpus->list[i].file)) {
			_cleanup_free_ char *what = NULL;

			if (str_format(&what, "%s (%s) is missing, and no job gets it", gpus->list[i].file,
				       gpus->list[i].type) == 0)
				slurm_report(&check, what, "Use the lines that ctr-gpu slurm gres prints.");
		}
	strv_clear(&check.files);
	if (check.faults == 0)
		print_safe(stdout, "%s fits this node: %zu GPUs\n", path, gpus->count);
	if (check.others > 0)
		print_safe(stdout, "Lines for other nodes than %s, which were not judged: %u\n", check.node,
			   check.others);
	r = output_finish(print_finish(stdout));
	return r ? r : check.faults > 0;
}

/* ---- commands ---- */

enum { KEY_CHECK = 0x100, KEY_UID, KEY_GPUS, KEY_END, KEY_STEPD };

struct slurm {
	const char *check; /* the file; NULL: none is to be checked */
};

static const struct argp_option gres_options[] = {
	{"check", KEY_CHECK, "FILE", OPTION_ARG_OPTIONAL, "Say what is wrong with a gres.conf; " SLURM_GRES_CONF, 0},
	{0},
};

static error_t slurm_parse(int key, char *argument, struct argp_state *state)
{
	struct slurm *slurm = state->input;

	if (key != KEY_CHECK)
		return ARGP_ERR_UNKNOWN;
	slurm->check = argument ? argument : SLURM_GRES_CONF;
	return 0;
}

/* Return: 0; an exit status after a message was printed. */
static int slurm_open(struct session *session, struct global_options *globals, struct slurm_gpus *ret)
{
	int r = session_open(session, globals);

	if (r == 0)
		r = session_check(session, ctr_gpu_host_new(session->context, &session->host));
	if (r)
		return r;
	r = slurm_gpus_list(session->context, session->host, ret);
	return r == -ENOMEM ? output_no_memory() : session_check(session, r);
}

static int slurm_gres(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = gres_options,
		.parser = slurm_parse,
		.children = global_options_children,
		.doc = "Print what gres.conf and slurm.conf must have for the GPUs of this node.",
	};
	_cleanup_session_ struct session session = {0};
	_cleanup_gpus_ struct slurm_gpus gpus = {0};
	struct slurm slurm = {0};
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &slurm);
	r = slurm_open(&session, globals, &gpus);
	if (r)
		return r;
	if (slurm.check)
		return slurm_check_conf(&gpus, slurm.check);
	return session_check(&session, slurm_print_gres(&gpus));
}

static int slurm_nodes(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.children = global_options_children,
		.doc = "Make a device node for each GPU behind /dev/dxg, by which Slurm tells them apart.",
	};
	_cleanup_session_ struct session session = {0};
	_cleanup_gpus_ struct slurm_gpus gpus = {0};
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, NULL);
	r = slurm_open(&session, globals, &gpus);
	if (r)
		return r;
	r = slurm_make_nodes(&gpus);
	if (r == 0)
		return output_finish(print_finish(stdout));
	errno = -r;
	return output_print_advised(("the nodes in " SLURM_NODES " cannot be made: %m"),
				    ("Run this as root, outside of containers."));
}

/* ---- step ---- */

struct step_arguments {
	struct session *session;
	const char *gpus, *words[2];
	struct slurm_step step;
	uid_t uid;
	pid_t stepd;
	size_t count;
	bool end;
};

static const struct argp_option step_options[] = {
	{"uid", KEY_UID, "UID", 0, "The job's user", 0},
	{"gpus", KEY_GPUS, "NUMBERS", 0, "Of the GPUs that the step was granted, as SLURM_STEP_GPUS has them", 0},
	{"slurmstepd", KEY_STEPD, "PID", 0, "The step's slurmstepd, with which what it has by vCUDA ends", 0},
	{"end", KEY_END, NULL, 0, "The step has ended; without STEP all of the job", 0},
	{0},
};

static error_t slurm_step_parse(int key, char *argument, struct argp_state *state)
{
	struct step_arguments *arguments = state->input;
	char *end;

	switch (key) {
	case KEY_UID:
		arguments->uid = (uid_t)strtoul(argument, &end, 10);
		if (end == argument || *end)
			argp_error(state, "'%s' is not a user's number", argument);
		return 0;
	case KEY_GPUS:
		arguments->gpus = argument;
		return 0;
	case KEY_STEPD:
		arguments->stepd = (pid_t)strtol(argument, &end, 10);
		if (*end || arguments->stepd <= 0)
			argp_error(state, "'%s' is not a process's number", argument);
		return 0;
	case KEY_END:
		arguments->end = true;
		return 0;
	case ARGP_KEY_ARG:
		if (arguments->count == ARRAY_SIZE(arguments->words))
			argp_error(state, "'%s' is one argument too many", argument);
		arguments->words[arguments->count++] = argument;
		return 0;
	case ARGP_KEY_END:
		if (arguments->count == 0 || (arguments->count == 1 && !arguments->end))
			argp_error(state, "JOB or STEP is missing");
		if (slurm_step_set(arguments->words[0], arguments->words[1] ? arguments->words[1] : "0",
				   &arguments->step) < 0)
			argp_error(state, "JOB and STEP are as Slurm names them: 12 0, 12 batch");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int slurm_step_begin_in_child(void *user)
{
	const struct step_arguments *arguments = user;
	struct session *session = arguments->session;
	int r = ctr_gpu_host_new(session->context, &session->host);

	/* Without a GPU there is nothing to give, and a step that was granted none is not the worse for it. */
	if ((r == CTR_GPU_E_NO_DEVICE || r == CTR_GPU_E_NO_ADAPTER) && !arguments->gpus[0])
		r = 0;
	if (r == 0)
		r = slurm_step_begin(session->context, session->host, &arguments->step, arguments->uid, arguments->gpus,
				     arguments->stepd, stdout);
	return session_check(session, r == 0 ? print_finish(stdout) : r);
}

static int slurm_step(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = step_options,
		.parser = slurm_step_parse,
		.args_doc = "JOB STEP",
		.children = global_options_children,
		.doc = "Give a step of a job the GPUs that Slurm has granted, and print its variables. Slurm's plugin "
		       "spank_ctr_gpu.so runs this, as root in the step's cgroup.",
	};
	_cleanup_session_ struct session session = {0};
	struct step_arguments arguments = {.session = &session, .gpus = ""};
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &arguments);
	r = session_open(&session, globals);
	if (r)
		return r;
	if (geteuid() != 0)
		return output_print_advised(("a step is given its GPUs by root"),
					    ("Slurm's plugin spank_ctr_gpu.so does it."));
	if (!arguments.end)
		session_run_in_child(&session, slurm_step_begin_in_child, &arguments);
	if (arguments.count == 1)
		arguments.step.step[0] = '\0';
	slurm_record_remove(&arguments.step, arguments.stepd);
	if (arguments.count == 1)
		slurm_group_remove_job(&arguments.step);
	return 0;
}

static const struct verb commands[] = {
	{"gres", "", "Print lines for gres.conf and slurm.conf, or check them", slurm_gres},
	{"nodes", "", "Make a node for each GPU behind /dev/dxg", slurm_nodes},
	{"step", " JOB STEP", "Give a step of a job its GPUs; Slurm's plugin runs this", slurm_step},
	{0},
};

int verb_slurm(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.parser = verb_parse,
		.args_doc = "COMMAND [ARGUMENT...]",
		.children = global_options_children,
		.help_filter = verb_help_filter,
		.doc = "Tell Slurm of this node's GPUs.\v"
		       "'ctr-gpu slurm COMMAND --help' shows a command's own options; ctr-gpu(1) explains them all.",
	};

	return verb_run(&argp, commands, "ctr-gpu slurm", globals, argc, argv);
}
