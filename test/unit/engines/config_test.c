/* SPDX-License-Identifier: Apache-2.0 */

/* What engines' configuration files say, in a root directory of the test's own. */

#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/json.h"
#include "engines/config.h"

static char root_path[64];

static int begin(void **state)
{
	(void)state;
	(void)snprintf(root_path, sizeof(root_path), "/tmp/config_test-XXXXXX");
	return mkdtemp(root_path) ? 0 : -1;
}

static int end(void **state)
{
	char command[128];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", root_path);
	return system(command);
}

static void put(const char *name, const char *text)
{
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", root_path, name);
	file = fopen(path, "we");
	assert_non_null(file);
	(void)fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* The files "a" and "b" of the root, as if @like read them. */
static void read_config(const struct engine *like, struct engine_config *ret)
{
	static const char *const files[] = {"/a", "/b", NULL};
	struct daemon daemon = DAEMON_NONE;
	struct engine engine = *like;
	struct rootfs root;

	engine.files = files;
	engine.user_files = NULL;
	engine.variable = NULL;
	engine_config_clear(ret);
	assert_int_equal(rootfs_open(AT_FDCWD, root_path, &root), 0);
	assert_int_equal(engine_config_read(&engine, &daemon, &root, ret), 0);
	rootfs_close(&root);
}

static void expect(const struct engine *like, const char *text, const char *runtime, const char *chosen, int cdi)
{
	_cleanup_engine_config_ struct engine_config config = {0};

	put("a", text);
	read_config(like, &config);
	assert_null(config.invalid);
	if (runtime)
		assert_string_equal(config.runtime, runtime);
	else
		assert_null(config.runtime);
	if (chosen)
		assert_string_equal(config.default_runtime, chosen);
	else
		assert_null(config.default_runtime);
	assert_int_equal(config.cdi, cdi);
}

static void nothing_is_said(void **state)
{
	_cleanup_engine_config_ struct engine_config config = {0};

	(void)state;
	read_config(&engine_docker, &config);
	assert_null(config.runtime);
	assert_int_equal(config.cdi, -1);
	expect(&engine_docker, "", NULL, NULL, -1);
	expect(&engine_docker, " \n", NULL, NULL, -1);
	expect(&engine_docker, "{}", NULL, NULL, -1);
	expect(&engine_podman, "", NULL, NULL, -1);
	expect(&engine_containerd, "# nothing\n", NULL, NULL, -1);
}

static void docker_s_file(void **state)
{
	(void)state;
	expect(&engine_docker,
	       "{\"runtimes\": {\"nvidia\": {\"path\": \"/r\"}}, \"default-runtime\": \"nvidia\", \"features\": "
	       "{\"cdi\": true}}",
	       "/r", "nvidia", 1);
	expect(&engine_docker, "{\"features\": {\"cdi\": false}}", NULL, NULL, 0);
	/* Of other types than dockerd's. */
	expect(&engine_docker, "{\"runtimes\": [], \"default-runtime\": {}, \"features\": {\"cdi\": \"yes\"}}", NULL,
	       NULL, -1);
	expect(&engine_docker, "{\"runtimes\": {\"nvidia\": 1}, \"features\": null}", NULL, NULL, -1);
}

static void containerd_s_sections(void **state)
{
	(void)state;
	expect(&engine_containerd,
	       "[plugins.cri]\nenable_cdi = false\n[plugins.cri.containerd.runtimes.nvidia.options]\nBinaryName = "
	       "'/r'\n",
	       "/r", NULL, 0);
	expect(&engine_containerd,
	       "[plugins.\"io.containerd.grpc.v1.cri\"]\nenable_cdi = "
	       "true\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\n"
	       "default_runtime_name = \"nvidia\"\nruntimes.nvidia.options = {BinaryName = \"/r\"}\n",
	       "/r", "nvidia", 1);
	expect(&engine_containerd, "version = 3\n[plugins.'io.containerd.cri.v1.runtime']\nenable_cdi = false # true\n",
	       NULL, NULL, 0);
	/* Not the CRI plugin's. */
	/* A section that is left from an older version hides no runtime of the other. */
	expect(&engine_containerd,
	       "version = 3\n[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]\nruntime_type = 'x'\n"
	       "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]\nBinaryName = '/new'\n",
	       "/new", NULL, -1);
	expect(&engine_containerd, "enable_cdi = true\n[containerd.runtimes.nvidia.options]\nBinaryName = \"/r\"\n",
	       NULL, NULL, -1);
}

static void comments_and_quotes(void **state)
{
	(void)state;
	expect(&engine_crio, "# [crio.runtime.runtimes.nvidia]\n# runtime_path = \"/r\"\n", NULL, NULL, -1);
	expect(&engine_crio, "[crio.runtime.runtimes.\"nvidia\"]\nruntime_path = \"/r\"\n", "/r", NULL, -1);
	expect(&engine_crio, "crio.runtime.default_runtime = \"nvidia\"\n", NULL, "nvidia", -1);
	expect(&engine_crio, "text = '''\n[crio.runtime.runtimes.nvidia]\nruntime_path = \"/r\"\n'''\n", NULL, NULL,
	       -1);
	/* Another's name. */
	expect(&engine_crio, "[crio.runtime.runtimes.nvidia-cdi]\nruntime_path = \"/r\"\n", NULL, NULL, -1);
}

static void podman_s_lists(void **state)
{
	(void)state;
	expect(&engine_podman,
	       "[engine.runtimes]\nnvidia = [\n\"/none/a\", # \"/b\"\n\"/proc/self/exe\", \"/none/c\"]\n",
	       "/proc/self/exe", NULL, -1);
	expect(&engine_podman, "[engine.runtimes]\nnvidia = [\"/none/a\", \"/none/b\"]\n", "/none/a", NULL, -1);
	expect(&engine_podman, "[engine.runtimes]\nnvidia = []\n", NULL, NULL, -1);
}

static void later_files_count_more(void **state)
{
	_cleanup_engine_config_ struct engine_config config = {0};

	(void)state;
	put("a", "[engine]\nruntime = \"crun\"\nhooks_dir = [\"/x\"]\n[engine.runtimes]\nnvidia = [\"/none/a\"]\n");
	read_config(&engine_podman, &config);
	assert_int_equal(config.hook_directories.count, 1);
	assert_string_equal(config.hook_directories.items[0], "/x");
	put("b", "[engine]\nruntime = \"nvidia\"\nhooks_dir = [\"/y\", \"/z\"]\n");
	read_config(&engine_podman, &config);
	assert_string_equal(config.default_runtime, "nvidia");
	assert_string_equal(config.runtime, "/none/a");
	assert_int_equal(config.hook_directories.count, 2);
	put("b", "[engine]\n");
	put("a", "[engine]\n");
	read_config(&engine_podman, &config);
	assert_string_equal(config.hook_directories.items[0], engine_podman.hook_directories[0]);
}

static void put_hooks(const char *name, const char *directory)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "[engine]\nhooks_dir = [\"%s\"]\n", directory);
	put(name, text);
}

