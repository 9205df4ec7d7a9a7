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
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <nccl.h>

static const double WARM_UP_S = 3;
static const int SAMPLES = 11, CALLS = 20, CALLS_OF_LARGE = 5;
static const size_t LEAST_BYTES = size_t(8) << 10, MOST_BYTES = size_t(512) << 20,
                    LARGE_BYTES = size_t(32) << 20;

static void must(bool holds, const std::string &what)
{
    if (!holds) throw std::runtime_error(what);
}

static void cuda(cudaError_t error)
{
    must(error == cudaSuccess, cudaGetErrorString(error));
}

static void nccl(ncclResult_t result)
{
    must(result == ncclSuccess, ncclGetErrorString(result));
}

// Numbers from -1 to 1, the same in each run (the mixer of splitmix64).
__global__ void fill(__nv_bfloat16 *array, size_t count, uint64_t seed)
{
    size_t const step = size_t(gridDim.x) * blockDim.x;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        uint64_t x = (i + seed) * UINT64_C(0x9e3779b97f4a7c15);
        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
        array[i] = __nv_bfloat16(float(x >> 40) / float(1 << 23) - 1.0f);
    }
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
            fill<<<1024, 256>>>(static_cast<__nv_bfloat16 *>(own.from), MOST_BYTES / 2, i);
            cuda(cudaGetLastError());
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

static int rows = 0;

static void measure(Group &group, const Collective &collective, size_t bytes)
{
    int const ranks = int(group.gpu.size());
    int const calls = bytes >= LARGE_BYTES ? CALLS_OF_LARGE : CALLS;
    auto const call = [&](const Gpu &own) { collective.call(own, ranks, bytes); };
    std::vector<float> times_us(SAMPLES);
    group.call_us(calls, call);
    for (float &time_us : times_us) time_us = group.call_us(calls, call);
    std::sort(times_us.begin(), times_us.end());
    float const median_us = times_us[SAMPLES / 2];
    std::printf("collective kind=%s ranks=%d bytes=%zu repeats=%d median=%.4fus low=%.4fus "
                "high=%.4fus\n",
                collective.name, ranks, bytes, SAMPLES, median_us, times_us[SAMPLES / 10],
                times_us[SAMPLES * 9 / 10]);
    std::fflush(stdout);
    std::fprintf(stderr, "%s ranks=%d bytes=%zu: busbw %.2f GB/s\n", collective.name, ranks, bytes,
                 double(bytes) / median_us * 1e-3 * (collective.both_ways ? 2 : 1) * (ranks - 1) /
                     ranks);
    rows++;
}

static void warm_up(Group &group)
{
    auto const begin = std::chrono::steady_clock::now();
    int const ranks = int(group.gpu.size());
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() <
           WARM_UP_S)
        group.call_us(CALLS, [&](const Gpu &own) { COLLECTIVES[0].call(own, ranks, LARGE_BYTES); });
}

static void head()
{
    cudaDeviceProp device;
    int driver = 0, version = 0;
    cuda(cudaGetDeviceProperties(&device, 0));
    cuda(cudaDriverGetVersion(&driver));
    nccl(ncclGetVersion(&version));
    std::printf("podsim_rows 1\nscript nccl\ndevice %s\ndriver CUDA %d.%d\nlibrary NCCL %d.%d.%d\n",
                device.name, driver / 1000, driver % 1000 / 10, version / 10000,
                version % 10000 / 100, version % 100);
}

static std::string printable(std::string text)
{
    for (char &c : text)
        if (c < ' ' || c > '~') c = '?';
    return text;
}

static void group_measure(int ranks, bool quick)
{
    Group group(ranks);
    warm_up(group);
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
        head();
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
