/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory that a container's servers and their manager share, and that the next manager takes over from a server. With
 * the mode PAGE_OF_ALL all of them write there. Of one with PAGE_OF_MANAGER servers, which are other users, get a
 * descriptor to read it by, and can open no other; F_SEAL_FUTURE_WRITE would keep the next manager from writing, too.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { PAGE_OF_ALL = 0666, PAGE_OF_MANAGER = 0600 };

/** Return: a descriptor of @bytes that stay as many; negative errno. */
int page_make(size_t bytes, mode_t mode);

/** page_open_again() - the same memory. @flags: of open(2). Return: a descriptor; negative errno. */
int page_open_again(int fd, int flags);

/**
 * page_take() - what a server, which lives, has as a descriptor
 *
 * Return: a descriptor to read and write it; -EBADF if it is not what page_make() makes with the same arguments;
 * negative errno.
 */
int page_take(pid_t server, int number, size_t bytes, mode_t mode);

/** Maps all of it. Return: 0; -EBADF as above; negative errno. */
int page_map(int fd, size_t bytes, void **ret);
