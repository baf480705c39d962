// Attention by tiles on tensor cores.
#include "attention_tiles.h"

#if DAHL_SM >= 80
namespace dahl {

ATTENTION(tf32, Tensor<false>, 32)
ATTENTION(tf32, Tensor<false>, 64)
ATTENTION(tf32, Tensor<false>, 128)
ATTENTION(bf16, Tensor<true>, 32)
ATTENTION(bf16, Tensor<true>, 64)
ATTENTION(bf16, Tensor<true>, 128)

}  // namespace dahl
#endif
