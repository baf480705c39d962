#include "checker.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <unordered_map>

#include "block.h"

namespace checker {
namespace {

// Mark is an access: the operation, when within it, and the thread.
struct __attribute__((packed)) Mark {
  uint32_t operation;  // 0: none so far; see several
  uint32_t time;       // of the counter `now`
  uint16_t thread;     // in its block; see in_warp and anyone
};

constexpr uint16_t in_warp = 0x8000;  // several threads of warp thread-in_warp
constexpr uint16_t anyone = 0xffff;   // several threads
constexpr uint32_t pending = ~0u;     // a time: after every barrier
constexpr uint32_t several = 1u << 31;  // the operation is sets[operation-several]

// Cell is what is known of a byte, in shared memory of a word of 4: kernels read and write it
// far more often. Narrower accesses there are checked for their place only. All zero: nothing.
struct Cell {
  Mark wrote, read;
};

struct Region {
  const char* base;
  size_t bytes;
  Cell* cells;  // mapped, so that only what is touched takes memory
  std::string name;
  bool of_block;   // shared memory: each block has it anew
  int cell_shift;  // a cell is for 1 << cell_shift bytes

  std::map<size_t, size_t> allocated;  // offset to bytes
  size_t begin = 0, end = 0;           // of the allocation that was last looked up

