/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs the checks, in a child: a network filesystem or a driver that does not answer holds a process in the kernel where no
 * signal reaches it. Whoever asks gets the findings there are by then, and the name of the check that did not end.
 */

#include "cli/doctor/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/report.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/screen.h"
#include "cli/doctor/verdict.h"

enum {
	REPORT_MAX = 1024 * 1024,
	DRIVER_QUESTIONS = 3, /* that may each take as long as a driver library is given */
	FILES_MS = 8000,      /* for everything that only reads files */
	LONG_MS = 1000,       /* after which a user wants to know what takes so long */
};

static const struct {
	const char *subject;
	void (*run)(struct examination *examination);
} checks[] = {
	{"the kind of host", check_machine},
	{"the device nodes", check_devices},
	{"the adapters", check_adapters},
	{"the driver stores", check_stores},
	{"the driver", check_driver},
	{"the kernel", check_kernel},
	{"CDI specs", check_cdi},
	{"container engines", check_engines},
	{"rootless containers", check_rootless},
	{"SELinux and AppArmor", check_security},
	{"the image", check_image},
	{"the installation", check_installation},
};

struct doctor {
	struct findings findings;
	struct engines engines;
};

/* ---- the child ---- */

static void examination_clear(struct examination *examination)
{
	findings_clear(&examination->findings);
	engines_clear(&examination->engines);
	strv_clear(&examination->cdi_kinds);
	examination->host = ctr_gpu_host_unref(examination->host);
}

/* One line: what is looked at next, and what was found before. Return: 0 or negative errno. */
static int tell(int fd, struct examination *examination, const char *subject)
{
	struct findings *findings = &examination->findings;
	_cleanup_json_ json_t *json = json_pack("{s:s, s:o, s:o}", "next", subject, "findings", findings_to_json(findings), "engines",
						engines_to_json(&examination->engines));
	_cleanup_free_ char *line = json ? json_dumps(json, JSON_COMPACT) : NULL;
	struct span parts[2];

	if (!line || findings->incomplete || examination->engines.incomplete)
		return -ENOMEM;
	findings_clear(findings);
	engines_clear(&examination->engines);
	parts[0] = span_text(line);
	parts[1] = span_text("\n");
	return fd_write_parts(fd, parts, ARRAY_SIZE(parts));
}

static int run_checks(struct examination *examination, int fd)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(checks) && r == 0; i++) {
		r = tell(fd, examination, checks[i].subject);
		if (r == 0)
			checks[i].run(examination);
	}
	return r == 0 ? tell(fd, examination, "") : r;
}

