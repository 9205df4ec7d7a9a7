/* Shardings against the book's chapter 3: notation, local shapes, and the four cases. */
#include <string.h>

#include "sim/mesh/sharding.h"
#include "tests/support/case.h"

static const struct sharding_size sizes[] = {{"I", 128},  {"J", 2048}, {"K", 64}, {"B", 512},
                                             {"D", 8192}, {"F", 4096}, {NULL, 0}};

static struct sharding_mesh mesh_of(const char *letters, const uint32_t *size)
{
    struct sharding_mesh mesh = {0};
    for (; letters[mesh.axis_count] != '\0'; mesh.axis_count++) {
        mesh.letter[mesh.axis_count] = letters[mesh.axis_count];
        mesh.size[mesh.axis_count] = size[mesh.axis_count];
    }
    return mesh;
}

static struct sharding array_of(const struct sharding_mesh *mesh, const char *text)
{
    struct sharding array;
    case_ok(sharding_read(mesh, sizes, text, "/", &array, &case_error));
    return array;
}

static void notation_is_read_and_printed_alike(void **state)
{
    (void)state;
    static const char *const texts[] = {"A[I, J]",     "A[I_X, J_Y]",          "A[I_XY, J]",
                                        "A[I_YX, J]",  "W_in[D_X, F_Y] {U_Z}", "A[I] {U_XYZ}",
                                        "A[I_Z, J, K]"};
    struct sharding_mesh const mesh = mesh_of("XYZ", (uint32_t[]){2, 8, 2});
    char buffer[SHARDING_TEXT_BYTES];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct sharding const array = array_of(&mesh, texts[i]);
        assert_string_equal(sharding_text(&mesh, &array, buffer), texts[i]);
    }
    struct sharding const loose = array_of(&mesh, "  A[ I_X ,J]{ U_Y }  ");
    assert_string_equal(sharding_text(&mesh, &loose, buffer), "A[I_X, J] {U_Y}");
}

/* int8[128, 2048], A[I_XY, J] on X:2 Y:8 Z:2: 16 KiB a device, 512 KiB in all (the book, 3.1). */
static void the_pop_quiz_of_chapter_3_comes_out(void **state)
{
    (void)state;
    struct sharding_mesh const mesh = mesh_of("XYZ", (uint32_t[]){2, 8, 2});
    struct sharding const array = array_of(&mesh, "A[I_XY, J]");
    char buffer[SHARDING_TEXT_BYTES];
    assert_int_equal(sharding_local_elements(&mesh, &array), 128 * 2048 / 16);
    assert_string_equal(sharding_shape_text(&mesh, &array, buffer), "[8, 2048]");
    /* Unreduced axes do not divide. */
    struct sharding const partial = array_of(&mesh, "A[I_X, J] {U_Y}");
    assert_int_equal(sharding_local_elements(&mesh, &partial), 64 * 2048);
    /* 128 rows on three ranks. */
    struct sharding_mesh const three = mesh_of("X", (uint32_t[]){3});
    struct sharding const flat = array_of(&three, "A[I_X, J]");
    assert_true(sharding_is_flat(&three, &flat) && !sharding_is_flat(&mesh, &array));
    assert_string_equal(sharding_shape_text(&three, &flat, buffer), "[87382]");
}

/* What one chip holds is exact where all chips together hold 2^64 elements and more. */
static void arrays_of_all_chips_may_exceed_64_bits(void **state)
{
    (void)state;
    struct sharding_size const large[] = {
        {"I", UINT64_C(1) << 40}, {"J", UINT64_C(1) << 30}, {NULL, 0}};
    struct sharding_mesh const mesh = mesh_of("XY", (uint32_t[]){1 << 10, 1 << 6});
    struct sharding array;
    case_ok(sharding_read(&mesh, large, "A[I_X, J_Y]", "/", &array, &case_error));
    assert_true(sharding_local_elements(&mesh, &array) == UINT64_C(1) << 54);
    case_ok(sharding_read(&mesh, large, "A[I, J]", "/", &array, &case_error));
    assert_true(sharding_local_elements(&mesh, &array) == UINT64_MAX);
}

static void refused(const char *text, const char *part)
{
    struct sharding_mesh const mesh = mesh_of("XYZ", (uint32_t[]){2, 8, 3});
    struct sharding array;
    case_refused(sharding_read(&mesh, sizes, text, "/spec", &array, &case_error), STATUS_INVALID,
                 "/spec", part);
}

static void nonsense_is_refused_with_the_reason(void **state)
{
    (void)state;
    refused("A[I_X, J_X]", "each axis once"); /* The book: "nonsensical, forbidden". */
    refused("A[I_XX, J]", "each axis once");
    refused("A[I_X, J] {U_X}", "each axis once");
    refused("A[I, J] {U_XX}", "each axis once");
    refused("A[I_W, J]", "a mesh axis");
    refused("A[Q, J]", "whose size is known");
    refused("A[I_, J]", "a mesh axis");
    refused("A[]", "a name");
    refused("[I, J]", "a name");
    refused("A", "\"[\"");
    refused("A[I, J", "\"]\"");
    refused("A[I, J] {X}", "\"U_\"");
    refused("A[I, J] {U_X", "\"}\"");
    refused("A[I, J] and more", "nothing more");
    refused("A[I, J, K, D, F]", "fewer dimensions");
    refused("A_name_that_is_much_too_long[I]", "a shorter name");
    refused("", "a name");
}

enum { X = 1, Y = 2 };

struct product_row {
    const char *left, *right, *wanted;
    uint32_t gather_left, gather_right, gather_result, scatter, all_reduce;
    const char *result; /* As multiplied. */
};

