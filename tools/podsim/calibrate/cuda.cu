/*
 * Measures cuBLAS, cuDNN and kernels between matmuls on one GPU, for `podsim calibrate`.
 *
 *     nvcc -O2 -std=c++17 -o measure measure.cu -lcublas -lcublasLt
 *     ./measure [--quick] > rows.txt
 *     podsim calibrate rows.txt --chip h100-sxm -o mine.json
 *
 * A line of standard output is a measurement; docs/calibrate.md of podsim has the format. Progress
 * goes to standard error. Needs CUDA 12 and 12 GB of memory for all sizes: what does not fit is a
 * line "skipped". Nothing else should use the GPU meanwhile. --quick leaves every second size of
 * each side out.
 *
 * Attention is cuDNN's. It is measured where the compiler finds cuDNN 9 and its frontend, 1.13 or
 * newer (cudnn_frontend.h of github.com/NVIDIA/cudnn-frontend); add -lcudnn -lnvrtc then. Kernels
 * between matmuls are those of this file, as no library of CUDA has them.
 *
 * How a kernel is measured: operands are random numbers, because constant ones draw less power.
 * Before each call a gigabyte is written, so that operands come from HBM and the host is ahead of
 * the GPU. Events around the call give its time. After a warm-up, the median of 10 to 50 calls
 * counts.
 */
#include <cmath>
#include <memory>
#include <unordered_map>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_fp8.h>
#if __has_include(<cudnn.h>) && __has_include(<cudnn_frontend.h>)
#include <cudnn_frontend.h>
#define HAS_CUDNN 1
#endif

static const size_t FLUSH_BYTES = size_t(1) << 30, WORKSPACE_BYTES = size_t(32) << 20;
static const double POINT_US = 100000;
static const int LEAST = 10, MOST = 50, GRAPH_KERNELS = 200;

