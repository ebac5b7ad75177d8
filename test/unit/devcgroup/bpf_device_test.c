/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include "device_world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "devcgroup/bpf_device.h"

#define EXIT                               \
	{                                  \
		.code = BPF_JMP | BPF_EXIT \
	}
#define SET(to, value)                                                               \
	{                                                                            \
		.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = (to), .imm = (value) \
	}
#define CONSTANT(to, low, high)                                             \
	{.code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = (to), .imm = (low)}, \
	{                                                                   \
		.imm = (high)                                               \
	}

enum { READ = BPF_DEVCG_ACC_READ << 16 | BPF_DEVCG_DEV_CHAR, WRITE = BPF_DEVCG_ACC_WRITE << 16 | BPF_DEVCG_DEV_CHAR };

static const struct bpf_cgroup_dev_ctx access_asked = {READ, 10, 183};

/* Programs that the kernel would not take, or that no device program looks like, and what we make of them. */
static const struct {
	const char *name;
	enum bpf_decision expected;
	struct bpf_insn insns[6];
} odd[] = {
	{"allows", BPF_ALLOWS, {SET(0, 1), EXIT}},
	{"denies", BPF_DENIES, {SET(0, 0), EXIT}},
	{"says nothing", BPF_UNKNOWN, {EXIT}},
	{"answers with the context",
	 BPF_UNKNOWN,
	 {{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 0, .src_reg = 1}, EXIT}},
	{"has no end", BPF_UNKNOWN, {SET(0, 1), SET(0, 1), SET(0, 1), SET(0, 1), SET(0, 1), SET(0, 1)}},
	{"wide constant", BPF_DENIES, {CONSTANT(0, 0, 1), EXIT}},
	{"wide constant cut off",
	 BPF_UNKNOWN,
	 {SET(2, 0), SET(2, 0), SET(2, 0), SET(2, 0), SET(2, 0), {.code = BPF_LD | BPF_IMM | BPF_DW}}},
	{"map", BPF_UNKNOWN, {{.code = BPF_LD | BPF_IMM | BPF_DW, .src_reg = BPF_PSEUDO_MAP_FD}, {0}, SET(0, 1), EXIT}},
	{"call", BPF_UNKNOWN, {{.code = BPF_JMP | BPF_CALL, .imm = 1}, SET(0, 1), EXIT}},
	{"store", BPF_UNKNOWN, {{.code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = 10, .off = -8}, SET(0, 1), EXIT}},
	{"register that is none", BPF_UNKNOWN, {SET(11, 0), SET(0, 1), EXIT}},
	{"source that is none",
	 BPF_UNKNOWN,
	 {{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 2, .src_reg = 15}, SET(0, 1), EXIT}},
	{"32 bits wrap",
	 BPF_DENIES,
	 {SET(0, 0),
	  {.code = BPF_ALU | BPF_SUB | BPF_K, .dst_reg = 0, .imm = 1},
	  {.code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = 0, .imm = 32},
	  EXIT}},
	{"jump back", BPF_UNKNOWN, {SET(0, 1), {.code = BPF_JMP | BPF_JA, .off = -2}, EXIT}},
	{"jump past the end", BPF_UNKNOWN, {SET(0, 1), {.code = BPF_JMP | BPF_JA, .off = 32767}, EXIT}},
	{"jump on nothing", BPF_UNKNOWN, {SET(0, 1), {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 5}, EXIT}},
	{"load of the whole word",
	 BPF_ALLOWS,
	 {{.code = BPF_LDX | BPF_MEM | BPF_H, .dst_reg = 2, .src_reg = 1}, SET(0, 1), EXIT}},
	{"load beyond the context",
	 BPF_UNKNOWN,
	 {{.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 1, .off = 10}, SET(0, 1), EXIT}},
	{"load before the context",
	 BPF_UNKNOWN,
	 {{.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 1, .off = -4}, SET(0, 1), EXIT}},
	{"load of 8 bytes",
	 BPF_UNKNOWN,
	 {{.code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 2, .src_reg = 1}, SET(0, 1), EXIT}},
	{"load from the stack",
	 BPF_UNKNOWN,
	 {{.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 10, .off = -4}, SET(0, 1), EXIT}},
	{"moved context",
	 BPF_UNKNOWN,
	 {{.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 1, .imm = 4}, SET(0, 1), EXIT}},
	{"signed move",
	 BPF_UNKNOWN,
	 {{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 2, .src_reg = 1, .off = 8}, SET(0, 1), EXIT}},
};

