/*
 * Measures NCCL between the GPUs of one node, for `podsim calibrate`.
 *
 *     nvcc -O2 -std=c++17 -o collectives collectives.cu -lnccl
 *     ./collectives [--quick] > collectives.txt
 *     cat rows.txt collectives.txt > all.txt
 *     podsim calibrate all.txt --chip h100-sxm -o mine.json
 *
 * rows.txt is of another program, which measures kernels. A line of standard output is a
 * measurement; docs/calibrate.md of podsim has the format. Progress goes to standard error, with
 * the bus bandwidth of nccl-tests. Needs NCCL 2.7, and two GPUs at least. Nothing else should use
 * the GPUs meanwhile. --quick leaves every second size out.
 *
 * How a collective is measured: as nccl-tests does. One process drives 2, 4 and 8 GPUs, as many as
 * there are. Arrays are of random numbers in bf16, out of place. A sample is 20 calls, 5 of the
 * largest, that follow each other, behind one that is not timed, where GPUs wait for each other.
 * Events of each GPU around the calls give its time, the slowest GPU counts. The median of 11
 * samples is taken. NCCL chooses algorithms and protocols, unless variables such as NCCL_ALGO say
 * them.
 */
#include <nccl.h>

static const int SAMPLES = 11, CALLS = 20, CALLS_OF_LARGE = 5;
static const size_t LEAST_BYTES = size_t(8) << 10, MOST_BYTES = size_t(512) << 20,
                    LARGE_BYTES = size_t(32) << 20;

static void nccl(ncclResult_t result)
{
    must(result == ncclSuccess, ncclGetErrorString(result));
}

// What one GPU has.
struct Gpu {
    int device;
    ncclComm_t comm;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    void *from, *to; // MOST_BYTES each.
};

// The first GPUs of the node, as one group.
struct Group {
    std::vector<Gpu> gpu;

    explicit Group(int ranks) : gpu(ranks)
    {
        std::vector<int> devices(ranks);
        std::vector<ncclComm_t> comms(ranks);
        for (int i = 0; i < ranks; i++) devices[i] = i;
        nccl(ncclCommInitAll(comms.data(), ranks, devices.data()));
        for (int i = 0; i < ranks; i++) {
            Gpu &own = gpu[i];
            own.device = i;
            own.comm = comms[i];
            cuda(cudaSetDevice(i));
            cuda(cudaStreamCreate(&own.stream));
            cuda(cudaEventCreate(&own.begin));
            cuda(cudaEventCreate(&own.end));
            cuda(cudaMalloc(&own.from, MOST_BYTES));
            cuda(cudaMalloc(&own.to, MOST_BYTES));
            randomize<__nv_bfloat16>(own.from, MOST_BYTES / 2, i);
            cuda(cudaDeviceSynchronize());
        }
    }

    Group(const Group &) = delete;

    ~Group()
    {
        for (Gpu &own : gpu) {
            cudaSetDevice(own.device);
            cudaFree(own.from);
            cudaFree(own.to);
            cudaEventDestroy(own.begin);
            cudaEventDestroy(own.end);
            cudaStreamDestroy(own.stream);
            ncclCommDestroy(own.comm);
        }
    }

    void all_call(const std::function<void(const Gpu &)> &call)
    {
        nccl(ncclGroupStart());
        for (const Gpu &own : gpu) call(own);
        nccl(ncclGroupEnd());
    }

    void all_record(cudaEvent_t Gpu::*event)
    {
        for (Gpu &own : gpu) {
            cuda(cudaSetDevice(own.device));
            cuda(cudaEventRecord(own.*event, own.stream));
        }
    }

    // The time of a call when `calls` follow each other, on the slowest GPU. Behind a call that is
    // not timed the GPUs begin together. No GPU is waited for before all ends are recorded.
    float call_us(int calls, const std::function<void(const Gpu &)> &call)
    {
        float slowest_ms = 0;
        all_call(call);
        all_record(&Gpu::begin);
        for (int i = 0; i < calls; i++) all_call(call);
        all_record(&Gpu::end);
        for (Gpu &own : gpu) {
            float ms = 0;
            cuda(cudaSetDevice(own.device));
            cuda(cudaStreamSynchronize(own.stream));
            cuda(cudaEventElapsedTime(&ms, own.begin, own.end));
            slowest_ms = std::max(slowest_ms, ms);
        }
        return slowest_ms * 1e3f / calls;
    }
};