// The sides of the tables. All combinations are measured.
static const std::vector<int> M = {16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
static const std::vector<int> N = {256, 512, 1024, 2048, 4096, 8192, 16384, 32768};
static const std::vector<int> K = N;
static const std::vector<int> TOKENS = {128, 256, 512, 1024, 2048, 4096, 8192, 16384};
static const std::vector<int> HEADS = {1, 4, 16, 64}; // Heads of keys over all sequences.
static const std::vector<int> GROUPS = {1, 8};        // Heads of queries for each head of keys.
static const std::vector<int> WIDTHS = {64, 128};
static const std::vector<int> MEGABYTES = {1, 16, 128, 256, 512, 1024}; // Between matmuls.

static void blas(cublasStatus_t status)
{
    must(status == CUBLAS_STATUS_SUCCESS, cublasGetStatusString(status));
}

__global__ void least(int *number)
{
    *number += 1;
}

// Times of a call on the GPU.
struct Clock {
    cudaStream_t stream;
    Memory flush{FLUSH_BYTES};
    std::vector<cudaEvent_t> begin, end;

    explicit Clock(cudaStream_t of) : stream(of), begin(MOST), end(MOST)
    {
        for (int i = 0; i < MOST; i++) {
            cuda(cudaEventCreate(&begin[i]));
            cuda(cudaEventCreate(&end[i]));
        }
    }

    std::vector<float> some_us(int count, const std::function<void()> &call)
    {
        std::vector<float> times_us(count);
        for (int i = 0; i < count; i++) {
            cuda(cudaMemsetAsync(flush.at, 0, FLUSH_BYTES, stream));
            cuda(cudaEventRecord(begin[i], stream));
            call();
            cuda(cudaEventRecord(end[i], stream));
        }
        cuda(cudaStreamSynchronize(stream));
        for (int i = 0; i < count; i++) {
            cuda(cudaEventElapsedTime(&times_us[i], begin[i], end[i]));
            times_us[i] = std::max(times_us[i] * 1e3f, 1e-3f);
        }
        return times_us;
    }

    std::vector<float> times_us(const std::function<void()> &call)
    {
        float const about_us = some_us(3, call).back();
        return some_us(std::max(LEAST, std::min(MOST, int(POINT_US / about_us))), call);
    }
};

struct Libraries {
    cudaStream_t stream;
    cublasHandle_t blas;
    cublasLtHandle_t lt;
#ifdef HAS_CUDNN
    cudnnHandle_t dnn;
#endif
};

// y[m, n] = x[m, k] W[k, n], by rows; cuBLAS has columns, so that W is its first operand. TN is the
// forward product of a layer, whose weight is stored as [n, k]; NN the gradient of its input; NT
// the gradient of its weight.
static void product(const Libraries &with, Clock &clock, const std::string &layout, bool into_fp32,
                    const int side[3], const std::string &words)
{
    int const m = side[0], n = side[1], k = side[2];
    Memory x(size_t(m) * k * 2), weight(size_t(n) * k * 2), y(size_t(m) * n * (into_fp32 ? 4 : 2));
    randomize<__nv_bfloat16>(x.at, size_t(m) * k, 1);
    randomize<__nv_bfloat16>(weight.at, size_t(n) * k, 2);
    cuda(cudaDeviceSynchronize());
    bool const weight_turned = layout == "TN", x_turned = layout == "NT";
    float const one = 1, zero = 0;
    row(words, clock.times_us([&] {
        blas(cublasGemmEx(with.blas, weight_turned ? CUBLAS_OP_T : CUBLAS_OP_N,
                          x_turned ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &one, weight.at,
                          CUDA_R_16BF, weight_turned ? k : n, x.at, CUDA_R_16BF, x_turned ? m : k,
                          &zero, y.at, into_fp32 ? CUDA_R_32F : CUDA_R_16BF, n, CUBLAS_COMPUTE_32F,
                          CUBLAS_GEMM_DEFAULT));
    }));
}

// What cublasLt needs to know of a product in fp8, TN, into bf16.
struct Described {
    cublasLtMatmulDesc_t product = nullptr;
    cublasLtMatrixLayout_t weight = nullptr, x = nullptr, y = nullptr;
    cublasLtMatmulPreference_t preference = nullptr;

    Described(int m, int n, int k)
    {
        cublasOperation_t const turned = CUBLAS_OP_T;
        int8_t const fast = 1;
        blas(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
        blas(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &turned,
                                            sizeof turned));
        blas(cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast,
                                            sizeof fast));
        blas(cublasLtMatrixLayoutCreate(&weight, CUDA_R_8F_E4M3, k, n, k));
        blas(cublasLtMatrixLayoutCreate(&x, CUDA_R_8F_E4M3, k, m, k));
        blas(cublasLtMatrixLayoutCreate(&y, CUDA_R_16BF, n, m, n));
        blas(cublasLtMatmulPreferenceCreate(&preference));
        blas(cublasLtMatmulPreferenceSetAttribute(preference,
                                                  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                  &WORKSPACE_BYTES, sizeof WORKSPACE_BYTES));
    }

    ~Described()
    {
        cublasLtMatmulPreferenceDestroy(preference);
        cublasLtMatrixLayoutDestroy(y);
        cublasLtMatrixLayoutDestroy(x);
        cublasLtMatrixLayoutDestroy(weight);
        cublasLtMatmulDescDestroy(product);
    }
};