  // holds tells whether the bytes lie in one allocation.
  bool holds(size_t at, size_t bytes) {
    if (at >= begin && at + bytes <= end) return true;
    auto next = allocated.upper_bound(at);
    if (next == allocated.begin()) return false;
    --next;
    begin = next->first, end = begin + next->second;
    return at + bytes <= end;
  }
};

std::vector<Region> regions;

// The running operation.
uint32_t self;
const Clock* self_clock;
std::string self_name;
std::unordered_map<uint32_t, std::string> names;

// now counts operations, blocks and barriers; a mark is before another if a barrier of
// both their threads lies between.
uint32_t now = 1, operation_began, block_began, last_barrier, warp_barrier[32];
uint16_t thread;

// Sets of operations that read a byte without order among them: one number each.
std::vector<std::vector<uint32_t>> sets;
std::map<std::vector<uint32_t>, uint32_t> set_numbers;

bool precedes(uint32_t operation) {
  if (operation == self) return true;
  const uint32_t stream = operation >> position_bits;
  const uint32_t position = operation & ((1u << position_bits) - 1);
  return stream < self_clock->size() && (*self_clock)[stream] >= position;
}

// before tells whether the access of an earlier operation, or of several, precedes this one.
bool before(uint32_t operation) {
  if (operation == 0) return true;
  if (operation < several) return precedes(operation);
  const auto& set = sets[operation - several];
  return std::all_of(set.begin(), set.end(), precedes);
}

// within tells whether a mark of this operation is ordered before the present access.
bool within(const Mark& m) {
  if (m.time < block_began) return false;  // of another block
  if (m.time < last_barrier || m.thread == thread) return true;
  const int warp = m.thread < in_warp ? m.thread / 32 : m.thread == anyone ? -1 : m.thread - in_warp;
  return warp == thread / 32 && m.time < warp_barrier[warp];
}

bool ordered(const Mark& m) {
  return (m.time < operation_began || within(m)) && before(m.operation);
}

uint32_t set_with(uint32_t old, uint32_t added) {
  std::vector<uint32_t> set;
  if (old >= several) set = sets[old - several];
  else set.push_back(old);
  set.erase(std::remove_if(set.begin(), set.end(), precedes), set.end());
  set.push_back(added);
  std::sort(set.begin(), set.end());
  auto [at, fresh] = set_numbers.try_emplace(set, sets.size());
  if (fresh) sets.push_back(set);
  return several + at->second;
}

// forget drops what other blocks did to a byte that each block has anew.
void forget(Cell& cell) {
  if (cell.wrote.time < block_began) cell.wrote = {};
  if (cell.read.time < block_began) cell.read = {};
}

// note_read keeps the readers that a later writer must follow.
void note_read(Cell& cell) {
  Mark& r = cell.read;
  if (r.time >= operation_began) {  // read in this operation already
    if (!within(r)) {
      const bool same_warp = r.time >= block_began && (r.thread < in_warp ? r.thread / 32 : r.thread - in_warp) == thread / 32;
      r.thread = same_warp ? in_warp + thread / 32 : anyone;
      if (r.time >= block_began) r.time = now;  // of another block: keeps its time and with it the conflict
      return;
    }
    r.time = now, r.thread = thread;
    return;
  }
  r.operation = before(r.operation) ? self : set_with(r.operation, self);
  r.time = now, r.thread = thread;
}

std::string name_of(uint32_t operation) {
  if (operation >= several) operation = sets[operation - several].front();
  auto at = names.find(operation);
  return at == names.end() ? "an operation" : at->second;
}

std::string describe(const Region& region, size_t at, size_t bytes) {
  char text[160];
  snprintf(text, sizeof text, "%zu bytes at %s + %zu", bytes, region.name.c_str(), at);
  return text;
}

std::string conflict(const Region& region, size_t at, size_t bytes, bool write, const Mark& m, bool wrote) {
  std::string what = self_name + (write ? " writes " : " reads ") + describe(region, at, bytes) + ", which ";
  const std::string did = wrote ? "wrote" : "read";
  if (m.time >= operation_began)
    return what + (m.time < block_began ? "another block of the launch " : "another thread of the block ") + did +
           (m.time < block_began ? "" : " with no barrier between");
  return what + name_of(m.operation) + " " + did + ", and nothing orders the two";
}

Region* region_of(const void* p) {
  for (Region& r : regions)
    if (size_t(static_cast<const char*>(p) - r.base) < r.bytes) return &r;
  return nullptr;
}

}  // namespace

void join(Clock& clock, const Clock& other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  for (size_t i = 0; i < other.size(); i++) clock[i] = std::max(clock[i], other[i]);
}

void begin(uint32_t operation, const Clock& clock, const std::string& name) {
  self = operation;
  self_clock = &clock;
  self_name = name;
  if (names.size() == 1 << 18) names.clear();  // messages about what is long past lose their name
  names[operation] = name;
  operation_began = block_began = last_barrier = ++now;
  thread = 0;
}

void begin_block() {
  block_began = last_barrier = ++now;
  std::fill(std::begin(warp_barrier), std::end(warp_barrier), now);
}
void barrier() { last_barrier = ++now; }
void barrier_warp(int warp) { warp_barrier[warp] = ++now; }
void set_thread(int t) { thread = t; }

void watch(const void* base, size_t bytes, const char* name, bool of_block) {
  void* cells = mmap(nullptr, bytes * sizeof(Cell), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (cells == MAP_FAILED) {
    fprintf(stderr, "testdriver: no address space to watch %zu bytes\n", bytes);
    abort();
  }
  regions.push_back({static_cast<const char*>(base), bytes, static_cast<Cell*>(cells), name, of_block, of_block ? 2 : 0});
}

void unwatch(const void* base) {
  Region* r = region_of(base);
  munmap(r->cells, r->bytes * sizeof(Cell));
  regions.erase(regions.begin() + (r - regions.data()));
}

void allocate(const void* p, size_t bytes) {
  Region* r = region_of(p);
  if (bytes > 0) r->allocated[static_cast<const char*>(p) - r->base] = bytes;
}

void release(const void* p, size_t bytes) {
  Region* r = region_of(p);
  const size_t at = static_cast<const char*>(p) - r->base;
  r->allocated.erase(r->allocated.lower_bound(at), r->allocated.lower_bound(at + bytes));
  r->begin = r->end = 0;
  if (r->of_block) return;  // what is known of its bytes ends with the block
  // Whole pages of cells go back to the system, which gives them back as zeros.
  char* first = reinterpret_cast<char*>(r->cells + (at >> r->cell_shift));
  char* last = reinterpret_cast<char*>(r->cells + ((at + bytes) >> r->cell_shift));
  char* pages = first + -reinterpret_cast<uintptr_t>(first) % 4096;
  char* pages_end = last - reinterpret_cast<uintptr_t>(last) % 4096;
  if (pages >= pages_end) {
    memset(first, 0, last - first);
    return;
  }
  memset(first, 0, pages - first);
  memset(pages_end, 0, last - pages_end);
  madvise(pages, pages_end - pages, MADV_DONTNEED);
}

bool watched(const void* p, size_t bytes) {
  Region* r = region_of(p);
  return r && size_t(static_cast<const char*>(p) - r->base) + bytes <= r->bytes;
}

// advance notes an access in a cell; false: the access conflicts with one that it holds,
// and `with` says with which.
static bool advance(Cell& cell, bool write, const Mark*& with) {
  if (!ordered(cell.wrote)) return with = &cell.wrote, false;
  if (!write) return note_read(cell), true;
  if (!ordered(cell.read)) return with = &cell.read, false;
  cell.wrote = {self, now, thread};
  return true;
}

// check_in is check for bytes of a region.
static std::string check_in(Region* r, const void* p, size_t bytes, bool write) {
  const size_t at = static_cast<const char*>(p) - r->base;
  if (!r->holds(at, bytes))
    return self_name + (write ? " writes " : " reads ") + describe(*r, at, bytes) + ", not within one allocation";
  if (bytes >> r->cell_shift == 0) return "";
  Cell* cell = r->cells + (at >> r->cell_shift);
  Cell* const end = r->cells + ((at + bytes - 1) >> r->cell_shift) + 1;
  for (Cell before, after; cell < end; cell++) {
    before = *cell;
    if (r->of_block) forget(*cell);
    const Mark* with;
    if (!advance(*cell, write, with)) return conflict(*r, at, bytes, write, *with, with == &cell->wrote);
    after = *cell;
    // neighbours mostly were, and will be, the same
    for (; cell + 1 < end && memcmp(cell + 1, &before, sizeof before) == 0; cell++) cell[1] = after;
  }
  return "";
}

std::string check(const void* p, size_t bytes, bool write) {
  Region* r = region_of(p);
  return r ? check_in(r, p, bytes, write) : "";
}

void read(const void* p, size_t bytes) {
  if (Region* r = region_of(p))
    if (std::string wrong = check_in(r, p, bytes, false); !wrong.empty()) host::fail(wrong);
}

void write(const void* p, size_t bytes) {
  if (Region* r = region_of(p))
    if (std::string wrong = check_in(r, p, bytes, true); !wrong.empty()) host::fail(wrong);
}

static void mark_written(const void* p, size_t bytes, Mark m) {
  Region* r = region_of(p);
  if (!r) return;
  Cell* cell = r->cells + ((static_cast<const char*>(p) - r->base) >> r->cell_shift);
  for (size_t i = 0; i < bytes >> r->cell_shift; i++) cell[i].wrote = m;
}

void promise(const void* p, size_t bytes) {
  write(p, bytes);
  mark_written(p, bytes, {self, pending, anyone});
}

void settle(const void* p, size_t bytes) { mark_written(p, bytes, {self, now, thread}); }

}  // namespace checker

// The calls that the compiler inserts into kernels.
#define INSTRUMENT(n)                                                         \
  extern "C" void __tsan_read##n(void* p) { checker::read(p, n); }             \
  extern "C" void __tsan_write##n(void* p) { checker::write(p, n); }           \
  extern "C" void __tsan_unaligned_read##n(void* p) { checker::read(p, n); }   \
  extern "C" void __tsan_unaligned_write##n(void* p) { checker::write(p, n); } \
  extern "C" void __tsan_volatile_read##n(void* p) { checker::read(p, n); }    \
  extern "C" void __tsan_volatile_write##n(void* p) { checker::write(p, n); }
INSTRUMENT(1)
INSTRUMENT(2)
INSTRUMENT(4)
INSTRUMENT(8)
INSTRUMENT(16)
extern "C" void __tsan_read_range(void* p, unsigned long n) { checker::read(p, n); }
extern "C" void __tsan_write_range(void* p, unsigned long n) { checker::write(p, n); }
extern "C" void __tsan_vptr_read(void**) {}
extern "C" void __tsan_vptr_update(void**, void*) {}
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