static void products_hold(const struct product_row *rows, size_t count)
{
    struct sharding_mesh const mesh = mesh_of("XY", (uint32_t[]){4, 8});
    for (size_t i = 0; i < count; i++) {
        const struct product_row *row = &rows[i];
        struct sharding const left = array_of(&mesh, row->left);
        struct sharding const right = array_of(&mesh, row->right);
        struct sharding const wanted = array_of(&mesh, row->wanted);
        struct sharding_product product;
        char buffer[SHARDING_TEXT_BYTES];
        case_ok(sharding_multiply(&mesh, &left, &right, &wanted, &product, &case_error));
        assert_int_equal(product.gather_left, row->gather_left);
        assert_int_equal(product.gather_right, row->gather_right);
        assert_int_equal(product.gather_result, row->gather_result);
        assert_int_equal(product.scatter, row->scatter);
        assert_int_equal(product.all_reduce, row->all_reduce);
        assert_string_equal(sharding_text(&mesh, &product.result, buffer), row->result);
        if (row->all_reduce == 0)
            assert_string_equal(sharding_text(&mesh, &product.scattered, buffer), row->wanted);
    }
}

static void products_need_what_the_four_cases_say(void **state)
{
    (void)state;
    static const struct product_row rows[] = {
        /* Case 1 needs no communication. */
        {"A[I_X, J]", "B[J, K_Y]", "C[I_X, K_Y]", 0, 0, 0, 0, 0, "C[I_X, K_Y]"},
        /* Case 2 gathers the operand that is split where it contracts; over two axes, twice. */
        {"A[I, J_X]", "B[J, K]", "C[I, K]", X, 0, 0, 0, 0, "C[I, K]"},
        {"A[I, J_X]", "B[J_Y, K]", "C[I, K]", X, Y, 0, 0, 0, "C[I, K]"},
        /* Case 3 multiplies partial sums and reduces them. */
        {"A[I, J_X]", "B[J_X, K]", "C[I, K]", 0, 0, 0, 0, X, "C[I, K] {U_X}"},
        {"A[I, J_X]", "B[J_X, K]", "C[I, K_X]", 0, 0, 0, X, 0, "C[I, K] {U_X}"},
        /* Case 4 gathers the operand that the result does not keep. */
        {"A[I_X, J]", "B[J, K_X]", "C[I_X, K]", 0, X, 0, 0, 0, "C[I_X, K]"},
        {"A[I_X, J]", "B[J, K_X]", "C[I, K_X]", X, 0, 0, 0, 0, "C[I, K_X]"},
        /* A result that is more split than wanted is gathered after. */
        {"A[I_X, J]", "B[J, K]", "C[I, K]", 0, 0, X, 0, 0, "C[I_X, K]"},
    };
    products_hold(rows, sizeof rows / sizeof *rows);
}

/* The six products of FSDP + TP (the book, 5.1.4): which collective each of them needs. */
static void fsdp_with_tp_falls_out_of_the_cases(void **state)
{
    (void)state;
    static const struct product_row rows[] = {
        {"In[B_X, D_Y]", "W_in[D_X, F_Y]", "Tmp[B_X, F_Y]", Y, X, 0, 0, 0, "Tmp[B_X, F_Y]"},
        {"Tmp[B_X, F_Y]", "W_out[F_Y, D_X]", "Out[B_X, D_Y]", 0, X, 0, Y, 0, "Out[B_X, D] {U_Y}"},
        {"Tmp[B_X, F_Y]", "dOut[B_X, D_Y]", "dW_out[F_Y, D_X]", 0, Y, 0, X, 0,
         "dW_out[F_Y, D] {U_X}"},
        {"dOut[B_X, D_Y]", "W_out[F_Y, D_X]", "dTmp[B_X, F_Y]", Y, X, 0, 0, 0, "dTmp[B_X, F_Y]"},
        {"In[B_X, D_Y]", "dTmp[B_X, F_Y]", "dW_in[D_X, F_Y]", Y, 0, 0, X, 0, "dW_in[D, F_Y] {U_X}"},
        {"dTmp[B_X, F_Y]", "W_in[D_X, F_Y]", "dIn[B_X, D_Y]", 0, X, 0, Y, 0, "dIn[B_X, D] {U_Y}"},
        /* Activations by tokens: the same collectives, on another dimension. */
        {"In[B_XY, D]", "W_in[D_X, F_Y]", "Tmp[B_X, F_Y]", Y, X, 0, 0, 0, "Tmp[B_X, F_Y]"},
    };
    products_hold(rows, sizeof rows / sizeof *rows);
}

static void a_result_with_a_dimension_of_its_own_is_refused(void **state)
{
    (void)state;
    struct sharding_mesh const mesh = mesh_of("XY", (uint32_t[]){4, 8});
    struct sharding const a = array_of(&mesh, "A[I, J]");
    struct sharding const b = array_of(&mesh, "B[J, K]");
    struct sharding const c = array_of(&mesh, "C[I, F]");
    struct sharding_product product;
    case_refused(sharding_multiply(&mesh, &a, &b, &c, &product, &case_error), STATUS_INVALID, NULL,
                 "dimension F is neither in A nor in B");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notation_is_read_and_printed_alike),
        cmocka_unit_test(the_pop_quiz_of_chapter_3_comes_out),
        cmocka_unit_test(arrays_of_all_chips_may_exceed_64_bits),
        cmocka_unit_test(nonsense_is_refused_with_the_reason),
        cmocka_unit_test(products_need_what_the_four_cases_say),
        cmocka_unit_test(fsdp_with_tp_falls_out_of_the_cases),
        cmocka_unit_test(a_result_with_a_dimension_of_its_own_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
