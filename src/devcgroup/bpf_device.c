/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the kernel shows of a program are its translated instructions. For device programs these are nearly the loaded
 * ones, since their context (struct bpf_cgroup_dev_ctx) is read as it is: the verifier drops dead code, replaces the
 * operands of calls and map loads, and marks zero extensions (kernel/bpf/verifier.c).
 */

#include "devcgroup/bpf_device.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "process/privilege.h"

/* ---- what a program answers ---- */

/*
 * What a device program answers, found by following its instructions. A rule that a program grants already must not be
 * added again, or the program would grow at every run. A program that we extended is known by its answer, not by its
 * author. Programs of this kind load the three context fields, compare and return. Anything more is answered by
 * "unknown": that costs a few instructions and is never wrong.
 */

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

/* ---- programs ---- */

enum {
	INSNS_MAX = 1 << 17, /* programs in the field have under a thousand */
	USUAL_SIZE = 4096,   /* runc's and systemd's have a few hundred */
	LOG_SIZE = 64 * 1024,
	HEAD_SIZE = 9,
	RULE_SIZE = 4,
	ALIKE_MAX = 1024, /* jumps are of 16 bits */
};

void bpf_program_clear(struct bpf_program *program)
{
	free(program->insns);
	*program = (struct bpf_program){0};
}

int bpf_call(enum bpf_cmd command, union bpf_attr *attr)
{
	long r = syscall(SYS_bpf, command, attr, sizeof(*attr));

	return r < 0 ? -errno : (int)r;
}