/* A Podman of no known version that reads other files: these, in the root of the test, and none of a user's. */
static struct engine podman_with(const char *const *names)
{
	static const char *const packages[] = {"ctr-gpu-none", NULL};
	static const char *patterns[8];
	static char paths[ARRAY_SIZE(patterns) - 1][128];
	struct engine engine = engine_podman;
	size_t count = 0;

	for (; names[count]; count++) {
		(void)snprintf(paths[count], sizeof(paths[count]), "%s/%s", root_path, names[count]);
		patterns[count] = paths[count];
	}
	patterns[count] = NULL;
	engine.packages = packages;
	engine.files = patterns;
	engine.rootless_files = NULL;
	engine.merged_files = NULL;
	engine.user_files = NULL;
	engine.variable = NULL;
	return engine;
}

/* Has it one: that of a package which every machine has. Return: ENGINE_VERSION(); 0 where that is not known. */
static long give_version(struct engine *engine)
{
	static const char *const packages[] = {"bash", "glibc", NULL};
	_cleanup_free_ char *version = NULL;

	engine->packages = packages;
	version = engine_version(engine, false);
	return engine_version_number(version);
}

static void read_as(const struct engine *engine, struct engine_config *ret)
{
	struct daemon daemon = DAEMON_NONE;
	struct rootfs root;

	assert_int_equal(rootfs_open(AT_FDCWD, "/", &root), 0);
	assert_int_equal(engine_config_read(engine, &daemon, &root, ret), 0);
	rootfs_close(&root);
}

/* @directories: those of hooks, in their order, with a space between them */
static void expect_hooks(const struct engine *engine, const char *directories)
{
	_cleanup_engine_config_ struct engine_config config = {0};
	_cleanup_free_ char *found = NULL;

	read_as(engine, &config);
	assert_int_equal(strv_join(&config.hook_directories, " ", &found), 0);
	assert_string_equal(found, directories);
}

