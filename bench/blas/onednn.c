//go:build peers

#include "onednn.h"

#include <stddef.h>
#include <stdlib.h>

// A status other than success ends the function with the number of the call.
#define TRY(number, call) \
    do { \
        if ((call) != dnnl_success) return number; \
    } while (0)

static dnnl_engine_t engine;
static dnnl_stream_t stream;

int onednn_start(void) {
    TRY(1, dnnl_engine_create(&engine, dnnl_cpu, 0));
    TRY(2, dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    return 0;
}

// describe fills the operation's description, all layouts but the bias's left to the library.
static int describe(dnnl_convolution_desc_t *d, int pass, const conv_shape *s) {
    dnnl_dims_t x = {s->n, s->c, s->h, s->h}, w = {s->f, s->c, s->k, s->k}, b = {s->f}, y = {s->n, s->f, s->o, s->o};
    dnnl_dims_t stride = {s->stride, s->stride}, pad = {s->pad, s->pad};
    dnnl_memory_desc_t xd, wd, bd, yd;
    TRY(10, dnnl_memory_desc_init_by_tag(&xd, 4, x, dnnl_f32, dnnl_format_tag_any));
    TRY(11, dnnl_memory_desc_init_by_tag(&wd, 4, w, dnnl_f32, dnnl_format_tag_any));
    TRY(12, dnnl_memory_desc_init_by_tag(&bd, 1, b, dnnl_f32, dnnl_a));
    TRY(13, dnnl_memory_desc_init_by_tag(&yd, 4, y, dnnl_f32, dnnl_format_tag_any));
    switch (pass) {
    case CONV_FORWARD:
        TRY(14, dnnl_convolution_forward_desc_init(d, dnnl_forward_training, dnnl_convolution_direct, &xd, &wd, &bd, &yd, stride, pad, pad));
        return 0;
    case CONV_INPUT_GRADIENT:
        TRY(15, dnnl_convolution_backward_data_desc_init(d, dnnl_convolution_direct, &xd, &wd, &yd, stride, pad, pad));
        return 0;
    default:
        TRY(16, dnnl_convolution_backward_weights_desc_init(d, dnnl_convolution_direct, &xd, &wd, &bd, &yd, stride, pad, pad));
        return 0;
    }
}

// argument allocates one operand in the layout that the primitive chose.
static int argument(conv *p, dnnl_primitive_desc_t pd, dnnl_query_t what, int name) {
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, what, 0);
    dnnl_memory_t m;
    TRY(20, dnnl_memory_create(&m, md, engine, DNNL_MEMORY_ALLOCATE));
    p->args[p->nargs].arg = name;
    p->args[p->nargs].memory = m;
    p->nargs++;
    void *data;
    TRY(21, dnnl_memory_get_data_handle(m, &data));
    size_t n = dnnl_memory_desc_get_size(md) / sizeof(float);
    for (size_t i = 0; i < n; i++) ((float *)data)[i] = (float)(i % 13) * 0.01f;
    return 0;
}

int conv_open(conv *p, int pass, const conv_shape *s) {
    // What each pass reads and writes.
    static const struct {
        dnnl_query_t what[4];
        int name[4], count;
    } operands[] = {
        [CONV_FORWARD] = {{dnnl_query_src_md, dnnl_query_weights_md, dnnl_query_dst_md}, {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, 3},
        [CONV_INPUT_GRADIENT] = {{dnnl_query_diff_src_md, dnnl_query_weights_md, dnnl_query_diff_dst_md}, {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST}, 3},
        [CONV_WEIGHT_GRADIENT] = {{dnnl_query_src_md, dnnl_query_diff_weights_md, dnnl_query_diff_dst_md}, {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST}, 3},
    };
    dnnl_convolution_desc_t forward, d;
    dnnl_primitive_desc_t hint = NULL, pd;
    int failed;
    if ((failed = describe(&forward, CONV_FORWARD, s)) || (failed = describe(&d, pass, s))) return failed;
    TRY(1, dnnl_primitive_desc_create(&hint, &forward, NULL, engine, NULL));
    TRY(2, dnnl_primitive_desc_create(&pd, &d, NULL, engine, pass == CONV_FORWARD ? NULL : hint));
    TRY(3, dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &p->implementation));
    p->nargs = 0;
    for (int i = 0; i < operands[pass].count; i++)
        if ((failed = argument(p, pd, operands[pass].what[i], operands[pass].name[i]))) return failed;
    // The bias is the second weight of the library.
    if (pass != CONV_INPUT_GRADIENT) {
        const dnnl_query_t what = pass == CONV_FORWARD ? dnnl_query_weights_md : dnnl_query_diff_weights_md;
        const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, what, 1);
        p->args[p->nargs].arg = pass == CONV_FORWARD ? DNNL_ARG_BIAS : DNNL_ARG_DIFF_BIAS;
        TRY(4, dnnl_memory_create(&p->args[p->nargs].memory, md, engine, DNNL_MEMORY_ALLOCATE));
        p->nargs++;
    }
    TRY(5, dnnl_primitive_create(&p->primitive, pd));
    return conv_run(p); // the first call compiles
}

int conv_run(conv *p) {
    TRY(30, dnnl_primitive_execute(p->primitive, stream, p->nargs, p->args));
    TRY(31, dnnl_stream_wait(stream));
    return 0;
}

void conv_close(conv *p) {
    for (int i = 0; i < p->nargs; i++) dnnl_memory_destroy(p->args[i].memory);
    dnnl_primitive_destroy(p->primitive);
}
