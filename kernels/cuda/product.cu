// Sums of the splits of any product. And what follows a product that a library has done.
#include "product.h"

namespace dahl {

ENTRY(product_sum_f32, ProductParams, 256) { product_sum<float>(p); }
ENTRY(product_sum_f64, ProductParams, 256) { product_sum<double>(p); }

ENTRY(product_follow_f32, ProductParams, 256) { product_follow<float>(p); }
ENTRY(product_follow_f64, ProductParams, 256) { product_follow<double>(p); }

}  // namespace dahl
