/* Algorithms out of files: what the reader refuses, and where it says that it is. */
#include <stdio.h>
#include <string.h>

#include "sim/base/strbuf.h"
#include "sim/collective/msccl.h"
#include "tests/support/case.h"

#define STEP(s, type, from, source, to, destination, depid, deps, hasdep)                          \
    "      <step s=\"" s "\" type=\"" type "\" srcbuf=\"" from "\" srcoff=\"" source               \
    "\" dstbuf=\"" to "\" dstoff=\"" destination "\" cnt=\"1\" depid=\"" depid "\" deps=\"" deps   \
    "\" hasdep=\"" hasdep "\"/>\n"

/* Two GPUs sum one chunk: each sends its own, receives into scratch, and another threadblock adds.
 * The first step is on line 4, the reduction of GPU 0 on line 8. */
static const char good[] =
    "<algo name=\"pair, sum\" proto=\"LL\" nchannels=\"1\" nchunksperloop=\"1\" ngpus=\"2\" "
    "coll=\"allreduce\" inplace=\"1\">\n"
    "  <gpu id=\"0\" i_chunks=\"1\" o_chunks=\"0\" s_chunks=\"1\">\n"
    "    <tb id=\"0\" send=\"1\" recv=\"1\" chan=\"0\">\n" /* Line 3. */
    STEP("0", "s", "i", "0", "s", "0", "-1", "-1", "0")
        STEP("1", "r", "i", "0", "s", "0", "-1", "-1",
             "1") "    </tb>\n"
                  "    <tb id=\"1\" send=\"-1\" recv=\"-1\" chan=\"0\">\n" STEP(
                      "0", "re", "s", "0", "i", "0", "0", "1",
                      "0") "    </tb>\n"
                           "  </gpu>\n"
                           "  <gpu id=\"1\" i_chunks=\"1\" o_chunks=\"0\" s_chunks=\"1\">\n"
                           "    <tb id=\"0\" send=\"0\" recv=\"0\" chan=\"0\">\n" /* Line 12. */
    STEP("0", "s", "i", "0", "s", "0", "-1", "-1", "0")
        STEP("1", "r", "i", "0", "s", "0", "-1", "-1",
             "1") "    </tb>\n"
                  "    <tb id=\"1\" send=\"-1\" recv=\"-1\" chan=\"0\">\n" STEP(
                      "0", "re", "s", "0", "i", "0", "0", "1", "0") "    </tb>\n"
                                                                    "  </gpu>\n"
                                                                    "</algo>\n";

/* `text` with the `nth` occurrence (from 0) of one string replaced by another. */
static void refuses(const char *from, unsigned nth, const char *to, const char *where,
                    const char *message)
{
    struct strbuf text = {0};
    const struct msccl_script *script = NULL;
    const char *at = strstr(good, from);
    for (; at != NULL && nth > 0; nth--) at = strstr(at + 1, from);
    if (at == NULL) fail_msg("the script has no %s", from);
    strbuf_add_bytes(&text, good, (uint64_t)(at - good));
    strbuf_add(&text, "%s%s", to, at + strlen(from));
    enum status const status =
        msccl_read(case_arena, "a.xml", text.bytes, text.size_bytes, &script, &case_error);
    strbuf_free(&text);
    case_refused(status, STATUS_OK, where, message);
}

static void test_good(void **state)
{
    (void)state;
    const struct msccl_script *script = NULL;
    case_ok(msccl_read(case_arena, "a.xml", good, strlen(good), &script, &case_error));
    assert_string_equal(script->name, "pair__sum");
    assert_string_equal(script->protocol, "LL");
    assert_int_equal(script->kind, COLLECTIVE_ALL_REDUCE);
    assert_int_equal(script->rank_count, 2);
    assert_int_equal(script->message_count, 2);
    assert_int_equal(script->primitive.lane_count, 1);
    assert_int_equal(msccl_message(script, 0, 1, 0).peer, 0);
}

static void test_xml(void **state)
{
    (void)state;
    refuses("</tb>", 0, "</gpu>", "a.xml:6:7", "not XML: mismatched tag");
    refuses("</algo>", 0, "", "a.xml:21:1", "not XML: no element found");
    refuses("<gpu id=\"1\"", 0, "x<gpu id=\"1\"", "a.xml:11:3", "text between elements");
    refuses("<algo", 0, "<!DOCTYPE a [<!ENTITY b \"c\">]><algo", "a.xml:1:13", "document type");
    refuses("<tb id=\"1\"", 0, "<tbb id=\"1\"", "a.xml:7:5",
            "no element \"tbb\"; the nearest is tb");
    refuses("<step", 0, "<op", "a.xml:4:7", "old_format=True");
    refuses("<tb id=\"0\"", 0, "<step s=\"0\"/><tb id=\"0\"", "a.xml:3:5", "step stands inside tb");
}

