// Sums of the splits of any product: rows, of results whose rows are pixels; columns, of
// those whose columns are. And what follows a product that a library has done.
#include "product.h"

namespace dahl {

ENTRY(product_sum_rows_f32, ProductParams, 256) { product_sum<float, true>(p); }
ENTRY(product_sum_rows_f64, ProductParams, 256) { product_sum<double, true>(p); }
ENTRY(product_sum_columns_f32, ProductParams, 256) { product_sum<float, false>(p); }
ENTRY(product_sum_columns_f64, ProductParams, 256) { product_sum<double, false>(p); }

ENTRY(product_follow_f32, ProductParams, 256) { product_follow<float>(p); }
ENTRY(product_follow_f64, ProductParams, 256) { product_follow<double>(p); }

}  // namespace dahl
