/*
 * vector.h: VPU FLOP of what is not a matmul, per element, counted from the formulas. Elementary
 * functions count as one each. They are O(BTD), O(BTF) and O(BTSN), the matmuls O(BTDF)
 * (the book, chapter 4, 4.2.4), so the last digit is of no consequence.
 */
#ifndef SIM_BASE_VECTOR_H
#define SIM_BASE_VECTOR_H

enum {
    VECTOR_NORM = 5,          /* x + r; square, sum; · 1/rms; · weight */
    VECTOR_NORM_BACKWARD = 9, /* dy·w, x·1/rms, their product, sum; two products, difference;
                                 dw; + residual */
    VECTOR_NORM_ALONE = 4,    /* A norm without a residual */
    VECTOR_NORM_ALONE_BACKWARD = 8, /* The gradient of a norm without a residual */
    VECTOR_GATE = 4,                /* silu: exp, +1, divide; · up */
    VECTOR_GATE_BACKWARD = 8,       /* silu again (3), its derivative (3), d gate, d up */
    VECTOR_FUNCTION = 6,            /* GELU by tanh: cube, sum, two products, tanh, +1; · x/2 */
    VECTOR_FUNCTION_BACKWARD = 10,  /* tanh again (5), its derivative (3), sum, · dy */
    VECTOR_ROPE = 3,                /* x·cos + y·sin */
    VECTOR_SOFTMAX = 5,             /* scale, max, subtract, exp, sum; per score */
    VECTOR_SOFTMAX_BACKWARD = 5,    /* scale, subtract, exp again; dP - row sum, · P; per score */
    VECTOR_CAP = 3,                 /* divide, tanh, product; per score or logit */
    VECTOR_CAP_BACKWARD = 4,        /* square of the result, scale, difference, · its gradient */
    VECTOR_ROW_DOT = 2,             /* dO·O, the row sum that flash attention's backward needs */
    VECTOR_DROPOUT = 3,             /* a number drawn, compare, scale; per score, each way */
    VECTOR_ROUTE = 5,               /* max, subtract, exp, sum, divide; per expert, and a comparison
                                       for each of the k that are taken */
    VECTOR_ROUTE_BACKWARD = 3,      /* p·dp, its sum, the difference; per expert */
    VECTOR_LOSS = 5,                /* max, subtract, exp, sum; p - 1; per logit */
    VECTOR_SAMPLE = 4,              /* divide by the temperature, draw, add, compare; per logit */
    VECTOR_SQUARE = 2,              /* Square, sum; per gradient whose norm is asked for */
    VECTOR_ADAM = 12, /* Two moments (2·3), two corrections, root, divide, step (2) */
};

#endif
