#!/bin/bash
# A small gpt-oss as the example gptoss/02_train.sh of NVIDIA/Megatron-LM trains it: its keys and
# values, in another order and another script. The example has a stage of the pipeline for each of
# eight GPUs, which its 12 layers cannot be split over; here are four.

STAGES=${STAGES:-4}
LENGTH=8192
SIZES=(
    --use-mcore-models --transformer-impl transformer_engine --enable-gpt-oss
    --num-layers 12 --hidden-size 512 --ffn-hidden-size 2048
    --num-attention-heads 64 --group-query-attention --num-query-groups 8
    --seq-length $LENGTH --max-position-embeddings $LENGTH
    --position-embedding-type rope --rope-type rope --rotary-base 10000 --rotary-percent 1.0
    --normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights
    --quick-geglu --glu-linear-offset 1.0 --activation-func-clamp-value 7.0
    --softmax-type learnable --window-size 127,0 --window-attn-skip-freq 2
    --no-masked-softmax-fusion --no-rope-fusion --no-bias-gelu-fusion --no-bias-dropout-fusion
    --export-force-local-attention
)
EXPERTS=(
    --num-experts 4 --moe-router-topk 2 --moe-ffn-hidden-size 2048
    --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff 1e-3 --moe-z-loss-coeff 1e-3
    --moe-router-dtype fp32 --moe-token-dispatcher-type alltoall
    --moe-grouped-gemm --moe-permute-fusion
)
BATCH=(
    --micro-batch-size 1 --global-batch-size 128 --bf16 --clip-grad 1.0
    --accumulate-allreduce-grads-in-fp32 --disable-bf16-reduced-precision-matmul
    --use-flash-attn --attention-softmax-in-fp32 --recompute-activations
    --lr 1.0e-5 --min-lr 1.0e-6 --lr-decay-style cosine --lr-warmup-fraction 0.05
    --weight-decay 0.1 --train-samples 1953125000 --lr-decay-samples 1949218748
)
RANKS=(
    --tensor-model-parallel-size 1 --pipeline-model-parallel-size $STAGES
    --expert-model-parallel-size 1 --context-parallel-size 1 --sequence-parallel
    --use-distributed-optimizer --overlap-param-gather --overlap-grad-reduce
    --fp8-format hybrid --fp8-param-gather --fp8-amax-compute-algo max --fp8-amax-history-len 1024
)
DATA=(
    --mock-data --tokenizer-type NullTokenizer --vocab-size 128256 --num-workers 1
    --log-interval 1 --log-throughput --eval-iters 0 --moe-per-layer-logging
)
torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py \
    "${SIZES[@]}" "${EXPERTS[@]}" "${BATCH[@]}" "${RANKS[@]}" "${DATA[@]}"
