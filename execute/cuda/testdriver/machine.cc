#include "machine.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>

#include "block.h"
#include "state.h"

namespace machine {

// Never destroyed: the thread that works waits for them until the process ends.
std::mutex& lock = *new std::mutex;
std::condition_variable& changed = *new std::condition_variable;
std::vector<Stream*> streams;
Clock host_clock;

namespace {

std::vector<uint32_t> stream_positions(1, 0);  // by number, kept when a number is used again; 0 is nobody's
std::vector<uint32_t> free_numbers;
std::map<int, Device*> devices;
std::mt19937_64 choice;
bool running;  // a step is being carried out

long number_of(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text && *text ? strtol(text, nullptr, 0) : otherwise;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// lose drops what the device was asked to do: what waits for it goes on and finds the error.
void lose(Device* device, const Fault& fault) {
  device->error = fault.code;
  fprintf(stderr, "testdriver: %s\n", fault.message.c_str());
  for (Stream* s : streams) {
    if (s->device != device) continue;
    for (Queued& q : s->queue)
      if (q.step.mark) q.step.mark->done = true;
    s->queue.clear();
  }
}

bool may_go_on(const Stream* s) {
  return !s->queue.empty() && !(s->queue.front().step.wait && !s->queue.front().step.wait->done);
}

// carry_out does the stream's next step; the lock is let go while it runs.
void carry_out(Stream* s, std::unique_lock<std::mutex>& held) {
  Queued q = std::move(s->queue.front());
  s->queue.pop_front();
  if (q.step.run) {
    running = true;
    held.unlock();
    checker::begin(q.operation, q.clock, q.step.name);
    const Fault fault = q.step.run();
    held.lock();
    running = false;
    if (fault.code != CUDA_SUCCESS && s->device->error == CUDA_SUCCESS) lose(s->device, fault);
  }
  if (q.step.mark) {
    q.step.mark->seconds = seconds_now();
    q.step.mark->done = true;
  }
  changed.notify_all();
}

void work() {
  std::unique_lock<std::mutex> held(lock);
  for (std::vector<Stream*> ready;; ready.clear()) {
    for (Stream* s : streams)
      if (may_go_on(s)) ready.push_back(s);
    if (ready.empty())
      changed.wait(held);
    else
      carry_out(ready[choice() % ready.size()], held);
  }
}

}  // namespace

Options options() {
  Options o;
  o.devices = int(number_of("DAHL_TESTDRIVER_DEVICES", 2));
  o.memory = size_t(number_of("DAHL_TESTDRIVER_MEMORY", 256 << 20));
  o.capability = int(number_of("DAHL_TESTDRIVER_CAPABILITY", 80));
  o.seed = uint64_t(number_of("DAHL_TESTDRIVER_SEED", 1));
  o.lose_device = -1, o.lose_launch = 0;
  if (const char* text = getenv("DAHL_TESTDRIVER_LOSE")) sscanf(text, "%ld:%ld", &o.lose_device, &o.lose_launch);
  o.wait = number_of("DAHL_TESTDRIVER_WAIT", 0);
  return o;
}

void note(const char* call) {
  const char* name = getenv("DAHL_TESTDRIVER_LOG");
  if (!name || !*name) return;
  if (FILE* f = fopen(name, "a")) {
    fprintf(f, "%s\n", call);
    fclose(f);
  }
}

CUresult retain(int ordinal, Device** device) {
  std::unique_lock<std::mutex> held(lock);
  if (devices.empty()) choice.seed(options().seed);
  static bool started = false;
  if (!started) {
    host::prepare();
    std::thread(work).detach();
  }
  started = true;
  idle(held);
  Device*& d = devices[ordinal];
  if (!d) d = new_device(ordinal, options());
  d->retained++;
  *device = d;
  return CUDA_SUCCESS;
}

CUresult release(int ordinal) {
  std::unique_lock<std::mutex> held(lock);
  auto at = devices.find(ordinal);
  if (at == devices.end()) return CUDA_ERROR_INVALID_CONTEXT;
  Device* d = at->second;
  if (--d->retained > 0) return CUDA_SUCCESS;
  idle(held);
  for (size_t i = streams.size(); i-- > 0;)
    if (streams[i]->device == d) {
      free_numbers.push_back(streams[i]->number);
      streams.erase(streams.begin() + i);  // handles stay allocated: a late use finds the error
    }
  delete_memory(d);
  devices.erase(at);
  d->error = CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return CUDA_SUCCESS;
}

int ordinal(const Device* device) { return device->ordinal; }

bool count_launch(Device* device) {
  return ++device->launches == device->lose_launch;
}

void idle(std::unique_lock<std::mutex>& held) {
  changed.wait(held, [] { return !running; });
}

Stream* add_stream(Device* device) {
  note("new stream");
  if (free_numbers.empty() && stream_positions.size() == checker::streams_at_most) return nullptr;
  Stream* s = new Stream{device};
  if (free_numbers.empty()) {
    s->number = uint32_t(stream_positions.size());
    stream_positions.push_back(0);
  } else {
    s->number = free_numbers.back();
    free_numbers.pop_back();
  }
  streams.push_back(s);
  return s;
}

void wait_if_told(Stream* s, std::unique_lock<std::mutex>& held) {
  if (s->device->waits) changed.wait(held, [&] { return s->queue.empty() && !running; });
}

void push(Stream* s, Step step) {
  checker::join(s->clock, host_clock);
  if (step.wait) checker::join(s->clock, step.wait->clock);
  Queued q{std::move(step), s->clock, 0};
  if (q.step.run) {
    const uint32_t position = ++stream_positions[s->number];
    if (position >> checker::position_bits) {
      fprintf(stderr, "testdriver: a stream has more operations than the checker can number\n");
      abort();
    }
    q.operation = checker::operation(s->number, position);
    if (s->clock.size() <= s->number) s->clock.resize(s->number + 1);
    s->clock[s->number] = position;
  }
  if (q.step.mark) q.step.mark->clock = s->clock;
  s->queue.push_back(std::move(q));
  changed.notify_all();
}

// seen tells the host's clock that what precedes has been done.
static void seen(const Clock& clock) { checker::join(host_clock, clock); }

Stream* new_stream(Device* device) {
  std::unique_lock<std::mutex> held(lock);
  return add_stream(device);
}

Stream* default_stream(Device* device) {
  std::unique_lock<std::mutex> held(lock);
  if (!device->default_stream) device->default_stream = add_stream(device);
  return device->default_stream;
}

CUresult delete_stream(Stream* stream) {
  std::unique_lock<std::mutex> held(lock);
  changed.wait(held, [&] { return stream->queue.empty() && !running; });
  auto at = std::find(streams.begin(), streams.end(), stream);
  if (at == streams.end()) return CUDA_ERROR_INVALID_HANDLE;
  streams.erase(at);
  free_numbers.push_back(stream->number);
  delete stream;
  return CUDA_SUCCESS;
}

CUresult enqueue(Stream* stream, std::string name, std::function<Fault()> run) {
  std::unique_lock<std::mutex> held(lock);
  if (stream->device->error) return stream->device->error;
  if (stream->capture) {
    stream->capture->graph->steps.push_back({stream->captured_as, std::move(name), std::move(run)});
    return CUDA_SUCCESS;
  }
  push(stream, {std::move(name), std::move(run), nullptr, nullptr});
  wait_if_told(stream, held);
  return CUDA_SUCCESS;
}

CUresult first_use(Stream* stream, const std::string& name) {
  std::unique_lock<std::mutex> held(lock);
  if (stream->capture) return stream->device->loaded.contains(name) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  stream->device->loaded.insert(name);
  return CUDA_SUCCESS;
}

// finish waits for a mark behind everything on the stream.
static CUresult finish(Stream* stream, std::unique_lock<std::mutex>& held) {
  note("synchronize");
  if (stream->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->device->error) return stream->device->error;
  auto mark = std::make_shared<Moment>();
  push(stream, {"", nullptr, mark, nullptr});
  changed.wait(held, [&] { return mark->done; });
  seen(mark->clock);
  return stream->device->error;
}

CUresult synchronize(Stream* stream) {
  std::unique_lock<std::mutex> held(lock);
  return finish(stream, held);
}

CUresult query(Stream* stream) {
  std::unique_lock<std::mutex> held(lock);
  if (stream->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->device->error) return stream->device->error;
  if (!stream->queue.empty() || running) return CUDA_ERROR_NOT_READY;
  seen(stream->clock);
  return CUDA_SUCCESS;
}

CUresult synchronize(Device* device) {
  std::unique_lock<std::mutex> held(lock);
  for (size_t i = 0; i < streams.size(); i++)
    if (streams[i]->device == device)
      if (CUresult r = finish(streams[i], held)) return r;
  return device->error;
}

Event* new_event(bool timed) {
  note("new event");
  return new Event{timed};
}
void delete_event(Event* event) { delete event; }

CUresult record(Event* event, Stream* stream) {
  std::unique_lock<std::mutex> held(lock);
  if (stream->device->error) return stream->device->error;
  event->device = stream->device;
  if (stream->capture) {
    event->capture = stream->capture;
    event->captured_as = stream->capture->graph->events++;
    GraphStep step{stream->captured_as, "", nullptr};
    step.mark = event->captured_as;
    stream->capture->graph->steps.push_back(step);
    return CUDA_SUCCESS;
  }
  event->capture = nullptr;
  event->moment = std::make_shared<Moment>();
  push(stream, {"", nullptr, event->moment, nullptr});
  return CUDA_SUCCESS;
}

CUresult wait(Stream* stream, Event* event) {
  std::unique_lock<std::mutex> held(lock);
  if (stream->device->error) return stream->device->error;
  if (event->capture) return capture_wait(stream, event);
  if (stream->capture) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  if (event->moment) push(stream, {"", nullptr, nullptr, event->moment});
  return CUDA_SUCCESS;
}

CUresult query(Event* event) {
  std::unique_lock<std::mutex> held(lock);
  if (event->capture) return CUDA_ERROR_CAPTURED_EVENT;
  if (event->device && event->device->error) return event->device->error;
  if (!event->moment) return CUDA_SUCCESS;
  if (!event->moment->done) return CUDA_ERROR_NOT_READY;
  seen(event->moment->clock);
  return CUDA_SUCCESS;
}

CUresult synchronize(Event* event) {
  note("synchronize");
  std::unique_lock<std::mutex> held(lock);
  if (event->capture) return CUDA_ERROR_CAPTURED_EVENT;
  if (event->moment) {
    changed.wait(held, [&] { return event->moment->done; });
    seen(event->moment->clock);
  }
  return event->device ? event->device->error : CUDA_SUCCESS;
}

CUresult elapsed(Event* from, Event* to, float* milliseconds) {
  std::unique_lock<std::mutex> held(lock);
  if (!from->timed || !to->timed || !from->moment || !to->moment || from->capture || to->capture)
    return CUDA_ERROR_INVALID_HANDLE;
  if (from->device != to->device) return CUDA_ERROR_INVALID_HANDLE;
  if (from->device->error) return from->device->error;
  if (!from->moment->done || !to->moment->done) return CUDA_ERROR_NOT_READY;
  *milliseconds = float((to->moment->seconds - from->moment->seconds) * 1e3);
  return CUDA_SUCCESS;
}

}  // namespace machine