/* Where Podman finds hooks by the files in "usr" and "etc" of the root, since its version 6. */
static void expect_merged(const char *directory)
{
	const char *const names[] = {
		"usr/c.conf",
		"usr/c.conf.d/*.conf",
		"etc/c.conf",
		"etc/c.conf.d/*.conf",
		geteuid() == 0 ? "etc/c.rootless.conf.d/*.conf" : "etc/c.rootful.conf.d/*.conf",
		geteuid() == 0 ? "etc/c.rootful.conf.d/*.conf" : "etc/c.rootless.conf.d/*.conf",
		"etc/$UID.conf.d/*.conf",
		NULL,
	};
	struct engine engine = podman_with(names);

	engine.merged_files = engine.files;
	engine.merges = 0;
	expect_hooks(&engine, directory);
}

/* As Podman 6.1 itself was seen to do. */
static void one_file_counts_and_parts_by_their_names(void **state)
{
	char name[64], command[256];

	(void)state;
	(void)snprintf(
		command, sizeof(command),
		"cd %s && mkdir -p usr/c.conf.d etc/c.conf.d etc/c.rootful.conf.d etc/c.rootless.conf.d etc/%u.conf.d",
		root_path, geteuid());
	assert_int_equal(system(command), 0);
	expect_merged(engine_podman.hook_directories[0]);
	put_hooks("usr/c.conf", "/usr");
	expect_merged("/usr");
	put("etc/c.conf", "[engine]\n");
	expect_merged(engine_podman.hook_directories[0]);
	put_hooks("usr/c.conf.d/60.conf", "/usr-part");
	put_hooks("etc/c.conf", "/etc");
	expect_merged("/usr-part");
	put_hooks("etc/c.conf.d/50.conf", "/etc-part");
	expect_merged("/usr-part");
	put_hooks("etc/c.conf.d/60.conf", "/etc-part");
	expect_merged("/etc-part");
	put_hooks("usr/c.conf.d/60.conf", "/usr-part");
	expect_merged("/etc-part");
	put_hooks(geteuid() == 0 ? "etc/c.rootless.conf.d/70.conf" : "etc/c.rootful.conf.d/70.conf", "/others");
	expect_merged("/etc-part");
	put_hooks(geteuid() == 0 ? "etc/c.rootful.conf.d/70.conf" : "etc/c.rootless.conf.d/70.conf", "/own");
	expect_merged("/own");
	(void)snprintf(name, sizeof(name), "etc/%u.conf.d/80.conf", geteuid());
	put_hooks(name, "/user");
	expect_merged("/user");
	/* Names that merely begin alike hide nothing. */
	put_hooks("usr/c.conf.d/90b.conf", "/usr-part");
	put_hooks("etc/c.conf.d/90a.conf", "/etc-part");
	expect_merged("/usr-part");
}

/* One file that counts, or one after the other. */
static void from_which_version_files_are_merged(void **state)
{
	struct engine engine = podman_with((const char *const[]){"a", "b", NULL});
	const char *const last[] = {engine.files[1], NULL};

	(void)state;
	put_hooks("a", "/a");
	put("b", "");
	expect_hooks(&engine, "/a");
	engine.merged_files = last;
	engine.merges = give_version(&engine);
	expect_hooks(&engine, engine_podman.hook_directories[0]);
	engine.merges++;
	expect_hooks(&engine, "/a");
}

/* The caller's files count more, if the engine reads them. */
static void files_of_the_caller(void **state)
{
	static const char *const user_files[] = {"c.conf", "c.conf.d/*.conf", NULL};
	struct engine engine = podman_with((const char *const[]){"a", "b.conf.d/*.conf", NULL});
	const char *own = geteuid() == 0 ? "/a" : "/user";
	char home[128], command[256];

	(void)state;
	(void)snprintf(home, sizeof(home), "%s/home.d", root_path);
	(void)snprintf(command, sizeof(command), "cd %s && mkdir -p b.conf.d home.d/c.conf.d", root_path);
	assert_int_equal(system(command), 0);
	put_hooks("a", "/a");
	put_hooks("home.d/c.conf", "/user");
	assert_int_equal(setenv("XDG_CONFIG_HOME", home, 1), 0);
	expect_hooks(&engine, "/a");
	engine.user_files = user_files;
	expect_hooks(&engine, "/user");
	put_hooks("home.d/c.conf.d/50.conf", "/user-part");
	expect_hooks(&engine, "/user-part");
	put_hooks("b.conf.d/60.conf", "/part");
	expect_hooks(&engine, "/user-part");
	engine.merged_files = engine.files;
	engine.merges = 0;
	expect_hooks(&engine, "/part");
	put("b.conf.d/60.conf", "");
	put("home.d/c.conf.d/50.conf", "");
	expect_hooks(&engine, "/user");
	/* Root's since a version. */
	engine.merges = give_version(&engine) + 1;
	engine.root_has_user_files = engine.merges - 1;
	expect_hooks(&engine, "/user");
	engine.root_has_user_files++;
	if (engine.merges > 1)
		expect_hooks(&engine, own);
	assert_int_equal(unsetenv("XDG_CONFIG_HOME"), 0);
}

