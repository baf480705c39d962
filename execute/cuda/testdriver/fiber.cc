#include "fiber.h"

#include <cstdint>

// Saves the registers that a call must preserve on the present stack, keeps its pointer in
// *from and goes on where `to` was left. No system call, so a switch costs nanoseconds
// where swapcontext, which sets the signal mask, costs half a microsecond.
extern "C" void dahl_switch(void** from, void* to);

#if defined(__x86_64__)
asm(R"(
.text
.type dahl_switch,@function
dahl_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.type dahl_begin,@function
dahl_begin:
  movq %r12, %rdi
  callq *%rbx
  ud2
)");
extern "C" void dahl_begin();

static void* prepare(char* top, void (*body)(void*), void* argument) {
  void** sp = reinterpret_cast<void**>(top);
  *--sp = nullptr;
  *--sp = nullptr;  // the stack is aligned to 16 at the call in dahl_begin
  *--sp = reinterpret_cast<void*>(dahl_begin);
  *--sp = nullptr;                         // rbp
  *--sp = reinterpret_cast<void*>(body);   // rbx
  *--sp = argument;                        // r12
  for (int i = 0; i < 3; i++) *--sp = nullptr;
  return sp;
}
#elif defined(__aarch64__)
asm(R"(
.text
.type dahl_switch,@function
dahl_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.type dahl_begin,@function
dahl_begin:
  mov x0, x20
  blr x19
  brk #1
)");
extern "C" void dahl_begin();

static void* prepare(char* top, void (*body)(void*), void* argument) {
  void** sp = reinterpret_cast<void**>(top) - 20;
  for (int i = 0; i < 20; i++) sp[i] = nullptr;
  sp[0] = reinterpret_cast<void*>(body);         // x19
  sp[1] = argument;                              // x20
  sp[11] = reinterpret_cast<void*>(dahl_begin);  // x30
  return sp;
}
#else
#error "fibers are written for x86-64 and arm64"
#endif

namespace host {

void Fiber::start(char* stack, size_t bytes, void (*body)(void*), void* argument) {
  const uintptr_t top = (reinterpret_cast<uintptr_t>(stack) + bytes) & ~uintptr_t(15);
  inside_ = prepare(reinterpret_cast<char*>(top), body, argument);
}

void Fiber::enter() { dahl_switch(&outside_, inside_); }
void Fiber::leave() { dahl_switch(&inside_, outside_); }

}  // namespace host
