/*
 * chip.h: what a chip is: rates, capacities and overheads, after a profile has been applied.
 *
 * Chips are data: one JSON in topology/chips/ each, embedded in the binary, every number with its
 * source. A profile scales rates by an efficiency and adds overheads; the `ideal` profile does
 * neither. What this header holds are the effective numbers that a simulation may use, and the
 * peaks that MFU is measured against.
 */
#ifndef SIM_MACHINE_CHIP_H
#define SIM_MACHINE_CHIP_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/base/format.h"
#include "sim/base/status.h"

struct arena;
struct kernel_stack;

enum { CHIP_AXES_MAX = 3, CHIP_SLICES_MAX = 16 };

/* What joins the chips of a pod or node: a grid of links (ICI), or switches (NVLink). */
enum chip_kind {
    CHIP_TPU,
    CHIP_GPU,
};

enum chip_maker { CHIP_GOOGLE, CHIP_NVIDIA, CHIP_AMD, CHIP_MAKERS };

/* By which rule an axis of a slice has wraparound links (book, chapter 2, TPU Networking). */
enum chip_wrap_rule {
    CHIP_WRAP_FULL_AXIS, /* v3, v5e, v6e: an axis that has the pod's full length (32; 16). */
    CHIP_WRAP_CUBES,     /* v4p, v5p: every axis, once the slice is whole 4x4x4 cubes. */
};

/*
 * What stands outside a chip: the host and the network. A GPU's node is a set of GPUs on
 * NVSwitches; its NICs go to leaves. A TPU's host holds a box of chips and has one NIC for them.
 *
 * Latencies are one way. Half of a switch's is counted on the way into it and half on the way out,
 * so a path from NIC to NIC through one switch costs twice nic + cable + switch / 2.
 */
struct chip_network {
    /* NVLink, or what joins the GPUs of a node in its place; 0 on a TPU. */
    enum chip_maker maker; /* NVIDIA's GPUs are joined by NVLink. */
    const char *link_name; /* "NVLink" */
    uint32_t nvlink_generation;
    uint32_t nvlink_count;       /* Links of one GPU. */
    uint64_t nvlink_bytes_per_s; /* One link, one way, effective. */
    uint64_t nvlink_peak_bytes_per_s;
    int64_t nvlink_latency_ps;    /* From a GPU to the middle of its NVSwitch. */
    uint32_t node_chips;          /* GPUs of a node. */
    uint32_t nvswitch_count;      /* NVSwitches of a node. 0: each GPU has links to each other. */
    uint32_t nvswitch_ports;      /* Ports of one NVSwitch. */
    uint64_t nvswitch_flop_per_s; /* fp32 additions of one switch (NVLink SHARP); 0: none. */

    /* NICs. */
    uint32_t nic_count;       /* NICs of `nic_chips` GPUs, or of one TPU host. 0: no network. */
    uint32_t nic_chips;       /* GPUs that share a NIC behind PCIe, mostly 1. */
    uint64_t nic_bytes_per_s; /* One NIC, one way, effective. */
    uint64_t nic_peak_bytes_per_s;
    int64_t nic_latency_ps;  /* From the chip (GPU) or the host (TPU) onto the cable. */
    int64_t host_latency_ps; /* Over PCIe or C2C to or from the host. */
    int64_t cable_latency_ps;
    int64_t switch_latency_ps;
    uint32_t switch_ports;      /* Of one switch of the network. */
    uint64_t switch_flop_per_s; /* fp32 additions of one switch (InfiniBand SHARP); 0: none. */
    uint32_t leaf_rails;        /* GPUs of one node that share a leaf. */

    uint64_t c2c_bytes_per_s; /* To the CPU's memory over NVLink-C2C, one way; 0: PCIe only. */
    uint32_t host_chips;      /* Chips of one CPU that C2C or PCIe reaches. */
    uint64_t host_bytes;      /* Memory of a TPU's host, which its chips share; 0: not known. */
};

/* Inner and outer sizes are padded to rows and columns; on a GPU those of the tensor core's tile.
 */
struct chip_mxu {
    uint32_t rows, columns;
    uint32_t count; /* Matrix units of the whole chip. */
};

/* Power of a whole module, with its memory, which sets the clock of the cores. 0: not known. */
struct chip_power {
    uint64_t most_w; /* Limit that the maker sets. */
    uint64_t idle_w; /* Power without work. */
};

struct chip_core {
    uint32_t count;          /* Cores of the whole chip; GPU: SMs. */
    uint64_t smem_bytes;     /* GPU: shared memory and L1 of one SM. */
    uint64_t tmem_bytes;     /* GPU: tensor memory of one SM, or 0. */
    uint64_t register_bytes; /* GPU: of one SM. */
    struct chip_power power;
};

/* What hosts add to a collective between slices. */
struct chip_dcn {
    int64_t begin_ps;   /* Once a collective. */
    int64_t message_ps; /* For each message of a rank, one after the other. */
    int64_t spread_ps;  /* Mean of the exponential part of a host's time for a collective. */
};

/* The grid that a TPU's slices are cut from. */
struct chip_pod {
    uint32_t axis_count;           /* Dimensions of the torus; 0 on a GPU. */
    uint32_t shape[CHIP_AXES_MAX]; /* Largest slice. */
    uint32_t host_shape[CHIP_AXES_MAX];
    enum chip_wrap_rule wrap_rule;
    uint32_t wrap_length; /* FULL_AXIS: the length that wraps. CUBES: the edge of a cube. */
    uint32_t name_units;  /* What a product name like v5p-8192 counts per chip: 2 cores, or 1. */

