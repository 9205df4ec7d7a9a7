#!/bin/bash
# Mixtral 8x7B as train_mixtral_8x7b_distributed.sh of NVIDIA/Megatron-LM trains it
# (examples/mixtral): its keys and values in another script. Sizes are those of the published model.
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-"1"}
DATA_PATH=$3
MODEL_ARGS=(
    --disable-bias-linear --seq-length 4096 --max-position-embeddings 32768
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32
    --init-method-std 0.01 --attention-dropout 0.0 --hidden-dropout 0.0
    --normalization RMSNorm --position-embedding-type rope --swiglu
    --untie-embeddings-and-output-weights
    --group-query-attention --num-query-groups 8
    --no-masked-softmax-fusion --no-position-embedding --rotary-base 1000000
)
MOE_ARGS=(
    --num-experts 8
    --moe-router-topk 2
    --moe-router-load-balancing-type aux_loss
    --moe-aux-loss-coeff 1e-2
#    --moe-grouped-gemm
    --moe-token-dispatcher-type alltoall
    --overlap-param-gather
    --overlap-grad-reduce
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size 256
    --bf16
)
PARALLEL_ARGS=(
    --tensor-model-parallel-size 1
    --pipeline-model-parallel-size 4
    --num-layers-per-virtual-pipeline-stage 4
    --expert-model-parallel-size 8
    --use-distributed-optimizer
    --sequence-parallel
)
if [ -n "${WANDB_API_KEY}" ]; then
    TRAINING_ARGS+=(--wandb-project ${WANDB_PROJECT:-"Mixtral"})
fi
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py \
    ${MODEL_ARGS[@]} ${MOE_ARGS[@]} --tokenizer-type Llama2Tokenizer --mock-data \
    --data-path $DATA_PATH ${TRAINING_ARGS[@]} ${PARALLEL_ARGS[@]}
