//! Golden tests of this stage.

use crate::rewrite::rewrite;

#[test]
fn optimize_makes_the_golden_plans() {
    crate::golden::check("optimize/golden.txt", &|cx, bound| {
        Ok(super::optimize(cx, rewrite(cx, bound, &|_| Ok(None))?)?.to_string())
    });
}
