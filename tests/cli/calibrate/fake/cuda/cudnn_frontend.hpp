/* cudnn_frontend.hpp: what a program of `podsim calibrate` calls of cuDNN's graphs, for its compiler
 * alone. Signatures are of NVIDIA/cudnn-frontend 1.23. */
#ifndef TESTS_CLI_CALIBRATE_FAKE_CUDA_CUDNN_FRONTEND_H
#define TESTS_CLI_CALIBRATE_FAKE_CUDA_CUDNN_FRONTEND_H

#include <array>
#include <cstdint>
#include <cudnn.h>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace cudnn_frontend
{
enum class DataType_t { FLOAT, BFLOAT16 };
enum class HeurMode_t { A };

struct [[nodiscard]] error_t {
    bool is_good() const;
    const std::string &get_message();
};

namespace graph
{
struct Tensor_attributes {
    Tensor_attributes &set_uid(int64_t uid);
    Tensor_attributes &set_dim(const std::vector<int64_t> &dim);
    Tensor_attributes &set_stride(const std::vector<int64_t> &stride);
    Tensor_attributes &set_data_type(DataType_t type);
    Tensor_attributes &set_output(bool is_output);
};
using Tensor = std::shared_ptr<Tensor_attributes>;

struct SDPA_attributes {
    SDPA_attributes &set_name(const std::string &name);
    SDPA_attributes &set_causal_mask(bool is_causal);
    template <typename Number> SDPA_attributes &set_attn_scale(Number scale);
    SDPA_attributes &set_generate_stats(bool generates);
};

struct SDPA_backward_attributes {
    SDPA_backward_attributes &set_name(const std::string &name);
    SDPA_backward_attributes &set_causal_mask(bool is_causal);
    template <typename Number> SDPA_backward_attributes &set_attn_scale(Number scale);
};

struct Graph {
    Graph &set_io_data_type(DataType_t type);
    Graph &set_intermediate_data_type(DataType_t type);
    Graph &set_compute_data_type(DataType_t type);
    Tensor tensor(const Tensor_attributes &attributes);
    std::array<Tensor, 2> sdpa(Tensor q, Tensor k, Tensor v, SDPA_attributes options);
    std::array<Tensor, 3> sdpa_backward(Tensor q, Tensor k, Tensor v, Tensor o, Tensor gradient,
                                        Tensor stats, SDPA_backward_attributes options);
    error_t build(const cudnnHandle_t &handle, const std::vector<HeurMode_t> &modes);
    error_t get_workspace_size(int64_t &bytes) const;
    error_t execute(cudnnHandle_t handle, std::unordered_map<int64_t, void *> &place,
                    void *workspace) const;
};
} // namespace graph
} // namespace cudnn_frontend

#endif
