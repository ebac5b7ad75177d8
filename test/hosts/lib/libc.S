/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A libc to link programs against that must run with an older one: names without versions. The names are those that
 * nvidia-smi (lib/smi.c) calls; shared libraries may leave theirs undefined and need none here.
 */

.macro function name
	.globl \name
	.type \name, @function
\name:
.endm

function __libc_start_main
function __cxa_finalize
function dlopen
function dlsym
function printf
function puts
function strcmp

.section .note.GNU-stack, "", @progbits