/* Root reads no file of another user that the environment names, and says so. */
static void a_file_of_another_user(void **state)
{
	static const char *const user_files[] = {"c.conf", NULL};
	_cleanup_engine_config_ struct engine_config config = {0};
	struct engine engine = podman_with((const char *const[]){"a", NULL});
	char home[128], path[160];

	(void)state;
	if (geteuid() != 0)
		skip("without root");
	(void)snprintf(home, sizeof(home), "%s/theirs", root_path);
	(void)snprintf(path, sizeof(path), "%s/c.conf", home);
	assert_int_equal(mkdir(home, 0755), 0);
	put_hooks("a", "/a");
	put_hooks("theirs/c.conf", "/theirs");
	assert_int_equal(chown(home, 65534, 65534), 0);
	assert_int_equal(setenv("XDG_CONFIG_HOME", home, 1), 0);
	engine.user_files = user_files;
	read_as(&engine, &config);
	assert_non_null(config.unread);
	assert_string_equal(config.hook_directories.items[0], "/a");
	/* The usual ones may belong to anyone, as the engine reads them all the same. */
	engine.files = (const char *const[]){path, NULL};
	engine.user_files = NULL;
	expect_hooks(&engine, "/theirs");
	engine.merged_files = engine.files;
	engine.merges = 0;
	engine.files = user_files;
	expect_hooks(&engine, "/theirs");
	assert_int_equal(unsetenv("XDG_CONFIG_HOME"), 0);
}

/* As expect_hooks(), for a user who is not root. */
static void expect_rootless(const struct engine *engine, const char *directories)
{
	uid_t caller = geteuid();

	assert_int_equal(seteuid(caller == 0 ? 65534 : caller), 0);
	expect_hooks(engine, directories);
	assert_int_equal(seteuid(caller), 0);
}

/* As Podman 5.8.6 itself; 5.4.2 has none of them. */
static void files_of_all_rootless_users(void **state)
{
	struct engine engine = podman_with((const char *const[]){"a", "c.rootless.conf", "$UID.rootless.d/*", NULL});
	const char *const *patterns = engine.files, *files[] = {patterns[0], NULL};
	unsigned uid = geteuid() == 0 ? 65534 : geteuid();
	char command[256], name[64];

	(void)state;
	put_hooks("a", "/a");
	(void)snprintf(command, sizeof(command), "cd %s && chmod 755 . && mkdir %u.rootless.d", root_path, uid);
	assert_int_equal(system(command), 0);
	engine.files = files;
	engine.rootless_files = patterns + 1;
	expect_rootless(&engine, "/a");
	put_hooks("c.rootless.conf", "/rootless");
	expect_rootless(&engine, "/rootless");
	(void)snprintf(name, sizeof(name), "%u.rootless.d/50.conf", uid);
	put_hooks(name, "/own");
	expect_rootless(&engine, "/own");
	if (geteuid() == 0)
		expect_hooks(&engine, "/a");
	engine.has_rootless_files = give_version(&engine);
	engine.merged_files = files;
	engine.merges = engine.has_rootless_files + 1;
	expect_rootless(&engine, "/own");
	engine.merges = engine.has_rootless_files;
	expect_rootless(&engine, "/a");
	engine.merges = ++engine.has_rootless_files;
	if (engine.merges > 1)
		expect_rootless(&engine, "/a");
}

/* Podman starts with no other file where there is one that it cannot read. */
static void the_file_that_counts_cannot_be_read(void **state)
{
	_cleanup_engine_config_ struct engine_config config = {0};
	struct engine engine = podman_with((const char *const[]){"a", "loop", "a/below", NULL});
	char path[128];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/loop", root_path);
	put_hooks("a", "/a");
	assert_int_equal(symlink("loop", path), 0);
	engine.merged_files = engine.files;
	engine.merges = 0;
	read_as(&engine, &config);
	assert_non_null(config.unread);
	assert_string_equal(config.hook_directories.items[0], engine_podman.hook_directories[0]);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("none", path), 0);
	expect_hooks(&engine, "/a");
	assert_int_equal(unlink(path), 0);
}

