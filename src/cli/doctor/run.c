/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs the checks and prints what they found. They run in a child: a network filesystem or a driver that does not
 * answer holds a process in the kernel where no signal reaches it. The parent then has the findings so far, which are
 * in shared memory, and the name of the check that hangs.
 */

#include "cli/doctor/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/print.h"
#include "cli/doctor/doctor.h"
#include "plan/plan.h"

enum {
	DRIVER_QUESTIONS = 3, /* that may each take as long as a driver library is given */
	FILES_MS = 8000,      /* for everything that only reads files */
	LONG_MS = 1000,       /* after which a user wants to know what takes so long */
};

/* In the order of running and showing them; those of backends follow ours of the same stage. */
static const struct check checks[] = {
	{CHECK_DEVICES, "the kind of host", check_machine},
	{CHECK_ADAPTERS, "the adapters", check_adapters},
	{CHECK_DRIVER, "the adapters", check_adapter_notes},
	{CHECK_DRIVER, "the driver", check_driver},
	{CHECK_DRIVER, "vCUDA", check_vcuda},
	{CHECK_MACHINE, "the kernel", check_kernel},
	{CHECK_MACHINE, "CDI specs", check_cdi},
	{CHECK_MACHINE, "container engines", check_engines},
	{CHECK_MACHINE, "Kubernetes", check_kubernetes},
	{CHECK_MACHINE, "rootless containers", check_rootless},
	{CHECK_MACHINE, "containers that run", check_containers},
	{CHECK_MACHINE, "SELinux and AppArmor", check_security},
	{CHECK_MACHINE, "the image", check_image},
	{CHECK_MACHINE, "the installation", check_installation},
	{0},
};

struct doctor {
	struct doctor_context examination;
	const char *subject;        /* of the check that runs; NULL: all came to an end */
	size_t count, engine_count; /* what had been found before it */
};

/* ---- the child ---- */

/* @fd: gets a byte for each check that came to an end, behind what it left in @doctor. */
static void doctor_run_stage(struct doctor *doctor, const struct check *check, enum check_stage stage, int fd)
{
	struct doctor_context *examination = &doctor->examination;

	for (; check->run; check++) {
		if (check->stage != stage)
			continue;
		doctor->subject = check->subject;
		check->run(examination);
		doctor->count = examination->findings.count;
		doctor->engine_count = examination->findings.engine_count;
		(void)fd_write_all(fd, "", 1);
	}
}

static _Noreturn void doctor_check(struct doctor *doctor, int fd)
{
	struct doctor_context *examination = &doctor->examination;

	/* If the user ends the parent, this process ends, too. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (enum check_stage stage = 0; stage < CHECK_STAGES; stage++) {
		doctor_run_stage(doctor, checks, stage, fd);
		for (size_t i = 0; examination->here[i]; i++)
			doctor_run_stage(doctor, examination->here[i]->checks, stage, fd);
	}
	doctor->subject = NULL;
	/* For leak checkers. */
	(void)ctr_gpu_host_unref(examination->host);
	strv_clear(&examination->cdi_kinds);
	_exit(EXIT_SUCCESS);
}

/* ---- the parent ---- */

/* Waits until the child closes @fd or its time is up. Return: 0 or negative errno. */
static int doctor_wait(const struct doctor *doctor, int fd, long long end_ms)
{
	struct pollfd end = {.fd = fd, .events = POLLIN};
	const char *told = NULL;
	char byte;

	while (clock_now_ms() < end_ms) {
		int ready = poll(&end, 1, LONG_MS);
		const char *subject = doctor->subject;

		if (ready < 0 && errno != EINTR)
			return -errno;
		if (ready > 0 && read(fd, &byte, 1) == 0)
			return 0;
		if (ready == 0 && subject && subject != told && isatty(STDERR_FILENO))
			(void)fprintf(stderr, "ctr-gpu: still looking at %s …\n", told = subject);
	}
	return 0;
}

/* A child that waits in the kernel is left behind. */
static void doctor_end_child(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	for (int i = 0; i < 20 && waitpid(pid, NULL, WNOHANG) == 0; i++)
		(void)poll(NULL, 0, 5);
}

static int doctor_examine(struct doctor *doctor)
{
	const struct settings *settings = doctor->examination.settings;
	long long patience = (long long)settings->driver_timeout_ms * DRIVER_QUESTIONS + FILES_MS;
	struct findings *findings = &doctor->examination.findings;
	_cleanup_close_ int ours = -1, theirs = -1;
	int pair[2], r;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		doctor_check(doctor, theirs);
	(void)close(steal_fd(&theirs));
	r = doctor_wait(doctor, ours, clock_now_ms() + patience);
	doctor_end_child(pid);
	if (r < 0)
		return r;
	if (doctor->subject) {
		/* The name of the last check may be incomplete. */
		findings->count = doctor->count;
		findings->engine_count = doctor->engine_count;
		findings_add(findings, "doctor.stuck", SEVERITY_PROBLEM,
			     "looking at %s did not come to an end\n"
			     "Restart the machine (WSL: wsl --shutdown in Windows); dmesg may tell what hangs.",
			     doctor->subject);
	}
	return findings->incomplete ? -ENOMEM : 0;
}