/* Return: 0, with no instructions in @info->xlated_prog_insns if this descriptor's opener may not see them. */
static int bpf_read_instructions(int fd, struct bpf_insn *insns, __u32 size, struct bpf_prog_info *info)
{
	union bpf_attr attr;

	*info = (struct bpf_prog_info){.xlated_prog_len = size, .xlated_prog_insns = (__u64)(uintptr_t)insns};
	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (__u32)fd;
	attr.info.info_len = sizeof(*info);
	attr.info.info = (__u64)(uintptr_t)info;
	return bpf_call(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

/* A hardened program is shown to those who opened it with CAP_SYSLOG (kernel/bpf/syscall.c, bpf_dump_raw_ok()). */
static int bpf_read_hardened(struct bpf_insn *insns, __u32 size, struct bpf_prog_info *info)
{
	_cleanup_capability_ int raised = capability_raise(CAP_SYSLOG);
	_cleanup_close_ int fd = -1;
	union bpf_attr attr;

	if (raised == CAPABILITY_NONE)
		return 0;
	memset(&attr, 0, sizeof(attr));
	attr.prog_id = info->id;
	fd = bpf_call(BPF_PROG_GET_FD_BY_ID, &attr);
	return fd < 0 ? fd : bpf_read_instructions(fd, insns, size, info);
}

/* ---- constants ---- */

/*
 * With the sysctl net.core.bpf_jit_harden set to 2 a loaded program has no constants of its own any more: each is put
 * together from two random halves in a register that only the kernel knows (kernel/bpf/core.c, bpf_jit_blind_insn()),
 * and the verifier takes no program that names it. The same in one instruction, with two jumps to the next in front,
 * which the verifier drops, is the program as it was loaded.
 */

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

/* Return: false if that cannot be done. */
static bool bpf_program_constants(struct bpf_program *program)
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

/* ---- reading ---- */

/*
 * Makes translated instructions loadable again, where that can be done: calls are to addresses by now, and a map load
 * would need the map. A zero extension that the verifier put in has 1 in a field that must be 0 in what is loaded.
 */
static bool bpf_make_all_loadable(struct bpf_program *program)
{
	if (!bpf_program_constants(program))
		return false;
	for (size_t i = 0; i < program->count; i++) {
		struct bpf_insn *insn = &program->insns[i];
		bool constant = insn->code == (BPF_LD | BPF_IMM | BPF_DW);

		if ((constant && insn->src_reg != 0) || insn->code == (BPF_JMP | BPF_CALL))
			return false;
		if (insn->code == (BPF_ALU | BPF_MOV | BPF_X) && insn->imm == 1 && insn->dst_reg == insn->src_reg)
			insn->imm = 0;
		/* The second half of a 64-bit constant has no code of its own. */
		i += constant;
	}
	return true;
}

/* As much as @size. Return: as bpf_read_instructions(). */
static int bpf_read_program(int fd, __u32 size, struct bpf_program *program, struct bpf_prog_info *info)
{
	struct bpf_insn *insns = realloc(program->insns, size);
	int r;

	if (!insns)
		return -ENOMEM;
	program->insns = insns;
	r = bpf_read_instructions(fd, insns, size, info);
	return r == 0 && !info->xlated_prog_insns ? bpf_read_hardened(insns, size, info) : r;
}

int bpf_program_read(int fd, struct bpf_program *ret, struct err *err)
{
	_cleanup_bpf_program_ struct bpf_program program = {0};
	struct bpf_prog_info info = {0};
	__u32 size;
	int r = bpf_read_program(fd, USUAL_SIZE, &program, &info);

	if (r < 0)
		return err_set(err, r, "cannot read the container's device program: %m");
	size = info.xlated_prog_len;
	if (!size || size % sizeof(*program.insns) || size / sizeof(*program.insns) > INSNS_MAX)
		return err_set(
			err, CTR_GPU_E_NO_CGROUP,
			"the container's device program \"%.16s\" cannot be extended: the kernel tells %u bytes of it",
			info.name, size);
	if (size > USUAL_SIZE)
		r = bpf_read_program(fd, size, &program, &info);
	if (r < 0)
		return err_set(err, r, "cannot read the container's device program: %m");
	if (info.xlated_prog_len != size || !info.xlated_prog_insns)
		return err_set_advised(
			err, CTR_GPU_E_NO_CGROUP,
			("the kernel does not show the instructions of the container's device program \"%.16s\":",
			 info.name),
			("set the sysctl kernel.kptr_restrict to 1 or net.core.bpf_jit_harden to 0, or give the "
			 "device to the engine by CDI"));
	program.count = size / sizeof(*program.insns);
	if (!bpf_make_all_loadable(&program))
		return err_set_advised(
			err, CTR_GPU_E_NO_CGROUP,
			("the container's device program \"%.16s\" uses maps or helper functions, so it cannot be "
			 "extended:",
			 info.name),
			("give the device to the engine by CDI instead"));
	*ret = steal_struct(&program);
	return 0;
}

static unsigned bpf_access_mask(const char *access)
{
	unsigned mask = 0;

	if (strchr(access, 'm'))
		mask |= BPF_DEVCG_ACC_MKNOD;
	if (strchr(access, 'r'))
		mask |= BPF_DEVCG_ACC_READ;
	if (strchr(access, 'w'))
		mask |= BPF_DEVCG_ACC_WRITE;
	return mask;
}

static unsigned bpf_device_type(char type)
{
	return type == 'b' ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR;
}

/* The kernel asks for what an open or mknod needs at once, so that every part of the rule may be asked for alone. */
enum bpf_decision bpf_program_allows(const struct bpf_program *program, const struct devcgroup_rule *rule)
{
	unsigned mask = bpf_access_mask(rule->access);
	struct bpf_cgroup_dev_ctx access = {.major = rule->major, .minor = rule->minor};

	for (unsigned part = 1; part <= mask; part++) {
		enum bpf_decision verdict;

		if (part & ~mask)
			continue;
		access.access_type = part << 16 | bpf_device_type(rule->type);
		verdict = bpf_program_evaluate(program, &access);
		if (verdict != BPF_ALLOWS)
			return verdict;
	}
	return BPF_ALLOWS;
}

#define LOAD(destination, member)                                                                  \
	{                                                                                          \
		.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = (destination), .src_reg = BPF_REG_1, \
		.off = offsetof(struct bpf_cgroup_dev_ctx, member)                                 \
	}
#define ALU(operation, destination, value)                                                               \
	{                                                                                                \
		.code = BPF_ALU64 | (operation) | BPF_K, .dst_reg = (destination), .imm = (__s32)(value) \
	}
#define JUMP_UNLESS(left, value, offset)                                                                     \
	{                                                                                                    \
		.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = (left), .off = (offset), .imm = (__s32)(value) \
	}

static bool bpf_is_alike(const struct devcgroup_rule *rule, const struct devcgroup_rule *other)
{
	return rule->type == other->type && bpf_access_mask(rule->access) == bpf_access_mask(other->access);
}

/* How many rules from the first on ask for the same access to the same type of device. */
static size_t bpf_count_alike(const struct devcgroup_rule *rules, size_t count)
{
	size_t alike = 1;

	while (alike < count && alike < ALIKE_MAX && bpf_is_alike(&rules[alike], rules))
		alike++;
	return alike;
}

/*
 * The instructions that allow, or deny, what @count rules of one kind allow, and otherwise fall through. When a
 * program starts, R1 and R10 have a value and the verifier lets it read no other register before it wrote it, so R0,
 * R2 and R3 are free; R1 is left alone. 64-bit operations throughout: no architecture has zero extensions put between
 * them.
 *
 * Return: their end.
 */
static struct bpf_insn *bpf_write_rules(struct bpf_insn *insns, const struct devcgroup_rule *rules, size_t count,
					enum bpf_decision decision)
{
	const __s16 all = (__s16)(count * RULE_SIZE);
	const struct bpf_insn head[HEAD_SIZE] = {
		LOAD(BPF_REG_2, access_type),
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_3, .src_reg = BPF_REG_2},
		ALU(BPF_AND, BPF_REG_3, 0xffff),
		JUMP_UNLESS(BPF_REG_3, bpf_device_type(rules->type), all + 5),
		ALU(BPF_RSH, BPF_REG_2, 16),
		ALU(BPF_AND, BPF_REG_2, ~bpf_access_mask(rules->access)),
		JUMP_UNLESS(BPF_REG_2, 0, all + 2),
		LOAD(BPF_REG_2, major),
		LOAD(BPF_REG_3, minor),
	};

	memcpy(insns, head, sizeof(head));
	insns += HEAD_SIZE;
	for (size_t i = 0; i < count; i++) {
		const struct bpf_insn rule[RULE_SIZE] = {
			JUMP_UNLESS(BPF_REG_2, rules[i].major, 3),
			JUMP_UNLESS(BPF_REG_3, rules[i].minor, 2),
			ALU(BPF_MOV, BPF_REG_0, decision == BPF_ALLOWS),
			{.code = BPF_JMP | BPF_EXIT},
		};

		memcpy(insns, rule, sizeof(rule));
		insns += RULE_SIZE;
	}
	return insns;
}

/* All rules, in blocks of a kind. Return: their end. */
static struct bpf_insn *bpf_write_all_rules(struct bpf_insn *end, const struct devcgroup_rule *rules, size_t count,
					    enum bpf_decision decision)
{
	for (size_t i = 0, alike; i < count; i += alike) {
		alike = bpf_count_alike(rules + i, count - i);
		end = bpf_write_rules(end, rules + i, alike, decision);
	}
	return end;
}

/* Return: the size of the block of ours that the instructions begin with; 0: they do not. */
static size_t bpf_measure_block(const struct bpf_insn *insns, size_t count)
{
	static const struct devcgroup_rule any = {.type = 'c', .access = "rw"};
	struct bpf_insn block[HEAD_SIZE + RULE_SIZE];
	size_t size;

	if (count < HEAD_SIZE + RULE_SIZE)
		return 0;
	(void)bpf_write_rules(block, &any, 1, BPF_ALLOWS);
	size = HEAD_SIZE + (size_t)(insns[3].off - 5);
	if (memcmp(block, insns, 3 * sizeof(*insns)) != 0 || insns[3].code != block[3].code || insns[3].off <= 5 ||
	    (size - HEAD_SIZE) % RULE_SIZE || insns[6].off != insns[3].off - 3 || size > count)
		return 0;
	return size;
}

int bpf_program_strip(const struct bpf_program *program, const struct devcgroup_rule *rules, size_t count,
		      struct bpf_program *ret)
{
	_cleanup_free_ struct bpf_insn *ours = calloc(count * (HEAD_SIZE + RULE_SIZE) + 1, sizeof(*ours));
	struct bpf_insn *rest;
	size_t size, at = 0, block;

	if (!ours)
		return -ENOMEM;
	size = (size_t)(bpf_write_all_rules(ours, rules, count, BPF_ALLOWS) - ours);
	while (size > program->count - at || memcmp(program->insns + at, ours, size * sizeof(*ours)) != 0) {
		block = bpf_measure_block(program->insns + at, program->count - at);
		if (!block)
			return 0;
		at += block;
	}
	rest = calloc(program->count - size + 1, sizeof(*rest));
	if (!rest)
		return -ENOMEM;
	memcpy(rest, program->insns, at * sizeof(*rest));
	memcpy(rest + at, program->insns + at + size, (program->count - at - size) * sizeof(*rest));
	*ret = (struct bpf_program){rest, program->count - size};
	return 1;
}

static int bpf_put_before(const struct bpf_program *program, const struct devcgroup_rule *rules, size_t count,
			  enum bpf_decision decision, struct bpf_program *ret)
{
	struct bpf_insn *insns = calloc(count * (HEAD_SIZE + RULE_SIZE) + program->count, sizeof(*insns)), *end;

	if (!insns)
		return -ENOMEM;
	end = bpf_write_all_rules(insns, rules, count, decision);
	memcpy(end, program->insns, program->count * sizeof(*insns));
	*ret = (struct bpf_program){insns, (size_t)(end - insns) + program->count};
	return 0;
}

int bpf_program_extend(const struct bpf_program *program, const struct devcgroup_rule *rules, size_t count,
		       struct bpf_program *ret)
{
	return bpf_put_before(program, rules, count, BPF_ALLOWS, ret);
}

int bpf_program_forbid(const struct bpf_program *program, const struct devcgroup_rule *rules, size_t count,
		       struct bpf_program *ret)
{
	return bpf_put_before(program, rules, count, BPF_DENIES, ret);
}

/* Loads once more, for the verifier's words. */
static int bpf_explain_load(union bpf_attr *attr, int error, struct err *err)
{
	_cleanup_free_ char *log = calloc(1, LOG_SIZE);
	const char *complaint = "";

	if (log) {
		char *statistics;
		int fd;

		attr->log_buf = (__u64)(uintptr_t)log;
		attr->log_size = LOG_SIZE;
		attr->log_level = 1;
		fd = bpf_call(BPF_PROG_LOAD, attr);
		if (fd >= 0)
			(void)close(fd);
		/* The last line that the verifier wrote before its statistics. */
		statistics = strstr(log, "\nprocessed ");
		if (statistics)
			*statistics = '\0';
		complaint = strrchr(log, '\n') ? strrchr(log, '\n') + 1 : log;
	}
	return err_set_advised(
		err, CTR_GPU_E_NO_CGROUP,
		("the kernel does not take the container's device program with the GPU added (%s): %.200s",
		 err_name(error), complaint),
		("give the device to the engine by CDI instead"));
}

/* Linux before 5.11 counts programs as locked memory of their user, and refuses with EPERM. */
static int bpf_load_without_limit(union bpf_attr *attr)
{
	static const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
	_cleanup_capability_ int raised = capability_raise(CAP_SYS_RESOURCE);
	struct rlimit old;
	int fd;

	if (getrlimit(RLIMIT_MEMLOCK, &old) < 0 || setrlimit(RLIMIT_MEMLOCK, &none) < 0)
		return -EPERM;
	fd = bpf_call(BPF_PROG_LOAD, attr);
	(void)setrlimit(RLIMIT_MEMLOCK, &old);
	return fd;
}

int bpf_program_load(const struct bpf_program *program, int *ret_fd, struct err *err)
{
	static const char license[] = "Apache-2.0", name[] = "ctr_gpu";
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
	attr.insns = (__u64)(uintptr_t)program->insns;
	attr.insn_cnt = (__u32)program->count;
	attr.license = (__u64)(uintptr_t)license;
	memcpy(attr.prog_name, name, sizeof(name));
	fd = bpf_call(BPF_PROG_LOAD, &attr);
	if (fd == -EPERM)
		fd = bpf_load_without_limit(&attr);
	if (fd == -EPERM || fd == -ENOMEM)
		return err_set(err, fd, "cannot load the container's device program: %m");
	if (fd < 0)
		return bpf_explain_load(&attr, fd, err);
	*ret_fd = fd;
	return 0;
}
