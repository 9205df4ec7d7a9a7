/*
 * Measures matmuls of cuBLAS while a copy holds some cores (SMs) of the GPU, as a collective does,
 * for `podsim calibrate`.
 *
 *     nvcc -O2 -std=c++17 -o overlap overlap.cu -lcublas
 *     ./overlap > overlap.txt
 *     cat rows.txt overlap.txt > all.txt
 *     podsim calibrate all.txt --chip h100-sxm -o mine.json
 *
 * rows.txt is of another program, which measures kernels. A line of standard output is a
 * measurement; docs/calibrate.md of podsim has the format. Progress goes to standard error. Needs
 * CUDA 12 and 4 GB of memory. Nothing else should use the GPU meanwhile.
 *
 * How a product is measured: operands are random numbers in bf16, because constant ones draw less
 * power. A copy of 0, 8, 16, 24 or 32 blocks runs meanwhile. A block takes all of a core's shared
 * memory, so that no block of a matmul has room there, and copies in HBM until it is told to
 * stop. Products begin once all blocks of the copy run. A sample is as many products as take about
 * 20 ms, without pauses; events around them give the time. The median of 11 samples counts. The
 * copy's bytes are counted over the same time, each both read and written.
 */
#include <cublas_v2.h>

static const double SAMPLE_US = 20000, START_S = 5;
static const int SAMPLES = 11, BLOCKS_MOST = 32, THREADS = 512;
static const size_t COPY_BYTES = size_t(1) << 30, ROUND_BYTES = size_t(1) << 20;

static const std::vector<int> BLOCKS = {0, 8, 16, 24, 32};
struct Shape {
    int m, n, k;
};
static const std::vector<Shape> SHAPES = {{4096, 4096, 4096},  {8192, 8192, 8192},
                                          {16384, 4096, 4096}, {8192, 1024, 8192},
                                          {8192, 28672, 4096}, {2048, 8192, 8192}};

static void blas(cublasStatus_t status)
{
    must(status == CUBLAS_STATUS_SUCCESS, cublasGetStatusString(status));
}

// What the host and the blocks of a copy tell each other, in memory of the host.
struct Shared {
    int stops;
    unsigned long long rounds[BLOCKS_MOST]; // Of ROUND_BYTES that a block copied, and one more.
};

// Each block copies its own part of an array, round by round, until the host stops it.
__global__ void copy(const uint4 *from, uint4 *to, size_t block_count, volatile Shared *shared)
{
    size_t const round = ROUND_BYTES / sizeof(uint4), part = block_count / round * round;
    from += blockIdx.x * part;
    to += blockIdx.x * part;
    unsigned long long rounds = 0;
    for (size_t at = 0;; at = at + round < part ? at + round : 0) {
        if (threadIdx.x == 0) shared->rounds[blockIdx.x] = ++rounds;
        if (__syncthreads_or(threadIdx.x == 0 && shared->stops)) return;
        for (size_t i = threadIdx.x; i < round; i += blockDim.x) to[at + i] = from[at + i];
    }
}

