// The functions of the CUDA driver API as jumps through a table; see make.sh.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

enum { success = 0, not_initialized = 3, no_device = 100, not_supported = 801, no_library_found = -1 };

// What the table holds before the library is loaded, where there is none, and for what
// an older library lacks. Arguments are the caller's affair, so these take none.
static int before_start(void) { return not_initialized; }
static int no_library(void) { return no_device; }
static int no_function(void) { return not_supported; }

// gorgonia.org/cu calls cuInit when the program starts and ends the process if that fails;
// a program that may not want the GPU at all must go on.
static int no_init(void) { return success; }

#define FUNCTION(name) #name,
static const char *const names[] = {
#include "symbols.inc"
};
#undef FUNCTION

enum { functions = sizeof names / sizeof *names };

__attribute__((visibility("hidden"))) void *dahl_cuda_table[functions];

__attribute__((constructor)) static void fill(void) {
	for (int i = 0; i < functions; i++)
		dahl_cuda_table[i] = strcmp(names[i], "cuInit") == 0 ? (void *)no_init : (void *)before_start;
}

// dahl_cuda_start loads the driver library and initialises it; the result is cuInit's, or
// -1 where there is no library. Not for several threads at once.
int dahl_cuda_start(void) {
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		for (int i = 0; i < functions; i++)
			dahl_cuda_table[i] = (void *)no_library;
		return no_library_found;
	}
	for (int i = 0; i < functions; i++) {
		void *found = dlsym(library, names[i]);
		dahl_cuda_table[i] = found ? found : (void *)no_function;
	}
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
	return init ? init(0) : not_supported;
}

#if defined(__x86_64__)
#define JUMP "jmp *dahl_cuda_table+8*dahl_cuda_index(%rip)\n"
#elif defined(__aarch64__)
#define JUMP                                      \
	"adrp x16, dahl_cuda_table+8*dahl_cuda_index\n" \
	"ldr x16, [x16, :lo12:dahl_cuda_table+8*dahl_cuda_index]\n" \
	"br x16\n"
#else
#error "jumps are written for x86-64 and arm64"
#endif

#define FUNCTION(name)                                                        \
	__asm__(".globl " #name "\n.type " #name ",@function\n" #name ":\n" JUMP \
	        ".size " #name ", .-" #name "\n.set dahl_cuda_index, dahl_cuda_index+1\n");
__asm__(".text\n.set dahl_cuda_index, 0\n");
#include "symbols.inc"
