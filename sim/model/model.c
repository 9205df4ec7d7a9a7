#include "sim/model/model.h"

uint64_t model_window_layers(const struct model *model, uint64_t length)
{
    uint64_t count = 0;
    if (model->attends.windowed == NULL || model->attends.window >= length) return 0;
    for (uint64_t layer = 0; layer < model->layers; layer++)
        count += model->attends.windowed[layer];
    return count;
}

uint64_t model_borrowing_layers(const struct model *model)
{
    uint64_t count = 0;
    for (uint64_t layer = 0; layer < model->layers; layer++)
        count += model_layer_borrows(model, layer);
    return count;
}
