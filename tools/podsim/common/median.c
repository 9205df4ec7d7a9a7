#include "tools/podsim/common/median.h"

double median(double *values, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        double const value = values[i];
        uint32_t at = i;
        for (; at > 0 && values[at - 1] > value; at--) values[at] = values[at - 1];
        values[at] = value;
    }
    return count == 0 ? 0 : (values[(count - 1) / 2] + values[count / 2]) / 2;
}
