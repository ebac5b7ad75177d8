/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs the checks, in a child: a network filesystem or a driver that does not answer holds a process in the kernel where no
 * signal reaches it. Whoever asks gets the findings there are by then, and the name of the check that did not end.
 */

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
#include "doctor/doctor.h"

enum {
	REPORT_MAX = 1024 * 1024,
	DRIVER_QUESTIONS = 3, /* that may each take as long as a driver library is given */
	FILES_MS = 8000,      /* for everything that only reads files */
	LINE_FIRST = 256,
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

struct ctr_gpu_doctor {
	struct findings findings;
};

/* ---- the child ---- */

static void examination_clear(struct examination *examination)
{
	findings_clear(&examination->findings);
	strv_clear(&examination->cdi_kinds);
	examination->host = ctr_gpu_host_unref(examination->host);
}

/* One line: what is looked at next, and what was found before. Return: 0 or negative errno. */
static int tell(int fd, struct findings *findings, const char *subject)
{
	_cleanup_json_ json_t *json = json_pack("{s:s, s:o}", "next", subject, "findings", findings_to_json(findings));
	_cleanup_free_ char *line = json ? json_dumps(json, JSON_COMPACT) : NULL;
	struct span parts[2];

	if (!line || findings->incomplete)
		return -ENOMEM;
	findings_clear(findings);
	parts[0] = span_text(line);
	parts[1] = span_text("\n");
	return fd_write_parts(fd, parts, ARRAY_SIZE(parts));
}

static int run_checks(struct examination *examination, int fd)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(checks) && r == 0; i++) {
		r = tell(fd, &examination->findings, checks[i].subject);
		if (r == 0)
			checks[i].run(examination);
	}
	return r == 0 ? tell(fd, &examination->findings, "") : r;
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

/* Everything up to the end of the child or of its time. */
static int collect(int fd, long long end_ms, char **ret)
{
	_cleanup_free_ char *text = malloc(REPORT_MAX + 1);
	size_t size = 0;
	ssize_t length;

	if (!text)
		return -ENOMEM;
	while (size < REPORT_MAX && wait_until(fd, end_ms) > 0) {
		length = read(fd, text + size, REPORT_MAX - size);
		if (length < 0 && errno == EINTR)
			continue;
		if (length <= 0)
			break;
		size += (size_t)length;
	}
	text[size] = '\0';
	*ret = steal_ptr(text);
	return 0;
}

static int take_line(const char *line, size_t length, struct findings *findings, char **subject)
{
	_cleanup_json_ json_t *json = NULL;
	const char *next;
	int r;

	r = json_parse(line, length, &json, NULL);
	if (r < 0)
		return r;
	r = findings_from_json(json_object_get(json, "findings"), findings);
	next = json_string_value(json_object_get(json, "next"));
	if (r < 0 || !next)
		return r < 0 ? r : -EINVAL;
	free(*subject);
	*subject = strdup(next);
	return *subject ? 0 : -ENOMEM;
}