static void odd_programs_have_no_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		struct bpf_program program = {(struct bpf_insn *)odd[i].insns, ARRAY_SIZE(odd[i].insns)};
		enum bpf_decision verdict = bpf_program_evaluate(&program, &access_asked);

		if (verdict != odd[i].expected)
			fail_msg("%s: %d", odd[i].name, verdict);
	}
	assert_int_equal(bpf_program_evaluate(&(struct bpf_program){0}, &access_asked), BPF_UNKNOWN);
}

static void a_rule_is_granted_in_all_its_parts(void **state)
{
	/* Allows what is read or written, but not both at once. */
	struct bpf_insn insns[] = {
		SET(0, 1),
		{.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 1},
		{.code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = 2, .imm = 16},
		{.code = BPF_JMP | BPF_JNE | BPF_K,
		 .dst_reg = 2,
		 .imm = BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE,
		 .off = 1},
		SET(0, 0),
		EXIT,
	};
	const struct bpf_program program = {insns, ARRAY_SIZE(insns)};

	(void)state;
	assert_int_equal(bpf_program_allows(&program, &(struct devcgroup_rule){'c', 1, 3, "r", NULL}), BPF_ALLOWS);
	assert_int_equal(bpf_program_allows(&program, &(struct devcgroup_rule){'c', 1, 3, "w", NULL}), BPF_ALLOWS);
	assert_int_equal(bpf_program_allows(&program, &(struct devcgroup_rule){'c', 1, 3, "wr", NULL}), BPF_DENIES);
	/* Now one that allows both at once only. */
	insns[0].imm = 0;
	insns[4].imm = 1;
	assert_int_equal(bpf_program_allows(&program, &(struct devcgroup_rule){'c', 1, 3, "wr", NULL}), BPF_DENIES);
}

static unsigned access_of(const char *text)
{
	return (strchr(text, 'r') ? BPF_DEVCG_ACC_READ : 0U) | (strchr(text, 'w') ? BPF_DEVCG_ACC_WRITE : 0U);
}

/* Rules share what they have in common; each allows what it says all the same, and nothing else. */
static void each_of_many_rules_is_granted(void **state)
{
	static const struct devcgroup_rule rules[] = {
		{'c', 195, 255, "rw", NULL}, {'c', 195, 0, "rw", NULL}, {'c', 238, 1, "rw", NULL},
		{'b', 195, 1, "rw", NULL},   {'c', 10, 183, "r", NULL}, {'c', 10, 184, "r", NULL},
		{'c', 10, 185, "w", NULL},   {'c', 7, 7, "rw", NULL},
	};
	static const unsigned majors[] = {7, 10, 195, 238}, minors[] = {0, 1, 7, 183, 184, 185, 255};
	struct bpf_insn denial[] = {SET(0, 0), EXIT};
	_cleanup_bpf_program_ struct bpf_program extended = {0};
	int fd = -1;

	(void)state;
	assert_int_equal(bpf_program_extend(&(struct bpf_program){denial, ARRAY_SIZE(denial)}, rules, ARRAY_SIZE(rules),
					    &extended),
			 0);
	for (size_t i = 0; i < ARRAY_SIZE(majors) * ARRAY_SIZE(minors) * 2 * 3; i++) {
		const struct bpf_cgroup_dev_ctx access = {
			.access_type =
				(__u32)(i % 3 + 1) << 17 | (i / 3 % 2 ? BPF_DEVCG_DEV_CHAR : BPF_DEVCG_DEV_BLOCK),
			.major = majors[i / 6 % ARRAY_SIZE(majors)],
			.minor = minors[i / 6 / ARRAY_SIZE(majors)],
		};
		bool granted = false;

		for (size_t j = 0; j < ARRAY_SIZE(rules); j++)
			granted |= rules[j].major == access.major && rules[j].minor == access.minor &&
				   (rules[j].type == 'c') == (i / 3 % 2 == 1) &&
				   !(access.access_type >> 16 & ~access_of(rules[j].access));
		assert_int_equal(bpf_program_evaluate(&extended, &access), granted ? BPF_ALLOWS : BPF_DENIES);
	}
	if (geteuid() != 0)
		return;
	assert_int_equal(bpf_program_load(&extended, &fd, &(struct err){0}), 0);
	close(fd);
}

