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

static bool bpf_unblind_uses(const struct bpf_insn *insn)
{
	return insn->dst_reg >= FIRST_HIDDEN_REGISTER || insn->src_reg >= FIRST_HIDDEN_REGISTER;
}

static bool bpf_unblind_sets_constant(const struct bpf_insn *insn, unsigned operation, unsigned hidden)
{
	unsigned class = BPF_CLASS(insn->code);

	return (class == BPF_ALU || class == BPF_ALU64) && BPF_OP(insn->code) == operation &&
	       BPF_SRC(insn->code) == BPF_K && insn->dst_reg == hidden;
}

static bool bpf_unblind_takes_constant(const struct bpf_insn *insn, unsigned hidden)
{
	unsigned class = BPF_CLASS(insn->code);

	return (class == BPF_ALU || class == BPF_ALU64 || class == BPF_JMP || class == BPF_JMP32) &&
	       BPF_SRC(insn->code) == BPF_X && insn->src_reg == hidden && insn->dst_reg < FIRST_HIDDEN_REGISTER;
}

/* Three instructions: one half, the other half, their use. */
static bool bpf_unblind_instruction(struct bpf_insn insns[3])
{
	static const struct bpf_insn next = {.code = BPF_JMP | BPF_JA};
	unsigned hidden = insns[0].dst_reg;

	if (hidden < FIRST_HIDDEN_REGISTER || !bpf_unblind_sets_constant(&insns[0], BPF_MOV, hidden) ||
	    !bpf_unblind_sets_constant(&insns[1], BPF_XOR, hidden) || !bpf_unblind_takes_constant(&insns[2], hidden))
		return false;
	insns[2].code &= (__u8)~BPF_X;
	insns[2].src_reg = 0;
	insns[2].imm = insns[0].imm ^ insns[1].imm;
	insns[0] = insns[1] = next;
	return true;
}

/* What is left of setting a register to 0; the verifier would complain that it has no value before. */
static void bpf_unblind_restore_zero(struct bpf_insn *insn)
{
	unsigned class = BPF_CLASS(insn->code);

	if ((class == BPF_ALU || class == BPF_ALU64) && BPF_OP(insn->code) == BPF_XOR && BPF_SRC(insn->code) == BPF_X &&
	    insn->dst_reg == insn->src_reg)
		*insn = (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = insn->dst_reg};
}

bool bpf_program_unblind(struct bpf_program *program)
{
	for (size_t i = 0; i < program->count; i++) {
		bpf_unblind_restore_zero(&program->insns[i]);
		if (!bpf_unblind_uses(&program->insns[i]))
			continue;
		if (program->count - i < 3 || !bpf_unblind_instruction(&program->insns[i]))
			return false;
		i += 2;
	}
	return true;
}
