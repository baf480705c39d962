// Attention by tiles, in the type itself.
#include "attention_tiles.h"

#if DAHL_SM >= 80
namespace dahl {

ATTENTION(tiled, Simt, 32)
ATTENTION(tiled, Simt, 64)
ATTENTION(tiled, Simt, 128)

}  // namespace dahl
#endif
