// Runs a graph of computations and messages in SimGrid, and prints the makespan, the seconds that its processor took and the most bytes in
// memory. It is SimGrid's fastest way: an activity is created when it can start, and no actor waits.
//
//   main < FILE
//
// Lines of FILE, whose numbers count from 0:
//   link BYTES_PER_SECOND SECONDS_OF_LATENCY        (one for each direction of a duplex link)
//   host                                            (a memory, or a worker)
//   route FROM TO LINK…
//   work AFTER… : SECONDS HOST                      (activities, in an order in which all of AFTER come before)
//   copy AFTER… : BYTES FROM TO
#include <chrono>
#include <iostream>
#include <simgrid/s4u.hpp>
#include <sstream>
#include <sys/resource.h>
#include <vector>

namespace sg4 = simgrid::s4u;

struct Activity {
  bool copies = false;
  double amount = 0;
  int from = 0, to = 0;
  int waits = 0;
  int first = 0, end = 0; // of its successors
  sg4::ActivityPtr runs;
};

static std::vector<Activity> all;
static std::vector<int> after, successors; // after: pairs, flat
static std::vector<sg4::Host*> hosts;
static double makespan = 0;
static size_t ended = 0;

static void start(int i)
{
  Activity& a = all[i];
  if (a.copies) {
    auto c = sg4::Comm::sendto_init(hosts[a.from], hosts[a.to]);
    c->set_payload_size(a.amount)->set_name(std::to_string(i));
    a.runs = c;
    c->start();
  } else {
    auto e = sg4::Exec::init();
    e->set_flops_amount(a.amount)->set_host(hosts[a.from])->set_name(std::to_string(i));
    a.runs = e;
    e->start();
  }
}

static void completed(const std::string& name)
{
  makespan = std::max(makespan, sg4::Engine::get_clock());
  ended++;
  Activity& a = all[std::stoi(name)];
  for (int k = a.first; k < a.end; k++)
    if (--all[successors[k]].waits == 0)
      start(successors[k]);
  a.runs = nullptr;
}

static double processor()
{
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

int main(int argc, char** argv)
{
  sg4::Engine e(&argc, argv);
  auto* zone = sg4::create_full_zone("all");
  std::vector<sg4::Link*> links;
  std::string line, word;
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    in >> word;
    if (word == "link") {
      double bandwidth, latency;
      in >> bandwidth >> latency;
      links.push_back(zone->create_link("l" + std::to_string(links.size()), bandwidth)->set_latency(latency)->seal());
    } else if (word == "host") {
      hosts.push_back(zone->create_host("h" + std::to_string(hosts.size()), 1.0)->seal());
    } else if (word == "route") {
      int from, to, link;
      in >> from >> to;
      std::vector<sg4::LinkInRoute> route;
      while (in >> link)
        route.emplace_back(links[link]);
      zone->add_route(hosts[from]->get_netpoint(), hosts[to]->get_netpoint(), nullptr, nullptr, route, false);
    } else {
      Activity a;
      a.copies = word == "copy";
      while (in >> word && word != ":") {
        after.push_back(std::stoi(word));
        after.push_back(all.size());
        a.waits++;
      }
      in >> a.amount >> a.from >> a.to;
      all.push_back(a);
    }
  }
  zone->seal();
  for (size_t k = 0; k < after.size(); k += 2)
    all[after[k]].end++;
  int at = 0;
  for (auto& a : all) {
    a.first = at;
    at += a.end;
    a.end = a.first;
  }
  successors.resize(at);
  for (size_t k = 0; k < after.size(); k += 2)
    successors[all[after[k]].end++] = after[k + 1];
  std::vector<int>().swap(after);

  sg4::Activity::on_completion_cb([](sg4::Activity const& x) { completed(x.get_name()); });
  double begin = processor();
  std::vector<int> ready;
  for (size_t i = 0; i < all.size(); i++)
    if (all[i].waits == 0)
      ready.push_back(i);
  for (int i : ready)
    start(i);
  e.run();
  if (ended != all.size()) {
    std::cerr << ended << " of " << all.size() << " activities ended\n";
    return 1;
  }
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  std::printf("%.12f %.6f %ld\n", makespan, processor() - begin, u.ru_maxrss * 1024L);
}
