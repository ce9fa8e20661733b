//! Golden tests of this stage.

#[test]
fn rewrite_makes_the_golden_trees() {
    crate::golden::check("rewrite/golden.txt", &|cx, bound| {
        Ok(super::rewrite(cx, bound, &|_| Ok(None))?.to_string())
    });
}
