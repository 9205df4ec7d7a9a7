/*
 * scenario_network.c: what a scenario says of switches.
 */
#include <math.h>
#include <stddef.h>

#include "sim/base/json.h"
#include "sim/base/units.h"
#include "sim/scenario/scenario_parts.h"

static const int64_t latency_max_ps = TIME_PS_PER_S;
static const double oversubscription_most = 1000;
static const uint64_t nic_rate_least = 1000000, nic_rate_most = UINT64_C(1000000000000000);
static const uint32_t node_nics_max = 4096;

static const char *const sharp_names[] = {"auto", "on", "off", NULL};

static const char *const tier_names[] = {
#define X(name, text) text,
    MACHINE_TIER_TABLE(X)
#undef X
};

static enum status policy_read(struct json *object, uint8_t *policy, struct error *reterr)
{
    static const char *const names[] = {
#define X(name, text, help) text,
        LEVEL_POLICY_TABLE(X)
#undef X
            NULL};
    struct json *member = json_take(object, "policy");
    uint32_t choice = 0;
    if (member == NULL) return STATUS_OK;
    STATUS_TRY(json_choice(member, names, &choice, reterr));
    *policy = (uint8_t)(1 + choice);
    return STATUS_OK;
}

static enum status sharp_read(struct json *object, enum machine_sharp *sharp, struct error *reterr)
{
    uint32_t choice = *sharp;
    STATUS_TRY(scenario_take_choice(object, "sharp", sharp_names, &choice, reterr));
    *sharp = (enum machine_sharp)choice;
    return STATUS_OK;
}

static enum status latency_read(struct json *object, const char *key, int64_t *latency_ps,
                                struct error *reterr)
{
    struct json *member = json_take(object, key);
    if (member == NULL) return STATUS_OK;
    STATUS_TRY(json_duration(member, latency_ps, reterr));
    if (*latency_ps == 0 || *latency_ps > latency_max_ps)
        return error_set(reterr, STATUS_INVALID, json_where(member),
                         "a latency must be between 1ps and 1s");
    return STATUS_OK;
}

/* The rate of a NIC is bounded as those of a chip's file are. */
static enum status nic_rate_read(struct json *object, uint64_t *bytes_per_s, struct error *reterr)
{
    struct json *member = json_take(object, "nic_rate");
    if (member == NULL) return STATUS_OK;
    STATUS_TRY(json_rate(member, bytes_per_s, reterr));
    if (*bytes_per_s < nic_rate_least || *bytes_per_s > nic_rate_most)
        return error_set(reterr, STATUS_INVALID, json_where(member),
                         "the rate of a NIC must be between 1MB/s and 1PB/s");
    return STATUS_OK;
}

static enum status tier_read(struct json *object, struct machine_tier_plan *tier,
                             struct error *reterr)
{
    static const char *const known[] = {"policy", "oversubscription", NULL};
    double ratio = 1;
    if (object == NULL) return STATUS_OK;
    STATUS_TRY(json_as_object(object, reterr));
    STATUS_TRY(policy_read(object, &tier->policy, reterr));
    struct json *member = json_take(object, "oversubscription");
    if (member != NULL) {
        STATUS_TRY(json_as_real(member, 1, oversubscription_most, &ratio, reterr));
        tier->oversubscription_ppm = (uint32_t)lround(ratio * PPM_ONE);
    }
    return json_end(object, known, reterr);
}

static enum status nvlink_read(struct json *object, struct machine_network_plan *plan,
                               struct error *reterr)
{
    static const char *const known[] = {"policy", "sharp", "latency", NULL};
    if (object == NULL) return STATUS_OK;
    STATUS_TRY(json_as_object(object, reterr));
    STATUS_TRY(policy_read(object, &plan->nvlink_policy, reterr));
    STATUS_TRY(sharp_read(object, &plan->nvlink_sharp, reterr));
    STATUS_TRY(latency_read(object, "latency", &plan->nvlink_latency_ps, reterr));
    return json_end(object, known, reterr);
}