/* A line without its end was cut off and counts for nothing. */
static int take_report(const char *text, struct findings *findings)
{
	_cleanup_free_ char *subject = NULL;
	const char *newline;
	int r = 0;

	for (; (newline = strchr(text, '\n')) && r == 0; text = newline + 1)
		r = take_line(text, (size_t)(newline - text), findings, &subject);
	if (r < 0)
		return r;
	if (!subject || subject[0]) {
		findings_add(findings, "doctor.stuck", SEVERITY_PROBLEM, "looking at %s did not come to an end", subject ? subject : "anything");
		findings_advise(findings, "Restart the machine (WSL: wsl --shutdown in Windows); dmesg may tell what hangs.");
	}
	return findings->incomplete ? -ENOMEM : 0;
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

static int examine(struct examination *examination, struct findings *ret)
{
	long long patience = (long long)examination->context->settings.driver_timeout_ms * DRIVER_QUESTIONS + FILES_MS;
	_cleanup_close_ int ours = -1, theirs = -1;
	_cleanup_free_ char *text = NULL;
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
	r = collect(ours, now_ms() + patience, &text);
	end_child(pid);
	return r == 0 ? take_report(text, ret) : r;
}

/* ---- the object ---- */

int ctr_gpu_doctor_new(struct ctr_gpu_context *context, const char *config, const char *rootfs, struct ctr_gpu_doctor **ret_doctor)
{
	struct examination examination = {.context = context, .config = config, .rootfs = rootfs};
	struct ctr_gpu_doctor *doctor;
	int r;

	if (rootfs && rootfs[0] != '/')
		return err_set(&context->err, CTR_GPU_E_BAD_ARGUMENT, "the image's root directory must be an absolute path, not \"%.128s\"", rootfs);
	doctor = calloc(1, sizeof(*doctor));
	if (!doctor)
		return -ENOMEM;
	r = examine(&examination, &doctor->findings);
	if (r < 0) {
		ctr_gpu_doctor_unref(doctor);
		return err_set(&context->err, r, "cannot look at this host: %m");
	}
	*ret_doctor = doctor;
	return 0;
}

struct ctr_gpu_doctor *ctr_gpu_doctor_unref(struct ctr_gpu_doctor *doctor)
{
	if (!doctor)
		return NULL;
	findings_clear(&doctor->findings);
	free(doctor);
	return NULL;
}

bool ctr_gpu_doctor_would_work(const struct ctr_gpu_doctor *doctor)
{
	const struct finding *worst = findings_worst(&doctor->findings);

	return worst && worst->severity < SEVERITY_PROBLEM;
}

/* ---- writing ---- */

enum { COLUMNS = 100, INDENT = 20 };

/* Text from @column on, in lines that are no longer than a screen, the further ones indented. */
static void write_wrapped(const char *text, size_t column, FILE *file)
{
	while (*text) {
		size_t length = strcspn(text, " "), blanks = strspn(text + length, " ");
		_cleanup_free_ char *word = strndup(text, length);

		report_write_text(word ? word : "", file);
		column += length + blanks;
		text += length + blanks;
		if (blanks == 0 || !*text)
			continue;
		if (column + strcspn(text, " ") > COLUMNS) {
			(void)fprintf(file, "\n%*s", INDENT, "");
			column = INDENT;
		} else {
			(void)fprintf(file, "%*s", (int)blanks, "");
		}
	}
	(void)fputc('\n', file);
}

static void write_finding(const struct finding *finding, FILE *file)
{
	int subject = (int)strcspn(finding->id, ".");

	(void)fprintf(file, "%-8s %-10.*s ", severity_name(finding->severity), subject, finding->id);
	write_wrapped(finding->text, INDENT, file);
	if (finding->remedy && finding->severity >= SEVERITY_WARNING) {
		(void)fprintf(file, "%*s> ", INDENT, "");
		write_wrapped(finding->remedy, INDENT + 2, file);
	}
}

static int write_text(const struct ctr_gpu_doctor *doctor, FILE *file)
{
	static const char yes[] = "A GPU container would work here.", no[] = "A GPU container would not work here. First: ";
	const struct finding *worst = findings_worst(&doctor->findings);

	if (ctr_gpu_doctor_would_work(doctor)) {
		write_wrapped(yes, 0, file);
	} else {
		(void)fputs(no, file);
		write_wrapped(worst->remedy ? worst->remedy : worst->text, strlen(no), file);
	}
	(void)fputc('\n', file);
	for (size_t i = 0; i < doctor->findings.count; i++)
		write_finding(&doctor->findings.items[i], file);
	return report_finish(file);
}

int ctr_gpu_doctor_write(const struct ctr_gpu_doctor *doctor, enum ctr_gpu_format format, FILE *file)
{
	const struct finding *worst = findings_worst(&doctor->findings);
	bool works = ctr_gpu_doctor_would_work(doctor);

	switch (format) {
	case CTR_GPU_FORMAT_TEXT:
		return write_text(doctor, file);
	case CTR_GPU_FORMAT_JSON:
		return report_write_json(json_pack("{s:s, s:b, s:o, s:o}", "version", CTR_GPU_VERSION, "works", works, "first",
						   report_string(works ? NULL : worst->id), "findings",
						   findings_to_json(&doctor->findings)),
					 file);
	case CTR_GPU_FORMAT_CSV:
	case CTR_GPU_FORMAT_PATHS:
		break;
	}
	return -EINVAL;
}