static void product_fp8(const Libraries &with, Clock &clock, const int side[3],
                        const std::string &words)
{
    int const m = side[0], n = side[1], k = side[2];
    Memory x(size_t(m) * k), weight(size_t(n) * k), y(size_t(m) * n * 2), work(WORKSPACE_BYTES);
    Described const of(m, n, k);
    cublasLtMatmulHeuristicResult_t found;
    int found_count = 0;
    float const one = 1, zero = 0;
    randomize<__nv_fp8_e4m3>(x.at, size_t(m) * k, 1);
    randomize<__nv_fp8_e4m3>(weight.at, size_t(n) * k, 2);
    cuda(cudaDeviceSynchronize());
    blas(cublasLtMatmulAlgoGetHeuristic(with.lt, of.product, of.weight, of.x, of.y, of.y,
                                        of.preference, 1, &found, &found_count));
    must(found_count > 0, "cublasLt has no algorithm");
    row(words, clock.times_us([&] {
        blas(cublasLtMatmul(with.lt, of.product, &one, weight.at, of.weight, x.at, of.x, &zero,
                            y.at, of.y, y.at, of.y, &found.algo, work.at, WORKSPACE_BYTES,
                            with.stream));
    }));
}

static void measured(const std::string &words, const std::function<void()> &measure)
{
    try {
        measure();
    } catch (const std::exception &error) {
        (void)cudaGetLastError();
        std::printf("skipped %s: %s\n", words.c_str(), printable(error.what()).c_str());
    }
}

// Every second size, and the last.
static std::vector<int> sides_of(const std::vector<int> &all, bool quick)
{
    std::vector<int> sides;
    for (size_t i = 0; i < all.size(); i++)
        if (!quick || i % 2 == 0 || i + 1 == all.size()) sides.push_back(all[i]);
    return sides;
}

static void products(const Libraries &with, Clock &clock, bool quick)
{
    struct Kind {
        std::string layout, words;
        bool into_fp32, is_fp8;
    };
    Kind const kinds[] = {{"TN", "format=bf16 layout=TN", false, false},
                          {"NN", "format=bf16 layout=NN", false, false},
                          {"NT", "format=bf16 layout=NT", false, false},
                          {"NT", "format=bf16 layout=NT result=fp32", true, false},
                          {"TN", "format=fp8 layout=TN cast=tensor", false, true}};
    for (const Kind &kind : kinds)
        for (int m : sides_of(M, quick)) {
            std::fprintf(stderr, "matmul %s m=%d\n", kind.words.c_str(), m);
            for (int n : sides_of(N, quick))
                for (int k : sides_of(K, quick)) {
                    int const side[3] = {m, n, k};
                    std::string const words = "matmul " + kind.words + " m=" + std::to_string(m) +
                                              " n=" + std::to_string(n) + " k=" + std::to_string(k);
                    measured(words, [&] {
                        if (kind.is_fp8)
                            product_fp8(with, clock, side, words);
                        else
                            product(with, clock, kind.layout, kind.into_fp32, side, words);
                    });
                }
        }
}

#ifdef HAS_CUDNN
namespace fe = cudnn_frontend;

static void dnn(fe::error_t error)
{
    must(error.is_good(), error.get_message());
}

// Causal attention and its gradients. Up to 8 heads of keys are of one sequence.
struct Attention {
    enum { Q, K, V, O, STATS, DO, DQ, DK, DV, TENSORS };
    int64_t tokens, heads, group, width;
    cudnnHandle_t handle;
    std::vector<std::unique_ptr<Memory>> memory;
    std::unordered_map<int64_t, void *> place;

    std::vector<int64_t> dim(int of) const
    {
        int64_t const keys = std::min<int64_t>(heads, 8);
        bool const is_key = of == K || of == V || of == DK || of == DV;
        return {heads / keys, is_key ? keys : keys * group, tokens, of == STATS ? 1 : width};
    }

    std::vector<int64_t> stride(int of) const
    {
        std::vector<int64_t> const d = dim(of);
        return {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1};
    }

    void allocate()
    {
        for (int of = Q; of < TENSORS; of++) {
            size_t const count = dim(of)[0] * stride(of)[0];
            memory.push_back(std::make_unique<Memory>(count * (of == STATS ? 4 : 2)));
            place[of] = memory.back()->at;
            if (of != STATS) randomize<__nv_bfloat16>(memory.back()->at, count, 10 + of);
        }
    }

