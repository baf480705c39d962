// For comparing our declarations of a library with its own header.
#pragma once

#include <cstddef>
#include <type_traits>

// alike are two pointers, two numbers of one size, or the same kind of float.
template <class A, class B>
constexpr bool alike() {
  if (std::is_pointer_v<A> || std::is_pointer_v<B>) return std::is_pointer_v<A> && std::is_pointer_v<B>;
  if (std::is_floating_point_v<A> || std::is_floating_point_v<B>) return std::is_same_v<A, B>;
  return sizeof(A) == sizeof(B);
}

// Same are functions with results and as many arguments that are alike.
template <class A, class B>
struct Same : std::false_type {};
template <class R, class... A, class S, class... B>
  requires(sizeof...(A) == sizeof...(B))
struct Same<R (*)(A...), S (*)(B...)> : std::bool_constant<alike<R, S>() && (alike<A, B>() && ...)> {};

#define VALUE(ours, theirs) static_assert(int(ours) == int(theirs), #theirs)