static void test_attributes(void **state)
{
    (void)state;
    refuses(" cnt=\"1\"", 1, "", "a.xml:5:7", "step lacks its attribute \"cnt\"");
    refuses("srcbuf", 0, "srcbuff", "a.xml:4:7", "no attribute \"srcbuff\"; the nearest is srcbuf");
    refuses("type=\"re\"", 0, "type=\"rr\"", "a.xml:8:7",
            "type=\"rr\" of step is not known; the nearest is");
    refuses("srcbuf=\"i\"", 0, "srcbuf=\"x\"", "a.xml:4:7", "srcbuf=\"x\" of step is not known");
    refuses("proto=\"LL\"", 0, "proto=\"LL129\"", "a.xml:1:1", "the nearest is \"LL128\"");
    refuses("coll=\"allreduce\"", 0, "coll=\"allreduec\"", "a.xml:1:1", "the nearest is allreduce");
    refuses("ngpus=\"2\"", 0, "ngpus=\"two\"", "a.xml:1:1",
            "ngpus=\"two\" of algo is not a number");
    refuses("ngpus=\"2\"", 0, "ngpus=\"3\"", "a.xml:1:1",
            "ngpus=\"3\", but the file has 2 gpu elements");
    refuses("ngpus=\"2\"", 0, "ngpus=\"99999999999999999999\"", "a.xml:1:1", "not between 2 and");
    refuses("inplace=\"1\"", 0, "inplace=\"2\"", "a.xml:1:1", "not between 0 and 1");
    refuses("s_chunks=\"1\"", 0, "s_chunks=\"65537\"", "a.xml:2:3", "not between 0 and 65536");
    refuses("pair, sum", 0, "", "a.xml:1:1", "a name has from 1 to");
    refuses("pair, sum", 0,
            "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
            "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
            "abcdefghijklmnopqrstuvwxy",
            "a.xml:1:1", "a name has from 1 to");
    refuses("send=\"1\"", 0, "send=\"2\"", "a.xml:3:5", "not between -1 and 1");
    refuses("send=\"1\"", 0, "send=\"0\"", "a.xml:3:5", "its own peer");
    refuses("send=\"1\"", 0, "send=\"-1\"", "a.xml:4:7", "a threadblock whose send is -1");
    refuses("chan=\"0\"", 0, "chan=\"1\"", "a.xml:3:5", "chan=\"1\" of tb is not between 0 and 0");
    refuses(" s=\"1\"", 0, " s=\"2\"", "a.xml:5:7", "s=\"2\" of step comes where 1 is expected");
    refuses("dstoff=\"0\"", 1, "dstoff=\"1\"", "a.xml:5:7", "outside buffer s of GPU 0");
    refuses("srcoff=\"0\"", 0, "srcoff=\"-1\"", "a.xml:4:7", "outside buffer i of GPU 0");
    refuses("coll=\"allreduce\"", 0, "coll=\"allgather\"", "a.xml:1:1", "not a multiple of the 2");
}

static void test_peers(void **state)
{
    (void)state;
    refuses("recv=\"0\"", 0, "recv=\"-1\"", "a.xml:14:7", "whose recv is -1");
    refuses("type=\"r\"", 1, "type=\"nop\"", "a.xml:4:7",
            "GPU 0 sends to GPU 1 over channel 0, and no threadblock there receives");
    refuses("type=\"s\"", 1, "type=\"nop\"", "a.xml:5:7",
            "GPU 0 receives from GPU 1 over channel 0, and no threadblock there sends");
}

static void test_dependencies(void **state)
{
    (void)state;
    refuses("depid=\"0\"", 0, "depid=\"2\"", "a.xml:8:7", "the GPU has 2 threadblocks");
    refuses("deps=\"1\"", 0, "deps=\"2\"", "a.xml:8:7", "threadblock 0 has 2 steps");
    refuses("deps=\"1\"", 0, "deps=\"0\"", "a.xml:8:7", "whose hasdep is 0");
    refuses("depid=\"0\" deps=\"1\"", 0, "depid=\"-1\" deps=\"-1\"", "a.xml:8:7",
            "to which nothing has been written");
}

/* GPU 0 sends to GPU 1 over more channels than one message of a plan can take side by side. */
static void test_connections(void **state)
{
    enum { CONNECTIONS = MSCCL_LANES_MAX + 1 };
    struct strbuf text = {0};
    const struct msccl_script *script = NULL;
    (void)state;
    strbuf_add(&text,
               "<algo name=\"many\" proto=\"LL\" nchannels=\"%d\" nchunksperloop=\"%d\" "
               "ngpus=\"2\" coll=\"allreduce\" inplace=\"1\">\n",
               CONNECTIONS, 2 * CONNECTIONS);
    for (int gpu = 0; gpu < 2; gpu++) {
        strbuf_add(&text, "<gpu id=\"%d\" i_chunks=\"%d\" o_chunks=\"0\" s_chunks=\"%d\">\n", gpu,
                   2 * CONNECTIONS, 2 * CONNECTIONS);
        for (int i = 0; i < CONNECTIONS; i++)
            strbuf_add(&text,
                       "<tb id=\"%d\" send=\"%d\" recv=\"%d\" chan=\"%d\">\n"
                       "<step s=\"0\" type=\"s\" srcbuf=\"i\" srcoff=\"%d\" dstbuf=\"s\" "
                       "dstoff=\"%d\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n"
                       "<step s=\"1\" type=\"r\" srcbuf=\"i\" srcoff=\"%d\" dstbuf=\"s\" "
                       "dstoff=\"%d\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n</tb>\n",
                       i, 1 - gpu, 1 - gpu, i, i, i, i, i);
        strbuf_add(&text, "</gpu>\n");
    }
    strbuf_add(&text, "</algo>\n");
    enum status const status =
        msccl_read(case_arena, "a.xml", text.bytes, text.size_bytes, &script, &case_error);
    strbuf_free(&text);
    case_refused(status, STATUS_LIMIT, "a.xml", "connections one way");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),         cmocka_unit_test(test_xml),
        cmocka_unit_test(test_attributes),   cmocka_unit_test(test_peers),
        cmocka_unit_test(test_dependencies), cmocka_unit_test(test_connections),
    };
    return cmocka_run_group_tests_name("script", tests, case_arena_up, case_arena_down);
}