/* ---- the checks of a host that the caller has read ---- */

static void doctor_check_host(struct doctor_context *examination, const struct ctr_gpu_plan *plan)
{
	machine_take_kinds(examination);
	for (size_t i = 0; examination->here[i]; i++)
		if (examination->here[i]->check_host)
			examination->here[i]->check_host(examination);
	check_adapter_notes(examination);
	if (!plan)
		return;
	driver_check_noexec(&examination->findings, &plan->data);
	driver_check_missing(&examination->findings, &plan->data);
}

/* Whether it concerns the host as a whole: the inventory and a plan report adapters and files only. */
static bool doctor_is_of_host(const struct finding *finding)
{
	static const char *const ids[] = {"adapter.dxcore", "adapter.none", "driver.missing", "driver.noexec",
					  "host.turned-off"};

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		if (finding->severity == SEVERITY_PROBLEM && streq(finding->id, ids[i]))
			return true;
	return false;
}

bool doctor_warn_of_host(struct ctr_gpu_context *context, struct ctr_gpu_host *host, const struct ctr_gpu_plan *plan,
			 bool noted)
{
	struct doctor_context *examination = calloc(1, sizeof(*examination));
	bool wrong = false;

	if (!examination)
		return false;
	examination->context = context;
	examination->settings = &context->settings;
	examination->host = host;
	examination->inventory = &host->inventory;
	for (size_t i = 0; i < host->inventory.count; i++)
		examination->usable += host->inventory.adapters[i].index >= 0;
	doctor_check_host(examination, plan);
	for (size_t i = 0; i < examination->findings.count; i++) {
		const struct finding *finding = &examination->findings.items[i];

		if (!doctor_is_of_host(finding))
			continue;
		wrong = true;
		if (noted && strncmp(finding->id, "driver.", strlen("driver.")) == 0)
			continue;
		(void)fputs("ctr-gpu: ", stderr);
		print_write_text(finding->text, stderr);
		if (finding->remedy)
			(void)fputs("\n    ", stderr);
		if (finding->remedy)
			print_write_text(finding->remedy, stderr);
		(void)fputc('\n', stderr);
	}
	free(examination);
	return wrong;
}

/* ---- printing ---- */

/*
 * Prints the findings for a terminal: the summary, each engine's, then the findings, the worst first. Without --verbose
 * it prints only what works and what is wrong, and nothing twice.
 */

enum {
	COLUMNS = 100, /* where the output is not a terminal */
	COLUMNS_MIN = 40,
	INDENT = 20,
	HEADLINE_INDENT = 4,
	ADAPTERS_BRIEF = 2,
};

/* SGR of ECMA-48, by severity. */
static const char *const colours[SEVERITIES] = {
	[SEVERITY_OK] = "32",
	[SEVERITY_NOTE] = "36",
	[SEVERITY_WARNING] = "33",
	[SEVERITY_PROBLEM] = "1;31",
};

struct doctor_printer {
	FILE *file;
	const struct findings *findings;
	const struct finding *block; /* NULL: nothing of the machine itself is in the way */
	const struct finding *first; /* NULL: an engine works */
	size_t columns;
	bool colour, verbose;
};

/* @sgr: "" ends a colour */
static void print_doctor_set_colour(const struct doctor_printer *printer, const char *sgr)
{
	if (printer->colour)
		(void)fprintf(printer->file, "\033[%sm", sgr);
}

/* Writes text from @column on. It breaks lines at the screen's width and indents all but the first. */
static void print_doctor_write_wrapped(const struct doctor_printer *printer, const char *text, size_t column,
				       size_t indent)
{
	while (*text) {
		size_t length = strcspn(text, " "), blanks = strspn(text + length, " ");
		_cleanup_free_ char *word = strndup(text, length);

		if (column > indent && column + length > printer->columns) {
			(void)fprintf(printer->file, "\n%*s", (int)indent, "");
			column = indent;
		}
		print_write_text(word ? word : "", printer->file);
		column += length + blanks;
		text += length + blanks;
		/* What would be at the end of a line is left out. */
		if (*text && column + strcspn(text, " ") <= printer->columns)
			(void)fprintf(printer->file, "%*s", (int)blanks, "");
	}
	(void)fputc('\n', printer->file);
}