    std::shared_ptr<fe::graph::Tensor_attributes> input(fe::graph::Graph &graph, int of) const
    {
        return graph.tensor(
            fe::graph::Tensor_attributes()
                .set_uid(of)
                .set_dim(dim(of))
                .set_stride(stride(of))
                .set_data_type(of == STATS ? fe::DataType_t::FLOAT : fe::DataType_t::BFLOAT16));
    }

    void output(std::shared_ptr<fe::graph::Tensor_attributes> tensor, int of) const
    {
        tensor->set_output(true).set_uid(of).set_dim(dim(of)).set_stride(stride(of));
        if (of == STATS) tensor->set_data_type(fe::DataType_t::FLOAT);
    }

    // A call of the forward pass, or of the gradients. It owns its graph.
    std::function<void()> call(bool backward)
    {
        auto graph = std::make_shared<fe::graph::Graph>();
        float const scale = 1 / std::sqrt(float(width));
        graph->set_io_data_type(fe::DataType_t::BFLOAT16)
            .set_intermediate_data_type(fe::DataType_t::FLOAT)
            .set_compute_data_type(fe::DataType_t::FLOAT);
        auto q = input(*graph, Q), k = input(*graph, K), v = input(*graph, V);
        if (backward) {
            auto options = fe::graph::SDPA_backward_attributes().set_name("back");
            options.set_causal_mask(true).set_attn_scale(scale);
            auto [dq, dk, dv] = graph->sdpa_backward(q, k, v, input(*graph, O), input(*graph, DO),
                                                     input(*graph, STATS), options);
            output(dq, DQ), output(dk, DK), output(dv, DV);
        } else {
            auto options = fe::graph::SDPA_attributes().set_name("forward");
            options.set_causal_mask(true).set_attn_scale(scale).set_generate_stats(true);
            auto [o, stats] = graph->sdpa(q, k, v, options);
            output(o, O), output(stats, STATS);
        }
        int64_t bytes = 0;
        dnn(graph->build(handle, {fe::HeurMode_t::A}));
        dnn(graph->get_workspace_size(bytes));
        auto work = std::make_shared<Memory>(std::max<int64_t>(bytes, 16));
        return [this, graph, work] { dnn(graph->execute(handle, place, work->at)); };
    }
};

static void attention(const Libraries &with, Clock &clock, bool backward, const int side[4],
                      const std::string &words)
{
    Attention of{side[0], side[1], side[2], side[3], with.dnn, {}, {}};
    of.allocate();
    of.call(false)(); // The gradients need its result and its statistics.
    cuda(cudaDeviceSynchronize());
    row(words, clock.times_us(of.call(backward)));
}

static void attentions(const Libraries &with, Clock &clock, bool quick)
{
    for (std::string const word : {"attention", "attention_backward"})
        for (int tokens : sides_of(TOKENS, quick)) {
            std::fprintf(stderr, "%s tokens=%d\n", word.c_str(), tokens);
            for (int heads : sides_of(HEADS, quick))
                for (int group : GROUPS)
                    for (int width : WIDTHS) {
                        int const side[4] = {tokens, heads, group, width};
                        std::string const words =
                            word + " format=bf16 tokens=" + std::to_string(tokens) +
                            " heads=" + std::to_string(heads) + " group=" + std::to_string(group) +
                            " width=" + std::to_string(width);
                        measured(words,
                                 [&] { attention(with, clock, word != "attention", side, words); });
                    }
        }
}
#else
static void attentions(const Libraries &, Clock &, bool)
{
    std::printf("skipped all of attention: not measured by the program, which was compiled without "
                "cudnn_frontend.h\n");
}
#endif

// Kernels between matmuls. A thread has eight numbers, 16 bytes of bf16, and reads and writes each
// once; inside they are fp32.
template <typename Number> struct alignas(8 * sizeof(Number)) Eight {
    Number at[8];
};
using Wide = Eight<__nv_bfloat16>;

static const int NORM_WIDTH = 8192, THREADS = 256;

