/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a device program answers, found by following its instructions. A rule that a program grants already must not be
 * added again, or the program would grow at every run. A program that we extended is known by its answer, not by its
 * author. Programs of this kind load the three context fields, compare and return. Anything more is answered by
 * "unknown": that costs a few instructions and is never wrong.
 */

#include "devcgroup/bpf_device.h"

#include <stdint.h>
#include <string.h>

/* A register: a number, the address of the context, or, before it is written, nothing. */
struct value {
	enum { NOTHING, NUMBER, CONTEXT } kind;
	uint64_t number;
};

struct machine {
	const struct bpf_program *program;
	const struct bpf_cgroup_dev_ctx *context;
	struct value registers[MAX_BPF_REG];
	size_t next;
};

static bool bpf_evaluate_load(struct machine *machine, const struct bpf_insn *insn)
{
	static const size_t sizes[] = {[BPF_W >> 3] = 4, [BPF_H >> 3] = 2, [BPF_B >> 3] = 1, [BPF_DW >> 3] = 0};
	size_t size = sizes[BPF_SIZE(insn->code) >> 3];
	size_t offset = (size_t)insn->off;
	uint64_t number = 0;
	uint32_t word;
	uint16_t half;

	if (BPF_MODE(insn->code) != BPF_MEM || machine->registers[insn->src_reg].kind != CONTEXT)
		return false;
	if (!size || insn->off < 0 || offset > sizeof(*machine->context) - size)
		return false;
	if (size == sizeof(word)) {
		memcpy(&word, (const char *)machine->context + offset, sizeof(word));
		number = word;
	} else if (size == sizeof(half)) {
		memcpy(&half, (const char *)machine->context + offset, sizeof(half));
		number = half;
	} else {
		number = *((const unsigned char *)machine->context + offset);
	}
	machine->registers[insn->dst_reg] = (struct value){NUMBER, number};
	return true;
}

static bool bpf_evaluate_compute(unsigned operation, uint64_t left, uint64_t right, unsigned bits, uint64_t *ret)
{
	const unsigned shift = (unsigned)right & (bits - 1);

	switch (operation) {
	case BPF_ADD:
		return *ret = left + right, true;
	case BPF_SUB:
		return *ret = left - right, true;
	case BPF_AND:
		return *ret = left & right, true;
	case BPF_OR:
		return *ret = left | right, true;
	case BPF_XOR:
		return *ret = left ^ right, true;
	case BPF_LSH:
		return *ret = left << shift, true;
	case BPF_RSH:
		return *ret = left >> shift, true;
	default:
		return false;
	}
}

/* The right operand: a register or the constant, sign-extended as both 64-bit ALU and jumps have it. */
static struct value bpf_evaluate_operand(const struct machine *machine, const struct bpf_insn *insn)
{
	if (BPF_SRC(insn->code) == BPF_X)
		return machine->registers[insn->src_reg];
	return (struct value){NUMBER, (uint64_t)(int64_t)insn->imm};
}

static bool bpf_evaluate_calculate(struct machine *machine, const struct bpf_insn *insn)
{
	bool wide = BPF_CLASS(insn->code) == BPF_ALU64;
	uint64_t mask = wide ? UINT64_MAX : UINT32_MAX, result;
	struct value right = bpf_evaluate_operand(machine, insn), *left = &machine->registers[insn->dst_reg];

	/* An offset makes a MOV sign-extend and a DIV signed. */
	if (insn->off != 0)
		return false;
	if (BPF_OP(insn->code) == BPF_MOV) {
		if (right.kind == NOTHING || (right.kind == CONTEXT && !wide))
			return false;
		*left = (struct value){right.kind, right.number & mask};
		return true;
	}
	if (left->kind != NUMBER || right.kind != NUMBER)
		return false;
	if (!bpf_evaluate_compute(BPF_OP(insn->code), left->number & mask, right.number & mask, wide ? 64 : 32,
				  &result))
		return false;
	left->number = result & mask;
	return true;
}

static bool bpf_evaluate_compare(unsigned operation, uint64_t left, uint64_t right, bool *ret)
{
	switch (operation) {
	case BPF_JEQ:
		return *ret = left == right, true;
	case BPF_JNE:
		return *ret = left != right, true;
	case BPF_JGT:
		return *ret = left > right, true;
	case BPF_JGE:
		return *ret = left >= right, true;
	case BPF_JLT:
		return *ret = left < right, true;
	case BPF_JLE:
		return *ret = left <= right, true;
	case BPF_JSET:
		return *ret = (left & right) != 0, true;
	default:
		return false;
	}
}

static bool bpf_evaluate_jump(struct machine *machine, const struct bpf_insn *insn)
{
	uint64_t mask = BPF_CLASS(insn->code) == BPF_JMP ? UINT64_MAX : UINT32_MAX;
	struct value left = machine->registers[insn->dst_reg], right = bpf_evaluate_operand(machine, insn);
	bool taken = true;

	if (insn->code != (BPF_JMP | BPF_JA)) {
		if (left.kind != NUMBER || right.kind != NUMBER)
			return false;
		if (!bpf_evaluate_compare(BPF_OP(insn->code), left.number & mask, right.number & mask, &taken))
			return false;
	}
	/* Backwards would be a loop, and no device program has one. */
	if (taken && insn->off < 0)
		return false;
	machine->next += taken ? (size_t)insn->off : 0;
	return true;
}

static bool bpf_evaluate_load_constant(struct machine *machine, const struct bpf_insn *insn)
{
	uint64_t low = (uint32_t)insn->imm;

	if (insn->code != (BPF_LD | BPF_IMM | BPF_DW) || insn->src_reg || machine->next >= machine->program->count)
		return false;
	machine->registers[insn->dst_reg] =
		(struct value){NUMBER, (uint64_t)(uint32_t)machine->program->insns[machine->next].imm << 32 | low};
	machine->next++;
	return true;
}

static bool bpf_evaluate_step(struct machine *machine, const struct bpf_insn *insn)
{
	if (insn->dst_reg >= MAX_BPF_REG || insn->src_reg >= MAX_BPF_REG)
		return false;
	switch (BPF_CLASS(insn->code)) {
	case BPF_LD:
		return bpf_evaluate_load_constant(machine, insn);
	case BPF_LDX:
		return bpf_evaluate_load(machine, insn);
	case BPF_ALU:
	case BPF_ALU64:
		return bpf_evaluate_calculate(machine, insn);
	case BPF_JMP:
	case BPF_JMP32:
		return bpf_evaluate_jump(machine, insn);
	default:
		return false;
	}
}

enum bpf_decision bpf_program_evaluate(const struct bpf_program *program, const struct bpf_cgroup_dev_ctx *access)
{
	struct machine machine = {.program = program, .context = access, .registers[BPF_REG_1] = {.kind = CONTEXT}};

	/* Every step goes forward, so this ends. */
	while (machine.next < program->count) {
		const struct bpf_insn *insn = &program->insns[machine.next++];

		if (insn->code == (BPF_JMP | BPF_EXIT)) {
			if (machine.registers[BPF_REG_0].kind != NUMBER)
				return BPF_UNKNOWN;
			return machine.registers[BPF_REG_0].number & 1 ? BPF_ALLOWS : BPF_DENIES;
		}
		if (!bpf_evaluate_step(&machine, insn))
			return BPF_UNKNOWN;
	}
	return BPF_UNKNOWN;
}