static void print_doctor_write_line(const struct doctor_printer *printer, enum severity severity, const char *id,
				    const char *text, const char *remedy)
{
	print_doctor_set_colour(printer, colours[severity]);
	(void)fprintf(printer->file, "%-8s", severity_names[severity]);
	print_doctor_set_colour(printer, "");
	(void)fprintf(printer->file, " %-10.*s ", (int)strcspn(id, "."), id);
	print_doctor_write_wrapped(printer, text, INDENT, INDENT);
	/* The headline has it already. */
	if (!remedy || (printer->first && printer->first->remedy && streq(remedy, printer->first->remedy)))
		return;
	(void)fprintf(printer->file, "%*s> ", INDENT, "");
	print_doctor_write_wrapped(printer, remedy, INDENT + 2, INDENT);
}

/* Whether the verdict on some engine gives it as a reason. */
static bool print_doctor_is_printed(const struct findings *findings, const struct finding *finding)
{
	for (size_t i = 0; i < findings->engine_count; i++) {
		struct summary summary = summary_make(findings, &findings->engines[i]);

		for (enum method method = 0; method < METHODS; method++)
			if (summary.closed_by[method] == finding)
				return true;
	}
	return false;
}

/* Whether to show a finding: problems, the first usable adapters, and why the last container got no GPU. */
static bool print_doctor_is_wanted(const struct doctor_printer *printer, const struct finding *finding,
				   size_t *adapters)
{
	if (printer->verbose || finding->severity >= SEVERITY_WARNING || streq(finding->id, "ctr-gpu.last-failure"))
		return true;
	if (printer->block || !streq(finding->id, "adapter.usable") || *adapters > ADAPTERS_BRIEF)
		return false;
	if ((*adapters)++ == ADAPTERS_BRIEF)
		print_doctor_write_line(printer, SEVERITY_OK, "adapter", "and more: ctr-gpu info", NULL);
	return *adapters <= ADAPTERS_BRIEF;
}

static void print_doctor_write_findings(const struct doctor_printer *printer, enum severity severity)
{
	const struct findings *findings = printer->findings;
	size_t adapters = 0;

	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];

		/* A method that is closed for another reason is not reported as not set up. */
		if (finding->severity != severity || (finding->engine && severity <= SEVERITY_NOTE) ||
		    print_doctor_is_printed(findings, finding) || !print_doctor_is_wanted(printer, finding, &adapters))
			continue;
		print_doctor_write_line(printer, severity, finding->id, finding->text,
					severity >= SEVERITY_WARNING ? finding->remedy : NULL);
	}
}

/* An engine that is merely not set up is of interest where none works; one that does not run, in any case. */
static bool print_doctor_is_engine_wanted(const struct doctor_printer *printer, const struct summary *summary)
{
	if (printer->verbose)
		return true;
	if (summary->engine->idle)
		return true;
	if (printer->block)
		return summary_is_broken(summary);
	return summary->severity != SEVERITY_NOTE || printer->first;
}

static void print_doctor_write_verdicts(const struct doctor_printer *printer, enum severity severity)
{
	const struct findings *findings = printer->findings;

	for (size_t i = 0; i < findings->engine_count; i++) {
		const struct host_engine *engine = &findings->engines[i];
		struct summary summary = summary_make(findings, engine);
		_cleanup_free_ char *text = NULL, *line = NULL;

		if (summary.severity != severity || !print_doctor_is_engine_wanted(printer, &summary))
			continue;
		text = summary_text(findings, &summary, !printer->verbose);
		if (text && str_format(&line, "%s%s: %s", engine->label, engine->state, text) == 0)
			print_doctor_write_line(printer, severity, engine->id, line, summary_remedy(&summary));
	}
}

/* " with Docker, Podman and containerd", or ", not with LXC". */
static void print_doctor_write_engines(const struct doctor_printer *printer, const struct findings *findings,
				       bool works)
{
	size_t left = 0;

	for (size_t i = 0; i < findings->engine_count; i++)
		left += summary_make(findings, &findings->engines[i]).works == works;
	if (left > 0)
		(void)fputs(works ? " with " : ", not with ", printer->file);
	for (size_t i = 0; i < findings->engine_count; i++) {
		if (summary_make(findings, &findings->engines[i]).works != works)
			continue;
		left--;
		(void)fprintf(printer->file, "%s%s", findings->engines[i].label,
			      left > 1    ? ", "
			      : left == 0 ? ""
			      : works     ? " and "
					  : " or ");
	}
}

