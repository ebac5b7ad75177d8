/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whether a linker that one thread made can be used by others, one after the other, also after a call that failed: the
 * server has a thread for each of the client's, and which of them uses a linker is the client's to say.
 */

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>

#include "question.h"

enum { WORKERS = 4, ROUNDS = 300, INPUT_PTX = 1, LOG = 2048 };
enum { INFO_BUFFER = 3, INFO_BYTES, ERROR_BUFFER, ERROR_BYTES };

enum { CREATE, ADD, COMPLETE, DESTROY };

struct about {
	const char *name;
	int order[WORKERS - 1];
	bool shared; /* by a thread for each of its calls; otherwise by the one that made it */
	bool logs;   /* with buffers for what the compiler says */
};

static struct worker {
	sem_t begins, ends;
	int call;
	CUresult result;
} workers[WORKERS];

/* As hostile clients have it: hardly anything to compile. */
static char text[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nop()\n{\n\tret;\n}\n";

static CUcontext context;
static CUlinkState linker;
static int *rounds; /* shared with the process that does them */

static bool with_logs;

/* The driver writes into the sizes what it has used, so that each linker gets its own. */
static CUresult link_create(void)
{
	static int names[] = {INFO_BUFFER, INFO_BYTES, ERROR_BUFFER, ERROR_BYTES};
	static char info[ROUNDS][LOG], error[ROUNDS][LOG];
	static void *values[ROUNDS][4];
	void **own = values[*rounds];

	own[0] = info[*rounds];
	own[2] = error[*rounds];
	own[1] = own[3] = (void *)LOG;
	return cu.cuLinkCreate_v2(with_logs ? 4 : 0, names, own, &linker);
}

static CUresult link_call(int call)
{
	size_t bytes;
	void *image;

	switch (call) {
	case CREATE:
		return link_create();
	case ADD:
		return cu.cuLinkAddData_v2(linker, INPUT_PTX, text, sizeof(text), NULL, 0, NULL, NULL);
	case COMPLETE:
		return cu.cuLinkComplete(linker, &image, &bytes);
	default:
		return cu.cuLinkDestroy(linker);
	}
}

static void *link_work(void *argument)
{
	struct worker *worker = argument;

	for (;;) {
		(void)sem_wait(&worker->begins);
		(void)cu.cuCtxSetCurrent(context);
		worker->result = link_call(worker->call);
		(void)sem_post(&worker->ends);
	}
	return NULL;
}

static CUresult link_have(struct worker *worker, int call)
{
	worker->call = call;
	(void)sem_post(&worker->begins);
	(void)sem_wait(&worker->ends);
	return worker->result;
}

/* Nothing is called behind the end. */
static void link_try(const void *argument, void *ret)
{
	const struct about *about = argument;
	CUresult *results = ret;

	context = driver_begin();
	for (int i = 0; i < WORKERS; i++) {
		pthread_t thread;

		(void)sem_init(&workers[i].begins, 0, 0);
		(void)sem_init(&workers[i].ends, 0, 0);
		(void)pthread_create(&thread, NULL, link_work, &workers[i]);
	}
	with_logs = about->logs;
	for (*rounds = 0; *rounds < ROUNDS; ++*rounds) {
		if (link_have(&workers[0], CREATE))
			return;
		for (int i = 0; i < WORKERS - 1; i++) {
			results[i] = link_have(&workers[about->shared ? about->order[i] : 0], about->order[i]);
			if (about->order[i] == DESTROY)
				break;
		}
	}
}

void ask_linkers(int argc, char **argv)
{
	static const struct about abouts[] = {
		{"added, completed, destroyed", {ADD, COMPLETE, DESTROY}, false, false},
		{"added, destroyed", {ADD, DESTROY}, false, false},
		{"completed with nothing, added, destroyed", {COMPLETE, ADD, DESTROY}, false, false},
		{"completed with nothing, destroyed", {COMPLETE, DESTROY}, false, false},
	};

	(void)argc;
	(void)argv;
	rounds = mmap(NULL, sizeof(*rounds), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; rounds != MAP_FAILED && i < 4 * sizeof(abouts) / sizeof(abouts[0]); i++) {
		CUresult results[WORKERS - 1] = {-1, -1, -1};
		struct about about = abouts[i / 4];
		int r;

		about.shared = i & 1;
		about.logs = i & 2;
		r = alone(link_try, &about, results, sizeof(results));
		answer(r == 0 && *rounds == ROUNDS, "%s by %s, %s logs: signal %d after %d rounds, the calls %d %d %d",
		       about.name, about.shared ? "a thread each" : "one thread", about.logs ? "with" : "without", r,
		       *rounds, results[0], results[1], results[2]);
	}
}
