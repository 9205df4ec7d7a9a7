/* cudnn.hpp: what a program of `podsim calibrate` calls of cuDNN, for its compiler alone. */
#ifndef TESTS_CLI_CALIBRATE_FAKE_CUDA_CUDNN_H
#define TESTS_CLI_CALIBRATE_FAKE_CUDA_CUDNN_H

#include <cuda_runtime.h>
#include <stddef.h>

typedef enum { CUDNN_STATUS_SUCCESS } cudnnStatus_t;
typedef struct cudnnContext *cudnnHandle_t;

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);
size_t cudnnGetVersion(void);

#endif
