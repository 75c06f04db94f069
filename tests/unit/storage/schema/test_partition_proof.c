/* The ids of a partition's state, asked for alone. */
#include "storage/schema/partition_state.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(partition_proof, .timeout = 60);

static struct reply text(const char *p)
{
    return (struct reply){
        .type = p != NULL ? REPLY_TEXT : REPLY_NIL, .text = p != NULL ? slice_of(p) : SLICE("")};
}

static const struct partition_view before = {.known = true,
    .ver = {3, "v.1"},
    .over = {15, "01773140160 a.1"},
    .over_s = 1773140160,
    .fold = {3, "f.1"}};

struct fields {
    struct reply items[PROOF_FIELDS];
    struct reply all;
};

static struct reply *proof(struct fields *f, const char *ver, const char *over, const char *fold)
{
    *f = (struct fields){.items = {text(ver), text(over), text(fold)}};
    f->all = (struct reply){.type = REPLY_ARRAY, .items = f->items, .n = PROOF_FIELDS};
    return &f->all;
}

Test(partition_proof, all_is_as_before)
{
    struct fields f;
    struct partition_view view;
    cr_expect(partition_proof_same(proof(&f, "v.1", "01773140160 a.1", "f.1"), &before));
    cr_assert(partition_proof_take(&f.all, &before, &view));
    cr_expect(ver_equal(&view.over, &before.over) && ver_equal(&view.fold, &before.fold));
    cr_expect_eq(view.over_s, before.over_s);
}

Test(partition_proof, one_other_id_is_enough)
{
    struct fields f;
    cr_expect_not(partition_proof_same(proof(&f, "v.1", "01773140220 a.2", "f.1"), &before));
    cr_expect_not(partition_proof_same(proof(&f, "v.1", "01773140160 a.1", "f.2"), &before));
    cr_expect_not(partition_proof_same(proof(&f, "v.2", "01773140160 a.1", "f.1"), &before));
}

Test(partition_proof, other_ids_are_learnt)
{
    struct fields f;
    struct partition_view view;
    cr_expect_not(partition_proof_same(proof(&f, "v.1", "01773140220 a.2", "f.2"), &before));
    cr_assert(partition_proof_take(&f.all, &before, &view));
    cr_expect_eq(view.over_s, 1773140220);
    cr_expect(ver_equal(&view.fold, &(struct ver){3, "f.2"}));
    cr_assert(partition_proof_take(proof(&f, "v.1", NULL, NULL), &before, &view));
    cr_expect(view.over.n == 0 && view.over_s == 0 && view.fold.n == 0, "gone");
    cr_expect_not(partition_proof_same(&f.all, &before));
}

Test(partition_proof, of_another_state_nothing_is_learnt)
{
    struct fields f;
    struct partition_view view;
    struct partition_view without = before;
    without.ver.n = 0;
    cr_expect_not(partition_proof_take(proof(&f, "v.2", "01773140160 a.1", "f.1"), &before, &view));
    cr_expect_not(partition_proof_same(&f.all, &before));
    cr_expect_not(partition_proof_take(proof(&f, NULL, NULL, NULL), &before, &view), "it is lost");
    cr_expect_not(partition_proof_take(proof(&f, NULL, NULL, NULL), &without, &view));
    cr_expect_not(partition_proof_same(proof(&f, "", "01773140160 a.1", "f.1"), &without));
    proof(&f, "v.1", "01773140160 a.1", "f.1")->n = 2;
    cr_expect_not(partition_proof_take(&f.all, &before, &view), "another form");
    f.all = (struct reply){.type = REPLY_ERROR, .text = SLICE("WRONGTYPE")};
    cr_expect_not(partition_proof_take(&f.all, &before, &view));
    cr_expect_not(partition_proof_same(&f.all, &before));
}
