// What machine.cc, memory.cc and graph.cc share. Everything is guarded by `lock`.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>

#include "machine.h"

namespace machine {

extern std::mutex& lock;
extern std::condition_variable& changed;  // a step was enqueued or done
extern std::vector<Stream*> streams;
extern Clock host_clock;  // what the host knows to be done

struct Device {
  int ordinal;
  int retained = 0;
  CUresult error = CUDA_SUCCESS;
  long launches = 0, lose_launch = 0;
  bool waits = false;
  Stream* default_stream = nullptr;

  // Addresses begin at `addresses`, where nothing can be read; the bytes are at `memory`.
  char *addresses, *memory;
  size_t capacity, used = 0;
  std::map<size_t, size_t> allocations;  // offset to bytes

  std::set<std::string> loaded;  // what libraries have used
};

struct Queued {
  Step step;
  Clock clock;         // of what precedes
  uint32_t operation;  // number for the checker, 0 for marks and waits
};

struct Stream {
  Device* device;
  uint32_t number = 0;
  Clock clock = {};
  std::deque<Queued> queue = {};
  Capture* capture = nullptr;
  int captured_as = 0;
};

struct Event {
  bool timed;
  Device* device = nullptr;  // that recorded it
  std::shared_ptr<Moment> moment = nullptr;
  Capture* capture = nullptr;  // if it was recorded by a captured stream
  int captured_as = 0;
};

struct Capture {
  Graph* graph;
  std::vector<Stream*> members;  // the first is the origin
};

Device* new_device(int ordinal, const Options& o);
void delete_memory(Device* device);

Stream* add_stream(Device* device);
void push(Stream* stream, Step step);
void idle(std::unique_lock<std::mutex>& held);  // waits while a step is carried out
void wait_if_told(Stream* stream, std::unique_lock<std::mutex>& held);  // see Options::wait

// capture_wait makes a stream that waits for a captured event a member of its capture.
CUresult capture_wait(Stream* stream, Event* event);

}  // namespace machine
