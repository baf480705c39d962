#include "block.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "checker.h"
#include "fiber.h"

namespace host {

Index thread_index, block_index, block_extent, grid_extent;

namespace {

constexpr int max_threads = 1024, warp = 32;
constexpr size_t stack_bytes = 64 << 10, guard_bytes = 4 << 10;
constexpr size_t max_static = 48 << 10;    // of __shared__ arrays: ptxas allows no more
constexpr size_t max_dynamic = 227 << 10;  // of sm_90, the largest

enum class State { ready, at_barrier, at_warp, ended };

// Copy is an asynchronous copy that has not taken place yet.
struct Copy {
  void* to;
  const void* from;
  int bytes, valid, group;
};

struct Thread {
  Fiber fiber;
  Index index;
  State state;
  std::vector<Copy> copies;
  int groups;  // closed by copy_commit
};

// Warp is the meeting point of 32 threads. Values alternate between two slots: a lane that
// hands in to one of them has read the other.
struct Warp {
  int arrived, turn;
  size_t bytes;
  alignas(16) char slot[2][warp * 32];
};

struct SharedArray {
  const void* key;
  size_t offset;
};

Thread threads[max_threads];
Warp warps[max_threads / warp];
int count, live, at_barrier, current;
const Grid* grid;
std::string failure;
char* stacks;
char* static_area;
char* dynamic_area;
std::vector<SharedArray> arrays;
size_t static_used;

char* reserve(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) abort();
  return static_cast<char*>(p);
}

// pause leaves the running thread until its state is ready again.
void pause(State why) {
  threads[current].state = why;
  threads[current].fiber.leave();
}

void body(void*) {
  grid->entry->body(grid->params);
  live--;
  pause(State::ended);
}

void start_block() {
  checker::release(static_area, static_used);
  arrays.clear();
  static_used = 0;
  memset(dynamic_area, 0xff, grid->dynamic_bytes);
  at_barrier = 0;
  live = count;
  for (int w = 0; w < (count + warp - 1) / warp; w++) warps[w].arrived = warps[w].turn = 0;
  for (int i = 0; i < count; i++) {
    Thread& t = threads[i];
    t.state = State::ready;
    t.groups = 0;
    t.copies.clear();
    char* stack = stacks + i * (stack_bytes + guard_bytes) + guard_bytes;
    t.fiber.start(stack, stack_bytes, body, nullptr);
  }
  checker::begin_block();
}

void resume(int i) {
  current = i;
  thread_index = threads[i].index;
  checker::set_thread(i);
  threads[i].fiber.enter();
}

std::string stuck() {
  int waiting = 0;
  for (int i = 0; i < count; i++) waiting += threads[i].state == State::at_warp;
  char text[160];
  snprintf(text, sizeof text, "%d threads wait at a barrier and %d for their warp, which the %d that have ended never reach",
           at_barrier, waiting, count - live);
  return text;
}

void run_block() {
  start_block();
  while (live > 0 && failure.empty()) {
    bool went_on = false;
    for (int k = 0; k < count && failure.empty(); k++) {
      const int i = grid->backward ? count - 1 - k : k;
      if (threads[i].state != State::ready) continue;
      went_on = true;
      resume(i);
    }
    if (!went_on) failure = stuck();
  }
  for (int i = 0; i < count; i++)  // copies that nobody waited for
    for (const Copy& c : threads[i].copies) checker::settle(c.to, c.bytes);
}

// meet hands in a value and returns when all lanes of the warp have: the place where they
// are. With no bytes it only meets.
const char* meet(const void* mine, size_t bytes) {
  if (count % warp != 0) fail("threads of a warp meet in a block that is no multiple of 32");
  if (bytes > sizeof(Warp::slot[0]) / warp) fail("too many bytes exchanged in a warp");
  const int w = current / warp;
  Warp& meeting = warps[w];
  char* slot = meeting.slot[meeting.turn];
  if (meeting.arrived > 0 && meeting.bytes != bytes) fail("lanes of a warp meet at different calls");
  meeting.bytes = bytes;
  memcpy(slot + (current % warp) * bytes, mine, bytes);
  if (++meeting.arrived < warp) {
    pause(State::at_warp);
    return slot;
  }
  meeting.arrived = 0;
  meeting.turn ^= 1;
  for (int i = w * warp; i < (w + 1) * warp; i++) threads[i].state = State::ready;
  return slot;
}

}  // namespace

