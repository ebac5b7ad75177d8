/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A page for Prometheus, by HTTP/1.1 on a Unix socket or on this machine's own network, one page a connection. No
 * peer is waited for: the caller's poll(2) waits for all of them, and each has some seconds.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { METRICS_PAGE_PEERS = 4 };

struct metrics_peer {
	int fd;
	char request[2048];
	size_t size, sent;
	char *answer; /* NULL: none yet */
	bool asks;    /* for the page */
	int64_t deadline;
};

struct metrics_page {
	int listener; /* -1: no page is served */
	struct metrics_peer peers[METRICS_PAGE_PEERS];
	size_t peer_count;
};

/**
 * metrics_page_open() - listen
 * @where: an absolute path, where a socket is replaced and any other file stays; or "127.0.0.1:PORT"
 *
 * Return: 0; -EINVAL if it is neither; -EADDRINUSE; negative errno.
 */
int metrics_page_open(const char *where, struct metrics_page *ret);
void metrics_page_close(struct metrics_page *page);

/** Return: what poll(2) is to wait for. Its deadline is another time to wake at. */
short metrics_page_events(const struct metrics_peer *peer);

/**
 * metrics_page_serve() - read and write, as far as that goes
 * @happened: what poll(2) says of a descriptor; 0: nothing
 * @now:      milliseconds of the clock that deadlines are of
 */
void metrics_page_serve(struct metrics_page *page, short (*happened)(const void *waits, int fd), const void *waits,
			int64_t now);

/** Whether a peer waits for metrics_page_publish(). */
bool metrics_page_is_asked(const struct metrics_page *page);

/** Answers every peer that waits with this page; NULL: closes their connections without one. */
void metrics_page_publish(struct metrics_page *page, const char *text);

/** Prints @before="value", of which the value may be anything. A page is printed into memory (struct memstream). */
void metrics_page_print_label(FILE *page, const char *before, const char *value);