// A copy that runs as long as it lives.
class Copy
{
  public:
    Copy(int count, int shared_bytes) : blocks(count), from(COPY_BYTES), to(COPY_BYTES)
    {
        void *device = nullptr, *host = nullptr;
        cuda(cudaHostAlloc(&host, sizeof(Shared), cudaHostAllocMapped));
        shared = static_cast<volatile Shared *>(host);
        reset();
        cuda(cudaHostGetDevicePointer(&device, host, 0));
        cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        cuda(cudaFuncSetAttribute(copy, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
        randomize<__nv_bfloat16>(from.at, COPY_BYTES / 2, 3);
        cuda(cudaDeviceSynchronize());
        if (blocks == 0) return;
        copy<<<blocks, THREADS, shared_bytes, stream>>>(
            static_cast<const uint4 *>(from.at), static_cast<uint4 *>(to.at),
            COPY_BYTES / sizeof(uint4) / blocks, static_cast<volatile Shared *>(device));
        cuda(cudaGetLastError());
        Watch const watch;
        while (!all_run())
            if (watch.seconds() > START_S) {
                stop();
                throw std::runtime_error("the blocks of the copy do not begin");
            }
    }

    Copy(const Copy &) = delete;

    ~Copy()
    {
        stop();
        cudaStreamDestroy(stream);
        cudaFreeHost(const_cast<Shared *>(shared));
    }

    // Bytes that were read or written until now.
    double moved() const
    {
        double rounds = 0;
        for (int i = 0; i < blocks; i++) rounds += double(shared->rounds[i]);
        return rounds * 2 * double(ROUND_BYTES);
    }

  private:
    void reset()
    {
        shared->stops = 0;
        for (int i = 0; i < BLOCKS_MOST; i++) shared->rounds[i] = 0;
    }

    bool all_run() const
    {
        bool all = true;
        for (int i = 0; i < blocks; i++) all = all && shared->rounds[i] > 1;
        return all;
    }

    void stop()
    {
        shared->stops = 1;
        cudaStreamSynchronize(stream);
    }

    int blocks;
    Memory from, to;
    volatile Shared *shared;
    cudaStream_t stream;
};

// The products of a layer's forward pass, TN: y[m, n] = x[m, k] W[n, k]^T by rows; cuBLAS has
// columns, so that W is its first operand.
struct Product {
    Shape side;
    cublasHandle_t handle;
    cudaStream_t stream;
    cudaEvent_t begin, end;
    Memory x, weight, y;

    Product(const Shape &of, cublasHandle_t with, cudaStream_t on)
        : side(of), handle(with), stream(on), x(size_t(of.m) * of.k * 2),
          weight(size_t(of.n) * of.k * 2), y(size_t(of.m) * of.n * 2)
    {
        randomize<__nv_bfloat16>(x.at, size_t(of.m) * of.k, 1);
        randomize<__nv_bfloat16>(weight.at, size_t(of.n) * of.k, 2);
        cuda(cudaEventCreate(&begin));
        cuda(cudaEventCreate(&end));
        cuda(cudaDeviceSynchronize());
        call_us(3); // Loads the kernels, which waits for an idle GPU.
    }

    ~Product()
    {
        cudaEventDestroy(begin);
        cudaEventDestroy(end);
    }

    float call_us(int count)
    {
        float const one = 1, zero = 0;
        float ms = 0;
        cuda(cudaEventRecord(begin, stream));
        for (int i = 0; i < count; i++)
            blas(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, side.n, side.m, side.k, &one,
                              weight.at, CUDA_R_16BF, side.k, x.at, CUDA_R_16BF, side.k, &zero,
                              y.at, CUDA_R_16BF, side.n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
        cuda(cudaEventRecord(end, stream));
        cuda(cudaStreamSynchronize(stream));
        cuda(cudaEventElapsedTime(&ms, begin, end));
        return ms * 1e3f / count;
    }
};

static void measure(Product &product, int blocks, int shared_bytes)
{
    Copy copy(blocks, shared_bytes);
    std::vector<float> times_us(SAMPLES);
    int const calls = std::max(1, int(SAMPLE_US / product.call_us(3)));
    product.call_us(calls);
    double const moved = copy.moved();
    Watch const watch;
    for (float &time_us : times_us) time_us = product.call_us(calls);
    double const copied = (copy.moved() - moved) / watch.seconds();
    std::string const held = blocks == 0 ? "" : " copied=" + std::to_string(copied / 1e9) + "GB/s";
    row("overlap format=bf16 layout=TN m=" + std::to_string(product.side.m) +
            " n=" + std::to_string(product.side.n) + " k=" + std::to_string(product.side.k) +
            " cores=" + std::to_string(blocks) + held,
        times_us);
}

static std::string library(cublasHandle_t handle)
{
    int runtime = 0, version = 0;
    cuda(cudaRuntimeGetVersion(&runtime));
    blas(cublasGetVersion(handle, &version));
    return "cuBLAS " + std::to_string(version) + ", " + cuda_version(runtime);
}

// Bytes of a core's shared memory that a block of the copy takes.
static int shared_bytes_of_core()
{
    cudaDeviceProp device;
    cuda(cudaGetDeviceProperties(&device, 0));
    must(device.multiProcessorCount > BLOCKS_MOST, "the GPU has too few cores");
    return int(device.sharedMemPerBlockOptin);
}

int main(int argument_count, char **)
{
    if (argument_count > 1) {
        std::fprintf(stderr, "usage: overlap\n");
        return 1;
    }
    try {
        cublasHandle_t handle;
        cudaStream_t stream;
        // A stream that does not wait for the copy's.
        cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        blas(cublasCreate(&handle));
        blas(cublasSetStream(handle, stream));
        head("overlap", library(handle));
        int const shared_bytes = shared_bytes_of_core();
        for (const Shape &shape : SHAPES) {
            std::fprintf(stderr, "m=%d n=%d k=%d\n", shape.m, shape.n, shape.k);
            Product product(shape, handle, stream);
            if (rows == 0) warm_up([&] { product.call_us(20); });
            for (int blocks : BLOCKS) {
                try {
                    measure(product, blocks, shared_bytes);
                } catch (const std::exception &error) {
                    (void)cudaGetLastError();
                    std::printf("skipped overlap m=%d n=%d k=%d cores=%d: %s\n", shape.m, shape.n,
                                shape.k, blocks, printable(error.what()).c_str());
                }
            }
        }
        std::printf("end %d\n", rows);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "overlap: %s\n", error.what());
        return 1;
    }
    return 0;
}
