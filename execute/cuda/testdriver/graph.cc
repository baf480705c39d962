// Capture of streams into a graph, and its replay on a stream and as many more as the
// capture had, ordered as the captured events ordered them.
#include "state.h"

namespace machine {
namespace {

// joined tells whether every step of the graph precedes what stream 0 does next: clocks
// over the graph's own streams.
bool joined(const Graph& graph) {
  std::vector<Clock> clocks(graph.streams, Clock(graph.streams, 0)), events(graph.events);
  std::vector<uint32_t> count(graph.streams, 0);
  for (const GraphStep& step : graph.steps) {
    Clock& clock = clocks[step.stream];
    if (step.run) clock[step.stream] = ++count[step.stream];
    if (step.mark >= 0) events[step.mark] = clock;
    if (step.wait >= 0) checker::join(clock, events[step.wait]);
  }
  return clocks[0] == count;
}

}  // namespace

struct Exec {
  Graph graph;
  Device* device = nullptr;
  std::vector<Stream*> streams;  // for those beyond the first, made at the first launch
};

CUresult begin_capture(Stream* stream) {
  std::unique_lock<std::mutex> held(lock);
  if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  stream->capture = new Capture{new Graph, {stream}};
  stream->captured_as = 0;
  return CUDA_SUCCESS;
}

CUresult capture_wait(Stream* stream, Event* event) {
  Capture* c = event->capture;
  if (stream->capture && stream->capture != c) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  if (!stream->capture) {
    stream->capture = c;
    stream->captured_as = c->graph->streams++;
    c->members.push_back(stream);
  }
  GraphStep step{stream->captured_as, "", nullptr};
  step.wait = event->captured_as;
  c->graph->steps.push_back(step);
  return CUDA_SUCCESS;
}

CUresult end_capture(Stream* stream, Graph** graph) {
  std::unique_lock<std::mutex> held(lock);
  Capture* c = stream->capture;
  if (!c || c->members[0] != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  for (Stream* s : c->members) s->capture = nullptr;
  *graph = c->graph;  // the capture stays: its events refer to it
  return joined(*c->graph) ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
}

Exec* instantiate(const Graph* graph) { return new Exec{*graph}; }

CUresult launch(Exec* exec, Stream* stream) {
  std::unique_lock<std::mutex> held(lock);
  if (stream->device->error) return stream->device->error;
  if (stream->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (exec->streams.empty()) {
    exec->device = stream->device;
    for (int i = 1; i < exec->graph.streams; i++) exec->streams.push_back(add_stream(stream->device));
  }
  auto begin = std::make_shared<Moment>();
  push(stream, {"", nullptr, begin, nullptr});
  for (Stream* s : exec->streams) push(s, {"", nullptr, nullptr, begin});
  std::vector<std::shared_ptr<Moment>> events(exec->graph.events);
  for (const GraphStep& step : exec->graph.steps) {
    Stream* s = step.stream == 0 ? stream : exec->streams[step.stream - 1];
    Step next{step.name, step.run, nullptr, nullptr};
    if (step.mark >= 0) next.mark = events[step.mark] = std::make_shared<Moment>();
    if (step.wait >= 0) next.wait = events[step.wait];
    push(s, std::move(next));
  }
  wait_if_told(stream, held);
  return CUDA_SUCCESS;
}

void delete_exec(Exec* exec) {
  for (Stream* s : exec->streams) delete_stream(s);
  delete exec;
}

}  // namespace machine