void fail(std::string reason) {
  failure = std::move(reason);
  threads[current].fiber.leave();
  abort();  // a failed grid is not entered again
}

void prepare() {
  constexpr size_t each = stack_bytes + guard_bytes;
  stacks = reserve(each * max_threads);
  for (int i = 0; i < max_threads; i++) mprotect(stacks + i * each, guard_bytes, PROT_NONE);
  static_area = reserve(max_static);
  dynamic_area = reserve(max_dynamic);
  checker::watch(static_area, max_static, "shared memory", true);
  checker::watch(dynamic_area, max_dynamic, "dynamic shared memory", true);
}

std::string run(const Grid& g) {
  grid = &g;
  count = g.threads.x * g.threads.y * g.threads.z;
  if (count < 1 || count > max_threads || g.dynamic_bytes > max_dynamic) return "the block is empty or too large";
  for (int i = 0; i < count; i++)
    threads[i].index = {i % g.threads.x, i / g.threads.x % g.threads.y, i / (g.threads.x * g.threads.y)};
  block_extent = g.threads;
  grid_extent = g.blocks;
  failure.clear();
  checker::allocate(dynamic_area, g.dynamic_bytes);
  for (unsigned z = 0; z < g.blocks.z && failure.empty(); z++)
    for (unsigned y = 0; y < g.blocks.y && failure.empty(); y++)
      for (unsigned x = 0; x < g.blocks.x && failure.empty(); x++) {
        block_index = {x, y, z};
        run_block();
      }
  checker::release(dynamic_area, g.dynamic_bytes);
  checker::release(static_area, static_used);
  if (!failure.empty()) failure = std::string(g.entry->name) + ": " + failure;
  return failure;
}

void sync() {
  if (++at_barrier < count) return pause(State::at_barrier);
  at_barrier = 0;
  checker::barrier();
  for (int i = 0; i < count; i++) threads[i].state = State::ready;
}

void sync_warp() {
  const Warp& meeting = warps[current / warp];
  const int turn = meeting.turn;
  const bool last = meeting.arrived == warp - 1;
  meet(nullptr, 0);
  if (last && meeting.turn != turn) checker::barrier_warp(current / warp);
}

int lane() { return current % warp; }

void* shared(const void* key, size_t bytes) {
  for (const SharedArray& a : arrays)
    if (a.key == key) return static_area + a.offset;
  const size_t offset = static_used, end = (offset + bytes + 15) & ~size_t(15);
  if (end > max_static) fail("more than 48 KiB of shared arrays");
  checker::allocate(static_area + offset, end - offset);
  memset(static_area + offset, 0xff, bytes);
  arrays.push_back({key, offset});
  static_used = end;
  return static_area + offset;
}

void* dynamic_shared() { return dynamic_area; }

const void* exchange(const void* mine, size_t bytes) { return meet(mine, bytes); }

void copy_async(void* to, const void* from, int bytes, int valid) {
  if ((reinterpret_cast<uintptr_t>(to) | (valid ? reinterpret_cast<uintptr_t>(from) : 0)) % bytes)
    fail("copy_async of an address that is not aligned");
  checker::promise(to, bytes);
  if (valid) checker::read(from, valid);
  threads[current].copies.push_back({to, from, bytes, valid, threads[current].groups});
}

void copy_commit() { threads[current].groups++; }

void copy_wait(int groups) {
  Thread& t = threads[current];
  size_t kept = 0;
  for (const Copy& c : t.copies) {
    if (c.group >= t.groups - groups) {
      t.copies[kept++] = c;
      continue;
    }
    memcpy(c.to, c.from, c.valid);
    memset(static_cast<char*>(c.to) + c.valid, 0, c.bytes - c.valid);
    checker::settle(c.to, c.bytes);
  }
  t.copies.resize(kept);
}

static const Entry* first;

Entry::Entry(const char* name, int sm, size_t params, void (*body)(const void*))
    : name(name), sm(sm), params(params), body(body), next(first) {
  first = this;
}

const Entry* find(const std::string& name, int sm) {
  for (const Entry* e = first; e; e = e->next)
    if (e->sm == sm && name == e->name) return e;
  return nullptr;
}

}  // namespace host
