// The devices of the test driver: memory with addresses of its own, streams whose
// operations one thread carries out, events, captured graphs.
//
// The thread takes, in a seeded random order, the next operation of any stream that may go
// on; so streams run ahead of each other as they may on a GPU, and one run differs from
// another by the seed alone. What is missing in the ordering is found by the checker
// whatever the order was.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checker.h"
#include "cuda.h"

namespace machine {

using checker::Clock;

// Fault is why an operation failed; code is CUDA_SUCCESS if it did not.
struct Fault {
  CUresult code = CUDA_SUCCESS;
  std::string message;
};

// Moment is one record of an event.
struct Moment {
  bool done = false;
  double seconds = 0;
  Clock clock;  // of what precedes
};

struct Device;
struct Stream;
struct Event;
struct Capture;

// Step is what a stream is asked to do: run something, mark a moment, or wait for one.
struct Step {
  std::string name;
  std::function<Fault()> run;
  std::shared_ptr<Moment> mark, wait;
};

// Graph is a captured sequence of steps over several streams, numbered from 0, the one
// that was captured; mark and wait are numbers of events within the graph.
struct GraphStep {
  int stream;
  std::string name;
  std::function<Fault()> run;
  int mark = -1, wait = -1;
};
struct Graph {
  std::vector<GraphStep> steps;
  int streams = 1, events = 0;
};

// Configuration, read from the environment when a device's context is first retained.
struct Options {
  int devices;         // DAHL_TESTDRIVER_DEVICES, 2
  size_t memory;       // DAHL_TESTDRIVER_MEMORY, bytes, 256 MiB
  int capability;      // DAHL_TESTDRIVER_CAPABILITY, 80
  uint64_t seed;       // DAHL_TESTDRIVER_SEED, 1
  long lose_device;    // DAHL_TESTDRIVER_LOSE=device:n, the device is lost at its n-th launch
  long lose_launch;
  bool wait;           // DAHL_TESTDRIVER_WAIT=1, whoever asks a stream for something returns when it is done
};
Options options();

// note writes the name of a call that has no place in a steady step (it allocates, or waits for
// the device) to the file DAHL_TESTDRIVER_LOG, if there is one.
void note(const char* call);

// A device exists from retain to the last release.
CUresult retain(int ordinal, Device** device);
CUresult release(int ordinal);
int ordinal(const Device* device);

CUresult allocate(Device* device, size_t bytes, CUdeviceptr* p);
CUresult deallocate(CUdeviceptr p);
void memory_info(Device* device, size_t* free, size_t* total);
// memory_of gives the bytes behind an address of any device, null if it is of none. It is for a
// step that is carried out, during which nothing is mapped; find is the same for a call.
void* memory_of(CUdeviceptr p);
void* find(CUdeviceptr p);

CUresult pin(void* p, size_t bytes);
CUresult unpin(void* p);
bool pinned(const void* p, size_t bytes);  // wholly

Stream* new_stream(Device* device);  // null: there are as many as the checker can number
CUresult delete_stream(Stream* stream);
Stream* default_stream(Device* device);
CUresult enqueue(Stream* stream, std::string name, std::function<Fault()> run);
// first_use loads what a library does on a stream, by name, if it is the device's first use of
// it. That allocates, and so is refused while the stream is captured.
CUresult first_use(Stream* stream, const std::string& name);
CUresult synchronize(Stream* stream);
CUresult query(Stream* stream);
CUresult synchronize(Device* device);

Event* new_event(bool timed);
void delete_event(Event* event);
CUresult record(Event* event, Stream* stream);
CUresult wait(Stream* stream, Event* event);
CUresult query(Event* event);
CUresult synchronize(Event* event);
CUresult elapsed(Event* from, Event* to, float* milliseconds);

// count_launch counts a launch of the device and tells whether it is lost by it.
bool count_launch(Device* device);

CUresult begin_capture(Stream* stream);
CUresult end_capture(Stream* stream, Graph** graph);
struct Exec;
Exec* instantiate(const Graph* graph);
CUresult launch(Exec* exec, Stream* stream);
void delete_exec(Exec* exec);

}  // namespace machine
