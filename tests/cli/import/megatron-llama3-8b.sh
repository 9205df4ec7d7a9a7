#!/bin/bash
# LLaMA-3 8B as the example train_llama3_8b_h100_fp8.sh of NVIDIA/Megatron-LM trains it
# (examples/llama): its keys and values, in another order and another script.

SAVE_TO=${1:-"saved"}
TOKENS=${2:-"MOCK"}
NODES=${NODES:-1}
PER_NODE=8
MASTER=${MASTER:-localhost}
RANKS=$(($PER_NODE * $NODES))
TP=1
CONTEXT=1
LENGTH=8192
FORMAT="fp8"

LAUNCH=(
    --nproc_per_node $PER_NODE
    --nnodes $NODES
    --master_addr $MASTER
    --master_port 6000
)
SIZES=(
    --use-mcore-models
    --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336
    --num-attention-heads 32 --group-query-attention --num-query-groups 8 --kv-channels 128
    --seq-length $LENGTH --max-position-embeddings $LENGTH
    --position-embedding-type rope --rotary-base 1000000 --rotary-percent 1.0
    --attention-dropout 0.0 --hidden-dropout 0.0
    --swiglu
    --normalization RMSNorm # the published model's
    --untie-embeddings-and-output-weights
    --disable-bias-linear
    --attention-backend fused
)
STEP="--micro-batch-size 1 \
    --global-batch-size 128 --train-samples 1953125000 \
    --lr 0.00015 --min-lr 0.00001 --lr-decay-style cosine --clip-grad 1.0 \
    --bf16 --grad-reduce-in-bf16 --calculate-per-token-loss --manual-gc --cross-entropy-loss-fusion"
if [[ "$FORMAT" == "fp8" ]]; then
    STEP+=" --fp8-format hybrid --fp8-amax-history-len 1024 --fp8-amax-compute-algo max"
fi
RANKED=(
    --tensor-model-parallel-size $TP
    --context-parallel-size $CONTEXT
    # --pipeline-model-parallel-size 1
    --sequence-parallel
    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
)
WORDS=()
if [[ "$TOKENS" == "MOCK" ]] || [[ -z "$TOKENS" ]]; then
    WORDS+=("--mock-data" "--tokenizer-type NullTokenizer" "--vocab-size 128256")
else
    WORDS+=("--data-path $TOKENS" "--tokenizer-type HuggingFaceTokenizer")
fi

mkdir -p "$(dirname "$SAVE_TO")" || exit 1
torchrun ${LAUNCH[@]} pretrain_gpt.py ${SIZES[@]} $STEP "${RANKED[@]}" ${WORDS[@]} \
    --log-interval 1 --eval-iters 32 --save "$SAVE_TO" 2>&1 | tee "$SAVE_TO/log"