enum status scenario_network_read(struct json *object, struct machine_network_plan *ret_plan,
                                  struct error *reterr)
{
    static const char *const known[] = {
        "policy",    "sharp",  "cable_latency", "switch_ports", "nic_rate", "switch_latency",
        "node_nics", "nvlink", "leaf",          "spine",        "core",     NULL};
    struct machine_network_plan plan = {0};
    if (object == NULL) return STATUS_OK;
    STATUS_TRY(json_as_object(object, reterr));
    STATUS_TRY(policy_read(object, &plan.policy, reterr));
    STATUS_TRY(sharp_read(object, &plan.sharp, reterr));
    STATUS_TRY(latency_read(object, "cable_latency", &plan.cable_latency_ps, reterr));
    STATUS_TRY(latency_read(object, "switch_latency", &plan.switch_latency_ps, reterr));
    STATUS_TRY(scenario_take_count(object, "switch_ports", 1, 65536, &plan.switch_ports, reterr));
    STATUS_TRY(nic_rate_read(object, &plan.nic_bytes_per_s, reterr));
    STATUS_TRY(scenario_take_count(object, "node_nics", 1, node_nics_max, &plan.node_nics, reterr));
    STATUS_TRY(nvlink_read(json_take(object, "nvlink"), &plan, reterr));
    for (uint32_t tier = 0; tier < MACHINE_TIER_COUNT; tier++)
        STATUS_TRY(tier_read(json_take(object, tier_names[tier]), &plan.tier[tier], reterr));
    STATUS_TRY(json_end(object, known, reterr));
    *ret_plan = plan;
    return STATUS_OK;
}

static void write_policy(struct json_writer *writer, uint8_t policy)
{
    json_put_string(writer, "policy",
                    level_policy_name((enum level_policy)(policy == 0 ? 0 : policy - 1)));
}

static void write_sharp(struct json_writer *writer, enum machine_sharp sharp)
{
    json_put_string(writer, "sharp", sharp_names[sharp]);
}

static void write_latency(struct json_writer *writer, const char *key, int64_t latency_ps)
{
    char buffer[SCENARIO_AMOUNT_BYTES];
    if (latency_ps == 0) return;
    json_write_key(writer, key);
    json_write_string(writer,
                      scenario_amount_text(buffer, (uint64_t)latency_ps, scenario_durations));
}

/* What the chip or the level above decides is left out, as a shape is that the product decides. */
void scenario_network_write(struct json_writer *writer, const struct machine_network_plan *plan,
                            bool has_tiers)
{
    json_put_object(writer, "network");
    write_policy(writer, plan->policy);
    write_sharp(writer, plan->sharp);
    write_latency(writer, "cable_latency", plan->cable_latency_ps);
    write_latency(writer, "switch_latency", plan->switch_latency_ps);
    if (plan->switch_ports != 0) {
        json_put_unsigned(writer, "switch_ports", plan->switch_ports);
    }
    if (plan->nic_bytes_per_s != 0) {
        char buffer[SCENARIO_AMOUNT_BYTES];
        json_put_string(writer, "nic_rate",
                        scenario_amount_text(buffer, plan->nic_bytes_per_s, scenario_rates));
    }
    if (plan->node_nics != 0) json_put_unsigned(writer, "node_nics", plan->node_nics);
    json_put_object(writer, "nvlink");
    write_policy(writer, plan->nvlink_policy);
    write_sharp(writer, plan->nvlink_sharp);
    write_latency(writer, "latency", plan->nvlink_latency_ps);
    json_write_object_end(writer);
    for (uint32_t tier = 0; tier < MACHINE_TIER_COUNT; tier++) {
        const struct machine_tier_plan *own = &plan->tier[tier];
        bool const says_ratio = has_tiers || own->oversubscription_ppm != 0;
        if (!says_ratio && own->policy == 0) continue;
        json_put_object(writer, tier_names[tier]);
        if (own->policy != 0) write_policy(writer, own->policy);
        if (!says_ratio) continue;
        json_put_real(writer, "oversubscription",
                      own->oversubscription_ppm == 0 ? 1
                                                     : (double)own->oversubscription_ppm / PPM_ONE);
        json_write_object_end(writer);
    }
    json_write_object_end(writer);
}
