// A fiber: a stack of its own that is entered and left like a function.
#pragma once

#include <cstddef>

namespace host {

class Fiber {
 public:
  // start makes the next enter() call body(argument) on the given stack. A body ends by
  // leave() and is not entered again.
  void start(char* stack, size_t bytes, void (*body)(void*), void* argument);
  void enter();  // runs the fiber until it leaves
  void leave();  // back to where enter() was called

 private:
  void* inside_ = nullptr;   // stack pointer of the fiber while it is left
  void* outside_ = nullptr;  // that of the caller while it is entered
};

}  // namespace host