/* As Podman itself: "*" in the pattern stands for a dot, too, and a directory hides no file. */
static void what_a_pattern_matches(void **state)
{
	struct engine engine = podman_with((const char *const[]){"a.conf.d/*.conf", "b.conf.d/*", NULL});
	char command[128];

	(void)state;
	(void)snprintf(command, sizeof(command), "cd %s && mkdir -p a.conf.d b.conf.d/50.conf", root_path);
	assert_int_equal(system(command), 0);
	engine.merged_files = engine.files;
	engine.merges = 0;
	expect_hooks(&engine, engine_podman.hook_directories[0]);
	put_hooks("a.conf.d/.40.conf", "/40");
	expect_hooks(&engine, "/40");
	put_hooks("a.conf.d/50.conf", "/50");
	expect_hooks(&engine, "/50");
	put_hooks("a.conf.d/60.conf~", "/60");
	expect_hooks(&engine, "/50");
}

/* As Podman itself, seen with 5.4.2 and 6.1.1. */
static void lists_that_are_appended(void **state)
{
	_cleanup_engine_config_ struct engine_config config = {0};
	struct engine engine = podman_with((const char *const[]){"a", "b", NULL});
	_cleanup_free_ char *directories = NULL;

	(void)state;
	put("b", "");
	put("a", "[engine]\nhooks_dir = [{append=true}, \"/x\"]\ncdi_spec_dirs = [\"/c\", {append=true}]\n");
	expect_hooks(&engine, ENGINE_HOOKS_USR " /x");
	read_as(&engine, &config);
	assert_int_equal(strv_join(&config.cdi_directories, " ", &directories), 0);
	assert_string_equal(directories, "/etc/cdi /var/run/cdi /c");
	put_hooks("b", "/y");
	expect_hooks(&engine, ENGINE_HOOKS_USR " /x /y");
	put("b", "[engine]\nhooks_dir = [\"/y\", {append=false}]\n");
	expect_hooks(&engine, "/y");
	put("b", "[engine]\nhooks_dir = [{append=true}, \"/y\", {append=false}]\n");
	expect_hooks(&engine, "/y");
	put("b", "[engine]\nhooks_dir = [{append=true}]\n");
	expect_hooks(&engine, ENGINE_HOOKS_USR " /x");
	put("a", "");
	put("b", "[engine]\nhooks_dir = []\n");
	expect_hooks(&engine, "");
}

/* Podman before 5.5, seen with 5.4.2, knows the key and does not look at it. */
static void directories_of_cdi(void **state)
{
	_cleanup_engine_config_ struct engine_config config = {0};
	struct engine engine = podman_with((const char *const[]){"a", NULL});

	(void)state;
	put("a", "[engine]\ncdi_spec_dirs = [\"/c\"]\n");
	read_as(&engine, &config);
	assert_int_equal(config.cdi_directories.count, 1);
	engine.has_cdi_dirs = give_version(&engine);
	engine_config_clear(&config);
	read_as(&engine, &config);
	assert_int_equal(config.cdi_directories.count, 1);
	if (engine.has_cdi_dirs++ == 0)
		return;
	engine_config_clear(&config);
	read_as(&engine, &config);
	assert_int_equal(config.cdi_directories.count, 0);
}

static void expect_later(const struct engine *engine, const char *other, bool later)
{
	char path[128], other_path[128];
	struct daemon daemon = DAEMON_NONE;

	(void)snprintf(path, sizeof(path), "%s/second.conf.d/50.conf", root_path);
	(void)snprintf(other_path, sizeof(other_path), "%s/%s", root_path, other);
	put(other, "");
	assert_int_equal(engine_config_reads_later(engine, &daemon, other_path, path), later);
	assert_int_equal(unlink(other_path), 0);
}