    /* The slices that are sold, as the product writes them; under CHIP_WRAP_CUBES only those
     * smaller than a cube, since every box of whole cubes is one too. */
    uint32_t slice[CHIP_SLICES_MAX][CHIP_AXES_MAX];
    uint32_t slice_count;

    struct chip_dcn dcn;
};

/* Of one chip that is rented. */
struct chip_price {
    uint64_t usd_per_h_ppm; /* Millionths of a dollar an hour; 0: unknown. */
    const char *source;     /* Whose price it is, and of when. */
};

/* How compute ops and messages come to a chip. */
enum chip_launches {
    CHIP_LAUNCHES_PROFILE, /* The profile's overhead, to which nothing is added. */
    CHIP_LAUNCHES_GRAPH,   /* Kernels of one graph, back to back. */
    CHIP_LAUNCHES_EAGER,   /* The host launches each op by itself. */
};
extern const char *const chip_launch_names[]; /* By enum chip_launches, ended by NULL. */
struct chip_launch {
    enum chip_launches by;
    int64_t op_ps;      /* Added to each compute op. */
    int64_t graph_ps;   /* What a kernel takes that has next to nothing to do; 0: not known. */
    int64_t host_ps;    /* EAGER: what the host needs for an op, one after the other. */
    int64_t message_ps; /* Added to the latency of each message over a link. */
    int64_t async_ps;   /* TPU: start and end of an asynchronous collective in the compute queue. */
};

/* Times of NCCL's collectives in a node, in millionths of what NCCL reckons; each 0: those of the
 * generation of NVLink. */
struct chip_nccl {
    uint32_t latency_ppm; /* Latencies of all algorithms and protocols. */
    uint32_t byte_ppm;    /* A byte, where chips send all messages, but by LL. */
    uint32_t nvls_ppm;    /* A byte, where switches add or copy. */
};

/* Measured kernels of ops. The chip's rates are those of its data sheet then, and ops without a
 * kernel have the profile's shares of them. */
struct chip_kernels {
    const struct kernel_stack *stack; /* NULL: none. */
    uint64_t sheet_hbm_bytes_per_s;   /* The data sheet's rate. */
    uint32_t rest_math_ppm, rest_hbm_ppm;
    struct chip_nccl nccl; /* Factors of the stack. */
};

struct chip {
    enum chip_kind kind;
    const char *name;       /* "tpu-v5p" */
    const char *short_name; /* "v5p": what product names begin with. */
    const char *title;      /* "TPU v5p" */
    const char *profile;    /* "ideal", "measured" */
    bool is_ideal;          /* The profile has the rates of the data sheet, and no overheads. */

    struct chip_price price;

    uint64_t hbm_capacity_bytes;
    uint64_t hbm_bytes_per_s;     /* Effective. */
    uint64_t vmem_capacity_bytes; /* GPU: L2. */
    uint64_t vmem_bytes_per_s;    /* Effective. */

    uint64_t math_flop_per_s[FORMAT_COUNT]; /* MXU, effective; 0: the format is not supported. */
    uint64_t math_peak_flop_per_s[FORMAT_COUNT]; /* MXU, of the data sheet: what MFU is against. */
    uint64_t vector_flop_per_s;                  /* VPU or CUDA cores, effective, fp32. */
    struct chip_mxu mxu;
    struct chip_core core;

    uint64_t ici_bytes_per_s; /* One link, one way, effective. 0 on a GPU. */
    uint64_t ici_peak_bytes_per_s;
    int64_t hop_latency_ps;
    uint64_t pcie_bytes_per_s; /* One way. */
    uint64_t dcn_bytes_per_s;  /* One way, this chip's share of its host's NIC. */
    struct chip_network network;

    struct chip_launch launch;
    struct chip_kernels kernels;

    struct chip_pod pod;
};

/* Cores that take parts of an op apart from each other: 1 where they work as one. */
static inline uint32_t chip_cores_apart(const struct chip *chip)
{
    return chip->kind == CHIP_GPU ? chip->core.count : 1;
}

/* Finds a chip by name ("tpu-v5p", "v5p") and applies a profile. Unknown names are refused with
 * the nearest one; `where` is the place of the name in the input, `where_profile` the profile's. */
enum status chip_find(struct arena *arena, const char *name, const char *profile, const char *where,
                      const char *where_profile, struct chip *ret_chip, struct error *reterr);

/* What a data sheet's GB are if they are GiB; bytes that are no whole GB are exact. */
uint64_t chip_gib_bytes(uint64_t hbm_bytes);

/* Names of the catalogue, in its order; NULL past the end. */
const char *chip_name_at(uint32_t index);

/* One number of a chip's file as it stands there, for `list chips NAME`. */
struct chip_fact {
    const char *key; /* "hbm_rate", "math/bf16", "profiles/measured/hbm_ppm" */
    const char *value;
    const char *source;
};

enum status chip_facts(struct arena *arena, const char *name, const char *where,
                       const struct chip_fact **ret_facts, uint32_t *ret_count,
                       struct error *reterr);

#endif
