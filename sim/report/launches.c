#include "sim/report/launches.h"

#include "sim/base/units.h"
#include "sim/report/analysis.h"

double launches_count(const struct report_input *input)
{
    const struct program *program = input->program;
    const struct program_role *role =
        &program->roles[analysis_role(input, input->trace->reported_chip)];
    double count = 0;
    for (uint32_t b = 0; b < role->block_count; b++)
        count += (double)role->block[b].repeat *
                 program->templates[role->block[b].template_index].op_count;
    return count;
}

double launches_host_s(const struct report_input *input)
{
    return launches_count(input) * units_seconds(input->machine->chip.launch.host_ps);
}
