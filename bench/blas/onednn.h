#include <oneapi/dnnl/dnnl.h>

// A convolution over square images and windows with a bias, float32.
typedef struct {
    int n, c, h, f, k, stride, pad, o; // o: extent of the output
} conv_shape;

enum { CONV_FORWARD, CONV_INPUT_GRADIENT, CONV_WEIGHT_GRADIENT };

// A pass of a convolution with its operands, in the layouts that oneDNN chose.
typedef struct {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[4];
    int nargs;
    const char *implementation;
} conv;

// All return 0, or a number that names the call that failed.
int onednn_start(void);
int conv_open(conv *p, int pass, const conv_shape *s);
int conv_run(conv *p);
void conv_close(conv *p);
