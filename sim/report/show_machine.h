/*
 * show_machine.h: what a product's names mean: one line for each slice that is sold by a name.
 */
#ifndef SIM_REPORT_SHOW_MACHINE_H
#define SIM_REPORT_SHOW_MACHINE_H

struct chip;
struct strbuf;

/* "v5p-8192  4096 chips  16x16x16  rings on x, y, z", smallest first. */
void show_machine_products(const struct chip *chip, struct strbuf *text);

#endif
