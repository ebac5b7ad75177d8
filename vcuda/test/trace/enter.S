/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A call comes here with the number of its place in r11, all its arguments where they were, and goes on to the function.
 * What it returned is told to trace_back(), which gives back where the call came from.
 */

	.text
	.hidden trace_thread, trace_real, trace_back
	.globl trace_enter
	.hidden trace_enter
trace_enter:
	movq	trace_thread@gottpoff(%rip), %rax
	addq	%fs:0, %rax
	movq	(%rax), %r10
	incq	(%rax)
	shlq	$4, %r10
	leaq	16(%rax,%r10), %r10
	movq	%r11, 8(%r10)
	movq	(%rsp), %rax
	movq	%rax, (%r10)
	leaq	trace_return(%rip), %rax
	movq	%rax, (%rsp)
	leaq	trace_real(%rip), %rax
	jmp	*(%rax,%r11,8)

trace_return:
	subq	$8, %rsp
	pushq	%rax
	movl	%eax, %edi
	call	trace_back
	movq	%rax, 8(%rsp)
	popq	%rax
	ret

	.section .note.GNU-stack,"",@progbits