// x / sqrt(mean of x^2) * weight: a block for each row.
__global__ void rms_norm(const Wide *x, const Wide *weight, Wide *y)
{
    __shared__ float sums[32];
    size_t const at = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    Wide const own = x[at], scale = weight[threadIdx.x];
    float sum = 0;
    for (int i = 0; i < 8; i++) sum += float(own.at[i]) * float(own.at[i]);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = sums[threadIdx.x % 32];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    float const by = rsqrtf(sum / NORM_WIDTH + 1e-5f);
    Wide result;
    for (int i = 0; i < 8; i++)
        result.at[i] = __nv_bfloat16(float(own.at[i]) * by * float(scale.at[i]));
    y[at] = result;
}

struct Sum {
    static __device__ float of(float x, float y)
    {
        return x + y;
    }
};

// silu(x) * y
struct Gate {
    static __device__ float of(float x, float y)
    {
        return x / (1 + __expf(-x)) * y;
    }
};

template <typename Function> __global__ void pairwise(const Wide *x, const Wide *y, Wide *z)
{
    size_t const at = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    Wide const left = x[at], right = y[at];
    Wide result;
    for (int i = 0; i < 8; i++)
        result.at[i] = __nv_bfloat16(Function::of(float(left.at[i]), float(right.at[i])));
    z[at] = result;
}

// To fp8 with one scale.
__global__ void cast(const Wide *x, float scale, Eight<__nv_fp8_e4m3> *y)
{
    size_t const at = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
    Wide const own = x[at];
    Eight<__nv_fp8_e4m3> result;
    for (int i = 0; i < 8; i++) result.at[i] = __nv_fp8_e4m3(float(own.at[i]) * scale);
    y[at] = result;
}

static void between(const Libraries &with, const std::string &kernel, size_t count, const Wide *x,
                    const Wide *y, Wide *z)
{
    unsigned const blocks = unsigned(count / 8 / THREADS);
    if (kernel == "norm")
        rms_norm<<<unsigned(count / NORM_WIDTH), NORM_WIDTH / 8, 0, with.stream>>>(x, y, z);
    else if (kernel == "sum")
        pairwise<Sum><<<blocks, THREADS, 0, with.stream>>>(x, y, z);
    else if (kernel == "gate")
        pairwise<Gate><<<blocks, THREADS, 0, with.stream>>>(x, y, z);
    else if (kernel == "cast")
        cast<<<blocks, THREADS, 0, with.stream>>>(x, 0.5f,
                                                  reinterpret_cast<Eight<__nv_fp8_e4m3> *>(z));
    else
        cuda(cudaMemcpyAsync(z, x, count * 2, cudaMemcpyDeviceToDevice, with.stream));
    cuda(cudaGetLastError());
}

// "rest" are copies, for lookups and moves of rows.
static void betweens(const Libraries &with, Clock &clock)
{
    struct Kind {
        const char *kernel;
        size_t number_bytes; // That are read and written for each number of the result.
    };
    for (const Kind &kind :
         {Kind{"norm", 4}, Kind{"sum", 6}, Kind{"gate", 6}, Kind{"cast", 3}, Kind{"rest", 4}})
        for (size_t megabytes : MEGABYTES) {
            size_t const count = (megabytes << 20) / kind.number_bytes / NORM_WIDTH * NORM_WIDTH;
            std::string const words = std::string("between kernel=") + kind.kernel +
                                      " bytes=" + std::to_string(count * kind.number_bytes);
            measured(words, [&] {
                Memory x(count * 2), y(count * 2), z(count * 2);
                randomize<__nv_bfloat16>(x.at, count, 3);
                randomize<__nv_bfloat16>(y.at, count, 4);
                cuda(cudaDeviceSynchronize());
                row(words, clock.times_us([&] {
                    between(with, kind.kernel, count, static_cast<Wide *>(x.at),
                            static_cast<Wide *>(y.at), static_cast<Wide *>(z.at));
                }));
            });
        }
}