/* What was put in front of a program is found again, whatever was put in front of that, and nothing else is. */
static void what_was_put_before_is_taken_away(void **state)
{
	static const struct devcgroup_rule first[] = {{'c', 195, 255, "rw", NULL}, {'c', 195, 0, "rw", NULL}},
					   second[] = {{'c', 10, 183, "rw", NULL}, {'b', 7, 5, "r", NULL}},
					   other[] = {{'c', 195, 255, "rw", NULL}};
	struct bpf_insn denial[] = {SET(0, 0), EXIT};
	const struct bpf_program program = {denial, ARRAY_SIZE(denial)};
	_cleanup_bpf_program_ struct bpf_program one = {0}, both = {0}, left = {0}, right = {0}, none = {0}, last = {0};

	(void)state;
	assert_int_equal(bpf_program_extend(&program, first, ARRAY_SIZE(first), &one), 0);
	assert_int_equal(bpf_program_extend(&one, second, ARRAY_SIZE(second), &both), 0);
	assert_int_equal(bpf_program_strip(&both, first, ARRAY_SIZE(first), &left), 1);
	assert_int_equal(bpf_program_allows(&left, &second[0]), BPF_ALLOWS);
	assert_int_equal(bpf_program_allows(&left, &second[1]), BPF_ALLOWS);
	assert_int_equal(bpf_program_allows(&left, &first[1]), BPF_DENIES);
	assert_int_equal(bpf_program_strip(&both, second, ARRAY_SIZE(second), &right), 1);
	assert_int_equal(right.count, one.count);
	assert_memory_equal(right.insns, one.insns, one.count * sizeof(*one.insns));
	assert_int_equal(bpf_program_strip(&right, first, ARRAY_SIZE(first), &last), 1);
	assert_int_equal(last.count, program.count);
	assert_memory_equal(last.insns, denial, sizeof(denial));
	assert_int_equal(bpf_program_strip(&both, other, ARRAY_SIZE(other), &none), 0);
	assert_int_equal(bpf_program_strip(&program, first, ARRAY_SIZE(first), &none), 0);
	assert_null(none.insns);
}

static void what_is_forbidden_is_denied(void **state)
{
	static const struct devcgroup_rule rule = {'c', 10, 183, "rw", NULL}, reading = {'c', 10, 183, "r", NULL},
					   another = {'c', 10, 184, "rw", NULL};
	struct bpf_insn consent[] = {SET(0, 1), EXIT};
	_cleanup_bpf_program_ struct bpf_program less = {0};

	(void)state;
	assert_int_equal(bpf_program_forbid(&(struct bpf_program){consent, ARRAY_SIZE(consent)}, &rule, 1, &less), 0);
	assert_int_equal(bpf_program_allows(&less, &rule), BPF_DENIES);
	assert_int_equal(bpf_program_allows(&less, &reading), BPF_DENIES);
	assert_int_equal(bpf_program_allows(&less, &another), BPF_ALLOWS);
}

static void the_verifier_is_quoted(void **state)
{
	struct bpf_insn insns[] = {EXIT};
	const struct bpf_program program = {insns, 1};
	struct err err = {0};
	int fd = -1;

	(void)state;
	if (geteuid() != 0)
		skip("needs root");
	assert_int_equal(bpf_program_load(&program, &fd, &err), CTR_GPU_E_NO_CGROUP);
	assert_int_equal(fd, -1);
	assert_non_null(strstr(err.text, "R0 !read_ok"));
}

/* ---- what we say of programs made at random, and what the kernel does by them ---- */

enum { PROGRAMS = 400, BODY = 14, FIRST = 6, SIZE = FIRST + BODY + 2 };

static unsigned random_below(unsigned limit)
{
	static uint64_t seed = 88172645463325252U;

	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % limit;
}

static const unsigned char operations[] = {BPF_ADD, BPF_SUB, BPF_AND, BPF_OR, BPF_XOR, BPF_LSH, BPF_RSH, BPF_MOV};
static const unsigned char comparisons[] = {BPF_JEQ, BPF_JNE, BPF_JGT, BPF_JGE, BPF_JLT, BPF_JLE, BPF_JSET};
static const int constants[] = {0, 1, 2, 3, 7, 10, 183, 0xffff, -1, -8};

static struct bpf_insn random_insn(unsigned left)
{
	static const unsigned char sizes[] = {BPF_W, BPF_H, BPF_B};
	struct bpf_insn insn = {0};
	unsigned source = random_below(2) ? BPF_X : BPF_K, kind = random_below(8);