/* Later than second.conf.d/50.conf, which is there or is not. */
static void files_that_are_read_later(void **state)
{
	static const struct {
		const char *name;
		bool later, merged;
	} cases[] = {
		{"first.conf.d/40.conf", false, false}, {"first.conf.d/50.conf", false, false},
		{"first.conf.d/60.conf", false, true},  {"second.conf.d/40.conf", false, false},
		{"second.conf.d/60.conf", true, true},  {"third.conf", true, false},
		{"third.conf.d/40.conf", true, false},  {"third.conf.d/60.conf", true, true},
		{"none.conf.d/60.conf", false, false},
	};
	struct engine engine = podman_with((const char *const[]){"first.conf.d/*.conf", "second.conf.d/*.conf",
								 "third.conf", "third.conf.d/*.conf", NULL});
	const char *const *patterns = engine.files;
	char command[128];

	(void)state;
	(void)snprintf(command, sizeof(command), "cd %s && mkdir first.conf.d second.conf.d third.conf.d none.conf.d",
		       root_path);
	assert_int_equal(system(command), 0);
	engine.merges = 0;
	for (size_t there = 0; there < 2; there++) {
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			engine.merged_files = NULL;
			expect_later(&engine, cases[i].name, cases[i].later);
			engine.merged_files = patterns;
			expect_later(&engine, cases[i].name, cases[i].merged);
		}
		put("second.conf.d/50.conf", "");
	}
	/* It does not read that file at all. */
	engine.files = patterns + 2;
	engine.merged_files = NULL;
	expect_later(&engine, "third.conf.d/60.conf", false);
}

static void a_variable_names_the_only_file(void **state)
{
	static const char variable[] = "CTR_GPU_TEST_CONF";
	struct engine engine = podman_with((const char *const[]){"a", NULL});
	char path[128];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/told", root_path);
	put_hooks("a", "/usual");
	put_hooks("told", "/told");
	engine.variable = variable;
	(void)unsetenv(variable);
	expect_hooks(&engine, "/usual");
	assert_int_equal(setenv(variable, path, 1), 0);
	expect_hooks(&engine, "/told");
	assert_int_equal(setenv(variable, "", 1), 0);
	expect_hooks(&engine, "/usual");
	assert_int_equal(unsetenv(variable), 0);
}

/* A file that the engine would refuse says nothing else, and says so without its contents. */
static void files_that_are_not_valid(void **state)
{
	static const struct {
		const struct engine *engine;
		const char *text, *reason;
	} cases[] = {
		{&engine_docker, "{\"a\": SECRET}", "/a:1:"},
		{&engine_docker, "[]", "/a:1:1: an object is expected"},
		{&engine_docker, "{\"a\": 1, \"a\": 2}", "/a:1:12: "},
		{&engine_podman, "[engine\nSECRET", "/a:1:"},
		{&engine_crio, "a = 1\nb = \"\n", "/a:2:"},
	};
	_cleanup_engine_config_ struct engine_config config = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		put("a", cases[i].text);
		put("b", "");
		read_config(cases[i].engine, &config);
		assert_non_null(config.invalid);
		assert_int_equal(strncmp(config.invalid, cases[i].reason, strlen(cases[i].reason)), 0);
		assert_null(strstr(config.invalid, "SECRET"));
		assert_null(config.runtime);
	}
}

/* What is no regular file, or leads out of the root, is not read, and nothing waits for it. */
static void what_is_no_file(void **state)
{
	_cleanup_engine_config_ struct engine_config config = {0};
	char path[128];

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/a", root_path);
	(void)unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	read_config(&engine_docker, &config);
	assert_null(config.invalid);
	(void)unlink(path);
	assert_int_equal(symlink("../../../../etc/passwd", path), 0);
	read_config(&engine_docker, &config);
	assert_null(config.invalid);
	(void)unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_said),
		cmocka_unit_test(docker_s_file),
		cmocka_unit_test(containerd_s_sections),
		cmocka_unit_test(comments_and_quotes),
		cmocka_unit_test(podman_s_lists),
		cmocka_unit_test(later_files_count_more),
		cmocka_unit_test(files_that_are_not_valid),
		cmocka_unit_test(what_is_no_file),
		cmocka_unit_test(one_file_counts_and_parts_by_their_names),
		cmocka_unit_test(from_which_version_files_are_merged),
		cmocka_unit_test(files_of_the_caller),
		cmocka_unit_test(a_file_of_another_user),
		cmocka_unit_test(files_of_all_rootless_users),
		cmocka_unit_test(the_file_that_counts_cannot_be_read),
		cmocka_unit_test(what_a_pattern_matches),
		cmocka_unit_test(lists_that_are_appended),
		cmocka_unit_test(directories_of_cdi),
		cmocka_unit_test(files_that_are_read_later),
		cmocka_unit_test(a_variable_names_the_only_file),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
