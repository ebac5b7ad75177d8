/* SPDX-License-Identifier: Apache-2.0 */

/*
 * With the sysctl net.core.bpf_jit_harden set to 2 a loaded program has no constants of its own any more: each is put
 * together from two random halves in a register that only the kernel knows (kernel/bpf/core.c, bpf_jit_blind_insn()),
 * and the verifier takes no program that names it. The same in one instruction, with two jumps to the next in front,
 * which the verifier drops, is the program as it was loaded.
 */

#include "devcgroup/bpf_device.h"

/* The kernel's own registers are numbered from here; which of them this is depends on the kernel. */
enum { FIRST_HIDDEN_REGISTER = MAX_BPF_REG };

static bool bpf_constants_is_alu(const struct bpf_insn *insn)
{
	return BPF_CLASS(insn->code) == BPF_ALU || BPF_CLASS(insn->code) == BPF_ALU64;
}

/* Whether a constant is put into, or mixed into, a hidden register. */
static bool bpf_constants_is_half(const struct bpf_insn *insn, unsigned operation, unsigned hidden)
{
	return bpf_constants_is_alu(insn) && BPF_OP(insn->code) == operation && BPF_SRC(insn->code) == BPF_K &&
	       insn->dst_reg == hidden;
}

/* Three instructions: one half, the other half, their use. */
static bool bpf_constants_instruction(struct bpf_insn insns[3])
{
	static const struct bpf_insn next = {.code = BPF_JMP | BPF_JA};
	unsigned hidden = insns[0].dst_reg, class = BPF_CLASS(insns[2].code);

	if (hidden < FIRST_HIDDEN_REGISTER || !bpf_constants_is_half(&insns[0], BPF_MOV, hidden) ||
	    !bpf_constants_is_half(&insns[1], BPF_XOR, hidden) || BPF_SRC(insns[2].code) != BPF_X ||
	    insns[2].src_reg != hidden || insns[2].dst_reg >= FIRST_HIDDEN_REGISTER ||
	    !(bpf_constants_is_alu(&insns[2]) || class == BPF_JMP || class == BPF_JMP32))
		return false;
	insns[2].code &= (__u8)~BPF_X;
	insns[2].src_reg = 0;
	insns[2].imm = insns[0].imm ^ insns[1].imm;
	insns[0] = insns[1] = next;
	return true;
}

bool bpf_program_constants(struct bpf_program *program)
{
	for (size_t i = 0; i < program->count; i++) {
		struct bpf_insn *insn = &program->insns[i];

		/* What is left of setting a register to 0; the verifier would complain that it has no value before. */
		if (bpf_constants_is_alu(insn) && BPF_OP(insn->code) == BPF_XOR && BPF_SRC(insn->code) == BPF_X &&
		    insn->dst_reg == insn->src_reg)
			*insn = (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = insn->dst_reg};
		if (insn->dst_reg < FIRST_HIDDEN_REGISTER && insn->src_reg < FIRST_HIDDEN_REGISTER)
			continue;
		if (program->count - i < 3 || !bpf_constants_instruction(&program->insns[i]))
			return false;
		i += 2;
	}
	return true;
}