/* "A GPU container would work here with Docker, not with Podman." */
static void print_doctor_write_headline(const struct doctor_printer *printer)
{
	static const char no[] = "A GPU container would not work here. First: ";
	const struct finding *first = printer->first;

	print_doctor_set_colour(printer, colours[first ? SEVERITY_PROBLEM : SEVERITY_OK]);
	(void)fputs(first ? no : "A GPU container would work here", printer->file);
	if (!first) {
		print_doctor_write_engines(printer, printer->findings, true);
		print_doctor_write_engines(printer, printer->findings, false);
	}
	(void)fputs(first ? "" : ".", printer->file);
	print_doctor_set_colour(printer, "");
	print_doctor_write_wrapped(printer,
				   !first          ? ""
				   : first->remedy ? first->remedy
						   : first->text,
				   strlen(no), HEADLINE_INDENT);
}

static size_t print_doctor_columns(FILE *file)
{
	struct winsize size = {0};

	if (ioctl(fileno(file), TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
		return COLUMNS;
	return size.ws_col < COLUMNS_MIN ? COLUMNS_MIN : size.ws_col;
}

/*
 * print_doctor_write() - write it for a person, in colour and as wide as it is where @file is a terminal
 * @verbose: everything, and not only what works and what is wrong
 *
 * Return: 0 or -EIO.
 */
static int print_doctor_write(const struct findings *findings, bool verbose, FILE *file)
{
	const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
	/* See no-color.org. */
	bool plain = !isatty(fileno(file)) || (none && *none) || (terminal && streq(terminal, "dumb"));
	const struct doctor_printer printer = {
		.file = file,
		.findings = findings,
		.block = findings_block(findings),
		.first = summary_first(findings),
		.columns = print_doctor_columns(file),
		.colour = !plain,
		.verbose = verbose,
	};

	print_doctor_write_headline(&printer);
	if (verbose)
		(void)fputc('\n', file);
	/* What concerns every engine comes first. */
	for (enum severity severity = SEVERITIES; severity-- > 0;) {
		if (severity >= SEVERITY_WARNING || !verbose)
			print_doctor_write_findings(&printer, severity);
		print_doctor_write_verdicts(&printer, severity);
		if (severity < SEVERITY_WARNING && verbose)
			print_doctor_write_findings(&printer, severity);
	}
	if (!verbose)
		(void)fputs("Everything that was looked at: ctr-gpu doctor -v\n", file);
	return print_finish(file);
}

/* ---- the object ---- */

/* A missing --rootfs is an error of the caller, not a finding about this machine. */
static int doctor_check_rootfs(const struct doctor *doctor, struct err *err)
{
	const struct findings *findings = &doctor->examination.findings;

	for (size_t i = 0; i < findings->count; i++)
		if (streq(findings->items[i].id, IMAGE_UNREADABLE))
			return err_set_advised(err, CTR_GPU_E_BAD_ARGUMENT, ("--rootfs: %s", findings->items[i].text),
					       ("%s", findings->items[i].remedy));
	return 0;
}

int doctor_new(struct ctr_gpu_context *context, const char *config, const char *rootfs, struct doctor **ret)
{
	struct doctor *doctor;
	int r;

	if (rootfs && rootfs[0] != '/')
		return err_set(&context->err, CTR_GPU_E_BAD_ARGUMENT,
			       "the image's root directory must be an absolute path, not \"%.128s\"", rootfs);
	doctor = mmap(NULL, sizeof(*doctor), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (doctor == MAP_FAILED)
		return -ENOMEM;
	doctor->examination.context = context;
	doctor->examination.settings = &context->settings;
	doctor->examination.config = config;
	doctor->examination.rootfs = rootfs;
	r = doctor_examine(doctor);
	if (r < 0)
		(void)err_set(&context->err, r, "cannot look at this host: %m");
	if (r == 0)
		r = doctor_check_rootfs(doctor, &context->err);
	if (r != 0) {
		doctor_free(doctor);
		return r;
	}
	*ret = doctor;
	return 0;
}

void doctor_free(struct doctor *doctor)
{
	if (doctor)
		(void)munmap(doctor, sizeof(*doctor));
}

bool doctor_would_work(const struct doctor *doctor)
{
	return !summary_first(&doctor->examination.findings);
}

int doctor_write(const struct doctor *doctor, enum ctr_gpu_format format, bool verbose, FILE *file)
{
	const struct findings *findings = &doctor->examination.findings;
	const struct finding *first = summary_first(findings);

	if (format == CTR_GPU_FORMAT_TEXT)
		return print_doctor_write(findings, verbose, file);
	if (format != CTR_GPU_FORMAT_JSON)
		return -EINVAL;
	return print_write_json(json_pack("{s:s, s:b, s:o, s:o, s:o}", "version", CTR_GPU_VERSION, "works", !first,
					  "first", print_string(first ? first->id : NULL), "engines",
					  summaries_to_json(findings), "findings", findings_to_json(findings)),
				file);
}