	insn.dst_reg = random_below(6) & 0xf;
	if (insn.dst_reg == 1)
		insn.dst_reg = 0;
	insn.imm = source == BPF_K ? constants[random_below(ARRAY_SIZE(constants))] : 0;
	insn.src_reg = source == BPF_X ? (2 + random_below(4)) & 0xf : 0;
	if (kind == 0) {
		insn.code = (__u8)(BPF_LDX | BPF_MEM | sizes[random_below(3)]);
		insn.src_reg = 1;
		insn.off = (__s16)(4 * random_below(3));
		insn.imm = 0;
		return insn;
	}
	if (kind < 4 && left > 0) {
		insn.code = (__u8)((random_below(4) ? BPF_JMP : BPF_JMP32) |
				   comparisons[random_below(ARRAY_SIZE(comparisons))] | source);
		insn.off = (__s16)random_below(left);
		return insn;
	}
	insn.code = (__u8)((random_below(2) ? BPF_ALU : BPF_ALU64) | operations[random_below(ARRAY_SIZE(operations))] |
			   source);
	if (source == BPF_K && (BPF_OP(insn.code) == BPF_LSH || BPF_OP(insn.code) == BPF_RSH))
		insn.imm = (int)random_below(32);
	return insn;
}

static void random_program(struct bpf_insn insns[SIZE])
{
	const struct bpf_insn first[FIRST] = {
		SET(0, 1),
		{.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 1},
		{.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 3, .src_reg = 1, .off = 4},
		{.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 4, .src_reg = 1, .off = 8},
		SET(5, 3),
		{.code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = 2, .imm = 16},
	};
	const struct bpf_insn last[2] = {{.code = BPF_ALU64 | BPF_AND | BPF_K, .dst_reg = 0, .imm = 1}, EXIT};

	memcpy(insns, first, sizeof(first));
	for (unsigned i = 0; i < BODY; i++)
		insns[FIRST + i] = random_insn(BODY - i);
	memcpy(insns + FIRST + BODY, last, sizeof(last));
}

static void compare(const struct device_world *world, const struct bpf_program *program, unsigned seen[2])
{
	static const struct {
		struct bpf_cgroup_dev_ctx access;
		int flags;
	} questions[] = {
		{{READ, 10, 183}, O_RDONLY},
		{{READ | WRITE, 10, 183}, O_RDWR},
		{{READ, 1, 3}, O_RDONLY},
		{{WRITE, 1, 7}, O_WRONLY},
	};

	for (size_t i = 0; i < ARRAY_SIZE(questions); i++) {
		const struct bpf_cgroup_dev_ctx *access = &questions[i].access;
		bool forbidden =
			device_world_open(world, 'c', access->major, access->minor, questions[i].flags) == EPERM;
		enum bpf_decision verdict = bpf_program_evaluate(program, access);

		if (verdict != (forbidden ? BPF_DENIES : BPF_ALLOWS))
			fail_msg("kernel %s %x %u:%u, we say %d", forbidden ? "denies" : "allows", access->access_type,
				 access->major, access->minor, verdict);
		seen[forbidden]++;
	}
}

static void our_answer_is_the_kernels(void **state)
{
	struct device_world world;
	unsigned seen[2] = {0, 0}, taken = 0;

	(void)state;
	if (!device_world_possible(2))
		skip("needs root and cgroup version 2");
	for (unsigned i = 0; i < PROGRAMS; i++) {
		struct bpf_insn insns[SIZE];
		struct bpf_program program = {insns, SIZE};
		int fd = -1;

		random_program(insns);
		if (bpf_program_load(&program, &fd, NULL) != 0)
			continue;
		(void)close(fd);
		taken++;
		device_world_start(&world, 2, "");
		(void)close(device_world_attach(&world, insns, SIZE, BPF_F_ALLOW_MULTI));
		compare(&world, &program, seen);
		device_world_stop(&world);
	}
	/* Enough of each, or the comparison means nothing. */
	assert_true(taken > PROGRAMS / 4);
	assert_true(seen[0] > 50 && seen[1] > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(odd_programs_have_no_answer),   cmocka_unit_test(a_rule_is_granted_in_all_its_parts),
		cmocka_unit_test(each_of_many_rules_is_granted), cmocka_unit_test(the_verifier_is_quoted),
		cmocka_unit_test(our_answer_is_the_kernels),     cmocka_unit_test(what_was_put_before_is_taken_away),
		cmocka_unit_test(what_is_forbidden_is_denied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