static _Noreturn void child(struct examination *examination, int fd)
{
	int r;

	/* A user who gives up must not leave us behind; a parent that has gone already cannot be told. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGPIPE, SIG_IGN);
	r = run_checks(examination, fd);
	examination_clear(examination);
	_exit(r == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* ---- its report ---- */

static long long now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Return: positive if there is something to read or the end, 0 if time is up, negative errno. */
static int wait_until(int fd, long long end_ms)
{
	struct pollfd input = {.fd = fd, .events = POLLIN};
	long long left;
	int r;

	do {
		left = end_ms - now_ms();
		r = left > 0 ? poll(&input, 1, (int)left) : 0;
	} while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

/* What the child said so far, and what it is looking at. */
struct report {
	struct doctor *doctor;
	char *text, *subject;
	size_t size, taken; /* bytes; those of whole lines, which have been read */
};

static void report_clear(struct report *report)
{
	free(report->text);
	free(report->subject);
}

static int take_line(struct report *report, const char *line, size_t length)
{
	_cleanup_json_ json_t *json = NULL;
	const char *next;
	int r;

	r = json_parse(line, length, &json, NULL);
	if (r == 0)
		r = findings_from_json(json_object_get(json, "findings"), &report->doctor->findings);
	if (r == 0)
		r = engines_from_json(json_object_get(json, "engines"), &report->doctor->engines);
	next = json_string_value(json_object_get(json, "next"));
	if (r < 0 || !next)
		return r < 0 ? r : -EINVAL;
	free(report->subject);
	report->subject = strdup(next);
	return report->subject ? 0 : -ENOMEM;
}

/* A line without its end was cut off, or is on its way, and counts for nothing. */
static int take_lines(struct report *report)
{
	const char *start, *newline;
	int r = 0;

	while (r == 0 && (newline = memchr(start = report->text + report->taken, '\n', report->size - report->taken))) {
		r = take_line(report, start, (size_t)(newline - start));
		report->taken = (size_t)(newline - report->text) + 1;
	}
	return r;
}

/* Return: 1 if there may be more; 0 at the end or when time is up; negative errno. */
static int read_more(struct report *report, int fd, long long end_ms)
{
	long long soon_ms = now_ms() + LONG_MS;
	ssize_t length;
	int ready;

	if (report->size == REPORT_MAX)
		return 0;
	ready = wait_until(fd, soon_ms < end_ms ? soon_ms : end_ms);
	if (ready == 0 && soon_ms < end_ms) {
		if (isatty(STDERR_FILENO))
			(void)fprintf(stderr, "ctr-gpu: still looking at %s …\n", report->subject ? report->subject : "this machine");
		ready = wait_until(fd, end_ms);
	}
	if (ready <= 0)
		return ready;
	length = read(fd, report->text + report->size, REPORT_MAX - report->size);
	if (length < 0)
		return errno == EINTR ? 1 : -errno;
	report->size += (size_t)length;
	return length > 0;
}

/* Everything up to the end of the child or of its time. */
static int collect(struct report *report, int fd, long long end_ms)
{
	int r, more;

	report->text = malloc(REPORT_MAX);
	if (!report->text)
		return -ENOMEM;
	do {
		more = read_more(report, fd, end_ms);
		r = more < 0 ? more : take_lines(report);
	} while (r == 0 && more > 0);
	return r;
}

static void add_stuck(struct report *report)
{
	struct findings *findings = &report->doctor->findings;

	if (report->subject && !report->subject[0])
		return;
	findings_add(findings, "doctor.stuck", SEVERITY_PROBLEM, "looking at %s did not come to an end", report->subject ? report->subject : "anything");
	findings_advise(findings, "Restart the machine (WSL: wsl --shutdown in Windows); dmesg may tell what hangs.");
}

static void end_child(pid_t pid)
{
	pid_t ended;

	/* One that the kernel holds is left behind. */
	for (int i = 0; i < 20; i++) {
		(void)kill(pid, SIGKILL);
		ended = waitpid(pid, NULL, WNOHANG);
		if (ended != 0 && !(ended < 0 && errno == EINTR))
			return;
		(void)poll(NULL, 0, 5);
	}
}

static int examine(struct examination *examination, struct doctor *ret)
{
	_cleanup_(report_clear) struct report report = {.doctor = ret};
	long long patience = (long long)examination->context->settings.driver_timeout_ms * DRIVER_QUESTIONS + FILES_MS;
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
		child(examination, theirs);
	(void)close(steal_fd(&theirs));
	r = collect(&report, ours, now_ms() + patience);
	end_child(pid);
	if (r < 0)
		return r;
	add_stuck(&report);
	return ret->findings.incomplete ? -ENOMEM : 0;
}

/* ---- the object ---- */

int doctor_new(struct ctr_gpu_context *context, const char *config, const char *rootfs, struct doctor **ret)
{
	struct examination examination = {.context = context, .config = config, .rootfs = rootfs};
	struct doctor *doctor;
	int r;

	if (rootfs && rootfs[0] != '/')
		return err_set(&context->err, CTR_GPU_E_BAD_ARGUMENT, "the image's root directory must be an absolute path, not \"%.128s\"", rootfs);
	doctor = calloc(1, sizeof(*doctor));
	if (!doctor)
		return -ENOMEM;
	r = examine(&examination, doctor);
	if (r < 0) {
		doctor_free(doctor);
		return err_set(&context->err, r, "cannot look at this host: %m");
	}
	*ret = doctor;
	return 0;
}

void doctor_free(struct doctor *doctor)
{
	if (!doctor)
		return;
	findings_clear(&doctor->findings);
	engines_clear(&doctor->engines);
	free(doctor);
}

bool doctor_would_work(const struct doctor *doctor)
{
	return verdict_any(&doctor->findings, &doctor->engines);
}

/* ---- writing ---- */

int doctor_write(const struct doctor *doctor, enum ctr_gpu_format format, FILE *file)
{
	const struct finding *first = verdict_first(&doctor->findings, &doctor->engines);

	switch (format) {
	case CTR_GPU_FORMAT_TEXT:
		return screen_write(&doctor->findings, &doctor->engines, file);
	case CTR_GPU_FORMAT_JSON:
		return report_write_json(json_pack("{s:s, s:b, s:o, s:o, s:o}", "version", CTR_GPU_VERSION, "works", !first, "first",
						   report_string(first ? first->id : NULL), "engines",
						   verdicts_to_json(&doctor->findings, &doctor->engines), "findings",
						   findings_to_json(&doctor->findings)),
					 file);
	case CTR_GPU_FORMAT_CSV:
	case CTR_GPU_FORMAT_PATHS:
		break;
	}
	return -EINVAL;
}