// A kernel of one number, within a graph of many that wait for each other.
static void launches(const Libraries &with)
{
    Memory number(sizeof(int));
    cudaGraph_t graph;
    cudaGraphExec_t runnable;
    cudaEvent_t begin, end;
    std::vector<float> times_us(30);
    cuda(cudaMemset(number.at, 0, sizeof(int)));
    cuda(cudaStreamBeginCapture(with.stream, cudaStreamCaptureModeGlobal));
    for (int i = 0; i < GRAPH_KERNELS; i++)
        least<<<1, 1, 0, with.stream>>>(static_cast<int *>(number.at));
    cuda(cudaStreamEndCapture(with.stream, &graph));
    cuda(cudaGraphInstantiateWithFlags(&runnable, graph, 0));
    cuda(cudaEventCreate(&begin));
    cuda(cudaEventCreate(&end));
    for (int i = 0; i < 5; i++) cuda(cudaGraphLaunch(runnable, with.stream));
    for (float &time_us : times_us) {
        cuda(cudaEventRecord(begin, with.stream));
        cuda(cudaGraphLaunch(runnable, with.stream));
        cuda(cudaEventRecord(end, with.stream));
        cuda(cudaStreamSynchronize(with.stream));
        cuda(cudaEventElapsedTime(&time_us, begin, end));
        time_us = time_us * 1e3f / GRAPH_KERNELS;
    }
    row("launch", times_us);
}

static void libraries_warm_up(const Libraries &with)
{
    size_t const side = 4096;
    Memory x(side * side * 2), y(side * side * 2), z(side * side * 2);
    float const one = 1, zero = 0;
    randomize<__nv_bfloat16>(x.at, side * side, 1);
    randomize<__nv_bfloat16>(y.at, side * side, 2);
    cuda(cudaDeviceSynchronize());
    warm_up([&] {
        for (int i = 0; i < 20; i++)
            blas(cublasGemmEx(with.blas, CUBLAS_OP_N, CUBLAS_OP_N, side, side, side, &one, x.at,
                              CUDA_R_16BF, side, y.at, CUDA_R_16BF, side, &zero, z.at, CUDA_R_16BF,
                              side, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
        cuda(cudaStreamSynchronize(with.stream));
    });
}

static std::string library(const Libraries &with)
{
    int runtime = 0, version = 0;
    cuda(cudaRuntimeGetVersion(&runtime));
    blas(cublasGetVersion(with.blas, &version));
    std::string text = "cuBLAS " + std::to_string(version) + ", " + cuda_version(runtime);
#ifdef HAS_CUDNN
    text += ", cuDNN " + std::to_string(cudnnGetVersion());
#endif
    return text;
}

int main(int argument_count, char **arguments)
{
    bool const quick = argument_count == 2 && std::strcmp(arguments[1], "--quick") == 0;
    if (argument_count > 1 && !quick) {
        std::fprintf(stderr, "usage: measure [--quick]\n");
        return 1;
    }
    try {
        Libraries with;
        cuda(cudaStreamCreate(&with.stream));
        blas(cublasCreate(&with.blas));
        blas(cublasSetStream(with.blas, with.stream));
        blas(cublasLtCreate(&with.lt));
#ifdef HAS_CUDNN
        must(cudnnCreate(&with.dnn) == CUDNN_STATUS_SUCCESS &&
                 cudnnSetStream(with.dnn, with.stream) == CUDNN_STATUS_SUCCESS,
             "cuDNN does not start");
#endif
        Clock clock(with.stream);
        head("cuda", library(with));
        libraries_warm_up(with);
        products(with, clock, quick);
        attentions(with, clock, quick);
        betweens(with, clock);
        measured("launch", [&] { launches(with); });
        std::printf("end %d\n", rows);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "measure: %s\n", error.what());
        return 1;
    }
    return 0;
}
