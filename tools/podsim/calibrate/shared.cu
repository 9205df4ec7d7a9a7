/* What the programs for CUDA have in common. podsim prints it behind the comment of each. */
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

static const double WARM_UP_S = 3;

static void must(bool holds, const std::string &what)
{
    if (!holds) throw std::runtime_error(what);
}

static void cuda(cudaError_t error)
{
    must(error == cudaSuccess, cudaGetErrorString(error));
}

// Memory of the GPU while a point is measured.
struct Memory {
    void *at = nullptr;
    explicit Memory(size_t bytes)
    {
        cuda(cudaMalloc(&at, bytes));
    }
    Memory(const Memory &) = delete;
    ~Memory()
    {
        cudaFree(at);
    }
};

// Numbers from -1 to 1, the same in each run (the mixer of splitmix64).
template <typename Number> __global__ void fill(Number *array, size_t count, uint64_t seed)
{
    size_t const step = size_t(gridDim.x) * blockDim.x;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
        uint64_t x = (i + seed) * UINT64_C(0x9e3779b97f4a7c15);
        x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
        array[i] = Number(float(x >> 40) / float(1 << 23) - 1.0f);
    }
}

template <typename Number> static void randomize(void *array, size_t count, uint64_t seed)
{
    fill<<<1024, 256>>>(static_cast<Number *>(array), count, seed);
    cuda(cudaGetLastError());
}

// Seconds of the host.
struct Watch {
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    double seconds() const
    {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
};

static void warm_up(const std::function<void()> &call)
{
    Watch const watch;
    while (watch.seconds() < WARM_UP_S) call();
}

static int rows = 0; // Measurements that are printed.

// Returns the median.
static float row(const std::string &words, std::vector<float> times_us)
{
    size_t const count = times_us.size();
    std::sort(times_us.begin(), times_us.end());
    rows++;
    std::printf("%s repeats=%zu median=%.4fus low=%.4fus high=%.4fus\n", words.c_str(), count,
                times_us[count * 5 / 10], times_us[count / 10], times_us[count * 9 / 10]);
    std::fflush(stdout);
    return times_us[count * 5 / 10];
}

static std::string printable(std::string text)
{
    for (char &c : text)
        if (c < ' ' || c > '~') c = '?';
    return text;
}

static std::string cuda_version(int version)
{
    return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// The lines in front of rows. `library`: what is measured, and its version.
static void head(const char *script, const std::string &library)
{
    cudaDeviceProp device;
    int driver = 0;
    cuda(cudaGetDeviceProperties(&device, 0));
    cuda(cudaDriverGetVersion(&driver));
    std::printf("podsim_rows 1\nscript %s\ndevice %s\ndriver %s\nlibrary %s\n", script,
                device.name, cuda_version(driver).c_str(), library.c_str());
}
