// Sums of the splits of any product: rows, of results whose rows are pixels; columns, of
// those whose columns are.
#include "product.h"

namespace dahl {

ENTRY(product_sum_rows_f32, ProductParams, 256) { product_sum<float, true>(p); }
ENTRY(product_sum_rows_f64, ProductParams, 256) { product_sum<double, true>(p); }
ENTRY(product_sum_columns_f32, ProductParams, 256) { product_sum<float, false>(p); }
ENTRY(product_sum_columns_f64, ProductParams, 256) { product_sum<double, false>(p); }

}  // namespace dahl
