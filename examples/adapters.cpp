// SPDX-License-Identifier: Apache-2.0

// The GPUs of this host as C++ sees them: handles that release themselves, and results as exceptions.
//
//	c++ -std=c++17 -o adapters adapters.cpp $(pkg-config --cflags --libs ctr-gpu)

#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

#include <ctr-gpu.h>

template <auto release> struct releaser {
	template <typename T> void operator()(T *object) const { release(object); }
};
using context_ptr = std::unique_ptr<ctr_gpu_context, releaser<ctr_gpu_context_unref>>;
using host_ptr = std::unique_ptr<ctr_gpu_host, releaser<ctr_gpu_host_unref>>;

static void check(const context_ptr &context, int result)
{
	if (result)
		throw std::runtime_error(std::string(ctr_gpu_error_name(result)) + ": " + ctr_gpu_context_message(context.get()));
}

static context_ptr new_context()
{
	ctr_gpu_context *context = nullptr;

	if (ctr_gpu_context_new(&context) < 0)
		throw std::bad_alloc();
	return context_ptr(context);
}

static host_ptr look_at_host(const context_ptr &context)
{
	ctr_gpu_host *host = nullptr;

	check(context, ctr_gpu_context_load_config(context.get(), nullptr));
	check(context, ctr_gpu_host_new(context.get(), &host));
	return host_ptr(host);
}

int main()
try {
	const context_ptr context = new_context();
	const host_ptr host = look_at_host(context);

	for (std::size_t i = 0; i < ctr_gpu_host_adapter_count(host.get()); i++) {
		ctr_gpu_adapter adapter;

		check(context, ctr_gpu_host_adapter(host.get(), i, &adapter));
		std::cout << adapter.vendor << ' ' << (adapter.name ? adapter.name : "(no name)")
			  << (adapter.unusable == 0 ? "" : " (cannot be used)") << '\n';
	}
	return EXIT_SUCCESS;
} catch (const std::exception &error) {
	std::cerr << "adapters: " << error.what() << '\n';
	return EXIT_FAILURE;
}
