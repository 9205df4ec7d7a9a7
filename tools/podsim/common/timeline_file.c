#include "tools/podsim/common/timeline_file.h"

#include <string.h>

#include <zlib.h>

#include "sim/base/strbuf.h"

/* A window of 32 KiB, with gzip's frame. */
enum { GZIP_WINDOW_BITS = 15 + 16, GZIP_MEMORY = 8, GZIP_OS_UNKNOWN = 255, PIECE_BYTES = 1 << 18 };

static bool ends_in(const char *path, const char *ending)
{
    size_t const length = strlen(path), last = strlen(ending);
    return length > last && strcmp(path + length - last, ending) == 0;
}

enum status timeline_file_check(const struct options *options, struct error *reterr)
{
    const char *const trace = options_value(options, "--trace");
    if (trace == NULL && options_has(options, "--trace-chips"))
        return error_set(reterr, STATUS_INVALID, "--trace-chips", "needs --trace FILE");
    if (trace != NULL && strcmp(trace, "-") == 0)
        return error_set(reterr, STATUS_INVALID, "--trace", "a timeline needs a file of its own");
    if (trace != NULL && (ends_in(trace, ".json") || ends_in(trace, ".json.gz")))
        return error_set(reterr, STATUS_INVALID, "--trace",
                         "a timeline is Perfetto's protobuf, not JSON; name it FILE.pftrace, or "
                         "FILE.pftrace.gz to have it compressed (--json writes the result)");
    return STATUS_OK;
}

/* zlib takes less than 4 GiB at a time. */
static void deflate_all(z_stream *stream, const struct strbuf *from, struct strbuf *to)
{
    static unsigned char piece[PIECE_BYTES];
    uint64_t taken = 0;
    int code = Z_OK;
    while (code == Z_OK && !to->failed) {
        if (stream->avail_in == 0 && taken < from->size_bytes) {
            uint64_t const rest = from->size_bytes - taken;
            uint64_t const next = rest < PIECE_BYTES ? rest : PIECE_BYTES;
            /* It only reads; before version 1.2.5.2 it does not say so. */
            stream->next_in = (unsigned char *)from->bytes + taken;
            stream->avail_in = (uInt)next;
            taken += next;
        }
        stream->next_out = piece;
        stream->avail_out = sizeof piece;
        code = deflate(stream, taken == from->size_bytes ? Z_FINISH : Z_NO_FLUSH);
        strbuf_add_bytes(to, piece, sizeof piece - stream->avail_out);
    }
    to->failed = to->failed || code != Z_STREAM_END;
}

/* `to->failed` where there is no memory. */
static void gzip(const struct strbuf *from, struct strbuf *to)
{
    z_stream stream = {0};
    gz_header header = {.os = GZIP_OS_UNKNOWN};
    to->failed =
        from->failed || deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW_BITS,
                                     GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK;
    if (to->failed) return;
    to->failed = deflateSetHeader(&stream, &header) != Z_OK;
    if (!to->failed) deflate_all(&stream, from, to);
    (void)deflateEnd(&stream);
}

enum status timeline_file_write(struct output *output, const struct strbuf *timeline,
                                struct error *reterr)
{
    if (output->path == NULL || !ends_in(output->path, ".gz"))
        return output_write(output, timeline, reterr);
    struct strbuf packed = {0};
    gzip(timeline, &packed);
    enum status const status = output_write(output, &packed, reterr);
    strbuf_free(&packed);
    return status;
}