// A collective by its name in nccl-tests. A size is a rank's array of AllReduce and AllToAll, and
// the whole array of AllGather and ReduceScatter.
struct Collective {
    const char *name;
    bool both_ways; // AllReduce: bytes pass twice.
    std::function<void(const Gpu &, int ranks, size_t bytes)> call;
};

static void all_to_all(const Gpu &own, int ranks, size_t bytes)
{
    size_t const part = bytes / ranks;
    nccl(ncclGroupStart());
    for (int to = 0; to < ranks; to++) {
        nccl(ncclSend(static_cast<char *>(own.from) + to * part, part / 2, ncclBfloat16, to,
                      own.comm, own.stream));
        nccl(ncclRecv(static_cast<char *>(own.to) + to * part, part / 2, ncclBfloat16, to, own.comm,
                      own.stream));
    }
    nccl(ncclGroupEnd());
}

static const std::vector<Collective> COLLECTIVES = {
    {"all_reduce", true,
     [](const Gpu &own, int, size_t bytes) {
         nccl(ncclAllReduce(own.from, own.to, bytes / 2, ncclBfloat16, ncclSum, own.comm,
                            own.stream));
     }},
    {"all_gather", false,
     [](const Gpu &own, int ranks, size_t bytes) {
         nccl(ncclAllGather(own.from, own.to, bytes / ranks / 2, ncclBfloat16, own.comm,
                            own.stream));
     }},
    {"reduce_scatter", false,
     [](const Gpu &own, int ranks, size_t bytes) {
         nccl(ncclReduceScatter(own.from, own.to, bytes / ranks / 2, ncclBfloat16, ncclSum,
                                own.comm, own.stream));
     }},
    {"all_to_all", false, all_to_all},
};

static void measure(Group &group, const Collective &collective, size_t bytes)
{
    int const ranks = int(group.gpu.size());
    int const calls = bytes >= LARGE_BYTES ? CALLS_OF_LARGE : CALLS;
    auto const call = [&](const Gpu &own) { collective.call(own, ranks, bytes); };
    std::vector<float> times_us(SAMPLES);
    group.call_us(calls, call);
    for (float &time_us : times_us) time_us = group.call_us(calls, call);
    float const median_us = row("collective kind=" + std::string(collective.name) +
                                    " ranks=" + std::to_string(ranks) +
                                    " bytes=" + std::to_string(bytes),
                                times_us);
    std::fprintf(stderr, "%s ranks=%d bytes=%zu: busbw %.2f GB/s\n", collective.name, ranks, bytes,
                 double(bytes) / median_us * 1e-3 * (collective.both_ways ? 2 : 1) * (ranks - 1) /
                     ranks);
}

static std::string library()
{
    int version = 0;
    nccl(ncclGetVersion(&version));
    return "NCCL " + std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) +
           "." + std::to_string(version % 100);
}

static void group_measure(int ranks, bool quick)
{
    Group group(ranks);
    warm_up([&] {
        group.call_us(CALLS, [&](const Gpu &own) { COLLECTIVES[0].call(own, ranks, LARGE_BYTES); });
    });
    for (const Collective &collective : COLLECTIVES)
        for (size_t bytes = LEAST_BYTES; bytes <= MOST_BYTES; bytes *= quick ? 4 : 2)
            measure(group, collective, bytes);
}

int main(int argument_count, char **arguments)
{
    bool const quick = argument_count == 2 && std::strcmp(arguments[1], "--quick") == 0;
    if (argument_count > 1 && !quick) {
        std::fprintf(stderr, "usage: collectives [--quick]\n");
        return 1;
    }
    try {
        int gpus = 0;
        cuda(cudaGetDeviceCount(&gpus));
        must(gpus >= 2, "one GPU has no collectives");
        head("nccl", library());
        for (int ranks : {2, 4, 8}) {
            if (ranks > gpus) continue;
            try {
                group_measure(ranks, quick);
            } catch (const std::exception &error) {
                std::printf("skipped collective ranks=%d: %s\n", ranks,
                            printable(error.what()).c_str());
            }
        }
        std::printf("end %d\n", rows);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "collectives: %s\n", error.what());
        return 1;
    }
    return 0;
}
